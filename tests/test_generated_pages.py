"""Pages of the site that are made from declarations: which there are, and what they say; Sphinx is not needed."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from slow import partly_slow

from mutants.bug import bugs
from nceref import all_losses
from nceref.output.markdown_parts import escaped
from nceref.targets.peers.peer import peers
from nceref.theory import derivation, prove
from nceref.theory.chain import BrokenError, equal
from nceref.verification.audit.audit import is_on_ranks, known
from tools import notebook
from tools.site import gradients, links, released, subjects, words
from tools.site.pages import ROOT, pages, places
from tools.site.slopes import SLOPES

PAGES = pages()
PROVED = ("info_nce", "siglip", "nt_xent", "cross_entropy")


def test_every_loss_claim_and_derivation_has_a_page():
    assert {f"losses/{name}" for name in all_losses()} == {name for name in PAGES if name.startswith("losses/")}
    assert {f"derivations/{name}" for name in derivation.topics()} < PAGES.keys()
    rows = [line for line in PAGES["claims/index"]().splitlines() if line.startswith("| [")]
    claims = [(chapter.name, claim) for chapter in prove.chapters() for claim in chapter.claims]
    for (chapter, claim), row in zip(claims, rows, strict=True):
        assert row.startswith(f"| [{claim.id}]({chapter}.md#{claim.id.lower()}) | ")
        assert f" | [{claim.expected.value}]{{.verdict " in row


@pytest.mark.parametrize("name", partly_slow(all_losses(), PROVED.__contains__, "proves the slopes of each loss"))
def test_a_page_has_all_that_is_declared(name):
    loss, text = all_losses()[name], PAGES[f"losses/{name}"]()
    declared = loss.declaration
    assert f"$$\n{loss.latex}\n$$" in text
    assert f"$ nceref verify my_losses.py:my_loss --loss {name}\n" in text
    assert all(f"- **{p.name}**: " in text for p in loss.parameters)
    assert all(f"[{relation.other}]({relation.other}.md)" in text for relation in declared.relations)
    assert all(f"| {each.situation} |" in text for each in declared.expectations)
    assert f"\n\n{released.section(loss)}" in text
    codes = dict(re.findall(r"<summary>Code of (\S+)</summary>\n\n```python\n(.*?)```", text, re.DOTALL))
    own = {program.id: program for program in bugs().values() if program.loss == name}
    assert codes.keys() == own.keys()
    assert all(f"def {program.function.__name__}(" in codes[id] for id, program in own.items())
    assert (r"\frac{\partial L}{\partial" in text) == (name in SLOPES)
    assert declared.gradient.split(",")[0].split(";")[0] in text


WRONG = {
    "twice the slope": (1, lambda step: {"relation": equal(step.relation.lhs, 2 * step.relation.rhs)}),
    "another loss": (0, lambda step: {"by": SLOPES["info_nce"]().steps[0].by}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_slope_that_does_not_follow_ends_the_page(wrong, monkeypatch):
    chain = SLOPES["dcl"]()
    number, change = WRONG[wrong]
    steps = list(chain.steps)
    steps[number] = replace(steps[number], **change(steps[number]))
    monkeypatch.setitem(SLOPES, "dcl", lambda: replace(chain, steps=tuple(steps)))
    with pytest.raises(BrokenError):
        gradients.slopes.__wrapped__("dcl")


@pytest.mark.parametrize("name", all_losses())
def test_a_page_has_every_known_difference_of_released_packages(name):
    text = released.section(all_losses()[name])
    targets = {t.name: t for peer in peers().values() for t in peer.targets if t.loss == name}
    rows = [line for line in text.splitlines() if "| `nceref verify " in line]
    ways = [way for target in targets.values() for way in target.ranks]
    assert len(rows) == len(targets) + len(ways)
    for entry, differences in known():
        for each in differences if entry.table["target"] in targets else ():
            own = [row for row in rows if f"verify {entry.table['target']}" in row and escaped(each["reason"]) in row]
            assert any(("--ranks" in row) == is_on_ranks(entry) for row in own), (entry.name, each)


def test_a_chapter_states_published_and_computed_numbers():
    text = PAGES["claims/source_004_extra"]()
    assert "(pc-11)=\n## PC-11: " in text
    assert "[wrong]{.verdict .wrong} (it needs" in text
    assert "$ nceref claims --prove PC-11\n" in text
    assert "| number | published | computed | verdict |" in text
    assert "- **source 004** (PC): " in text


def test_every_source_is_explained():
    text = PAGES["claims/index"]()
    known = {
        kind
        for kinds in re.findall(r"^- \*\*.*\*\* \(([A-Z, ]+)\): ", text, re.MULTILINE)
        for kind in kinds.split(", ")
    }
    assert known == {claim.split("-")[0] for claim in prove.claims()}


MOVED = {
    "[a](verify.md#bounds)": "[a](../verify.md#bounds)",
    "[a](../figures/README.md)": "[a](figures.md)",
    "[a](../nceref/theory/claims)": "[a](claims/index.md)",
    '<img src="../figures/quadrants.svg">': '<img src="../../figures/quadrants.svg">',
    "[a](browser/index.html)": '<a href="../browser/index.html">a</a>',
    "[a](https://example.org/a.html)": "[a](https://example.org/a.html)",
    "[a](https://example.org/a.md)": "[a](https://example.org/a.md)",
    "[a](#bounds)": "[a](#bounds)",
}


@pytest.mark.parametrize("link", MOVED)
def test_links_of_a_page_that_moves_lead_where_they_led(link):
    origin, page = PurePosixPath("docs/claims.md"), PurePosixPath("docs/generated/claims.md")
    assert links.relinked(link, origin, page, places()) == MOVED[link]
    assert (
        links.relinked("[a](verify.md) [b](../LICENSE)", origin, origin, places()) == "[a](verify.md) [b](../LICENSE)"
    )


def test_the_notebook_is_a_page_with_its_outputs():
    text = PAGES["notebook"]()
    for cell in notebook.read()["cells"]:
        assert "".join(cell["source"]) in text
    assert text.count("```{raw} html") == 1
    assert f"$$\n{all_losses()['nt_xent'].latex}\n$$" in text
    assert "```text\nvalue-only\nTrue\n```" in text


WORDS = {
    "NT-Xent, nt_xent": "NT Xent NTXent nt_xent nt xent ntxent",
    "6.236370 of 0.71": "6.236370 6.24 6.236 6.2364 of 0.71",
    "claim WL-13 (1.2.10)": "claim WL-13 WL 13 WL13 1.2.10",
}


@pytest.mark.parametrize("text", WORDS)
def test_the_search_knows_names_and_numbers(text):
    assert words.words(text) == WORDS[text].split()


def test_what_is_shown_elsewhere_is_there():
    generated = {f"docs/generated/{name}.md" for name in PAGES}
    assert all((ROOT / origin).exists() and page in generated for origin, page in places().items())


def test_broken_links_of_a_site_are_named(tmp_path):
    (tmp_path / "one.html").write_text(
        '<a href="two.html#here">a</a><a href="two.html#gone">b</a><img src="gone.png"><a href="https://x.org/y">c</a>'
    )
    (tmp_path / "two.html").write_text('<p id="here"><a href="#">d</a><a href="one.html">e</a>')
    assert list(links.broken(tmp_path)) == [
        "one.html: gone.png leads nowhere",
        "one.html: two.html#gone leads nowhere",
    ]


SUBJECTS = {
    "Source 003: as source 004 has it": "Temperature guide: as the PaCo note has it",
    "| source 000; Wang & Liu 2021 | source 000 |": "| Wang & Liu note; Wang & Liu 2021 | Wang & Liu note |",
    "source 002's listing": "the Loss-NCE note's listing",
    "- **source 001** (IS)": "- **softmax note** (IS)",
    "`--source 004`\n```text\nSource 004, section\n```\n": "`--source 004`\n```text\nSource 004, section\n```\n",
}


@pytest.mark.parametrize("text", SUBJECTS)
def test_a_page_names_the_notes_by_their_subject(text):
    assert subjects.by_subject(text) == SUBJECTS[text]


def test_numbers_have_six_digits_and_scenes_are_linked():
    assert not re.findall(r"\b[1-9]\d*\.\d{6,}|\b0\.0*[1-9]\d{6,}", PAGES["tables"]())
    text = PAGES["claims/source_003"]()
    assert "**against it**: published: d(L, t) < 0; but 0.0783991 against 0, " in text
    assert '<a href="../../explorer/index.html#preset=hard">Negative nearest</a>' in text
