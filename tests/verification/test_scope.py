"""What a verdict is about is said with it, in words and as data; what the reference refuses is run, and said."""

import json

import numpy as np
import pytest

from nceref import get_loss, verify

NT_XENT = get_loss("nt_xent")


def graded(z1, z2, temperature):
    if not np.all(np.any(z1, axis=1)):
        return np.float64(np.nan)
    value, grads = NT_XENT.value_and_grad(z1, z2, temperature=float(temperature))
    return value, {name: grads[name] for name in ("z1", "z2")}


def refusing(z1, z2, temperature):
    return NT_XENT(z1, z2, temperature=float(temperature))


def test_a_record_has_its_scope():
    report = verify(graded, loss="nt_xent", suite="quick")
    assert report.verdict == "conforms"
    scope = json.loads(report.to_json())["scope"]
    assert scope["ranges"] == {"rows": [1, 129], "features": [3, 65], "temperature": [0.0001, 5]}
    assert (scope["dtypes"], scope["not_judged"]) == (["float64"], ["temperature"])
    assert scope["cases"] == len({r.case for r in report.results if r.quantity == "value" and r.status == "pass"})
    assert "strided" in scope["modes"]


def test_what_the_reference_refuses_is_run_and_reported_without_a_verdict():
    for target, does in ((graded, "yours returns NaN"), (refusing, "yours raises InputError")):
        report = verify(target, loss="nt_xent", suite="quick")
        assert report.ok
        assert next(does in r["why"] for r in json.loads(report.to_json())["results"] if r["case"] == "zero-0.3")


@pytest.mark.parametrize(("number", "names"), [(np.float64, ("z1", "z2")), (float, ("z1", "z2", "temperature"))])
def test_gradients_in_another_form_than_a_pair_are_said_to_be_unread(number, names):
    def loose(z1, z2, temperature):
        value, grads = NT_XENT.value_and_grad(z1, z2, temperature=float(temperature))
        return (number(value), *(grads[name] if name != "temperature" else number(grads[name]) for name in names))

    report = verify(loose, loss="nt_xent", suite="quick", case=["designed-0.3", "seven-0.5"])
    pair = f"returns {1 + len(names)} values; gradients are read from a pair (value, {{input: gradient}})"
    assert (report.verdict, pair in report.reason) == ("value-only", True), report.reason


def jittery():
    """A target whose second call differs in its last bit, as after it was compiled."""
    calls = []

    def target(z1, z2, temperature):
        calls.append(1)
        value = NT_XENT(z1, z2, temperature=float(temperature))
        return np.nextafter(value, 2 * value) if len(calls) % 2 else value

    return target


def test_a_second_call_may_differ_within_the_bound():
    assert verify(jittery(), loss="nt_xent", suite="quick").verdict == "value-only"


OBJECTS = """
import numpy as np

class Loss:
    def __init__(self, temperature=0.5):
        self.temperature = temperature

    def __call__(self, queries, keys):
        q, k = (x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)) for x in (queries, keys))
        s = q @ k.T / self.temperature
        return np.mean(np.logaddexp.reduce(s, axis=1) - np.diag(s))

loss = Loss()
"""


def test_what_an_object_keeps_at_one_value_is_said_wherever_the_target_runs(tmp_path):
    (tmp_path / "objects.py").write_text(OBJECTS)
    kept = verify(f"{tmp_path}/objects.py:loss", "info_nce", suite="quick")
    assert kept.record()["scope"]["one_value"] == {"temperature": 0.5}
    assert "tested temperature at its one value 0.5, as the target is an object" in " ".join(str(kept).split())
    varied = verify(f"{tmp_path}/objects.py:Loss", "info_nce", suite="quick")
    assert varied.verdict == kept.verdict
    assert "one_value" not in varied.record()["scope"]
