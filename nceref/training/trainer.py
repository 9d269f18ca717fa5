"""The steps: every member of an ensemble draws a batch, the network runs once for all, the loss once for each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.engine.arguments import converted
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.training import scalars
from nceref.training.batch import Batch, Member
from nceref.training.encoders import Encoded, EncoderVjp, encoded, encoded_with_keys, momentum_update, views
from nceref.training.network import Parameters, initial
from nceref.training.queue import Queue
from nceref.training.recipe import Moment, Recipe, Trained
from nceref.training.supply import Supply, supply

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator], Batch]


@entry_point
def train(
    recipe: Recipe,
    members: Sequence[Member],
    draw: Draw,
    *,
    on_progress: Callable[[int], Any] | None = None,
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
    on_progress : callable, optional
        Called with the number of each step when it is done.
    watch : callable, optional
        Called with a `Moment` for each step of each member that goes on.

    Returns
    -------
    Trained
        For a member that diverged, its last sound parameters.

    Raises
    ------
    InputError
        If the loss cannot be supplied, or refuses a batch whatever the features are, or the first step of a member. A
        member that diverges later is stopped instead.
    """
    _check_functions(draw=draw, **{k: f for k, f in (("on_progress", on_progress), ("watch", watch)) if f is not None})
    listed = converted("members", members, tuple, members) if isinstance(members, Iterable) else ()
    run = _Run(recipe, listed, draw, watch)
    for step in range(1, recipe.steps + 1):
        run.step(step)
        if on_progress is not None:
            on_progress(step)
        if all(run.stopped):
            break
    run.close()
    return Trained(recipe, run.members, *run.split(run.good), run.losses, tuple(run.stopped))


def _check_functions(**given: Any) -> None:
    for name, function in given.items():
        if not callable(function):
            msg = f"`{name}` must be a function, got {shown(function)}"
            raise InputError(msg)


