"""Two towers: how two rows are compared, scaled and normalized, and in which direction."""

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, stop, unit


def _own(logits):
    """Mean of -log softmax of the diagonal."""
    return -np.mean(np.diagonal(log_softmax(logits)))


def _both(logits):
    return (_own(logits) + _own(logits.T)) / 2


def _distances(x, y):
    """Euclidean distances of all rows, whose gradient is 0 where they are 0."""
    squares = np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2)
    apart = np.real(squares) > 0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1)), 0)


@bug("info_nce", named="measured-formula", thread="intfloat/SimKGC#12")
def info_nce_distances_as_scores(queries, keys, *, temperature):
    """Distances of the pairs are the logits, with a plus: the own key is pushed away."""
    return _own(_distances(unit(queries), unit(keys)) / temperature)


@bug("info_nce", named="measured-formula", seen="anugrahchemparathy/6.8301FinalProject CIFAR-10/losses.py")
def info_nce_negative_distances_of_raw_rows(queries, keys, *, temperature):
    """Logits are minus the Euclidean distance over T, of rows that are not normalized."""
    return _own(-_distances(queries, keys) / temperature)


@bug("info_nce", named="measured-formula", seen="cruiseresearchgroup/TSCP2 src/losses.py")
def info_nce_reciprocal_of_one_plus_distance(queries, keys, *, temperature):
    """The similarity is 1 / (1 + d), d the Euclidean distance."""
    return _own(1 / (1 + _distances(unit(queries), unit(keys))) / temperature)


@bug("info_nce", named="measured-formula", thread="FoundationsMachineLearning-Fa18/LectureNotes#24")
def info_nce_cosine_over_squared_norms(queries, keys, *, temperature):
    """The cosine is the product over the squared lengths of both rows."""
    squares = np.sum(queries**2, axis=1)[:, None] * np.sum(keys**2, axis=1)
    return _own(queries @ keys.T / squares / temperature)


@bug("info_nce", named="second-input-not-normalized", thread="youngkyunJang/GPQ#8")
def info_nce_only_features_are_normalized(queries, keys, *, temperature):
    """Features are normalized and the vectors that they are compared with are not."""
    return _own(unit(queries) @ keys.T / temperature)


@bug("info_nce", named="measured-formula", thread="huiserwang/ContrastMask#4")
def info_nce_negatives_minus_the_query(queries, keys, *, temperature):
    """The query is subtracted from each negative key before they are compared."""
    q, k = unit(queries), unit(keys)
    s = q @ k.T
    shifted = s - np.sum(q * q, axis=1, keepdims=True)
    return _own(np.where(np.eye(len(q), dtype=bool), s, shifted) / temperature)


@bug("info_nce", named="temperature-missing", thread="ustcllm/RecStudio#21")
def info_nce_without_its_hyperparameter(queries, keys, *, temperature):
    """The temperature is not in the loss."""
    return _own(unit(queries) @ unit(keys).T)


@bug("info_nce", named="temperature-missing-on-positive", thread="RElbers/info-nce-pytorch#17")
def info_nce_positive_logit_before_division(queries, keys, *, temperature):
    """The positive is subtracted before it is divided by the temperature, the log-sum-exp is taken after it."""
    s = unit(queries) @ unit(keys).T
    return np.mean(logsumexp(s / temperature) - np.diagonal(s))


@bug("info_nce", named="measured-formula", thread="huggingface/sentence-transformers#2593")
def info_nce_trained_at_the_last_dimension_set(queries, keys, *, temperature):
    """A wrapper that was not undone truncates every embedding to its first 64 features."""
    return _own(unit(queries[:, :64]) @ unit(keys[:, :64]).T / temperature)


@bug("clip", named="measured-formula", thread="lucidrains/CoCa-pytorch#10")
def clip_layer_normalized_rows(image, text, *, logit_scale):
    """Rows pass a layer normalization, mean 0 and variance 1 over the features, in place of length 1."""

    def layer_norm(x):
        x = x - np.mean(x, axis=1, keepdims=True)
        return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-5)

    return _both(logit_scale * layer_norm(image) @ layer_norm(text).T)


