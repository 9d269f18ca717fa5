"""Runs a target on probes: in this process, or in a child process that may hang, exit or die."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.cases.records import Outcome, Probe
from nceref.output.system import processes_available
from nceref.spec import Loss
from nceref.targets import load
from nceref.targets.attempt import attempt, attempt_answer
from nceref.targets.frameworks.call import CallRequest, call_request
from nceref.targets.global_state import kept_surroundings
from nceref.targets.local import LocalRunner
from nceref.targets.process.child import ChildRunner
from nceref.targets.reparametrized import by_inputs, reparametrized
from nceref.targets.target import LoadRequest, ResolvedTarget


@dataclass(frozen=True, eq=False)
class Runner:
    """A target in this process: called with a probe, it returns the outcome.

    `forms` are the parametrizations of what the target holds itself.
    """

    target: ResolvedTarget
    device: str = "cpu"
    forms: dict[str, str] = field(default_factory=dict)

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target; with `twice`, call it again and compare bit by bit."""
        request = reparametrized(call_request(probe, self.device), self.forms)
        return by_inputs(self.call(request, twice), request, self.forms)

    def processes(self) -> tuple[int, ...]:
        """The process of the checker, in which the target runs."""
        return (os.getpid(),)

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of a program that gives this answer, through arrays and gradients of the same framework."""
        return self.call(call_request(probe, self.device), answer=answer)

    def call(self, request: CallRequest, twice: bool = False, answer: Any = None) -> Outcome:
        """The outcome of a request to the target, or of an answer that is known."""
        return attempt(self.target, request, twice) if answer is None else attempt_answer(self.target, request, answer)


@contextlib.contextmanager
def in_process(thing: Any, loss: Loss | None = None, *, device: str = "cpu", **options: Any) -> Iterator[Runner]:
    """Run a target in this process.

    Whatever it raises, ``SystemExit`` included, becomes an outcome; ``KeyboardInterrupt`` passes through. What it
    changes in the process is put back, see `global_state`. A target that hangs or that kills the process cannot be
    stopped here: that takes `in_child`.

    `thing`, `loss` and `options` are those of `load.resolve_target`; `thing` may be a `ResolvedTarget` already, and
    then nothing else is needed. `device` is named as the framework names it.
    """
    with kept_surroundings():
        if not issubclass(type(thing), ResolvedTarget):
            assert loss is not None
            thing = load.resolve_target(thing, loss, **options)
        yield Runner(thing, device)


def child_runner(
    request: LoadRequest | None, device: str, timeout: float, loading_timeout: float, isolate: bool
) -> ChildRunner:
    """A runner, not yet started, of targets named by text: in a process of its own, or in this one if none can start.

    `request` is None where the target is named later. The other arguments are those of `in_child`.
    """
    kind = ChildRunner if processes_available() else LocalRunner
    return kind(request, device, timeout, loading_timeout, isolate)


@contextlib.contextmanager
def in_child(
    text: str,
    loss: Loss,
    *,
    device: str = "cpu",
    timeout: float = 30.0,
    loading_timeout: float = 120.0,
    isolate: bool = False,
    **options: Any,
) -> Iterator[ChildRunner]:
    """Run a target in a process of its own, which is stopped when it hangs and started again when it dies.

    Where the system starts no processes, it is run in this one: see `LocalRunner`.

    `text`, `loss` and `options` are those of `load.resolve_target`; `device` is named as the framework names it.
    `timeout` and `loading_timeout` are seconds for one case, and for importing the target. With `isolate` the process
    has no network, and neither files nor other processes that it can change. Raises `TargetError` if the target cannot
    be loaded, `InputError` if an option is wrong, and `UnavailableError` if the process cannot be isolated.
    """
    child = child_runner(LoadRequest(text, loss, options), device, timeout, loading_timeout, isolate)
    try:
        child.start()
        yield child
    finally:
        child.stop()


@contextlib.contextmanager
def in_same_child(
    child: ChildRunner, text: str, loss: Loss, *, device: str = "cpu", **options: Any
) -> Iterator[ChildRunner]:
    """Run another target, or the same one as another loss, in a process that is there already.

    `child` is that of `in_child`, which ends it. The other arguments, and what is raised, are as for `in_child`.
    """
    child.load(LoadRequest(text, loss, options))
    yield child
