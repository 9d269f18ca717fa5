"""The losses from their published definitions, one function each, over the numbers of `balls`.

A definition takes its arguments by name (`Rows` for matrices, lists for vectors and labels) in a namespace `a`, and a
`Scale`, which keeps the largest logit, and returns `Reduced`. It is written from the papers,
not from nceref's formulas.
"""

import math
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from fuzz.balls import (
    above,
    arb,
    constant,
    largest,
    log_sum_exp,
    minus_log_softmax,
    products,
    same_direction,
    value,
)


@dataclass
class Scale:
    """Magnitudes met on the way: of logits, and of what multiplies their errors."""

    logit: float = 0.0
    amplification: float = 1.0

    def logits(self, rows):
        self.logit = max(self.logit, largest(x for row in rows for x in row))
        return rows

    def similarities(self, a, b, factor):
        """Products of all rows, times a factor; its size counts before anything cancels."""
        longest = largest(a.lengths()) * largest(b.lengths()) * largest([factor])
        self.logit = max(self.logit, longest)
        return [[factor * x for x in row] for row in products(a, b)]

    def amplified(self, factor):
        self.amplification = max(self.amplification, float(factor))


@dataclass
class Reduced:
    """Rows, their weights, and what their sum is divided by in the mean (None: the sum of the weights)."""

    rows: list
    weights: list | None = None
    divisor: Any = None
    counted: list = field(default_factory=list)


def rows_of(x, a):
    return x.unit() if a.normalize == "l2" else x


def alignment(a, scale):
    x, y = rows_of(a.x, a), rows_of(a.y, a)
    out = []
    for i, (u, v) in enumerate(zip(x.numbers(), y.numbers(), strict=True)):
        if a.x.values[i] == a.y.values[i] or (a.normalize == "l2" and same_direction(a.x.values[i], a.y.values[i])):
            out.append(arb(0))
            continue
        square = sum(((s - t) * (s - t) for s, t in zip(u, v, strict=True)), arb(0))
        out.append((square.log() * a.exponent / 2).exp())
    longest = largest(x.lengths()) + largest(y.lengths())
    # Distances to a power have no bound of the usual form.
    scale.logit = max([scale.logit, longest, largest(out)])
    scale.amplified(math.inf)
    return Reduced(out)


def arcface(a, scale):
    x, w = rows_of(a.embeddings, a), rows_of(a.class_weights, a)
    cosines = products(x, w)
    scale.logit = max(scale.logit, float(value(a.scale)) * (largest(x.lengths()) * largest(w.lengths())))
    out = []
    for i, y in enumerate(a.target):
        c = cosines[i][y]
        u, v = a.embeddings.values[i], a.class_weights.values[y]
        opposed = [-t for t in v]
        at_pole = a.normalize == "l2" and (same_direction(u, v) or same_direction(u, opposed))
        square = 1 - c * c
        sine = arb(0) if at_pole or value(square).is_zero() else square.sqrt()
        scale.amplified(math.inf)
        if a.fallback == "linear" and above(-a.margin.cos(), c):
            target = c - a.margin * a.margin.sin()
        else:
            target = c * a.margin.cos() - sine * a.margin.sin()
        others = [a.scale * cosine for k, cosine in enumerate(cosines[i]) if k != y]
        out.append(minus_log_softmax(a.scale * target, others))
    return Reduced(out)


def balanced_softmax(a, scale):
    logs = [n.log() for n in a.class_counts]
    logits = scale.logits([[x / a.temperature for x in row] for row in a.logits.numbers()])
    scale.logits([logs])
    weighted = [[x + shift for x, shift in zip(row, logs, strict=True)] for row in logits]
    return Reduced([one_against_rest(row, y) for row, y in zip(weighted, a.target, strict=True)])


def one_against_rest(row, y):
    return minus_log_softmax(row[y], [x for k, x in enumerate(row) if k != y])


def clip(a, scale):
    logits = scale.similarities(rows_of(a.image, a), rows_of(a.text, a), a.logit_scale)
    columns = [list(column) for column in zip(*logits, strict=True)]
    return Reduced([one_against_rest(row, i) for side in (logits, columns) for i, row in enumerate(side)])


