"""The slopes that `nceref losses` prints, each written out below its text, against 50 digits and the program."""

import numpy as np
import pytest

from nceref import exact, get_loss, losses
from nceref.exact.reference import as_floats

N, D = 4, 3


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def homogeneous(s, g, T):
    """-sum_j s_ij dL_i/ds_ij / T, the slope by T where logits are s / T."""
    return -(s * g).sum(axis=1) / T


def two_views(z1, z2):
    """All rows, their similarities, the other view of each, and the slopes of the mean by z1, z2 and T."""
    z, n = np.concatenate([z1, z2]), len(z1)
    s, other = z @ z.T, np.arange(2 * n)
    partner = other[:, None] == (other + n) % (2 * n)

    def slopes(g, by_t):
        by_z = (g + g.T) @ z / len(z)
        return {"z1": by_z[:n], "z2": by_z[n:], "temperature": np.mean(by_t)}

    return s, partner, ~partner & ~np.eye(2 * n, dtype=bool), slopes


def over(mask, x):
    """Softmax over the entries of a mask."""
    return softmax(np.where(mask, x, -np.inf))


def alignment(x, y, exponent=2.0, **_):
    """dL_i/dx_i = a |x_i - y_i|^(a-2) (x_i - y_i) = -dL_i/dy_i"""
    g = exponent * np.linalg.norm(x - y, axis=1, keepdims=True) ** (exponent - 2) * (x - y) / len(x)
    return {"x": g, "y": -g}


def uniformity(x, t=2.0, **_):
    """pairs i < j: dL/dx_i = -2t sum_j w_ij (x_i - x_j),  w_ij = exp(-t d_ij^2) / sum_{k<l} exp(-t d_kl^2),
    d_ij = |x_i - x_j|"""
    apart = x[:, None] - x[None]
    e = np.exp(-t * (apart**2).sum(axis=2)) * ~np.eye(len(x), dtype=bool)
    w = e / (e.sum() / 2)
    return {"x": -2 * t * (w[:, :, None] * apart).sum(axis=1)}


def nt_xent(z1, z2, temperature, **_):
    """dL_i/ds_ij = (P_ij - [j = p]) / T,  P_i = softmax of s_ij/T over j != i;
    dL_i/dT = (s_ip - sum_j P_ij s_ij) / T^2;
    a row is anchor and candidate: dL/dz = (G + G^T) z,  G = dL/ds"""
    s, p, others, slopes = two_views(z1, z2)
    P, T = over(others | p, s / temperature), temperature
    return slopes((P - p) / T, (s[p] - (P * s).sum(axis=1)) / T**2)


def dcl(z1, z2, temperature, **_):
    """dL_i/ds_ip = -1/T,  dL_i/ds_ij = softmax over negatives / T;
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, p, others, slopes = two_views(z1, z2)
    g = (over(others, s / temperature) - p) / temperature
    return slopes(g, homogeneous(s, g, temperature))


def dclw(z1, z2, temperature, sigma=0.5, **_):
    """dL_i/ds_ip = -w_i/T,  dL_i/ds_ij = softmax over negatives / T,  none through w;
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, p, others, slopes = two_views(z1, z2)
    mass = np.exp(s[p] / sigma)
    w = 2 - mass / mass.mean()
    g = (over(others, s / temperature) - w[:, None] * p) / temperature
    return slopes(g, homogeneous(s, g, temperature))


def clamped(z1, z2, T, prior, mass_slope, mass):
    """What `debiased` and `hcl` share: `mass` is the (weighted) sum over the negatives, `mass_slope` T times its slope
    by s_ij."""
    s, p, _, slopes = two_views(z1, z2)
    n, positive = len(s) - 2, np.exp(s[p] / T)
    estimate, floor = (mass - prior * n * positive) / (1 - prior), n * np.exp(-1 / T)
    clamp, Ng = estimate <= floor, np.maximum(estimate, floor)
    below = (positive + Ng) * T
    by_positive = np.where(clamp, -Ng / below, -(Ng + prior * n * positive / (1 - prior)) / below)
    by_negatives = np.where(clamp[:, None], 0.0, mass_slope / (1 - prior) / below[:, None])
    g = by_negatives + by_positive[:, None] * p
    by_t = np.where(clamp, Ng * (1 + s[p]) / (below * T), homogeneous(s, g, T))
    return slopes(g, by_t), clamp


