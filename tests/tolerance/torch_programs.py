"""Plain programs for every loss in PyTorch, as people write them: what the implementation bounds have to admit.

Each takes the canonical inputs by name and returns the rows and the weights of their mean. Several per loss use other
evaluations: a maximum that is subtracted by hand and not detached, probabilities before logarithms, angles by acos.
"""

import torch
from torch.nn import functional as F  # noqa: N812

INF = float("inf")


def unit(x, normalize, how=0):
    """Rows of length 1: by F.normalize, by the inverse root of the sum of squares, by a clamped length."""
    if normalize == "none":
        return x
    if how == 0:
        return F.normalize(x, dim=-1)
    if how == 1:
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True))
    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)


def even(rows):
    return rows, torch.ones_like(rows.detach()) / rows.numel()


def cross_entropy_rows(logits, target):
    return F.cross_entropy(logits, target, reduction="none")


def by_hand(logits, target):
    """Log-softmax after a shift by a maximum that is not detached."""
    shifted = logits - logits.max(dim=1, keepdim=True).values
    log_prob = shifted - shifted.exp().sum(1, keepdim=True).log()
    return -log_prob[torch.arange(len(target)), target]


def of_softmax(logits, target):
    return logits.logsumexp(dim=1) - logits.gather(1, target[:, None])[:, 0]


HEADS = (cross_entropy_rows, by_hand, of_softmax)


def stacked(z1, z2, temperature, normalize, how):
    z = unit(torch.cat([z1, z2]), normalize, how)
    n = len(z1)
    s = z @ z.T / temperature if how != 1 else (z / temperature) @ z.T
    partner = (torch.arange(2 * n) + n) % (2 * n)
    return s, torch.eye(2 * n, dtype=torch.bool), partner


def nt_xent(how, z1, z2, temperature, normalize="l2"):
    s, own, partner = stacked(z1, z2, temperature, normalize, how)
    return even(HEADS[how](s.masked_fill(own, -INF), partner))


def dcl(how, z1, z2, temperature, normalize="l2"):
    s, own, partner = stacked(z1, z2, temperature, normalize, how)
    pair = own | F.one_hot(partner, len(s)).bool()
    positive = s[torch.arange(len(s)), partner]
    if how == 2 and s.max() < 80:
        return even(-positive + (s.exp() * ~pair).sum(1).log())
    return even(-positive + s.masked_fill(pair, -INF).logsumexp(1))


def dclw(how, z1, z2, temperature, sigma=0.5, normalize="l2"):
    s, own, partner = stacked(z1, z2, temperature, normalize, how)
    pair = own | F.one_hot(partner, len(s)).bool()
    n = len(z1)
    positive = s[torch.arange(len(s)), partner]
    z = unit(torch.cat([z1, z2]), normalize, how)
    weight = (2 - n * ((z[:n] * z[n:]).sum(1) / sigma).softmax(0)).detach()
    return even(-torch.cat([weight, weight]) * positive + s.masked_fill(pair, -INF).logsumexp(1))


def debiased(how, z1, z2, temperature, positive_prior=0.1, normalize="l2", concentration=None):
    s, own, partner = stacked(z1, z2, temperature, normalize, how)
    pair = own | F.one_hot(partner, len(s)).bool()
    count = len(s) - 2
    positive = s[torch.arange(len(s)), partner]
    # The same shift for all: what is left of the row afterwards does not depend on it.
    top = s.max(1).values.detach() if how or s.max() > 60 else torch.zeros_like(positive)
    pos, neg = (positive - top).exp(), ((s - top[:, None]).exp() * ~pair)
    if concentration is not None:
        weight = (concentration * s).masked_fill(pair, -INF)
        neg = count * weight.softmax(1) * neg
    estimate = (neg.sum(1) - positive_prior * count * pos) / (1 - positive_prior)
    kept = torch.maximum(estimate, count * (-1 / temperature - top).exp())
    return even(-(pos / (pos + kept)).log())


