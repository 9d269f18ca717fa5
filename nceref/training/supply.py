"""Arguments of a loss by its declaration, and their sources in the trainer: views, labels, centers, a queue.

A loss with one input gets the rows of all views as one set: for uniformity, the views of a sample repel each other too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from nceref import spec
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
from nceref.errors import InputError
from nceref.registry import pick
from nceref.training.batch import Batch, Member

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Supply:
    """The parts that parameters of a loss have in training, by their names.

    Attributes
    ----------
    loss : Loss
    pair : tuple of str
        Two inputs, one for each of two views; empty if the loss has one.
    single : str
        The input that holds all rows, or, with `stacked`, all views of each sample; empty if there is a pair.
    stacked : bool
    flat : bool
        The loss takes one number of each sample, not a row.
    labels, queue, queue_labels : str
        Empty where the loss has none, or is not to get it.
    learned : tuple of str
        Inputs with a row for each class, trained along with the encoder.
    missing : tuple of str
        What each batch has to bring.
    given : mapping
        Arguments as they were passed.
    """

    loss: spec.Loss
    pair: tuple[str, ...] = ()
    single: str = ""
    stacked: bool = False
    flat: bool = False
    labels: str = ""
    queue: str = ""
    queue_labels: str = ""
    learned: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self, member: Member, views: tuple[Array, ...], batch: Batch) -> dict[str, Any]:
        """The arguments of the loss that are features, labels, settings and temperature, by name.

        Arguments that are learned are left out, and so is the queue.
        """
        if self.flat:
            views = tuple(self._numbers(v) for v in views)
        arguments = dict(self.given) | temperature(self.loss, member, self.given)
        if self.pair:
            rows: dict[str, Any] = dict(zip(self.pair, views, strict=True)) | self._labels(batch.labels, 1)
        elif self.stacked and len(views) > 1:
            rows = {self.single: np.stack(views, axis=1)} | self._labels(batch.labels, 1)
        else:
            rows = {self.single: np.concatenate(views)} | self._labels(batch.labels, len(views))
        return arguments | rows

    def by_features(self, grads: Mapping[str, Array], views: tuple[Array, ...]) -> Array:
        """The gradient by all rows, as the encoder returned them.

        An input that is a constant has no gradient. `views` are the features that the loss was taken of; the gradient
        stands view after view.
        """
        if self.pair:
            pairs = zip(self.pair, views, strict=True)
            return np.concatenate([np.reshape(grads.get(name, np.zeros_like(v)), v.shape) for name, v in pairs])
        # Stacked rows are (N, V, D): the views go in front again.
        g = grads[self.single]
        return np.concatenate(list(np.swapaxes(g, 0, 1))) if g.ndim == 3 else g

    def _numbers(self, view: Array) -> Array:
        if view.shape[1] != 1:
            msg = f"{self.loss.name} takes one number of each sample, got {view.shape[1]}; give the network 1 output"
            raise InputError(msg)
        return view[:, 0]

    def _labels(self, labels: Array | None, copies: int) -> dict[str, Array]:
        return {self.labels: np.tile(labels, copies)} if self.labels and labels is not None else {}

    def check(self, batch: Batch) -> None:
        """Raise `InputError` unless a batch has what the loss needs of it."""
        name, count = self.loss.name, len(batch.views)
        if self.pair and count != 2:
            msg = f"{name} compares two views of each sample, the batches have {count}; draw two"
            raise InputError(msg)
        if not self.flat and len({*map(len, batch.views)}) > 1:
            msg = f"the views of {name} must be of the same samples, got {[*map(len, batch.views)]} rows"
            raise InputError(msg)
        if batch.labels is None and (self.labels in self.missing or self.queue_labels):
            msg = f"{name} needs labels, but the batches have none; draw labeled ones"
            raise InputError(msg)
        for p in self.loss.parameters:
            if p.name in self.missing and p.name not in (self.labels, *batch.given):
                what = f"the trainer cannot supply `{p.name}` of {name} ({p.meaning[:-1]})"
                msg = f"{what}; pass it in the settings, or as `given` of every batch"
                raise InputError(msg)


def supply(loss: spec.Loss, settings: Mapping[str, Any], queue: int) -> Supply:
    """The supply of a loss, by its declaration, the settings and the size of the queue.

    `settings` are arguments of the loss that stay the same: choices, scalars but the temperature, constants such as
    class counts. `queue` is the number of earlier rows; 0: none, if the loss can do without. Raises `InputError` if the
    loss has no such arguments, no input that takes features, or a queue is missing or given in vain.
    """
    known = {p.name: p for p in loss.parameters}
    for name in settings:
        pick(f"argument of {loss.name} that can be set", name, known, f"nceref losses {loss.name}")
    # What the settings bring is constant, so it is not made of features.
    rows = tuple(p for p in loss.parameters if _is_rows(p) and p.name not in settings)
    if not rows:
        msg = f"the trainer cannot supply {loss.name}: none of its inputs takes the features of a batch"
        raise InputError(msg)
    names = tuple(p.name for p in rows)
    fields: dict[str, Any] = {"pair": names} if len(rows) == 2 else {"single": names[0]}
    learned, missing = [], []
    for p in loss.parameters:
        if isinstance(p, spec.Scalar | spec.Choice) or p.name in settings or p in rows:
            continue
        kind = _kind(p)
        if kind == "learned":
            learned.append(p.name)
            continue
        if kind == "labels" or (kind in ("queue", "queue_labels") and (queue or p.required)):
            fields[kind] = p.name
        # A queue is filled by the trainer; its own message is below.
        if p.required and kind != "queue":
            missing.append(p.name)
    if bool(queue) != ("queue" in fields):
        why = "needs a queue; say how many rows it has" if "queue" in fields else "has no `queue`; leave it out"
        msg = f"{loss.name} {why}, got queue={queue}"
        raise InputError(msg)
    return Supply(
        loss, **fields, stacked=any(p.alternative for p in rows), flat=all(len(p.shape) == 1 for p in rows),
        learned=tuple(learned), missing=tuple(missing), given=dict(settings),
    )  # fmt: skip


def _is_rows(p: spec.Parameter) -> TypeGuard[spec.Array]:
    """Whether an input has one entry for each sample that an encoder can make: an embedding, logits, or a number."""
    if not isinstance(p, spec.Array) or not p.required:
        return False
    return p.shape in (("N", "D"), ("N", "C")) or (len(p.shape) == 1 and not p.constant)


_KINDS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("labels", lambda p: isinstance(p, spec.Labels) and p.shape == ("N",)),
    ("queue_labels", lambda p: isinstance(p, spec.Labels) and p.shape == ("K",)),
    ("queue", lambda p: isinstance(p, spec.Array) and p.constant and p.shape == ("K", "D")),
    (
        "learned",
        lambda p: isinstance(p, spec.Array) and p.required and not p.constant and len(p.shape) == 2
        and p.shape[0] == "C",
    ),
)  # fmt: skip


def _kind(p: spec.Parameter) -> str:
    return next((kind for kind, holds in _KINDS if holds(p)), "")


def temperature(loss: spec.Loss, member: Member, given: Mapping[str, Any]) -> dict[str, float]:
    """The temperature, or the scale that stands for it.

    Without a temperature in the member the loss keeps its default; settings come first. There is at most one argument.
    Raises `InputError` if the member has a temperature and the loss none to set.
    """
    names = [p.name for p in loss.parameters if p.name in INVERSE_TEMPERATURES and p.name not in given]
    if member.temperature is None:
        return {}
    if not names:
        what = f"{loss.name} has no temperature that is not set already"
        msg = f"{what}, got {member.temperature}; leave it out of the member"
        raise InputError(msg)
    return {name: at_temperature(name, member.temperature) for name in names}
