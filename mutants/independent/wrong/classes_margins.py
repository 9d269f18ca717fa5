"""ArcFace and CosFace wrong in the margin, its branches, the scale, the cosines or the gradient."""

import math

import numpy as np

from mutants.bug import bug, cross_entropy, log_softmax, logsumexp, stop, unit


def _cosines(embeddings, class_weights):
    return unit(embeddings) @ unit(class_weights).T


def _own(logits, target):
    return np.arange(logits.shape[1]) == target[:, None]


def _sine(cosine):
    rest = 1 - cosine * cosine
    return np.sqrt(np.where(np.real(rest) > 0, rest, 0))


def _turned(cosine, margin):
    """Cosine of the angle plus the margin."""
    return cosine * np.cos(margin) - _sine(cosine) * np.sin(margin)


def _angle(cosine):
    """Arccosine, whose derivative at a pole is taken for 0."""
    sine = np.real(_sine(cosine))
    slope = np.where(sine > 0, -1 / np.where(sine > 0, sine, 1), 0)
    return np.arctan2(sine, np.real(cosine)) + slope * (cosine - stop(cosine))


@bug("arcface", named="measured-formula", thread="TreB1eN/InsightFace_Pytorch#6")
def arcface_condition_the_wrong_way_round(embeddings, class_weights, target, *, margin, scale):
    """The substitute for angles past pi - m is used wherever the angle is fine, and nowhere else."""
    cosine = _cosines(embeddings, class_weights)
    fine = np.real(cosine) > math.cos(math.pi - margin)
    own = np.where(fine, cosine - margin * np.sin(margin), _turned(cosine, margin))
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="ronghuaiyang/arcface-pytorch#2")
def arcface_easy_margin(embeddings, class_weights, target, *, margin, scale):
    """The margin is added where the target's cosine is positive, and left out elsewhere."""
    cosine = _cosines(embeddings, class_weights)
    own = np.where(np.real(cosine) > 0, _turned(cosine, margin), cosine)
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="4uiiurz1/keras-arcface#11")
def arcface_sum_of_angles_clipped(embeddings, class_weights, target, *, margin, scale):
    """The angle with its margin is clipped at pi, so that the cosine stays at -1 from there on."""
    cosine = _cosines(embeddings, class_weights)
    within = np.real(cosine) > math.cos(math.pi - margin)
    own = np.where(within, _turned(cosine, margin), -1)
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="leondgarse/Keras_insightface#117")
def arcface_turned_tail_reflected(embeddings, class_weights, target, *, margin, scale):
    """Past the threshold the cosine with the margin is reflected at -1."""
    cosine = _cosines(embeddings, class_weights)
    turned = _turned(cosine, margin)
    own = np.where(np.real(cosine) > math.cos(math.pi - margin), turned, -2 - turned)
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="auroua/InsightFace_TF#1", settings={"fallback": "linear"})
def arcface_substitute_scaled_twice(embeddings, class_weights, target, *, margin, scale):
    """What is taken off past the threshold has the scale in it already, and is multiplied by it with the rest."""
    cosine = _cosines(embeddings, class_weights)
    fine = np.real(cosine) > math.cos(math.pi - margin)
    own = np.where(fine, _turned(cosine, margin), cosine - scale * margin * np.sin(margin))
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="4uiiurz1/keras-arcface#16")
def arcface_angle_times_margin(embeddings, class_weights, target, *, margin, scale):
    """The margin multiplies the target's angle, as SphereFace has it."""
    cosine = _cosines(embeddings, class_weights)
    own = np.cos(margin * _angle(cosine))
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("arcface", named="measured-formula", thread="jonasgrebe/pt-femb-face-embeddings#3")
def arcface_angles_cut_at_one(embeddings, class_weights, target, *, margin, scale):
    """The clamp to [-1, 1] is around the arccosine: angles of more than 1 radian are 1 radian."""
    cosine = _cosines(embeddings, class_weights)
    within = np.where(np.real(cosine) > math.cos(1), cosine, math.cos(1))
    logits = np.where(_own(cosine, target), _turned(within, margin), within)
    return cross_entropy(scale * logits, target)


@bug("arcface", named="measured-formula", seen="chaddy1004/arcface utils/losses.py")
def arcface_angles_for_logits(embeddings, class_weights, target, *, margin, scale):
    """The angles with the margin are scaled as they are, and no cosine is taken of them."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(scale * (_angle(cosine) + margin * _own(cosine, target)), target)


@bug("arcface", named="measured-formula", seen="E6B3BD/Supermarketsettlement utils/ArcLoss.py")
def arcface_tenth_of_the_cosine(embeddings, class_weights, target, *, margin, scale):
    """Cosines are divided by 10 against NaN, and the angles are those of the tenth."""
    cosine = _cosines(embeddings, class_weights) / 10
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, margin), cosine), target)


@bug("arcface", named="measured-formula", seen="minus31/productRecommend custom_loss.py")
def arcface_others_with_a_minus(embeddings, class_weights, target, *, margin, scale):
    """The other classes are picked by labels minus 1: their cosines change sign, and the target's zero is summed."""
    cosine = _cosines(embeddings, class_weights)
    own = _own(cosine, target)
    top = scale * _turned(np.sum(np.where(own, cosine, 0), axis=1), margin)
    others = logsumexp(scale * np.where(own, 0, -cosine))
    return np.mean(logsumexp(np.stack([top, others], axis=1)) - top)


