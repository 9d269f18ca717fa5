"""Small networks with a hand-written backward pass, for many members of an ensemble at once.

A layer maps rows, (..., N, F), and stands for every member of the ensemble: the leading axes of rows and parameters are
the same. Each returns its value together with the function that takes a gradient back through it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import integer, one_of, real_array
from nceref.errors import InputError
from nceref.output.text import shown

Array = npt.NDArray[Any]
Parameters = tuple[Array, ...]
LayerVjp = Callable[[Array], tuple[Array, Parameters]]
"""The backward pass of a layer: from the gradient by the value to those by the rows and by the parameters."""
MOST_FEATURES = 1 << 24
"""The most features of a row in one layer: more do not fit into the memory of one machine."""


class Layer(Protocol):
    """A layer of a network."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the parameters of one member."""

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The value, and the backward pass.

        Parameters have `shapes`, each with the leading axes of `x`. The backward pass takes the gradient by the value
        to that by `x` and those by the parameters.
        """


@dataclass(frozen=True)
class Linear:
    """x W' + b with W (outputs, inputs); the parameters are W and, with `bias`, b."""

    inputs: int
    outputs: int
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            object.__setattr__(self, name, integer(f"`{name}`", getattr(self, name), 1, MOST_FEATURES))
        one_of("bias", self.bias, (True, False))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of W and b."""
        return ((self.outputs, self.inputs), *([(self.outputs,)] if self.bias else []))

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The value, (..., N, outputs), of rows (..., N, inputs), and the backward pass."""
        if x.shape[-1] != self.inputs:
            msg = f"rows of shape {x.shape} do not go into {self}; they must have {self.inputs} features"
            raise InputError(msg)
        W = parameters[0]
        value = x @ np.swapaxes(W, -1, -2)
        if self.bias:
            value = value + parameters[1][..., None, :]

        def vjp(g: Array) -> tuple[Array, Parameters]:
            by_weights = np.swapaxes(g, -1, -2) @ x
            return g @ W, (by_weights, g.sum(axis=-2)) if self.bias else (by_weights,)

        return value, vjp


@dataclass(frozen=True)
class Tanh:
    """tanh of every entry."""

    shapes: tuple[tuple[int, ...], ...] = ()

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The tanh of every entry, and the backward pass: the derivative is 1 - tanh^2."""
        value = np.tanh(x)
        return value, lambda g: (g * (1 - value * value), ())


@dataclass(frozen=True)
class ReLU:
    """The positive part of every entry; its derivative at 0 is set to 0."""

    shapes: tuple[tuple[int, ...], ...] = ()

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The positive parts; a complex entry counts as its real part: complex steps can check the derivative."""
        on = ~(x.real <= 0)  # NaN stays NaN, which `x.real > 0` would turn into 0
        return np.where(on, x, x.dtype.type(0)), lambda g: (np.where(on, g, g.dtype.type(0)), ())


@dataclass(frozen=True)
class Normalize:
    """Rows scaled to length 1; a row of zeros has no direction and is refused."""

    shapes: tuple[tuple[int, ...], ...] = ()

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The rows x over their lengths, z, and the backward pass, (g - (g.z) z) / |x|."""
        # Taken after division by the largest entry, squares neither overflow nor vanish.
        # The value does not depend on this factor, so it may be real where x takes a complex step.
        peak = np.abs(x.real).max(axis=-1, keepdims=True)
        if np.any(peak == 0):
            where = tuple(int(i) for i in np.argwhere(peak[..., 0] == 0)[0])
            msg = f"row {where} of the features is zero and has no direction; leave out the normalization"
            raise InputError(msg)
        shrunk = x / peak
        length = np.sqrt((shrunk * shrunk).sum(axis=-1, keepdims=True))
        value = shrunk / length

        def vjp(g: Array) -> tuple[Array, Parameters]:
            return (g - (g * value).sum(axis=-1, keepdims=True) * value) / length / peak, ()

        return value, vjp


@dataclass(frozen=True)
class Network:
    """Layers one after another; the parameters are those of all layers in one tuple."""

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        layers = self.layers if isinstance(self.layers, tuple | list) else ()
        if not layers or not all(callable(x) and isinstance(getattr(x, "shapes", None), tuple) for x in layers):
            msg = f"`layers` must be one or more layers, such as (Linear(8, 4), Tanh()), got {shown(self.layers)}"
            raise InputError(msg)
        object.__setattr__(self, "layers", tuple(layers))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the parameters of one member."""
        return tuple(shape for layer in self.layers for shape in layer.shapes)

    def __call__(self, x: Array, *parameters: Array) -> tuple[Array, LayerVjp]:
        """The value of the last layer; `vjp` goes through all of them, last to first."""
        x = _checked_rows(x)
        _check_parameters(self.shapes, parameters)
        vjps, start = [], 0
        for layer in self.layers:
            stop = start + len(layer.shapes)
            x, back = layer(x, *parameters[start:stop])
            vjps.append(back)
            start = stop

        def vjp(g: Array) -> tuple[Array, Parameters]:
            by_parameters: Parameters = ()
            for back in reversed(vjps):
                g, own = back(g)
                by_parameters = own + by_parameters  # in front: the layers are passed last to first
            return g, by_parameters

        return x, vjp