class _Run:
    """The state of a run: parameters of network and loss in one tuple, slow copy, queues, generators."""

    def __init__(
        self, recipe: Recipe, members: tuple[Member, ...], draw: Draw, watch: Callable[[Moment], Any] | None
    ) -> None:
        given: Any = recipe
        if not isinstance(given, Recipe):
            msg = f"`recipe` must be a Recipe, got {shown(recipe)}"
            raise InputError(msg)
        if not members or not all(isinstance(member, Member) for member in members):
            msg = f"`members` must be one or more of Member, such as [Member(0, 0.1)], got {shown(members)}"
            raise InputError(msg)
        self.recipe, self.members, self.draw, self.watch = recipe, members, draw, watch
        self.loss = losses.get_loss(recipe.loss)
        self.supply: Supply = supply(self.loss.declaration, recipe.settings, recipe.queue)
        self.scalars = scalars.learned(self.loss.declaration, recipe.learn)
        # Streams of their own: [seed, 1] draws batches, [seed, 2] the batch that shows the width of the features,
        # [seed, 3] centers, and the seed alone the weights. None moves another.
        self.generators = [np.random.default_rng([m.seed, 1]) for m in members]
        self.stopped: list[tuple[int, str] | None] = [None] * len(members)
        self.shapes: tuple[Any, ...] = ()
        self.parameters: Parameters = initial(recipe.network, [m.seed for m in members], recipe.dtype)
        # Before centers and scalars are appended: the slow copy is one of the encoder alone.
        self.slow, self.own = self.parameters, len(self.parameters)
        self.batches: dict[int, Batch] = {}
        self.queues = self._filled_queues()
        self.parameters += self._centers() + self._weights_of_scalars()
        # Good are the last parameters of each member with which its loss could be taken.
        self.start = self.good = self.parameters
        self.memory = recipe.optimizer.start(self.parameters)
        self.losses = np.full((recipe.steps, len(members)), np.nan)

    def split(self, parameters: Parameters) -> tuple[Parameters, dict[str, Array]]:
        """The parameters of the network, and those of the loss by name."""
        names = (*self.supply.learned, *(one.name for one in self.scalars))
        learned = dict(zip(names, parameters[self.own :], strict=True))
        return parameters[: self.own], learned | {one.name: one.value(learned[one.name]) for one in self.scalars}

    def step(self, number: int) -> None:
        """One step of every member that has not stopped."""
        self.batches = {e: self._drawn(self.generators[e]) for e in self._going()}
        going, features, vjp = self._features(number)
        by_features = np.zeros_like(features)
        gradients = tuple(np.zeros_like(w) for w in self.parameters)
        # A member that stops keeps gradients of 0, and `_move` leaves it where it was.
        for i, e in enumerate(going):
            grads = self._grads(number, e, features[i])
            if grads is not None:
                by_features[i] = self.supply.by_features(grads, views(features[i], self.batches[e]))
                for g, gradient in zip(gradients[self.own :], self._by_learned(e, grads), strict=True):
                    g[e] = gradient
        # Not strict: behind the parameters of the network stand those of the loss, which are filled already.
        for g, gradient in zip(gradients, vjp(by_features), strict=False):
            g[going] = gradient
        self._move(number, gradients)

    def close(self) -> None:
        """The last update counts for those members that have features after it."""
        self._features(self.recipe.steps + 1)
        self.good = _chosen(self._going(), self.parameters, self.good)

    def _going(self) -> list[int]:
        return [e for e, stop in enumerate(self.stopped) if stop is None]

    def _features(self, number: int) -> tuple[list[int], Array, EncoderVjp]:
        """Features of the members that go on, one after another; a member that has none stops."""
        # Again without those that are refused: the network runs once for all who are left.
        while going := self._going():
            try:
                features, vjp = self._encoded(going)
            except InputError:
                refused = 0 if number == 1 else sum(self._refused(number, e) for e in going)
                # Not a divergence: at the first step nothing was trained, and later no single member is the cause.
                if not refused:
                    raise
                continue
            for i, e in enumerate(going):
                if not np.isfinite(features[i]).all():
                    self.stopped[e] = number, "the features are infinite or NaN"
            return going, features, vjp
        return [], np.empty((0, 0, 0)), lambda g: ()

    def _refused(self, number: int, e: int) -> bool:
        """Whether the network refuses this member, which stops then."""
        try:
            self._encoded([e])
        except InputError as error:
            self.stopped[e] = number, str(error)
        return self.stopped[e] is not None

    def _encoded(self, members: list[int]) -> Encoded:
        batches, network, dtype = [self.batches[e] for e in members], self.recipe.network, self.recipe.dtype
        weights = _of(self.parameters[: self.own], members)
        if self.recipe.momentum is None:
            return encoded(network, weights, batches, dtype)
        return encoded_with_keys(network, weights, _of(self.slow, members), batches, dtype)

    def _grads(self, number: int, e: int, features: Array) -> Mapping[str, Array] | None:
        """Gradients of the loss for a member, or None, and it stops."""
        if self.stopped[e] is not None:
            return None
        inputs = self._inputs(e, features, self.parameters)
        try:
            value, grads = self.loss.value_and_grad(**inputs)
        except InputError as error:
            if number == 1 or self._is_refused_anyway(e, features):
                msg = f"step {number}, {self.members[e]}: {error}"
                raise InputError(msg) from None
            self.stopped[e] = number, str(error)
            return None
        self.losses[number - 1, e] = value
        if self.watch is not None:
            self.watch(Moment(number, e, inputs, value, grads))
        self._remember(e, features)
        return dict(grads)

    def _inputs(self, e: int, features: Array, parameters: Parameters) -> dict[str, Any]:
        """The arguments of the loss for a member; those that it learns stand in the parameters."""
        batch, (_, learned) = self.batches[e], self.split(parameters)
        inputs = self.supply.arguments(self.members[e], views(features, batch), batch)
        inputs |= {name: w[e] if w.ndim > 1 else float(w[e]) for name, w in learned.items()} | self._queued(e)
        if twice := inputs.keys() & batch.given.keys():
            names = ", ".join(f"`{name}`" for name in sorted(twice))
            msg = f"{names} of {self.recipe.loss} comes from the trainer; leave it out of `given` of the batches"
            raise InputError(msg)
        return inputs | dict(batch.given)

    def _is_refused_anyway(self, e: int, features: Array) -> bool:
        """Whether the loss refuses the batch whatever the features are: then its labels are at fault, not the run."""
        # Random rows are neither zero nor alike, and the parameters of the start have not diverged.
        others = np.random.default_rng(0).standard_normal(features.shape).astype(features.dtype)
        try:
            self.loss.value_and_grad(**self._inputs(e, others, self.start))
        except InputError:
            return True
        return False

    def _by_learned(self, e: int, grads: Mapping[str, Array]) -> list[Array]:
        """The gradients of a member by the weights that the loss learns."""
        weights = self.parameters[self.own + len(self.supply.learned) :]
        slopes = (one.slope(w[e], grads[one.name]) for one, w in zip(self.scalars, weights, strict=True))
        return [*(grads[name] for name in self.supply.learned), *slopes]

    def _move(self, number: int, gradients: Parameters) -> None:
        """Go on to new parameters, member by member: good are the old ones, which the loss could be taken of."""
        self.good = _chosen(self._going(), self.parameters, self.good)
        moved, self.memory = self.recipe.optimizer.step(self.parameters, gradients, self.memory, number)
        for e in self._going():
            # The means as well: an infinite mean of squares gives steps of 0, and the parameters would look sound.
            for what, arrays in (("parameters", moved), ("optimizer's means", chain(*self.memory))):
                if not all(np.isfinite(w[e]).all() for w in arrays):
                    self.stopped[e] = number, f"the {what} are infinite or NaN"
        self.parameters = _chosen(self._going(), moved, self.good)
        if self.recipe.momentum is not None:
            self.slow = momentum_update(self.slow, self.parameters[: self.own], self.recipe.momentum)

    def _drawn(self, generator: np.random.Generator) -> Batch:
        batch: Any = self.draw(generator)
        if not isinstance(batch, Batch):
            msg = f"`draw` must return a Batch, got {type(batch).__name__}"
            raise InputError(msg)
        self.supply.check(batch)
        if self.recipe.momentum is not None and len(batch.views) < 2:
            msg = "`momentum` is for the keys, the last of two or more views, but the batches have one; draw two"
            raise InputError(msg)
        # Features of all members are one array, and the network runs once for all.
        self.shapes = self.shapes or batch.shapes
        if batch.shapes != self.shapes:
            msg = f"all batches must have the same shapes, got {batch.shapes} after {self.shapes}"
            raise InputError(msg)
        return batch

    def _centers(self) -> Parameters:
        """A row for each class, drawn as the rows of a linear layer are."""
        names, classes = ", ".join(f"`{name}`" for name in self.supply.learned), self.recipe.classes
        if not names and classes:
            msg = f"{self.recipe.loss} learns nothing for each class; leave `classes` out, got {classes}"
            raise InputError(msg)
        if names and not classes:
            msg = f"{self.recipe.loss} learns {names}, a row for each class; say how many `classes` there are"
            raise InputError(msg)
        if not names:
            return ()
        # The width is that of real features. This batch has a stream of its own, so that centers cost no batch.
        self.batches = {e: self._drawn(np.random.default_rng([m.seed, 2])) for e, m in enumerate(self.members)}
        width = self._encoded(self._going())[0].shape[-1]
        generators = [np.random.default_rng([m.seed, 3]) for m in self.members]
        bound = width**-0.5
        return tuple(
            np.stack([g.uniform(-bound, bound, (classes, width)) for g in generators]).astype(self.recipe.dtype)
            for _ in self.supply.learned
        )

    def _weights_of_scalars(self) -> Parameters:
        """The weights of the scalars that are learned, one for each member."""
        loss, settings = self.loss.declaration, self.recipe.settings
        return tuple(
            np.array([scalars.started(loss, one, member, settings) for member in self.members], self.recipe.dtype)
            for one in self.scalars
        )

    def _filled_queues(self) -> list[Queue]:
        """Features of batches that are drawn for this, before the first step."""
        # `_remember` replaces an entry, so that one empty queue can stand for all.
        self.queues = [Queue(self.recipe.queue)] * len(self.members)
        while not self.queues[0].full:
            self.batches = {e: self._drawn(generator) for e, generator in enumerate(self.generators)}
            features, _ = self._encoded(self._going())
            for e in self._going():
                self._remember(e, features[e])
        return self.queues

    def _remember(self, e: int, features: Array) -> None:
        """Put the features of the last view in front of the queue."""
        batch = self.batches[e]
        if self.recipe.queue:
            self.queues[e] = self.queues[e].pushed(views(features, batch)[-1], batch.labels)

    def _queued(self, e: int) -> dict[str, Any]:
        names, queue = (self.supply.queue, self.supply.queue_labels), self.queues[e]
        return {name: held for name, held in zip(names, (queue.rows, queue.labels), strict=True) if name}


def _of(parameters: Parameters, members: list[int]) -> Parameters:
    """The parameters of some members."""
    # No copy while nobody has stopped, which is the rule.
    return parameters if len(members) == len(parameters[0]) else tuple(w[members] for w in parameters)


def _chosen(members: list[int], new: Parameters, old: Parameters) -> Parameters:
    """New parameters for some members, old ones for the others."""
    if len(members) == len(old[0]):
        return new
    merged = tuple(w.copy() for w in old)
    for w, v in zip(merged, new, strict=True):
        w[members] = v[members]
    return merged
