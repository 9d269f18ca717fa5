"""The steps: every member of an ensemble draws a batch, the network runs once for all, the loss once for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.errors import InputError
from nceref.network import Parameters, initial
from nceref.training import scalars
from nceref.training.encoders import Encoded, encoded, encoded_with_keys, followed, views
from nceref.training.recipe import Moment, Recipe, Trained
from nceref.training.supply import Batch, Member, Supply, supply

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator], Batch]


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
    """The state of a run: parameters of network and loss in one tuple, slow copy, queues, generators."""

    def __init__(
        self, recipe: Recipe, members: tuple[Member, ...], draw: Draw, watch: Callable[[Moment], Any] | None
    ) -> None:
        self.recipe, self.members, self.draw, self.watch = recipe, members, draw, watch
        self.loss = losses.get_loss(recipe.loss)
        self.supply: Supply = supply(self.loss.declaration, recipe.settings, recipe.queue)
        self.scalars = scalars.learned(self.loss.declaration, recipe.learn)
        self.generators = [np.random.default_rng([m.seed, 1]) for m in members]
        self.parameters: Parameters = initial(recipe.network, [m.seed for m in members], recipe.dtype)
        self.slow, self.own = self.parameters, len(self.parameters)
        self.queues: list[tuple[Array, Array | None]] = self._filled_queues()
        self.parameters += self._centers() + self._weights_of_scalars()
        self.good, self.memory = self.parameters, recipe.optimizer.start(self.parameters)
        self.losses = np.full((recipe.steps, len(members)), np.nan)
        self.stopped: list[tuple[int, str] | None] = [None] * len(members)

    def split(self, parameters: Parameters) -> tuple[Parameters, dict[str, Array]]:
        """Those of the network, and those of the loss by name."""
        names = (*self.supply.learned, *(one.name for one in self.scalars))
        learned = dict(zip(names, parameters[self.own :], strict=True))
        return parameters[: self.own], learned | {one.name: one.value(learned[one.name]) for one in self.scalars}

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
                    by_features[e] = self.supply.by_features(grads, views(features[e], batch))
                    for g, found in zip(by_learned, self._by_learned(e, grads), strict=True):
                        g[e] = found
        moved, self.memory = self.recipe.optimizer.step(
            self.parameters, (*pull(by_features), *by_learned), self.memory, number
        )
        self._keep(number, moved)
        if self.recipe.momentum is not None:
            self.slow = followed(self.slow, self.parameters[: self.own], self.recipe.momentum)

    def _grads(self, number: int, e: int, batch: Batch, features: Array) -> Mapping[str, Array] | None:
        """Gradients of the loss for a member, or None, and it stops."""
        if not np.isfinite(features).all():
            self.stopped[e] = number, "the features are infinite or NaN"
            return None
        inputs = self.supply.arguments(self.members[e], views(features, batch), batch)
        _, learned = self.split(self.parameters)
        inputs |= {name: w[e] if w.ndim > 1 else float(w[e]) for name, w in learned.items()} | self._queued(e)
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

    def _by_learned(self, e: int, grads: Mapping[str, Array]) -> list[Array]:
        """Of a member, by what the loss learns."""
        weights = self.parameters[self.own + len(self.supply.learned) :]
        slopes = (one.slope(w[e], grads[one.name]) for one, w in zip(self.scalars, weights, strict=True))
        return [*(grads[name] for name in self.supply.learned), *slopes]

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

    def _encoded(self, batches: Sequence[Batch]) -> Encoded:
        network, weights, dtype = self.recipe.network, self.parameters[: self.own], self.recipe.dtype
        if self.recipe.momentum is None:
            return encoded(network, weights, batches, dtype)
        if len(batches[0].views) < 2:
            msg = "`momentum` is for the keys, the last of two or more views, but the batches have one; draw two"
            raise InputError(msg)
        return encoded_with_keys(network, weights, self.slow, batches, dtype)

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

    def _weights_of_scalars(self) -> Parameters:
        """One for each member."""
        loss, settings = self.loss.declaration, self.recipe.settings
        return tuple(
            np.array([scalars.started(loss, one, member, settings) for member in self.members], self.recipe.dtype)
            for one in self.scalars
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
        new, (rows, labels) = views(features, batch)[-1], self.queues[e]
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


def _merged(going: Array, new: Parameters, old: Parameters) -> Parameters:
    """New parameters for those members that go on."""
    if going.all():
        return new
    return tuple(np.where(going.reshape(-1, *[1] * (w.ndim - 1)), w, v) for w, v in zip(new, old, strict=True))


def _chosen(e: int, new: Parameters, old: Parameters) -> Parameters:
    """New parameters for one member."""
    return _merged(np.arange(len(new[0])) == e, new, old)
