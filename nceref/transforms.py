"""Losses that are sums of calls of a loss: Matryoshka, and the steps of gradient accumulation.

    matryoshka:   sum_d w_d L(x[:, :d]),      rows cut to their first d features
    accumulated:  (1 / k) sum_c L(x_c),       x_c the samples of step c, each compared with its own step only

Accumulation in k steps is the loss of the whole batch where a row depends on its sample alone. A loss with in-batch
negatives loses those of other steps: for InfoNCE the value is lower by the mean of log(Z_i / Z_ic), Z_i the
denominator of row i and Z_ic the part of it that is in the row's own step; at chance that is log k. Gradient caching
(GradCache) computes the same rows in chunks and compares all of them: what it must equal is the loss itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.arguments import bind, integer, refuse_other_libraries
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.losses import LossFunction, get_loss
from nceref.spec import Array, Labels
from nceref.tolerance import Bounds, bounds

Call = tuple[float, dict[str, Any], Mapping[str, Any]]
"""Weight of a call, its arguments, and where each of them stands in the whole: what indexes the whole array."""


@dataclass(frozen=True)
class Transformed:
    """A weighted sum of calls of one loss, each on a part of every argument.

    Attributes
    ----------
    loss : LossFunction
    words : str
        What is summed.
    calls : callable
        The calls that given arguments lead to.
    """

    loss: LossFunction
    words: str
    calls: Callable[[dict[str, Any]], list[Call]]

    def __repr__(self) -> str:
        return f"<nceref {self.words} of {self.loss.name}>"

    @entry_point
    def __call__(self, /, *arrays: Any, reduction: str = "mean", **arguments: Any) -> float:
        """Value, a float.

        Parameters
        ----------
        *arrays, **arguments
            The arguments of the loss.
        reduction : {"mean", "sum"}
            Of the rows of each call.

        Raises
        ------
        InputError
            For any argument that a call of the loss cannot take.
        """
        _check_reduction(reduction)
        calls = self.calls(self._bound(arrays, arguments))
        return math.fsum(weight * self.loss(**part, reduction=reduction) for weight, part, _ in calls)

    @entry_point
    def value_and_grad(
        self, /, *arrays: Any, reduction: str = "mean", **arguments: Any
    ) -> tuple[float, dict[str, Any]]:
        """Value, and its gradient by every differentiable input, in the shape of the input.

        Parameters
        ----------
        *arrays, **arguments
            The arguments of the loss.
        reduction : {"mean", "sum"}
            Of the rows of each call.

        Returns
        -------
        value : float
        grad : dict

        Raises
        ------
        InputError
            For any argument that a call of the loss cannot take.
        """
        _check_reduction(reduction)
        given = self._bound(arrays, arguments)
        values: list[float] = []
        total: dict[str, Any] = {}
        for weight, part, places in self.calls(given):
            value, grads = self.loss.value_and_grad(**part, reduction=reduction)
            values.append(weight * value)
            _add(total, grads, weight, places, given)
        return math.fsum(values), total

    @entry_point
    def bounds(self, /, *arrays: Any, **arguments: Any) -> Bounds:
        """Bounds of the errors of value and gradients under the mean: the weighted sums of those of the calls."""
        given = self._bound(arrays, arguments)
        value = 0.0
        total: dict[str, Any] = {}
        for weight, part, places in self.calls(given):
            allowed = bounds(self.loss, **part)
            value += abs(weight) * float(allowed.value)
            _add(total, allowed.grads, abs(weight), places, given)
        return Bounds(value, total, {})

    def _bound(self, arrays: tuple[Any, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Every argument by name, checked as a whole before it is cut."""
        given = bind(self.loss.declaration, arrays, arguments)
        refuse_other_libraries(given, "sums of calls")
        return given


def _check_reduction(reduction: str) -> None:
    if reduction not in ("mean", "sum"):
        msg = f"`reduction` must be 'mean' or 'sum', got {reduction!r}: rows of different calls have no common array"
        raise InputError(msg)