def debiased(z1, z2, temperature, positive_prior=0.1, **_):
    """dL_i/ds_ij = e^(s_ij/T) / ((1 - prior) (e^+ + Ng) T), 0 on the clamp;
    dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, _, others, _ = two_views(z1, z2)
    e = np.exp(s / temperature) * others
    return clamped(z1, z2, temperature, positive_prior, e, e.sum(axis=1))[0]


def hcl(z1, z2, temperature, positive_prior=0.1, concentration=1.0, **_):
    """dL_i/ds_ij = W ((1+b) r^(1+b)_j - b r^(b)_j) / ((e^+ + Ng) T), 0 on the clamp,
    W = n sum e^((1+b)s/T) / sum e^(bs/T) / (1 - prior),  r^(b) = softmax of b s/T over the negatives;
    dL_i/ds_ip = -(Ng + prior n e^+ / (1 - prior)) / ((e^+ + Ng) T), on the clamp -Ng / ((e^+ + Ng) T);
    dL_i/dT = -sum_j s_ij dL_i/ds_ij / T, p among the j, on the clamp Ng (1 + s_ip) / ((e^+ + Ng) T^2);
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, _, others, _ = two_views(z1, z2)
    b, s = concentration, s / temperature
    up, level = np.exp((1 + b) * s) * others, np.exp(b * s) * others
    mass = (len(s) - 2) * up.sum(axis=1) / level.sum(axis=1)
    slope = mass[:, None] * ((1 + b) * over(others, (1 + b) * s) - b * over(others, b * s))
    return clamped(z1, z2, temperature, positive_prior, slope, mass)[0]


def query_slopes(queries, keys, g, by_t):
    n = len(queries)
    return {"queries": g @ keys / n, "keys": g.T @ queries / n, "temperature": np.mean(by_t)}


def info_nce(queries, keys, temperature, **_):
    """dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.k_j,  P_i = softmax(s_i/T);
    dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2"""
    s, T = queries @ keys.T, temperature
    P = softmax(s / T)
    return query_slopes(queries, keys, (P - np.eye(len(s))) / T, (np.diag(s) - (P * s).sum(axis=1)) / T**2)


def hard_contrastive(queries, keys, temperature, fraction, **_):
    """as InfoNCE on the kept set, 0 on the other negatives"""
    s, T, own = queries @ keys.T, temperature, np.eye(len(queries), dtype=bool)
    count = max(1, int(np.ceil(round(fraction * (len(s) - 1), 9))))
    threshold = -np.sort(-np.where(own, -np.inf, s), axis=1)[:, count - 1, None]
    P = over(own | (s >= threshold), s / T)
    return query_slopes(queries, keys, (P - own) / T, (np.diag(s) - (P * s).sum(axis=1)) / T**2)


def moco(queries, keys, queue, temperature, **_):
    """dL_i/ds_ij = (P_ij - [j is the own key]) / T, passed on to the query only,
    s_ij the products of q_i with the own key and the queue,  P_i = softmax(s_i/T);
    dL_i/dT = (s_own - sum_j P_ij s_ij) / T^2"""
    own, T = (queries * keys).sum(axis=1), temperature
    s = np.concatenate([own[:, None], queries @ queue.T], axis=1)
    P = softmax(s / T)
    g = P / T
    g[:, 0] -= 1 / T
    by_query = (g[:, :1] * keys + g[:, 1:] @ queue) / len(queries)
    return {"queries": by_query, "temperature": np.mean((own - (P * s).sum(axis=1)) / T**2)}


