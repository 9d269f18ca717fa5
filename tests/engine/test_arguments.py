"""Bad input never becomes a silent 0, NaN or broadcast: an `InputError` says which argument, what, and what to do."""

import copy
import pickle

import array_api_strict
import numpy as np
import pytest
from sweep import every_loss, sweep

import nceref
from nceref import InputError, get_loss, losses, registry
from nceref.checks.cases import cases
from nceref.engine.arguments import integer
from nceref.spec import Array, Labels, Scalar

X = np.random.default_rng(0).standard_normal((4, 3))


def arguments(name):
    """One good call of a loss, arrays as NumPy."""
    case = next(cases(get_loss(name).declaration, ("random",), (0.3,), variants=1))
    return dict(case.inputs)


def each(kind, where=lambda p, call: True, given=True):
    """Every parameter of a kind, of every loss, that its good call gives."""
    members = [
        (name, p)
        for name in registry.names("nceref.family")
        for p in get_loss(name).parameters
        if isinstance(p, kind) and (not given or arguments(name).get(p.name) is not None) and where(p, arguments(name))
    ]
    return sweep(("name", "p"), members, ids=[f"{name}-{p.name}" for name, p in members])


def assert_refused(name, message, **changed):
    """The call with changed arguments raises, and the message names what it should."""
    with pytest.raises(InputError, match=message) as caught:
        get_loss(name).value_and_grad(**{**arguments(name), **changed})
    assert isinstance(caught.value, ValueError)