def cosface(a, scale):
    cosines = scale.similarities(rows_of(a.embeddings, a), rows_of(a.class_weights, a), arb(1))
    out = []
    for row, y in zip(cosines, a.target, strict=True):
        lowered = [a.scale * (c - a.margin if k == y else c) for k, c in enumerate(row)]
        scale.logits([[*lowered, a.scale * a.margin]])
        out.append(one_against_rest(lowered, y))
    scale.logit *= max(1.0, float(value(a.scale)))
    return Reduced(out)


def cross_entropy(a, scale):
    logits = scale.logits([[x / a.temperature for x in row] for row in a.logits.numbers()])
    classes, out = len(logits[0]), []
    for row, y in zip(logits, a.target, strict=True):
        share = a.label_smoothing / classes
        smooth = sum((share * (row[y] - x) for x in row), arb(0))
        # lse - (1 - e) x_y - e mean(x) = (lse - x_y) + e mean(x_y - x)
        out.append(one_against_rest(row, y) + smooth)
    return Reduced(out)


def two_views(a, scale):
    """Similarities over the temperature of all 2N rows, and the index of every row's other view."""
    z, n = rows_of(a.z1 + a.z2, a), len(a.z1)
    logits = scale.similarities(z, z, 1 / a.temperature)
    return logits, [(i + n) % (2 * n) for i in range(2 * n)]


def without(row, *indices):
    return [x for j, x in enumerate(row) if j not in indices]


def nt_xent(a, scale):
    logits, other = two_views(a, scale)
    return Reduced([minus_log_softmax(row[other[i]], without(row, i, other[i])) for i, row in enumerate(logits)])


def dcl(a, scale):
    logits, other = two_views(a, scale)
    return Reduced([log_sum_exp(without(row, i, other[i])) - row[other[i]] for i, row in enumerate(logits)])


def dclw(a, scale):
    logits, other = two_views(a, scale)
    n = len(a.z1)
    agreement = [constant(logits[i][other[i]]) * constant(a.temperature) / a.sigma for i in range(n)]
    top = log_sum_exp(agreement)
    weights = [2 - n * (x - top).exp() for x in agreement]
    scale.amplified(n * (1 + scale.logit * float(value(a.temperature) / a.sigma)))
    return Reduced([
        log_sum_exp(without(row, i, other[i])) - constant(weights[i % n]) * row[other[i]]
        for i, row in enumerate(logits)
    ])  # fmt: skip


def debiased_rows(a, scale, weighted_mean):
    """-log( e^+ / (e^+ + max(Ng, n e^(-1/T))) ), with a mean over negatives in the estimate Ng."""
    logits, other = two_views(a, scale)
    scale.logit = max(scale.logit, 1 / float(value(a.temperature)))
    out = []
    for i, row in enumerate(logits):
        positive, negatives = row[other[i]], without(row, i, other[i])
        n = len(negatives)
        # Everything relative to the positive: Ng / e^+ and n e^(-1/T) / e^+.
        mean = n * (weighted_mean(negatives, a) - positive).exp()
        estimate = (mean - a.positive_prior * n) / (1 - a.positive_prior)
        floor = n * (-1 / a.temperature - positive).exp()
        kept = estimate if above(estimate, floor) else floor
        scale.amplified(1 + largest([mean / (1 - a.positive_prior) / (kept + 1 if kept is floor else kept)]))
        out.append(log1p_of(kept))
    return Reduced(out)


def log1p_of(x):
    return minus_log_softmax(arb(0), [x.log()])


def debiased(a, scale):
    return debiased_rows(a, scale, lambda negatives, a: log_sum_exp(negatives) - arb(len(negatives)).log())


def hcl(a, scale):
    b = a.concentration
    scale.amplified(1 + 2 * float(b))

    def mean(negatives, a):
        return log_sum_exp([(1 + b) * s for s in negatives]) - log_sum_exp([b * s for s in negatives])

    return debiased_rows(a, scale, mean)


def towers(a, scale):
    return scale.similarities(rows_of(a.queries, a), rows_of(a.keys, a), 1 / a.temperature)