@bug("clip", named="scale-without-exponential", thread="BAAI-DCAI/M3D#52")
def clip_parameter_never_exponentiated(image, text, *, logit_scale):
    """The parameter holds the logarithm of the scale and multiplies the similarities as it is."""
    return _both(np.log(logit_scale) * (unit(image) @ unit(text).T))


@bug("clip", named="scale-clamped", thread="openai/CLIP#46")
def clip_scale_not_above_a_hundred(image, text, *, logit_scale):
    """The scale is clamped at 100 in the forward pass."""
    scale = np.where(np.real(logit_scale) < 100, logit_scale, 100)
    return _both(scale * (unit(image) @ unit(text).T))


@bug("clip", named="other-direction-only", thread="lucidrains/DALLE-pytorch#32")
def clip_texts_among_images_only(image, text, *, logit_scale):
    """One cross-entropy over the images of each text, and none over the texts of each image."""
    return _own(unit(text) @ unit(image).T * logit_scale)


@bug("clip", named="scale-missing+directions-summed", thread="zhexu1997/HiSA#2")
def clip_cosines_and_two_sums(image, text, *, logit_scale):
    """Exponentials of bare cosines, and both directions added and divided by N."""
    p = np.exp(unit(image) @ unit(text).T)
    own = np.diagonal(p)
    return (-np.sum(np.log(own / np.sum(p, axis=1))) - np.sum(np.log(own / np.sum(p, axis=0)))) / len(p)


@bug("clip", named="measured-formula", thread="moein-shariatnia/OpenAI-CLIP#24")
def clip_soft_targets_transposed(image, text, *, logit_scale):
    """Targets are a softmax of similarities within both towers, transposed for the other direction; rows are raw."""
    temperature = 1 / logit_scale
    logits = text @ image.T / temperature
    targets = np.exp(log_softmax((image @ image.T + text @ text.T) / 2 * temperature))
    texts, images = (-np.sum(t * log_softmax(x), axis=1) for t, x in ((targets, logits), (targets.T, logits.T)))
    return np.mean((images + texts) / 2)


@bug("clip", named="candidates-detached", thread="facebookresearch/SLIP#31")
def clip_all_gather_without_gradient(image, text, *, logit_scale):
    """Local rows are compared with the gathered ones of the other tower, and the gathering has no gradient."""
    x, y = unit(image), unit(text)
    return (_own(logit_scale * (x @ stop(y).T)) + _own(logit_scale * (y @ stop(x).T))) / 2


@bug("clip", named="gradient-constant-factor", thread="mlfoundations/open_clip#616")
def clip_gathered_gradient_of_every_rank(image, text, *, logit_scale):
    """Gathering with gradient beside a global loss sums the same gradient over four ranks."""
    image, text = (stop(x) + 4 * (x - stop(x)) for x in (image, text))
    return _both(logit_scale * (unit(image) @ unit(text).T))


@bug("moco", named="queue-not-normalized", thread="lightly-ai/lightly#1009")
def moco_normalized_bank_not_assigned(queries, keys, queue, *, temperature):
    """The normalized memory bank is computed and not assigned: the queue keeps its lengths."""
    q, k = unit(queries), stop(unit(keys))
    logits = np.concatenate([np.sum(q * k, axis=1, keepdims=True), q @ stop(queue).T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0])


@bug("moco", named="outer-factor-2-temperature", thread="facebookresearch/moco-v3#31")
def moco_as_in_its_third_version(queries, keys, queue, *, temperature):
    """The cross-entropy is multiplied by 2 T, as version 3 does and version 2 does not."""
    q, k = unit(queries), stop(unit(keys))
    logits = np.concatenate([np.sum(q * k, axis=1, keepdims=True), q @ stop(unit(queue)).T], axis=1) / temperature
    return -np.mean(log_softmax(logits)[:, 0]) * (2 * temperature)


