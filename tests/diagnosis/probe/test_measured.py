"""What a program computes, measured by calling it: the formula, or nothing."""

from inspect import signature

import numpy as np
import pytest
from diagnosis.probe.wrong_losses import WRONG, cosines, labelled, mass
from slow import partly_slow

import nceref
from nceref.cases.records import Outcome
from nceref.diagnosis.probe import measured as measured_module
from nceref.diagnosis.probe.calls import Calls
from nceref.diagnosis.probe.measured import measured
from nceref.diagnosis.probe.words import Difference, latex
from nceref.engine.bound_loss import bound_loss

QUICK = {"temperature_squared_on_negatives", "earlier_keys_only", "anchor_counted_among_its_positives"}
RNG = np.random.default_rng(0)


@pytest.fixture
def sums_alone(monkeypatch):
    """Other formulas are not looked for."""
    monkeypatch.setattr(measured_module, "compositions", lambda *given: (iter(()), iter(())))


REFERENCES = (
    ("alignment", {}, "sum_{i} s_ii/N, s: powers of distances of unit rows"),
    ("alignment", {"exponent": 1.0}, "sum_{i} s_ii/N, s: distances of unit rows"),
    (
        "arcface", {},
        "1/N sum_i [ -s s_iy + log( sum_{k} e^(s s_ik) ) ], s: cosines of angles plus the margin",
    ),
    (
        "balanced_softmax", {},
        "1/N sum_i [ -log( n_y e^(s_iy/T) ) + log( sum_{k} n_k e^(s_ik/T) ) ], s: logits",
    ),
    (
        "clip", {},
        "1/(2 N) sum_i [ -t s_ii + log( sum_{j} e^(t s_ij) ) ] + 1/(2 N) sum_i [ -t s_ii + log( sum_{j} e^(t s_ji) ) ]"
        ", s: cosines",
    ),
    ("cosface", {}, "1/N sum_i [ -s s_iy + log( e^(s s_iy) + sum_{k != y} e^(s s_ik + s m) ) ], s: cosines"),
    ("cross_entropy", {}, "1/N sum_i [ -s_iy/T + log( sum_{k} e^(s_ik/T) ) ], s: logits"),
    (
        "cross_entropy", {"label_smoothing": 0.125},
        "1/N sum_i [ sum_{k != y} -s_ik/(8 C T) + (-7/(8 T) - 1/(8 C T)) s_iy + log( sum_{k} e^(s_ik/T) ) ], s: logits",
    ),
    (
        "dcl", {},
        "1/(2 N) sum_{i in both views} [ -s_ip/T + log( sum_{j not in {i, p}} e^(s_ij/T) ) ], s: cosines",
    ),
    ("info_nce", {}, "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], s: cosines"),
    (
        "info_nce", {"negatives": ...},
        "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + sum_{k in negatives} e^(s_ik/T) ) ], s: cosines",
    ),
    (
        "info_nce", {"normalize": "none"},
        "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], s: inner products of rows as they are",
    ),
    ("moco", {}, "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + sum_{k in queue} e^(s_ik/T) ) ], s: cosines"),
    ("nt_xent", {}, "1/(2 N) sum_{i in both views} [ -s_ip/T + log( sum_{j != i} e^(s_ij/T) ) ], s: cosines"),
    ("siglip", {}, "sum_{i} log( 1 + e^(-t s_ii - b) )/N + sum_{j != i} log( 1 + e^(t s_ij + b) )/N, s: cosines"),
    ("simple", {}, "sum_{i} -s_ii/N + sum_{j != i} s_ij/(N (N - 1)), s: cosines"),
    (
        "supcon_out", {},
        "1/N sum_i [ sum_{p in P(i)} -s_ip/(|P(i)| T) + log( sum_{j != i} e^(s_ij/T) ) ], s: cosines",
    ),
    (
        "supcon_out", {"embeddings": "views"},
        "1/(N V) sum_i [ sum_{p in P(i)} -s_ip/(|P(i)| T) + log( sum_{j != i} e^(s_ij/T) ) ], s: cosines",
    ),
    (
        "uniformity", {},
        "log( sum_{i < j} e^(-t s_ij) ) - log(N(N - 1)/2), s: squared distances of unit rows",
    ),
)  # fmt: skip