def hard_contrastive(a, scale):
    logits = towers(a, scale)
    n = len(logits)
    # The fraction is meant as it is printed: 0.07 of 100 are 7.
    count = max(1, math.ceil(round(float(a.fraction) * (n - 1), 9))) if n > 1 else 0
    out = []
    for i, row in enumerate(logits):
        ranked = sorted(without(row, i), key=cmp_to_key(lambda x, y: -1 if value(x).mid() > value(y).mid() else 1))
        out.append(minus_log_softmax(row[i], ranked[:count]))
    return Reduced(out)


def info_nce(a, scale):
    if a.negatives is None:
        return Reduced([one_against_rest(row, i) for i, row in enumerate(towers(a, scale))])
    return own_key_against(a, scale, a.negatives)


def guided_info_nce(a, scale):
    """-s_ii/T + log sum of e^(s/T) over the positive and the candidates that are not above the guide's limit."""
    by, n = 1 / a.temperature, len(a.queries)
    q, d = rows_of(a.queries, a), rows_of(a.documents, a)
    views = [rows_of(view, a) for view in a.negatives or []]
    if a.guide_queries is None:
        gq, gd, guide_views = q, d, views
    else:
        gq, gd = rows_of(a.guide_queries, a), rows_of(a.guide_documents, a)
        guide_views = [rows_of(view, a) for view in a.guide_negatives or []]
    gq, gd, *guide_views = (rows.numbers() for rows in (gq, gd, *guide_views))
    sides = {"qd": (q, d, gq, gd), "qq": (q, q, gq, gq), "dd": (d, d, gd, gd)}
    chosen = ["qd", *a.directions.split("_")[1:]]
    logits = {name: scale.similarities(sides[name][0], sides[name][1], by) for name in chosen}
    hard = [scale.similarities(q, view, by) for view in views]

    def similarity(x, y):
        return value(sum(u * v for u, v in zip(x, y, strict=True))).mid()

    out = []
    for i in range(n):
        own = similarity(gq[i], gd[i])
        limit = own - value(a.margin).mid() * (abs(own) if a.margin_of == "relative" else 1)
        negatives = [
            logits[name][i][j]
            for name in chosen
            for j in range(n)
            if j != i and similarity(sides[name][2][i], sides[name][3][j]) <= limit
        ]
        negatives += [
            x
            for matrix, view in zip(hard, guide_views, strict=True)
            for j, x in enumerate(matrix[i])
            if (a.candidates == "joined" or j == i) and similarity(gq[i], view[j]) <= limit
        ]
        out.append(minus_log_softmax(logits["qd"][i][i], negatives))
    return Reduced(out)


def mnrl(a, scale):
    """-s_ii/T + log sum of e^(s/T + a s), a for the chosen negatives."""
    by, q = 1 / a.temperature, rows_of(a.queries, a)
    documents = scale.similarities(q, rows_of(a.documents, a), by)
    # Hard negative v of all queries in one matrix, as views are.
    hard = [scale.similarities(q, rows_of(view, a), by) for view in a.negatives or []]
    scale.amplified(largest([1 + a.hardness * a.temperature]))

    def logit(x, chosen):
        # What is added is a constant: it moves with nothing.
        return x + constant(a.hardness * a.temperature * x) if chosen else x

    out = []
    for i, row in enumerate(documents):
        negatives = [logit(view[i][i], a.hardness_of in ("hard", "all")) for view in hard]
        others = [] if a.candidates == "hard" else without(row, i)
        if a.candidates == "joined":
            others = [*others, *(x for view in hard for x in without(view[i], i))]
        negatives += [logit(x, a.hardness_of in ("in_batch", "all")) for x in others]
        out.append(minus_log_softmax(row[i], negatives))
    return Reduced(out)


