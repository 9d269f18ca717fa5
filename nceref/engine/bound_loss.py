"""A loss with its arguments: checked once, then evaluated, differentiated and analyzed as often as needed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nceref.engine import passes
from nceref.engine.arguments import bind, check_cotangent, checked_cotangent
from nceref.engine.arrays import RangeError, check_finite, in_dtype_of, promoted
from nceref.engine.namespaces import array_namespace
from nceref.engine.plan import Plan
from nceref.engine.scaling import exponent_of
from nceref.errors import InputError
from nceref.spec import Array, Loss, Scalar


@dataclass(frozen=True, eq=False)
class BoundLoss:
    """A declaration with checked arguments, and the plan that they give.

    Attributes
    ----------
    loss : Loss
    arguments : mapping
        Every parameter by name; optional ones that were left out are None.
    """

    loss: Loss
    arguments: Mapping[str, Any]

    @cached_property
    def plan(self) -> Plan:
        """The plan of the loss for these arguments, in the format that computes."""
        # `arguments` keep the dtypes that were given: gradients are returned in those.
        plan: Plan = self.loss.plan(**promoted(self.arguments))
        return plan

    def evaluate(self, reduction: str, keep: bool = False) -> passes.Evaluation:
        """The forward pass; `keep` its tiles for the gradient."""
        with self.naming_arguments():
            return passes.evaluate(self.plan, reduction, keep)

    def value(self, reduction: str) -> Any:
        """The value, or the rows."""
        with self.naming_arguments():
            return passes.evaluate(self.plan, reduction).value(reduction)

    def value_and_grad(self, reduction: str, cotangent: Any) -> tuple[Any, dict[str, Any]]:
        """The value, and the gradients by every differentiable input; of rows those of sum(cotangent * rows)."""
        check_cotangent(self.loss, reduction, cotangent)
        evaluation = self.evaluate(reduction, keep=True)
        checked = None if cotangent is None else checked_cotangent(self.loss, cotangent, evaluation.rows)
        with self.naming_arguments(cotangent=checked):
            return evaluation.value(reduction), self.gradients(evaluation, checked)

    def gradients(self, evaluation: passes.Evaluation, cotangent: Any = None) -> dict[str, Any]:
        """Gradients by the inputs that have one, in their dtypes, from an evaluation that kept its tiles.

        `cotangent`: one number a row; without it the gradient is that of the reduced value. Raises `RangeError` if a
        gradient leaves the range of its dtype.
        """
        by_name = evaluation.gradients(cotangent)
        names = [name for name in self.loss.differentiable if name in by_name]
        grads = {name: in_dtype_of(self.arguments[name], by_name[name]) for name in names}
        # After the cast: the dtype of the input may be narrower than the one that computed.
        for name, grad in grads.items():
            check_finite(grad, f"the gradient of `{name}`")
        return grads

    def in_memory(self) -> "BoundLoss":
        """The loss itself, as all of its arguments are in memory."""
        return self

    @contextmanager
    def naming_arguments(self, **more: Any) -> Iterator[None]:
        """Context in which a number beyond the range of a dtype is blamed on the argument that is farthest from 1.

        Parameters
        ----------
        **more : array or None
            Arguments of the call that are none of the loss, by name.
        """
        try:
            yield
        except RangeError as error:
            name, size = self.farthest(str(error), **more)
            msg = f"{error}; farthest from 1 is `{name}` with {size:.3g}: {self.remedy(str(error), name, size)}"
            raise InputError(msg) from None

    def farthest(self, what: str = "", **more: Any) -> tuple[str, float]:
        """The argument whose largest number is farthest from 1, with that number.

        Parameters
        ----------
        what : str
            What is too large: rows that are normalized have no part in it, but for a gradient by them.
        **more : array or None
            As of `naming_arguments`.
        """
        given: dict[str, Any] = {p.name: self.arguments[p.name] for p in self._numbers()}
        largest = {name: _largest(x) for name, x in (given | more).items() if x is not None}
        scaled = {p.name for p in self._numbers() if isinstance(p, Array) and p.embedding and self._normalized}
        blamed = [name for name in largest if name not in scaled or f"`{name}`" in what] or list(largest)
        name = max(blamed, key=lambda name: abs(exponent_of(largest[name] or 1.0)))
        return name, largest[name]

    def _numbers(self) -> list[Array | Scalar]:
        return [p for p in self.loss.parameters if isinstance(p, Array | Scalar)]

    @property
    def _normalized(self) -> bool:
        return self.arguments.get("normalize") == "l2"

    def remedy(self, what: str, name: str, size: float) -> str:
        """The remedy for an argument as `farthest` names it; `what` ends in the dtype whose range was left."""
        parameter = {p.name: p for p in self._numbers()}.get(name)
        up, down = ("raise it", "lower it") if isinstance(parameter, Scalar) else ("scale it up", "scale it down")
        negative = isinstance(parameter, Scalar) and self.arguments[name] < 0
        ways = [up if (size < 1) != negative else down]
        if isinstance(parameter, Array) and parameter.embedding and "normalize" in self.arguments:
            ways += [] if self._normalized else ["pass normalize='l2'"]
        if not what.endswith("float64"):
            ways.append("pass float64 arrays")
        return " or ".join(ways)


def _largest(x: Any) -> float:
    return abs(x) if isinstance(x, float) else float(array_namespace(x).max(array_namespace(x).abs(x)))


def bound_loss(loss: Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundLoss:
    """Check the arguments of a loss.

    Parameters
    ----------
    loss : Loss
    args, kwargs : tuple, mapping
        Its arguments by position and by name.

    Raises
    ------
    InputError
        For an argument that the loss refuses.
    """
    return BoundLoss(loss, bind(loss, args, kwargs))