def guided_info_nce(queries, documents, *, temperature, margin, **_):
    """dL_i/ds = (P - [positive]) / T for every candidate of row i that is kept, 0 for the others;
    dL_i/dT = (s_ii - sum P s) / T^2"""
    n, T, own = len(queries), temperature, np.eye(len(queries), dtype=bool)
    parts = [queries @ documents.T, queries @ queries.T, documents @ documents.T]
    limit = np.diag(parts[0])[:, None] - margin
    kept = [~own & (s <= limit) | own & (k == 0) for k, s in enumerate(parts)]
    Z = sum((np.exp(s / T) * inside).sum(axis=1) for s, inside in zip(parts, kept, strict=True))[:, None]
    P = [np.exp(s / T) * inside / Z for s, inside in zip(parts, kept, strict=True)]
    qd, qq, dd = (P[0] - own) / T / n, P[1] / T / n, P[2] / T / n
    return {
        "queries": qd @ documents + (qq + qq.T) @ queries,
        "documents": qd.T @ queries + (dd + dd.T) @ documents,
        "temperature": np.mean(np.diag(parts[0]) - sum((p * s).sum(axis=1) for p, s in zip(P, parts, strict=True)))
        / T**2,
    }


def mnrl(queries, documents, negatives=None, *, temperature, hardness=0.0, **_):
    """dL_i/ds_ic = (P_ic - [c = d_i]) / T,  s_ic = q_i.c,  P_i = softmax(s_i/T + a s_i);
    dL_i/dT = (s_ii - sum_c P_ic s_ic) / T^2"""
    n, hard = len(queries), [] if negatives is None else negatives.reshape(-1, queries.shape[1])
    c, T = np.concatenate([documents, hard]) if len(hard) else documents, temperature
    s, own = queries @ c.T, np.eye(n, len(c))
    # In every candidate but the positive: "all" of them.
    P = softmax(s / T + hardness * s * (1 - own))
    g = (P - own) / T / n
    by_candidate = g.T @ queries
    out = {"queries": g @ c, "documents": by_candidate[:n]}
    out |= {"negatives": by_candidate[n:].reshape(negatives.shape)} if len(hard) else {}
    return {**out, "temperature": np.mean((np.diag(s) - (P * s).sum(axis=1)) / T**2)}


def multi_direction(queries, documents, negatives=None, *, temperature, **_):
    """dL_i/ds = (P - [positive]) / T for every candidate of row i, P its share of Z_i, of the positive 2 shares where
    it stands twice;  dL_i/dT = (s_ii - sum P s) / T^2"""
    n, T, hard = len(queries), temperature, negatives.reshape(-1, queries.shape[1])
    own, of_query = np.eye(n), np.repeat(np.eye(n), negatives.shape[1], axis=1)
    parts = {
        "qd": queries @ documents.T, "qh": queries @ hard.T, "qq": queries @ queries.T, "dq": documents @ queries.T,
        "dd": documents @ documents.T, "dh": documents @ hard.T,
    }  # fmt: skip
    left_out = {"qq": own, "dd": own, "dh": of_query}
    Z = sum((np.exp(s / T) * (1 - left_out.get(name, 0))).sum(axis=1) for name, s in parts.items())
    P = {name: np.exp(s / T) * (1 - left_out.get(name, 0)) / Z[:, None] for name, s in parts.items()}
    g = {name: x / T / n for name, x in P.items()}
    g["qd"] = g["qd"] - own / T / n
    by_hard = g["qh"].T @ queries + g["dh"].T @ documents
    return {
        "queries": g["qd"] @ documents + g["qh"] @ hard + (g["qq"] + g["qq"].T) @ queries + g["dq"].T @ documents,
        "documents": g["qd"].T @ queries + g["dq"] @ queries + (g["dd"] + g["dd"].T) @ documents + g["dh"] @ hard,
        "negatives": by_hard.reshape(negatives.shape),
        "temperature": np.mean(np.diag(parts["qd"]) - sum((P[name] * s).sum(axis=1) for name, s in parts.items()))
        / T**2,
    }


