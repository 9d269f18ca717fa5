"""One row of an experiment's table, a loss with its arguments, and how an encoder is trained for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nceref.errors import NcerefError
from nceref.experiments.experiment import Job, Measure, OnProgress, Results
from nceref.experiments.samples import Samples
from nceref.training import Adam, Linear, Member, Moment, Network, Recipe, Trained, mlp, train

CLASSIFIER, CENTERS, PROBE = "classifier", "centers", "probe"


@dataclass(frozen=True)
class Setting:
    """A loss with its arguments, and the reader that tells classes apart.

    Attributes
    ----------
    name : str
        As in the table.
    loss : str
    temperature : float, optional
    arguments : mapping
        Other arguments of the loss.
    prior : str
        The argument that gets the class frequencies; empty: none.
    reads : {"probe", "classifier", "centers"}
        What tells the classes apart: a probe on the features, the network's own last layer, or the loss's centers.
    """

    name: str
    loss: str
    temperature: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prior: str = ""
    reads: str = PROBE


@dataclass(frozen=True)
class Training:
    """Sizes of the layers of an MLP with ReLU, samples of a batch, steps, and the rate of Adam."""

    sizes: tuple[int, ...]
    batch: int
    steps: int
    rate: float

    def __str__(self) -> str:
        layers = "-".join(map(str, self.sizes))
        return (
            f"MLP {layers} with ReLU, Adam at {self.rate:g}, {self.steps} steps of {self.batch} samples in two views."
        )


def trained(
    setting: Setting, training: Training, samples: Samples, seed: int, watch: Callable[[Moment], Any] | None = None
) -> Trained:
    """An encoder trained with one loss and seed.

    The seed draws weights and batches, the same for every setting, so that differences are those of the losses. `watch`
    is called with a `Moment` for each step. Raises `NcerefError` if training diverges.
    """
    network = mlp(training.sizes)
    if setting.reads == CLASSIFIER:
        network = Network((*network.layers, Linear(training.sizes[-1], samples.classes)))
    counts = samples.counts
    given = {setting.prior: counts / counts.sum()} if setting.prior else {}
    recipe = Recipe(
        setting.loss, network, training.steps, Adam(training.rate), {**setting.arguments, **given},
        classes=samples.classes if setting.reads == CENTERS else 0, dtype="float32",
    )  # fmt: skip
    outcome = train(
        recipe, [Member(seed, setting.temperature)], lambda rng: samples.batch(rng, training.batch), watch=watch
    )
    if outcome.stopped[0]:
        step, why = outcome.stopped[0]
        msg = f"{setting.name} with seed {seed} diverged at step {step}: {why}"
        raise NcerefError(msg)
    return outcome


def each(
    seed: int,
    on_progress: OnProgress,
    data: Callable[[int], Samples],
    settings: Sequence[Setting],
    measured: Callable[[Setting, Samples, int], tuple[Mapping[str, float], tuple[float, ...]]],
    measures: Sequence[Measure],
) -> Results:
    """Run all settings with a seed.

    `data(seed)` returns the samples, which all settings share. `measured` returns the measures by name, of which
    `measures` are kept, and the numbers of a curve by class. `on_progress` is called with a `Job` after each setting.
    """
    samples = data(seed)
    values: dict[str, dict[str, tuple[float, ...]]] = {}
    curves: dict[str, tuple[tuple[float, ...], ...]] = {}
    for setting in settings:
        numbers, curve = measured(setting, samples, seed)
        values[setting.name] = {measure.name: (numbers[measure.name],) for measure in measures}
        curves[setting.name] = (curve,)
        on_progress(Job(f"{setting.name}, seed {seed}"))
    return Results((seed,), values, tuple(map(int, samples.counts)), curves)