@bug("arcface", named="measured-formula", also=("columns-normalized",), thread="ronghuaiyang/arcface-pytorch#30")
def arcface_weights_normalized_over_classes(embeddings, class_weights, target, *, margin, scale):
    """The class weights are normalized over dimension 0, which would be right for the transposed matrix."""
    cosine = unit(embeddings) @ unit(class_weights, axis=0).T
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, margin), cosine), target)


@bug(
    "arcface",
    named="second-input-not-normalized",
    thread="cvqluu/Angular-Penalty-Softmax-Losses-Pytorch#3",
)
def arcface_weights_normalized_in_a_loop(embeddings, class_weights, target, *, margin, scale):
    """The normalized weights are bound to a variable of a loop, and the layer uses its own."""
    cosine = unit(embeddings) @ class_weights.T
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, margin), cosine), target)


@bug("arcface", named="measured-formula", thread="deepinsight/insightface#1011")
def arcface_target_alone_is_scaled(embeddings, class_weights, target, *, margin, scale):
    """Only the target's logit is multiplied by the scale after the margin; the others stay cosines."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(np.where(_own(cosine, target), scale * _turned(cosine, margin), cosine), target)


@bug("arcface", named="margin-multiplied", also=("wrong-loss",), thread="deepinsight/insightface#1895")
def arcface_loss_not_passed_on(embeddings, class_weights, target, *, margin, scale):
    """The name of the loss is not handed to the head, which falls back to CosFace."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(scale * (cosine - margin * _own(cosine, target)), target)


@bug("arcface", named="value-saturates", thread="deepinsight/insightface#1437")
def arcface_loss_of_69(embeddings, class_weights, target, *, margin, scale):
    """Probabilities are held above 1e-30, a loss of 69.08; the backward is written by hand and does not know it."""
    cosine = _cosines(embeddings, class_weights)
    logits = scale * np.where(_own(cosine, target), _turned(cosine, margin), cosine)
    rows = -log_softmax(logits)[np.arange(len(target)), target]
    value = np.mean(np.minimum(np.real(rows), -math.log(1e-30)))
    return value + 1j * np.imag(np.mean(rows))


@bug("arcface", named="margin-added", thread="deepinsight/insightface#328")
def arcface_angle_minus_margin(embeddings, class_weights, target, *, margin, scale):
    """The margin is taken off the angle, as a reader took the formula."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, -margin), cosine), target)


@bug("arcface", named="value-right-gradient-wrong", thread="deepinsight/insightface#2255")
def arcface_margin_outside_of_the_graph(embeddings, class_weights, target, *, margin, scale):
    """Arccosine, margin and cosine are applied in place without a graph: backward takes them for the identity."""
    cosine = _cosines(embeddings, class_weights)
    own = stop(_turned(cosine, margin)) + cosine - stop(cosine)
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("cosface", named="measured-formula", thread="auroua/InsightFace_TF#5")
def cosface_margin_for_large_cosines_only(embeddings, class_weights, target, *, margin, scale):
    """The margin is subtracted where the target's cosine exceeds it, as in the layer of another framework."""
    cosine = _cosines(embeddings, class_weights)
    own = np.where(np.real(cosine) > margin, cosine - margin, cosine)
    return cross_entropy(scale * np.where(_own(cosine, target), own, cosine), target)


@bug("cosface", named="measured-formula", thread="thuiar/DeepUnkID#5")
def cosface_margin_off_a_probability(embeddings, class_weights, target, *, margin, scale):
    """The model ends in a softmax, and margin and scale are applied to its probabilities."""
    p = np.exp(log_softmax(_cosines(embeddings, class_weights)))
    return cross_entropy(scale * (p - margin * _own(p, target)), target)


