"""Parameters that a module holds itself: found by name, measured by value, judged through the derivative."""

import math
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sweep import sweep

import nceref
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.judge import judge
from nceref.cases.parametrization import (
    PARAMETRIZATIONS,
    candidates,
    gradient_by,
    parameter_at,
    parse_parametrization,
    representable,
)
from nceref.cases.records import Observation
from nceref.errors import InputError, TargetError
from nceref.losses import get_loss
from nceref.targets import runner
from nceref.targets.own_parameters import find_parameters, meant_by
from nceref.targets.search import NoCallsLeft, Search
from nceref.targets.target import ResolvedTarget
from nceref.verification import target_run
from nceref.verification.measured_parameters import measure_forms, measure_parameters
from nceref.verification.request import request_of
from nceref.verification.trials import Trials
from nceref.verification.verifier import verify_with

INFO_NCE = get_loss("info_nce")
SCALARS = candidates(next(p for p in INFO_NCE.declaration.parameters if p.name == "temperature"))
INVERSES = {
    "identity": float, "exp": math.log, "exp_neg": lambda s: -math.log(s), "inverse": lambda s: 1 / s,
    "softplus": lambda s: math.log(math.expm1(s)), "log": math.exp,
}  # fmt: skip


@sweep(
    ("text", "path", "name"),
    [
        ("logit_scale", "logit_scale", ""),
        (" exp( head.log_s ) ", "head.log_s", "exp"),
        ("exp(-log_tau)", "log_tau", "exp_neg"),
        ("exp_neg(log_tau)", "log_tau", "exp_neg"),
        ("1/tau", "tau", "inverse"),
        ("1.0 / tau", "tau", "inverse"),
        ("softplus(layers.0.raw)", "layers.0.raw", "softplus"),
        ("identity(W)", "W", "identity"),
        ("transpose(W)", "W", "transpose"),
    ],
)
def test_what_a_user_writes_is_read(text, path, name):
    assert parse_parametrization(text) == (path, name)


@sweep("text", ["", "sin(x)", "exp(x", "2/x", "x.", "0", "x + 1", "exp(exp(x))", "-x"])
def test_anything_else_is_refused_with_what_there_is(text):
    with pytest.raises(InputError, match=r"`param` must map .* softplus\(PATH\)"):
        parse_parametrization(text)


@sweep("name", SCALARS)
@sweep("dtype", ["float64", "float32", "float16"])
def test_each_function_has_its_inverse_and_its_derivative(name, dtype):
    form = PARAMETRIZATIONS[name]
    for s in (0.07, 0.9, 14.0 if name != "log" else 3.0):
        snapped = representable(name, s, dtype)
        p = parameter_at(name, snapped, dtype)
        # What is held is a number of the format, and is recovered from the input to the last bit.
        assert float(np.asarray(p, dtype=dtype)) == p
        assert form.value(p) == snapped
        assert snapped == pytest.approx(s, rel=3e-2 if dtype == "float16" else 1e-6)
        assert p == pytest.approx(INVERSES[name](s), rel=1e-2 if dtype == "float16" else 1e-6)
        slope = (form.value(p + 1e-6) - form.value(p - 1e-6)) / 2e-6
        assert form.gradient(p, slope) == pytest.approx(1.0, rel=1e-6)
        assert gradient_by(name, p, form.gradient(p, 2.0)) == pytest.approx(2.0)


@sweep("name", SCALARS)
def test_in_float64_the_parameter_is_recovered_to_the_last_bit(name):
    for s in np.geomspace(0.01, 3.0, 300):
        snapped = representable(name, float(s), "float64")
        assert PARAMETRIZATIONS[name].value(parameter_at(name, snapped, "float64")) == snapped


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_bound_admits_the_rounding_of_the_function(reduction):
    queries, keys = np.random.default_rng(3).integers(1, 9, (2, 4, 3)) / 8
    inputs = {"queries": queries, "keys": keys, "temperature": representable("exp", 0.3, "float32")}
    plain = evaluate(INFO_NCE.declaration, inputs, "float32", reduction)
    wider = evaluate(INFO_NCE.declaration, inputs, "float32", reduction, forms={"temperature": "exp"})
    # One unit of roundoff of the temperature moves the value by this much; four are admitted, with a factor of two.
    unit = 2.0**-24 * 0.3 * abs(plain.grads["temperature"])
    added = np.sum(wider.bounds.value) - np.sum(plain.bounds.value)
    assert 4 * unit < added < 16 * unit
    assert all(np.all(wider.bounds.grads[n] > plain.bounds.grads[n]) for n in plain.grads)