def _checked_rows(x: Any) -> Array:
    # Complex rows as well, as complex steps need.
    rows: Array = x if type(x) is np.ndarray and x.dtype.kind in "fc" else real_array("x", x)
    if rows.ndim < 2:
        msg = f"`x` must be rows of shape (..., N, F), got {rows.shape}"
        raise InputError(msg)
    return rows


def _check_parameters(shapes: Sequence[tuple[int, ...]], parameters: Parameters) -> None:
    """Raise unless there is one array for each shape, with any leading axes."""
    given = [w.shape if isinstance(w, np.ndarray) and w.dtype.kind in "fc" else shown(w) for w in parameters]
    if len(given) != len(shapes) or any(own[-len(shape) :] != shape for own, shape in zip(given, shapes, strict=True)):
        msg = f"`parameters` must be arrays of floats of the shapes {list(shapes)}, with axes of members, got {given}"
        raise InputError(msg)


def mlp(
    sizes: Sequence[int], *, activation: type[Tanh] | type[ReLU] = ReLU, bias: bool = True, normalize: bool = False
) -> Network:
    """Linear layers with an activation between each two, and unit rows at the end with `normalize`.

    Parameters
    ----------
    sizes : sequence of int
        Features of the input, of each hidden layer, and of the output.
    activation : Tanh or ReLU
    bias : bool
        Of every linear layer.
    normalize : bool
        Whether the rows of the output have length 1.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        For fewer than two sizes, a size below 1, or another activation.
    """
    given: Any = sizes
    if not (isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim == 1)) or len(given) < 2:
        msg = f"`sizes` must name at least 2 layers, such as (8, 32, 4), got {shown(given)}"
        raise InputError(msg)
    sizes = [integer("each of `sizes`", size, 1, MOST_FEATURES) for size in sizes]
    if activation is not Tanh and activation is not ReLU:
        msg = f"`activation` must be Tanh or ReLU, the class, got {shown(activation)}"
        raise InputError(msg)
    one_of("normalize", normalize, (True, False))
    layers: list[Layer] = [Linear(sizes[0], sizes[1], bias)]
    for inputs, outputs in pairwise(sizes[1:]):
        layers += [activation(), Linear(inputs, outputs, bias)]
    return Network((*layers, Normalize()) if normalize else tuple(layers))


def initial(network: Network, seeds: Sequence[int], dtype: str = "float64") -> Parameters:
    """Parameters of a member for each seed, stacked: uniform in +-1 / sqrt(inputs) of their layer.

    They have the shapes of the network, with a leading axis of members.
    """
    # Drawn in float64 and rounded then: both dtypes start from the same numbers.
    members = [_drawn(network, np.random.default_rng(seed)) for seed in seeds]
    return tuple(np.stack(arrays).astype(dtype) for arrays in zip(*members, strict=True))


def _drawn(network: Network, rng: np.random.Generator) -> list[Array]:
    drawn = []
    for layer in network.layers:
        if isinstance(layer, Network):
            drawn += _drawn(layer, rng)
        elif layer.shapes:
            # The first shape of a layer is (outputs, inputs); its bias has the same range.
            bound = layer.shapes[0][-1] ** -0.5
            drawn += [rng.uniform(-bound, bound, shape) for shape in layer.shapes]
    return drawn
