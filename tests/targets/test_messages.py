"""What comes back from a target's process: the answer that was asked for, or refused; it never runs and never grows."""

import json
import math
import pickle
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from fuzz import backend
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import sweep
from targets.test_targets import NT_XENT, probe_of

from nceref.cases.records import Outcome
from nceref.errors import InputError, NcerefError, TargetError, UnavailableError
from nceref.spec import Array, Choice, Labels, Loss, Scalar
from nceref.targets import plain_data, protocol, runner
from nceref.targets.frameworks.call import Trouble, call_request
from nceref.targets.process import messages
from nceref.targets.process.messages import packed
from nceref.targets.process.module_contents import ModuleContents, ModuleRequest, NamedCallable, contents_message
from nceref.targets.target import LoadRequest, ResolvedTarget

CALL = call_request(probe_of())
LOAD = LoadRequest("theirs.py:f", NT_XENT.declaration, {"call": None, "init": {"a": 1}, "framework": None})
GRADS = {"z1": np.ones_like(CALL.inputs["z1"]), "temperature": np.float64(2.0)}
OUTCOME = messages.outcome_message(Outcome(math.nan, GRADS, {"z2": "none"}, remarks={"prints": "prints 'x'"}))
TARGET = messages.target_message(
    ResolvedTarget(
        "f",
        "numpy",
        "nt_xent",
        binding="x -> z1",
        names={"x": "z1"},
        fixed={"temperature": 0.5},
        constructed=("z2",),
        parameters={"z2": "head.W"},
        sizes={"z2": (9, 4)},
        others=("head.bias",),
        signature={"x": True, "eps": False},
    )
)
ERROR = messages.error_message(TargetError("no\nsuch file"))
LIST = ModuleRequest("theirs", "theirs")
CONTENTS = contents_message(ModuleContents((NamedCallable("f", "theirs:f", ("size",)),), ("rows",)))
ANSWERS = [(CALL, OUTCOME), (LOAD, TARGET), (LOAD, ERROR), (CALL, ERROR), (LIST, CONTENTS), (LIST, ERROR)]


def received(line, request):
    """The checked answer in this line, as the parent reads it."""
    return messages.answer(protocol.received(line), 1, 0, request)


def line(content, kind="result"):
    """A line with this text as its content."""
    return f'{{"{kind}": {content}}}\n'.encode()


def sent(x):
    """Plain data on the other side."""
    return plain_data.from_json(json.loads(json.dumps(plain_data.to_json(x))))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("a\n\0é\ud7ff€😀", max_size=3)
    | st.sampled_from([..., b"\x00\xff", 1j, complex(2, float("inf"))]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.sampled_from(["a", (1, "b")]), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=3)
        | st.sets(st.sampled_from([b"", "", None]))
    ),
    max_leaves=8,
)


@settings(backend=backend.NAME, max_examples=40, deadline=None, database=None)
@given(PLAIN)
def test_plain_values_arrive_as_they_are(value):
    assert (came := sent(value)) == value
    assert repr(type(came)) == repr(type(value))


@sweep("dtype", ["?", "i1", "u8", ">i4", "f2", ">f8", "c16"])
@sweep("shape", [(), (0, 3), (2, 3, 4)])
def test_arrays_arrive_bit_by_bit_in_their_order_and_can_be_written(dtype, shape):
    x = np.asfortranarray(np.random.default_rng(0).normal(size=shape).astype(dtype))
    y = sent([x, {"b": x[()]}])[0]
    assert (y.dtype, y.shape, y.flags.f_contiguous) == (x.dtype.newbyteorder("="), x.shape, True)
    assert y.tobytes() == x.astype(y.dtype).tobytes()
    assert y.flags.writeable


