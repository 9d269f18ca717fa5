"""Pictures of any runs, written into a folder: the figures of source 003, and an animation of one run."""

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.output import files
from nceref.output.figure import Figure, render, style
from nceref.training.quadrants import batch, panels, samples
from nceref.training.quadrants.batch import Setup, State
from nceref.training.quadrants.replay import Run, Runs

Array = npt.NDArray[Any]

_FRAMES = 50
"""The most frames of an animation, beside the start."""
_PIXELS, _INCHES = 120, 3.4
_FIRST, _EACH, _LAST = 1200, 90, 2500
"""Milliseconds that the frames of an animation stay."""


def write(
    runs: Runs, out: str | os.PathLike[str], animated: int = 0, on_progress: Callable[[int], Any] = int
) -> list[Path]:
    """Draw the start, all runs, and one of them step by step, into a folder.

    The folder `out` is created if it does not exist; every file replaces an older one in one step. `animated` is the
    run that is animated, counted from 0. `on_progress` is called with the step of each frame once it is there.
    """
    from nceref.theory.figures import quadrants, quadrants_start

    start = {"samples": runs.runs[0].samples, "features": samples.encoded(runs.runs[0].samples, *runs.runs[0].initial)}
    content = {}
    for suffix in ("svg", "png"):
        untrained = replace(quadrants_start.FIGURE, title="Directions before training")
        content[f"quadrants-start.{suffix}"] = render(untrained, start, suffix)
        content[f"quadrants.{suffix}"] = of_runs(quadrants.FIGURE, runs.runs, suffix)
    content["quadrants.gif"] = animation(
        snapshots_of(runs.setup, animated), f"τ = {runs.runs[animated].temperature:g}", on_progress
    )
    folder = files.make_folder(out, "--out")
    for name, drawing in content.items():
        files.replace(folder / name, drawing, "--out")
    return [folder / name for name in content]


def of_runs(figure: Figure, runs: Sequence[Run], suffix: str) -> bytes:
    """The figure of the published runs, drawn of these runs instead."""
    columns = min(panels.COLUMNS, len(runs))
    rows = -(-len(runs) // columns)
    height = 0.6 + 3.6 / columns * rows
    return render(replace(figure, title="Directions after training", height=height), panels.data(runs), suffix)


def frames(setup: Setup) -> int:
    """The number of frames of an animation."""
    return 1 - (-setup.steps // _between(setup))


def snapshots_of(setup: Setup, number: int = 0) -> list[tuple[int, Array]]:
    """Steps and features of one run: before the first step, at equal distances, and where the runs end.

    The number of the run is counted from 0.
    """
    # All runs again, as one batch: alone, NumPy may order a sum in another way, and a chaotic run ends elsewhere.
    points = samples.draw(setup.seeds[0]).samples
    snapshots: list[tuple[int, Array]] = []

    def note(state: State) -> None:
        first, second = state.weights[:, number]
        stopped = int(state.stopped[number])
        if state.done % _between(setup) == 0 or state.done == setup.steps or state.stopped.all():
            snapshots.append((stopped - 1 if stopped else state.done, samples.encoded(points, first, second.T)))

    start = batch.begin(setup)
    note(start)
    batch.advance(setup, start, note)
    return snapshots


def _between(setup: Setup) -> int:
    """Steps between two frames, whole blocks."""
    return batch.BLOCK * -(-setup.steps // (batch.BLOCK * _FRAMES))


def animation(shown: Sequence[tuple[int, Array]], title: str, on_progress: Callable[[int], Any] = int) -> bytes:
    """A GIF of the features step by step.

    `shown` has the step and the features of each frame; the title stands above each, before its step. `on_progress` is
    called with the step of each frame once it is drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from PIL import Image

    pictures = []
    with style():
        canvas = Canvas(figsize=(_INCHES, _INCHES + 0.4), dpi=_PIXELS)
        screen: Any = FigureCanvasAgg(canvas)
        axes = canvas.subplots()
        marks = panels.panel(axes, shown[0][1])
        panels.legend(canvas)
        # For which the layout leaves room.
        axes.set_title(title)
        screen.draw()
        # Finding places for everything again in each frame would take half of the time.
        canvas.set_layout_engine("none")
        for step, features in shown:
            for label, mark in enumerate(marks):
                mark.set_data(*panels.places(features, label).T)
            axes.set_title(f"{title}, step {step:,}")
            screen.draw()
            # Without the fourth channel, which a GIF does not have.
            picture = Image.fromarray(np.asarray(screen.buffer_rgba())[..., :3])
            pictures.append(picture.quantize(32, dither=Image.Dither.NONE))
            on_progress(step)
    paper = io.BytesIO()
    # From the end, so that a single frame is the last one.
    times = [_FIRST, *[_EACH] * (len(pictures) - 2), _LAST][-len(pictures) :]
    pictures[0].save(paper, "GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0)
    return paper.getvalue()