CLIP_NAMES = ("logit_scale", "logit_bias")


@sweep(
    ("path", "inputs", "meant"),
    [
        ("logit_scale", ("temperature",), "temperature"),
        ("head.log_tau", ("temperature", "sigma"), "temperature"),
        ("log_inv_temperature", ("temperature",), "temperature"),
        ("temp", ("logit_scale",), "logit_scale"),
        ("b", CLIP_NAMES, "logit_bias"),
        ("raw_scale", ("scale", "margin"), "scale"),
        ("W", ("class_weights",), "class_weights"),
        ("proj.gamma", CLIP_NAMES, "logit_scale"),
        ("dropout", CLIP_NAMES, None),
        ("log", CLIP_NAMES, None),
    ],
)
def test_the_name_of_a_parameter_says_what_it_stands_for(path, inputs, meant):
    assert meant_by(path, inputs) == meant


def module(**shapes):
    named = [
        (path.replace("__", "."), SimpleNamespace(shape=shape, requires_grad=True)) for path, shape in shapes.items()
    ]
    return lambda: SimpleNamespace(named_parameters=lambda: named)


@sweep(
    ("loss", "shapes", "stated", "sought", "held"),
    [
        ("siglip", {"t_prime": (), "b": (1,)}, {}, CLIP_NAMES, {"logit_scale": "t_prime", "logit_bias": "b"}),
        ("siglip", {"x": (), "y": ()}, {}, CLIP_NAMES, {}),
        ("siglip", {"alpha": (), "bias": ()}, {}, CLIP_NAMES, {"logit_scale": "alpha", "logit_bias": "bias"}),
        ("siglip", {"x": (), "b": ()}, {"logit_scale": "b"}, CLIP_NAMES, {"logit_scale": "b", "logit_bias": "x"}),
        ("info_nce", {"tau": (5,)}, {}, ("temperature",), {}),
        ("info_nce", {"a__tau": (), "b__tau": ()}, {}, ("temperature",), {}),
        ("arcface", {"fc__weight": (9, 4), "fc__bias": (9,)}, {}, ("class_weights", "scale"),
         {"class_weights": "fc.weight"}),
        ("arcface", {"weight": (9, 4), "scale": ()}, {}, ("class_weights",), {"class_weights": "weight"}),
    ],
)  # fmt: skip
def test_parameters_are_found_by_name_where_one_can_be_meant(loss, shapes, stated, sought, held):
    answer, sizes, others = find_parameters(get_loss(loss).declaration, "theirs", module(**shapes), stated, sought)
    assert answer == held
    assert sizes == {name: shapes[path.replace(".", "__")] for name, path in held.items()}
    assert {*others} == {path.replace("__", ".") for path in shapes} - {*held.values()}


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"logit_scale": "sclae"}, "'sclae', which is no parameter of theirs; it has `scale`, `W`"),
        ({"logit_scale": "W"}, r"maps `logit_scale`, one number, to W, which has the shape \(3, 4\)"),
    ],
)
def test_a_path_that_does_not_fit_is_refused(stated, message):
    with pytest.raises(InputError, match=message):
        find_parameters(get_loss("clip").declaration, "theirs", module(scale=(1,), W=(3, 4)), stated, ())


def test_a_class_that_cannot_be_constructed_holds_nothing_that_is_looked_for():
    def fails():
        raise ValueError

    assert find_parameters(INFO_NCE.declaration, "theirs", fails, {}, ("temperature",)) == ({}, {}, ())
    with pytest.raises(TargetError, match=r"theirs cannot be constructed.*raises ValueError"):
        find_parameters(INFO_NCE.declaration, "theirs", fails, {"temperature": "tau"}, ())


@sweep(
    ("param", "message"),
    [
        ({"queries": "exp(x)"}, "maps `queries` by exp, but it must be one of identity, transpose"),
        ({"temperature": "transpose(x)"}, "maps `temperature` by transpose, but it must be one of identity, exp"),
        ({"temperatur": "x"}, "did you mean"),
        ({"temperature": 1.0}, "`param` must be text, got 1.0"),
        ("temperature", "`param` must map"),
        ({"temperature": "x"}, "a target of numpy, which has no module parameters"),
    ],
)
def test_what_cannot_be_held_is_refused(param, message):
    with pytest.raises(InputError, match=message):
        nceref.verify(lambda queries, keys, temperature: 0.0, "info_nce", param=param)


