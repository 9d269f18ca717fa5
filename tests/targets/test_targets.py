"""From what a user names to value and gradients: loading, matching of arguments, the three frameworks."""

import functools
import sys
import textwrap

import numpy as np
import pytest
from sweep import sweep

from nceref.cases.records import Probe
from nceref.errors import InputError, TargetError
from nceref.losses import get_loss
from nceref.targets import load, runner
from nceref.targets.frameworks import NAMES, frameworks

NT_XENT = get_loss("nt_xent")
RNG = np.random.default_rng(5)
Z1, Z2 = RNG.normal(size=(2, 4, 3))
TOLERANCE = 1e-13
"""Values and gradients here are below 10, and a rounding error is 1e-16; the bounds are judged elsewhere."""


def probe_of(name="nt_xent", dtype="float64", reduction="mean", **inputs):
    loss = get_loss(name)
    given = inputs or {"z1": Z1, "z2": Z2, "temperature": 0.5}
    options = {"cotangent": np.ones(2 * len(Z1))} if reduction == "none" else {}
    value, grads = loss.value_and_grad(reduction=reduction, **given, **options)
    return Probe("case", loss.declaration, {**given, "normalize": "l2"}, dtype, reduction, value, grads)


def loaded(thing, name="nt_xent", **options):
    return load.resolve_target(thing, get_loss(name).declaration, **options)


def outcome_of(thing, probe=None, twice=False, **options):
    probe = probe or probe_of()
    with runner.in_process(thing, probe.loss, **options) as run:
        return run(probe, twice)


def agrees(outcome, probe=None):
    probe = probe or probe_of()
    assert not outcome.trouble, outcome.sentence
    assert np.max(np.abs(outcome.value - probe.value)) < TOLERANCE
    for name, grad in outcome.grads.items():
        assert np.max(np.abs(grad - probe.grads[name])) < TOLERANCE, name
    return sorted(outcome.grads)


def plain(z1, z2, temperature):
    return NT_XENT(z1, z2, temperature=float(temperature))


def graded(z1, z2, temperature):
    return NT_XENT.value_and_grad(z1, z2, temperature=float(temperature))


class Plain:
    def __init__(self, tau, scale_of_noise=0.0):
        self.tau = tau

    def __call__(self, a, b):
        return plain(a, b, self.tau)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a file into the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)

    def write(content, name="my_losses.py"):
        (tmp_path / name).write_text(textwrap.dedent(content), encoding="utf-8")
        return name

    yield write
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in sys.modules[name].__file__:
            del sys.modules[name]


# What a text names.


def test_a_file_may_import_its_neighbors_and_the_path_is_as_before(written):
    written("def loss(z1, z2, temperature):\n    return 1.5\n", "neighbor.py")
    before = list(sys.path)
    outcome = outcome_of(written("from neighbor import loss\n") + ":loss")
    assert outcome.value == 1.5
    assert sys.path == before


def test_a_dotted_name_is_followed(written):
    name = written("class Space:\n    @staticmethod\n    def loss(z1, z2, temperature):\n        return 2.0\n")
    assert outcome_of(f"{name}:Space.loss").value == 2.0


def test_a_file_may_be_named_like_a_loaded_module(written):
    name = written("def loss(z1, z2, temperature):\n    return 2.0\n", "numpy.py")
    assert outcome_of(f"{name}:loss").value == 2.0
    assert sys.modules["numpy"] is np


