"""A loss with its arguments: checked once, then evaluated, differentiated and analyzed as often as needed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nceref.engine import passes
from nceref.engine.arguments import bind
from nceref.engine.arrays import promoted
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
        """Who is compared with whom, in the format that computes."""
        # `arguments` keep the dtypes that were given: gradients are returned in those.
        plan: Plan = self.loss.plan(**promoted(self.arguments))
        return plan

    def evaluate(self, reduction: str, keep: bool = False) -> passes.Evaluation:
        """The forward pass; `keep` its tiles for the gradient."""
        with self.naming_arguments():
            return passes.evaluate(self.plan, reduction, keep)

    @contextmanager
    def naming_arguments(self) -> Iterator[None]:
        """Within it, what leaves the range of a dtype is blamed on the argument that is farthest from 1."""
        try:
            yield
        except passes.RangeError as error:
            msg = f"{error}; farthest from 1 is {self._farthest()}"
            raise InputError(msg) from None

    def _farthest(self) -> str:
        """The argument whose largest number is farthest from 1, with that number."""
        largest = {}
        for parameter in self.loss.parameters:
            x = self.arguments[parameter.name]
            if isinstance(parameter, Array | Scalar) and x is not None:
                xp = None if isinstance(x, float) else array_namespace(x)
                largest[parameter.name] = abs(x) if xp is None else float(xp.max(xp.abs(x)))
        name = max(largest, key=lambda name: abs(exponent_of(largest[name] or 1.0)))
        return f"`{name}` with {largest[name]:.3g}"


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
