"""Records that the parts of the verifier exchange: frozen data, no behavior."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nceref.spec import Loss

if TYPE_CHECKING:
    from nceref.engine.bound_loss import BoundLoss
    from nceref.tolerance import Bounds

Status = Literal["pass", "fail", "skip", "error", "xfail", "xpass", "inconclusive"]


MANY_ROWS, MANY_ENTRIES = 16, 300
"""Rows, and entries, of an array above which a case is a large one."""
RANDOM_WALK = "random walk"
"""The name, among the stages of a bound, of the bound for roundings that are random."""


@dataclass(frozen=True, eq=False)
class Probe:
    """One input of the corpus, with what a right implementation answers and how far it may be from that.

    Attributes
    ----------
    id : str
        Geometry, variant and temperature, such as ``random-0.07``; stable.
    loss : Loss
        The reference.
    inputs : mapping
        The arguments of the loss by name, settings included; float arrays are float64 arrays whose entries are numbers
        of `dtype`, and so are float scalars.
    dtype : str
        The format of the run: ``float64``, ``float32``, ``bfloat16`` or ``float16``.
    reduction : str
        ``mean``, ``sum`` or ``none``; with ``none`` gradients are those of the sum of the rows.
    value : float or array
        The reference; rows under the reduction ``none``; None where there is none, see `skip`.
    grads : mapping
        Gradients of the reference by input; empty on a kink.
    bounds : Bounds
        Largest distance of a right implementation in `dtype` from the reference, per quantity.
    skip : str
        Why this probe is not judged, or empty.
    mode : str
        Way of calling the target, see `nceref.verification.modes`; empty for the plain one.
    cotangent : float, array or None
        Upstream gradient that backward is seeded with, of which `grads` are; None for 1.
    before : Probe or None
        Case that the same instance is called with first.
    forms : mapping
        Parametrizations by scalar whose rounding the bounds admit, see `nceref.cases.parametrization`.
    must_refuse : bool
        Whether no number is right: the loss refuses these inputs, and a right program raises, or answers with an error.
    trains_constants : bool
        Whether a target intends that declared constants get a gradient.
    """

    id: str
    loss: Loss
    inputs: Mapping[str, Any]
    dtype: str
    reduction: str = "mean"
    value: Any = None
    grads: Mapping[str, Any] = field(default_factory=dict)
    bounds: "Bounds | None" = None
    skip: str = ""
    mode: str = ""
    cotangent: Any = None
    before: "Probe | None" = None
    forms: Mapping[str, str] = field(default_factory=dict)
    must_refuse: bool = False
    trains_constants: bool = False

    @property
    def entries(self) -> int:
        """Number of entries of all inputs together."""
        return sum(np.size(x) for x in self.inputs.values())

    @property
    def is_large(self) -> bool:
        """Whether its arrays are too large for a search; what is found on the others must hold on it."""
        sizes = [np.shape(x) for x in self.inputs.values() if isinstance(x, np.ndarray)]
        return any(shape[0] > MANY_ROWS or math.prod(shape) > MANY_ENTRIES for shape in sizes if shape)

    @cached_property
    def bound(self) -> "BoundLoss":
        """The loss with these inputs, checked once; raises `InputError` where the loss refuses them."""
        # Imported here: a child process that runs a target has no use for what computes losses and tolerances.
        from nceref.engine.bound_loss import bound_loss

        return bound_loss(self.loss, (), self.inputs)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The answer of a target to a probe, or its trouble.

    Attributes
    ----------
    value : float, array or None
        Value in float64; None where there is `trouble`.
    grads : mapping
        Gradients by input, in float64; an input that the graph does not reach has zeros.
    unjudged : mapping
        Inputs whose gradient cannot be judged, with the reason.
    trouble : str
        Id of what went wrong: ``raises``, ``exits``, ``hangs``, ``dies``, ``wrong-shape``, ``not-a-number-type`` ...,
        or empty; ``not-tried`` where it was not called, and ``unsupported`` where the target declares that it cannot
        answer this.
    sentence : str
        The trouble in words.
    remarks : mapping
        Findings beside the numbers, id to sentence: ``modifies-inputs``, ``not-deterministic``, ``python-float``.
    ranks : tuple of Outcome
        Outcome of each rank, with gradients as they were left there; empty where there is one process.
    """

    value: Any = None
    grads: Mapping[str, Any] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    sentence: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)
    ranks: tuple["Outcome", ...] = ()


