"""Backward passes by hand that are those of their value."""

import numpy as np

from mutants.bug import correct


def _unit(x):
    length = np.sqrt(np.sum(x * x, axis=1, keepdims=True))
    return x / length, length


def _unit_backward(grad, u, length):
    return (grad - u * np.sum(u * grad, axis=1, keepdims=True)) / length


def _log_softmax(x):
    x = x - np.max(x, axis=1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))


@correct("nt_xent")
def nt_xent_two_passes_by_blocks(z1, z2, *, temperature):
    """Blocks of four anchors: one pass for the value, a second one recomputes the softmax and scatters both ways."""
    n = len(z1)
    z, length = _unit(np.concatenate([z1, z2]))
    partner, every = np.roll(np.arange(2 * n), n), np.arange(2 * n)
    dz, slope, losses, log_sums = np.zeros_like(z), 0, [], []
    for start in range(0, 2 * n, 4):
        rows = every[start : start + 4]
        logits = np.where(rows[:, None] == every, -np.inf, z[rows] @ z.T / temperature)
        top = logits.max(axis=1)
        log_sums.append(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))
        losses.append(log_sums[-1] - logits[np.arange(len(rows)), partner[rows]])
    for start, log_sum in zip(range(0, 2 * n, 4), log_sums, strict=True):
        rows = every[start : start + 4]
        similarity = z[rows] @ z.T
        delta = np.exp(np.where(rows[:, None] == every, -np.inf, similarity / temperature) - log_sum[:, None])
        delta[np.arange(len(rows)), partner[rows]] -= 1
        dz[rows] += delta @ z
        dz += delta.T @ z[rows]
        slope = slope + np.sum(delta * similarity)
    dz = _unit_backward(dz / (2 * n * temperature), z, length)
    grads = {"z1": dz[:n], "z2": dz[n:], "temperature": -slope / (2 * n * temperature**2)}
    return np.concatenate(losses).mean(), grads


@correct("info_nce")
def info_nce_through_the_scaled_queries(queries, keys, *, temperature):
    """The temperature divides the queries, and its gradient is read off theirs."""
    q, q_length = _unit(queries)
    k, k_length = _unit(keys)
    scaled = q / temperature
    log_prob = _log_softmax(scaled @ k.T)
    delta = (np.exp(log_prob) - np.eye(len(q), dtype=q.dtype)) / len(q)
    d_scaled = delta @ k
    grads = {
        "queries": _unit_backward(d_scaled / temperature, q, q_length),
        "keys": _unit_backward(np.einsum("ij,id->jd", delta, scaled), k, k_length),
        "temperature": -np.einsum("id,id->", d_scaled, scaled) / temperature,
    }
    return -np.trace(log_prob) / len(q), grads


@correct("clip")
def clip_both_softmaxes_at_once(image, text, *, logit_scale):
    """One shift for the whole matrix where no sum can vanish, the two log-sum-exps by einsum."""
    x, x_length = _unit(image)
    y, y_length = _unit(text)
    n, similarity = len(x), np.einsum("id,jd->ij", x, y)
    logits = logit_scale * similarity
    by_row, by_column = (logits - logits.max(axis=axis, keepdims=True) for axis in (1, 0))
    by_row = by_row - np.log(np.einsum("ij->i", np.exp(by_row)))[:, None]
    by_column = by_column - np.log(np.einsum("ij->j", np.exp(by_column)))[None]
    delta = (np.exp(by_row) + np.exp(by_column) - 2 * np.eye(n, dtype=x.dtype)) / (2 * n)
    grads = {
        "image": _unit_backward(logit_scale * np.einsum("ij,jd->id", delta, y), x, x_length),
        "text": _unit_backward(logit_scale * np.einsum("ij,id->jd", delta, x), y, y_length),
        "logit_scale": np.einsum("ij,ij->", delta, similarity),
    }
    return -(np.einsum("ii->", by_row) + np.einsum("ii->", by_column)) / (2 * n), grads


@correct("siglip")
def siglip_from_the_negative_part(image, text, *, logit_scale, logit_bias):
    """All pairs as negatives, softplus(l), less l at the matching ones."""
    x, x_length = _unit(image)
    y, y_length = _unit(text)
    n, similarity = len(x), x @ y.T
    logits = logit_scale * similarity + logit_bias
    small = np.exp(-np.abs(logits))
    own = np.arange(n)
    loss = np.maximum(logits, 0) + np.log1p(small)
    # softplus(l) - l cancels for a large l.
    loss[own, own] = np.maximum(-logits[own, own], 0) + np.log1p(small[own, own])
    delta = np.where(logits > 0, 1, small) / (1 + small)
    delta[own, own] = -np.where(logits > 0, small, 1)[own, own] / (1 + small[own, own])
    delta /= n
    grads = {
        "image": _unit_backward(logit_scale * delta @ y, x, x_length),
        "text": _unit_backward(logit_scale * delta.T @ x, y, y_length),
        "logit_scale": np.sum(delta * similarity),
        "logit_bias": np.sum(delta),
    }
    return loss.sum() / n, grads


@correct("uniformity")
def uniformity_gradient_by_the_laplacian(x, *, t):
    """The gradient is -4 t (D - W) x / sum W, D the row sums of the weights W."""
    u, length = _unit(x)
    apart = u[:, None] - u[None]
    exponent = -t * np.sum(apart * apart, axis=2)
    np.fill_diagonal(exponent, -np.inf)
    top = exponent.max()
    weight = np.exp(exponent - top)
    total = weight.sum()
    n = len(u)
    du = -4 * t * (weight.sum(axis=1, keepdims=True) * u - weight @ u) / total
    return top + np.log(total / (n * (n - 1))), {"x": _unit_backward(du, u, length)}


@correct("cross_entropy")
def cross_entropy_over_flat_logits(logits, target, *, temperature):
    """Logits as one row of numbers, classes summed segment by segment."""
    n, count = logits.shape
    scaled = (logits / temperature).reshape(-1)
    starts = np.arange(0, n * count, count)
    row = np.repeat(np.arange(n), count)
    shifted = scaled - np.maximum.reduceat(scaled, starts)[row]
    power = np.exp(shifted)
    total = np.add.reduceat(power, starts)
    own = starts + target
    delta = power / total[row] / n
    np.subtract.at(delta, own, logits.dtype.type(1 / n))
    value = np.mean(np.log(total) - shifted[own])
    return value, {"logits": delta.reshape(n, count) / temperature, "temperature": -(delta @ scaled) / temperature}


@correct("supcon_out")
def supcon_out_sums_of_classes(embeddings, labels, *, temperature):
    """The mean similarity to the positives, from the sum of a class less the anchor itself."""
    z, length = _unit(embeddings)
    n, similarity = len(z), z @ z.T
    hot = (labels[:, None] == np.unique(labels)).astype(z.dtype)
    others = hot @ (hot.T @ z) - z
    count = (hot @ hot.sum(axis=0) - 1)[:, None]
    logits = similarity / temperature
    np.fill_diagonal(logits, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    power = np.exp(logits - top)
    total = power.sum(axis=1, keepdims=True)
    pull = np.sum(z * others, axis=1, keepdims=True) / count / temperature
    value = np.mean(top + np.log(total) - pull)

    push = power / total
    attracted = others / count + hot @ (hot.T @ (z / count)) - z / count
    dz = (push @ z + push.T @ z - attracted) / (n * temperature)
    dt = (np.sum(pull) - np.sum(push * similarity) / temperature) / (n * temperature)
    return value, {"embeddings": _unit_backward(dz, z, length), "temperature": dt}
