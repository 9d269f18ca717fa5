"""Backward passes by hand that are not those of their value."""

import numpy as np

from mutants.bug import bug


def _unit(x):
    length = np.sqrt(np.sum(x * x, axis=1, keepdims=True))
    return x / length, length


def _unit_backward(grad, u, length):
    return (grad - u * np.sum(u * grad, axis=1, keepdims=True)) / length


def _log_softmax(x):
    x = x - np.max(x, axis=1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))


def _sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


@bug("nt_xent", wrong=("z1", "z2"), thread="facebookresearch/vissl#123")
def nt_xent_rows_as_anchors_only(z1, z2, *, temperature):
    """A row gets a gradient as an anchor and none as a candidate of the other anchors."""
    n = len(z1)
    z, length = _unit(np.concatenate([z1, z2]))
    similarity, rows = z @ z.T, np.arange(2 * n)
    logits = similarity / temperature
    np.fill_diagonal(logits, -np.inf)
    log_prob, partner = _log_softmax(logits), np.roll(rows, n)
    loss = -np.mean(log_prob[rows, partner])

    grad = np.exp(log_prob)
    grad[rows, partner] -= 1
    grad /= 2 * n * temperature
    dz = _unit_backward(grad @ z, z, length)
    return loss, {"z1": dz[:n], "z2": dz[n:], "temperature": -np.sum(grad * similarity) / temperature}


@bug("cross_entropy", wrong=("logits", "temperature"), thread="victorlempitsky/Mate#2")
def cross_entropy_gradient_not_averaged(logits, target, *, temperature):
    """The value is a mean over the batch, and its gradient the sum."""
    rows, scaled = np.arange(len(logits)), logits / temperature
    log_prob = _log_softmax(scaled)
    loss = -log_prob[rows, target].mean()

    delta = np.exp(log_prob)
    delta[rows, target] -= 1
    return loss, {"logits": delta / temperature, "temperature": -np.sum(delta * scaled) / temperature}


@bug("info_nce", wrong=("temperature",))
def info_nce_temperature_ascends(queries, keys, *, temperature):
    """The gradient by the temperature is that by its inverse: it lacks -1 / T^2."""
    q, q_length = _unit(queries)
    k, k_length = _unit(keys)
    similarity, rows = q @ k.T, np.arange(len(q))
    log_prob = _log_softmax(similarity / temperature)
    loss = -np.mean(np.diagonal(log_prob))

    delta = np.exp(log_prob)
    delta[rows, rows] -= 1
    delta /= len(q)
    grads = {
        "queries": _unit_backward(delta @ k / temperature, q, q_length),
        "keys": _unit_backward(delta.T @ q / temperature, k, k_length),
        "temperature": np.sum(delta * similarity),
    }
    return loss, grads


@bug("supcon_out", wrong=("embeddings", "temperature"))
def supcon_out_gradient_of_the_sum(embeddings, labels, *, temperature):
    """The gradient sums over the positives of an anchor, and the value averages over them."""
    z, length = _unit(embeddings)
    n, similarity = len(z), z @ z.T
    logits = similarity / temperature
    np.fill_diagonal(logits, -np.inf)
    positive = (labels[:, None] == labels) & ~np.eye(n, dtype=bool)
    count = positive.sum(axis=1, keepdims=True).astype(z.dtype)
    log_prob = _log_softmax(logits)
    loss = -np.mean(np.where(positive, log_prob, 0).sum(axis=1) / count[:, 0])

    delta = (count * np.exp(log_prob) - positive) / n
    dz = (delta + delta.T) @ z / temperature
    dt = -np.sum(delta * similarity) / temperature**2
    return loss, {"embeddings": _unit_backward(dz, z, length), "temperature": dt}


@bug("siglip", wrong=("image", "text", "logit_scale", "logit_bias"))
def siglip_sigmoid_of_the_wrong_sign_at_positives(image, text, *, logit_scale, logit_bias):
    """The slope at a matching pair is -sigmoid(l); it should be -sigmoid(-l)."""
    x, x_length = _unit(image)
    y, y_length = _unit(text)
    n, similarity = len(x), x @ y.T
    logits = logit_scale * similarity + logit_bias
    signs = 2 * np.eye(n, dtype=logits.dtype) - 1
    loss = np.sum(np.logaddexp(0, -signs * logits)) / n

    delta = signs * -_sigmoid(logits) / n
    grads = {
        "image": _unit_backward(logit_scale * delta @ y, x, x_length),
        "text": _unit_backward(logit_scale * delta.T @ x, y, y_length),
        "logit_scale": np.sum(delta * similarity),
        "logit_bias": np.sum(delta),
    }
    return loss, grads