@sweep(
    "value",
    [object(), print, Outcome, np.array([object()]), np.longdouble(1), [lambda: 0], np.datetime64("2020")],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_plain_value_is_not_sent(value):
    with pytest.raises(TypeError, match="no plain value"):
        plain_data.to_json(value)


def test_what_contains_itself_is_not_sent():
    ring = []
    ring.append(ring)
    with pytest.raises(TypeError, match="nested too deeply"):
        plain_data.to_json(ring)


def content_of(message):
    """The content of a request where it arrives."""
    return protocol.record(protocol.received(packed(1, message)), messages.REQUESTS)[1]


def test_requests_arrive_with_everything_that_a_target_needs():
    request = LoadRequest("f.py:f", NT_XENT.declaration, {"settings": {"queue": ..., "x": np.eye(2)}, "floats": ("t",)})
    came = messages.load_request(content_of(messages.load_message(request)))
    assert (came.text, came.loss.name, came.loss.parameters) == ("f.py:f", "nt_xent", request.loss.parameters)
    assert came.options["settings"]["queue"] is ...
    assert came.options["floats"] == ("t",)
    call = content_of(messages.run_message(CALL, True, (1.5, GRADS)))
    parts, twice, (value, grads) = messages.run_request(call)
    assert replace(parts, inputs={}).__dict__ == replace(CALL, inputs={}).__dict__
    assert all(np.array_equal(parts.inputs[n], x) for n, x in CALL.inputs.items())
    assert (twice, value, grads["temperature"]) == (True, 1.5, 2.0)


def test_a_loss_that_no_registry_has_is_sent_as_well():
    parameters = (
        Array("u", ("N", "D"), "rows"),
        Labels("y", ("N",), "classes"),
        Scalar("s", "s", "scale", low=0.0),
        Choice("c", ("a", "b"), "a", "policy"),
    )
    texts = dict.fromkeys(("summary", "text", "latex", "gradient", "rows", "sign", "unit"), "")
    nothing = {"formula": None, "plan": None, "properties": frozenset(), "sources": ()}
    own = Loss(name="mine", parameters=parameters, **texts, **nothing, variants=({"y": ...},))
    came = messages.load_request(content_of(messages.load_message(LoadRequest("f.py:f", own, {}))))
    assert (came.loss.parameters, came.loss.variants) == (parameters, ({"y": ...},))


def test_every_answer_arrives():
    outcome = received(packed(1, OUTCOME), CALL)
    assert math.isnan(outcome.value)
    assert np.array_equal(outcome.grads["z1"], GRADS["z1"])
    assert (outcome.unjudged, outcome.remarks, outcome.trouble) == ({"z2": "none"}, {"prints": "prints 'x'"}, "")
    target = received(packed(1, TARGET), LOAD)
    assert (target.names, target.fixed, target.init) == ({"x": "z1"}, {"temperature": 0.5}, {"a": 1})
    assert (target.text, target.loss, target.program) == ("theirs.py:f", "nt_xent", None)
    assert (target.parameters, target.constructed) == ({"z2": "head.W"}, ("z2",))
    assert target.signature == {"x": True, "eps": False}
    for kind in (InputError, TargetError, UnavailableError):
        error = received(packed(1, messages.error_message(kind("two\nlines"))), CALL)
        assert (type(error), str(error)) == (kind, "two\nlines")
    contents = received(packed(1, CONTENTS), LIST)
    assert contents == ModuleContents((NamedCallable("f", "theirs:f", ("size",)),), ("rows",))
    rows = replace(CALL, reduction="none", shape=None)
    assert received(changed(OUTCOME, value=bits(np.ones(4))), rows).value.shape == (4,)
    long = messages.outcome_message(Outcome(trouble="raises", sentence="long " * 10**5))
    assert received(packed(1, long), CALL).sentence.endswith("...")


USAGE, MISSING, THEIRS = InputError("wrong"), UnavailableError("missing"), TargetError("raises")
PLAIN = replace(LOAD, options={"call": None, "init": {}, "framework": None})
NUMPY = ResolvedTarget("f", "numpy", "nt_xent")
DUE = [
    (THEIRS, LOAD, True), (THEIRS, PLAIN, True), (THEIRS, LIST, True), (THEIRS, CALL, False),
    # Only the target knows whether the arguments of its constructor, or its parameters, are right.
    (USAGE, PLAIN, False), (USAGE, LOAD, True), (USAGE, replace(PLAIN, options={"param": {"x": "p"}}), True),
    (USAGE, replace(PLAIN, text="theirs.py"), True), (USAGE, LIST, False),
    # What the parent can see for itself.
    (USAGE, replace(PLAIN, options={"call": "f(z1, z2)"}), False),
    (USAGE, replace(PLAIN, options={"call": "f(z3)"}), True),
    (USAGE, replace(PLAIN, options={"call": "f(z1, rank)"}), True),
    (USAGE, replace(PLAIN, options={"call": "f(z1, rank)"}, group={"rank": 0, "world_size": 2}), False),
    (USAGE, replace(PLAIN, options={"framework": "torch"}), False),
    (USAGE, replace(PLAIN, options={"framework": "cobol"}), True),
    (USAGE, CALL, False), (USAGE, replace(CALL, device="cuda"), True), (USAGE, replace(CALL, dtype="bfloat16"), True),
    (MISSING, PLAIN, False), (MISSING, LIST, False), (MISSING, CALL, False),
    (MISSING, replace(PLAIN, group={"rank": 0, "world_size": 2, "store": "file"}), True),
]  # fmt: skip


@sweep(("error", "request_", "due"), DUE)
def test_an_error_of_usage_is_taken_only_where_there_is_something_to_refuse(error, request_, due):
    assert messages.is_due(error, request_, NUMPY) == due


def test_a_framework_that_is_not_installed_may_be_missing(monkeypatch):
    monkeypatch.setattr(messages.importlib.util, "find_spec", lambda name: None if name == "jax" else NUMPY)
    assert messages.is_due(MISSING, CALL, replace(NUMPY, framework="jax"))
    assert not messages.is_due(MISSING, CALL, NUMPY)


def test_text_of_an_answer_is_printable():
    evil = changed(OUTCOME, remarks={"prints": "\x1b[2J\ud800\n\u202ex"})
    assert received(evil, CALL).remarks["prints"].isprintable()
    assert str(received(changed(ERROR, message="a\n\x1b[2J"), CALL)) == "a\n\\x1b[2J"


def changed(answer, /, **fields):
    kind, content = answer
    return packed(1, (kind, {**content, **fields}))


def bits(x, **fields):
    return {**plain_data.array_to_json(x), **fields}


FAILURE = messages.outcome_message(Outcome(trouble="raises", sentence="raises"))
ONE = [0.0] * CALL.inputs["z1"].size


@sweep(
    ("request_", "content"),
    [
        *((CALL, changed(OUTCOME, value=x)) for x in (None, True, "1", [1, 2], {"float": "1"}, bits(np.ones(2)))),
        *((CALL, changed(OUTCOME, grad={"z1": bits(x)})) for x in (np.ones(3), np.zeros((0, 9)), GRADS["z1"] > 0)),
        *((CALL, changed(OUTCOME, grad={"z1": x})) for x in (None, [ONE], "a")),
        (CALL, changed(OUTCOME, grad={"z1": bits(GRADS["z1"].astype("f4"))})),
        (CALL, changed(OUTCOME, grad={"z3": bits(GRADS["z1"])})),
        (CALL, changed(OUTCOME, grad=[bits(GRADS["z1"])])),
        (CALL, changed(OUTCOME, grad={"z2": bits(GRADS["z1"])})),
        (CALL, changed(OUTCOME, unjudged={"z3": "no"})),
        (CALL, changed(OUTCOME, unjudged={"z2": 1})),
        (CALL, changed(OUTCOME, remarks={"behaves": "well"})),
        (CALL, changed(OUTCOME, remarks={"prints": "x" * (messages.TEXT + 1)})),
        (CALL, changed(OUTCOME, more=1)),
        (CALL, packed(1, ("result", {n: x for n, x in OUTCOME[1].items() if n != "remarks"}))),
        *((CALL, changed(FAILURE, trouble=x)) for x in ("hangs", "", ["raises"], None)),
        (CALL, changed(FAILURE, message="")),
        (CALL, changed(FAILURE, value=bits(1.0))),
        (CALL, changed(TARGET)),
        (LOAD, changed(OUTCOME)),
        (LOAD, packed(1, ("pickle", TARGET[1]))),
        (LOAD, changed(TARGET, framework="os")),
        (replace(LOAD, options={"framework": "torch"}), changed(TARGET)),
        (LOAD, changed(TARGET, names={"x": "z9"})),
        (LOAD, changed(TARGET, fixed={"z1": 1})),
        (LOAD, changed(TARGET, fixed={"temperature": "1"})),
        (LOAD, changed(TARGET, has_reduction=1)),
        (LOAD, changed(TARGET, signature={"x": 1})),
        (LOAD, changed(TARGET, signature={"x y": True})),
        *((LOAD, changed(TARGET, sizes={"z2": x})) for x in ([-1], [True], [1.0], 1, None, [1 << 62])),
        *((LOAD, changed(TARGET, parameters=x)) for x in ({"z9": "W"}, {"normalize": "W"}, {"z2": 1}, ["z2"], None)),
        *((LOAD, changed(TARGET, parameters={"z2": path})) for path in ("", "W.", "a b", "x]", "W" * 5000)),
        (replace(LOAD, options={"param": {"z1": "W"}}), changed(TARGET)),
        (replace(LOAD, options={"param": {"z2": "W"}}), changed(TARGET)),
        (replace(LOAD, options={"unsought": {"z2": "head.W"}}), changed(TARGET)),
        (CALL, changed(CONTENTS)),
        (LIST, changed(TARGET)),
        (LIST, changed(CONTENTS, more=1)),
        *((LIST, changed(CONTENTS, submodules=x)) for x in ("rows", ["a.b"], [".."], [1], ["x"] * 1001, None)),
        *((LIST, changed(CONTENTS, callables=[row])) for row in ([], ["f", "h"], ["f()", "h", []], ["f", 1, []], 1)),
        *((LIST, changed(CONTENTS, callables=[row])) for row in (["f", "h" * 201, []], ["f", "h", ["a b"]])),
        (CALL, changed(ERROR, error="SystemExit")),
        (CALL, changed(ERROR, message=1)),
        *((CALL, line(x)) for x in ("null", "[]", "{}", '{"id": 1}', '{"id": "1"}')),
        (CALL, packed(2, OUTCOME)),
        (CALL, pickle.dumps(OUTCOME)),
        *((CALL, x) for x in (b"", b"\n", b"null\n", b"{}\n", b"[1, null]\n", b"\xff\n")),
        *((CALL, line(x)) for x in ("[", "[" * 10**5, '{"id": 1, "id": 1}', '{"id": NaN}', "9" * 5000)),
        *(
            (CALL, changed(OUTCOME, value=bits(1.0, shape=shape)))
            for shape in ([-1], [True], [2**62, 4], [0, 2**63], [2], [0], [0] * 99, "1", None, [[1]], [1.5])
        ),
        *((CALL, changed(OUTCOME, value=bits(1.0, base64=x))) for x in ("MTIzNDU2Nw==", "MTIz NDU2Nzg=", "é", 1, None)),
        *((CALL, changed(OUTCOME, value=bits(1.0, dtype=x))) for x in ("O", "<i8", ["<f8"], None)),
        *((CALL, changed(OUTCOME, value=bits(1.0, order=x))) for x in ("K", [], None)),
    ],
)  # fmt: skip
def test_anything_else_is_refused(request_, content):
    with pytest.raises(Trouble):
        received(content, request_)


@settings(backend=backend.NAME, max_examples=150, deadline=None, database=None)
@given(st.data())
def test_a_changed_byte_is_refused_or_harmless(data):
    request, message = data.draw(st.sampled_from(ANSWERS))
    content = packed(1, message)
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, min(start + 3, len(content))))
    put = data.draw(st.binary(max_size=3) | st.sampled_from([b'"', b"]", b"}", b"[", b"1", b"\\ud800", b"NaN"]))
    try:
        answer = received(content[:start] + put + content[stop:], request)
    except Trouble:
        return
    kinds = {LoadRequest: ResolvedTarget, ModuleRequest: ModuleContents}
    assert isinstance(answer, NcerefError | kinds.get(type(request), Outcome))


