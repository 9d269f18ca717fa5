"""Speed of the replay of the quadrant toy, against the published script under PyTorch.

Both draw samples, weights and indices themselves and train the six published runs. The drawing of indices is timed
apart on both sides; the training alone is the rest. PyTorch gets one thread: tensors of a few numbers have no use for
two.
"""

import copy
import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import RefusedError
from benchmarks.clock import OnProgress, fresh, ratio_quartiles, spread
from benchmarks.machine import installed
from nceref.training.quadrants.batch import PUBLISHED, RATE, STEPS

ROUNDS = 3
END_TO_END, TRAINING = 50.0, 100.0
"""Factors by which the replay must be faster, end to end and in training alone."""
_NEAR = 1e-5
"""Largest difference of final weights at temperatures from 0.05 on, where rounding errors do not grow."""


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Seconds of both programs in alternating rounds; a `quick` run takes 500 steps and judges nothing."""
    steps, rounds = (500, 1) if quick else (STEPS, ROUNDS)
    parts: dict[str, dict[str, list[float]]] = {}
    programs = {"script": script, "replay": replay} if installed("torch") else {"replay": replay}
    for turn in range(rounds):
        on_progress(f"quadrants, round {turn + 1} of {rounds}")
        answers = {name: fresh(program, steps=steps, threads=1) for name, program in programs.items()}
        agree(answers)
        for name, answer in answers.items():
            for part, seconds in answer["seconds"].items():
                parts.setdefault(part, {}).setdefault(name, []).append(seconds)
    rows = [_row(part, times) for part, times in parts.items()]
    return {"steps": steps, "temperatures": list(PUBLISHED), "rows": rows}


def _row(part: str, times: dict[str, list[float]]) -> dict[str, Any]:
    target = {"end to end": END_TO_END, "training": TRAINING}.get(part)
    spreads = {name: spread(seconds) for name, seconds in times.items()}
    mine, theirs = spreads["replay"], spreads.get("script")
    ratio = theirs and theirs["median"] / mine["median"]
    return {
        "part": part, "target": target, "replay": mine, "script": theirs, "ratio": ratio,
        "ratio_quartiles": ratio_quartiles(theirs, mine),
    }  # fmt: skip


def agree(answers: dict[str, Any]) -> None:
    """Refuse to compare programs that do not end alike at temperatures from 0.05 on."""
    if "script" not in answers:
        return
    ends = [np.array(answers[name]["weights"]) for name in ("script", "replay")]
    warm = np.array(PUBLISHED) >= 0.05
    off = float(np.abs(ends[0] - ends[1])[warm].max())
    if not off <= _NEAR:
        msg = f"the replay ends {off:.1e} from the script, more than {_NEAR:g}; make them compute the same thing"
        raise RefusedError(msg)


def replay(steps: int, threads: int) -> dict[str, Any]:
    """Seconds of the replay, import excluded, and final weights, (runs, 40)."""
    from nceref.training.quadrants import batch, indices

    batch.advance(*_short(50))  # libraries are loaded and caches are warm
    start = time.perf_counter()
    indices.draw(0, len(PUBLISHED), steps)
    drawing = time.perf_counter() - start
    start = time.perf_counter()
    state = batch.advance(*_short(steps))
    whole = time.perf_counter() - start
    first, second = state.weights[:, : len(PUBLISHED)]
    flat = [np.concatenate([a.ravel(), b.T.ravel()]) for a, b in zip(first, second, strict=True)]
    return {"seconds": _parts(whole, drawing), "weights": np.array(flat, np.float64).tolist()}


def _short(steps: int) -> tuple[Any, Any]:
    from nceref.training.quadrants import batch

    setup = batch.Setup(steps=steps)
    return setup, batch.begin(setup)


def script(steps: int, threads: int) -> dict[str, Any]:
    """Seconds of the published script, import, pictures and progress bar excluded, and final weights, (runs, 40)."""
    import torch

    torch.set_num_threads(threads)
    listing(1, PUBLISHED, 50)
    generator = random.Random(0)
    start = time.perf_counter()
    for _ in range(len(PUBLISHED) * steps):
        _drawn(generator)
    drawing = time.perf_counter() - start
    start = time.perf_counter()
    encoders = [run[-1] for run in listing(0, PUBLISHED, steps)]
    whole = time.perf_counter() - start
    flat = [np.concatenate([w.ravel() for w in weights]) for weights in encoders]
    return {"seconds": _parts(whole, drawing), "weights": np.array(flat, np.float64).tolist()}


def _parts(whole: float, drawing: float) -> dict[str, float]:
    return {"end to end": whole, "training": whole - drawing, "indices": drawing}


def _drawn(generator: Any) -> tuple[int, list[int], list[int], list[int]]:
    """A class, an anchor, a positive and three negatives, as the script asks for them."""
    label = generator.randint(0, 3)
    return (
        label, generator.sample(range(25), 1), generator.sample(range(25), 1), generator.sample(range(75), 3)
    )  # fmt: skip


def listing(
    seed: int, temperatures: Sequence[float], steps: int, dtype: str = "float32", at: Sequence[int] = ()
) -> list[list[Any]]:
    """The work of the published script, call by call: weights [W1, W2] after the steps `at` and at the end, run by run.

    With ``dtype="float64"``, samples and encoder are converted after they are drawn.
    """
    import torch
    from torch import nn

    torch.manual_seed(seed)
    random.seed(seed)
    points = torch.rand(100, 2)
    points[25:50, 0] -= 1
    points[50:75, :] -= 1
    points[75:100, 1] -= 1
    labels = torch.arange(4).repeat_interleave(25)
    encoder = nn.Sequential(nn.Linear(2, 10, bias=False), nn.Linear(10, 2, bias=False), nn.Tanh())
    kind = getattr(torch, dtype)
    points, encoder = points.to(kind), encoder.to(kind)
    return [_one_run(copy.deepcopy(encoder), points, labels, t, steps, at) for t in temperatures]


def _one_run(encoder: Any, points: Any, labels: Any, temperature: float, steps: int, at: Sequence[int]) -> list[Any]:
    import torch
    import torch.nn.functional as F
    from torch import nn

    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(encoder.parameters(), lr=RATE)
    target, snapshots = torch.zeros(1, dtype=torch.long), []
    for step in range(1, steps + 1):
        label, first, second, others = _drawn(random)
        anchor, positive = (encoder(points[labels == label][row]) for row in (first, second))
        negatives = encoder(points[labels != label][others])
        cosines = torch.concat([F.cosine_similarity(anchor, side) for side in (positive, negatives)])
        criterion((cosines / temperature).unsqueeze(0), target).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step in at or step == steps:
            snapshots.append([w.detach().numpy().copy() for w in encoder.parameters()])
    return snapshots