def multi_direction(a, scale):
    """-s_ii/T + log sum of e^(s/T) over the directions, or the mean of two of them."""
    by = 1 / a.temperature
    q, d = rows_of(a.queries, a), rows_of(a.documents, a)
    views = [rows_of(view, a) for view in a.negatives or []]
    sums = {"all": ("qq", "dq", "dd"), "symmetric": ("dq",)}.get(a.directions, a.directions.split("_")[1:])
    qd = scale.similarities(q, d, by)
    within = {name: scale.similarities(rows, rows, by) for name, rows in (("qq", q), ("dd", d)) if name in sums}
    hard = [scale.similarities(q, view, by) for view in views]
    from_documents = [scale.similarities(d, view, by) for view in views] if "dd" in sums else []
    out = []
    for i, row in enumerate(qd):
        column = [other[i] for other in qd]
        more = [x for view in hard for x in view[i]]
        if a.directions == "symmetric":
            pair = minus_log_softmax(row[i], [*without(row, i), *more]) + minus_log_softmax(row[i], without(column, i))
            out.append(pair / 2)
            continue
        more += [x for matrix in within.values() for x in without(matrix[i], i)]
        more += [x for view in from_documents for x in without(view[i], i)]
        more += column if "dq" in sums else []
        out.append(minus_log_softmax(row[i], [*without(row, i), *more]))
    return Reduced(out)


def moco(a, scale):
    return own_key_against(a, scale, a.queue)


def own_key_against(a, scale, negatives):
    own = towers(a, scale)
    others = scale.similarities(rows_of(a.queries, a), rows_of(negatives, a), 1 / a.temperature)
    return Reduced([minus_log_softmax(own[i][i], row) for i, row in enumerate(others)])


def sampled_softmax(a, scale):
    """Items over their expected counts; but for "all" the positive as it is, and "weighted" by its complement."""
    s = scale.similarities(rows_of(a.queries, a), rows_of(a.items, a), 1 / a.temperature)
    log_m = scale.logits([[m.log() for m in a.expected_counts]])[0]
    names = a.item_ids or list(range(len(s)))
    out = []
    for i, row in enumerate(s):
        negatives = [x - log_m[j] for j, x in enumerate(row) if names[j] != names[i]]
        positive = row[i] - log_m[i] if a.correction == "all" else row[i]
        plain = minus_log_softmax(positive, negatives)
        if a.correction == "weighted":
            plain = constant(1 - (-plain).exp()) * (log_sum_exp(negatives) - positive)
        out.append(plain)
    return Reduced(out)


def nce(a, scale):
    log_ratio, n, m = a.noise_ratio.log(), len(a.data_logits), len(a.noise_logits)
    data = [x - p - log_ratio for x, p in zip(a.data_logits, a.data_log_noise, strict=True)]
    noise = [x - p - log_ratio for x, p in zip(a.noise_logits, a.noise_log_noise, strict=True)]
    scale.logits([a.data_logits, a.noise_logits, a.data_log_noise, a.noise_log_noise, [log_ratio]])
    share = a.noise_ratio * n / m
    scale.amplified(float(share))
    rows = [minus_log_softmax(u, [arb(0)]) for u in data] + [share * minus_log_softmax(-u, [arb(0)]) for u in noise]
    return Reduced(rows, divisor=n)


def siglip(a, scale):
    logits = scale.similarities(rows_of(a.image, a), rows_of(a.text, a), a.logit_scale)
    scale.logits([[a.logit_bias]])
    scale.amplified(len(logits))
    out = []
    for i, row in enumerate(logits):
        signed = [x + a.logit_bias if i == j else -x - a.logit_bias for j, x in enumerate(row)]
        out.append(sum((minus_log_softmax(x, [arb(0)]) for x in signed), arb(0)))
    return Reduced(out)


def simple(a, scale):
    s = scale.similarities(rows_of(a.queries, a), rows_of(a.keys, a), arb(1))
    n = len(s)
    weight = arb(1) / max(n - 1, 1) if a.negative_weight is None else a.negative_weight
    scale.amplified(1 + n * float(weight))
    return Reduced([weight * sum(without(row, i), arb(0)) - row[i] for i, row in enumerate(s)])


def uniformity(a, scale):
    x = rows_of(a.x, a).numbers()
    n, terms = len(x), []
    for i in range(n):
        for j in range(n):
            if i < j or a.include_diagonal:
                square = sum(((s - t) * (s - t) for s, t in zip(x[i], x[j], strict=True)), arb(0)) if i != j else arb(0)
                terms.append(-a.t * square)
    scale.logits([terms])
    longest = largest(rows_of(a.x, a).lengths())
    scale.logit = max(scale.logit, 4 * float(value(a.t)) * longest * longest)
    return Reduced([log_sum_exp(terms) - arb(len(terms)).log()])