@each(Array)
@sweep("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_with_its_place(name, p, bad):
    x = np.array(arguments(name)[p.name])
    x[(-1,) * x.ndim] = bad
    assert_refused(name, rf"`{p.name}` must be finite everywhere, got {bad} at index", **{p.name: x})


@each(Array)
@sweep("dtype", [np.int64, np.complex128, np.longdouble])
def test_arrays_that_are_not_real_floats_of_64_bits_are_refused(name, p, dtype):
    x = np.ones(arguments(name)[p.name].shape, dtype=dtype)
    if p.like == "counts" and dtype is np.int64:
        x = x > 0
    assert_refused(name, rf"`{p.name}` must be an array of .*real floats.*got dtype {x.dtype}; convert", **{p.name: x})


@each(Array)
def test_empty_arrays_are_refused(name, p):
    empty = arguments(name)[p.name][:0]
    assert_refused(name, rf"`{p.name}` (is empty: its shape is \(0|must be \()", **{p.name: empty})


@each(Array)
def test_a_missing_dimension_is_refused(name, p):
    assert_refused(name, rf"`{p.name}` must be \(", **{p.name: arguments(name)[p.name][0]})


@each(Array, lambda p, call: "N" in p.shape or "C" in p.shape)
@sweep("axis", [0, -1])
def test_shapes_that_do_not_match_are_refused_and_never_broadcast(name, p, axis):
    first = next(q for q in get_loss(name).parameters if isinstance(q, Array))
    if p is first or p.shape[axis] not in (*first.shape, "E"):
        pytest.skip("nothing to match: this array sets the size")
    short = np.take(arguments(name)[p.name], range(1), axis=axis)
    assert_refused(name, rf"`{p.name}` must be ", **{p.name: short})


@each(Labels)
def test_labels_of_the_wrong_length_are_refused(name, p):
    short = arguments(name)[p.name][:-1]
    assert_refused(name, rf"`{p.name}` must be \(N,\) = \(4,\) to match .*, got \(3,\)", **{p.name: short})


@each(Labels)
def test_float_labels_are_refused(name, p):
    assert_refused(name, rf"`{p.name}` must be an array of integers", **{p.name: arguments(name)[p.name] * 1.0})


@each(Labels, lambda p, call: p.classes)
@sweep("bad", [-1, 3])
def test_labels_out_of_range_are_refused(name, p, bad):
    labels = np.array(arguments(name)[p.name])
    labels[1] = bad
    message = (
        rf"`{p.name}` must lie in 0 \.\.\. 2 for the 3 classes of `\w+`, got {bad} at index \(1,\); .*(ignored|from 0)"
    )
    assert_refused(name, message, **{p.name: labels})


@each(Labels)
@sweep(
    ("labels", "what"),
    [
        ([2**63, -1, 0, 0], "fit into 64-bit signed integers, got 9223372036854775808; number the classes"),
        ([0, 0, -(2**63) - 1, 1.0], "fit into 64-bit signed integers, got -9223372036854775809"),
        ([10**30] * 4, "fit into 64-bit signed integers, got 1000000000000000000000000000000"),
        (np.full(4, 2**63, dtype=np.uint64), "fit into 64-bit signed integers, got 9223372036854775808"),
        (["cat", "dog", "cat", "dog"], r"an array of integers, got \['cat', .*; convert it to integers, one for each"),
    ],
)
def test_labels_that_are_no_64_bit_integers_are_shown(name, p, labels, what):
    assert_refused(name, f"`{p.name}` must (be )?{what}", **{p.name: labels})


@each(Scalar, given=False)
def test_scalars_outside_their_domain_are_refused(name, p):
    edges = [*([] if p.low_closed else [p.low]), *([] if p.high_closed else [p.high])]
    for bad in (np.nan, np.inf, "0.3", b"1", True, [0.3, 0.4], np.ones(2), 1j, p.low - 1, p.high + 1, *edges):
        assert_refused(name, rf"`{p.name}` must be ", **{p.name: bad})


@pytest.mark.parametrize("bad", [0, -0.07, 0.0])
def test_temperature_must_be_positive(bad):
    with pytest.raises(InputError, match=f"`temperature` must be > 0, got {float(bad)}"):
        losses.nt_xent(X, X, temperature=bad)


@each(Array, lambda p, call: p.embedding and len(call[p.name].shape) == 2)
def test_zero_rows_are_refused_under_normalization(name, p):
    x = np.array(arguments(name)[p.name])
    x[-1] = 0
    assert_refused(name, rf"`{p.name}` row {len(x) - 1} is zero and has no direction", **{p.name: x})


@each(Array | Labels | Scalar, given=False)
def test_unknown_arguments_are_refused_with_a_hint(name, p):
    assert_refused(name, rf"has no argument `{p.name}x`; did you mean `\w+`", **{p.name + "x": 1.0})


@each(Array | Labels | Scalar, lambda p, call: getattr(p, "required", False) or getattr(p, "default", None) is ...)
def test_missing_arguments_are_named(name, p):
    call = {key: value for key, value in arguments(name).items() if key != p.name}
    with pytest.raises(InputError, match=f"{name} needs `{p.name}`"):
        get_loss(name)(**call)


def test_too_many_positional_arguments_are_refused():
    with pytest.raises(
        InputError, match=r"at most 2 positional arguments \(z1, z2\), got 3; pass `temperature` or .* by name"
    ):
        losses.nt_xent(X, X, 0.1)


def test_an_argument_given_twice_is_refused():
    with pytest.raises(InputError, match="got `z1` both by position and by name"):
        losses.nt_xent(X, X, z1=X, temperature=0.1)


@pytest.mark.parametrize("reduction", ["average", None, 1, np.array(["mean"])])
def test_unknown_reductions_are_refused(reduction):
    with pytest.raises(InputError, match="`reduction` must be 'mean', 'sum' or 'none'"):
        losses.nt_xent(X, X, temperature=0.1, reduction=reduction)


@sweep(
    ("cotangent", "message"),
    [
        (None, "needs `cotangent`, one number for each row"),
        (
            np.ones(4),
            r"`cotangent` must be \(8,\), one number .*, got \(4,\); rows of nt_xent are \(2N,\), view 1 first",
        ),
        (1.0, r"`cotangent` must be \(8,\), one number for each row, got one number"),
        (np.full(8, np.nan), "`cotangent` must be finite"),
        (np.ones(8, dtype=int), "`cotangent` must be an array of real floats"),
        (np.ones(8, dtype=complex), "`cotangent` must be an array of real floats"),
        (array_api_strict.ones(8), "`cotangent` is an array of array_api_strict"),
    ],
)
def test_cotangents_are_checked_like_any_array(cotangent, message):
    with pytest.raises(InputError, match=message):
        losses.nt_xent.value_and_grad(X, X, temperature=0.1, reduction="none", cotangent=cotangent)


def test_a_cotangent_without_rows_is_refused():
    with pytest.raises(InputError, match="goes with reduction='none' only"):
        losses.nt_xent.value_and_grad(X, X, temperature=0.1, cotangent=np.ones(8))
    with pytest.raises(InputError, match=r"belongs to nt_xent.value_and_grad"):
        losses.nt_xent(X, X, temperature=0.1, reduction="none", cotangent=np.ones(8))


def test_libraries_and_devices_are_not_mixed():
    strict = array_api_strict.asarray(X)
    with pytest.raises(
        InputError, match="`z2` is an array of numpy, but `z1` is one of array_api_strict; convert them"
    ):
        losses.nt_xent(strict, X, temperature=0.1)
    elsewhere = array_api_strict.asarray(X, device=array_api_strict.Device("device1"))
    with pytest.raises(InputError, match=r"`z2` is on .*device1.*; move them to one device"):
        losses.nt_xent(strict, elsewhere, temperature=0.1)


def test_masked_arrays_are_refused_because_the_mask_would_be_lost():
    with pytest.raises(InputError, match="`x` is a masked array"):
        losses.alignment(np.ma.masked_less(X, 0), X)


def test_tensors_that_record_a_graph_are_refused():
    """Their own backward pass would send gradients to what is a constant here."""

    class Recording(float):
        requires_grad = True

    with pytest.raises(InputError, match=r"`temperature` requires grad.*pass temperature.detach\(\)"):
        losses.nt_xent(X, X, temperature=Recording(0.1))


def test_a_scalar_does_not_decide_the_array_library():
    strict = array_api_strict.asarray(X)
    value = losses.nt_xent(temperature=np.float64(0.1), z1=strict, z2=strict)
    assert float(value) == losses.nt_xent(X, X, temperature=array_api_strict.asarray(0.1))


@pytest.mark.parametrize("wrap", [np.asarray, array_api_strict.asarray])
def test_mixed_dtypes_are_computed_in_the_widest_and_gradients_keep_their_own(wrap):
    single, double = X.astype(np.float32), X[::-1].copy()
    value, grad = losses.clip.value_and_grad(wrap(single), wrap(double), logit_scale=10.0)
    expected, full = losses.clip.value_and_grad(single.astype(np.float64), double, logit_scale=10.0)
    assert float(value) == expected
    assert np.asarray(grad["image"]).dtype == np.float32
    assert np.array_equal(np.asarray(grad["image"]), full["image"].astype(np.float32))
    assert np.array_equal(np.asarray(grad["text"]), full["text"])


def test_byte_order_does_not_change_the_result():
    expected = losses.nt_xent.value_and_grad(X, X[::-1], temperature=0.01)
    got = losses.nt_xent.value_and_grad(X.astype(">f8"), X[::-1].astype(">f8"), temperature=0.01)
    assert got[0] == expected[0]
    assert np.array_equal(got[1]["z1"], expected[1]["z1"])


def test_ragged_lists_and_words_are_refused():
    with pytest.raises(InputError, match=r"`z1` must be a rectangular array, .*; make its rows equally long"):
        losses.nt_xent([[1.0], [1.0, 2.0]], X, temperature=0.1)
    with pytest.raises(InputError, match="`z1` must be an array of real floats of at most 64 bits, got 'words'"):
        losses.nt_xent("words", X, temperature=0.1)


def test_lists_are_arrays_of_the_library_of_the_call():
    labels = [0, 0, 1, 1]
    expected = losses.supcon_out(X, np.array(labels), temperature=0.1)
    assert losses.supcon_out(X.tolist(), labels, temperature=0.1) == expected
    strict = losses.supcon_out(array_api_strict.asarray(X), labels, temperature=0.1)
    assert float(strict) == expected


def test_labels_of_any_integer_type_are_compared_as_numbers():
    """256 is not 0, even when the other labels are bytes."""
    queue = X[:2] + 1
    small = np.array([0, 0, 1, 1], dtype=np.uint8)
    for dtype in (np.int16, np.int64, np.uint16):
        labels = np.array([256, 1], dtype=dtype)
        got = losses.supcon_out(X, small, temperature=0.3, queue=queue, queue_labels=labels)
        expected = losses.supcon_out(X, small.astype(int), temperature=0.3, queue=queue, queue_labels=[7, 1])
        assert got == expected


def test_an_anchor_without_a_positive_is_refused_by_number():
    with pytest.raises(
        InputError,
        match=r"anchor 2 has no positive: neither `labels` nor .*; drop it, or pass no_positive='skip' or 'zero'",
    ):
        losses.supcon_out(X, [0, 0, 1, 0], temperature=0.1)


def test_queues_must_fit_and_come_with_labels():
    call = {"temperature": 0.1, "labels": [0, 0, 1, 1]}
    with pytest.raises(InputError, match=r"`queue` must be \(K, D\) = \(K, 3\) to match `embeddings`, got \(5, 2\)"):
        losses.supcon_out(X, queue=np.ones((5, 2)), queue_labels=[0] * 5, **call)
    with pytest.raises(InputError, match="`queue` was given without `queue_labels`"):
        losses.supcon_out(X, queue=np.ones((5, 3)), **call)
    with pytest.raises(InputError, match=r"`queue_labels` must be \(K,\) = \(5,\) to match `queue`, got \(4,\)"):
        losses.supcon_out(X, queue=np.ones((5, 3)), queue_labels=[0] * 4, **call)


COUNTS = each(Array, lambda p, call: p.like == "counts")


def lengthened(counts, like):
    """Counts with as many entries as there must be: a 1 in the place of each that is missing."""
    missing = len(like) - len(counts)
    if isinstance(counts, list):
        return counts + [type(counts[-1])(1)] * missing
    return np.append(counts, np.ones(missing, dtype=counts.dtype)) if len(counts) else counts


@COUNTS
@sweep("counts", [[3, 1, 100], np.int8([3, 1, 100]), np.uint64([3, 1, 2**53]), np.int64([2**24 + 1, 2**53 - 1, 1])])
@sweep("wrap", [np.asarray, array_api_strict.asarray])
def test_integer_counts_give_the_result_of_the_same_floats(name, p, counts, wrap):
    call = {key: wrap(x) if isinstance(x, np.ndarray) else x for key, x in arguments(name).items()}
    counts = lengthened(counts, arguments(name)[p.name])
    given = counts if isinstance(counts, list) else wrap(counts)
    value, grad = get_loss(name).value_and_grad(**{**call, p.name: given})
    floats = wrap(np.asarray(counts, dtype=np.float64))
    expected, expected_grad = get_loss(name).value_and_grad(**{**call, p.name: floats})
    assert float(value) == float(expected)
    for key, g in expected_grad.items():
        assert np.array_equal(np.asarray(grad[key]), np.asarray(g))


@COUNTS
def test_integer_counts_widen_no_result_unless_their_digits_take_it(name, p):
    call = arguments(name)
    given = call | {q.name: np.float32(call[q.name]) for q in get_loss(name).parameters if isinstance(q, Array)}
    cotangent = {"reduction": "none", "cotangent": np.ones(4, dtype=np.float32)}
    for largest, dtype in ((2**24, np.float32), (2**24 + 1, np.float64)):
        rows, _ = get_loss(name).value_and_grad(**{**given, p.name: lengthened([largest], call[p.name])}, **cotangent)
        assert rows.dtype == dtype


@COUNTS
@sweep(
    ("counts", "what"),
    [
        ([3.0, 0.0, 1.0], r"> 0 everywhere, got 0.0 at index \(1,\); replace it"),
        ([3, 0, 1], r"> 0 everywhere, got 0.0 at index \(1,\)"),
        (np.int8([3, 1, -128]), r"> 0 everywhere, got -128.0 at index \(2,\)"),
        ([1, 1, 2**53 + 1], "integers of at most 2\\^53 = 9007199254740992, got 9007199254740993; pass frequencies"),
        ([1, 10**30, 1], "an array of integers or real floats .* of dtype object; convert it to integers or float64"),
        (
            [True, True, True],
            "an array of integers or real floats .* got dtype bool; convert it to integers or float64",
        ),
        (np.zeros(0, dtype=int), r"\([CN],\) = \([34],\) to match"),
    ],
)
def test_what_is_no_count_is_refused(name, p, counts, what):
    assert_refused(name, f"`{p.name}` must be {what}", **{p.name: lengthened(counts, arguments(name)[p.name])})


@pytest.mark.parametrize("name", ["dcl", "dclw", "hcl", "debiased"])
def test_losses_that_need_negatives_refuse_a_single_pair(name):
    with pytest.raises(InputError, match="has no negatives for 1 pair"):
        getattr(losses, name)(X[:1], X[:1], temperature=0.1)


def test_unknown_losses_are_named_with_their_neighbors():
    with pytest.raises(InputError, match=r"no loss named 'supcon'; did you mean .*'supcon_in'.*See `nceref losses`"):
        get_loss("supcon")
    with pytest.raises(AttributeError, match="no loss named 'ntxent'; did you mean 'nt_xent'"):
        _ = losses.ntxent
    with pytest.raises(InputError, match="no loss named 'None'"):
        get_loss(None)


def test_a_loss_can_be_copied_and_pickled():
    assert pickle.loads(pickle.dumps(losses.nt_xent)) is losses.nt_xent
    assert copy.deepcopy(losses.nt_xent) is losses.nt_xent


@every_loss
def test_every_loss_documents_its_arguments(loss_name):
    loss = get_loss(loss_name)
    kinds = {"mask": "float or bool array", "counts": "float or int array"}
    for p in loss.parameters:
        assert f"\n{p.name} : {kinds.get(getattr(p, 'like', ''), '')}" in loss.__doc__
    assert set(loss.__signature__.parameters) == {p.name for p in loss.parameters} | {"reduction", "compute"}


def test_the_public_api_is_what_it_says():
    assert set(nceref.__all__) <= set(dir(nceref))
    for name in nceref.__all__:
        assert getattr(nceref, name) is not None
    with pytest.raises(AttributeError, match="module 'nceref' has no attribute 'nope'"):
        _ = nceref.nope


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(5)])
def test_an_integer_in_the_range_becomes_an_int(value):
    number = integer("`n`", value, 2, 5)
    assert type(number) is int
    assert number == value


@sweep("value", [1, 6, 2.0, True, np.True_, "3", None])
def test_what_is_no_integer_or_outside_the_range_is_refused(value):
    with pytest.raises(InputError, match="`n` must be an integer from 2 to 5, got"):
        integer("`n`", value, 2, 5)
