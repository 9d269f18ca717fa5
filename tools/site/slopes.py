"""Slopes of losses by what stands in their logarithms: each is proved before it is shown, whatever the sizes.

A chain has the loss of one row, which is compared with the formula of the package, and then a step for each slope.
"""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import all_losses
from nceref.theory.chain import Chain, Name, Step, equal

m, n, C = sp.symbols("m n C", integer=True, positive=True)
i, j, k = sp.symbols("i j k", integer=True, positive=True)
tau, scale, alpha = sp.symbols("tau t alpha", positive=True)
margin, smoothing = sp.symbols("m_a epsilon", positive=True)
L = sp.Symbol("L", real=True)
s_p, bias, center = sp.symbols("s_p b c_y", real=True)
s, s_plus, c = (sp.IndexedBase(name, real=True) for name in ("s", "s^+", "c"))
logit = sp.Symbol("x_y", real=True)
x = sp.IndexedBase("x", real=True)
P_p, P_y = sp.symbols("P_p P_y", positive=True)
P, P_plus, E = (sp.IndexedBase(name, positive=True) for name in ("P", "P^+", "E"))
Read = Callable[[Any], Any]
Formula = Callable[[Read], Any]

POSITIVE = Name(s_p, "similarity of the anchor and its positive")
NEGATIVES = Name(s[j], "similarity of the anchor and negative j of m")
POSITIVES = Name(s_plus[i], "similarity of the anchor and positive i of n")


def _negatives(entry: Any) -> Any:
    return sp.Sum(entry.xreplace({j: k}), (k, 1, m))


def _positives(entry: Any) -> Any:
    return sp.Sum(entry.xreplace({i: k}), (k, 1, n))


def _others(entry: Any) -> Any:
    return sp.Sum(entry.xreplace({i: k}), (k, 1, C - 1))


def _entries(base: Any, count: Any, read: Read) -> list[list[Any]]:
    """The entries as rows of one number: the anchor is 1, so that they are its similarities."""
    return [[read(base[entry])] for entry in range(1, int(read(count)) + 1)]


def _row(loss: str, *arguments: Any, **options: Any) -> Any:
    """The first row of the package's own formula, with symbols; what is left out is as by default."""
    declared = all_losses()[loss].declaration
    defaults = {p.name: getattr(p, "default", None) for p in declared.parameters}
    names = list(defaults)
    given = dict(zip(names, arguments, strict=False)) | options
    rest = {name: None if default is ... else default for name, default in defaults.items() if name not in given}
    return declared.formula(Symbols(), **given, **rest)[0]


def _chain(names: tuple[Name, ...], loss: Any, row: Formula, slopes: Mapping[Any, Any], **more: Any) -> Chain:
    start = Step("The loss of one row.", equal(L, loss), "program", row)
    steps = (Step("Slope.", equal(sp.Derivative(L, by), slope)) for by, slope in slopes.items())
    ranges = {i: (1, n), j: (1, m)} | more.pop("indices", {})
    used = {one for name in names for one in getattr(name.symbol, "free_symbols", ())}
    return Chain(
        names=(*names, Name(L, "loss of the row", loss)),
        steps=(start, *steps),
        indices={index: ends for index, ends in ranges.items() if index in used},
        **({"sizes": ({m: 2, n: 2, C: 3, i: 1, j: 2}, {m: 4, n: 3, C: 4, i: 2, j: 1})} | more),
    )


def _softmax(row: Formula, temperature: bool = True) -> Chain:
    """One positive among negatives; a temperature divides the similarities, or a scale multiplies them."""
    factor = 1 / tau if temperature else scale
    everyone = sp.exp(factor * s_p) + _negatives(sp.exp(factor * s[j]))
    names = (
        POSITIVE,
        NEGATIVES,
        Name(P_p, "softmax probability of the positive", sp.exp(factor * s_p) / everyone),
        Name(P[j], "softmax probability of negative j", sp.exp(factor * s[j]) / everyone),
    )
    mean = P_p * s_p + _negatives(P[j] * s[j])
    by = {tau: (s_p - mean) / tau**2} if temperature else {scale: mean - s_p}
    return _chain(names, -sp.log(P_p), row, {s_p: factor * (P_p - 1), s[j]: factor * P[j], **by})


def _decoupled() -> Chain:
    everyone = _negatives(sp.exp(s[j] / tau))
    names = (POSITIVE, NEGATIVES, Name(P[j], "softmax probability of negative j among the negatives",
                                       sp.exp(s[j] / tau) / everyone))  # fmt: skip
    slopes = {s_p: -1 / tau, s[j]: P[j] / tau, tau: (s_p - _negatives(P[j] * s[j])) / tau**2}
    return _chain(names, sp.log(everyone) - s_p / tau, lambda read: _two_views("dcl", read), slopes)