def sampled_softmax(queries, items, expected_counts, *, temperature, correction="all", **_):
    """dL_i/ds_ij = (P_ij - [j = i]) / T,  s_ij = q_i.v_j,  P_i = softmax over the corrected logits;
    dL_i/dT = (s_ii - sum_j P_ij s_ij) / T^2"""
    s, T, own = queries @ items.T, temperature, np.eye(len(queries))
    P = softmax(s / T - np.log(expected_counts) * (1 if correction == "all" else 1 - own))
    out = query_slopes(queries, items, (P - own) / T, (np.diag(s) - (P * s).sum(axis=1)) / T**2)
    return {"items" if name == "keys" else name: x for name, x in out.items()}


def simple(queries, keys, negative_weight=None, **_):
    """dL_i/ds_ii = -1,  dL_i/ds_ij = w"""
    n = len(queries)
    g = np.full((n, n), 1 / (n - 1) if negative_weight is None else negative_weight)
    np.fill_diagonal(g, -1)
    return {"queries": g @ keys / n, "keys": g.T @ queries / n}


def clip(image, text, logit_scale, **_):
    """dL/dl_ij = (softmax_k(l_ik)_j + softmax_k(l_kj)_i - 2 [i = j]) / 2N,  l_ij = t x_i.y_j,
    dL/dt = sum_ij (dL/dl_ij) x_i.y_j"""
    s, t, n = image @ text.T, logit_scale, len(image)
    g = (softmax(t * s) + softmax(t * s, axis=0) - 2 * np.eye(n)) / (2 * n)
    return {"image": t * g @ text, "text": t * g.T @ image, "logit_scale": (g * s).sum()}


def siglip(image, text, logit_scale, logit_bias=0.0, **_):
    """dL/dl_ij = -y_ij sigmoid(-y_ij l_ij) / N,  l_ij = t x_i.y_j + b,  dL/dt = sum_ij (dL/dl_ij) x_i.y_j,
    dL/db = sum_ij dL/dl_ij"""
    s, t, n = image @ text.T, logit_scale, len(image)
    y = 2 * np.eye(n) - 1
    g = -y / (1 + np.exp(y * (t * s + logit_bias))) / n
    return {"image": t * g @ text, "text": t * g.T @ image, "logit_scale": (g * s).sum(), "logit_bias": g.sum()}


def cross_entropy(logits, target, temperature=1.0, label_smoothing=0.0):
    """dL_i/dx_ik = (softmax(x_i/T)_k - q_ik) / T;  dL_i/dT = -sum_k x_ik dL_i/dx_ik / T"""
    n, c = logits.shape
    q = (1 - label_smoothing) * np.eye(c)[target] + label_smoothing / c
    g = (softmax(logits / temperature) - q) / temperature
    return {"logits": g / n, "temperature": np.mean(homogeneous(logits, g, temperature))}


def balanced_softmax(logits, target, class_counts, temperature=1.0):
    """dL_i/dx_ik = (p_ik - [k = y_i]) / T,  p_ik = n_k exp(x_ik/T) / sum_l n_l exp(x_il/T);
    dL_i/dT = -sum_k x_ik dL_i/dx_ik / T"""
    n, c = logits.shape
    p = class_counts * np.exp(logits / temperature)
    g = (p / p.sum(axis=1, keepdims=True) - np.eye(c)[target]) / temperature
    return {"logits": g / n, "temperature": np.mean(homogeneous(logits, g, temperature))}


def nce(data_logits, noise_logits, data_log_noise, noise_log_noise, noise_ratio):
    """dL/dlogit = -(1 - h)/N on data, nu h/M on noise,  h = sigmoid(u)"""
    on_data, on_noise = (
        1 / (1 + np.exp(-(x - noise - np.log(noise_ratio))))
        for x, noise in ((data_logits, data_log_noise), (noise_logits, noise_log_noise))
    )
    return {
        "data_logits": -(1 - on_data) / len(on_data),
        "noise_logits": noise_ratio * on_noise / len(on_noise),
    }


def class_slopes(embeddings, class_weights, by_cosine, by_s):
    """Slopes by rows of length 1 that are scaled to it: what points along a row is lost."""
    by_x, by_w = by_cosine @ class_weights / len(embeddings), by_cosine.T @ embeddings / len(embeddings)
    across = [g - (g * x).sum(axis=1, keepdims=True) * x for g, x in ((by_x, embeddings), (by_w, class_weights))]
    return {"embeddings": across[0], "class_weights": across[1], "scale": np.mean(by_s)}


