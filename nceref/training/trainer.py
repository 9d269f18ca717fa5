"""The steps: every member of an ensemble draws a batch, the network runs once for all, the loss once for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.errors import InputError
from nceref.network import Network, Parameters, initial
from nceref.optimizers import Adam, Optimizer
from nceref.training.supply import Batch, Member, Supply, supply

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator], Batch]


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes
    ----------
    loss : str
        Name of any loss whose inputs can be supplied.
    network : Network
        The encoder; for a loss over logits, with one output for each class.
    steps : int
        >= 1.
    optimizer : Optimizer
    settings : mapping
        Arguments of the loss that stay the same, such as class counts.
    classes : int
        Rows of learned centers or class weights, where the loss has them.
    queue : int
        Rows of a queue of earlier features of the last view. They come from the encoder itself, not from a slow copy.
    dtype : {"float32", "float64"}
    """

    loss: str
    network: Network
    steps: int
    optimizer: Optimizer = field(default_factory=Adam)
    settings: Mapping[str, Any] = field(default_factory=dict)
    classes: int = 0
    queue: int = 0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("classes", 0), ("queue", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                msg = f"`{name}` must be an integer >= {least}, got {value!r}"
                raise InputError(msg)
        if self.dtype not in ("float32", "float64"):
            msg = f"`dtype` must be 'float32' or 'float64', got {self.dtype!r}"
            raise InputError(msg)


@dataclass(frozen=True, eq=False)
class Moment:
    """One member at one step, for those who watch: what went into the loss and what came out, before the update."""

    step: int
    member: int
    inputs: Mapping[str, Any]
    value: float
    grads: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves; leading axes are the members.

    Attributes
    ----------
    recipe : Recipe
    members : tuple of Member
    parameters : tuple of arrays
        Of the network, the last sound ones of each member.
    learned : mapping
        Centers or class weights by name.
    losses : (steps, E) array
        NaN from the step on at which a member stopped.
    stopped : tuple of (int, str) or None
        For each member the step at which it diverged, and how.
    """

    recipe: Recipe
    members: tuple[Member, ...]
    parameters: Parameters
    learned: Mapping[str, Array]
    losses: Array
    stopped: tuple[tuple[int, str] | None, ...]

    def features(self, x: Array) -> Array:
        """Features of samples (N, F) by every member, (E, N, D)."""
        x = np.asarray(x, self.recipe.dtype)
        return self.recipe.network(np.broadcast_to(x, (len(self.members), *x.shape)), *self.parameters)[0]


def train(
    recipe: Recipe,
    members: Sequence[Member],
    draw: Draw,
    *,
    noted: Callable[[int], Any] | None = None,
    watch: Callable[[Moment], Any] | None = None,
) -> Trained:
    """Train the members of an ensemble, which share all but seed and temperature.

    Parameters
    ----------
    recipe : Recipe
    members : sequence of Member
        Members of equal seed start from the same weights and see the same batches.
    draw : callable
        Makes a batch from a generator; all batches have the same shapes.
    noted : callable, optional
        Is told the number of each step when it is done.
    watch : callable, optional
        Is told a `Moment` for each member and step.

    Raises
    ------
    InputError
        If the loss cannot be supplied, or refuses the first batch. A member that diverges later is stopped instead.
    """
    if not members:
        msg = "`members` must not be empty: name at least one seed"
        raise InputError(msg)
    run = _Run(recipe, tuple(members), draw, watch)
    # What overflows is found by looking at the results.
    with np.errstate(all="ignore"):
        for step in range(1, recipe.steps + 1):
            run.step(step)
            if noted is not None:
                noted(step)
            if all(run.stopped):
                break
    return Trained(recipe, run.members, *run.split(run.good), run.losses, tuple(run.stopped))


class _Run:
    """The state of a run: parameters of network and loss in one tuple, queues, generators."""

    def __init__(
        self, recipe: Recipe, members: tuple[Member, ...], draw: Draw, watch: Callable[[Moment], Any] | None
    ) -> None:
        self.recipe, self.members, self.draw, self.watch = recipe, members, draw, watch
        self.loss = losses.get_loss(recipe.loss)
        self.supply: Supply = supply(self.loss.declaration, recipe.settings, recipe.queue)
        self.generators = [np.random.default_rng([m.seed, 1]) for m in members]
        self.parameters: Parameters = initial(recipe.network, [m.seed for m in members], recipe.dtype)
        self.own = len(self.parameters)
        self.queues: list[tuple[Array, Array | None]] = self._filled_queues()
        self.parameters += self._centers()
        self.good, self.memory = self.parameters, recipe.optimizer.start(self.parameters)
        self.losses = np.full((recipe.steps, len(members)), np.nan)
        self.stopped: list[tuple[int, str] | None] = [None] * len(members)

    def split(self, parameters: Parameters) -> tuple[Parameters, dict[str, Array]]:
        """Those of the network, and those of the loss by name."""
        return parameters[: self.own], dict(zip(self.supply.learned, parameters[self.own :], strict=True))

    def step(self, number: int) -> None:
        """One step of every member that has not stopped."""
        batches = [self._drawn(generator) for generator in self.generators]
        features, pull = self._encoded(batches)
        by_features = np.zeros_like(features)
        by_learned = tuple(np.zeros_like(w) for w in self.parameters[self.own :])
        for e, batch in enumerate(batches):
            if self.stopped[e] is None:
                grads = self._grads(number, e, batch, features[e])
                if grads is not None:
                    by_features[e] = self.supply.by_features(grads, _views(features[e], batch))
                    for g, name in zip(by_learned, self.supply.learned, strict=True):
                        g[e] = grads[name]
        moved, self.memory = self.recipe.optimizer.step(
            self.parameters, (*pull(by_features)[1], *by_learned), self.memory, number
        )
        self._keep(number, moved)

    def _grads(self, number: int, e: int, batch: Batch, features: Array) -> Mapping[str, Array] | None:
        """Gradients of the loss for a member, or None, and it stops."""
        inputs = self.supply.arguments(self.members[e], _views(features, batch), batch.labels)
        _, learned = self.split(self.parameters)
        inputs |= {name: w[e] for name, w in learned.items()} | self._queued(e)
        if not np.isfinite(features).all():
            self.stopped[e] = number, "the features are infinite or NaN"
            return None
        try:
            value, grads = self.loss.value_and_grad(**inputs)
        except InputError as error:
            if number == 1:
                raise
            self.stopped[e] = number, str(error)
            return None
        self.losses[number - 1, e] = value
        if self.watch is not None:
            self.watch(Moment(number, e, inputs, value, grads))
        self._remember(e, batch, features)
        return dict(grads)

    def _keep(self, number: int, moved: Parameters) -> None:
        """Go on to the moved parameters, member by member: good are those that the loss could be taken of."""
        for e, stop in enumerate(self.stopped):
            if stop is None and not all(np.isfinite(w[e]).all() for w in moved):
                self.stopped[e] = number, "the parameters are infinite or NaN"
                self.good = _chosen(e, self.parameters, self.good)
        going = np.array([stop is None for stop in self.stopped])
        last = number == self.recipe.steps
        self.good = _merged(going, moved if last else self.parameters, self.good)
        self.parameters = _merged(going, moved, self.good)

    def _drawn(self, generator: np.random.Generator) -> Batch:
        batch = self.draw(generator)
        self.supply.check(batch)
        return batch

    def _encoded(self, batches: Sequence[Batch]) -> Any:
        rows = np.stack([np.concatenate(batch.views) for batch in batches]).astype(self.recipe.dtype)
        return self.recipe.network(rows, *self.parameters[: self.own])

    def _centers(self) -> Parameters:
        """A row for each class, drawn as the rows of a linear layer are."""
        if not self.supply.learned:
            return ()
        if self.recipe.classes < 1:
            names = ", ".join(f"`{name}`" for name in self.supply.learned)
            msg = f"{self.recipe.loss} learns {names}, a row for each class; say how many `classes` there are"
            raise InputError(msg)
        rows, _ = self._encoded([self._drawn(np.random.default_rng([m.seed, 2])) for m in self.members])
        width = rows.shape[-1]
        generators = [np.random.default_rng([m.seed, 3]) for m in self.members]
        shape, bound = (self.recipe.classes, width), width**-0.5
        return tuple(
            np.stack([g.uniform(-bound, bound, shape) for g in generators]).astype(self.recipe.dtype)
            for _ in self.supply.learned
        )

    def _filled_queues(self) -> list[tuple[Array, Array | None]]:
        """Features of batches that are drawn for this, before the first step."""
        self.queues = [(np.empty((0, 0)), None)] * len(self.members)
        while self.recipe.queue and len(self.queues[0][0]) < self.recipe.queue:
            batches = [self._drawn(generator) for generator in self.generators]
            features, _ = self._encoded(batches)
            for e, batch in enumerate(batches):
                self._remember(e, batch, features[e])
        return self.queues

    def _remember(self, e: int, batch: Batch, features: Array) -> None:
        """Put the features of the last view in front of the queue."""
        if not self.recipe.queue:
            return
        new, (rows, labels) = _views(features, batch)[-1], self.queues[e]
        rows = np.concatenate([new, rows.reshape(-1, new.shape[1])])[: self.recipe.queue]
        if batch.labels is not None:
            labels = np.concatenate([batch.labels, *([] if labels is None else [labels])])[: self.recipe.queue]
        self.queues[e] = rows, labels

    def _queued(self, e: int) -> dict[str, Array]:
        rows, labels = self.queues[e]
        found = {self.supply.queue: rows} if self.supply.queue else {}
        if self.supply.queue_labels and labels is not None:
            found[self.supply.queue_labels] = labels
        return found


def _views(features: Array, batch: Batch) -> tuple[Array, ...]:
    return tuple(np.split(features, len(batch.views)))


def _merged(going: Array, new: Parameters, old: Parameters) -> Parameters:
    """New parameters for those members that go on."""
    if going.all():
        return new
    return tuple(np.where(going.reshape(-1, *[1] * (w.ndim - 1)), w, v) for w, v in zip(new, old, strict=True))


def _chosen(e: int, new: Parameters, old: Parameters) -> Parameters:
    """New parameters for one member."""
    return _merged(np.arange(len(new[0])) == e, new, old)