def _linear() -> Chain:
    def row(read: Read) -> Any:
        keys = [[read(s_p)], *_entries(s, m, read)]
        return _row("simple", [[1] for _ in keys], keys, normalize="none")

    return _chain((POSITIVE, NEGATIVES), _negatives(s[j]) / m - s_p, row, {s_p: sp.Integer(-1), s[j]: 1 / m})


def _several_positives(loss: str) -> Chain:
    """Supervised contrast: the mean over the positives outside or inside of the logarithm."""
    positives = _positives(sp.exp(s_plus[i] / tau))
    everyone = positives + _negatives(sp.exp(s[j] / tau))
    names = [
        POSITIVES,
        NEGATIVES,
        Name(P_plus[i], "softmax probability of positive i", sp.exp(s_plus[i] / tau) / everyone),
        Name(P[j], "softmax probability of negative j", sp.exp(s[j] / tau) / everyone),
    ]
    value = -_positives(sp.log(P_plus[i])) / n
    wanted: Any = 1 / n
    if loss == "supcon_in":
        names.append(Name(E[i], "softmax probability of positive i among the positives",
                          sp.exp(s_plus[i] / tau) / positives))  # fmt: skip
        value, wanted = -sp.log(_positives(P_plus[i]) / n), E[i]

    def row(read: Read) -> Any:
        own, rest = _entries(s_plus, n, read), _entries(s, m, read)
        labels = [0] * (len(own) + 1) + [1] * len(rest)
        return _row(loss, [[1], *own, *rest], labels, temperature=tau, normalize="none")

    pull = _positives((wanted - P_plus[i]) * s_plus[i]) - _negatives(P[j] * s[j])
    slopes = {s_plus[i]: (P_plus[i] - wanted) / tau, s[j]: P[j] / tau, tau: pull / tau**2}
    return _chain(tuple(names), value, row, slopes)


def _classes(kind: str) -> Chain:
    """Logits of classes, or cosines with their weights; the target is class y."""
    counts, own_count = sp.IndexedBase("n", positive=True), sp.Symbol("n_y", positive=True)
    balanced = kind == "balanced_softmax"
    own_mass = (own_count if balanced else 1) * sp.exp(logit / tau)
    mass = (counts[i] if balanced else 1) * sp.exp(x[i] / tau)
    everyone = own_mass + _others(mass)
    names = [
        Name(logit, "logit of the target"),
        Name(x[i], "logit of class i of the C - 1 others"),
        Name(P_y, "probability of the target", own_mass / everyone),
        Name(P[i], "probability of class i", mass / everyone),
    ]
    if balanced:
        names += [Name(own_count, "training samples of the target"), Name(counts[i], "of class i")]

    def row(read: Read) -> Any:
        rest = [y for (y,) in _entries(x, C - 1, read)]
        if balanced:
            given = [read(own_count), *(y for (y,) in _entries(counts, C - 1, read))]
            return _row(kind, [[read(logit), *rest]], [0], given, temperature=tau)
        return _row(kind, [[read(logit), *rest]], [0], temperature=tau, label_smoothing=smoothing)

    share = smoothing / C if kind == "cross_entropy" else sp.Integer(0)
    own = 1 - share * (C - 1)
    value = -own * sp.log(P_y) - share * _others(sp.log(P[i]))
    mean = (own - P_y) * logit - _others((P[i] - share) * x[i])
    slopes = {logit: (P_y - own) / tau, x[i]: (P[i] - share) / tau, tau: mean / tau**2}
    if kind == "cross_entropy":
        names.append(Name(smoothing, "label smoothing"))
    return _chain(tuple(names), value, row, slopes, indices={i: (1, C - 1)})


def _angular(kind: str) -> Chain:
    """A margin on the cosine of the target, or on its angle, before the last angle at which the cosine falls."""
    theta, scale = sp.symbols("theta_y s", positive=True)
    lowered = center - margin if kind == "cosface" else sp.cos(theta + margin)
    everyone = sp.exp(scale * lowered) + _others(sp.exp(scale * c[i]))
    names = (
        Name(center, "cosine of the target"),
        Name(c[i], "cosine of class i of the C - 1 others"),
        *((Name(theta, "angle of the target", sp.acos(center)),) if kind == "arcface" else ()),
        Name(margin, "margin"),
        Name(P_y, "probability of the target", sp.exp(scale * lowered) / everyone),
        Name(P[i], "probability of class i", sp.exp(scale * c[i]) / everyone),
    )

    def row(read: Read) -> Any:
        weights = [[read(center)], *_entries(c, C - 1, read)]
        options = {"normalize": "none", "margin": margin, "scale": scale}
        return _row(kind, [[1]], weights, [0], **options, **({"fallback": "none"} if kind == "arcface" else {}))

    steep = 1 if kind == "cosface" else sp.sin(theta + margin) / sp.sin(theta)
    mean = P_y * lowered + _others(P[i] * c[i])
    slopes = {center: scale * (P_y - 1) * steep, c[i]: scale * P[i], scale: mean - lowered}
    return _chain(names, -sp.log(P_y), row, slopes, indices={i: (1, C - 1)}, ranges={margin: (0, 1)})