@bug("arcface", wrong=("embeddings", "class_weights"), thread="xialuxi/arcface-caffe#15")
def arcface_slope_by_the_angle(embeddings, class_weights, target, *, margin, scale):
    """The target's slope is that by its angle, -sin(theta + m), where that by its cosine is needed."""
    x, x_length = _unit(embeddings)
    w, w_length = _unit(class_weights)
    n, cosine = len(x), x @ w.T
    rows = np.arange(n)
    theta = np.arccos(np.clip(cosine[rows, target], -1, 1))
    moved = cosine.copy()
    moved[rows, target] = np.cos(theta + margin)
    log_prob = _log_softmax(scale * moved)
    loss = -np.mean(log_prob[rows, target])

    delta = np.exp(log_prob)
    delta[rows, target] -= 1
    delta /= n
    d_scale = np.sum(delta * moved)
    d_cosine = scale * delta
    d_cosine[rows, target] *= -np.sin(theta + margin)
    grads = {
        "embeddings": _unit_backward(d_cosine @ w, x, x_length),
        "class_weights": _unit_backward(d_cosine.T @ x, w, w_length),
        "scale": d_scale,
    }
    return loss, grads


@bug("uniformity", wrong=("x",))
def uniformity_first_of_each_pair_moves(x, *, t):
    """Of each pair i < j the gradient reaches point i alone."""
    u, length = _unit(x)
    i, j = np.triu_indices(len(u), k=1)
    apart = u[i] - u[j]
    exponent = -t * np.sum(apart * apart, axis=1)
    top = exponent.max()
    weight = np.exp(exponent - top)
    loss = top + np.log(weight.mean())

    weight = weight / weight.sum()
    du = np.zeros_like(u)
    np.add.at(du, i, -2 * t * weight[:, None] * apart)
    return loss, {"x": _unit_backward(du, u, length)}


@bug("dcl", wrong=("z1", "z2", "temperature"))
def dcl_backward_of_nt_xent(z1, z2, *, temperature):
    """The forward pass left the positive out of the denominator; the backward pass still has it there."""
    n = len(z1)
    z, length = _unit(np.concatenate([z1, z2]))
    similarity, rows = z @ z.T, np.arange(2 * n)
    partner = np.roll(rows, n)
    logits = similarity / temperature
    np.fill_diagonal(logits, -np.inf)
    probability = np.exp(_log_softmax(logits))
    positive = logits[rows, partner]
    negatives = logits.copy()
    negatives[rows, partner] = -np.inf
    top = negatives.max(axis=1)
    loss = np.mean(top + np.log(np.exp(negatives - top[:, None]).sum(axis=1)) - positive)

    probability[rows, partner] -= 1
    delta = probability / (2 * n)
    dz = _unit_backward((delta + delta.T) @ z / temperature, z, length)
    return loss, {"z1": dz[:n], "z2": dz[n:], "temperature": -np.sum(delta * similarity) / temperature**2}


@bug("clip", wrong=("image", "text", "logit_scale"))
def clip_backward_of_one_direction(image, text, *, logit_scale):
    """The backward pass knows the softmax over the texts alone, twice; that over the images is left out."""
    x, x_length = _unit(image)
    y, y_length = _unit(text)
    n, similarity = len(x), x @ y.T
    logits = logit_scale * similarity
    by_image, by_text = _log_softmax(logits), _log_softmax(logits.T)
    loss = -(np.trace(by_image) + np.trace(by_text)) / (2 * n)

    delta = (np.exp(by_image) - np.eye(n, dtype=x.dtype)) / n
    grads = {
        "image": _unit_backward(logit_scale * delta @ y, x, x_length),
        "text": _unit_backward(logit_scale * delta.T @ x, y, y_length),
        "logit_scale": np.sum(delta * similarity),
    }
    return loss, grads


@bug("balanced_softmax", wrong=("logits", "temperature"))
def balanced_softmax_backward_without_counts(logits, target, class_counts, *, temperature):
    """The softmax of the backward pass is not weighted by the class counts."""
    rows, scaled = np.arange(len(logits)), logits / temperature
    weighted = _log_softmax(scaled + np.log(class_counts).astype(logits.dtype))
    loss = -weighted[rows, target].mean()

    delta = np.exp(_log_softmax(scaled))
    delta[rows, target] -= 1
    delta /= len(logits)
    return loss, {"logits": delta / temperature, "temperature": -np.sum(delta * scaled) / temperature}
