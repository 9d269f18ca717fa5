"""Odd numbers and arrays of every kind: the right result, or an `InputError` that names the argument. Nothing else."""

import weakref
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from engine.odd_values import NO_NUMBER, RECORD, Raising, refused, strict
from sweep import every_loss, sweep

from nceref import InputError, exact, get_loss, losses, tolerance
from nceref.checks.cases import cases
from nceref.engine import arrays
from nceref.engine.arguments import checked_number
from nceref.engine.bound_loss import bound_loss
from nceref.engine.entry_point import entry_point
from nceref.engine.namespaces import array_namespace
from nceref.spec import Array, Scalar

X = np.random.default_rng(0).standard_normal((4, 3))
LABELS = np.array([0, 0, 1, 1])


@cache
def call_of(name):
    """One good call of a loss."""
    return dict(next(cases(get_loss(name).declaration, ("random",), (0.5,), variants=1)).inputs)


class OnlyArray:
    """An object that NumPy reads, and that is wrong about itself."""

    shape, dtype = (7,), "nonsense"

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return 7

    def __array__(self, dtype=None, copy=None):
        return self.x


class Subclass(np.ndarray):
    """Every function of NumPy that sees it fails."""

    def __array_function__(self, *args):
        raise RuntimeError

    __array_ufunc__ = __array_function__


class Word(str):
    def __eq__(self, other):
        raise RuntimeError

    __hash__ = str.__hash__


NUMBERS = [Fraction(1, 2), Decimal("0.5"), np.float16(0.5), np.float32(0.5), np.array(0.5), np.longdouble(0.5), 0.5]


@every_loss
def test_what_is_no_number_is_refused_by_every_scalar(loss_name):
    for p in (p for p in get_loss(loss_name).parameters if isinstance(p, Scalar)):
        # None is the absence of an optional one, and the ellipsis that of one that must be given.
        for kind in NO_NUMBER.keys() - {"ellipsis"} - ({"none"} if p.optional else set()):
            call = {**call_of(loss_name), p.name: NO_NUMBER[kind]}
            assert refused(p.name, lambda call=call: get_loss(loss_name)(**call)), kind


@sweep("number", NUMBERS, ids=lambda x: type(x).__name__)
def test_a_number_of_any_type_counts_as_the_float_that_it_is(number):
    expected = losses.nt_xent.value_and_grad(X, X[::-1], temperature=0.5)
    with strict():
        got = losses.nt_xent.value_and_grad(X, X[::-1], temperature=number)
    assert got[0] == expected[0]
    assert got[1]["temperature"] == expected[1]["temperature"]


def test_the_message_has_the_value_that_was_given():
    p = Scalar("t", "t", "", low=0.0)
    given = {"100000": 10**400, "Decimal('1E-999')": Decimal("1e-999"), "-3.0": -3, "(2+0j)": 2 + 0j}
    for shown, value in given.items():
        assert f"got {shown}" in refused("t", lambda value=value: checked_number(p, value))
    with pytest.raises(InputError, match="KeyError: 'why'") as caught:
        checked_number(p, Raising(KeyError("why")))
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_what_ends_a_program_passes(error):
    with pytest.raises(error):
        losses.nt_xent(X, X, temperature=Raising(error()))


def unaligned(x):
    out = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def frozen(x):
    out = x.copy()
    out.flags.writeable = False
    return out


SAME = {
    "list": np.ndarray.tolist, "tuple": lambda x: tuple(map(tuple, x.tolist())), "list of arrays": list,
    "only __array__": OnlyArray, "only __array__, swapped": lambda x: OnlyArray(x.astype(">f8")),
    "interface": lambda x: SimpleNamespace(__array_interface__=x.__array_interface__, x=x), "memory": memoryview,
    "subclass": lambda x: x.view(Subclass), "matrix": lambda x: x.view(np.matrix), "read-only": frozen,
    "record array": lambda x: x.view(np.recarray), "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1], "columns": np.asfortranarray, "unaligned": unaligned,
    "swapped": lambda x: x.astype(">f8"), "broadcast": lambda x: np.broadcast_to(x, x.shape),
}  # fmt: skip


