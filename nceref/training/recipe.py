"""Recipes of training, and its results: plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import checked_number, integer, one_of, real_array
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.spec import Scalar
from nceref.training.batch import Member
from nceref.training.network import Network, Parameters
from nceref.training.optimizers import Adam, Optimizer

Array = npt.NDArray[Any]
_COUNTS = {"steps": (1, 10**9), "classes": (0, 1 << 24), "queue": (0, 1 << 24)}
"""The least and the largest value; arrays of more rows, or of more steps, fit into no memory."""
_OPTIMIZER = ("start", "step")
_MOMENTUM = Scalar("momentum", "", "", low=0.0, low_closed=True, high=1.0, high_closed=True)


@dataclass(frozen=True, eq=False)
class Recipe:
    """The loss, the network and the settings of a training.

    Attributes
    ----------
    loss : str
        Name of any loss.
    network : Network
        The encoder of all views; for a loss over logits, with one output for each class.
    steps : int
        >= 1.
    optimizer : Optimizer
    settings : mapping
        Arguments of the loss that stay the same, such as class counts.
    classes : int
        Rows of learned centers or class weights, where the loss has them.
    queue : int
        Rows of a queue of earlier features of the last view.
    momentum : float, optional
        Make the features of the last view by a slow copy of the encoder, which keeps this share of its weights at each
        step and gets no gradient (MoCo has 0.999); None: by the encoder itself.
    learn : sequence of str
        Scalars of the loss that are trained along, such as ``logit_scale`` and ``logit_bias``: a positive one by its
        logarithm. They start where the member's temperature, the settings or the defaults put them.
    dtype : {"float32", "float64"}
    """

    loss: str
    network: Network
    steps: int
    optimizer: Optimizer = field(default_factory=Adam)
    settings: Mapping[str, Any] = field(default_factory=dict)
    classes: int = 0
    queue: int = 0
    momentum: float | None = None
    learn: Sequence[str] = ()
    dtype: str = "float64"

    def __post_init__(self) -> None:
        for name, (least, most) in _COUNTS.items():
            object.__setattr__(self, name, integer(f"`{name}`", getattr(self, name), least, most))
        network: Any = self.network
        if not isinstance(network, Network):
            msg = f"`network` must be a Network, such as mlp((8, 32, 4)), got {shown(network)}"
            raise InputError(msg)
        if isinstance(self.optimizer, type) or not all(callable(getattr(self.optimizer, f, None)) for f in _OPTIMIZER):
            msg = f"`optimizer` must be one, such as Adam(1e-3), got {shown(self.optimizer)}"
            raise InputError(msg)
        if self.momentum is not None:
            object.__setattr__(self, "momentum", checked_number(_MOMENTUM, self.momentum))
        if not isinstance(self.learn, tuple | list) or not all(isinstance(name, str) for name in self.learn):
            remedy = f"; write ({shown(self.learn)},)" if isinstance(self.learn, str) else ""
            msg = f"`learn` must be a tuple of names, got {shown(self.learn)}{remedy}"
            raise InputError(msg)
        if not isinstance(self.settings, Mapping) or not all(isinstance(name, str) for name in self.settings):
            msg = f"`settings` must map names of arguments to values, got {shown(self.settings)}"
            raise InputError(msg)
        object.__setattr__(self, "dtype", one_of("dtype", self.dtype, ("float32", "float64")))


@dataclass(frozen=True, eq=False)
class Moment:
    """One member at one step, for those who watch and change nothing: what went into the loss, and what came out."""

    step: int
    member: int
    inputs: Mapping[str, Any]
    value: float
    grads: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of training; leading axes are the members.

    Attributes
    ----------
    recipe : Recipe
    members : tuple of Member
    parameters : tuple of arrays
        Of the network, the last sound ones of each member.
    learned : mapping
        Centers, class weights and scalars by name.
    losses : (steps, E) array
        NaN for a member that has stopped.
    stopped : tuple of (int, str) or None
        For each member the step at which it diverged, and how; recipe.steps + 1 if the last update did it.
    """

    recipe: Recipe
    members: tuple[Member, ...]
    parameters: Parameters
    learned: Mapping[str, Array]
    losses: Array
    stopped: tuple[tuple[int, str] | None, ...]

    @entry_point
    def features(self, x: Array) -> Array:
        """Features of samples (N, F) by every member, (E, N, D)."""
        x = real_array("x", x).astype(self.recipe.dtype)
        if x.ndim != 2:
            msg = f"`x` must be of shape (N, F), got {x.shape}"
            raise InputError(msg)
        if not np.isfinite(x).all():
            msg = f"`x` must be finite in {self.recipe.dtype}; clean the data"
            raise InputError(msg)
        return self.recipe.network(np.broadcast_to(x, (len(self.members), *x.shape)), *self.parameters)[0]
