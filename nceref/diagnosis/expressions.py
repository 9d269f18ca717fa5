"""Measured numbers as expressions in sizes and scalars: N, 2N - 1, T, e^(1/T), log N and what else losses have."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.diagnosis.simple_numbers import recognized
from nceref.diagnosis.tape import Variable

Values = Mapping[str, Any]
EXACT = 1e-7
"""Relative distance at which measured numbers are taken for equal, where they are known better than that."""


@dataclass(frozen=True)
class Exponential:
    """The exponential of a sum, as a quantity of a product."""

    of: "tuple[Product, ...]"


@dataclass(frozen=True)
class Product:
    """A number times powers of named quantities: `(name, power)`, such as ``("2N - 1", -1)``."""

    number: float
    factors: "Factors" = ()

    def value(self, values: Values) -> Any:
        """The value at these sizes and scalars."""
        return self.number * math.prod(quantity(name, values) ** power for name, power in self.factors)


Factors = tuple[tuple[str | Exponential, float], ...]
Expression = tuple[Product, ...]
"""A sum of terms; no term is 0."""


def value_of(expression: Expression, values: Values) -> Any:
    """The value of an expression at these sizes and scalars, which may be variables of a tape."""
    return sum(term.value(values) for term in expression)


def quantity(name: str | Exponential, values: Values) -> Any:
    """A quantity at these sizes and scalars: a symbol, one of `QUANTITIES`, or an exponential."""
    if isinstance(name, Exponential):
        return _exp(value_of(name.of, values))
    return QUANTITIES[name](values) if name in QUANTITIES else values[name]


def _exp(x: Any) -> Any:
    return np.exp(x) if isinstance(x, Variable) else math.exp(x)


def _log(x: Any) -> Any:
    return np.log(x) if isinstance(x, Variable) else math.log(x)


def is_plain(expression: Expression) -> bool:
    """Whether it has simple numbers and no exponentials.

    >>> is_plain((Product(0.1),)), is_plain((Product(0.1), Product(1.10517)))
    (True, False)
    >>> is_plain((Product(0.1, (("T", 1.0), ("e^(1/T)", 1.0))),))
    False
    """
    names = [name for term in expression for name, _ in term.factors]
    return all(_simple(term.number, 1e-12)[1] for term in expression) and not any(
        isinstance(name, Exponential) or name in _EXPONENTIALS for name in names
    )


def joined(factors: "Factors", more: "Factors") -> "Factors":
    """The product of both, in the order in which it is written."""
    powers: dict[Any, float] = {}
    for name, power in (*factors, *more):
        powers[name] = powers.get(name, 0.0) + power
    return tuple(sorted(((n, p) for n, p in powers.items() if p), key=lambda x: _rank(x[0])))


_COMPOUND, _SUM = re.compile(r"[ (]"), re.compile(r" [+-] ")


def written(expression: Expression) -> str:
    """An expression in plain text: ``3/N``, ``-2/(2N - 1)``, ``2 (N - 1)``, ``1/T + log N``; ``0`` for no term."""
    out = ""
    for term in expression:
        text = _term(term)
        out += f" - {text[1:]}" if out and text.startswith("-") else f" + {text}" if out else text
    return out or "0"


def _term(term: Product) -> str:
    sign, number = "-" * (term.number < 0), abs(term.number)
    near = Fraction(number).limit_denominator(64)
    top, bottom = [], []
    if abs(float(near) - number) <= 1e-12 * number:
        top += [str(near.numerator)] * (near.numerator != 1)
        bottom += [str(near.denominator)] * (near.denominator != 1)
    else:
        top.append(recognized(number, 1e-12)[1])
    for name, power in term.factors:
        if isinstance(name, Exponential):
            top.append(f"e^({written(scaled(name.of, power))})")
            continue
        beside = len(term.factors) > 1 or power < 0 or (term.number * power != 1 and _SUM.search(name))
        (top if power > 0 else bottom).append(_power(name, abs(power), bool(beside)))
    over, under = " ".join(top) or "1", " ".join(bottom)
    compound = len(bottom) > 1 or (_COMPOUND.search(under) and not under.endswith(")"))
    return sign + (f"{over}/{f'({under})' if compound else under}" if under else over)


def _power(name: str, power: float, inside: bool) -> str:
    name = "|P(i)|" if name == "P" else name.replace("P + 1", "|P(i)| + 1")
    if power == 0.5:
        return f"sqrt({name})"
    wrapped = f"({name})" if " " in name and not name.endswith(")") and inside else name
    return wrapped if power == 1 else f"{wrapped}^{power:g}"


def _rank(name: "str | Exponential") -> tuple[int, str]:
    """Sizes first, then what divides or multiplies similarities."""
    text = str(name)
    return (0 if text[0] in "CKMNPV" else 1 if text in _SHARPNESS else 2), text


def scaled(expression: Expression, factor: float) -> Expression:
    """A multiple of an expression."""
    return tuple(Product(term.number * factor, term.factors) for term in expression)


_SIZES: dict[str, Callable[[Values], float]] = {
    "N - 1": lambda v: v["N"] - 1, "N + 1": lambda v: v["N"] + 1, "2N": lambda v: 2 * v["N"],
    "2N - 1": lambda v: 2 * v["N"] - 1, "2N - 2": lambda v: 2 * v["N"] - 2,
    "M + 1": lambda v: v["M"] + 1, "K + 1": lambda v: v["K"] + 1, "C - 1": lambda v: v["C"] - 1,
    "P + 1": lambda v: v["P"] + 1, "N + M": lambda v: v["N"] + v["M"], "N + K": lambda v: v["N"] + v["K"],
}  # fmt: skip
_EXPONENTIALS: dict[str, Callable[[Values], float]] = {
    "e^(1/T)": lambda v: _exp(1 / v["T"]), "e^(-1/T)": lambda v: _exp(-1 / v["T"]),
    "e^t": lambda v: _exp(v["t"]),
}  # fmt: skip
_LOGARITHMS: dict[str, Callable[[Values], float]] = {
    f"log {name}" if " " not in name else f"log({name})": lambda v, name=name: _log(quantity(name, v))  # type: ignore[misc]
    for name in ("N", "N - 1", "2N", "2N - 1", "2N - 2", "M", "M + 1", "K", "K + 1", "C", "T", "t")
}
_LOGARITHMS["log(N(N - 1)/2)"] = lambda v: math.log(v["N"] * (v["N"] - 1) / 2)
QUANTITIES: dict[str, Callable[[Values], float]] = {**_SIZES, **_EXPONENTIALS, **_LOGARITHMS}
_SHARPNESS = ("T", "t", "s")


def expression_of(values: Sequence[float], off: Sequence[float], where: Sequence[Values]) -> Expression | None:
    """The simplest expression that has these values.

    `values` and `off`: measured at each of `where`, and how far each may be off. `where`: sizes and scalars. Result:
    none where none fits, or too little was measured to tell.
    """
    v = np.asarray(values)
    room = np.maximum(np.asarray(off), EXACT * np.maximum(np.abs(v), 1e-3))
    if np.all(np.abs(v) <= np.maximum(np.asarray(off), 1e-9)):
        return ()
    if len(v) < 3:
        return None
    if np.all(np.abs(v) > room):
        single = _single(v, room, where)
        if single is not None:
            return single
        if np.all(v > 0) and (power := _single(np.log(v), room / v, where)) is not None:
            return (Product(1.0, ((Exponential(power), 1.0),)),)
    return _sum(v, room, where) if len(v) >= 4 else None


def has_expression(values: Sequence[float], off: Sequence[float], where: Sequence[Values]) -> bool:
    """Whether there may be an expression: not, where none fits some of the values, and then none fits all of them.

    `values` and `off` and `where`: as for `expression_of`, of at least three places.
    """
    v = np.asarray(values)
    # What fits all places best may fit some of them less well than what fits these best.
    room = 3 * np.maximum(np.asarray(off), EXACT * np.maximum(np.abs(v), 1e-3))
    if np.any(np.abs(v) <= room):
        return True
    if any(_products(v, room, where)) or (np.all(v > 0) and any(_products(np.log(v), room / v, where))):
        return True
    return any(len(_near_sums(v / scale, room / scale, where)[0]) for _, scale in _scales(where))


def _products(v: Any, room: Any, where: Sequence[Values]) -> Iterator[tuple[Factors, float, Any]]:
    """Products of three quantities with a constant ratio to the values; that ratio, and their values."""
    factors, e = _multiplied(_by_name(where))
    with np.errstate(all="ignore"):
        # Of q e = v - r with |r| <= room the ratio of two places is that of v up to twice the sum of these shares.
        share = room[:2] / np.abs(v[:2])
        off = np.abs(e[:, 1] / e[:, 0] * (v[0] / v[1]) - 1)
        (near,) = np.nonzero((off <= 2 * np.sum(share)) | (np.max(share) >= 0.5))
        e = e[near]
        ratio = v / e
        weight = (np.abs(e) / room) ** 2
        q = np.sum(weight * ratio, axis=-1) / np.sum(weight, axis=-1)
        fits = np.all(np.abs(v - q[..., None] * e) <= room, axis=-1)
    for at in map(int, np.flatnonzero(fits)):
        yield factors(int(near[at])), float(q[at]), e[at]


def _single(v: Any, room: Any, where: Sequence[Values]) -> Expression | None:
    """One term: of all products whose ratio to the values is constant, the simplest."""
    best: tuple[Any, Expression] | None = None
    for factors, q, e in _products(v, room, where):
        number, simple = _simple(q, float(np.min(room / np.abs(e))))
        cost = sum(1 + 0.1 * len(str(name)) + 0.2 * abs(abs(p) - 1) for name, p in factors)
        if best is None or (not simple, cost) < best[0]:
            best = (not simple, cost), (Product(number, factors),)
    return None if best is None else best[1]


_Places = tuple[tuple[tuple[str, float], ...], ...]


def _by_name(where: Sequence[Values]) -> _Places:
    return tuple(tuple(sorted(values.items())) for values in where)


# All constants of a search are measured at the same places, or at the first of them.
@lru_cache(maxsize=8)
def _multiplied(where: _Places) -> tuple[Callable[[int], Factors], Any]:
    """The factors of a product of three quantities by its number, and the values of all, (products, places)."""
    places = [dict(values) for values in where]
    (a, x), (b, y), (c, z) = (_finite(kinds, places) for kinds in _quantities(places))
    e = x[:, None, None] * y[:, None] * z

    def factors(number: int) -> Factors:
        i, j, k = np.unravel_index(number, e.shape[:3])
        return joined((*a[i], *b[j]), c[k])

    return factors, e.reshape(-1, len(places))


def _finite(kinds: list[Factors], where: Sequence[Values]) -> tuple[list[Factors], Any]:
    """The quantities that are finite and not 0 everywhere, with their values, (quantities, places)."""
    kept, rows = [], []
    for factors in kinds:
        try:
            row = [Product(1.0, factors).value(w) for w in where]
        except (KeyError, OverflowError, ValueError, ZeroDivisionError):
            continue
        if all(math.isfinite(x) and x != 0 and not isinstance(x, complex) for x in row):
            kept.append(factors)
            rows.append(row)
    return kept, np.array(rows)


def _quantities(where: Sequence[Values]) -> tuple[list[Factors], list[Factors], list[Factors]]:
    """Sizes, powers of the temperature or scale, and one more quantity: what the products are of."""
    known = sorted(set.intersection(*(set(w) for w in where)))
    letters = ("N", "M", "K", "C", "V")
    sizes: list[Factors] = [(), *(((x, p),) for x in (*letters, *_SIZES) for p in (1.0, -1.0)), (("N", -2.0),)]
    sizes += [(("N", -1.0), (x, p)) for x in (*letters[1:], "P", *_SIZES) for p in (1.0, -1.0)]
    powers: list[Factors] = [(), *(((x, p),) for x in _SHARPNESS for p in (-1.0, 1.0, -2.0, 2.0, -0.5, 0.5))]
    rest: list[Factors] = [(), *((("D", p),) for p in (-0.5, 0.5, -1.0, 1.0))]
    rest += [((x, 1.0),) for x in (*_EXPONENTIALS, *_LOGARITHMS)] + [((x, -1.0),) for x in _LOGARITHMS]
    rest += [((x, p),) for x in known if x not in (*letters, *_SHARPNESS, "D") for p in (1.0, -1.0)]
    return sizes, powers, rest


def _simple(q: float, room: float) -> tuple[float, bool]:
    """A simple number within the room, or the number itself."""
    near, words = recognized(q, max(room / abs(q), 1e-12))
    unknown = words == f"{q:.6g}" and float(words) != near
    return (q, False) if unknown else (near, True)


def _can(name: str | Exponential, where: Sequence[Values]) -> bool:
    try:
        return all(math.isfinite(quantity(name, w)) for w in where)
    except (KeyError, OverflowError, ValueError):
        return False


_ADDED: tuple[tuple[tuple[str, float], ...], ...] = (
    (), (("N", 1.0),), (("N", -1.0),), (("C", -1.0),), *(((x, 1.0),) for x in _LOGARITHMS),
    (("T", -1.0),), (("T", 1.0),), (("t", 1.0),),
    (("e^(1/T)", 1.0),), (("e^(-1/T)", 1.0),), (("b", 1.0),), (("m", 1.0),), (("s", 1.0), ("m", 1.0)), (("P", 1.0),),
)  # fmt: skip


def _sum(v: Any, room: Any, where: Sequence[Values]) -> Expression | None:
    """Two terms with simple coefficients."""
    for outer, scale in _scales(where):
        inner = _two_terms(v / scale, room / scale, where)
        if inner is not None:
            return tuple(Product(t.number, joined(t.factors, outer)) for t in inner)
    return None


_OUTER: tuple[Factors, ...] = ((), (("N", -1.0),), (("N", -1.0), ("T", -1.0)), (("N", -1.0), ("t", 1.0)))


def _scales(where: Sequence[Values]) -> Iterator[tuple[Factors, Any]]:
    """Factors that may stand before a sum, with their values."""
    for outer in _OUTER:
        if all(_can(name, where) for name, _ in outer):
            yield outer, np.array([Product(1.0, outer).value(w) for w in where])


def _near_sums(v: Any, room: Any, where: Sequence[Values]) -> tuple[Any, Any]:
    """Pairs of `_ADDED` that fit, by their numbers, and their coefficients."""
    columns, pairs, minors, noise = _paired(_by_name(where))
    # Of v = a q + r with |r| <= room the determinant of a and v at three places is that of a and r: twice, for rounding
    # of the fit, and what that of the minors may add.
    near = np.abs(minors @ v[:3]) <= 2 * np.abs(minors) @ room[:3] + noise @ np.abs(v[:3])
    pairs = pairs[near]
    a = np.moveaxis(columns[pairs], 1, 2) / room[:, None]
    apart = np.linalg.matrix_rank(a, 1e-9) == 2
    a, pairs = a[apart], pairs[apart]
    q = (np.linalg.pinv(a, rcond=_RANK * len(v)) @ (v / room)[:, None])[..., 0]
    off = np.abs((a @ q[..., None])[..., 0] - v / room)
    fits = np.all(off <= 1, axis=-1) & np.all(np.abs(q) >= 1e-9, axis=-1)
    return pairs[fits], q[fits]


@lru_cache(maxsize=8)
def _paired(where: _Places) -> tuple[Any, Any, Any, Any]:
    """Values of `_summands`, all pairs of them, their minors of the first three places, and how far these are off."""
    _, columns = _summands(where)
    first, second = np.tril_indices(len(columns), -1)
    pairs = np.stack([second, first], axis=1)
    (x, y), turned = (columns[each, :3] for each in (second, first)), np.array([[1, 2, 0], [2, 0, 1]])
    above, below = (x[:, turned[at]] * y[:, turned[1 - at]] for at in (0, 1))
    return columns, pairs, above - below, 8 * _RANK * (np.abs(above) + np.abs(below))


_RANK = float(np.finfo(np.float64).eps)


@lru_cache(maxsize=8)
def _summands(where: _Places) -> tuple[list[Factors], Any]:
    """The members of `_ADDED` that have a value everywhere, with their values, (summands, places)."""
    places = [dict(values) for values in where]
    usable: list[Factors] = [f for f in _ADDED if all(_can(name, places) for name, _ in f)]
    return usable, np.array([[Product(1.0, f).value(w) for w in places] for f in usable])


def _two_terms(v: Any, room: Any, where: Sequence[Values]) -> Expression | None:
    usable, _ = _summands(_by_name(where))
    fits: list[tuple[int, Expression]] = []
    for pair, q in zip(*_near_sums(v, room, where), strict=True):
        shaped = [_simple(float(x), float(np.min(room)) * 3) for x in q]
        if all(simple for _, simple in shaped):
            first, second = (usable[k] for k in pair)
            expression = (Product(shaped[0][0], first), Product(shaped[1][0], second))
            fits.append((len(first) + len(second), expression))
    return min(fits, key=lambda x: x[0])[1] if fits else None
