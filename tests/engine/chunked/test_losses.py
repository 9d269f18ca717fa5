"""Losses of arrays in chunks give what they give in memory, whatever the chunks are."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from equal_keys import equal_keys, ranks_of_equal, rounded_by_place, worst
from slow import partly_slow
from sweep import every_loss

from nceref import InputError, config, get_loss, losses
from nceref.checks.cases import cases
from nceref.engine import arrays, libraries, similarity, ties
from nceref.engine.arguments import real_array
from nceref.engine.chunked import run
from nceref.engine.namespaces import array_namespace
from nceref.tolerance import bounds

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'nceref[dask]'")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((2, 13, 4))
LABELS = np.arange(13) % 3
VIEWS = RNG.standard_normal((13, 3, 4))
WHOLE = {("arcface", "class_weights")}
"""Arguments that must not be in chunks."""
MASK = (LABELS[:, None] == LABELS) * RNG.uniform(0.1, 1, (13, 13))


@pytest.fixture(autouse=True)
def one_thread():
    """Chunks in turn: to share them among threads takes longer, and one test asks for that."""
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(x, size):
    """The array in chunks of `size` rows, and of fewer features than it has."""
    return da.from_array(x, chunks=(size, *(max(1, n - 1) for n in x.shape[1:])))


def assert_same(loss, inputs, in_chunks, **options):
    """Value and gradients within twice the bound of those in memory; gradients of chunks are in the same chunks."""
    allowed = bounds(loss, **inputs)
    expected, truth = loss.value_and_grad(**inputs, **options)
    arguments = {**inputs, **in_chunks}
    value, grads = loss.value_and_grad(**arguments, **options)
    assert isinstance(value, float)
    assert abs(value - expected) <= 2 * allowed.value
    assert value == loss(**arguments, **options)
    assert set(grads) == set(truth)
    for name, grad in truth.items():
        if name in in_chunks:
            assert grads[name].chunks == in_chunks[name].chunks
            assert grads[name].dtype == inputs[name].dtype
        else:
            assert type(grads[name]) is type(grad)
        assert np.all(np.abs(np.asarray(grads[name]) - grad) <= 2 * allowed.grads[name]), name


@pytest.mark.parametrize(
    ("dtype", "geometries", "temperature", "variants"),
    partly_slow(
        [(np.float64, ("random", "odd", "lonely"), 0.3, None), (np.float32, ("random",), 0.01, 1)],
        lambda case: case[0] is np.float32,
        "three geometries, all variants",
    ),
)
def test_chunks_give_what_memory_gives(loss_name, dtype, geometries, temperature, variants):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, geometries, (temperature,), variants):
        inputs = case.cast(dtype)
        arrays = {k: x for k, x in inputs.items() if isinstance(x, np.ndarray) and (loss_name, k) not in WHOLE}
        assert_same(loss, inputs, {k: chunked(x, 3) for k, x in arrays.items()})


SETTINGS = {
    "one chunk of many": ("info_nce", {"queries": X, "keys": Y}, {"queries": (1, 12), "keys": 13}),
    "one input in memory": ("nt_xent", {"z1": X, "z2": Y}, {"z2": 5}),
    "far from the origin": ("uniformity", {"x": X + 7, "t": 0.1, "normalize": "none"}, {"x": 4}),
    "more negatives than queries": ("info_nce", {"queries": X, "keys": Y, "negatives": np.tile(X, (3, 1))},
                                    {"queries": 7, "negatives": 2}),
    "fewer negatives than queries": ("info_nce", {"queries": X, "keys": Y, "negatives": Y[:3]},
                                     {"queries": 2, "negatives": 2}),
    "classes in chunks": ("cosface", {"embeddings": X, "class_weights": Y[:5], "target": LABELS},
                          {"embeddings": 3, "class_weights": 2}),
    "logits": ("cross_entropy", {"logits": X, "target": LABELS, "label_smoothing": 0.1}, {"logits": 4, "target": 2}),
    "the first view": ("supcon_in", {"embeddings": VIEWS, "labels": LABELS, "anchor_mode": "one"}, {"embeddings": 5}),
    "a queue": ("supcon_out", {"embeddings": X, "labels": LABELS, "queue": Y, "queue_labels": LABELS},
                {"embeddings": 5, "queue": 3, "queue_labels": 3}),
    "a mask of views": ("supcon_out", {"embeddings": VIEWS, "mask": MASK, "form": "sum"}, {"embeddings": 4, "mask": 6}),
    "a mask": ("supcon_in", {"embeddings": X, "mask": MASK + np.eye(13)}, {"embeddings": 5}),
    "weights": ("supcon_out", {"embeddings": X, "mask": MASK > 0.3, "anchor_weights": MASK[0], "no_positive": "skip"},
                {"embeddings": 5, "anchor_weights": 4}),
    "centers": ("paco", {"embeddings": X, "labels": LABELS, "centers": Y[:3], "center_bias": X[0, :3], "alpha": 0.2},
                {"embeddings": 5, "centers": 2}),
    "ties": ("hard_contrastive", {"queries": np.ones((13, 4)), "keys": np.ones((13, 4)), "fraction": 0.5},
             {"queries": 3, "keys": 5}),
    "vectors alone": ("nce", {"data_logits": X[:, 0], "noise_logits": Y[:, 0], "data_log_noise": X[:, 1],
                              "noise_log_noise": Y[:, 1], "noise_ratio": 1.0}, {"data_logits": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_every_kind_of_argument(name):
    loss, inputs, chunks = SETTINGS[name]
    loss = get_loss(loss)
    if any(p.name == "temperature" for p in loss.parameters):
        inputs = {"temperature": 0.2, **inputs}
    sizes = {k: (c if isinstance(c, tuple) else (c,)) for k, c in chunks.items()}
    in_chunks = {k: da.from_array(inputs[k], chunks=(c if len(c) > 1 else c[0], *inputs[k].shape[1:]))
                 for k, c in sizes.items()}  # fmt: skip
    assert_same(loss, inputs, in_chunks)


def broken_by_chunks(seeds):
    """Of batches in which equal keys lie in different chunks, those that are off."""
    sizes, broken = np.random.default_rng(3), []
    for seed in seeds:
        inputs, same = equal_keys(seed)
        rows = (1 + len(same) // 4, len(same) + 1)
        cut = [chunked(inputs[name], int(sizes.integers(*rows))) for name in ("queries", "keys")]
        answer = losses.hard_contrastive.value_and_grad(**{**inputs, "queries": cut[0], "keys": cut[1]})
        broken += [seed] * (worst(inputs, ranks_of_equal(inputs, same), answer) > 2)
    return broken


def test_equal_keys_of_several_chunks_are_ranked_by_index(monkeypatch):
    monkeypatch.setattr(similarity, "settled", lambda s, *args: ties.settled(rounded_by_place(s), *args))
    assert broken_by_chunks(range(5)) == []
    monkeypatch.setattr(similarity, "settled", lambda s, *args: rounded_by_place(s))
    assert len(broken_by_chunks(range(5))) > 2


WITH_LABELS = ("supcon_out", "cosface", "arcface", "balanced_softmax", "paco")
"""What is in memory travels to the chunks."""


@pytest.mark.parametrize("name", ["nt_xent", "supcon_in", "hard_contrastive", *WITH_LABELS])
def test_chunks_of_another_library_stay_there(name):
    xp = pytest.importorskip("array_api_strict")
    loss = get_loss(name)
    case = next(iter(cases(loss.declaration, ("random",), (0.3,))))
    expected, truth = loss.value_and_grad(**case.inputs)
    allowed = bounds(loss, **case.inputs)
    whole = {k: x for k, x in case.inputs.items() if isinstance(x, np.ndarray) and x.ndim > 1}
    moved = {
        k: da.from_array(x, chunks=(len(x) if (name, k) in WHOLE else 2, *x.shape[1:])).map_blocks(
            xp.asarray, dtype=x.dtype, meta=np.empty((0,) * x.ndim)
        )
        for k, x in whole.items()
    }
    value, grads = loss.value_and_grad(**{**case.inputs, **moved}, compute=False)
    assert abs(float(value.compute()) - expected) <= 2 * allowed.value
    for k in moved.keys() & grads.keys():
        first = grads[k].blocks[0].compute()
        assert array_namespace(first) is array_namespace(xp.asarray(0.0))
        rows = slice(0, first.shape[0])
        assert np.all(np.abs(np.asarray(first) - truth[k][rows]) <= 2 * allowed.grads[k][rows])


def test_a_cotangent_weighs_the_rows_of_all_chunks():
    cotangent = RNG.uniform(-1, 1, 26)
    expected, truth = losses.nt_xent.value_and_grad(X, Y, temperature=0.2, reduction="none", cotangent=cotangent)
    z1 = chunked(X, 5)
    weights = da.from_array(cotangent, chunks=7)
    rows, grads = losses.nt_xent.value_and_grad(z1, Y, temperature=0.2, reduction="none", cotangent=weights)
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    np.testing.assert_allclose(grads["z1"], truth["z1"], rtol=1e-12, atol=1e-14)
    with pytest.raises(InputError, match="`cotangent` must be"):
        losses.nt_xent.value_and_grad(z1, Y, temperature=0.2, reduction="none", cotangent=cotangent[:5])


def test_dask_is_not_imported_for_arrays_in_memory():
    call = "losses.simple([[1.0, 0.0]], [[0.0, 1.0]])"
    code = f"import sys; from nceref import losses; {call}; print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_of_arrays_in_memory_it_is_asked_once_whether_they_are_dasks(monkeypatch):
    calls = []
    for module in (libraries, arrays):
        ask = partial(lambda name, *values: calls.append((name, len(values))) or False, module.__name__)
        monkeypatch.setattr(module, "is_chunked", ask)
    losses.nt_xent.value_and_grad(X, Y, temperature=0.2)
    assert calls == [("nceref.engine.libraries", 3)]


def test_nothing_is_computed_before_it_is_asked_for():
    loaded = []

    def load(block):
        loaded.append(block.shape)
        return block

    z1 = chunked(X, 5).map_blocks(load, dtype=X.dtype, meta=np.empty((0, 0)))
    value, grads = losses.nt_xent.value_and_grad(z1, chunked(Y, 5), temperature=0.2, compute=False)
    assert loaded == []
    expected, truth = losses.nt_xent.value_and_grad(X, Y, temperature=0.2)
    assert float(value.compute()) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(grads["z1"].sum(axis=0).compute(), truth["z1"].sum(axis=0), rtol=1e-10, atol=1e-13)
    assert float(grads["temperature"].compute()) == pytest.approx(truth["temperature"], rel=1e-13)


def test_results_are_the_same_bits_for_any_number_of_threads():
    z1, z2 = chunked(X, 4), chunked(Y, 4)
    outcomes = set()
    for options in ({}, *({"scheduler": "threads", "num_workers": n} for n in (1, 5))):
        with dask.config.set(**options):
            value, grads = losses.nt_xent.value_and_grad(z1, z2, temperature=0.2)
            outcomes.add((value, np.asarray(grads["z1"]).tobytes(), grads["temperature"]))
    assert len(outcomes) == 1


def test_blocks_apply_inside_a_chunk():
    z1, z2 = chunked(X, 7), chunked(Y, 7)
    expected = losses.nt_xent(z1, z2, temperature=0.2)
    with config(block=3):
        assert losses.nt_xent(z1, z2, temperature=0.2) == pytest.approx(expected, rel=1e-14)


def test_chunks_that_are_too_small_are_said_to_be(monkeypatch):
    monkeypatch.setattr(run, "MOST_CHUNKS", 16)
    x = da.zeros((2000, 2), chunks=(100, 2))
    with pytest.warns(
        UserWarning, match=r"`queries`: 20 chunks of 100 rows make about 3,200 tasks; chunks of 1,024"
    ) as caught:
        losses.info_nce(x, x, temperature=0.1, compute=False)
    assert caught[0].filename == __file__


def selected(x, sizes=(0, 2, 0, 0, 5, 0, 3, 0), known=True):
    """The array in chunks as a selection of rows leaves them: some have none, the last has what is left."""
    sizes = (*sizes, len(x) - sum(sizes), 0)
    parts = [(np.concatenate([x[start : start + n], x[:1]]), [True] * n + [False]) for start, n in
             zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True)]  # fmt: skip
    chunks = tuple(n + 1 for n in sizes)
    rows = da.from_array(np.concatenate([part for part, _ in parts]), chunks=(chunks, *x.shape[1:]))
    out = rows[da.from_array(np.concatenate([kept for _, kept in parts]), chunks=(chunks,))]
    return out.compute_chunk_sizes() if known else out


EVERY_KIND = ("nt_xent", "hard_contrastive", "supcon_out", "paco", "sampled_softmax", "nce")
"""Rows, ranks, labels, centers, counts, and vectors alone."""


every_kind = pytest.mark.parametrize(
    "named", partly_slow(losses.all_losses(), EVERY_KIND.__contains__, "arguments of the same kinds as of another loss")
)


@every_kind
def test_a_chunk_may_have_no_rows(named):
    loss = get_loss(named)
    case = next(iter(cases(loss.declaration, ("random",), (0.3,))))
    arrays = {k: x for k, x in case.inputs.items() if isinstance(x, np.ndarray) and (named, k) not in WHOLE}
    in_chunks = {k: selected(x, (0, 1, 0, 0, len(x) - 2, 0)) for k, x in arrays.items()}
    assert all(0 in x.chunks[0] for x in in_chunks.values())
    assert_same(loss, case.inputs, in_chunks)


def test_chunks_without_rows_of_labels_a_mask_and_a_cotangent():
    labels = {"embeddings": VIEWS, "labels": LABELS, "temperature": 0.2}
    assert_same(losses.supcon_out, labels, {"embeddings": selected(VIEWS), "labels": selected(LABELS, (0, 4, 0))})
    mask = {"embeddings": X, "mask": MASK, "temperature": 0.2}
    square = selected(MASK).rechunk({1: (0, 6, 0, 7)})
    assert_same(losses.supcon_in, mask, {"embeddings": selected(X, (4, 0)), "mask": square})
    cotangent = RNG.uniform(-1, 1, 26)
    options = {"temperature": 0.2, "reduction": "none"}
    truth = losses.nt_xent.value_and_grad(X, Y, **options, cotangent=cotangent)[1]
    grads = losses.nt_xent.value_and_grad(selected(X), Y, **options, cotangent=selected(cotangent))[1]
    np.testing.assert_allclose(grads["z1"], truth["z1"], rtol=1e-12, atol=1e-14)


def arguments_in_turn(loss_name, change):
    """The arguments of a loss, of which each array in turn is what `change` makes of it in chunks."""
    case = next(iter(cases(get_loss(loss_name).declaration, ("random",), (0.3,))))
    for name, x in case.inputs.items():
        if isinstance(x, np.ndarray):
            whole = da.from_array(x, chunks=len(x) if (loss_name, name) in WHOLE else 2)
            yield name, {**case.inputs, name: change(whole)}


def spoiled(make):
    """Chunks that are not what Dask was told: it is asked for nothing, and so it does not see it."""
    return lambda x: x.map_blocks(make, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))


MASKED = {
    "by their meta": lambda x: da.ma.masked_array(x, mask=x > 0),
    "when they are computed": spoiled(lambda chunk: np.ma.masked_array(chunk, mask=chunk > 0)),
}


@pytest.mark.parametrize("seen", MASKED)
@every_kind
def test_masked_chunks_are_refused_by_name(named, seen):
    loss = get_loss(named)
    for name, arguments in arguments_in_turn(named, MASKED[seen]):
        for call in (loss, loss.value_and_grad):
            with pytest.raises(InputError, match=f"^`{name}` is a masked array; drop the masked rows and pass a plain"):
                call(**arguments)


@every_loss
def test_chunks_of_unknown_size_are_refused_by_every_call(loss_name):
    loss = get_loss(loss_name)
    calls = [loss, loss.value_and_grad, loss.anatomy]
    calls += [loss.decompose] if loss.declaration.decomposition else []
    calls += [lambda **arguments: bounds(loss, **arguments)]
    for name, arguments in arguments_in_turn(loss_name, lambda x: x[da.ones(len(x), dtype=bool, chunks=2)]):
        for call in calls:
            with pytest.raises(InputError, match=rf"^`{name}` has .* size; call {name}.compute_chunk_sizes\(\) first$"):
                call(**arguments)


ODD_CHUNKS = {
    "a list": (lambda chunk: chunk.tolist(), "got an object of type list"),
    "nothing": (lambda _: None, "got an object of type NoneType"),
    "a number": (lambda _: 1.5, "got an object of type float"),
    "one axis more": (lambda chunk: chunk[None], r"got shape \(1, .*\) and dtype"),
    "complex numbers": (lambda chunk: chunk + 1j, "got shape .* and dtype complex128"),
    "text": (lambda chunk: chunk.astype(str), "got shape .* and dtype <U"),
    "objects": (lambda chunk: chunk.astype(object), "got shape .* and dtype object"),
    "a narrower format": (lambda chunk: chunk.astype(f"{chunk.dtype.kind}4"), "got shape .* and dtype (int|float)32"),
}


@pytest.mark.parametrize("name", ["supcon_out", "cross_entropy", "nce", "paco"])
def test_chunks_of_another_type_are_refused_where_they_are_computed(name):
    loss = get_loss(name)
    for make, got in ODD_CHUNKS.values():
        for argument, arguments in arguments_in_turn(name, spoiled(make)):
            with pytest.raises(InputError, match=f"^the chunk of `{argument}` that begins .* as Dask has it, {got}"):
                loss(**arguments)


def test_anatomy_and_decomposition_read_what_is_in_chunks():
    expected = losses.nt_xent.anatomy(X, Y, temperature=0.2)
    read = losses.nt_xent.anatomy(chunked(X, 5), Y, temperature=0.2)
    np.testing.assert_array_equal(read.logits, expected.logits)
    case = next(iter(cases(losses.paco.declaration, ("random",), (0.3,))))
    whole = {k: da.from_array(x, chunks=2) if isinstance(x, np.ndarray) else x for k, x in case.inputs.items()}
    assert losses.paco.decompose(**whole) == losses.paco.decompose(**case.inputs)


def with_entry(x, at, value):
    x = x.copy()
    x[at] = value
    return chunked(x, 5)


REFUSED = {
    "a NaN with its row among all": (
        lambda: losses.nt_xent(with_entry(X, (7, 2), np.nan), Y, temperature=0.2),
        r"`z1` must be finite everywhere, got nan at index \(7, 2\)",
    ),
    "a row of zeros": (
        lambda: losses.nt_xent(X, with_entry(Y, 9, 0.0), temperature=0.2),
        "`z2` row 9 is zero",
    ),
    "a row of zeros in a view": (
        lambda: losses.supcon_out(with_entry(VIEWS, (8, 1), 0.0), labels=LABELS, temperature=0.2),
        "`embeddings` sample 8, view 1, is zero",
    ),
    "a NaN in a view": (
        lambda: losses.supcon_out(with_entry(VIEWS, (8, 1, 3), np.nan), labels=LABELS, temperature=0.2),
        r"`embeddings` must be finite everywhere, got nan at index \(8, 1, 3\)",
    ),
    "rows that a chunk lost": (
        lambda: losses.nt_xent(chunked(X, 5).map_blocks(lambda x: x[1:], dtype=float, meta=X[:0]), Y, temperature=0.2),
        r"the chunk of `z1` that begins at index \(\d+, \d\) must be an array of shape \(\d, \d\) and dtype float64, "
        r"as Dask has it, got shape \(\d, \d\) and dtype float64; mend the function",
    ),
    "weights that a block lost": (
        lambda: losses.supcon_out(
            X, mask=chunked(MASK, 5).map_blocks(lambda x: x[:, 1:], dtype=float, meta=X[:0]), temperature=0.2
        ),
        r"the chunk of `mask` that begins at index \(\d+, \d+\) must be an array of shape",
    ),
    "a negative weight": (
        lambda: losses.supcon_out(chunked(X, 5), mask=with_entry(MASK, (11, 3), -1.0), temperature=0.2),
        r"`mask` must be >= 0 everywhere, got -1.0 at index \(11, 3\)",
    ),
    "another shape": (lambda: losses.nt_xent(chunked(X[:5], 2), Y, temperature=0.2), r"`z2` must be \(N, D\) = \(5, 4"),
    "integers": (lambda: losses.nt_xent(chunked(X.astype(int), 2), Y, temperature=0.2), "`z1` must be an array of"),
    "too many arguments": (lambda: losses.nt_xent(chunked(X, 2), Y, X, temperature=0.2), "takes at most 2 positional"),
    "one that is not there": (lambda: losses.nt_xent(chunked(X, 2), temperature=0.2), "nt_xent needs `z2`"),
    "given twice": (lambda: losses.nt_xent(chunked(X, 2), Y, z1=X, temperature=0.2), "both by position and by name"),
    "no axes": (lambda: losses.nt_xent(X, da.from_array(np.array(1.0)), temperature=0.2), r"`z2` must be \(N, D\)"),
    "a masked matrix in memory": (
        lambda: losses.nt_xent(chunked(X, 5), np.ma.masked_greater(Y, 1), temperature=0.2),
        "`z2` is a masked array; drop the masked rows",
    ),
    "an object in memory that cannot be read": (
        lambda: losses.nt_xent(chunked(X, 5), [[1.0], [1.0, 2.0]], temperature=0.2),
        "`z2` must be a rectangular array",
    ),
    "a masked number": (
        lambda: losses.nt_xent(X, Y, temperature=da.from_array(np.ma.masked_array(0.2, mask=True))),
        "`temperature` is a masked array",
    ),
    "a list of rows": (
        lambda: losses.nt_xent([da.from_array(row) for row in X], Y, temperature=0.2),
        r"`z1` is a list that holds arrays of Dask; pass dask.array.stack\(z1\)",
    ),
    "a cotangent for rows in memory": (
        lambda: losses.nt_xent.value_and_grad(
            X, Y, temperature=0.2, reduction="none", cotangent=da.from_array(np.ones(26))
        ),
        r"`cotangent` is an array of Dask, which only losses take; pass cotangent.compute\(\)",
    ),
    "bounds": (
        lambda: bounds(losses.nt_xent, z1=chunked(X, 5), z2=Y, temperature=0.2),
        r"`z1` is an array of Dask, which only losses take; pass z1.compute\(\)",
    ),
    "real numbers in memory": (
        lambda: real_array("x", chunked(X, 5)),
        r"`x` is an array of Dask, which only losses take; pass x.compute\(\)",
    ),
    "out of range": (
        lambda: losses.info_nce(chunked(1e300 * X, 2), Y, temperature=1e-9, normalize="none"),
        "a logit leaves the range of float64",
    ),
    "lengths that are not measured": (
        lambda: losses.arcface(chunked(X, 2), Y[:3], LABELS, normalize="none"),
        "arcface of arrays in chunks needs normalize='l2'",
    ),
    "classes of arcface in chunks": (
        lambda: losses.arcface(chunked(X, 2), chunked(Y[:3], 2), LABELS),
        "`class_weights` must be one chunk",
    ),
    "in memory": (lambda: losses.nt_xent(X, Y, temperature=0.2, compute=False), "`compute` is for arrays of Dask"),
    "no truth value": (lambda: losses.nt_xent(chunked(X, 2), Y, temperature=0.2, compute=1), "`compute` must be one"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_is_said_in_one_sentence(name):
    call, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        call()
