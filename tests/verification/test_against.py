"""A target against an older program: what it is known to be, or else its own numbers, is the reference."""

import json
import os
import textwrap

import numpy as np
import pytest

import nceref

PROGRAMS = """
    import numpy as np
    from nceref.losses import nt_xent

    def unit(z):
        return z / np.linalg.norm(z, axis=1)[:, None]

    def textbook(z1, z2, temperature):
        z, n = unit(np.concatenate([z1, z2])), len(z1)
        s = z @ z.T / temperature
        np.fill_diagonal(s, -np.inf)
        m = s.max(1)
        rows = np.log(np.exp(s - m[:, None]).sum(1)) + m - np.concatenate([np.diag(s, n), np.diag(s, -n)])
        return rows.mean()

    def twice(z1, z2, temperature):
        return 2 * textbook(z1, z2, temperature)

    def twice_as_sums(z1, z2, temperature):
        return textbook(z1, z2, temperature) + textbook(z2, z1, temperature)

    def with_gradients(z1, z2, temperature):
        value, grads = nt_xent.value_and_grad(z1, z2, temperature=temperature)
        return value, (grads["z1"], grads["z2"])

    def zeros_as_ones(z1, z2, temperature):
        return textbook(z1, z2, temperature) if np.all(np.any(z1, axis=1)) else 1.0

    def zeros_as_halves(z1, z2, temperature):
        return textbook(z1, z2, temperature) if np.all(np.any(z1, axis=1)) else 0.5

    # Of no loss of the family: a term of the squared features beside it, with gradients.
    def with_term(z1, z2, temperature):
        value, (g1, g2) = with_gradients(z1, z2, temperature)
        weights = np.arange(1, z1.shape[1] + 1, dtype=z1.dtype)
        return value + 0.3 * np.mean(z1 * z1 * weights), (g1 + 0.6 * z1 * weights / z1.size, g2)

    def with_term_rewritten(z1, z2, temperature):
        value, (g1, g2) = with_gradients(z1, z2, temperature)
        weights = 0.3 * np.arange(1, z1.shape[1] + 1, dtype=z1.dtype) / z1.size
        return np.einsum("nd,d->", z1**2, weights) + value, (2 * z1 * weights + g1, g2)

    def three_times(z1, z2, temperature):
        value, grads = with_term(z1, z2, temperature)
        return 3 * value, tuple(3 * g for g in grads)

    def over_rows(z1, z2, temperature):
        value, grads = with_term(z1, z2, temperature)
        return value / len(z1), tuple(g / len(z1) for g in grads)

    def half_a_gradient(z1, z2, temperature):
        value, (g1, g2) = with_term(z1, z2, temperature)
        return value, (g1, g2 / 2)

    def nearly(z1, z2, temperature):
        value, grads = with_term(z1, z2, temperature)
        return value * (1 + 1e-10), grads

    def of_seven_rows(z1, z2, temperature):
        value, grads = with_term(z1, z2, temperature)
        return value + 0.01 * (len(z1) == 7), grads

    def random(z1, z2, temperature):
        return textbook(z1, z2, temperature) + np.random.default_rng().random()

    def not_finite(z1, z2, temperature):
        value, grads = with_term(z1, z2, temperature)
        return (np.nan if temperature < 0.06 else value), grads

    def raising(z1, z2, temperature):
        if len(z1) == 7:
            raise ValueError("no batch of seven")
        return with_term(z1, z2, temperature)

    def rows(z1, z2, temperature):
        return np.ones(len(z1))

    class Fixed:
        def __init__(self, tau=0.07):
            self.tau = tau

        def __call__(self, z1, z2):
            return textbook(z1, z2, self.tau)

    old, new = Fixed(0.07), Fixed(0.1)
"""
QUICK = {"suite": "quick", "dtype": "float64"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("against") / "losses.py"
    path.write_text(textwrap.dedent(PROGRAMS), encoding="utf-8")
    return path


def verified(file, new, old, loss="nt_xent", **options):
    return nceref.verify(f"{file}:{new}", loss, against=f"{file}:{old}", **{**QUICK, **options})


def _slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow(reason="another program, by the same steps"))


def test_an_old_program_that_is_the_loss_has_its_numbers_and_bounds(file):
    report = verified(file, "twice", "textbook")
    assert report.exit_code == 1
    assert report.diagnosis[0].id == "outer-factor-2"
    assert "textbook is nt_xent, whose numbers and bounds hold" in report.environment["reference"]
    assert " ".join(str(report).split()).startswith(f"{file}:twice against {file}:textbook")
    assert verified(file, "textbook", "textbook").verdict == "value-only"


def test_what_an_old_program_departs_in_is_what_a_new_one_is_held_to(file):
    report = verified(file, "twice_as_sums", "twice")
    assert report.verdict == "value-only", str(report)
    assert report.settings == {"factor": "outer-factor-2"}
    wrong = verified(file, "textbook", "twice")
    assert wrong.exit_code == 1
    first, second = (diagnosis.sentence for diagnosis in wrong.diagnosis)
    assert first == f"your loss equals 1/2 times {file}:twice, on 28 of 28 cases"
    assert second == f"your loss equals nt_xent as it is, on 28 of 28 cases, which {file}:twice is not"


