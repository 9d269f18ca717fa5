"""Programs in a process of their own: one loss by one program, its times, its memory and its answers."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import RefusedError
from benchmarks.cases import Case, inputs
from benchmarks.place import Place, place
from nceref.targets.process import tree

Answers = dict[str, Any]
DOOR = "nceref.torch"
"""The program of nceref whose gradients PyTorch takes."""


@dataclass(frozen=True)
class Program:
    """`run` does the work once; `answers` makes NumPy arrays of what it returned: "value", and gradients by name."""

    run: Callable[[], Any]
    answers: Callable[[Any], Answers]


def ours(case: Case, there: Place) -> Program:
    """The value and all gradients by nceref."""
    from nceref import get_loss

    loss = get_loss(case.loss)
    given = {name: there.put(x) if isinstance(x, np.ndarray) else x for name, x in inputs(case).items()}

    def run() -> Any:
        result = loss.value_and_grad(**given, **case.call.options)
        there.wait()
        return result

    def answers(result: Any) -> Answers:
        value, grads = result
        return {name: there.get(x) for name, x in {"value": value, **grads}.items()}

    return Program(run, answers)


def theirs(case: Case, there: Place, formulation: str, device: str) -> Program:
    """The value and all gradients by PyTorch; formulation is "baseline", "tuned" or "nceref.torch"."""
    loss, (given, leaves) = _formulation(formulation, case.loss), _tensors(case, device)
    options = case.call.options if formulation == DOOR else {}

    def run() -> Any:
        for leaf in leaves.values():
            leaf.grad = None
        value = loss(**given, **options)
        value.backward()
        there.wait()
        return value

    def answers(value: Any) -> Answers:
        grads = {name: leaf.grad.cpu().numpy() for name, leaf in leaves.items()}
        return {"value": value.detach().cpu().numpy(), **grads}

    return Program(run, answers)


def _formulation(formulation: str, loss: str) -> Callable[..., Any]:
    if formulation == DOOR:
        from nceref.torch import get_loss

        return get_loss(loss)
    from benchmarks.baselines import FORMULATIONS

    return FORMULATIONS[formulation][loss]


def _tensors(case: Case, device: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments as tensors, and those of them that get a gradient."""
    import torch

    given = inputs(case)
    for name, x in given.items():
        if name not in case.call.settings:
            dtype = None if name in case.call.labels else getattr(torch, case.dtype)
            given[name] = torch.as_tensor(x, dtype=dtype, device=device)
    learned = [name for name in (*case.call.arrays, *case.call.learned) if name not in case.call.constants]
    return given, {name: given[name].requires_grad_() for name in learned}


def measure(
    case: dict[str, Any], program: str, threads: int, device: str, least: int, seconds: float, answers: str = ""
) -> dict[str, Any]:
    """Times, and the memory of the first call, of one program; its answers go into a file.

    `case` has the fields of a `Case`. The program may use `threads` threads; arrays are on `device`. After the first
    call it is repeated at least `least` times and `seconds` seconds; with 0 the first call is the time. `answers` is
    the path of an .npz file, or empty. The result has "seconds" of each call, "processor" seconds of the first one, and
    "extra" bytes: growth of the process beyond the gradients, None where not known.
    """
    wanted = Case(**case)
    make = _with_threads(program, threads, device)
    # Libraries are loaded and BLAS has its buffers, on a size that needs no memory.
    make(wanted.smaller()).run()
    made = make(wanted)
    before = resident("VmRSS")
    start, busy = time.perf_counter(), time.process_time()
    result = made.run()
    first, busy = time.perf_counter() - start, time.process_time() - busy
    after = resident("VmHWM")
    outputs = made.answers(result)
    # A gradient may fit into memory that the process has already.
    extra = None if before is None or after is None else max(after - before - _gradient_bytes(outputs), 0)
    if answers:
        np.savez(answers, **outputs)
    return {"seconds": _repeat(made.run, least, seconds) or [first], "processor": busy, "extra": extra}


def _with_threads(program: str, threads: int, device: str) -> Callable[[Case], Program]:
    """A function from a case to its program, once the libraries know their threads."""
    there = place(device)
    if program in ("nceref", DOOR):
        from nceref import config

        config(threads=threads)
    if program == "nceref":
        return lambda case: ours(case, there)
    import torch

    torch.set_num_threads(threads)
    return lambda case: theirs(case, there, program, device)


def _repeat(run: Callable[[], Any], least: int, seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or (least and time.perf_counter() < end):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def resident(field: str) -> int | None:
    """Bytes of this process in memory: now, "VmRSS", or at most so far, "VmHWM"; None where nobody says.

    Not `getrusage`: its maximum starts with that of the process that started this one.
    """
    return tree.resident(os.getpid(), field)


def _gradient_bytes(answers: Answers) -> int:
    return sum(np.asarray(x).nbytes for name, x in answers.items() if name != "value")


def room(case: Case) -> float:
    """Largest difference of two programs by rounding, relative to the largest entry.

    Rows have length 1, so a logit of size factor is off by about factor eps at each of four stages: normalization,
    product, exponential, product for the gradient. Twice that for two programs.
    """
    scalars = {**case.call.settings, **case.call.learned}
    factor = scalars.get("logit_scale") or 1 / scalars["temperature"]
    return 8 * factor * float(np.finfo(case.dtype).eps)


def check_agreement(case: Case, mine: Answers, other: Answers, who: tuple[str, str] = ("nceref", "PyTorch")) -> None:
    """Refuse to compare programs that compute different things; `who` names them."""
    for name, expected in other.items():
        if name not in mine or np.shape(mine[name]) != np.shape(expected):
            msg = (
                f"{case.name}: {who[1]} returns {name} {np.shape(expected)}, {who[0]} does not; compare the same things"
            )
            raise RefusedError(msg)
        off = np.max(np.abs(np.asarray(mine[name], np.float64) - expected)) / max(np.max(np.abs(expected)), 1e-300)
        if not off <= room(case):
            msg = f"{case.name}: {who[0]} and {who[1]} differ in {name} by {off:.1e} of its largest entry"
            msg += f", rounding explains {room(case):.1e}; make them compute the same thing"
            raise RefusedError(msg)