@dataclass(frozen=True, eq=False)
class Observation:
    """A probe and what the target did with it."""

    probe: Probe
    outcome: Outcome


@dataclass(frozen=True)
class Result:
    """One judged quantity of one case.

    Attributes
    ----------
    id : str
        ``case/quantity``, such as ``random-0.07/grad.z1``.
    quantity : str
        ``value``, ``value.finite``, ``grad.NAME``, ``grad.NAME.finite``, ``identity.NAME``, ``mode.NAME``,
        ``behavior.ID``.
    error, bound, bits : float or None
        Largest error, its bound, and how many leading bits of the largest entry are right. Of what passes, limits: the
        error is below a quarter of the bound, or below the bound, whatever the machine.
    size : float or None
        The largest entry of the reference.
    why : str
        A sentence; never empty.
    """

    id: str
    case: str
    quantity: str
    status: Status
    error: float | None
    bound: float | None
    bits: float | None
    why: str
    size: float | None = None


Role = Literal["computes", "wrong", "right", "note", "training"]


@dataclass(frozen=True)
class DiagnosisPart:
    """One thing that an explanation says.

    Attributes
    ----------
    text : str
        A part of a sentence, such as ``the gradient of keys is 0``.
    cases : str
        Cases on which that was seen, and numbers, such as ``on 9 of 9 cases``; or empty.
    role : str
        ``computes``: what the target does in place of the reference; ``wrong`` and ``right``: what was seen of its
        numbers; ``note``: what was measured beside that; ``training``: what training makes of it.
    """

    text: str
    cases: str = ""
    role: Role = "wrong"

    def __str__(self) -> str:
        between = ", " if self.role == "computes" else " "
        return f"{self.text}{between}{self.cases}" if self.cases else self.text


@dataclass(frozen=True)
class Diagnosis:
    """An explanation: one convention or several at once, their ids joined by ``+``.

    A measured one has the formula of the target and, of the same form, that of the reference.

    Attributes
    ----------
    parts : tuple of DiagnosisPart
        Measured facts, in the order of a sentence.
    fix : str
        The change that is needed.
    where : str
        The runs that it is about, such as ``in float32``; empty where there is one.
    intend : str
        Options of the command under which the difference is intended, such as ``--set factor=outer-factor-2``; empty
        where nothing else is different.
    first : bool
        Whether it is what explains these runs; otherwise it was measured beside that, or is another explanation.
    predicts : callable or None
        Whether observations of other inputs are as it says; None where it says nothing of other inputs.
    """

    id: str
    parts: tuple[DiagnosisPart, ...] = ()
    threads: tuple[str, ...] = ()
    fix: str = ""
    formula: str = ""
    reference: str = ""
    where: str = ""
    intend: str = ""
    first: bool = True
    predicts: Callable[[Sequence[Observation]], bool] | None = field(default=None, compare=False, repr=False)

    @property
    def sentence(self) -> str:
        """The whole explanation: where it applies, and all its parts."""
        return f"{self.where} {'; '.join(map(str, self.parts))}".strip()

    @property
    def lead(self) -> DiagnosisPart:
        """The first part that says what is computed or wrong; else the first of all."""
        return next((s for s in self.parts if s.role in ("computes", "wrong")), self.parts[0])

    def noting(self, *texts: str, role: Role = "note") -> "Diagnosis":
        """The explanation with one more part for each text that is not empty."""
        return replace(self, parts=(*self.parts, *(DiagnosisPart(text, "", role) for text in texts if text)))

    def record(self) -> dict[str, Any]:
        """The explanation as plain data."""
        fields = {name: x for name, x in vars(self).items() if name != "predicts"}
        parts = [asdict(part) for part in self.parts]
        first = {"id": self.id, "sentence": self.sentence}
        return first | fields | {"threads": list(self.threads), "parts": parts}