def hcl(how, z1, z2, temperature, positive_prior=0.1, concentration=1.0, normalize="l2"):
    return debiased(how, z1, z2, temperature, positive_prior, normalize, concentration)


def info_nce(how, queries, keys, temperature, negatives=None, normalize="l2"):
    q, k = unit(queries, normalize, how), unit(keys, normalize, how)
    if negatives is None:
        s = q @ k.T / temperature if how else (q / temperature) @ k.T
        return even(HEADS[how](s, torch.arange(len(q))))
    own = (q * k).sum(1, keepdim=True)
    s = torch.cat([own, q @ unit(negatives, normalize, how).T], dim=1) / temperature
    return even(HEADS[how](s, torch.zeros(len(q), dtype=torch.int64)))


def guided_info_nce(how, queries, documents, temperature, negatives=None, guide_queries=None, guide_documents=None,
                    guide_negatives=None, margin=0.0, margin_of="absolute", directions="qd_qq_dd", candidates="joined",
                    normalize="l2"):  # fmt: skip
    q, d, n = unit(queries, normalize, how), unit(documents, normalize, how), len(queries)
    hard = [] if negatives is None else list(unit(negatives, normalize, how).unbind(1))
    gq, gd, gh = q.detach(), d.detach(), [x.detach() for x in hard]
    if guide_queries is not None:
        gq, gd = unit(guide_queries, normalize, how), unit(guide_documents, normalize, how)
        gh = [] if negatives is None else list(unit(guide_negatives, normalize, how).unbind(1))
    own = torch.eye(n, dtype=torch.bool)
    positive = (gq * gd).sum(1, keepdim=True)
    limit = positive - margin * (positive.abs() if margin_of == "relative" else 1)

    def block(a, b, ga, gb, never, always):
        return (a @ b.T / temperature).masked_fill((ga @ gb.T > limit) & ~always | never, -INF)

    blocks = [block(q, d, gq, gd, own & False, own)]
    blocks += [block(q, q, gq, gq, own, own & False)] if "qq" in directions else []
    blocks += [block(d, d, gd, gd, own, own & False)] if "dd" in directions else []
    never = ~own if candidates == "own" else own & False
    blocks += [block(q, x, gq, gx, never, own & False) for x, gx in zip(hard, gh, strict=True)]
    return even(HEADS[how](torch.cat(blocks, dim=1), torch.arange(n)))


def mnrl(how, queries, documents, temperature, negatives=None, candidates="joined", hardness=0.0,
         hardness_of="all", normalize="l2"):  # fmt: skip
    q, d = unit(queries, normalize, how), unit(documents, normalize, how)
    n, hard = len(q), [] if negatives is None else list(unit(negatives, normalize, how).unbind(1))
    s = torch.cat([q @ x.T for x in (d, *hard)], dim=1)
    own, column = torch.arange(s.shape[1]) % n == torch.arange(n)[:, None], torch.arange(s.shape[1])
    chosen = {"in_batch": ~own, "hard": own & (column >= n), "all": ~(own & (column < n))}[hardness_of]
    kept = {"joined": own | True, "own": own | (column < n), "hard": own}[candidates]
    logits = s / temperature + hardness * s.detach() * chosen
    return even(HEADS[how](logits.masked_fill(~kept, -INF), torch.arange(n)))


def sampled_softmax(how, queries, items, expected_counts, temperature, item_ids=None, correction="all",
                    normalize="l2"):  # fmt: skip
    q, v = unit(queries, normalize, how), unit(items, normalize, how)
    s, own = q @ v.T / temperature, torch.eye(len(q), dtype=torch.bool)
    corrected = s - expected_counts.log() * (torch.ones_like(own) if correction == "all" else ~own)
    hits = own & False if item_ids is None else (item_ids[:, None] == item_ids) & ~own
    if correction != "weighted":
        return even(HEADS[how](corrected.masked_fill(hits, -INF), torch.arange(len(q))))
    gap = corrected.masked_fill(hits | own, -INF).logsumexp(1) - s.diagonal()
    return even(torch.sigmoid(gap).detach() * gap)