@sweep("kind", SAME)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_the_same_numbers_in_another_array_give_the_same_result(kind):
    expected = losses.supcon_out.value_and_grad(X, LABELS, temperature=0.5)
    odd = SAME[kind](X)
    with strict():
        value, grad = losses.supcon_out.value_and_grad(odd, LABELS, temperature=0.5)
    assert value == expected[0]
    assert type(grad["embeddings"]) is np.ndarray
    assert np.array_equal(grad["embeddings"], expected[1]["embeddings"])


class Hidden(OnlyArray):
    """A masked array, whose mask a conversion would drop."""

    def __init__(self, x):
        super().__init__(np.ma.masked_array(x, mask=False))


def recursive(x):
    out = [x]
    out.append(out)
    return out


NO_ARRAY = {
    "none of it": lambda x: [None] * len(x), "complex": lambda x: x + 0j, "text": lambda x: x.astype(str),
    "objects": lambda x: x.astype(object), "fractions": lambda x: [[Fraction(1, 3)] * 3] * 4,
    "record": lambda x: RECORD,
    "dates": lambda x: x.astype("M8[s]"), "durations": lambda x: x.astype("m8[s]"), "void": lambda x: x.view("V8"),
    "truth": lambda x: x > 0, "masked": lambda x: np.ma.masked_array(x), "hidden mask": Hidden, "number": lambda x: 3.5,
    "masked row": lambda x: [np.ma.masked_array(row) for row in x], "masked entry": lambda x: [[np.ma.masked] * 3] * 4,
    "numpy number": lambda x: x.ravel()[0], "generator": lambda x: (row for row in x), "set": lambda x: {1.0, 2.0},
    "dict view": lambda x: {1: x}.values(), "mapping": lambda x: {0: x}, "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "large integers": lambda x: [[10**400] * 3] * 4, "recursive": recursive, "nothing": lambda x: [],
    "type": lambda x: np.ndarray, "module": lambda x: np, "raising": lambda x: Raising(OSError("why")),
    "raising inside": lambda x: [Raising(RuntimeError("\x1b"))],
    "bad interface": lambda x: SimpleNamespace(__array_interface__=3),
    "surrogate": lambda x: ["\udc80"], "wrong namespace": lambda x: SimpleNamespace(__array_namespace__=lambda: np),
    "long double": lambda x: x.astype(np.longdouble), "small integers": lambda x: np.ones(x.shape, np.uint8),
}  # fmt: skip


@sweep("kind", NO_ARRAY)
@sweep(("loss", "name"), [("paco", "embeddings"), ("paco", "labels"), ("supcon_out", "anchor_weights")])
def test_what_is_no_array_of_such_numbers_is_refused(kind, loss, name):
    odd = NO_ARRAY[kind](np.ones((4, 3)))
    refused(name, lambda: get_loss(loss).value_and_grad(**{**call_of(loss), name: odd}))


def test_numpy_is_its_own_namespace():
    class Rows(np.ndarray):
        pass

    arrays = [np.ones(2), np.float32(1), np.ones(2).view(Rows)]
    assert [array_namespace(x) for x in arrays] == [np] * 3


def test_a_cotangent_a_choice_and_a_reduction_are_read_in_the_same_way():
    rows = {"temperature": 0.5, "reduction": "none"}
    for odd in (Raising(RuntimeError()), np.ma.ones(8), np.ones(8, "V8"), [10**400] * 8):
        refused("cotangent", lambda odd=odd: losses.nt_xent.value_and_grad(X, X, cotangent=odd, **rows))
    for odd in (Raising(RuntimeError()), 10**5000, np.ones(3), "\x1b[2J" * 1000, None, b"l2"):
        refused("normalize", lambda odd=odd: losses.nt_xent(X, X, temperature=0.5, normalize=odd))
        refused("reduction", lambda odd=odd: losses.nt_xent(X, X, temperature=0.5, reduction=odd))
    assert losses.nt_xent(X, X, temperature=0.5, normalize=Word("l2")) == losses.nt_xent(X, X, temperature=0.5)


def test_names_are_read_in_the_same_way():
    for odd in (Raising(RuntimeError()), [], 10**5000, "\x1b[2J", "x" * 10**6):
        with strict(), pytest.raises(InputError, match="no loss named") as caught:
            get_loss(odd)
        assert str(caught.value).isprintable()
    with pytest.raises(InputError, match=r"has no argument `a\\x1b`"):
        losses.nt_xent(X, X, temperature=0.5, **{"a\x1b": 1})
    with pytest.raises(InputError, match="has no argument `self`"):
        losses.nt_xent(X, X, temperature=0.5, self=1)
    for call in (tolerance.bounds, exact.reference):
        with pytest.raises(InputError, match="has no argument `declaration`"):
            call(losses.nt_xent, X, X, temperature=0.5, declaration=1)
        with pytest.raises(InputError, match="`declaration` must be a loss"):
            call(3, X, X, temperature=0.5)