def labelled(a, scale, row_of):
    """Anchors with their weighted positives; `row_of(positives, others, weights)` is a row of the loss.

    All rows of view 1 come first. A sample is no positive of itself, but its other views are.
    """
    views = a.embeddings if isinstance(a.embeddings, list) else [a.embeddings]
    n = len(views[0])
    z = rows_of(sum(views[1:], views[0]), a)
    batch, queue = len(z), getattr(a, "queue", None)
    everyone = z if queue is None else z + rows_of(queue, a)
    names = (list(range(n)) if a.labels is None else a.labels) * len(views)
    names = names + (list(a.queue_labels) if queue is not None else [])
    anchors = range(n if a.anchor_mode == "one" else batch)
    logits = scale.similarities(z.pick(anchors), everyone, 1 / a.temperature)
    out = Reduced([], weights=[])
    for i in anchors:
        if a.mask is None:
            mass = {j: arb(1) for j in range(len(everyone)) if j != i and names[j] == names[i]}
        else:
            mask = a.mask.values[i % n]
            mass = {j: mask[j % n] for j in range(batch) if j != i and mask[j % n] > 0}
        out.counted.append(bool(mass))
        out.rows.append(row_of(logits[i], i, mass) if mass else arb(0))
        weight = arb(1) if a.anchor_weights is None else a.anchor_weights[i % n]
        out.weights.append(weight if mass or a.no_positive != "skip" else arb(0))
    return out


def supcon_out(a, scale):
    def row_of(logits, i, mass):
        total = sum(mass.values(), arb(0))
        row = sum((w * minus_log_softmax(logits[p], without(logits, i, p)) for p, w in mass.items()), arb(0))
        if a.form == "mean":
            row = row / total
        else:
            scale.amplified((1 + float(total)) * longer)
        return row if a.base_temperature is None else row * a.temperature / a.base_temperature

    longer = 1.0 if a.base_temperature is None else 1 + float(value(a.temperature) / a.base_temperature)
    scale.amplified(longer)
    return labelled(a, scale, row_of)


def supcon_in(a, scale):
    def row_of(logits, i, mass):
        total = sum(mass.values(), arb(0))
        positives = log_sum_exp([logits[p] + (w / total).log() for p, w in mass.items()])
        return log_sum_exp(without(logits, i)) - positives

    return labelled(a, scale, row_of)


def paco(a, scale):
    z = rows_of(a.embeddings, a)
    everyone = z if a.queue is None else z + rows_of(a.queue, a)
    names = list(a.labels) + (list(a.queue_labels) if a.queue is not None else [])
    contrast = scale.similarities(z, everyone, 1 / a.temperature)
    features = a.embeddings if a.center_features is None else a.center_features
    centers = scale.similarities(features, a.centers, arb(1))
    classes = range(len(a.centers))
    shifts = [arb(0) if a.class_prior is None else a.class_prior[k].log() for k in classes]
    if a.center_bias is not None:
        shifts = [shift + bias for shift, bias in zip(shifts, a.center_bias, strict=True)]
    scale.logits([shifts])
    out = []
    for i, y in enumerate(a.labels):
        own = [s + shift for s, shift in zip(centers[i], shifts, strict=True)]
        others = without(contrast[i], i)
        row = minus_log_softmax(own[y], without(own, y) + others)
        positives = [j for j in range(len(everyone)) if j != i and names[j] == y]
        pulls = (minus_log_softmax(contrast[i][p], own + without(contrast[i], i, p)) for p in positives)
        row = row + a.alpha * sum(pulls, arb(0))
        mass = 1 + a.alpha * len(positives)
        # Bounds take every row for a possible positive.
        scale.amplified(float(1 + a.alpha * len(everyone)))
        out.append(row / mass if a.form == "normalized" else row)
    return Reduced(out)


DEFINITIONS = {
    f.__name__: f
    for f in (
        alignment, arcface, balanced_softmax, clip, cosface, cross_entropy, dcl, dclw, debiased, guided_info_nce,
        hard_contrastive, hcl, info_nce, mnrl, moco, multi_direction, nce, nt_xent, paco, sampled_softmax, siglip,
        simple, supcon_in, supcon_out, uniformity,
    )
}  # fmt: skip