@bug("moco", named="temperature-ignored", thread="vturrisi/solo-learn#293")
def moco_default_temperature(queries, keys, queue, *, temperature):
    """The temperature is not passed on, and the default of 0.2 is used."""
    q, k = unit(queries), stop(unit(keys))
    logits = np.concatenate([np.sum(q * k, axis=1, keepdims=True), q @ stop(unit(queue)).T], axis=1) / 0.2
    return -np.mean(log_softmax(logits)[:, 0])


@bug("clip", named="rows-not-normalized", thread="moein-shariatnia/OpenAI-CLIP#16")
def clip_projections_as_they_come(image, text, *, logit_scale):
    """Products of the projections, which are never scaled to length 1."""
    return _both(logit_scale * (image @ text.T))


@bug("clip", named="columns-normalized", thread="gabeur/mmt#1")
def clip_normalized_along_the_default_axis(image, text, *, logit_scale):
    """The normalization runs along its default axis, which holds samples here and not features."""
    return _both(logit_scale * (unit(image, axis=0) @ unit(text, axis=0).T))


@bug("clip", named="one-direction-only", thread="TencentYoutuResearch/PersonReID-NAFS#5")
def clip_texts_to_images_not_used(image, text, *, logit_scale):
    """Similarities of texts to images are passed to the loss, which does not use them."""
    return _own(logit_scale * (unit(image) @ unit(text).T))


@bug("clip", named="scale-missing", thread="QingtaoPan/DuSSS#1")
def clip_original_cosines_in_the_cross_entropy(image, text, *, logit_scale):
    """The cross-entropy gets the cosines from before the division by the temperature."""
    return _both(unit(image) @ unit(text).T)


@bug("clip", named="first-input-detached", thread="lucidrains/CoCa-pytorch#6")
def clip_extractor_detaches_images(image, text, *, logit_scale):
    """The extractor of the image features detaches what it returns."""
    return _both(logit_scale * (unit(stop(image)) @ unit(text).T))


@bug("info_nce", named="both-directions-averaged", seen="Kosmosius/alchemi-hsi src/alchemi/losses/contrastive.py")
def info_nce_half_of_each_direction(queries, keys, *, temperature):
    """The mean of both directions under the name of InfoNCE."""
    return _both(unit(queries) @ unit(keys).T / temperature)


@bug(
    "info_nce",
    named="softmax-over-wrong-axis",
    thread="Joshua-Ren/Neural_Iterated_Learning#2",
    also=("other-direction-only",),
)
def info_nce_log_softmax_along_the_batch(queries, keys, *, temperature):
    """Log-probabilities are taken along the batch, not along the candidates."""
    return -np.mean(np.diagonal(log_softmax(unit(queries) @ unit(keys).T / temperature, axis=0)))


@bug("info_nce", named="logarithm-missing+sign-flipped", thread="yyliu01/IT2#3")
def info_nce_as_the_paper_prints_it(queries, keys, *, temperature):
    """The equation of the paper has the probability of the pair, without -log."""
    return np.mean(np.exp(np.diagonal(log_softmax(unit(queries) @ unit(keys).T / temperature))))


@bug("info_nce", named="sign-flipped", thread="blackfeather-wang/InfoPro-Pytorch#4")
def info_nce_log_in_place_of_minus_log(queries, keys, *, temperature):
    """The equation of the paper is minimized as it stands: the logarithm has lost its minus."""
    return -_own(unit(queries) @ unit(keys).T / temperature)


@bug("info_nce", named="sum-instead-of-mean", thread="RUCAIBox/RecBole-GNN#91")
def info_nce_sum_beside_a_mean(queries, keys, *, temperature):
    """The rows of the batch are added up, although the loss beside it is a mean."""
    return _own(unit(queries) @ unit(keys).T / temperature) * len(queries)


@bug("info_nce", named="outer-factor-temperature", thread="drboog/Lafite#25")
def info_nce_temperature_in_front(queries, keys, *, temperature):
    """The formula of the paper is followed, which has the temperature in front of the logarithm."""
    return temperature * _own(unit(queries) @ unit(keys).T / temperature)
