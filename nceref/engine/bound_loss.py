"""A loss with its arguments: checked once, then evaluated, differentiated and analyzed as often as needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nceref.engine import passes
from nceref.engine.arguments import bind
from nceref.engine.arrays import promoted
from nceref.engine.plan import Plan
from nceref.spec import Loss


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
        return passes.evaluate(self.plan, reduction, keep)


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