def arcface(embeddings, class_weights, target, margin=0.5, scale=64.0, fallback="none", **_):
    """dL_i/dcos theta_y = (p_y - 1) s sin(theta_y + m) / sin(theta_y), (p_y - 1) s past the linear fallback;
    dL_i/dcos theta_k = p_k s;
    dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),
    c the cosines with the margin: c_y = cos(theta_y + m) or its fallback"""
    cosines, own = embeddings @ class_weights.T, np.arange(len(class_weights)) == np.asarray(target)[:, None]
    theta, s, m = np.arccos(cosines[own]), scale, margin
    past = (theta > np.pi - m) & (fallback == "linear")
    c = cosines.copy()
    c[own] = np.where(past, cosines[own] - m * np.sin(m), np.cos(theta + m))
    p = softmax(s * c)
    g = p * s
    g[own] = (p[own] - 1) * s * np.where(past, 1.0, np.sin(theta + m) / np.sin(theta))
    return class_slopes(embeddings, class_weights, g, (p * c).sum(axis=1) - c[own])


def cosface(embeddings, class_weights, target, margin=0.35, scale=64.0, **_):
    """dL_i/dcos theta_k = s (p_k - [k = y]);
    dL_i/ds = sum_k p_k c_k - c_y,  p = softmax(s c),  c_k = cos theta_k - m [k = y]"""
    own = np.arange(len(class_weights)) == np.asarray(target)[:, None]
    c = embeddings @ class_weights.T - margin * own
    p = softmax(scale * c)
    return class_slopes(embeddings, class_weights, scale * (p - own), (p * c).sum(axis=1) - c[own])


def positives(labels):
    return (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)


def weights(labels, mask):
    """Those of the positives: 1 by label, or those of a mask off its diagonal."""
    return positives(labels) if mask is None else mask * ~np.eye(len(mask), dtype=bool)


def supcon_out(embeddings, labels=None, temperature=1.0, mask=None, form="mean", base_temperature=None, **_):
    """dL_i/ds_ia = (P_ia - w_ia / |P|) / T,  w = 0 off P; sum form: (|P| P_ia - w_ia) / T,
    P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);
    dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;
    with a base temperature T0 both times T/T0, and dL_i/dT + L_i/T of the L_i that has this factor;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, T, inside = embeddings @ embeddings.T, temperature, weights(labels, mask)
    P, count = over(~np.eye(len(s), dtype=bool), s / T), inside.sum(axis=1, keepdims=True)
    g = (P - inside / count) / T if form == "mean" else (count * P - inside) / T
    by_t = homogeneous(s, g, T)
    if base_temperature is not None:
        rows = losses.supcon_out(
            embeddings, labels, mask=mask, temperature=T, form=form, base_temperature=base_temperature,
            normalize="none", reduction="none",
        )  # fmt: skip
        g, by_t = g * T / base_temperature, by_t * T / base_temperature + rows / T
    return {"embeddings": (g + g.T) @ embeddings / len(s), "temperature": np.mean(by_t)}


def supcon_in(embeddings, labels=None, temperature=1.0, mask=None, **_):
    """dL_i/ds_ia = (P_ia - w_ia e^(s_ia/T) / sum_{p in P} w_ip e^(s_ip/T)) / T,  w = 0 off P,
    P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);
    dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    s, T = embeddings @ embeddings.T, temperature
    e = weights(labels, mask) * np.exp(s / T)
    g = (over(~np.eye(len(s), dtype=bool), s / T) - e / e.sum(axis=1, keepdims=True)) / T
    return {"embeddings": (g + g.T) @ embeddings / len(s), "temperature": np.mean(homogeneous(s, g, T))}