def _add(
    total: dict[str, Any], grads: Mapping[str, Any], weight: float, places: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Add the gradients of a call, each at its place in the whole."""
    for name, grad in grads.items():
        if name in places:
            whole = total.setdefault(name, np.zeros(given[name].shape, dtype=np.asarray(grad).dtype))
            whole[places[name]] += weight * grad
        else:
            total[name] = total.get(name, 0.0) + weight * grad


def matryoshka(loss: Any, dims: Sequence[int], weights: Sequence[float] | None = None) -> Transformed:
    """Sum of a loss over the first features of its rows (Matryoshka representation learning).

    Rows are cut first and scaled to length 1 then, where the loss does that.

    Parameters
    ----------
    loss : str or LossFunction
        A loss, by any name that `nceref.get_loss` knows.
    dims : sequence of int
        How many features each call has, such as ``(768, 256, 64)``.
    weights : sequence of float, optional
        One a call; default: 1. ``[1 / len(dims)] * len(dims)`` is the mean.

    Returns
    -------
    Transformed
        Takes the arguments of the loss; has `value_and_grad` and `bounds`.

    Raises
    ------
    InputError
        For dims that are no positive integers or come twice, for other numbers of weights than of dims, and, at a call,
        for rows of fewer features.

    Examples
    --------
    >>> import numpy as np
    >>> import nceref
    >>> from nceref.transforms import matryoshka
    >>> x, y = np.eye(4), np.ones((4, 4))
    >>> both = matryoshka("info_nce", dims=(4, 2), weights=(1.0, 0.5))
    >>> apart = nceref.losses.info_nce(x + y, y + x.T, temperature=1.0)
    >>> cut = nceref.losses.info_nce((x + y)[:, :2], (y + x.T)[:, :2], temperature=1.0)
    >>> bool(np.isclose(both(x + y, y + x.T, temperature=1.0), apart + 0.5 * cut))
    True
    """
    known = _known(loss)
    sizes = [integer("each of `dims`", d, 1) for d in dims]
    if not sizes or len({*sizes}) < len(sizes):
        msg = f"`dims` must be different numbers of features, at least one, got {tuple(dims)!r}"
        raise InputError(msg)
    factors = [1.0] * len(sizes) if weights is None else [float(w) for w in weights]
    if len(factors) != len(sizes) or not all(map(math.isfinite, factors)):
        msg = f"`weights` must be {len(sizes)} finite numbers, one for each of `dims`, got {weights!r}"
        raise InputError(msg)
    rows = [p.name for p in known.parameters if isinstance(p, Array) and p.shape[-1] == "D"]
    if not rows:
        msg = f"`loss`: {known.name} has no rows of features that could be cut; give one of embeddings, such as 'mnrl'"
        raise InputError(msg)

    def calls(given: dict[str, Any]) -> list[Call]:
        cut = [name for name in rows if given[name] is not None]
        for name in cut:
            if given[name].shape[-1] < max(sizes):
                msg = f"`{name}` has {given[name].shape[-1]} features, and `dims` asks for {max(sizes)}; leave that out"
                raise InputError(msg)
        places = [{name: (..., slice(d)) for name in cut} for d in sizes]
        return [(w, _parts(given, place), place) for w, place in zip(factors, places, strict=True)]

    return Transformed(known, f"Matryoshka sum over {', '.join(map(str, sizes))} features", calls)


def accumulated(loss: Any, steps: int) -> Transformed:
    """Mean of a loss over steps of equally many samples, as plain gradient accumulation computes it.

    Arrays with one entry or row a sample are cut; class weights, centers, a queue and scalars are those of every step.

    Parameters
    ----------
    loss : str or LossFunction
        A loss, by any name that `nceref.get_loss` knows.
    steps : int
        How many steps there are.

    Returns
    -------
    Transformed
        Takes the arguments of the loss for the whole batch; has `value_and_grad` and `bounds`.

    Raises
    ------
    InputError
        For a number of steps below 1, and, at a call, for a batch that does not divide into them.

    Examples
    --------
    >>> import numpy as np
    >>> import nceref
    >>> from nceref.transforms import accumulated
    >>> same = np.ones((8, 3))
    >>> lost = nceref.losses.info_nce(same, same, temperature=1.0) - accumulated("info_nce", 4)(
    ...     same, same, temperature=1.0
    ... )
    >>> bool(np.isclose(lost, np.log(4)))
    True
    """
    known, count = _known(loss), integer("`steps`", steps, 1)
    shapes = {p.name: p.shape for p in known.parameters if isinstance(p, Array | Labels)}
    by_sample = {name: shape for name, shape in shapes.items() if shape and shape[0] == "N"}

    def calls(given: dict[str, Any]) -> list[Call]:
        cut = {name: shape for name, shape in by_sample.items() if given[name] is not None}
        n = next((given[name].shape[0] for name in cut), 0)
        if n < count or n % count:
            msg = f"{n} samples do not divide into {count} steps; pass a batch of a multiple of `steps`"
            raise InputError(msg)
        size = n // count
        out: list[Call] = []
        for start in range(0, n, size):
            own = slice(start, start + size)
            # A table of samples against samples is cut along both.
            places = {name: (own, own) if shape[1:2] == ("N",) else (own,) for name, shape in cut.items()}
            out.append((1 / count, _parts(given, places), places))
        return out

    return Transformed(known, f"mean over {count} steps", calls)


def _known(loss: Any) -> LossFunction:
    return loss if isinstance(loss, LossFunction) else get_loss(loss)


def _parts(given: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
    return {**given, **{name: given[name][place] for name, place in places.items()}}