def holding(form, wrong=lambda value: value, slope=1.0):
    """A NumPy program that is handed what a module holds, and answers with the gradient by it."""

    def program(inputs, reduction, placed):
        s = PARAMETRIZATIONS[form].value(float(inputs["temperature"]))
        names = ("queries", "keys")
        value, grads = INFO_NCE.value_and_grad(*(inputs[n] for n in names), temperature=s)
        grads["temperature"] = slope * gradient_by(form, float(inputs["temperature"]), grads["temperature"])
        return wrong(value), grads

    return ResolvedTarget("theirs", "numpy", "info_nce", program, parameters={"temperature": "p"})


def measured(target, **options):
    request = request_of(lambda: None, "info_nce", {"dtype": "float64", "suite": "quick", **options})
    with np.errstate(all="ignore"), runner.in_process(target) as run:
        return measure_forms(request, run)


@pytest.mark.parametrize("form", SCALARS)
def test_the_function_is_measured_by_the_value(form):
    assert measured(holding(form)) == ({"temperature": form}, {})
    # A loss with another factor, or a constant beside it, has the same temperature.
    assert measured(holding(form, lambda value: 3 * value)) == ({"temperature": form}, {})
    assert measured(holding(form, lambda value: value - 2)) == ({"temperature": form}, {})


def test_calls_that_measure_and_calls_that_confirm_have_one_limit(monkeypatch):
    calls, target = [], holding("inverse")

    def called(*given):
        calls.append(given)
        return target.program(*given)

    one = replace(target, program=called)
    monkeypatch.setattr(target_run, "runner_of", lambda request, child: runner.in_process(one))
    request = request_of(lambda: None, "info_nce", {"suite": "quick"})
    search = Search(50)
    trials = Trials(lambda loss, **options: target_run.begun(request, None, search), search)
    with np.errstate(all="ignore"):
        assert trials.of("info_nce").right
        # Of six functions the right one has four cases, and the others two at most; then three cases are tried.
        assert search.made == len(calls) == 15
        with pytest.raises(NoCallsLeft):
            [trials.of("info_nce") for _ in range(9)]
        assert search.made == len(calls) == 50
        # A verdict that is part of the search ends with it.
        report = verify_with(lambda: None, "info_nce", suite="quick", search=search)
    assert (report.exit_code, report.reason, len(calls)) == (4, search.sentence, 50)


def test_what_cannot_be_measured_is_left_and_asked_for():
    other = holding("exp", lambda value: value**2)
    assert measured(other) == ({}, {"temperature": "p"})
    with pytest.raises(TargetError, match=r"by none of identity\(p\).*state which.*--param 'temperature=exp\(p\)'"):
        measured(other, param={"temperature": "p"})
    assert measured(other, param={"temperature": "exp(p)"}) == ({"temperature": "exp"}, {})


@pytest.mark.parametrize(
    ("form", "dtype"), [("exp", "float64"), ("exp", "float16"), *((form, "float32") for form in SCALARS)]
)
def test_the_gradient_is_judged_through_the_derivative(form, dtype):
    forms = {"temperature": form}
    probes = corpus(INFO_NCE.declaration, {}, suite="quick", dtype=dtype, forms=forms, most=10)
    probes = [p for p in probes if not (p.skip or p.is_large)]

    def statuses(target):
        with np.errstate(all="ignore"), runner.in_process(target) as run:
            run.forms.update(forms)
            return {r.status for p in probes for r in judge(Observation(p, run(p))) if r.quantity == "grad.temperature"}

    assert len(probes) > 5
    assert statuses(holding(form)) == {"pass"}
    assert "fail" in statuses(holding(form, slope={"float64": 1 + 1e-9, "float32": 1.01, "float16": 0.0}[dtype]))


def of_one_size(shape, transposed):
    """A NumPy program that takes the weights of classes in one shape alone."""
    cosface = get_loss("cosface")

    def program(inputs, reduction, placed):
        weights = inputs["class_weights"]
        if weights.shape != shape:
            msg = f"shape {shape} expected"
            raise ValueError(msg)
        rest = {name: inputs[name] for name in ("embeddings", "target", "scale", "margin")}
        weights = weights.T if transposed else weights
        value, grads = cosface.value_and_grad(**rest, class_weights=weights)
        grads["class_weights"] = grads["class_weights"].T if transposed else grads["class_weights"]
        return value, {name: grads[name] for name in ("embeddings", "class_weights")}

    held, sizes = {"class_weights": "head.weight"}, {"class_weights": shape}
    return ResolvedTarget("theirs", "numpy", "cosface", program, parameters=held, sizes=sizes)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("classes", [7, 10])
