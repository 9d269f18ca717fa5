"""Bugs of range and precision: exponentials that overflow, sums that vanish, formats that are too small."""

import numpy as np

from mutants.bug import bug, cross_entropy, peak, unit


def _two_views(z1, z2):
    """Cosines of the 2N rows, the diagonal's mask, and the index of the other view."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    return z @ z.T, np.eye(2 * n, dtype=bool), np.roll(np.arange(2 * n), n)


@bug("nt_xent", named="exp-overflows", thread="Lightning-Universe/lightning-bolts#320")
def nt_xent_bare_exponentials(z1, z2, *, temperature):
    """Exponentials of unshifted logits overflow at a small temperature."""
    cosine, own, labels = _two_views(z1, z2)
    similarity = np.exp(cosine / temperature)
    positive = similarity[np.arange(len(labels)), labels]
    return np.mean(-np.log(positive / np.sum(np.where(own, 0, similarity), axis=1)))


@bug("supcon_out", named="exp-underflows", thread="HobbitLong/SupContrast#104", settings={"normalize": "none"})
def supcon_own_logit_sets_the_scale(embeddings, labels, *, temperature):
    """The row maximum is the anchor itself; once it is masked, the rest has underflowed to log 0."""
    z, own = embeddings, np.eye(len(embeddings), dtype=bool)
    logits = z @ z.T / temperature
    logits = logits - peak(logits)
    log_prob = logits - np.log(np.sum(np.where(own, 0, np.exp(logits)), axis=1, keepdims=True))
    mask = (labels[:, None] == labels) & ~own
    return -np.mean(np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1).astype(z.real.dtype))


@bug("siglip", named="exp-overflows", seen="re-implementations of SigLIP without log_sigmoid")
def siglip_bare_sigmoids(image, text, *, logit_scale, logit_bias):
    """The logarithm of a sigmoid, whose exponential overflows on a confident mistake."""
    # -log(1 / (1 + exp(-x))).
    logits = logit_scale * (unit(image) @ unit(text).T) + logit_bias
    sign = 2 * np.eye(len(logits), dtype=image.real.dtype) - 1
    return -np.sum(np.log(1 / (1 + np.exp(-sign * logits)))) / image.dtype.type(len(logits))


def _single(x):
    """The array in single precision, as ``x.float()`` returns it."""
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


@bug("clip", named="float32-fallback", thread="mlfoundations/open_clip#1002", dtypes=("float64",))
def clip_cast_to_single(image, text, *, logit_scale):
    """Embeddings are cast with .float() whatever comes in."""
    logits = _single(logit_scale) * (_single(unit(image)) @ _single(unit(text)).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def _to_bits(x, bits):
    """The numbers rounded to so many bits after the leading one, derivatives too."""

    def rounded(part):
        mantissa, exponent = np.frexp(part)
        return np.ldexp(np.round(np.ldexp(mantissa, bits + 1)), exponent - bits - 1)

    return rounded(x.real) + 1j * rounded(x.imag) if np.iscomplexobj(x) else rounded(x)


@bug("info_nce", named="tf32-fallback", thread="goodfire-ai/spd#970")
def info_nce_tensor_cores(queries, keys, *, temperature):
    """The matrix product runs in TF32."""
    # What a matrix product does where TF32 is allowed: factors of 10 bits, sums in full.
    logits = _to_bits(unit(queries), 10) @ _to_bits(unit(keys), 10).T / temperature
    return cross_entropy(logits, np.arange(len(logits)))


@bug("info_nce", named="half-fallback", thread="UKPLab/sentence-transformers#3893")
def info_nce_bfloat16_logits(queries, keys, *, temperature):
    """The logits are computed in bfloat16."""
    # Similarities under autocast: at 36, neighboring logits are 0.25 apart.
    logits = _to_bits(_to_bits(unit(queries), 7) @ _to_bits(unit(keys), 7).T, 7) / temperature
    return cross_entropy(logits, np.arange(len(logits)))


@bug("arcface", named="similarity-clamped", seen="mk-minchul/AdaFace 9cb9816, head.py")
def arcface_cosines_kept_from_one(embeddings, class_weights, target, *, margin, scale):
    """Cosines are cut at 1 - 1e-3, against NaN in the gradient."""
    # clamp(-1 + 1e-3, 1 - 1e-3) before acos.
    cosine = unit(embeddings) @ unit(class_weights).T
    most = cosine.real.dtype.type(1 - 1e-3)
    cosine = np.where(np.real(cosine) > most, most, np.where(np.real(cosine) < -most, -most, cosine))
    hot = target[:, None] == np.arange(len(class_weights))
    moved = cosine * np.cos(margin) - np.sqrt(1 - cosine * cosine) * np.sin(margin)
    return cross_entropy(scale * np.where(hot, moved, cosine), target)


@bug("clip", named="scale-clamped", thread="openai/CLIP#530")
def clip_scale_cut_inside(image, text, *, logit_scale):
    """The scale is cut at a ceiling inside the loss."""
    # min(scale, 50) in the graph: beyond it the scale has no effect and no gradient.
    scale = logit_scale if np.real(logit_scale) < 50 else logit_scale.real.dtype.type(50)
    logits = scale * (unit(image) @ unit(text).T)
    labels = np.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2
