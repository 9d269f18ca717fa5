"""Measured cases, as data: how each loss is called, how large it is, its target, and the work nobody gets around."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

Letters = tuple[str, ...]


@dataclass(frozen=True)
class Pairs:
    """Anchors times candidates, each a sum of sizes, and the operations that a pair and a dimension cost."""

    anchors: Letters
    candidates: Letters
    operations: int


@dataclass(frozen=True)
class Call:
    """The arguments of a loss.

    Attributes
    ----------
    arrays : dict
        Shapes in letters; every array but the constants gets a gradient.
    pairs : tuple of Pairs
        Pairs that are compared.
    labels : dict
        The size of each array of labels; there are C of them.
    settings, learned : dict
        Scalars that are fixed, and those that get a gradient.
    options : dict
        Options for nceref alone: the convention that the baseline follows.
    """

    arrays: dict[str, Letters]
    pairs: tuple[Pairs, ...]
    constants: Letters = ()
    labels: dict[str, str] = field(default_factory=dict)
    settings: dict[str, float] = field(default_factory=dict)
    learned: dict[str, float] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


# Both passes compute the upper half of the logits, 2 x M^2 D, and pull it to the rows on either side, 2 M^2 D.
_MIRRORED = 4
# Logits once, kept for the second pass, and a product for the gradient of each tower: 3 x 2 N M D.
_KEPT = 6
# As before, with the logits computed a second time: 4 x 2 N M D.
_RECOMPUTED = 8

_TOWERS = (Pairs(("N",), ("N",), _KEPT),)
CALLS = {
    "nt_xent": Call(
        arrays={"z1": ("N", "D"), "z2": ("N", "D")},
        pairs=(Pairs(("N", "N"), ("N", "N"), _MIRRORED),),
        settings={"temperature": 0.1},
    ),
    "info_nce": Call(arrays={"queries": ("N", "D"), "keys": ("N", "D")}, pairs=_TOWERS, settings={"temperature": 0.1}),
    "clip": Call(arrays={"image": ("N", "D"), "text": ("N", "D")}, pairs=_TOWERS, learned={"logit_scale": 14.0}),
    "siglip": Call(
        arrays={"image": ("N", "D"), "text": ("N", "D")},
        pairs=_TOWERS,
        learned={"logit_scale": 10.0, "logit_bias": -10.0},
    ),
    "supcon_out": Call(
        arrays={"embeddings": ("N", "D")},
        labels={"labels": "N"},
        pairs=(Pairs(("N",), ("N",), _MIRRORED),),
        settings={"temperature": 0.1},
    ),
    "paco": Call(
        arrays={"embeddings": ("N", "D"), "centers": ("C", "D"), "queue": ("K", "D")},
        constants=("queue",),
        labels={"labels": "N", "queue_labels": "K"},
        pairs=(Pairs(("N",), ("N", "K"), _RECOMPUTED), Pairs(("N",), ("C",), _RECOMPUTED)),
        settings={"alpha": 0.05, "temperature": 0.2},
        options={"form": "normalized"},
    ),
}


@dataclass(frozen=True)
class Case:
    """A loss at a size.

    Attributes
    ----------
    target : float, optional
        Least speedup over the baseline.
    within : float, optional
        Most time, in units of the floor.
    """

    loss: str
    sizes: dict[str, int]
    dtype: str = "float32"
    target: float | None = None
    within: float | None = None

    @property
    def call(self) -> Call:
        """The arguments of the loss."""
        return CALLS[self.loss]

    @property
    def name(self) -> str:
        """Loss, anchors x dimensions, dtype."""
        anchors = self.size(self.call.pairs[0].anchors)
        return f"{self.loss} {anchors}x{self.sizes['D']} {self.dtype.replace('float', 'f')}"

    @property
    def operations(self) -> int:
        """Floating-point operations of the matrix products."""
        return sum(p.operations * self.size(p.anchors) * self.size(p.candidates) for p in self.call.pairs) * self.dim

    @property
    def exponentials(self) -> int:
        """Number of exponentials: one for every pair."""
        return sum(self.size(p.anchors) * self.size(p.candidates) for p in self.call.pairs)

    @property
    def dim(self) -> int:
        """Dimensions of the embeddings."""
        return self.sizes["D"]

    def size(self, letters: Letters) -> int:
        """The sum of some sizes."""
        return sum(self.sizes[letter] for letter in letters)

    def floor(self, rates: dict[str, float]) -> float:
        """Seconds of the work at the rates of this machine."""
        return self.operations / rates["operations"] + self.exponentials / rates["exponentials"]

    def smaller(self, largest: int = 64) -> "Case":
        """The same loss at a size that takes no time and has no target."""
        sizes = {letter: min(size, largest) for letter, size in self.sizes.items()}
        sizes |= {"D": min(self.dim, 16)} | ({"C": min(sizes["C"], largest // 4)} if "C" in sizes else {})
        return replace(self, sizes=sizes, target=None, within=None)

    def plain(self) -> dict[str, Any]:
        """The case as plain data, for JSON."""
        return asdict(self)


def inputs(case: Case) -> dict[str, Any]:
    """NumPy arrays, labels and scalars by name: rows of a length of about 1, every label equally often."""
    rng = np.random.default_rng(0)
    scale = np.asarray(case.dim**-0.5, dtype=case.dtype)
    out: dict[str, Any] = {}
    for name, letters in case.call.arrays.items():
        # In the dtype itself: a float64 array on the way would count as peak memory.
        out[name] = rng.standard_normal([case.sizes[letter] for letter in letters], dtype=case.dtype)
        out[name] *= scale
    for name, letter in case.call.labels.items():
        out[name] = rng.permutation(np.arange(case.sizes[letter]) % case.sizes["C"])
    return out | case.call.settings | case.call.learned


def views(rows: int, dim: int = 128, **more: Any) -> Case:
    """NT-Xent with M rows, which are two views of M / 2 samples."""
    return Case("nt_xent", {"N": rows // 2, "D": dim}, **more)


def _large() -> Iterator[Case]:
    yield views(8192, target=4.5, within=1.4)
    yield views(8192, dtype="float64", target=4.0)
    for dim in (128, 512):
        for loss in ("info_nce", "clip", "siglip"):
            target = 4.0 if dim == 128 else 1.7 if loss == "clip" else 2.0
            yield Case(loss, {"N": 4096, "D": dim}, target=target)
    yield Case("supcon_out", {"N": 4096, "D": 128, "C": 100}, target=4.0)
    yield Case("paco", {"N": 4096, "D": 128, "C": 1000, "K": 8192}, target=4.0)


LARGE = tuple(_large())
SMALL = tuple(
    Case(loss, {"N": 64, "D": 16} | ({"C": 8} if loss == "supcon_out" else {}), target=1.0)
    for loss in ("nt_xent", "info_nce", "clip", "siglip", "supcon_out")
)
SPEED = LARGE + SMALL
QUICK = tuple({case.name: case for case in map(Case.smaller, SPEED)}.values())
TUNED = ("nt_xent",)
"""Losses of which there is a tuned formulation beside the baseline."""
