"""Derivations: a wrong step is found, and each topic ends where another way ends as well.

`make prove` follows every topic, step by step: each is the evidence of a claim. Pages are written here without that.
"""

import html
import re
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest
import sympy as sp
from slow import partly_slow
from sweep import sweep

from nceref import losses
from nceref.errors import DeclarationError, InputError
from nceref.output.pages import FORMS
from nceref.theory import derivation as derivations
from nceref.theory import prove, table_formats
from nceref.theory.chain import BrokenError, Chain, Name, Step, Use, at_most, concrete, equal, less
from nceref.theory.derivation import Derivation, get, render, topics
from nceref.theory.proofs import CHECKS
from nceref.theory.proofs import prove as prove_step

NAMES = (
    "alignment-uniformity", "balanced-softmax", "dcl-infonce", "gradients", "nce-optimum", "paco-decomposition",
    "paco-extra", "paco-optimum", "simple-loss", "supcon-in-out", "tau-infinity", "tau-zero",
)  # fmt: skip
x, y, t = sp.Symbol("x", real=True), sp.Symbol("y", real=True), sp.Symbol("t", positive=True)


def test_the_topics_are_the_promised_ones():
    assert tuple(topics()) == NAMES


def test_the_list_has_every_topic_with_its_title():
    listed = table_formats.names(topics().values()).text(width=200).splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [[one.name, one.title] for one in topics().values()]
    assert max(map(len, table_formats.names(topics().values()).text().splitlines())) <= 80


def test_every_topic_is_followed_by_make_prove():
    tasks = prove.tasks(list(prove.claims().values()))
    assert {prove.claims()[one].derivation for one, kind in tasks if kind == "symbolic"} == {"", *NAMES}


@cache
def stated(derivation):
    """The chain of a derivation, and notes as long as those of most checks."""
    chain = derivation.steps()
    return chain, tuple(f"{step.check}: the difference simplifies to 0" for step in chain.steps)