def paco(embeddings, labels, centers, alpha, temperature, form="sum", center_features=None, center_bias=None, **_):
    """dL_i/dlogit_k = W p_k - w_k,  W = 1 + alpha |P(i)|,  w_k = alpha on P(i), 1 on c_y, else 0,
    p the softmax over all logits of E_i;
    normalized form: divided by W;
    dL_i/dT = -sum_a s_ia dL_i/dlogit_a / T^2 over the rows a, whose logit is s_ia/T;
    dL_i/db_k = dL_i/dlogit_k"""
    s, n, T = embeddings @ embeddings.T, len(embeddings), temperature
    features = embeddings if center_features is None else center_features
    of_centers = features @ centers.T + (0.0 if center_bias is None else center_bias)
    rows = np.where(np.eye(n, dtype=bool), -np.inf, s / T)
    w = np.concatenate([alpha * positives(labels), np.eye(len(centers))[labels]], axis=1)
    W = w.sum(axis=1, keepdims=True)
    g = W * softmax(np.concatenate([rows, of_centers], axis=1)) - w
    g = (g / W if form == "normalized" else g) / n
    a, k = g[:, :n], g[:, n:]
    out = {"embeddings": (a + a.T) @ embeddings / T, "centers": k.T @ features, "temperature": -(s * a).sum() / T**2}
    if center_features is None:
        return {**out, "embeddings": out["embeddings"] + k @ centers}
    return {**out, "center_features": k @ centers, "center_bias": k.sum(axis=0)}


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


RNG = np.random.default_rng(0)
PAIR, LABELS, TARGET = unit(RNG, 2, N, D), np.array([0, 1, 0, 1, 0]), np.array([2, 0, 1, 2])
NEAR = np.stack([PAIR[0], unit(RNG, N, D)])
# Aligned views whose negatives are far off: some rows are on the clamp.
NEAR[1, :2] = PAIR[0, :2] + 0.05 * PAIR[1, :2]
NEAR[1] /= np.linalg.norm(NEAR[1], axis=1, keepdims=True)
ROWS, CENTERS = unit(RNG, 5, D), RNG.standard_normal((2, D))
WEIGHTS = RNG.integers(0, 3, (5, 5)) / 2 + np.roll(np.eye(5), 1, axis=1)
LOGITS, COUNTS = RNG.standard_normal((N, 3)), np.array([3.0, 1.0, 7.0])
CLASSES = unit(RNG, 3, D)
HARD = unit(np.random.default_rng(1), N, 2, D)
# Of the first row, the own class lies at an angle of about 2.9.
OPPOSED = np.concatenate([-(CLASSES[2:] + 0.25 * CLASSES[:1]), PAIR[0, 1:]])
OPPOSED /= np.linalg.norm(OPPOSED, axis=1, keepdims=True)
SLOPES = [
    (alignment, tuple(PAIR), {}),
    (alignment, tuple(PAIR), {"exponent": 3.0}),
    (arcface, (PAIR[0], CLASSES, TARGET), {"scale": 4.0, "normalize": "l2"}),
    (arcface, (OPPOSED, CLASSES, TARGET), {"scale": 4.0, "fallback": "linear", "normalize": "l2"}),
    (balanced_softmax, (LOGITS, TARGET, COUNTS), {"temperature": 0.3}),
    (clip, tuple(PAIR), {"logit_scale": 4.0}),
    (cosface, (PAIR[0], CLASSES, TARGET), {"scale": 4.0, "normalize": "l2"}),
    (cross_entropy, (LOGITS, TARGET), {"temperature": 0.3, "label_smoothing": 0.1}),
    (dcl, tuple(PAIR), {"temperature": 0.3}),
    (dclw, tuple(PAIR), {"temperature": 0.3}),
    (debiased, tuple(PAIR), {"temperature": 1.0}),
    (debiased, tuple(NEAR), {"temperature": 0.3, "positive_prior": 0.4}),
    (hard_contrastive, tuple(PAIR), {"temperature": 0.3, "fraction": 0.6}),
    (guided_info_nce, tuple(PAIR), {"temperature": 0.3, "margin": -0.2}),
    (hcl, tuple(PAIR), {"temperature": 1.0, "concentration": 0.5}),
    (hcl, tuple(NEAR), {"temperature": 0.3, "positive_prior": 0.4}),
    (info_nce, tuple(PAIR), {"temperature": 0.3}),
    (mnrl, (*PAIR, HARD), {"temperature": 0.3}),
    (mnrl, (*PAIR, HARD), {"temperature": 0.3, "hardness": 2.0, "hardness_of": "all"}),
    (mnrl, tuple(PAIR), {"temperature": 0.3, "hardness": 2.0}),
    (multi_direction, (*PAIR, HARD), {"temperature": 0.3}),
    (moco, (*PAIR, ROWS), {"temperature": 0.3}),
    (nce, (LOGITS[:, 0], LOGITS[:3, 1]), {
        "data_log_noise": LOGITS[:, 2], "noise_log_noise": LOGITS[0], "noise_ratio": 3.0,
    }),
    (nt_xent, tuple(PAIR), {"temperature": 0.3}),
    (paco, (ROWS, LABELS, CENTERS), {"alpha": 0.3, "temperature": 0.3}),
    (paco, (ROWS, LABELS, CENTERS), {
        "alpha": 0.3, "temperature": 0.3, "form": "normalized", "center_features": ROWS[::-1].copy(),
        "center_bias": np.array([0.5, -1.0]),
    }),
    (sampled_softmax, (*PAIR, np.array([3.0, 1.0, 0.25, 7.0])), {"temperature": 0.3}),
    (sampled_softmax, (*PAIR, np.array([3.0, 1.0, 0.25, 7.0])), {"temperature": 0.3, "correction": "negatives"}),
    (sampled_softmax, (*PAIR, np.array([3.0, 1.0, 0.25, 7.0])), {"temperature": 0.3, "correction": "weighted"}),
    (siglip, tuple(PAIR), {"logit_scale": 4.0, "logit_bias": -1.0}),
    (simple, tuple(PAIR), {}),
    (supcon_in, (ROWS, LABELS), {"temperature": 0.3}),
    (supcon_in, (ROWS,), {"temperature": 0.3, "mask": WEIGHTS}),
    (supcon_out, (ROWS, LABELS), {"temperature": 0.3}),
    (supcon_out, (ROWS, LABELS), {"temperature": 0.3, "form": "sum", "base_temperature": 0.07}),
    *((supcon_out, (ROWS,), {"temperature": 0.3, "form": form, "mask": WEIGHTS}) for form in ("mean", "sum")),
    (uniformity, (PAIR[0],), {}),
]  # fmt: skip