def test_all_cases_have_the_sizes_of_weights_that_take_no_others(transposed, classes):
    """Square ones fit in both orders, of which the value is right in one."""
    target = of_one_size((classes, 10)[:: -1 if transposed else 1], transposed)
    request = request_of(lambda: None, "cosface", {"suite": "quick", "shape": "6,10"})
    with np.errstate(all="ignore"), runner.in_process(target) as run:
        resized, forms, unknown = measure_parameters(request, run)
        assert (forms, unknown) == ({"class_weights": "transpose" if transposed else "identity"}, {})
        assert resized.resizing.words == f"N = 6, D = 10, C = {classes} in all cases"
        # Where the user wants another width, the module cannot have it.
        other = replace(request, resizing=Resizing(features=11))
        with pytest.raises(TargetError, match=r"raises ValueError: shape \(\d+, \d+\) expected .* --shape N,D,C"):
            measure_parameters(other, run)


SOURCE = """
import math
import torch
from torch import nn
from torch.nn import functional

FUNCTIONS = {
    "identity": lambda p: p, "exp": torch.exp, "exp_neg": lambda p: torch.exp(-p), "inverse": lambda p: 1 / p,
    "softplus": functional.softplus, "log": torch.log,
}


def cross_entropy(x, y, scale, reduction="mean"):
    logits = scale * (functional.normalize(x) @ functional.normalize(y).T)
    return functional.cross_entropy(logits, torch.arange(len(logits)), reduction=reduction)


class Learned(nn.Module):
    def __init__(self, temperature, form="exp", detached=False, factor=1.0):
        super().__init__()
        self.log_tau = nn.Parameter(torch.full((1,), math.log(temperature)))
        self.form, self.detached, self.factor = form, detached, factor

    def forward(self, queries, keys):
        tau = FUNCTIONS[self.form](self.log_tau)
        tau = tau.detach() if self.detached else tau
        return self.factor * cross_entropy(queries, keys, 1 / tau)


class Sigmoid(nn.Module):
    def __init__(self, detached=False):
        super().__init__()
        self.t_prime, self.b = nn.Parameter(torch.tensor(2.3)), nn.Parameter(torch.tensor(-10.0))
        self.detached = detached

    def forward(self, image, text):
        b = self.b.detach() if self.detached else self.b
        logits = self.t_prime.exp() * functional.normalize(image) @ functional.normalize(text).T + b
        signs = 2 * torch.eye(len(logits), dtype=logits.dtype) - 1
        return -functional.logsigmoid(signs * logits).sum() / len(logits)


class Classes(nn.Module):
    def __init__(self, in_features=4, out_features=6, s=30.0, m=0.25, columns=False, detached=False):
        super().__init__()
        shape = (in_features, out_features) if columns else (out_features, in_features)
        self.W, self.s, self.m, self.columns, self.detached = nn.Parameter(torch.rand(shape)), s, m, columns, detached

    def forward(self, x, label):
        W = self.W.detach() if self.detached else self.W
        cosines = functional.normalize(x) @ functional.normalize(W.T if self.columns else W).T
        own = functional.one_hot(label, cosines.shape[1]).to(x)
        return functional.cross_entropy(self.s * (cosines - self.m * own), label)


class OneSize(Classes):
    def forward(self, x, label):
        return super().forward(x, label) + 0 * (self.W - torch.zeros(6, 4, dtype=x.dtype)).sum()
"""
QUICK = {"suite": "quick"}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def theirs(torch, tmp_path_factory):
    path = tmp_path_factory.mktemp("theirs") / "theirs.py"
    path.write_text(SOURCE)
    namespace = {"__name__": "theirs"}
    exec(compile(SOURCE, str(path), "exec"), namespace)
    return SimpleNamespace(**namespace, path=path)


@sweep("form", SCALARS)
def test_a_learned_temperature_is_judged_whatever_the_module_holds(theirs, form):
    report = nceref.verify(theirs.Learned, "info_nce", init={"form": form}, **QUICK)
    assert report.ok, report.reason
    assert "not judged" not in report.reason
    words = f"{PARAMETRIZATIONS[form].words}the parameter log_tau"
    assert f"temperature -> {words}" in report.environment["arguments"]
    assert report.record()["environment"]["parameters"] == {"temperature": words}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_object_in_another_format_and_in_other_ways_of_calling(theirs, dtype):
    report = nceref.verify(theirs.Learned(0.5), "info_nce", dtype=dtype, **QUICK)
    assert report.ok, report.reason
    called = {r.quantity for r in report.results if r.quantity.startswith("mode.") and r.status == "pass"}
    assert {"mode.again", "mode.upstream", "mode.eval", "mode.after-larger"} <= called