@bug("cosface", named="measured-formula", thread="frank-xwang/RIDE-LongTailRecognition#26")
def cosface_scale_on_the_margin_alone(embeddings, class_weights, target, *, margin, scale):
    """The margin is multiplied by the scale and the cosines are not."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(cosine - scale * margin * _own(cosine, target), target)


@bug(
    "cosface",
    named="exp-overflows",
    also=("exp-overflows+exp-underflows",),
    seen="IHo-Chiu/NTU-Machine-Learning-2023-Spring HW4/AMSloss.py",
)
def cosface_numerator_and_excluded(embeddings, class_weights, target, *, margin, scale):
    """Numerator and excluded classes are exponentiated as they are and added up."""
    cosine = _cosines(embeddings, class_weights)
    own = _own(cosine, target)
    numerator = scale * (np.sum(np.where(own, cosine, 0), axis=1) - margin)
    excluded = np.sum(np.where(own, 0, np.exp(scale * cosine)), axis=1)
    return -np.mean(numerator - np.log(np.exp(numerator) + excluded))


@bug("cosface", named="measured-formula", thread="KikimorMay/MultiFace#2")
def cosface_first_64_features(embeddings, class_weights, target, *, margin, scale):
    """The features are normalized as a whole, and then one group of 64 meets the normalized weights."""
    cosine = unit(embeddings)[:, :64] @ unit(class_weights[:, :64]).T
    return cross_entropy(scale * (cosine - margin * _own(cosine, target)), target)


@bug("cosface", named="first-input-not-normalized", thread="TreB1eN/InsightFace_Pytorch#70")
def cosface_features_taken_for_unit(embeddings, class_weights, target, *, margin, scale):
    """The head normalizes its kernel and trusts that the network has normalized the features."""
    cosine = embeddings @ unit(class_weights).T
    return cross_entropy(scale * (cosine - margin * _own(cosine, target)), target)


@bug("cosface", named="measured-formula", thread="deepinsight/insightface#1606")
def cosface_classes_of_the_batch_only(embeddings, class_weights, target, *, margin, scale):
    """Of the classes only those that occur in the batch are sampled into the denominator."""
    sampled, target = np.unique(target, return_inverse=True)
    cosine = _cosines(embeddings, class_weights[sampled])
    return cross_entropy(scale * (cosine - margin * _own(cosine, target)), target)


@bug("cosface", named="scale-missing", also=("temperature-missing",), thread="ExplainableML/czsl#30")
def cosface_bare_cosines_for_logits(embeddings, class_weights, target, *, margin, scale):
    """The cosines with the margin go into the softmax without the scale, which seemed to mean nothing."""
    cosine = _cosines(embeddings, class_weights)
    return cross_entropy(cosine - margin * _own(cosine, target), target)


@bug("arcface", named="margin-on-every-class", thread="Confusezius/Revisiting_Deep_Metric_Learning_PyTorch#12")
def arcface_margin_on_the_whole_matrix(embeddings, class_weights, target, *, margin, scale):
    """The margin is added to the angles of the whole matrix of samples and classes."""
    return cross_entropy(scale * _turned(_cosines(embeddings, class_weights), margin), target)


@bug("arcface", named="margin-in-degrees", seen="KevinMusgrave/pytorch-metric-learning losses/arcface_loss.py")
def arcface_half_a_degree(embeddings, class_weights, target, *, margin, scale):
    """The margin of another code base goes to a library that converts it from degrees."""
    cosine, degrees = _cosines(embeddings, class_weights), margin * math.pi / 180
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, degrees), cosine), target)


@bug(
    "arcface",
    named="centers-detached",
    also=("keys-detached",),
    thread="DequanZhu/FaceNet-and-FaceLoss-collections-tensorflow2.0#4",
)
def arcface_layer_outside_of_the_model(embeddings, class_weights, target, *, margin, scale):
    """Gradients are taken by the variables of the model, which the layer with the class weights is no part of."""
    cosine = _cosines(embeddings, stop(class_weights))
    return cross_entropy(scale * np.where(_own(cosine, target), _turned(cosine, margin), cosine), target)


@bug("cosface", named="margin-not-scaled", thread="deepinsight/insightface#142")
def cosface_margin_off_scaled_features(embeddings, class_weights, target, *, margin, scale):
    """The features carry the scale already, and the margin is taken off the product as if it were a cosine."""
    logits = scale * unit(embeddings) @ unit(class_weights).T
    return cross_entropy(logits - margin * _own(logits, target), target)


@bug(
    "cosface",
    named="normalization-detached",
    also=("gradient-radial-only", "value-right-gradient-wrong"),
    seen="ydwen/opensphere model/head/cosface.py",
)
def cosface_weights_renewed_without_a_graph(embeddings, class_weights, target, *, margin, scale):
    """The class weights are normalized in place before each step, without a graph; the features have one."""
    lengths = np.sqrt(np.sum(stop(class_weights) ** 2, axis=1, keepdims=True))
    cosine = unit(embeddings) @ (class_weights / lengths).T
    return cross_entropy(scale * (cosine - margin * _own(cosine, target)), target)


@bug("cosface", named="scalar-ignored", also=("temperature-ignored",), thread="deepinsight/insightface#1895")
def cosface_scale_of_the_default(embeddings, class_weights, target, *, margin, scale):
    """The configuration does not reach the head, whose default scale is 64."""
    cosine = _cosines(embeddings, class_weights) + 0 * scale
    return cross_entropy(64 * (cosine - margin * _own(cosine, target)), target)


@bug("cosface", named="margin-missing", thread="tomastokar/Additive-Margin-Softmax#1")
def cosface_returned_without_margin(embeddings, class_weights, target, *, margin, scale):
    """What goes to the criterion are the logits that the margin has not been taken off."""
    return cross_entropy(scale * _cosines(embeddings, class_weights), target)
