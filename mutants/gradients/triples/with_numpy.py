"""Three changes each, with the backward pass of the value as it is, or with one change in it."""

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


@bug("nt_xent")
def nt_xent_summed_dots_with_itself(z1, z2, *, temperature):
    """Rows are not normalized, each is a candidate of itself, and the sum over 2N anchors is divided by N."""
    n = len(z1)
    z = np.concatenate([z1, z2])
    similarity, rows = z @ z.T, np.arange(2 * n)
    log_prob, partner = _log_softmax(similarity / temperature), np.roll(rows, n)
    loss = -np.sum(log_prob[rows, partner]) / n

    delta = np.exp(log_prob)
    delta[rows, partner] -= 1
    delta /= n
    dz = (delta + delta.T) @ z / temperature
    return loss, {"z1": dz[:n], "z2": dz[n:], "temperature": -np.sum(delta * similarity) / temperature**2}


@bug("info_nce")
def info_nce_features_scaled_and_warmed(queries, keys, *, temperature):
    """Columns are normalized in place of rows, the temperature multiplies, and the rows are summed."""

    def unit(x):
        length = np.sqrt(np.sum(x * x, axis=0, keepdims=True))
        return x / length, length

    def back(grad, u, length):
        return (grad - u * np.sum(u * grad, axis=0, keepdims=True)) / length

    q, q_length = unit(queries)
    k, k_length = unit(keys)
    similarity, rows = q @ k.T, np.arange(len(q))
    log_prob = _log_softmax(similarity * temperature)
    loss = -np.trace(log_prob)

    delta = np.exp(log_prob)
    delta[rows, rows] -= 1
    grads = {
        "queries": back(temperature * delta @ k, q, q_length),
        "keys": back(temperature * delta.T @ q, k, k_length),
        "temperature": np.sum(delta * similarity),
    }
    return loss, grads


@bug("supcon_out")
def supcon_out_own_row_positive_rescaled(embeddings, labels, *, temperature):
    """Each anchor is a positive of itself and a candidate, rows are not normalized, and the loss is times T / 0.07."""
    n, similarity = len(embeddings), embeddings @ embeddings.T
    positive = (labels[:, None] == labels).astype(embeddings.dtype)
    share = positive / positive.sum(axis=1, keepdims=True)
    log_prob = _log_softmax(similarity / temperature)
    mean = -np.sum(share * log_prob) / n

    factor = temperature / embeddings.dtype.type(0.07)
    delta = factor * (np.exp(log_prob) - share) / n
    dz = (delta + delta.T) @ embeddings / temperature
    dt = mean / embeddings.dtype.type(0.07) - np.sum(delta * similarity) / temperature**2
    return factor * mean, {"embeddings": dz, "temperature": dt}


@bug("cross_entropy")
def cross_entropy_squared_temperature_smoothed_sum(logits, target, *, temperature):
    """The logits are divided by T squared, a tenth of the target is spread over all classes, and rows are summed."""
    count = logits.shape[1]
    scaled = logits / temperature**2
    log_prob = _log_softmax(scaled)
    wanted = np.full_like(logits, 0.1 / count)
    wanted[np.arange(len(logits)), target] += logits.dtype.type(0.9)
    delta = np.exp(log_prob) - wanted
    grads = {"logits": delta / temperature**2, "temperature": -2 * np.sum(delta * scaled) / temperature}
    return -np.sum(wanted * log_prob), grads


@bug("siglip", wrong=("logit_bias",))
def siglip_bias_subtracted_over_all_pairs(image, text, *, logit_scale, logit_bias):
    """The bias is subtracted, the mean runs over N^2 pairs, and the gradient by the bias is that of adding it."""
    x, x_length = _unit(image)
    y, y_length = _unit(text)
    n, similarity = len(x), x @ y.T
    signs = 2 * np.eye(n, dtype=x.dtype) - 1
    agreement = signs * (logit_scale * similarity - logit_bias)
    loss = np.mean(np.logaddexp(0, -agreement))

    delta = -signs * _sigmoid(-agreement) / n**2
    grads = {
        "image": _unit_backward(logit_scale * delta @ y, x, x_length),
        "text": _unit_backward(logit_scale * delta.T @ x, y, y_length),
        "logit_scale": np.sum(delta * similarity),
        "logit_bias": np.sum(delta),
    }
    return loss, grads


@bug("dcl")
def dcl_other_view_positive_unscaled_views_added(z1, z2, *, temperature):
    """Negatives are those of the other view alone, the positive is not divided by T, and the two views are added."""
    n = len(z1)
    a, a_length = _unit(z1)
    b, b_length = _unit(z2)
    similarity = a @ b.T
    logits = similarity / temperature
    np.fill_diagonal(logits, -np.inf)
    tops = logits.max(axis=1), logits.max(axis=0)
    by_row = np.exp(logits - tops[0][:, None])
    by_column = np.exp(logits - tops[1])
    log_sums = np.log(by_row.sum(axis=1)) + tops[0] + np.log(by_column.sum(axis=0)) + tops[1]
    loss = np.mean(log_sums - 2 * np.diagonal(similarity))

    softmaxes = (by_row / by_row.sum(axis=1, keepdims=True) + by_column / by_column.sum(axis=0)) / n
    delta = softmaxes / temperature - 2 * np.eye(n, dtype=a.dtype) / n
    grads = {
        "z1": _unit_backward(delta @ b, a, a_length),
        "z2": _unit_backward(delta.T @ a, b, b_length),
        "temperature": -np.sum(softmaxes * similarity) / temperature**2,
    }
    return loss, grads


@bug("clip")
def clip_log_scale_one_way_raw_texts(image, text, *, logit_scale):
    """The logarithm of the scale multiplies, texts are not normalized, and only images look for their texts."""
    x, length = _unit(image)
    n, similarity = len(x), x @ text.T
    factor = np.log(logit_scale)
    log_prob = _log_softmax(factor * similarity)
    delta = (np.exp(log_prob) - np.eye(n, dtype=x.dtype)) / n
    grads = {
        "image": _unit_backward(factor * delta @ text, x, length),
        "text": factor * delta.T @ x,
        "logit_scale": np.sum(delta * similarity) / logit_scale,
    }
    return -np.trace(log_prob) / n, grads