def multi_direction(how, queries, documents, temperature, negatives=None, directions="all", normalize="l2"):
    q, d = unit(queries, normalize, how), unit(documents, normalize, how)
    n, hard = len(q), [] if negatives is None else list(unit(negatives, normalize, how).unbind(1))
    own, everyone = torch.eye(n, dtype=torch.bool), torch.cat([d, *hard])
    sums = {"all": ("qq", "dq", "dd"), "symmetric": ("dq",)}.get(directions, directions.split("_")[1:])
    forth, back = q @ everyone.T / temperature, d @ q.T / temperature
    if directions == "symmetric":
        return even((HEADS[how](forth, torch.arange(n)) + HEADS[how](back, torch.arange(n))) / 2)
    parts = {
        "qq": (q @ q.T / temperature).masked_fill(own, -INF),
        "dq": back,
        "dd": (d @ everyone.T / temperature).masked_fill(own.repeat(1, 1 + len(hard)), -INF),
    }
    return even(HEADS[how](torch.cat([forth, *(parts[name] for name in sums)], dim=1), torch.arange(n)))


def moco(how, queries, keys, queue, temperature, normalize="l2"):
    return info_nce(how, queries, keys.detach(), temperature, queue.detach(), normalize)


def hard_contrastive(how, queries, keys, temperature, fraction, normalize="l2"):
    q, k = unit(queries, normalize, how), unit(keys, normalize, how)
    s, n = q @ k.T / temperature, len(q)
    count = min(n - 1, max(1, int(-(-round(float(fraction) * (n - 1), 9) // 1))))
    others = s.masked_fill(torch.eye(n, dtype=torch.bool), -INF).topk(count, dim=1).values
    logits = torch.cat([s.diagonal()[:, None], others], dim=1)
    return even(HEADS[how](logits, torch.zeros(n, dtype=torch.int64)))


def clip(how, image, text, logit_scale, normalize="l2"):
    x, y = unit(image, normalize, how), unit(text, normalize, how)
    s, target = logit_scale * x @ y.T, torch.arange(len(x))
    return even(torch.stack([HEADS[how](s, target), HEADS[how](s.T, target)]))


def siglip(how, image, text, logit_scale, logit_bias=0.0, normalize="l2"):
    x, y = unit(image, normalize, how), unit(text, normalize, how)
    s = logit_scale * (x @ y.T) + logit_bias
    s = s * (2 * torch.eye(len(x)) - 1).to(s.dtype)
    if how == 0:
        return even(-F.logsigmoid(s).sum(1))
    if how == 1 and s.abs().max() < 10:
        return even(-s.sigmoid().log().sum(1))
    # Its default threshold of 20 drops 2e-9.
    return even(F.softplus(-s, threshold=50).sum(1))


def simple(how, queries, keys, negative_weight=None, normalize="l2"):
    q, k = unit(queries, normalize, how), unit(keys, normalize, how)
    s, n = q @ k.T, len(q)
    weight = 1 / max(n - 1, 1) if negative_weight is None else negative_weight
    return even(weight * (s.sum(1) - s.diagonal()) - s.diagonal())


def contrast(how, embeddings, labels, mask, queue, queue_labels, temperature, normalize, anchor_mode="all"):
    views = embeddings.shape[1] if embeddings.ndim == 3 else 1
    z = torch.cat(torch.unbind(embeddings, 1)) if views > 1 else embeddings.reshape(-1, embeddings.shape[-1])
    n = len(embeddings)
    names = (torch.arange(n) if labels is None else labels).repeat(views)
    weight = (names[:, None] == names[None]).to(z.dtype) if mask is None else mask.repeat(views, views)
    z = unit(z, normalize, how)
    candidates = z
    if queue is not None:
        candidates = torch.cat([z, unit(queue.detach(), normalize, how)])
        weight = torch.cat([weight, (names[:, None] == queue_labels[None]).to(z.dtype)], dim=1)
    count = n if anchor_mode == "one" else n * views
    own = torch.eye(len(z), len(candidates), dtype=torch.bool)
    s = z @ candidates.T / temperature
    return s[:count], own[:count], (weight * ~own)[:count]


def log_probabilities(how, s, own):
    """Of every candidate; the shift may see the anchor itself."""
    if how == 0:
        return s.masked_fill(own, -INF).log_softmax(1).masked_fill(own, 0.0)
    top = s.max(1, keepdim=True).values
    s = s - (top.detach() if how == 1 else s.masked_fill(own, -INF).max(1, keepdim=True).values)
    return s - (s.exp() * ~own if how == 1 else s.masked_fill(own, -INF).exp()).sum(1, keepdim=True).log()


def policy(rows, weight, no_positive, anchor_weights, count):
    scale = torch.ones_like(rows.detach()) if anchor_weights is None else anchor_weights.repeat(len(rows) // count)
    if no_positive == "skip":
        scale = scale * (weight.sum(1) > 0)
    return rows * 1.0, scale / scale.sum()


def supcon_out(
    how, embeddings, temperature, labels=None, mask=None, anchor_mode="all", queue=None, queue_labels=None,
    form="mean", base_temperature=None, anchor_weights=None, normalize="l2", no_positive="error",
):  # fmt: skip
    s, own, weight = contrast(how, embeddings, labels, mask, queue, queue_labels, temperature, normalize, anchor_mode)
    total = -(weight * log_probabilities(how, s, own)).sum(1)
    mass = weight.sum(1)
    rows = total if form == "sum" else total / torch.where(mass > 0, mass, 1.0)
    rows = rows if base_temperature is None else rows * (temperature / base_temperature)
    return policy(rows, weight, no_positive, anchor_weights, len(embeddings))


def supcon_in(
    how, embeddings, temperature, labels=None, mask=None, anchor_mode="all", anchor_weights=None, normalize="l2",
    no_positive="error",
):  # fmt: skip
    s, own, weight = contrast(how, embeddings, labels, mask, None, None, temperature, normalize, anchor_mode)
    log_prob = log_probabilities(how, s, own)
    mass = weight.sum(1)
    inside = torch.where(weight > 0, log_prob + torch.where(weight > 0, weight, 1.0).log(), -INF)
    inside = torch.where(mass[:, None] > 0, inside, 0.0)
    rows = torch.where(mass > 0, torch.where(mass > 0, mass, 1.0).log() - inside.logsumexp(1), 0.0)
    return policy(rows, weight, no_positive, anchor_weights, len(embeddings))


def paco(
    how, embeddings, labels, centers, alpha, temperature, queue=None, queue_labels=None, class_prior=None,
    center_features=None, center_bias=None, form="sum", normalize="l2",
):  # fmt: skip
    s, own, weight = contrast(how, embeddings, labels, None, queue, queue_labels, temperature, normalize)
    c = (embeddings if center_features is None else center_features) @ centers.T
    c = c if center_bias is None else c + center_bias
    c = c if class_prior is None else c + class_prior.log()
    logits = torch.cat([c, s], dim=1)
    own = torch.cat([torch.zeros_like(c, dtype=torch.bool), own], dim=1)
    weight = torch.cat([F.one_hot(labels, len(centers)).to(s.dtype), alpha * weight], dim=1)
    total = -(weight * log_probabilities(how, logits, own)).sum(1)
    return even(total if form == "sum" else total / weight.sum(1))


def alignment(how, x, y, exponent=2.0, normalize="l2"):
    x, y = unit(x, normalize, how), unit(y, normalize, how)
    if how == 0:
        return even((x - y).norm(dim=1).pow(exponent))
    square = ((x - y) ** 2).sum(1) if how == 1 else (x * x).sum(1) + (y * y).sum(1) - 2 * (x * y).sum(1)
    return even(square.clamp(min=0) if exponent == 2 else square.clamp(min=1e-30).pow(exponent / 2))


def uniformity(how, x, t=2.0, include_diagonal=False, normalize="l2"):
    x, n = unit(x, normalize, how), len(x)
    if how == 0:
        square = ((x[:, None] - x[None]) ** 2).sum(-1)
    else:
        square = (x * x).sum(1)[:, None] + (x * x).sum(1)[None] - 2 * x @ x.T
    keep = torch.ones(n, n, dtype=torch.bool) if include_diagonal else ~torch.eye(n, dtype=torch.bool)
    if how == 2:
        value = (-t * square[keep]).exp().mean().log()
    else:
        value = (-t * square[keep]).logsumexp(0) - torch.log(keep.sum().to(x.dtype))
    return value, torch.ones_like(value.detach())


def cross_entropy(how, logits, target, temperature=1.0, label_smoothing=0.0):
    log_prob = (logits / temperature).log_softmax(1) if how else None
    if how == 0:
        return even(F.cross_entropy(logits / temperature, target, reduction="none", label_smoothing=label_smoothing))
    own = log_prob[torch.arange(len(target)), target]
    return even(-(1 - label_smoothing) * own - label_smoothing * log_prob.mean(1))


def balanced_softmax(how, logits, target, class_counts, temperature=1.0):
    return even(HEADS[how](logits / temperature + class_counts.log(), target))


def nce(how, data_logits, noise_logits, data_log_noise, noise_log_noise, noise_ratio):
    shift = torch.log(torch.tensor(noise_ratio, dtype=data_logits.dtype))
    data = data_logits - (data_log_noise + shift) if how else data_logits - data_log_noise - shift
    noise = noise_logits - (noise_log_noise + shift) if how else noise_logits - noise_log_noise - shift
    log_h = (lambda x: x.sigmoid().log()) if how == 1 else F.logsigmoid
    share = noise_ratio * len(data) / len(noise)
    rows = torch.cat([-log_h(data), -share * log_h(-noise)])
    return rows, torch.ones_like(rows.detach()) / len(data)


def margin(how, embeddings, class_weights, target, scale, normalize, moved):
    cosine = unit(embeddings, normalize, how) @ unit(class_weights, normalize, how).T
    own = F.one_hot(target, len(class_weights)).to(cosine.dtype)
    return even(HEADS[how](scale * (cosine * (1 - own) + moved(cosine) * own), target))


def cosface(how, embeddings, class_weights, target, margin=0.35, scale=64.0, normalize="l2"):
    return globals()["margin"](how, embeddings, class_weights, target, scale, normalize, lambda c: c - margin)


def arcface(how, embeddings, class_weights, target, margin=0.5, scale=64.0, normalize="l2", fallback="none"):
    m = torch.tensor(margin, dtype=torch.float64)

    def moved(c):
        c = c.clamp(-1, 1)
        inside = (1 - c * c).clamp(min=0).sqrt()
        out = torch.cos(torch.acos(c) + margin) if how == 0 else c * float(m.cos()) - inside * float(m.sin())
        past = c < -float(m.cos())
        return torch.where(past, c - margin * float(m.sin()), out) if fallback == "linear" else out

    own = torch.arange(len(target))
    cosine = unit(embeddings, normalize, how) @ unit(class_weights, normalize, how).T
    # Only the target's angle: at a pole, the angles of the others have no derivative.
    logits = cosine.clone()
    logits[own, target] = moved(cosine[own, target])
    return even(HEADS[how](scale * logits, target))
