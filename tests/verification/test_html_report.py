"""A report as an HTML document: well-formed, complete, self-contained, escaped and small, whatever is in it."""

import json
import re
import shlex
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote

import pytest
from output.html_document import Page
from programs import plain

import nceref
from nceref.cases.corpus.clauses import CLAUSES, clause_of
from nceref.cases.corpus.geometries import PLACES, SUITES
from nceref.cases.records import Diagnosis, DiagnosisPart, Result
from nceref.output import pages
from nceref.output.formats.html import fragment
from nceref.output.html_elements import LONGEST, unbroken
from nceref.output.strip_plot import Mark, axes_of
from nceref.verification.document import LARGEST, MANY, html_of, print_explanation
from nceref.verification.report import Report

QUICK = {"loss": "info_nce", "suite": "quick"}
EVIL = "<script>alert(1)</script><img src=x onerror=y> \"'&amp; \x1b[31mred\x00\u202e\udcff ]]> {{x}}"


def results(number, status="fail", why="yours 2, reference 1", run=""):
    """Results of as many cases, with a value and one gradient each."""
    for n in range(number // 2):
        case = f"{run}{list(PLACES)[n % len(PLACES)]}-{n + 1}"
        for quantity in ("value", "grad.z1"):
            error = 2.0 if status == "fail" else 0.25
            yield Result(f"{case}/{quantity}", case, quantity, status, error, 1.0, 3.0, why)


def made(given, **more):
    """A report of these results."""
    fields = {"target": "t.py:f", "loss": "nt_xent", "verdict": "differs", "exit_code": 1, "reason": "the value fails"}
    return Report(**(fields | more), results=tuple(given))


@pytest.fixture(scope="module")
def doubled():
    return nceref.verify(plain.doubled, **QUICK)


def test_a_report_says_what_is_wrong_what_to_change_and_what_was_judged(doubled):
    text = replace(doubled, repro="print('yours', 2)\n").to_html()
    page = Page(text)
    # Every result is a link, none twice, and every link leads somewhere.
    assert {r.id for r in doubled.results} <= set(page.ids)
    assert max(Counter(page.ids).values()) == 1
    local = [unquote(link[1:]) for link in page.links if link.startswith("#")]
    assert set(local) <= set(page.ids)
    assert sum(r in set(local) for r in {r.id for r in doubled.results}) > 10
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(low <= high + 1 for high, low in zip(page.headings, page.headings[1:], strict=False))
    first = doubled.diagnosis[0]
    for words in (
        "differs",
        first.fix,
        first.id,
        "nceref.verify(doubled",
        "value and gradients doubled",
        "caught",
        "print(",
    ):
        assert words in page.text
    assert first.sentence.split("; ")[0].split(", on ")[0][1:] in page.text
    for r in doubled.results:
        if r.status == "fail" and r.quantity == "value":
            assert r.why in page.text
    assert all(clause.title in page.text for clause in CLAUSES if clause.name not in ("own", "labels"))


def test_every_id_that_may_be_expected_to_fail_can_be_copied(doubled):
    def copied(text):
        begin = "ids, as --expected-failures takes them</summary><pre><code>"
        (listed,) = re.findall(f"{begin}(.*?)</code>", text, re.DOTALL)
        return listed.splitlines()

    failing = [r.id for r in doubled.results if r.status in ("fail", "error", "xpass")]
    assert sorted(copied(doubled.to_html())) == sorted(failing)
    # Results in the same words are one line, of which each id is there.
    same = [Result(f"c-{n}/mode.again", f"c-{n}", "mode.again", "fail", None, None, None, "differs") for n in range(3)]
    text = html_of([made(same)])
    assert "<summary>3 ids, as" in text
    assert "c-0 and 2 more" in Page(text).text
    assert copied(text) == [r.id for r in same]


def test_nothing_is_loaded(doubled):
    text = doubled.to_html()
    page = Page(text)
    assert page.loads == []
    assert all(link.startswith(("#", "https://github.com/")) for link in page.links)
    style = "".join(re.findall("<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style
    assert "color-scheme: light dark" in style
    assert "--ink: light-dark(" in style


def test_text_of_others_is_text():
    given = [Result(EVIL, EVIL, EVIL, "fail", None, None, None, EVIL),
             Result(f"{EVIL}/value", EVIL, "value", "fail", 1.0, 0.5, 1.0, EVIL),
             Result("designed-0.3/grad.z1", "designed-0.3", "grad.z1", "skip", None, None, None, EVIL)]  # fmt: skip
    report = made(
        given, target=EVIL, loss=EVIL, reason=EVIL,
        diagnosis=(Diagnosis(EVIL, (DiagnosisPart(EVIL, EVIL),) * 2, (EVIL,), EVIL, EVIL, EVIL, EVIL),) * 2,
        environment={"framework": EVIL, EVIL: EVIL, "arguments": EVIL}, settings={EVIL: EVIL}, repro=EVIL, command=EVIL,
        training={"sentence": EVIL}, terms={EVIL: {EVIL: 1.0}},
        self_test=({"wrong_answer": EVIL, "sentence": EVIL, "result": EVIL, "case": EVIL, "run": EVIL, "why": EVIL},),
    )  # fmt: skip
    for text in (report.to_html(), report._repr_html_()):
        assert text.replace("\n", "").isprintable()
        page = Page(text)
        assert page.tags["img"] == 0
        assert page.tags["script"] == 0
        assert page.text.count("<script>alert(1)</script>") >= 4
        assert r"\x1b[31mred\x00\u202e\udcff" in page.text


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (made(results(4000, "pass"), verdict="conforms"), "more without a failure are summed up above"),
        (made(results(4000, why="<&\x1b" * 200)), "more do not fit in; --json FILE has all"),
        (made(results(60, why="x" * 10**6)), "[998,015 more characters are cut]"),
        (made([], reason="y" * 10**6, target="z" * 10**6, repro="p" * 10**6), "[998,010 more characters are cut]"),
        (made([replace(r, case="", why=f"{n}" * 99) for n, r in enumerate(results(4000))]), "more do not fit in"),
    ],
    ids=["passes", "failures", "messages", "texts", "no case"],
)  # fmt: skip
def test_whatever_is_in_it_a_document_stays_below_a_megabyte(report, words):
    text = html_of([report])
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert words in page.text
    assert max(Counter(page.ids).values()) == 1
    assert {unquote(link[1:]) for link in page.links if link.startswith("#")} <= set(page.ids)


def test_beyond_many_results_passes_are_summed_and_failures_have_rows():
    passes, failures = list(results(MANY, "pass")), list(results(20, run="float32/"))
    below, beyond = Page(html_of([made(passes)])), Page(html_of([made(passes + failures)]))
    shown = [
        sum(r.id in page for r in group) for page in (set(below.ids), set(beyond.ids)) for group in (passes, failures)
    ]
    assert shown == [MANY, 0, 0, 20]


def test_what_fails_as_expected_is_counted_by_itself():
    known = [replace(r, status="xfail", error=7.0) for r in results(6)]
    both = Page(html_of([made([*known[:2], *list(results(6, "pass"))[2:]], verdict="conforms", exit_code=0)])).text
    alone = Page(html_of([made(known, verdict="conforms", exit_code=0)])).text
    assert "value ✓ 2 pass, at most 0.25 of the bound; ○ 1 fails as expected, by up to 7 times the bound" in both
    assert "value ○ 3 fail as expected, by up to 7 times the bound" in alone
    assert "○ 3 of 3 cases differ as expected" in alone
    for page in (both, alone):
        assert "agree, up to" not in page
        assert "without an error" not in page


def test_several_formats_and_several_reports_stand_side_by_side(doubled, monkeypatch):
    both = nceref.verify(plain.with_gradients, dtype=["float64", "float32"], **QUICK)
    page = Page(both.to_html())
    assert {r.id for r in both.results} <= set(page.ids)
    assert page.text.count("float32") > 10
    # The same one twice: no id is given twice.
    page = Page(html_of([both, doubled, doubled], "Three", ["the first", "the second", "the third"]))
    assert max(Counter(page.ids).values()) == 1
    assert page.headings[:2] == [1, 2]
    assert page.headings.count(1) == 1
    assert {unquote(link[1:]) for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "the third" in page.text
    # Whole, they are larger than that.
    monkeypatch.setattr("nceref.verification.document.LARGEST", LARGEST // 5)
    crowd = html_of([made(results(30))] * 24, "Many")
    assert len(crowd.encode()) < LARGEST // 5
    assert crowd.count("<h2 ") == 24


def test_every_case_of_the_corpus_has_a_clause():
    assert {geometry for clause in CLAUSES for geometry in clause.geometries} == {*PLACES, "given"}
    for geometry, temperatures in SUITES["full"]:
        for temperature in temperatures:
            clause, name, number = clause_of(f"{geometry}-{temperature:g}")
            assert (geometry in clause.geometries, name, number) == (True, geometry, temperature)
    assert clause_of("one-class")[1:] == ("one-class", None)
    assert clause_of("designed-1e-05")[1:] == ("designed", 1e-5)


@pytest.mark.parametrize(
    ("where", "parts", "lead"),
    [
        ("", [("it is twice the reference", "on 9 of 9 (residual 0.1)", "computes"), ("it agrees", "on 2", "note")],
         "It is twice the reference"),
        ("", [("the value is right; so far", "on 9 of 9", "right"), ("the gradient is half of it", "", "wrong")],
         "The gradient is half of it"),
        ("in float64", [("the gradient is right", "", "right"), ("different: 3 e^s; 2 N", "", "wrong")],
         "In float64 different: 3 e^s; 2 N"),
        ("", [("a formula", "", "note"), ("my_file.py:f is another one", "", "note")], "A formula"),
    ],
)  # fmt: skip
def test_what_is_wrong_stands_before_what_is_right(where, parts, lead):
    diagnosis = Diagnosis("id", tuple(DiagnosisPart(*each) for each in parts), where=where)
    page = pages.Page()
    print_explanation(page, diagnosis)
    text = fragment(page.blocks)
    assert f"<strong>{lead}</strong>" in text
    shown = Page(text).text.casefold().replace(", on", " on")
    assert all(part.casefold() in shown for each in parts for part in each[:2])
    assert all(part in diagnosis.sentence for each in parts for part in each[:2])


@pytest.mark.usefixtures("in_this_process")
def test_the_command_repeats_the_run(run, tmp_path, monkeypatch):
    (tmp_path / "my losses.py").write_text("def f(x, y):\n    return ((x - y) ** 2).sum() / len(x)\n")
    monkeypatch.chdir(tmp_path)
    words = "--loss alignment --dtype float64 --dtype float32 --set normalize=none --case designed --require-grad"
    given = ["verify", "my losses.py:f", *words.split(), "--shape", "6,4"]
    status, text, _ = run(*given, "--html", "made.html", "--json", "-")
    command = json.loads(text)["command"]
    assert (status, sorted(shlex.split(command))) == (1, sorted(["nceref", *given]))
    page = Page((tmp_path / "made.html").read_text(encoding="utf-8"))
    assert command in page.text


def test_in_a_notebook_it_is_short(doubled):
    text = doubled._repr_html_()
    page = Page(text)
    assert len(text) < 6000
    assert page.ids == []
    assert doubled.diagnosis[0].fix in page.text


def test_a_case_without_an_answer_is_counted_with_its_clause_and_explained():
    def cold(z1, z2, temperature):
        if temperature < 0.05:
            msg = f"\x1b[31m{temperature} is too cold"
            raise ValueError(msg)
        return nceref.losses.nt_xent(z1, z2, temperature=temperature)

    report = nceref.verify(cold, loss="nt_xent", suite="quick")
    page = Page(report.to_html())
    assert "✓ 6 cases agree, at most 0.25 of the bound" in page.text
    assert "✕ 4 cases without an answer" in page.text
    (raised,) = report.diagnosis
    assert raised.id == "raises"
    first = next(r for r in report.results if r.status == "error")
    assert r"ValueError: \x1b[31m" in first.why
    assert raised.sentence == (
        "your loss raises ValueError on 8 of 28 cases, exactly those at temperature 0.04 and below;"
        f" on {first.case} it {first.why}"
    )
    assert "What is wrongYour loss raises ValueError, on 8 of 28 cases" in page.text
    assert first.case in raised.fix
    page = Page(replace(report, command="nceref verify t.py:cold --loss nt_xent").to_html())
    assert f"One without an answer:nceref verify t.py:cold --loss nt_xent --case {first.case}" in page.text
    assert r"\\x1b" not in page.text


def test_captions_say_what_their_numbers_count():
    """The error of what fails beside what fails; the value and gradients, which need not fail on the same cases."""
    given = [
        Result(f"{case}/{quantity}", case, quantity, "fail" if wrong else "pass", error, error and 1.0, None, "why")
        for case, quantity, wrong, error in (
            ("designed-1", "value", True, 40.0), ("designed-1", "grad.z1", False, 0.5),
            ("random-1", "value", False, 0.25), ("random-1", "grad.z1.finite", True, None),
            ("designed-2", "value", True, 8.0), ("designed-2", "grad.z1", False, 0.125),
        )
    ]  # fmt: skip
    page = Page(made(given).to_html())
    assert "✕ 3 of 3 cases differ, the value on 2, a gradient on 1" in page.text
    assert "value ✕ 2 of 3 fail, by up to 40 times the bound" in page.text
    assert "gradient of z1 ✕ 1 of 3 fails, not finite" in page.text
    assert page.text.count("by up to 40") == 1
    assert "at most 0.5" not in page.text


def test_an_error_beyond_every_power_of_ten_has_a_place():
    axes = axes_of([Mark(1.0, 1.7e308, False, "overflows")])
    assert axes.top == 1e308
    assert axes.y(1.7e308) == axes.y(1e308)


def test_a_reason_with_a_number_that_must_not_break_is_no_text_of_html():
    why = "`x` row 0 is 1e-5 long; nothing is said"
    page = Page(html_of([made(results(2, "skip", why))]))
    assert "1e-5 long" in page.text
    assert "class=" not in page.text


def test_what_fails_comes_first():
    def one(case, quantity, status):
        return Result(f"{case}/{quantity}", case, quantity, status, 2.0 if status == "fail" else 0.5, 1.0, 3.0, "")

    right = [one("designed-0.3", "value", "pass"), one("designed-0.3", "grad.z1", "pass")]
    wrong = [one("aligned-0.3", "value", "pass"), one("aligned-0.3", "grad.z1", "fail")]
    text = html_of([made(right + wrong)])
    assert text.index('id="aligned-0.3/value"') < text.index('id="designed-0.3/value"')
    summary = text[text.index('id="summary"') : text.index('id="cases"')]
    assert summary.index(">grad.z1<") < summary.index(">value<")
    good = made(right, target="good.py:f", verdict="conforms", exit_code=0)
    both = Page(html_of([good, made(right + wrong, target="bad.py:f")])).text
    assert both.index("bad.py:f") < both.index("good.py:f")


def test_a_number_stays_whole_and_a_long_text_is_cut_as_any_other():
    assert unbroken("on designed-0.3, well-known: -1e-07") == (
        'on <span class="whole">designed-0.3,</span> well-known: <span class="whole">-1e-07</span>'
    )
    assert unbroken("a  <b>\n") == "a  &lt;b&gt;\n"
    for text in ("-" * 10**6, "-1 " * 10**6, "1 " * 10**6):
        shown = unbroken(text)
        assert shown.endswith("more characters are cut]")
        assert shown.count("-") + shown.count("1") < 2 * LONGEST