@sweep("scale", [1.0, 1e-160, 1e160])
@every_loss
def test_the_state_of_the_caller_changes_nothing(loss_name, scale):
    """Overflow and underflow on the way are seen in the result: it is the same, or refused with the same words."""
    loss = get_loss(loss_name)
    call = {k: x * scale if k in embeddings(loss) else x for k, x in call_of(loss_name).items()}
    views = [loss.value_and_grad, loss.anatomy, lambda **k: vars(tolerance.bounds(loss, **k))]
    if scale == 1:
        views.append(lambda **k: exact.reference(loss, **k, digits=10, gradients=False))
    for view in views:
        expected = outcome(view, call)
        with strict():
            got = outcome(view, call)
        assert got == expected


def embeddings(loss):
    return {p.name for p in loss.parameters if isinstance(p, Array) and p.embedding}


def outcome(view, call):
    """What comes out, as text: arrays bit by bit."""
    with np.printoptions(threshold=10**6, floatmode="unique"):
        try:
            result = view(**call)
        except InputError as error:
            return str(error)
        return repr(vars(result) if hasattr(result, "relative_penalties") else result)


def test_a_bound_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="the bound of the gradient of `temperature` leaves the range"):
        tolerance.bounds(losses.nt_xent, X, X[::-1], temperature=1e-160)
    for odd in ("float8", "int64", 3, np.float16, Raising(RuntimeError())):
        refused("accumulate", lambda odd=odd: tolerance.bounds(losses.nt_xent, X, X, temperature=0.5, accumulate=odd))
    for odd in ([1j], "x", Raising(RuntimeError()), np.ma.ones(2)):
        refused("expected", lambda odd=odd: tolerance.close(1.0, odd))


def test_exact_values_that_would_take_forever_are_refused():
    for odd in (0, 10**6, 1.5, None, True):
        refused("digits", lambda odd=odd: exact.reference("nt_xent", X, X, temperature=0.5, digits=odd))
    refused("system", lambda: exact.reference("nt_xent", X, X, temperature=0.5, system="flint"))
    refused("gradients", lambda: exact.reference("nt_xent", X, X, temperature=0.5, gradients=np.ones(2)))
    # The formula squares the rows, and 1e-312 squared is 0 in floats.
    tiny = exact.reference("nt_xent", X * 1e-312, X[::-1], temperature=0.5, gradients=False)["value"]
    assert abs(float(tiny) - losses.nt_xent(X * 1e-312, X[::-1], temperature=0.5)) < 1e-12


def test_labels_that_change_during_a_call_are_those_of_its_start():
    labels = LABELS.copy()
    bound = bound_loss(losses.supcon_out.declaration, (X, labels), {"temperature": 0.5})
    labels[:] = 7
    assert bound.evaluate("mean").value("mean") == losses.supcon_out(X, LABELS, temperature=0.5)


def test_rows_that_become_no_numbers_after_they_were_checked_end_in_a_refusal(monkeypatch):
    """As another thread may write them: here nothing looks at the entries before the rows are normalized."""
    monkeypatch.setattr(arrays, "all_finite", lambda x: True)
    for bad in (np.nan, np.inf):
        with strict(), pytest.raises(InputError, match="leaves the range of float64"):
            losses.nt_xent.value_and_grad(np.full((4, 3), bad), X, temperature=0.5)


def test_memory_that_runs_out_is_a_message_with_sizes_and_leaves_nothing_behind():
    left = []

    @entry_point
    def computation(x, *, weights):
        own = np.ones(3)
        left.append(weakref.ref(own))
        return np.empty((10**9, 10**9)) + own

    with pytest.raises(MemoryError) as caught:
        computation(X, weights=LABELS)
    assert str(caught.value).startswith("out of memory for (4, 3) float64, `weights` (4,) int64: Unable to allocate ")
    assert "(1000000000, 1000000000)" in str(caught.value)
    assert left[0]() is None
