"""A target in steps, as a training loop with gradient accumulation calls it: one micro-batch after the other."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from nceref.cases.records import Outcome, Probe
from nceref.output.words import counted
from nceref.spec import Loss
from nceref.targets.frameworks.call import CallRequest, call_request
from nceref.targets.frameworks.steps import answers_of_steps, joined_answer
from nceref.targets.ranks.contract import Contract, split_inputs
from nceref.targets.reparametrized import by_inputs, reparametrized
from nceref.targets.target import ResolvedTarget

ONE = Contract(1, in_turn=True)


class StepsRunner:
    """A target in steps, around a runner of this process or of another: it returns the outcome of all steps together.

    One instance of a class takes all steps of a case. It begins with one step; `use` changes that.
    """

    def __init__(self, run: Any, device: str = "cpu") -> None:
        self.run, self._device = run, device
        self.contract = ONE

    @property
    def target(self) -> ResolvedTarget:
        """The target, as the inner runner has loaded it."""
        target: ResolvedTarget = self.run.target
        return target

    @property
    def forms(self) -> dict[str, str]:
        """The parametrizations of what the target holds itself."""
        forms: dict[str, str] = self.run.forms
        return forms

    def use(self, contract: Contract) -> None:
        """Let the next call be in these steps."""
        self.contract = contract

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target in all steps; with `twice`, call it again and compare."""
        if self.contract.world_size == 1:
            one: Outcome = self.run(probe, twice)
            return one
        if not self.contract.fits(probe):
            words = f"is not called: the rows cannot be shared by {counted(self.contract.world_size, 'step')}"
            return Outcome(trouble="raises", sentence=words)
        request = reparametrized(self._request(probe), self.forms)
        return self._joined(self.run.call(request, twice), request, probe)

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of a program that gives this answer in all steps together."""
        if self.contract.world_size == 1:
            one: Outcome = self.run.reply(probe, answer)
            return one
        request = self._request(probe)
        known = joined_answer(self.contract.parted(answer, probe), request)
        return self._joined(self.run.call(request, answer=known), request, probe, {})

    def _request(self, probe: Probe) -> CallRequest:
        request = call_request(probe, self._device)
        rooms = {n: self.contract.divisor * room if n else room for n, room in request.rooms.items()}
        return replace(request, rooms=rooms, shares=self.contract.shares, split=_axes(probe.loss, probe.inputs))

    def _joined(
        self, outcome: Outcome, request: CallRequest, probe: Probe, forms: Mapping[str, str] | None = None
    ) -> Outcome:
        if outcome.trouble:
            return outcome
        each = answers_of_steps((outcome.value, outcome.grads), request)
        steps = [replace(outcome, value=float(value), grads=grads) for value, grads in each]
        held = self.forms if forms is None else forms
        return self.contract.joined([by_inputs(step, request, held) for step in steps], probe)


def _axes(loss: Loss, inputs: Mapping[str, Any]) -> dict[str, int]:
    """Inputs of which each step has its own rows, with the number of axes that are those of the samples."""
    split = split_inputs(loss, inputs)
    shapes = {p.name: getattr(p, "shape", ()) for p in loss.parameters if p.name in split}
    return {name: 2 if shape[1:2] == ("N",) else 1 for name, shape in shapes.items()}


@contextmanager
def in_turn(inner: AbstractContextManager[Any], device: str) -> Iterator[StepsRunner]:
    """Run the target of another context in steps; `device` is named as the framework names it."""
    with inner as run:
        yield StepsRunner(run, device)