def test_a_program_of_no_known_loss_is_the_reference_by_its_own_numbers(file):
    report = verified(file, "with_term_rewritten", "with_term")
    assert report.verdict == "conforms", str(report)
    assert {"value", "grad.z1", "grad.z2"} <= {r.quantity for r in report.results if r.status == "pass"}
    assert "computes in float64" in report.environment["reference"]
    assert verified(file, "with_term_rewritten", "with_term", dtype="float32").ok


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("three_times", "your loss equals 3 times"),
        _slow("over_rows", "your loss equals 1/N times"),
        ("half_a_gradient", "the gradient of z2 departs"),
        _slow("nearly", "the value departs"),
        ("of_seven_rows", "it shows where N = 7, and at no other N"),
        _slow("textbook", "your loss equals nt_xent as it is"),
        _slow("twice", "your loss equals nt_xent with an outer factor 2"),
    ],
)
def test_a_difference_from_it_is_named(file, name, words):
    report = verified(file, name, "with_term")
    assert report.exit_code == 1
    assert words in report.diagnosis[0].sentence, str(report)


def test_where_the_old_program_has_no_number_nothing_is_compared(file):
    for old, why in (("not_finite", "is not finite"), ("raising", "raises ValueError: no batch of seven")):
        report = verified(file, "with_term_rewritten", old)
        assert report.verdict == "conforms", str(report)
        skipped = [r.why for r in report.results if r.status == "skip" and f"{old}, the reference, {why}" in r.why]
        assert skipped, str(report)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("random", "it gives another value when it is called again"),
        _slow("rows", "on 27 cases"),
        _slow("nothing", "has no 'nothing'"),
    ],
)
def test_what_is_no_reference_is_no_difference_of_the_loss(file, old, words):
    report = verified(file, "textbook", old)
    assert report.exit_code == 4
    assert report.reason.startswith(f"{file}:{old} is no reference: ")
    assert words in report.reason


def test_where_the_loss_is_undefined_both_answers_are_told_apart(file):
    # A row of zeros has no direction.
    report = verified(file, "zeros_as_ones", "zeros_as_halves")
    assert report.exit_code == 1
    assert "where nt_xent is undefined," in report.reason
    assert "zeros_as_halves returns 0.5, and" in report.reason
    told = verified(file, "zeros_as_ones", "textbook")
    assert told.exit_code == 0
    assert "textbook returns NaN, and" in told.environment["undefined"]
    assert told.environment["undefined"] in " ".join(str(told).split()).replace("Where", "where")


def test_a_loss_is_no_older_program(file):
    with pytest.raises(nceref.InputError, match="give --loss nt_xent"):
        nceref.verify(f"{file}:textbook", "nt_xent", against="nt_xent", **QUICK)


def test_constants_that_both_have_fixed_must_be_the_same(file):
    report = verified(file, "new", "old")
    assert report.exit_code == 1
    # A free one is held to that of the old program.
    assert verified(file, "textbook", "old").scope.ranges["temperature"] == (0.07, 0.07)


def test_the_command_finds_the_loss_and_prints_the_cost(file, run):
    words = ("verify", f"{file}:textbook", "--against", f"{file}:textbook", "--suite", "quick")
    code, out, _ = run(*words)
    assert code == 0
    assert f"{file}:textbook is nt_xent" in " ".join(out.split())
    assert ("cost of a call with 1024 rows" in out) == os.access("/proc/self/clear_refs", os.W_OK)
    record = json.loads(run(*words, "--json")[1])
    assert record["loss"] == "nt_xent"
    assert record["environment"]["against"] == f"{file}:textbook"


def test_objects_are_compared_in_this_process():
    def old(z1, z2, temperature):
        return nceref.losses.nt_xent(z1, z2, temperature=temperature) + 1.0

    def new(z1, z2, temperature):
        return nceref.losses.nt_xent(z2, z1, temperature=temperature) + 1.0

    report = nceref.verify(new, "nt_xent", against=old, **QUICK)
    assert report.verdict == "value-only", str(report)
    assert not nceref.verify(old, "nt_xent", against=lambda z1, z2, temperature: np.float64(1.0), **QUICK).ok


def test_a_manifest_names_the_old_program(file, monkeypatch, run):
    table = '[[target]]\ntarget = "losses.py:twice_as_sums"\nagainst = "losses.py:twice"\nloss = "nt_xent"\n'
    (file.parent / "nceref.toml").write_text(f'{table}suite = "quick"\n', encoding="utf-8")
    # Files are named from the manifest's folder.
    monkeypatch.chdir(file.parent.parent)
    code, out, _ = run("verify", "--manifest", f"{file.parent.name}/nceref.toml")
    assert code == 0
    assert "twice is nt_xent with factor=outer-factor-2" in " ".join(out.split())