def formula_of(program, loss, dtype="float64", **settings):
    def call(probe):
        kind = np.dtype(probe.dtype).type
        cast = {n: x.astype(kind) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                for n, x in probe.inputs.items()}  # fmt: skip
        taken = set(signature(program).parameters)
        # A target is not called with arrays that it does not take.
        if not taken <= set(cast) or {n for n, x in cast.items() if isinstance(x, np.ndarray)} - taken:
            return Outcome(trouble="raises")
        with np.errstate(all="ignore"):
            return Outcome(program(**{name: cast[name] for name in signature(program).parameters}))

    return measured(nceref.get_loss(loss).declaration, call, settings, dtype, "mean")


@pytest.mark.usefixtures("sums_alone")
@pytest.mark.parametrize("name", partly_slow(WRONG, QUICK.__contains__, "a formula takes a second each"))
def test_the_formula_of_a_wrong_loss_is_measured(name):
    loss, program, formula = WRONG[name]
    diagnosis = formula_of(program, loss)
    assert diagnosis.id == "measured-formula"
    assert diagnosis.formula == f"L = {formula}"
    assert "different: " in diagnosis.sentence


def offset_by_one(name):
    """A program that is off by a constant: the rest of its formula is that of the loss."""
    loss = nceref.get_loss(name).declaration

    def call(probe):
        return Outcome(1 + bound_loss(loss, (), probe.inputs).evaluate("mean").value("mean"))

    return call


@pytest.mark.usefixtures("sums_alone")
@pytest.mark.parametrize(
    ("loss", "settings", "line"),
    partly_slow(REFERENCES, lambda case: case[:2] in (("info_nce", {}), ("cross_entropy", {})), "all losses"),
)
def test_the_formula_of_a_loss_is_its_definition(loss, settings, line):
    declaration = nceref.get_loss(loss).declaration
    diagnosis = measured(declaration, offset_by_one(loss), settings, "float64", "mean")
    definition, _, legend = line.rpartition(", s: ")
    # Constants add up: an offset is one expression.
    offset = " - log(N(N - 1)/2)" if definition.endswith(" - log(N(N - 1)/2)") else ""
    assert diagnosis.reference.replace("<<", "").replace(">>", "").replace("+ -", "- ") == f"L = {line}"
    assert diagnosis.formula.startswith(f"L = {definition.removesuffix(offset)} + <<")
    assert diagnosis.formula.endswith(f", s: {legend}")


