"""Sums of linear terms and of logarithms of sums of exponentials, and their fit to measured values.

    f = offset - sum_p A_p s_p + sum_g B_g log( d_g + sum_(m in g) c_m exp(b_m s_m) )

Equal letters share a number: a model says which, by indices into the numbers of each kind.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

_STEEP = 300.0
"""Exponents beyond this are cut: a step that leads there is refused."""
_MOST = 100
KINDS = ("offset", "A", "B", "d", "c", "b")


@dataclass(frozen=True, eq=False)
class Model:
    """Numbers of a formula by place.

    Attributes
    ----------
    linear : (P,) array of int
        Of each pair, its A; -1 for none.
    group : (M,) array of int
        Of each member, its group.
    pair : (M,) array of int
        Of each member, its pair.
    c, b : (M,) array of int
        Of each member, its c and its b.
    B, d : (G,) array of int
        Of each group, its B and its d; -1 for no d.
    numbers : mapping
        Kind to the numbers.
    fixed : mapping
        Kind to which of them stay as they are.
    """

    linear: Any
    group: Any
    pair: Any
    c: Any
    b: Any
    B: Any
    d: Any
    numbers: dict[str, Any]
    fixed: dict[str, Any]

    @cached_property
    def _ties(self) -> dict[str, Any]:
        """One-hot rows: which places have which number."""
        sizes = {k: self.numbers[k].size for k in KINDS}
        ties = {k: _tie(getattr(self, k), sizes[k]) for k in ("B", "d", "c", "b")}
        return {**ties, "A": _tie(self.linear, sizes["A"]), "group": _tie(self.group, self.B.size)}

    def value(self, s: Any) -> Any:
        """Values at similarities of shape (calls, P)."""
        return self._parts(s)[0]

    def _parts(self, s: Any) -> tuple[Any, ...]:
        n = self.numbers
        e = np.exp(np.clip(n["b"][self.b] * s[:, self.pair], -_STEEP, _STEEP))
        terms = n["c"][self.c] * e
        z = self._ties["d"] @ n["d"] + terms @ self._ties["group"]
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(z)
        pulls = s @ self._ties["A"]
        return n["offset"][0] - pulls @ n["A"] + logs @ n["B"][self.B], pulls, logs, z, e, terms

    def jacobian(self, s: Any) -> tuple[Any, Any]:
        """Values, and their derivatives by the numbers that are free."""
        n = self.numbers
        value, pulls, logs, z, e, terms = self._parts(s)
        over = n["B"][self.B] / z
        columns = {
            "offset": np.ones((len(s), 1)),
            "A": -pulls,
            "B": logs @ self._ties["B"],
            "d": over @ self._ties["d"],
            "c": (over[:, self.group] * e) @ self._ties["c"],
            "b": (over[:, self.group] * terms * s[:, self.pair]) @ self._ties["b"],
        }
        return value, np.concatenate([columns[k][:, ~self.fixed[k]] for k in KINDS], axis=1)

    @property
    def free(self) -> Any:
        """The free numbers in a row."""
        return np.concatenate([self.numbers[k][~self.fixed[k]] for k in KINDS])

    def moved(self, free: Any) -> "Model":
        """The model with other free numbers."""
        out, start = {}, 0
        for k in KINDS:
            out[k] = self.numbers[k].copy()
            size = int(np.sum(~self.fixed[k]))
            out[k][~self.fixed[k]] = free[start : start + size]
            start += size
        return self.with_numbers(out)

    def with_numbers(self, numbers: dict[str, Any]) -> "Model":
        """The same places with other numbers."""
        other = replace(self, numbers=numbers)
        vars(other)["_ties"] = self._ties
        return other


def _tie(index: Any, size: int) -> Any:
    """One-hot rows; a row of zeros for -1."""
    out = np.zeros((len(index), size))
    there = np.flatnonzero(index >= 0)
    out[there, index[there]] = 1.0
    return out


def solved(model: Model, s: Any, y: Any) -> Model:
    """The model with the numbers that enter linearly (offset, A, B) at their least squares."""
    linear = {k: model.fixed[k] if k in ("offset", "A", "B") else np.ones_like(model.fixed[k]) for k in KINDS}
    part = replace(model, fixed=linear)
    value, columns = part.jacobian(s)
    rest = y - value + columns @ part.free
    # Weights that leave the range have no least squares: the start stays as it is.
    if not (np.all(np.isfinite(columns)) and np.all(np.isfinite(rest))):
        return model
    best = np.linalg.lstsq(columns, rest, rcond=1e-10)[0]
    return model.with_numbers(part.moved(best).numbers)


def fitted(model: Model, s: Any, y: Any, noise: float, patience: int = 14) -> tuple[Model, float]:
    """Levenberg and Marquardt: the numbers that fit best from this start, and the largest residual.

    `s`: similarities. `y`: values. `noise`: residual at which to stop. `patience`: steps after which progress must be
    fast.
    """
    with np.errstate(all="ignore"):
        return _fitted(model, s, y, noise, patience)


def _fitted(model: Model, s: Any, y: Any, noise: float, patience: int) -> tuple[Model, float]:
    value, columns = model.jacobian(s)
    costs: list[float] = []
    cost, damping = float(np.sum((value - y) ** 2)), 1e-3
    for step in range(_MOST):
        if not np.all(np.isfinite(columns)):
            return model, np.inf
        size = np.linalg.norm(columns, axis=0) + 1e-300
        # By singular values: the square of the columns would lose half of the digits.
        left, w, right = np.linalg.svd(columns / size, full_matrices=False)
        along = left.T @ (y - value)
        improved = False
        for _ in range(8):
            move = right.T @ (w / (w * w + damping) * along) / size
            trial = model.moved(model.free + move)
            there = trial.value(s)
            new = float(np.sum((there - y) ** 2))
            if new < cost:
                improved = True
                break
            damping = damping * 8 + 1e-16
        if not improved:
            break
        gain, model, damping = cost / max(new, 1e-300), trial, max(damping / 20, 1e-18)
        value, columns = model.jacobian(s)
        cost = new
        if np.max(np.abs(value - y)) <= noise and gain < 1.5:
            break
        costs.append(cost)
        if step >= patience and costs[-8] < 3 * cost:
            break
    return model, float(np.max(np.abs(value - y)))