@cache
def page(name, form="text", width=80):
    """What is printed, of a chain that is not checked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivations, "follow", stated)
        return render(get(name), form, width)


@sweep("name", NAMES)
@sweep("width", [40, 80])
def test_no_line_of_the_text_is_wider_than_the_page(name, width):
    text = page(name, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text.endswith("]\n")


@sweep("name", NAMES)
@sweep("form", ("text", "ascii", *FORMS))
def test_each_form_has_the_title_the_sources_every_rule_and_what_was_checked(name, form):
    derivation, (chain, notes) = get(name), stated(get(name))
    text = page(name, form)
    assert text.isascii() or form in ("text", "html")
    letters = _letters(html.unescape(re.sub("<[^>]*>", "", text)) if form == "html" else text)
    rules = [step.rule for step in chain.steps]
    for words in (derivation.title, *derivation.sources, *chain.conditions, *rules, *notes):
        assert _letters(words) in letters


HYPOTHESES = {
    "alignment-uniformity": ("tau > 0", "c <= 1", "tau in (1/20, 2)", "drawn independently from one law"),
    "dcl-infonce": ("tau > 0", "1 < N", "s_0 <= 1", "-1 <= s_i", "per anchor, not per batch"),
    "gradients": ("tau > 0", "N is at least 2", "in (0, 3)", "N = 2, i = 1", "i from 1 to N - 1"),
    "nce-optimum": ("p_n > 0 where p_d > 0", "the model contains p_d", "h < 1", "h in (0, 1)"),
    "paco-extra": ("p < 1", "every class has the expected number"),
    "paco-optimum": ("alpha > 0", "per anchor, not per batch", "the sum form", "no embeddings have to have them"),
    "tau-infinity": ("beta > 0", "a <= s_k", "s_k <= b", "s_k in (-1, 1)"),
    "tau-zero": ("tau > 0", "g_i <= M", "w_e <= -delta"),
}


@sweep("name", HYPOTHESES)
@sweep("form", ["text", "ascii", "latex"])
def test_hypotheses_and_ranges_stand_before_the_first_step(name, form):
    given = " ".join(page(name, form).split()).partition(" 1. Start")[0].partition(" Given: ")[2]
    assert "at a random point: " in given
    assert form != "ascii" or all(words in given for words in HYPOTHESES[name]), given


def _letters(text):
    return "".join(re.findall(r"[A-Za-z0-9]+", text.replace("textasciicircum", "")))


def _changed(expression):
    """The expression with the sign of one of its terms changed, for every term of every sum in it."""
    for total in sp.ordered(expression.atoms(sp.Add)):
        for term in total.args:
            if not term.has(sp.Order):  # O(x) and -O(x) are the same
                yield expression.xreplace({total: total - 2 * term})


def _mutants(step):
    """Relations that are wrong if the step is right."""
    left, right = step.relation.lhs, step.relation.rhs
    if step.sign != "=":
        yield step.relation.func(right, left, evaluate=False)
        yield step.relation.func(left, right - 1, evaluate=False)
        return
    yield from (equal(left, wrong) for wrong in (-right, 2 * right) if right != wrong)
    if right == 0:
        yield equal(left, 1)
    # Four of each side: both are compared as a whole, which takes a tenth of a second for some.
    if not right.has(sp.Sum):
        yield from (equal(left, wrong) for wrong in islice(_changed(right), 4))
    if step.check in ("identity", "program") and not left.has(sp.Sum, sp.Limit, sp.Derivative, sp.Integral):
        yield from (equal(wrong, right) for wrong in islice(_changed(left), 4))


WITHOUT_SERIES = {"balanced-softmax", "gradients", "nce-optimum", "paco-extra"}
"""Of every other topic, hundreds of mutants take a second or more."""


@pytest.mark.parametrize(
    "name", partly_slow(NAMES, WITHOUT_SERIES.__contains__, "every kind of check meets wrong steps below")
)
def test_a_changed_sign_or_factor_or_direction_is_found_in_every_step(name):
    chain = get(name).steps()
    for step in chain.steps:
        mutants = list(_mutants(step))
        assert mutants, step.rule
        for relation in mutants:
            with pytest.raises(BrokenError):
                prove_step(chain, replace(step, relation=relation))


def test_the_error_names_topic_step_both_sides_and_the_file():
    derivation = get("paco-extra")

    def broken():
        chain = derivation.steps()
        step = chain.steps[1]
        wrong = replace(step, relation=equal(step.relation.lhs, -step.relation.rhs))
        return replace(chain, steps=(chain.steps[0], wrong, *chain.steps[2:]))

    with pytest.raises(DeclarationError) as error:
        render(replace(derivation, steps=broken))
    said = str(error.value)
    for words in ("'paco-extra'", "step 2", "It is 0 at one point.", "p = -1/(a + 1)", "derivations/paco_extra.py"):
        assert words in said
    assert "[1/(a + 1)]" in said


n, k, j = sp.symbols("n k j", integer=True, positive=True)
a, b = sp.IndexedBase("a", real=True), sp.IndexedBase("b", real=True)
LOWER, UPPER = at_most(x, y), less(x, y)
SMALL = Step("", at_most(-t, t * sp.cos(1 / t))), Step("", at_most(t * sp.cos(1 / t), t))
FALLING = Step("", at_most(-1 / t, 1 / t))
POSITIVE = Step("", at_most(1 - t, -sp.log(t)), "tangent", (t, 1, 1 / t**2))
AFTER = Step("", at_most(x, y))


def test_what_a_step_takes_from_another_topic_is_followed_there(monkeypatch):
    proved = []
    monkeypatch.setattr(derivations, "prove", lambda chain, step: proved.append(step.rule) or "")
    derivations.follow(replace(get("simple-loss")))
    assert {step.rule for step in get("tau-infinity").steps().steps} <= {*proved}


def _run(step, sizes=({n: 3, j: 2},)):
    chain = Chain(
        names=(), steps=(*SMALL, FALLING, POSITIVE, step, AFTER), sizes=sizes, ranges={x: (-1, 0), y: (0, 1)},
        given=(LOWER, UPPER), indices={j: (1, n)},
    )  # fmt: skip
    return prove_step(chain, step)


def _total(entry, last=n):
    return sp.Sum(entry, (k, 1, last))


WAVE = sp.Limit(t * sp.cos(1 / t), t, 0, "+")
RIGHT = {
    "identity": [
        (equal((x + y) ** 2, x**2 + 2 * x * y + y**2), ()),
        (equal(_total(x * a[k] + b[k] + 1), x * _total(a[k]) + _total(b[k]) + n), ()),
        (equal(sp.Derivative(_total(a[k] ** 2), a[j]), 2 * a[j]), ()),
    ],
    "numbers": [(less(sp.Rational("3.14"), sp.pi), ())],
    "sign": [
        (less(0, t + x**2), ()),
        (at_most(0, (y - x) * x**2), ()),
        (at_most(0, _total(a[k] ** 2)), ()),
        (less(0, _total(sp.exp(a[k]))), ()),
    ],
    "follows": [
        (at_most(2 * x + 1, 2 * y + 1), (Use(LOWER, 2),)),
        (less(n * x, n * y), (Use(UPPER, 1, {}, (k, 1, n)),)),
        (at_most(_total(1 - sp.exp(a[k])), -_total(a[k])), (Use(POSITIVE, 1, {t: sp.exp(a[k])}, (k, 1, n)),)),
    ],
    "increasing": [(at_most(sp.exp(x), sp.exp(y)), (sp.exp(x), x, Use(LOWER)))],
    "tangent": [(at_most(1 + x, sp.exp(x)), (x, 0, sp.exp(x)))],
    "term": [(at_most(a[j] ** 2, _total(a[k] ** 2)), j)],
    "limit": [(equal(sp.Limit(sp.sin(x) / x, x, 0), 1), ())],
    "squeeze": [(equal(WAVE, sp.S.Zero), SMALL)],
    "solve": [(equal(x, 3), (2 * x - 6, x))],
    "series": [
        (equal(sp.exp(x), 1 + x + sp.O(x**2)), (x, 2)),
        (equal(_total(sp.exp(a[k] * x)), n + x * _total(a[k]) + sp.O(x**2)), (x, 2)),
    ],
    "program": [
        (equal(sp.log(1 + sp.exp(x)), sp.log(sp.exp(-x) + 1) + x), lambda read: sp.log(1 + sp.exp(read(x)))),
        (equal(_total(a[k]), _total(a[k])), lambda read: sum(read(a[i]) for i in range(1, int(read(n)) + 1))),
    ],
}
WRONG = {
    "identity": [
        (equal((x + y) ** 2, x**2 + y**2), ()),
        (equal(x, x + sp.Rational(1, 10**49)), ()),
        # Right for 3 terms, and for 1 to 3 terms.
        (equal(_total(sp.Integer(2)), 6), ()),
        (equal(_total(k**3), 6 * n**3 - 12 * n**2 + 7 * n + sp.Rational(30, 6) * (n - 1) * (n - 2)), ()),
        # Nothing is known of a[n + 1].
        (equal(sp.Derivative(_total(a[k], n - 1), a[j]), 1), ()),
    ],
    "numbers": [
        (at_most(2 * x * y, x**2 + y**2), ()),
        (equal(sp.pi, sp.Rational(355, 113)), ()),
        (less(sp.S.One, 1), ()),
        (at_most(sp.S(2), 1), ()),
        (equal(sp.log(-2), sp.log(-2)), ()),
    ],
    "sign": [
        (less(0, x**2), ()),
        (at_most(0, x * t), ()),
        (less(0, 1 + x), ()),
        # There may be no term.
        (less(0, _total(sp.exp(a[k]), n - 1)), ()),
        (at_most(x, x + t), ()),
        (equal(0, sp.S.Zero), ()),
        (at_most(0, (y - x) * (t - 4)), ()),
    ],
    "follows": [
        (at_most(2 * x, 3 * y), (Use(LOWER, 2),)),
        (at_most(-y, -x), (Use(LOWER, -1),)),
        (at_most(y * (1 - t), y), (Use(UPPER, x),)),
        (less(x, y), (Use(LOWER),)),
        (less(x, y), (Use(LOWER), Use(UPPER, 0))),
        (equal(x, y), (Use(LOWER),)),
        (at_most(x, y), (Use(AFTER),)),
        (at_most(x, y), (Use(at_most(x, y)),)),
        (at_most(1 - x, -sp.log(-x)), (Use(POSITIVE, 1, {t: -x}),)),
        (at_most(1 - y, -sp.log(y)), (Use(POSITIVE, 1, {t: y}),)),
    ],
    "increasing": [
        (at_most(sp.exp(-y), sp.exp(-x)), (sp.exp(-x), x, Use(LOWER))),
        (less(sp.exp(x), sp.exp(y)), (sp.exp(x), x, Use(LOWER))),
        (at_most(sp.exp(x), sp.exp(y) + 1), (sp.exp(x), x, Use(LOWER))),
        (at_most(x**2, y**2), (t**2, t, Use(LOWER))),
    ],
    "tangent": [
        (at_most(sp.exp(x), 1 + x), (x, 0, -sp.exp(x))),
        (at_most(1 + x, sp.exp(x)), (x, 1, sp.exp(x))),
        (at_most(sp.Integer(1), sp.exp(x**2) + x), (x, 0, sp.exp(x))),
        (at_most(1 + x, sp.exp(x)), (x, 0, 1)),
        (less(1 + x, sp.exp(x)), (x, 0, sp.exp(x))),
        (at_most(1 + 2 * x, (1 + x) ** 2 - x**4 / 100), (x, 0, 2 - 3 * x**2 / 25)),
    ],
    "term": [
        (at_most(a[j], _total(a[k])), j),
        (at_most(a[j] ** 2, _total(a[k] ** 2, n - 1)), j),
        (at_most(a[j] ** 2 + 1, _total(a[k] ** 2)), j),
        (less(a[j] ** 2, _total(a[k] ** 2)), j),
    ],
    "limit": [
        (equal(sp.Limit(sp.sin(x) / x, x, 0), 0), ()),
        (equal(sp.Limit(1 / t, t, 0, "+"), 1), ()),
        (equal(sp.Limit(x * t, t, 0, "+"), sp.oo), ()),
        (equal(sp.Limit(x + t, t, 0, "+"), 1), ({x: sp.Integer(1)}, {x: sp.Integer(2)})),
        (equal(sp.Limit(_total(a[k] * t), t, 0, "+"), 0), ()),
        (less(sp.Limit(sp.sin(x) / x, x, 0), 1), ()),
    ],
    "squeeze": [
        (equal(WAVE, sp.S.Zero), SMALL[:1]),
        (equal(WAVE, sp.S.One), SMALL),
        (equal(sp.Limit(sp.cos(1 / t), t, 0, "+"), sp.S.Zero), SMALL),
        (equal(WAVE, sp.oo), SMALL[:1]),
        (equal(sp.Limit(1 / t, t, 0, "+"), -sp.oo), (FALLING,)),
        (equal(WAVE, sp.S.Zero), SMALL[::-1]),
    ],
    "solve": [
        (equal(x, 4), (2 * x - 6, x)),
        (equal(x, 1), (x**2 - 1, x)),
        (equal(y, 3), (2 * x - 6, x)),
        (equal(x, 3), (sp.exp(x), x)),
    ],
    "series": [
        (equal(sp.exp(x), 1 - x + sp.O(x**2)), (x, 2)),
        (equal(sp.exp(x), 1 + x + sp.O(x**3)), (x, 2)),
        (equal(sp.exp(x), 1 + x), (x, 2)),
        (equal(sp.exp(x), 1 + x + sp.O(x**3)), (x, 3)),
    ],
    "program": [
        (equal(sp.log(1 + sp.exp(x)), sp.log(1 + sp.exp(x))), lambda read: sp.log(2 + sp.exp(read(x)))),
        (equal(sp.log(2 + sp.exp(x)), sp.log(1 + sp.exp(x))), lambda read: sp.log(1 + sp.exp(read(x)))),
        (equal(sp.log(1 + sp.exp(x)), sp.log(2 + sp.exp(x))), lambda read: sp.log(1 + sp.exp(read(x)))),
    ],
}


def test_every_kind_of_check_is_tried_here_and_used_by_a_topic():
    used = {step.check for topic in topics().values() for step in topic.steps().steps}
    assert set(RIGHT) == set(WRONG) == set(CHECKS) == used


@sweep(("check", "case"), [(check, case) for check, cases in RIGHT.items() for case in cases])
def test_a_check_passes_what_is_right_and_says_what_was_done(check, case):
    assert _run(Step("", case[0], check, case[1])).startswith(check)


@sweep(("check", "case"), [(check, case) for check, cases in WRONG.items() for case in cases])
def test_a_check_breaks_on_what_is_wrong(check, case):
    with pytest.raises(BrokenError):
        _run(Step("", case[0], check, case[1]))


def test_a_program_is_compared_at_every_size():
    step = Step("", equal(_total(a[k]), _total(a[k])), "program", lambda read: read(a[1]) + read(a[2]))
    _run(step, sizes=({n: 2},))
    with pytest.raises(BrokenError, match="a3"):
        _run(step, sizes=({n: 2}, {n: 3}))


def test_the_slope_of_a_maximum_is_not_that_of_a_constant():
    largest = sp.Symbol("M")
    names = (Name(largest, "", lambda size: sp.Max(x, y)),)
    step = Step("", equal(sp.Derivative(largest, x), 0))
    with pytest.raises(BrokenError):
        prove_step(Chain(names, (step,)), step)


def test_an_unknown_topic_suggests_near_ones():
    with pytest.raises(InputError, match="did you mean 'paco-optimum'"):
        get("paco-optimun")
    with pytest.raises(InputError, match=r"'tau-infinity' or 'tau-zero'.*nceref derive"):
        get("tau")


def test_an_unknown_form_names_the_known_ones():
    with pytest.raises(InputError, match="'text', 'ascii', 'markdown', 'html', 'latex', got 'csv'"):
        render(get("paco-extra"), "csv")


class _Result:
    """The relation of one step, by default the last, as functions of numbers."""

    def __init__(self, name, size, left=None):
        chain = get(name).steps()
        sizes = {str(key): key for known in chain.sizes for key in known}
        self.size = {sizes[key]: n for key, n in size.items()}
        found = [step for step in chain.steps if left is None or str(step.relation.lhs) == left][-1]
        self.sides = [concrete(chain, self.size, side) for side in (found.relation.lhs, found.relation.rhs)]

    def right(self, **numbers):
        return self._at(self.sides[1], numbers)

    def left(self, **numbers):
        return self._at(self.sides[0], numbers)

    def _at(self, side, numbers):
        plain = side.doit().removeO()
        return float(plain.subs({v: numbers[v.name] for v in plain.free_symbols}))


def _info_nce(s, temperature):
    s = np.asarray(s, dtype=float)[:, None]
    return losses.info_nce(np.ones((1, 1)), s[:1], s[1:], temperature=temperature, normalize="none")


def _entries(s, name="s", first=0):
    return {f"{name}{n}": float(v) for n, v in enumerate(s, first)}


def _slope(f, at, h=1e-5):
    return (f(at + h) - f(at - h)) / (2 * h)


S = np.array([0.3, 0.55, -0.2, 0.4])


def test_gradients_end_in_the_slope_by_the_temperature():
    found = _Result("gradients", {"N": 4, "i": 2}).right(**_entries(S), tau=0.4)
    assert found == pytest.approx(_slope(lambda tau: _info_nce(S, tau), 0.4), rel=1e-8)


@pytest.mark.parametrize("s", [S, S[[1, 0, 2, 3]], S[[0, 1, 1, 2]]])
def test_tau_zero_ends_in_the_hinge(s):
    found = _Result("tau-zero", {"N": 4}).right(**_entries(s))
    assert found == max(max(s[1:]) - s[0], 0)
    assert found == pytest.approx(1e-5 * _info_nce(s, 1e-5), abs=2e-5)


def test_tau_infinity_ends_in_a_bound_that_holds_and_is_reached_by_two_extremes():
    bound, series = (_Result("tau-infinity", {"N": 4, "i": 1}, left) for left in (None, "L"))
    linear = np.log(4) + (S.mean() - S[0]) / 3
    assert bound.left(**_entries(S), beta=1 / 3) == pytest.approx(_info_nce(S, 3) - linear, rel=1e-9)
    assert bound.right(**_entries(S), beta=1 / 3) == pytest.approx(0.75**2 / (8 * 3**2))
    third = series.right(**_entries(S), beta=0.05)
    assert third == pytest.approx(_info_nce(S, 20), abs=1e-6)
    two = {**_entries((1, -1)), "beta": 1e-3}
    extremes = _Result("tau-infinity", {"N": 2, "i": 1})
    assert extremes.left(**two) == pytest.approx(extremes.right(**two), rel=1e-5)


def test_simple_loss_has_the_weight_and_the_remainder():
    weight = _Result("simple-loss", {"N": 4, "i": 1}, "lambda").right()
    simple = losses.simple(
        np.ones((1, 1)).repeat(4, 0), S[:, None], negative_weight=weight, normalize="none", reduction="none"
    )
    high = (_info_nce(S, 1e6) - np.log(4)) * 1e6 * 4 / 3
    assert high == pytest.approx(simple[0], abs=1e-5)
    uniform = np.linspace(-1, 1, 20001)
    assert _Result("simple-loss", {"N": 4, "i": 1}).right() == pytest.approx(np.log(np.exp(uniform).mean()), abs=1e-4)


def test_alignment_uniformity_ends_in_the_limit_of_many_negatives():
    negatives = np.cos(2 * np.pi * np.arange(20000) / 20000)
    mean = np.exp(negatives / 0.5).mean()
    found = _Result("alignment-uniformity", {"K": 3}).right(c=0.9, tau=0.5, A=mean)
    assert found == pytest.approx(_info_nce([0.9, *negatives], 0.5) - np.log(20000), abs=1e-3)


def _expected_uniformity(size, share, high, low, positive):
    """E log(positive / M + mean of M draws), each `high` with that probability, else `low`, with 50 digits."""
    from mpmath import binomial, log, mpf

    return sum(
        binomial(size, n) * mpf(share) ** n * mpf(1 - share) ** (size - n)
        * log((positive + n * high + (size - n) * low) / size)
        for n in range(size + 1)
    )  # fmt: skip


def test_alignment_uniformity_leaves_out_what_is_of_order_2_in_1_over_m():
    from mpmath import exp, log, mp, mpf

    found = _Result("alignment-uniformity", {"K": 1, "D": 2}, "U").sides[1].removeO()
    tau, c, share = mpf("0.7"), mpf("0.3"), 0.25
    with mp.workdps(50):
        high, low, positive = exp(1 / tau), exp(-1 / tau), exp(c / tau)
        mean = share * high + (1 - share) * low
        numbers = {"tau": tau, "c": c, "A": mean, "V": share * (1 - share) * (high - low) ** 2}

        def left_out(size, **changed):
            values = {**numbers, "epsilon": 1 / mpf(size), **changed}
            ours = found.evalf(50, subs={v: values[v.name] for v in found.free_symbols})
            return abs(_expected_uniformity(size, share, high, low, positive) - mpf(ours))

        assert log(left_out(128) / left_out(256), 2) == pytest.approx(2, abs=0.05)
        assert log(left_out(128, V=mpf(0)) / left_out(256, V=mpf(0)), 2) == pytest.approx(1, abs=0.05)


def test_alignment_uniformity_has_the_coefficient_of_the_circle():
    from scipy.special import i0

    found = _Result("alignment-uniformity", {"K": 1, "D": 2}, "U")
    given = {"tau": 0.5, "c": 1, "A": i0(2), "V": i0(4) - i0(2) ** 2}
    assert found.right(**given, epsilon=1) - found.right(**given, epsilon=0) == pytest.approx(2.65395, abs=1e-5)


def test_supcon_in_out_ends_in_the_right_order():
    found = _Result("supcon-in-out", {"n": 3, "A": 5, "i": 1})
    numbers = {**_entries([0.5, 0.1, -0.3, 0.4, 0.2], first=1), "tau": 0.3}
    z = np.array([1, *[numbers[f"s{n}"] for n in range(1, 6)]])[:, None]
    labels, given = np.array([0, 0, 0, 0, 1, 1]), {"temperature": 0.3, "normalize": "none", "reduction": "none"}
    inner, outer = losses.supcon_in(z, labels, **given)[0], losses.supcon_out(z, labels, **given)[0]
    assert (found.left(**numbers), found.right(**numbers)) == pytest.approx((inner, outer), rel=1e-12)
    assert inner < outer


def test_paco_optimum_is_where_a_minimizer_of_the_logits_ends():
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    alpha, positives = 0.3, 4
    weights = np.array([1.0, *[alpha] * positives, 0, 0])
    best = minimize(lambda z: -weights @ log_softmax(z), np.zeros(7), tol=1e-12)
    p = np.exp(log_softmax(best.x))
    center = _Result("paco-optimum", {"K": positives, "i": 2}).right(alpha=alpha)
    pair = _Result("paco-optimum", {"K": positives, "i": 2}, "q[i]").right(alpha=alpha)
    assert (center, pair) == pytest.approx((1 / (1 + alpha * positives), alpha / (1 + alpha * positives)))
    assert (p[0], p[1]) == pytest.approx((center, pair), abs=1e-4)


def test_paco_decomposition_ends_in_the_loss():
    z, c = np.array([0.5, -0.2, 0.7, 0.1]), np.array([0.3, -0.4, 0.6])
    ours = losses.paco(
        np.array([1, *z])[:, None], np.array([0, 0, 0, 1, 1]), c[:, None], alpha=0.3, temperature=1.0,
        normalize="none", center_features=np.ones((5, 1)), reduction="none",
    )[0]  # fmt: skip
    found = _Result("paco-decomposition", {"C": 3, "A": 4, "K": 2, "i": 1})
    numbers = {**_entries(z, "z", 1), **_entries(c, "c"), "alpha": 0.3}
    assert (found.left(**numbers), found.right(**numbers)) == pytest.approx((ours, ours), rel=1e-12)


def test_paco_extra_is_lowest_at_071():
    from scipy.optimize import minimize_scalar

    a = 0.05 * 8192 * 0.001
    best = minimize_scalar(lambda p: -np.log(p) - a * np.log(1 - p), bounds=(0.01, 0.99), method="bounded").x
    assert _Result("paco-extra", {}, "p_0").right() == pytest.approx(best, abs=1e-5)
    assert f"{best:.2f}" == "0.71"
    last = _Result("paco-extra", {})
    assert last.left() <= last.right() == 0.005


def test_balanced_softmax_ends_in_its_slope():
    logits, counts = np.array([0.3, -0.4, 0.6]), np.array([0.7, 0.2, 0.1])

    def loss(value):
        moved = np.array([[0.3, -0.4, value]])
        return losses.balanced_softmax(moved, np.array([0]), counts)

    found = _Result("balanced-softmax", {"C": 3, "i": 2}).right(**_entries(logits, "x"), **_entries(counts, "q"))
    assert found == pytest.approx(_slope(loss, 0.6), rel=1e-8)


def test_nce_optimum_is_where_a_minimizer_of_the_objective_ends():
    from scipy.optimize import minimize_scalar

    data, noise, ratio = 0.4, 0.7, 3
    best = minimize_scalar(
        lambda h: -data * np.log(h) - ratio * noise * np.log(1 - h), bounds=(0.01, 0.99), method="bounded"
    ).x
    found = _Result("nce-optimum", {}, "h").right(p_d=data, p_n=noise, nu=ratio)
    assert found == pytest.approx(best, abs=1e-5)
    assert _Result("nce-optimum", {}).right(p_d=data) == data


def test_dcl_infonce_ends_in_the_slope_of_infonce():
    def loss(value):
        return _info_nce([0.3, 0.55, value], 0.4)

    found = _Result("dcl-infonce", {"N": 3, "i": 2}).right(s0=0.3, s1=0.55, s2=-0.2, tau=0.4)
    assert found == pytest.approx(_slope(loss, -0.2), rel=1e-8)


def test_the_chain_of_a_topic_is_declared_like_its_siblings():
    assert all(
        isinstance(found, Derivation) and found.sources and len(found.title) <= 100 for found in topics().values()
    )
