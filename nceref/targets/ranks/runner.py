"""A target on several ranks, called together with the rows that each has, and answered for together.

A rank of PyTorch is a process. Those of JAX are devices of one process, see `ranks.devices`.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nceref.cases.records import Outcome, Probe
from nceref.errors import InputError, SignatureError, TargetError, UnavailableError
from nceref.output.system import processes_available
from nceref.output.words import counted
from nceref.spec import Loss
from nceref.targets.frameworks.call import ROWS
from nceref.targets.frameworks.frameworks import FRAMEWORKS, framework_of
from nceref.targets.process.child import GIVE_UP, NOT_TRIED, ChildRunner
from nceref.targets.ranks import devices
from nceref.targets.ranks.contract import Contract, listed_ranks
from nceref.targets.target import LoadRequest, ResolvedTarget

ALONE = Contract(1)
LIMITS: Mapping[str, Any] = MappingProxyType({"device": "cpu", "timeout": 30.0, "loading_timeout": 120.0})
"""Options of `ChildRunner` with the defaults that `targets.runner.in_child` has."""
_GRACE = 3.0
"""Seconds for the other ranks to end by themselves, once one has failed."""
_WITHOUT_GROUP = "process group has not been initialized"
_ANSWERED = ("raises", "wrong-shape", "not-a-number-type")
"""Troubles after which a process is as it was."""
_ORDER = ("dies", "exits", "raises", "wrong-shape", "not-a-number-type", "hangs", "waits")
"""Troubles, what may be the cause of the others first."""


class RanksRunner:
    """A target on ranks: called with a joined case, it returns the outcome that its ranks have together.

    It begins with one rank; `use` changes that. `forms` are the parametrizations of what the target holds itself.
    """

    target: ResolvedTarget

    def __init__(self, request: LoadRequest | None, most: int, limits: Mapping[str, Any] = LIMITS) -> None:
        if not processes_available():
            msg = "`ranks` are processes, and this system starts none; leave it out, or verify on another system"
            raise UnavailableError(msg)
        self._request, self._most, self._limits = request, most, {**LIMITS, **limits}
        self.contract = ALONE
        self.forms: dict[str, str] = {}
        self._children: list[ChildRunner] = []
        self._joined = 0
        self._on_devices = False
        self._in_a_row: list[Outcome] = []
        self._files = tempfile.TemporaryDirectory(prefix="nceref-ranks-")
        self._groups = 0
        # A diagnosis looks at one more number of ranks.
        self._pool = ThreadPoolExecutor(max(most, 3), thread_name_prefix="nceref-rank")

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target on all ranks; with `twice`, call it again and compare."""
        contract = self.contract
        if not contract.fits(probe):
            words = f"is not called: the rows cannot be shared by {counted(contract.world_size, 'rank')}"
            return Outcome(trouble="raises", sentence=words)
        if self._on_devices:
            return self._together(probe, lambda child, rank: child.call(devices.joined_request(probe, contract), twice))
        return self._together(probe, lambda child, rank: child(contract.shard(probe, rank), twice))

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of ranks that give this answer together."""
        contract = self.contract
        parts = contract.parted(answer, probe)
        if self._on_devices:
            request, known = devices.joined_request(probe, contract), devices.joined_answer(parts)
            return self._together(probe, lambda child, rank: child.call(request, answer=known))
        return self._together(probe, lambda child, rank: child.reply(contract.shard(probe, rank), parts[rank]))

    def use(self, contract: Contract) -> None:
        """Let the next call be on these ranks; raises `InputError` for what the target's framework does not have."""
        if self._on_devices:
            devices.check(contract)
        elif contract.axis:
            assert self._request is not None
            other = f"{self._request.text} is a target of {self.target.framework}"
            msg = f"`axis` is that of the devices of JAX, but {other}; leave it out"
            raise InputError(msg)
        self.contract = contract

    def start(self) -> None:
        """Start the first process and load the target; raises as `ChildRunner.start` does."""
        assert self._request is not None
        first = self._child(0)
        try:
            first.reload()
            self.target = first.target
        except SignatureError:
            raise
        except TargetError as error:
            # It asks for its rank when it is imported.
            if _WITHOUT_GROUP not in str(error):
                raise
            self._join()
            self.target = self._children[0].target
        ranks = framework_of(self.target.framework).ranks
        self._on_devices = ranks == "devices"
        if not ranks:
            able = " and ".join(name for name, each in FRAMEWORKS.items() if each.ranks)
            msg = f"`ranks` is for targets of {able}, but {self._request.text} is taken for one of"
            msg += f" {self.target.framework}; give --framework if it imports its own only when it is called"
            raise TargetError(msg)

    def assign(self, request: LoadRequest) -> None:
        """Say what is loaded at the next start, by the processes that are there."""
        self._request, self._joined, self.contract = request, 0, ALONE
        self._in_a_row.clear()
        self.forms.clear()

    def close(self) -> None:
        """End all processes, and remove the files through which they met."""
        for child in self._children:
            child.cut_short = True
        for child in self._children:
            child.stop()
        self._pool.shutdown()
        self._children.clear()
        self._joined = 0
        with contextlib.suppress(OSError):
            self._files.cleanup()

    def _child(self, rank: int, meeting: Mapping[str, str] | None = None) -> ChildRunner:
        """The process of a rank, there or new, with what it will load."""
        assert self._request is not None
        group = {"rank": rank, "world_size": self.contract.world_size, **(meeting or {})}
        while len(self._children) <= rank:
            child = ChildRunner(None, **self._limits, environment=_environment(max(self._most, 3)))
            child.forms = self.forms
            self._children.append(child)
        self._children[rank].assign(replace(self._request, group=group))
        return self._children[rank]

    def _join(self) -> None:
        """Have as many processes as there are ranks meet in a new group, with the target loaded; one, if of devices."""
        size = self.contract.world_size
        self._groups += 1
        if self._on_devices:
            children = [self._child(0, {"axis": devices.axis_of(self.contract)})]
        else:
            store = {"store": str(Path(self._files.name) / f"store-{self._groups}")}
            children = [self._child(rank, store) for rank in range(size)]
        done = self._all([self._pool.submit(child.reload) for child in children], lambda error: error is not None)
        if errors := [error for error in done if isinstance(error, BaseException)]:
            self._end_children()
            raise min(errors, key=_is_waiting)
        self._joined = size

    def _end_children(self) -> None:
        self._joined = 0
        for child in self._children:
            child.stop()
            child.cut_short = False

    def _together(self, probe: Probe, call: Callable[[ChildRunner, int], Outcome]) -> Outcome:
        """The joined outcome of all ranks; after a rank has hung, no further case is tried."""
        if self._in_a_row and (len(self._in_a_row) >= GIVE_UP or self._in_a_row[-1].trouble == "hangs"):
            last = self._in_a_row[-1]
            words = f"is not tried: an earlier case {last.sentence}"
            return Outcome(trouble=NOT_TRIED, sentence=words, ranks=last.ranks)
        if self._joined != self.contract.world_size:
            try:
                self._join()
            except TargetError as error:
                return Outcome(trouble="dies", sentence=f"does not load on all ranks: {error}")
        children = self._children[: 1 if self._on_devices else self._joined]
        outcomes = self._all(
            [self._pool.submit(call, child, rank) for rank, child in enumerate(children)],
            lambda outcome: not isinstance(outcome, Outcome) or bool(outcome.trouble),
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        if not any(outcome.trouble for outcome in outcomes):
            self._in_a_row.clear()
            each = devices.outcomes_of(outcomes[0]) if self._on_devices else outcomes
            return self.contract.joined(each, probe)
        return self._failure(outcomes)

    def _failure(self, outcomes: Sequence[Outcome]) -> Outcome:
        """The outcome of a case on which ranks failed; where they did not fail alike, new processes are started."""
        # Rows are no answer of a rank.
        outcomes = [replace(o, sentence=o.sentence.replace(f"; {ROWS}", "")) for o in outcomes]
        alike = len({(outcome.trouble, outcome.sentence) for outcome in outcomes}) == 1
        if alike and outcomes[0].trouble in _ANSWERED:
            if not self._on_devices:
                # What was sent before, and nobody has received, would reach the next case.
                self._joined = 0
            return replace(outcomes[0], ranks=tuple(outcomes))
        trouble, sentence = _worst(outcomes)
        failure = Outcome(trouble=trouble, sentence=sentence, ranks=tuple(outcomes))
        self._end_children()
        self._in_a_row.append(failure)
        return failure

    def _all(self, futures: Sequence[Future[Any]], failed: Callable[[Any], bool]) -> list[Any]:
        """Results or exceptions of all ranks; once one has failed, the others have little time left."""
        left: set[Future[Any]] = set(futures)
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            if left and any(failed(future.exception() or future.result()) for future in done):
                _, left = wait(left, timeout=_GRACE)
                late = [rank for rank, future in enumerate(futures) if future in left]
                for rank in late:
                    self._children[rank].cut_short = True
                wait(left)
                break
        return [future.exception() or future.result() for future in futures]


def _is_waiting(error: BaseException) -> bool:
    return "does not return" in str(error)


def _worst(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """The worst trouble, and the sentence about it: on which ranks it occurred, and what the others were doing."""
    first = min((o for o in outcomes if o.trouble), key=lambda o: _ORDER.index(o.trouble))
    if len(outcomes) == 1:
        return first.trouble, first.sentence
    alike = [rank for rank, o in enumerate(outcomes) if (o.trouble, o.sentence) == (first.trouble, first.sentence)]
    rest = [f"rank {rank} {_doing(o)}" for rank, o in enumerate(outcomes) if rank not in alike]
    sentence = "; ".join([f"{first.sentence} on {listed_ranks(alike, len(outcomes))}", *rest])
    return "hangs" if first.trouble == "waits" else first.trouble, sentence


def _doing(outcome: Outcome) -> str:
    return outcome.sentence if outcome.trouble else "has returned"


def _environment(count: int) -> dict[str, str]:
    """The environment of a process in which JAX has as many devices as there are ranks."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    return {"XLA_FLAGS": flags.strip()}


@contextlib.contextmanager
def kept_ranks(most: int) -> Iterator[RanksRunner]:
    """Processes for one target on ranks after another, so that packages are imported once.

    `most` is that of `on_ranks`. The context gives the runner that `on_same_ranks` takes.
    """
    with contextlib.closing(RanksRunner(None, most)) as run:
        yield run


@contextlib.contextmanager
def on_same_ranks(run: RanksRunner, text: str, loss: Loss, **options: Any) -> Iterator[RanksRunner]:
    """Run another target in processes that are there; parameters and result as those of `on_ranks`."""
    run.assign(LoadRequest(text, loss, {name: x for name, x in options.items() if name not in LIMITS}))
    run.start()
    yield run


@contextlib.contextmanager
def on_ranks(text: str, loss: Loss, most: int, **options: Any) -> Iterator[RanksRunner]:
    """Run a target on at most `most` ranks.

    The other arguments are those of `targets.runner.in_child`. Raises `TargetError` if the target cannot be loaded, or
    is of NumPy, and `UnavailableError` if there are no process groups here.
    """
    limits = {name: options.pop(name) for name in LIMITS if name in options}
    with contextlib.closing(RanksRunner(LoadRequest(text, loss, options), most, limits)) as run:
        run.start()
        yield run