def test_every_printed_slope_is_written_out_here():
    written = {function.__name__: " ".join(function.__doc__.split()) for function, _, _ in SLOPES}
    assert written == {name: " ".join(loss.declaration.gradient.split()) for name, loss in losses.all_losses().items()}


def test_both_sides_of_the_clamp_and_of_the_fallback_are_met():
    s, _, others, _ = two_views(*NEAR)
    e = np.exp(s / 0.3) * others
    clamp = clamped(*NEAR, 0.3, 0.4, e, e.sum(axis=1))[1]
    past = np.arccos((OPPOSED * CLASSES[TARGET]).sum(axis=1)) > np.pi - 0.5
    for some in (clamp, past):
        assert 0 < some.sum() < len(some)


@pytest.mark.parametrize(("written", "arrays", "scalars"), SLOPES, ids=lambda x: getattr(x, "__name__", ""))
def test_printed_slopes_are_those_of_the_formula_to_50_digits_and_of_the_program(written, arrays, scalars):
    loss = get_loss(written.__name__)
    rows = {p.name for p in loss.parameters} & {"normalize"} - scalars.keys()
    given = {**scalars, **({"normalize": "none"} if rows else {})}
    names = [p.name for p in loss.parameters][: len(arrays)]
    slopes = written(**dict(zip(names, arrays, strict=True)), **scalars)
    truth = {name: as_floats(x) for name, x in exact.reference(loss, *arrays, digits=50, **given).items()}
    program = loss.value_and_grad(*arrays, **given)[1]
    assert slopes.keys() == program.keys() == truth.keys() - {"value"}
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, truth[name], rtol=1e-12, atol=1e-13, err_msg=name)
        np.testing.assert_allclose(program[name], truth[name], rtol=1e-12, atol=1e-13, err_msg=name)