NAMES = st.sampled_from(["value", "grad", "id", "shape", "base64", "unjudged", "remarks"])
JSON = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=12,
)


@settings(backend=backend.NAME, max_examples=40, deadline=None, database=None)
@given(st.sampled_from(["value", "grad", "unjudged", "remarks"]), JSON)
def test_any_content_is_refused_or_an_outcome(name, content):
    try:
        answer = received(changed(OUTCOME, **{name: content}), CALL)
    except Trouble:
        return
    assert isinstance(answer, Outcome)
    assert all(np.shape(grad) == np.shape(CALL.inputs[name]) for name, grad in answer.grads.items())


@pytest.mark.parametrize("request_", [CALL, LOAD, LIST], ids=["call", "load", "list"])
def test_the_longest_answer_is_expected(request_):
    longest = max((packed(10**9, answer) for request, answer in ANSWERS if request is request_), key=len)
    assert len(longest) < messages.longest(request_)
    grads = {name: np.full(np.shape(CALL.inputs[name]), 0.1) for name in CALL.differentiable}
    every = messages.outcome_message(Outcome(0.1, grads, remarks=dict.fromkeys(messages._REMARKS, "x" * messages.TEXT)))
    assert len(packed(10**9, every)) < messages.longest(CALL)


SOURCE = """
    import os, pickle, threading

    class Code:
        def __reduce__(self):
            return open, (os.path.join({folder!r}, "executed"), "w")

    def pickles(z1, z2, temperature):
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, pickle.dumps(Code()))
            except OSError:
                pass
        return 1.0
"""


def test_a_pickle_on_the_pipe_does_not_run(tmp_path):
    (tmp_path / "theirs.py").write_text(textwrap.dedent(SOURCE.format(folder=str(tmp_path))), encoding="utf-8")
    with runner.in_child(f"{tmp_path}/theirs.py:pickles", NT_XENT.declaration, timeout=600.0) as run:
        outcome = run(probe_of())
    assert outcome.trouble == protocol.BROKEN
    assert outcome.sentence.startswith("closes or garbles the pipe to its parent: prints '")
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["theirs.py"]


def test_the_random_number_of_a_call_is_no_part_of_a_report():
    assert "31415" not in str(protocol.ahead(b"done", 31415))
    with pytest.raises(Trouble, match="answers the call before a second time where the answer to another call is due"):
        protocol.require_id(31415, 27182, 31415)
    with pytest.raises(Trouble, match="answers 1 where the answer to another call is due"):
        protocol.require_id(1, 27182, 31415)