@pytest.mark.parametrize(
    ("name", "loss", "init", "id"),
    [
        ("Learned", "info_nce", {}, "temperature-detached"),
        ("Sigmoid", "siglip", {}, "bias-detached"),
        ("Classes", "cosface", {}, "centers-detached"),
        ("Classes", "cosface", {"columns": True}, "centers-detached"),
    ],
)
def test_a_detached_parameter_is_named(theirs, name, loss, init, id):
    target = getattr(theirs, name)
    assert nceref.verify(target, loss, init=init, **QUICK).ok
    report = nceref.verify(target, loss, init={"detached": True, **init}, **QUICK)
    assert [d.id for d in report.diagnosis] == [id]


def test_parameters_that_stand_for_no_input_are_said_to_be_unjudged(theirs, torch):
    class Projected(theirs.Learned):
        def __init__(self, temperature):
            super().__init__(temperature)
            self.head = torch.nn.Linear(3, 3)
            self.shift = torch.nn.Parameter(torch.zeros(2), requires_grad=False)

    report = nceref.verify(Projected, "info_nce", **QUICK)
    assert (
        "not judged: the gradient of 2 parameters of the module (head.weight, head.bias)"
        in report.environment["arguments"]
    )
    assert report.environment["other_parameters"] == ["head.weight", "head.bias"]

    class Layered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(64, 10)

        def forward(self, x, target):
            return torch.nn.functional.cross_entropy(self.head(x), target)

    assert "computes with head.weight, head.bias" in nceref.verify(Layered, "cross_entropy", **QUICK).reason


def test_another_difference_is_named_beside_the_parameter(theirs):
    report = nceref.verify(theirs.Learned, "info_nce", init={"factor": 2.0}, **QUICK)
    assert [d.id for d in report.diagnosis] == ["outer-factor-2"]
    assert "exp of the parameter log_tau" in report.environment["arguments"]


def test_a_process_of_its_own_says_the_same_and_the_script_shows_it(theirs):
    options = {"init": {"detached": True}, "param": {"temperature": "exp(log_tau)"}, "repro": True}
    report = nceref.verify(f"{theirs.path}:Learned", "info_nce", **options, **QUICK)
    assert [d.id for d in report.diagnosis] == ["temperature-detached"]
    ran = subprocess.run(
        [sys.executable, "-c", report.repro], capture_output=True, text=True, check=False, cwd=theirs.path.parent
    )
    assert "gradient of log_tau, yours 0.0" in ran.stdout, ran.stderr
    assert ran.returncode == 1


def test_a_parameter_that_is_not_found_is_asked_for(theirs, torch):
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.u, self.v = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(()))

        def forward(self, queries, keys):
            return theirs.cross_entropy(queries, keys, 1 / self.u)

    report = nceref.verify(Two, "info_nce", **QUICK)
    assert report.exit_code == 4
    assert "or which of its parameters it is, u, v: --param temperature=PATH" in report.reason
    assert nceref.verify(Two, "info_nce", param={"temperature": "u"}, **QUICK).ok


def test_a_module_of_one_size_is_told_what_to_do(theirs):
    report = nceref.verify(theirs.OneSize, "cosface", shape="6,5", **QUICK)
    assert report.exit_code == 4
    assert "W in the place of `class_weights`" in report.reason
    assert "--shape" in report.reason


def test_a_module_of_one_size_is_judged_in_it(theirs):
    for text in (False, True):
        report = nceref.verify(f"{theirs.path}:OneSize" if text else theirs.OneSize, "cosface", **QUICK)
        assert report.ok, report.reason
        assert "D = 4, C = 6 in all cases" in report.environment["arguments"]
        assert report.scope.ranges["rows"] == (1, 129)
    wrong = nceref.verify(theirs.OneSize, "cosface", init={"detached": True}, **QUICK)
    assert [d.id for d in wrong.diagnosis] == ["centers-detached"]


@pytest.mark.parametrize(
    ("target", "param", "message"),
    [
        ("cross_entropy", {"temperature": "tau"}, "is no module of torch"),
        ("Learned", {"temperature": "tau"}, "'tau', which is no parameter .* it has `log_tau`"),
    ],
)
def test_a_parameter_that_there_is_not_is_refused(theirs, target, param, message):
    with pytest.raises(InputError, match=message):
        nceref.verify(getattr(theirs, target), "info_nce", param=param, framework="torch", **QUICK)
