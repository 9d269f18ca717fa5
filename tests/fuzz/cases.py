"""A strategy for the inputs of any loss, made from its declaration: parameter kinds are tables, no loss is named."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from fuzz import dress, faults, rules, values
from hypothesis import strategies as st

from nceref.spec import Array, Choice, Labels, Loss, Scalar

DTYPES = ("float64", "float64", "float64", "float64", "float32", "float32", "float16")
DOORS = ("gradient", "gradient", "value", "anatomy")
ERRSTATES = ({}, {}, {"all": "warn"}, {"all": "raise"}, {"all": "call"})
REDUCTIONS = ("mean", "mean", "sum", "none")
# Making a strategy takes longer than drawing from it.
_among, _between, _either = cache(st.sampled_from), cache(st.integers), st.booleans()
_ERRSTATES = st.sampled_from(ERRSTATES)
COTANGENTS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "ones": lambda rng, shape: np.ones(shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "one-hot": lambda rng, shape: np.eye(1, math.prod(shape)).reshape(shape),
    "tiny": lambda rng, shape: 1e-300 * rng.standard_normal(shape),
    "huge": lambda rng, shape: 1e200 * rng.standard_normal(shape),
}


@dataclass
class Case:
    """One call of a loss, and what it means.

    Attributes
    ----------
    plain : dict
        Every argument as exact numbers: float64 arrays, integers, floats, words; None where left out.
    given : dict
        The arguments as they are passed, by name.
    positional : int
        How many of the leading arrays are passed by position.
    must, may : dict
        Names that have to be refused, or may be, with what is wrong with them.
    """

    loss: Loss
    plain: dict[str, Any]
    given: dict[str, Any]
    tags: dict[str, str] = field(default_factory=dict)
    must: dict[str, str] = field(default_factory=dict)
    may: dict[str, str] = field(default_factory=dict)
    positional: int = 0
    door: str = "gradient"
    reduction: Any = "mean"
    cotangent: Any = None
    plain_cotangent: Any = None
    errstate: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    seed: int = 0

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))

    def __repr__(self):
        lines = [f"{self.loss.name}, {self.door}, reduction={self.reduction!r}, {self.errstate}, {self.settings}"]
        for name, value in {**self.given, "cotangent": self.cotangent}.items():
            try:
                text = f"{value!r} {getattr(value, 'dtype', '')}"
            except RuntimeError:
                text = "an object without repr"
            lines.append(f"    {name} = {text} [{self.tags.get(name, '')}]")
        return "\n".join([*lines, f"    to be refused: {self.must}, perhaps: {self.may}"])


def _sizes(draw, ordinary):
    small = _between(1, 4)
    n = draw(_among((2, 3, 4, 5, 6) if ordinary else (2, 3, 4, 5, 6, 1)))
    return {"N": n, **{letter: draw(small) for letter in "DCKMV"}}


def _present(draw, loss):
    """Which parameters are passed: optional ones by chance, as far as they go together."""
    names = {p.name for p in loss.parameters}
    left_out = set()
    for p in loss.parameters:
        optional = not p.required if isinstance(p, Array | Labels) else isinstance(p, Choice) or p.default is not ...
        if optional and draw(_either):
            left_out.add(p.name)
    present = names - left_out
    if "mask" in present:
        present -= {"labels", "queue", "queue_labels"}
    if not {"queue", "queue_labels", "labels"} <= present and "mask" in names:
        present -= {"queue", "queue_labels"}
    return present if {"queue", "queue_labels"} <= present or "moco" in names else _without_half(present, loss)


def _without_half(present, loss):
    optional = {p.name for p in loss.parameters if isinstance(p, Array | Labels) and not p.required}
    return present - ({"queue", "queue_labels"} & optional)


def _array(draw, rng, p, sizes, dtype, kind, ordinary):
    letters = p.alternative if p.alternative is not None and draw(_either) else p.shape
    shape = tuple(sizes[letter] for letter in letters)
    table = values.ARRAYS[p.like]
    others = tuple(table)[: values.ORDINARY] if ordinary else tuple(table)
    own = kind if kind in table and draw(_between(0, 3)) else draw(_among(others))
    if draw(_between(0, 9)) == 9:
        dtype = draw(_among(DTYPES))
    x = values.in_dtype(table[own](rng, shape), dtype, p.low if not p.closed else None)
    layout = draw(_among(("plain", *dress.LAYOUTS))) if draw(_either) else "plain"
    return x.astype(np.float64), dress.LAYOUTS[layout](x), f"{own}, {dtype}, {layout}"


def _labels(draw, rng, p, sizes):
    classes = sizes[p.classes] if p.classes else 3
    table = values.CLASS_LABELS if p.classes else values.LABELS
    kind = draw(_among(tuple(table)))
    y = table[kind](rng, sizes[p.shape[0]], classes)
    dtype = draw(_among(dress.LABEL_TYPES))
    fits = y.min() >= np.iinfo(dtype).min and y.max() <= np.iinfo(dtype).max
    layout = draw(_among(("plain", *dress.LAYOUTS)))
    return y.tolist(), dress.LAYOUTS[layout](y.astype(dtype if fits else np.int64)), f"{kind}, {dtype}, {layout}"


def _scalar(draw, rng, p, ordinary):
    if p.optional and draw(_either):
        return None, None, "None"
    kinds = values.scalars(p)
    # Half of them typical: what is extreme everywhere shows little else.
    kind = draw(_among(tuple(kinds))) if not ordinary and draw(_either) else "typical"
    x = float(kinds[kind](rng))
    form = draw(_among(tuple(dress.NUMBERS))) if draw(_either) else "float"
    with np.errstate(all="ignore"):
        return x, dress.NUMBERS[form](x), f"{kind}, {form}"


def _choice(draw, p):
    value = draw(_among(p.options))
    form = draw(_either) and isinstance(value, str)
    return value, np.str_(value) if form else value, ""


@st.composite
def cases(draw, loss, ordinary=False):
    """One call of the loss: right values in any dress, and at times one thing that is wrong.

    Parameters
    ----------
    draw : callable
        Hypothesis's.
    loss : Loss
    ordinary : bool
        Only numbers of ordinary size, and nothing wrong.
    """
    rng = np.random.default_rng(draw(_between(0, 2**32 - 1)))
    sizes, present = _sizes(draw, ordinary), _present(draw, loss)
    sizes["E"] = draw(_between(1, 3)) if "center_features" in present else sizes["D"]
    kinds = tuple(values.EMBEDDINGS)[: values.ORDINARY] if ordinary else tuple(values.EMBEDDINGS)
    dtype, kind = draw(_among(DTYPES)), draw(_among(kinds))
    case = Case(loss, {}, {})
    for p in loss.parameters:
        if p.name not in present:
            case.plain[p.name] = None if isinstance(p, Array | Labels) else p.default
            continue
        if isinstance(p, Array):
            made = _array(draw, rng, p, sizes, dtype, kind, ordinary)
        elif isinstance(p, Labels):
            made = _labels(draw, rng, p, sizes)
        else:
            made = _scalar(draw, rng, p, ordinary) if isinstance(p, Scalar) else _choice(draw, p)
        case.plain[p.name], case.given[p.name], case.tags[p.name] = made
    case.may.update(rules.may_be_refused(loss, case.plain))
    case.door = draw(_among(DOORS))
    case.reduction = draw(_among(REDUCTIONS)) if loss.has_rows and case.door != "anatomy" else "mean"
    case.positional = draw(_between(0, 2))
    case.errstate = {} if ordinary else draw(_ERRSTATES)
    case.seed = draw(_between(0, 2**16))
    if draw(_between(0, 7)) == 7:
        case.settings = {
            "block": draw(_between(1, 5)),
            "threads": draw(_between(1, 3)),
            "keep": draw(_among((0, 100))),
        }
    if case.door == "gradient" and case.reduction == "none":
        _draw_cotangent(draw, rng, case, sizes)
    if not ordinary and draw(_between(0, 4)) >= 3:
        _draw_fault(draw, rng, case)
    return case


def _draw_cotangent(draw, rng, case, sizes):
    shape = _row_shape(case, sizes)
    kind = draw(_among(("normal", *COTANGENTS)))
    dtype = draw(_among(("float64", "float32")))
    x = values.in_dtype(COTANGENTS[kind](rng, shape), dtype, None)
    layout = draw(_among(("plain", *dress.LAYOUTS)))
    case.plain_cotangent, case.cotangent = x.astype(np.float64), dress.LAYOUTS[layout](x)
    case.tags["cotangent"] = f"{kind}, {dtype}, {layout}"


def _row_shape(case, sizes):
    """The shape of the rows, from the words of the declaration."""
    first = case.loss.rows.split(")")[0] + ")"
    views = case.plain.get("embeddings")
    sizes = {**sizes, "V": views.shape[1] if views is not None and views.ndim == 3 else 1}
    if case.plain.get("anchor_mode") == "one":
        sizes["V"] = 1
    terms = [term for term in first.strip("()").split(",") if term.strip()]
    return tuple(sum(_product(summand, sizes) for summand in term.split("+")) for term in terms)


def _product(text, sizes):
    out = 1
    for factor in text.replace("2N", "2 N").split():
        out *= int(factor) if factor.isdigit() else sizes[factor]
    return out


def _draw_fault(draw, rng, case):
    """One argument that has to be refused, or may be."""
    kinds = ["parameter"] * 7 + ["call"] + (["cotangent"] if case.door == "gradient" else [])
    kind = draw(_among(tuple(kinds)))
    if kind == "call":
        return _fault_of_call(draw, case)
    if kind == "cotangent":
        return _fault_of_cotangent(draw, rng, case)
    p = draw(st.sampled_from(case.loss.parameters))
    if isinstance(p, Array) and p.name in case.given:
        return _fault_of_array(draw, rng, case, p)
    if isinstance(p, Labels) and p.name in case.given:
        return _fault_of_labels(draw, rng, case, p)
    if isinstance(p, Scalar | Choice):
        return _fault_of_word_or_number(draw, rng, case, p)
    return None


def _set(case, name, value, fault, meaning=None):
    case.given[name], case.tags[name] = value, fault
    if meaning is None:
        case.must[name] = fault
    else:
        case.may[name] = fault
        case.plain[name] = meaning


def _fault_of_array(draw, rng, case, p):
    x = case.plain[p.name]
    own = {}
    if p.low is not None:
        own["below the domain"] = faults._entry(-0.5 if p.closed else 0.0)
    if p.like == "prior":
        own["no distribution"] = lambda rng, x: 2 * x
    if p.required:
        own["None"] = lambda rng, x: None
    shared = _shared_axes(case, p, x)
    table = {**faults.ARRAYS, **own, **{f"axis {axis} longer": _longer(axis) for axis in shared}}
    fault = draw(_among((*table, *faults.MAY)))
    if fault in faults.MAY:
        with np.errstate(all="ignore"):
            value = faults.MAY[fault](rng, x)
            return _set(case, p.name, value, fault, np.asarray(value, dtype=np.float64))
    _set(case, p.name, table[fault](rng, x), fault)
    if fault.startswith("axis"):
        case.must.update(dict.fromkeys(shared[int(fault.split()[1])], fault))
    return None


def _shared_axes(case, p, x):
    """By axis, the other arguments that must have the same size there."""
    letters = p.alternative if x.ndim != len(p.shape) else p.shape
    out = {}
    for axis, letter in enumerate(letters):
        others = [
            q.name
            for q in case.loss.parameters
            if isinstance(q, Array | Labels) and q is not p and q.name in case.given and letter in q.shape
        ]
        if others:
            out[axis] = others
    return out


def _longer(axis):
    return lambda rng, x: np.concatenate([x, np.take(x, [0], axis=axis)], axis=axis)


def _fault_of_labels(draw, rng, case, p):
    y = np.asarray(case.plain[p.name])
    own = {"one longer": lambda rng, y: np.r_[y, y[:1]]}
    if p.classes:
        own["beyond the last class"] = lambda rng, y: np.r_[y[1:], 1000]
        own["below the first class"] = lambda rng, y: np.r_[y[1:], -1]
        own["far below the first class"] = lambda rng, y: np.r_[y[1:], -(2**63)]
    if p.required:
        own["None"] = lambda rng, y: None
    table = {**faults.LABELS, **own}
    fault = draw(_among(tuple(table)))
    _set(case, p.name, table[fault](rng, y), fault)
    if fault == "one longer":
        letter = p.shape[0]
        case.must.update(
            {q.name: fault for q in case.loss.parameters if isinstance(q, Array | Labels) and letter in q.shape}
        )


def _fault_of_word_or_number(draw, rng, case, p):
    table = dict(faults.SCALARS if isinstance(p, Scalar) else faults.WORDS)
    if isinstance(p, Scalar):
        if not p.optional:
            table["None"] = lambda rng, x: None
        if p.low > -math.inf:
            table["below the domain"] = lambda rng, x: math.nextafter(p.low, -math.inf) if p.low_closed else p.low
            table["far below the domain"] = lambda rng, x: p.low - 3
            if not p.low_closed:
                table["minus zero"] = lambda rng, x: -0.0 if p.low == 0 else p.low
        if p.high < math.inf:
            table["above the domain"] = lambda rng, x: math.nextafter(p.high, math.inf) if p.high_closed else p.high
    elif True in p.options:
        table["1"], table["True of NumPy"] = (lambda rng, x: 1), (lambda rng, x: np.True_)
    fault = draw(_among(tuple(table)))
    _set(case, p.name, table[fault](rng, None), fault)


def _fault_of_call(draw, case):
    required = [
        p.name
        for p in case.loss.parameters
        if p.name in case.given
        and (p.required if isinstance(p, Array | Labels) else isinstance(p, Scalar) and p.default is ...)
    ]
    kind = draw(_among(("missing", "unknown", "reduction")))
    if kind == "missing":
        name = draw(_among(tuple(required)))
        del case.given[name]
        case.must[name] = "missing"
    elif kind == "unknown":
        name = draw(_among(("temp", "tau", "weights", "axis", "self", "loss", "arrays", "dtype", "λ", "")))
        case.given[name], case.must[name] = 1.0, "unknown"
    elif case.door in ("gradient", "value"):
        case.reduction, case.cotangent, case.plain_cotangent = (
            draw(st.sampled_from(("avg", None, 3, b"mean", ["mean"], "MEAN", "", np.array(["mean", "sum"]), True))),
            None,
            None,
        )
        case.must["reduction"] = "wrong"


def _fault_of_cotangent(draw, rng, case):
    if case.reduction != "none":
        case.cotangent = np.ones(3)
        case.must["cotangent"] = "without rows"
        return
    table = {**faults.ARRAYS, "one more": lambda rng, x: np.append(x, 1.0), "None": lambda rng, x: None}
    fault = draw(_among(tuple(table)))
    case.cotangent = table[fault](rng, case.plain_cotangent)
    case.must["cotangent"] = case.tags["cotangent"] = fault