def plain(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


def slightly_curved(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    logits = logits + 1e-4 * logits**3
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


def another_one_for_more_than_eight(queries, keys, temperature):
    return 3 * plain(queries, keys, temperature) * (1.5 if len(queries) > 8 else 1)


def random(queries, keys, temperature):
    return plain(queries, keys, temperature) + RNG.uniform()


def constant(queries, keys, temperature):
    return 1.0


def without_a_number(queries, keys, temperature):
    return np.nan


def positives_after_the_anchor(embeddings, labels, temperature):
    s, together, own = labelled(embeddings, labels)
    pull = (s * np.triu(together)).sum(axis=1) / (2 * temperature)
    return np.mean(-pull + np.log((np.exp(s / temperature) * ~own * (1 + np.triu(~own))).sum(axis=1)))


@pytest.mark.usefixtures("sums_alone")
@pytest.mark.slow(reason="everything is tried before nothing is said")
def test_a_formula_without_words_for_its_pairs_is_not_written():
    assert formula_of(positives_after_the_anchor, "supcon_out") is None


def negatives_of_the_keys(queries, keys, queue, temperature):
    own = np.diag(cosines(queries, keys)) / temperature
    return np.mean(-own + np.log(np.exp(own) + mass(cosines(keys, queue) / temperature)))


@pytest.mark.usefixtures("sums_alone")
def test_formulas_that_read_alike_name_their_anchors():
    diagnosis = formula_of(negatives_of_the_keys, "moco")
    rest = " [ -s_ii/T + log( e^(s_ii/T) + sum_{k in queue} e^(s_ik/T) ) ], s: cosines"
    assert diagnosis.formula == "L = 1/N sum_{<<i in keys>>}" + rest
    assert diagnosis.reference == "L = 1/N sum_{<<i in queries>>}" + rest
    assert diagnosis.sentence.endswith("; different: i in keys, in the reference i in queries")
    assert diagnosis.fix == "Write i in queries in the place of i in keys."


def padding_begins_one_place_too_early(queries, keys, negatives, temperature):
    own, others = np.diag(cosines(queries, keys)) / temperature, cosines(queries, negatives) / temperature
    others[:, -1] = 0
    return np.mean(-own + np.log(np.exp(own) + mass(others)))


def first_and_last_counted_twice(queries, keys, negatives, temperature):
    own, others = np.diag(cosines(queries, keys)) / temperature, cosines(queries, negatives) / temperature
    ends = np.isin(np.arange(len(own)), (0, len(own) - 1))
    return np.mean(-own + np.log((1 + ends) * np.exp(own) + mass(others)))


@pytest.mark.usefixtures("sums_alone")
def test_own_pairs_that_differ_by_their_place_have_words():
    diagnosis = formula_of(padding_begins_one_place_too_early, "info_nce", negatives=...)
    rest = "L = 1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + sum_{k in negatives, k first or k inside} e^(s_ik/T) + "
    assert diagnosis.formula == rest + "<<1>> ) ], s: cosines"
    assert diagnosis.reference == rest + "<<sum_{k in negatives, k last} e^(s_ik/T)>> ) ], s: cosines"


@pytest.mark.usefixtures("sums_alone")
@pytest.mark.slow(reason="other words for places; the test above has a quick one")
def test_own_pairs_at_both_ends_have_words():
    diagnosis = formula_of(first_and_last_counted_twice, "info_nce", negatives=...)
    assert (
        "log( <<sum_{i first or i last} 2 e^(s_ii/T)>> + sum_{i inside} e^(s_ii/T) + sum_{k in n" in diagnosis.formula
    )


UNCONFIRMED = (slightly_curved, another_one_for_more_than_eight, plain, random, without_a_number)


@pytest.mark.parametrize(
    "program", partly_slow(UNCONFIRMED, UNCONFIRMED[-3:].__contains__, "everything is tried before nothing is said")
)
def test_what_was_not_confirmed_is_not_said(program):
    assert formula_of(program, "info_nce") is None


@pytest.mark.parametrize(
    ("difference", "sentence", "remedy"),
    [
        (("1/N", "1"), "1/N, in the reference 1", "write 1 in the place of 1/N"),
        (("log T", ""), "log T, which is not in the reference", "leave out log T"),
        (("", "s_ii"), "no s_ii, which is in the reference", "add s_ii"),
        (("angles", "cosines", "s are "), "s are angles, in the reference cosines",
         "write cosines in the place of angles"),
    ],
)  # fmt: skip
def test_a_difference_has_a_remedy(difference, sentence, remedy):
    assert (Difference(*difference).sentence, Difference(*difference).remedy) == (sentence, remedy)


@pytest.mark.usefixtures("sums_alone")
def test_a_constant_is_a_formula():
    assert formula_of(constant, "info_nce").formula == "L = <<1>>, s: cosines"


@pytest.mark.usefixtures("sums_alone")
def test_float32_is_measured_as_far_as_it_goes():
    _, program, formula = WRONG["positive_counted_three_times"]
    diagnosis = formula_of(program, "info_nce", dtype="float32")
    assert diagnosis.formula == f"L = {formula}"


@pytest.mark.usefixtures("sums_alone")
def test_a_fixed_temperature_is_a_number():
    _, program, _ = WRONG["positive_counted_three_times"]
    diagnosis = formula_of(program, "info_nce", temperature=0.5)
    assert diagnosis.formula.startswith("L = 1/N sum_i [ -2 s_ii + log( <<3 e^(2 s_ii)>>")


def test_a_formula_in_latex():
    line = "L = 1/N sum_i [ -s_ii/T + log( <<3 e^(s_ii/T)>> + sum_{j != i} e^(s_ij/T) ) ]"
    assert latex(line) == (
        r"L = 1/N \sum_i [ -s_{ii}/\tau + \log( \underline{3 e^{s_{ii}/\tau}} + \sum_{j \ne  i} e^{s_{ij}/\tau} ) ]"
    )


@pytest.mark.parametrize(("takes", "printed"), [(None, True), ({"margin", "fallback"}, True), ({"margin"}, False)])
def test_no_formula_is_of_what_the_target_does_not_take(monkeypatch, takes, printed):
    """Called with nothing else, a target without a fallback would differ from the reference with one."""
    shown = "L = 1", "L = 0", (Difference("1", "0"),)
    tried = [(None, {"margin": 0.25, "fallback": "linear"}, shown)]
    trial = measured_module.Trial(14, 0.0, 1.0, (4, 70), (0.1, 1.0))
    monkeypatch.setattr(measured_module, "confirmed", lambda *args: trial)
    calls = Calls(lambda probe: Outcome(1.0), "float64", "mean")
    diagnosis = measured_module._composed(calls, nceref.get_loss("arcface").declaration, iter(tried), {}, takes)
    assert (diagnosis is not None) == printed