@sweep(
    ("text", "error", "message"),
    [
        ("my_losses.py:nt_xnt", TargetError, "my_losses.py has no 'nt_xnt'; did you mean 'nt_xent'?"),
        ("my_loss.py:nt_xent", TargetError, "no file 'my_loss.py'; did you mean 'my_losses.py'?"),
        ("my_losses.py", InputError, "TARGET must say which object of my_losses.py is meant: my_losses.py:nt_xent"),
        ("no_such_package.loss:NTXent", TargetError, " nor installed; there are my_losses"),
        ("my_lossess:nt_xent", TargetError, " nor installed; did you mean 'my_losses'?"),
        ("numpy.linlag:norm", TargetError, "no module 'linlag' in numpy; did you mean 'linalg'"),
        ("numpy:pi", TargetError, "numpy:pi is of type float, which cannot be called"),
        ("nt_xent", InputError, "TARGET must be file.py:name or package.module:name, got 'nt_xent'"),
        ("my_losses.py:::a::b", InputError, "got 'my_losses.py:::a::b', which has 5 colons instead of one"),
        ("my_losses.py::", InputError, "got 'my_losses.py::', which has 2 colons instead of one"),
        ("numpy::norm", InputError, "got 'numpy::norm', which has 2 colons instead of one"),
        ("a/b:f", InputError, "got 'a/b:f', where 'a/b' is neither a module nor a file that ends in .py"),
        (":nt_xent", InputError, "got ':nt_xent'"),
        ("missing.py", InputError, "got 'missing.py'"),
        ("a:b.py:f", TargetError, "no file 'a:b.py'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(written, text, error, message):
    written("import numpy as np\ndef nt_xent(z1, z2, temperature):\n    return 0.0\n")
    with pytest.raises(error) as caught:
        loaded(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import numpy as np\n\nnp.zeros(3) @ np.zeros(4)\n", "line 3, in <module>"),
        ("import no_such_package.sub\n", "imports no_such_package, and there is no module of that name"),
        ("raise SystemExit(3)\n", "exits while it is imported (SystemExit: 3)"),
        ("from .neighbor import x\n", "name it package.module:name"),
        ("def f(:\n", "SyntaxError"),
    ],
)
def test_an_import_that_fails_is_told_with_its_last_lines(written, content, message):
    with pytest.raises(TargetError) as caught:
        loaded(written(content) + ":loss")
    assert message in str(caught.value)
    assert "find.py" not in str(caught.value)


def test_an_import_that_a_dependency_lacks_is_told_of_the_dependency(written, tmp_path, monkeypatch):
    package = tmp_path / "installed" / "dependency_of_losses"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from dependency_of_losses import inner\n")
    (package / "inner.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(str(package.parent))
    with pytest.raises(TargetError, match=r"^dependency_of_losses imports no_such_package, and there is no module"):
        loaded(written("import dependency_of_losses\n") + ":loss")


# Which input goes where.


@sweep(
    ("name", "function", "line"),
    [
        ("nt_xent", lambda z_i, z_j, tau: 0, "z1 -> z_i, z2 -> z_j, temperature -> tau"),
        ("nt_xent", lambda T, a, b: 0, "temperature -> T, z1 -> a, z2 -> b"),
        ("nt_xent", lambda out_1, out_2, t=0.5: 0, "z1 -> out_1, z2 -> out_2, temperature -> t"),
        ("nt_xent", lambda out0, out1, t: 0, "z1 -> out0, z2 -> out1, temperature -> t"),
        ("nt_xent", lambda a, b, c: 0, "z1 -> a, z2 -> b, temperature -> c"),
        ("nt_xent", lambda x, y, *, τ: 0, "z1 -> x, z2 -> y, temperature -> τ"),
        ("nt_xent", lambda x, y, *, kappa: 0, "z1 -> x, z2 -> y, temperature -> kappa"),
        ("nt_xent", lambda a, b, /, temp: 0, "z1 -> a, z2 -> b, temperature -> temp"),
        ("nt_xent", lambda *z, temp: 0, "z1, z2, temperature -> temp"),
        ("nt_xent", lambda **given: 0, "z1, z2, temperature"),
        ("moco", lambda k, q, memory, T=0.07: 0, "keys -> k, queries -> q, queue -> memory, temperature -> T"),
        ("supcon_out", lambda features, y, tau: 0, "embeddings -> features, labels -> y, temperature -> tau"),
        ("clip", lambda image_features, text_features, scale: 0,
         "image -> image_features, text -> text_features, logit_scale -> scale"),
        ("siglip", lambda x, y, s, b: 0, "image -> x, text -> y, logit_scale -> s, logit_bias -> b"),
        ("arcface", lambda feat, weight, label, s, m: 0,
         "embeddings -> feat, class_weights -> weight, target -> label, scale -> s, margin -> m"),
        ("uniformity", lambda x, t=2: 0, "x, t"),
        ("mnrl", lambda queries, documents, negatives=None, temperature=0.05: 0,
         "queries, documents, temperature, hardness = 0, without negatives (--set negatives=given passes it)"),
        ("cross_entropy", lambda pred, label: 0,
         "logits -> pred, target -> label, temperature = 1, label_smoothing = 0"),
    ],
)  # fmt: skip
def test_arguments_are_matched_by_name_then_alias_then_position(name, function, line):
    assert loaded(function, name).binding == line


def test_a_swapped_pair_of_names_goes_by_name():
    def keys_first(keys, queries, temperature):
        return float(queries[0, 0] - keys[0, 0])

    probe = probe_of("info_nce", queries=Z1, keys=Z2, temperature=0.5)
    assert outcome_of(keys_first, probe).value == Z1[0, 0] - Z2[0, 0]


@sweep(
    ("function", "options", "error", "message"),
    [
        (lambda features, labels, tau: 0, {}, TargetError, 'needs `labels`, and no input of nt_xent fits it'),
        (lambda z, tau: 0, {}, TargetError, "takes `z`, `tau`, and none of these is `z2` of nt_xent; map the "),
        (lambda a, b, c, d: 0, {}, TargetError, "needs `d`, and no input of nt_xent fits it; give it with --init d="),
        (lambda a, b, *, c, d: 0, {}, TargetError, "needs `c`, and no input of nt_xent fits it; give it"),
        (lambda a, b: 0, {}, TargetError, "takes `temperature` nowhere; say which value it uses: --set temperature="),
        (lambda a, b: 0, {"call": "f(a, b)"}, InputError, "`call` names 'a', which is no input of nt_xent: z1, z2, "),
        (lambda a, b: 0, {"call": "f(z1, z3)"}, InputError, "normalize; did you mean `z2` or `z1`? Beside "),
        (lambda a, b: 0, {"call": "f(z1,"}, InputError, "`call` must be a Python expression"),
        (lambda a, b: 0, {"call": "z1 + z2"}, InputError, "`call` must call the target by the name f"),
        (lambda a, b, t: 0, {"init": {"tua": 1}}, InputError, "`init` gives `tua`, but"),
        (Plain(0.5), {"init": {"tau": 1}}, InputError, "is constructed already"),
        (Plain, {"init": {"taus": 1}}, InputError, "takes `tau`, `scale_of_noise`"),
        (plain, {"framework": "keras"}, InputError, f"`framework` must be one of {', '.join(NAMES)}, got 'keras'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_to_do(function, options, error, message):
    with pytest.raises(error) as caught:
        loaded(function, **options)
    assert message in str(caught.value)


def test_an_optional_input_that_a_target_needs_is_named_with_its_setting():
    def against_negatives(queries, keys, hard_negatives, temperature):
        return 0.0

    message = "needs `hard_negatives`, which info_nce may be given and this run does not give; run with --set negatives"
    with pytest.raises(TargetError, match=message):
        outcome_of(against_negatives, probe_of("info_nce", queries=Z1, keys=Z2, temperature=0.5))


def test_a_temperature_of_its_own_is_fixed_by_a_setting():
    def cold(z1, z2):
        return plain(z1, z2, 0.5)

    target = loaded(cold, settings={"temperature": 0.5})
    assert target.fixed == {"temperature": 0.5}
    assert "it uses 0.5" in outcome_of(target).unjudged["temperature"]


def test_a_constructor_takes_the_temperature_of_the_case_or_fixes_it():
    assert loaded(Plain).binding == "z1 -> a, z2 -> b, temperature -> tau of the constructor"
    assert loaded(Plain).fixed == {}
    assert loaded(Plain, init={"tau": 0.07}).fixed == {"temperature": 0.07}
    assert loaded(Plain(0.07)).fixed == {"temperature": 0.07}
    assert loaded(functools.partial(plain, temperature=0.07)).fixed == {"temperature": 0.07}
    assert loaded(plain, init={"temperature": 0.07}).fixed == {"temperature": 0.07}
    probe = probe_of(z1=Z1, z2=Z2, temperature=0.3)
    assert outcome_of(Plain, probe).value == probe.value
    assert outcome_of(Plain, probe, init={"tau": 0.5}).value == probe_of().value


def test_a_call_expression_maps_freely():
    def stacked(z, n, scale):
        return plain(z[:n], z[n:], 1 / scale)

    probe = probe_of()
    outcome = outcome_of(stacked, probe, call="f(np.concatenate([z1, z2]), len(z1), 1 / temperature)")
    assert outcome.value == probe.value
    outcome = outcome_of(Plain, probe, call="[f(a, b) for a, b in [(z1, z2)]][0]", init={"tau": 0.5})
    assert outcome.value == probe.value


def test_a_target_is_told_the_reduction_and_the_conventions_that_were_asked_for():
    def reports(z1, z2, temperature, normalize=True, reduction="mean"):
        return {"mean": 1.0, "sum": 2.0}[reduction] + (0 if normalize else 10)

    assert outcome_of(reports).value == 1.0
    assert outcome_of(reports, probe_of(reduction="sum")).value == 2.0
    bare = probe_of(z1=Z1, z2=Z2, temperature=0.5)
    bare = Probe("bare", bare.loss, {**bare.inputs, "normalize": "none"}, "float64", value=0.0)
    assert outcome_of(reports, bare).value == 1.0, "its own default stands"
    assert outcome_of(reports, bare, settings={"normalize": "none"}).value == 11.0
    assert loaded(reports).has_reduction
    assert not loaded(plain).has_reduction


# NumPy.


def test_a_value_alone_leaves_the_gradients_unjudged():
    outcome = outcome_of(plain)
    assert agrees(outcome) == []
    assert outcome.unjudged == dict.fromkeys(["temperature", "z1", "z2"], "the target returns no gradients")


@pytest.mark.parametrize(
    "arranged",
    [
        lambda g: g,
        lambda g: {"zi": g["z1"], "b": g["z2"], "tau": g["temperature"]},
        lambda g: [g["z1"], g["z2"], g["temperature"]],
        lambda g: (g["z1"], g["z2"]),
    ],
)
def test_gradients_come_by_name_alias_parameter_or_order(arranged):
    def renamed(zi, b, tau):
        value, grads = graded(zi, b, tau)
        return value, arranged(grads)

    assert {"z1", "z2"} <= set(agrees(outcome_of(renamed)))


def test_arrays_arrive_in_the_dtype_of_the_run_and_bfloat16_is_refused():
    def reports(z1, z2, temperature):
        assert (z1.dtype, temperature.dtype) == (np.float32, np.float32)
        return 1.0

    assert outcome_of(reports, probe_of(dtype="float32")).value == 1.0
    with pytest.raises(InputError, match="'bfloat16', which NumPy does not have"):
        outcome_of(reports, probe_of(dtype="bfloat16"))
    with pytest.raises(InputError, match="a NumPy target runs on the cpu"):
        outcome_of(reports, device="cuda")


# The bad input of the world.


def modifies(z1, z2, temperature):
    z1 /= 2
    return 1.0


def forgetful(z1, z2, temperature, state=[0]):  # noqa: B006 - that is the bug
    state[0] += 1
    return float(state[0])


@sweep(
    ("function", "trouble", "message"),
    [
        (lambda z1, z2, temperature: 1 / 0, "raises", "ZeroDivisionError: division by zero (test_targets.py, line"),
        (lambda z1, z2, temperature: sys.exit(4), "exits", "exits (SystemExit: 4)"),
        (lambda z1, z2, temperature: z1, "wrong-shape", "shape (4, 3), but the reduction 'mean' asks for one number"),
        (lambda z1, z2, temperature: np.ones(3), "wrong-shape", "returns shape (3,), but the reduction"),
        (lambda z1, z2, temperature: np.ones(8), "wrong-shape", "choose rows with --set reduction=none"),
        (lambda z1, z2, temperature: (1.0, 0.5), "wrong-shape", "a pair whose second part, a float, is no mapping"),
        (lambda z1, z2, temperature: (1.0, {"q": z1}), "wrong-shape", "a gradient named 'q'; the inputs are "),
        (lambda z1, z2, temperature: (1.0, [z1[:1]]), "wrong-shape", "`z1` with the shape (1, 3), but the input"),
        (lambda z1, z2, temperature: (1.0, [0] * 4), "wrong-shape", "returns 4 gradients, but has 3 inputs"),
        (lambda z1, z2, temperature: None, "not-a-number-type", "returns a NoneType, None, instead of a number"),
        (lambda z1, z2, temperature: 1j, "not-a-number-type", "entries of type complex128 instead of real numbers"),
    ],
)  # fmt: skip
def test_trouble_is_an_outcome_with_a_sentence(function, trouble, message):
    outcome = outcome_of(function, framework="numpy")
    assert (outcome.trouble, outcome.value) == (trouble, None)
    assert message in outcome.sentence


def test_rows_are_read_under_the_reduction_none():
    probe = probe_of(reduction="none")
    rows = outcome_of(lambda a, b, t: NT_XENT(a, b, temperature=float(t), reduction="none"), probe)
    assert agrees(rows, probe) == []
    assert outcome_of(plain, probe).sentence.endswith("asks for rows (8,)")
    # Rows of another shape: nobody is told to ask for rows, who did.
    transposed = outcome_of(lambda z1, z2, temperature: np.ones((4, 2)), probe)
    assert transposed.sentence.endswith("returns shape (4, 2), but the reduction 'none' asks for rows (8,)")
    assert outcome_of(lambda z1, z2, temperature: np.ones((1,))).value == 1.0


def test_behavior_beside_the_numbers_is_remarked():
    assert outcome_of(modifies).remarks == {"modifies-inputs": "changes `z1` in place"}
    assert "another value" in outcome_of(forgetful, twice=True).remarks["not-deterministic"]
    assert "not-deterministic" not in outcome_of(plain, twice=True).remarks
    assert outcome_of(lambda z1, z2, temperature: sys.stdout.write("loss is \x1b[1m1\n") and 1.0).remarks == {
        "prints": r"prints 'loss is \x1b[1m1'"
    }


def test_the_probe_is_never_changed():
    probe = probe_of()
    before = probe.inputs["z1"].copy()
    outcome_of(modifies, probe)
    assert np.array_equal(probe.inputs["z1"], before)


def test_an_interrupt_passes_through():
    def interrupted(z1, z2, temperature):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome_of(interrupted)


@sweep("framework", NAMES)
@sweep("reduction", ["mean", "none"])
def test_a_known_answer_passes_through_arrays_and_backward_pass(framework, reduction):
    if framework != "numpy":
        pytest.importorskip(framework, reason=f"{framework} is not installed")
    probe = probe_of(reduction=reduction)
    target = frameworks.as_target(framework, lambda inputs: graded_rows(inputs, reduction), "nt_xent")
    assert agrees(outcome_of(target, probe), probe) == ["temperature", "z1", "z2"]
    with runner.in_process(target) as run:
        doubled = run.reply(probe, (2 * probe.value, probe.grads))
    assert np.allclose(doubled.value, 2 * np.asarray(probe.value), rtol=TOLERANCE)


def graded_rows(inputs, reduction):
    given = {name: inputs[name] for name in ("z1", "z2")} | {"temperature": float(inputs["temperature"])}
    options = {"cotangent": np.ones(8)} if reduction == "none" else {}
    return NT_XENT.value_and_grad(**given, reduction=reduction, normalize=inputs["normalize"], **options)


def test_a_class_is_reached_in_every_way():
    class Method:
        def loss(self, a, b, t):
            return plain(a, b, t)

    class Forward:
        def forward(self, a, b, t):
            return plain(a, b, t)

    value = probe_of().value
    assert outcome_of(Method, call="f.loss(z1, z2, temperature)").value == value
    assert outcome_of(Method().loss).value == value
    assert outcome_of(Forward).value == outcome_of(Forward()).value == value
    assert outcome_of(functools.partial(Plain, tau=0.5)).value == value
    with pytest.raises(TargetError, match="whose instances cannot be called: no forward, no __call__"):
        loaded(Method)


def test_a_torch_target_that_is_taken_for_numpy_is_told_how_to_say_so():
    def hidden(z1, z2, temperature):
        return z1.requires_grad_()

    assert outcome_of(hidden).sentence.endswith("written for another framework? choose with --framework")


def test_what_a_case_leaves_out_has_the_default_of_the_loss():
    probe = probe_of("cross_entropy", logits=Z1, target=np.array([0, 2, 1, 1]))
    assert "temperature" not in probe.inputs
    assert (
        outcome_of(lambda logits, target, temperature, label_smoothing: temperature + label_smoothing, probe).value == 1
    )