def _sigmoids() -> Chain:
    odds = sp.exp(scale * s_p + bias), sp.exp(scale * s[j] + bias)
    own, other = (x / (1 + x) for x in odds)
    names = (POSITIVE, NEGATIVES, Name(scale, "scale"), Name(bias, "bias"), Name(P_p, "sigmoid of the positive", own),
             Name(P[j], "sigmoid of negative j", other))  # fmt: skip

    def row(read: Read) -> Any:
        return _row("siglip", [[1]], [[read(s_p)], *_entries(s, m, read)], logit_scale=scale, logit_bias=bias,
                    normalize="none")  # fmt: skip

    slopes = {
        s_p: scale * (P_p - 1),
        s[j]: scale * P[j],
        scale: (P_p - 1) * s_p + _negatives(P[j] * s[j]),
        bias: P_p - 1 + _negatives(P[j]),
    }
    value = -sp.log(P_p) + _negatives(sp.log(1 + odds[1]))
    return _chain(names, value, row, slopes)


def _with_centers() -> Chain:
    """PaCo in the sum form: weights alpha on the positives and 1 on the own center."""
    everyone = (
        sp.exp(center)
        + sp.Sum(sp.exp(c[k]), (k, 1, C - 1))
        + _positives(sp.exp(s_plus[i] / tau))
        + _negatives(sp.exp(s[j] / tau))
    )
    names = (
        POSITIVES,
        NEGATIVES,
        Name(center, "logit of the own center"),
        Name(P_y, "softmax probability of the own center", sp.exp(center) / everyone),
        Name(P_plus[i], "softmax probability of positive i", sp.exp(s_plus[i] / tau) / everyone),
        Name(P[j], "softmax probability of negative j", sp.exp(s[j] / tau) / everyone),
    )

    def row(read: Read) -> Any:
        own, rest = _entries(s_plus, n, read), _entries(s, m, read)
        centers = [[read(center)], *_entries(c, C - 1, read)]
        labels = [0] * (len(own) + 1) + [1] * len(rest)
        return _row("paco", [[1], *own, *rest], labels, centers, alpha=alpha, temperature=tau, form="sum",
                    normalize="none")  # fmt: skip

    mass = 1 + alpha * n
    value = -sp.log(P_y) - alpha * _positives(sp.log(P_plus[i]))
    pull = _positives((alpha - mass * P_plus[i]) * s_plus[i]) - mass * _negatives(P[j] * s[j])
    slopes = {center: mass * P_y - 1, s_plus[i]: (mass * P_plus[i] - alpha) / tau, s[j]: mass * P[j] / tau,
              tau: pull / tau**2}  # fmt: skip
    return _chain(names, value, row, slopes)


def _two_views(loss: str, read: Read) -> Any:
    rest = _entries(s, m, read)
    half = len(rest) // 2
    return _row(loss, [[1], *rest[:half]], [[read(s_p)], *rest[half:]], temperature=tau, normalize="none")


def _own_negatives(loss: str, read: Read) -> Any:
    return _row(loss, [[1]], [[read(s_p)]], _entries(s, m, read), temperature=tau, normalize="none")


def _own_document(loss: str, read: Read, **choice: str) -> Any:
    hard = [_entries(s, m, read)]
    return _row(loss, [[1]], [[read(s_p)]], hard, temperature=tau, normalize="none", **choice)


def _captions(read: Read) -> Any:
    text = [[read(s_p)], *_entries(s, m, read)]
    return _row("clip", [[1], *([0] for _ in text[1:])], text, logit_scale=scale, normalize="none")


SLOPES: Mapping[str, Callable[[], Chain]] = {
    "info_nce": lambda: _softmax(lambda read: _own_negatives("info_nce", read)),
    "moco": lambda: _softmax(lambda read: _own_negatives("moco", read)),
    "mnrl": lambda: _softmax(lambda read: _own_document("mnrl", read, candidates="hard")),
    "multi_direction": lambda: _softmax(lambda read: _own_document("multi_direction", read, directions="qd_qq")),
    "nt_xent": lambda: _softmax(lambda read: _two_views("nt_xent", read)),
    "clip": lambda: _softmax(_captions, temperature=False),
    "dcl": _decoupled,
    "simple": _linear,
    "supcon_out": lambda: _several_positives("supcon_out"),
    "supcon_in": lambda: _several_positives("supcon_in"),
    "cross_entropy": lambda: _classes("cross_entropy"),
    "balanced_softmax": lambda: _classes("balanced_softmax"),
    "cosface": lambda: _angular("cosface"),
    "arcface": lambda: _angular("arcface"),
    "siglip": _sigmoids,
    "paco": _with_centers,
}
"""The chain of each loss whose slopes have one."""
