"""The built site in a browser: every page opens, the filter and the search find, formulas need no script."""

from pathlib import Path

import pytest

from nceref.theory import prove
from tools.site import links
from tools.site.pages import pages

SITE = Path(__file__).parents[2] / "site"
PAGES = [name for path in sorted(SITE.rglob("*.html")) if (name := path.relative_to(SITE).as_posix())[0] != "_"]
KINDS = (
    "index.html", "tutorials/pytorch.html", "search.html", "generated/losses/supcon_out.html",
    "generated/claims/index.html", "generated/claims/source_003.html", "generated/derivations/tau-zero.html",
    "generated/figures.html", "generated/api/nceref.training.html", "generated/notebook.html",
)  # fmt: skip
"""A page of each kind."""
APART = ("explorer/", "browser/")
"""Folders of pages that have tests of their own."""
pytestmark = pytest.mark.skipif(not PAGES, reason="the site is not built; `make site` does that")


@pytest.fixture(scope="module")
def address(serve):
    return serve(SITE)


def test_no_link_leads_nowhere():
    assert list(links.broken(SITE)) == []


WIDE = """() => [
    ...document.querySelectorAll("article :is(table, pre, div.math, .katex, img, svg, dl, code, h1, h2, h3, p)")
].filter(one => one.getBoundingClientRect().width).filter(one => {
    let shown = one
    for (let outer = one; outer.tagName !== "ARTICLE"; outer = outer.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(outer).overflowX)) shown = outer
    }
    const {left, right} = shown.getBoundingClientRect()
    const words = shown === one && ["H1", "H2", "H3", "P"].includes(one.tagName) ? left + one.scrollWidth : right
    const page = document.querySelector("article").getBoundingClientRect()
    const start = Math.min(...[one, ...one.querySelectorAll(".base")].map(part => part.getBoundingClientRect().left))
    return words > page.right + 1 || start < page.left - 1
}).map(one => `${one.tagName} is cut off: ${one.textContent.slice(0, 50)}`)"""
"""What neither fits a page nor scrolls within itself."""


def test_every_page_opens_without_an_error_and_fits_a_phone(open_page, address):
    page = open_page(f"{address}/index.html", viewport={"width": 375, "height": 812})
    faults = {}
    for name in PAGES:
        if name.startswith(APART):
            continue
        page.goto(f"{address}/{name}")
        assert page.locator("h1").count() == 1, name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate(WIDE) == [], name
        if open_page.faults:
            faults[name] = open_page.faults.copy()
            open_page.faults.clear()
    assert faults == {}
    assert {f"generated/{name}.html" for name in pages()} <= {*PAGES}


SIDEWAYS = """() => {
    for (const folded of document.querySelectorAll("details")) folded.open = true
    const blocks = [...document.querySelectorAll("article pre")].filter(one => one.clientWidth)
    const wide = blocks.filter(one => one.scrollWidth > one.clientWidth)
    return [blocks.length, wide.map(one => one.textContent.slice(0, 80))]
}"""
"""How many blocks of code a page shows, and those that are wider than it."""


def test_no_block_of_code_scrolls_sideways(open_page, address):
    page = open_page(f"{address}/index.html", viewport={"width": 1280, "height": 900})
    seen = 0
    for name in PAGES:
        if not name.startswith(APART):
            page.goto(f"{address}/{name}")
            blocks, wide = page.evaluate(SIDEWAYS)
            assert wide == [], name
            seen += blocks
    assert seen > 500


@pytest.mark.parametrize("name", KINDS)
def test_pages_fit_their_window_and_are_accessible(open_page, accessibility_faults, address, window, screenshots, name):
    title, options = window
    page = open_page(f"{address}/{name}", **options)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=screenshots / f"site-{name.replace('/', '-').removesuffix('.html')}-{title}.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert accessibility_faults(page) == []


def test_claims_are_filtered_and_the_address_keeps_the_choice(open_page, address):
    verdicts = [claim.expected.value for claim in prove.claims().values()]
    wrong, every = verdicts.count("wrong"), len(verdicts)
    page = open_page(f"{address}/generated/claims/index.html")
    assert page.locator("#claims output").inner_text() == f"{every} of {every} claims"
    page.get_by_label("Verdict").select_option("wrong")
    assert page.locator("#claims output").inner_text() == f"{wrong} of {every} claims"
    assert set(page.locator("tbody tr:visible td:nth-child(4)").all_inner_texts()) == {"wrong"}
    page.get_by_label("Words").fill("WL-13")
    assert page.locator("tbody tr:visible td:first-child").all_inner_texts() == ["WL-13"]
    again = open_page(page.url)
    assert again.locator("tbody tr:visible td:first-child").all_inner_texts() == ["WL-13"]


# Words in any order, of the statement, of a loss however it is written, and of the source.
DESKTOP = {"width": 1440, "height": 900}
WORDS = {"unbalanced 0.71": "PC-11", "simclr xent gradient": "SIM-2", "SupConOut 2N": "SIM-1", "angle ArcFace": "ARC-1"}


@pytest.mark.parametrize("words", WORDS)
def test_claims_have_all_of_the_words(open_page, address, words):
    page = open_page(f"{address}/generated/claims/index.html?words={words.replace(' ', '+')}", viewport=DESKTOP)
    assert page.locator("#claims ~ * tbody tr:visible td:first-child").all_inner_texts() == [WORDS[words]]
    tops = [page.get_by_label(label).bounding_box()["y"] for label in ("Verdict", "Source", "Words")]
    assert len(set(tops)) == 1


SEARCHES = {
    "supcon_in": "supcon_in",
    "segmentation fault": "A loss in another language",
    "0.71": "PaCo note: L_extra",
    "6.2364": "nt_xent",
    "continuous integration": "My library's CI",
    "NT-Xent collapse": "nt_xent",
    "InfoNCE": "info_nce",
    "DDP": "A loss on several ranks",
    "learnable temperature": "My loss in PyTorch",
    "hard negatives": "hard_contrastive",
    "label smoothing": "cross_entropy",
    "WL-13": "Wang & Liu note: the temperature from 0",
}
"""What one looks for, and the beginning of the title of a page among the first four."""


@pytest.mark.parametrize(("words", "title"), SEARCHES.items())
def test_the_search_finds(open_page, address, words, title):
    page = open_page(f"{address}/search.html?q={words.replace(' ', '+')}")
    page.get_by_text("Search finished").wait_for()
    first = page.locator("#search-results > ul > li > a").all_inner_texts()[:4]
    assert any(one.startswith(title) for one in first), first


def test_rows_of_the_claims_are_low(open_page, address):
    page = open_page(f"{address}/generated/claims/index.html", viewport={"width": 1280, "height": 900})
    heights = page.eval_on_selector_all("#claims ~ * tbody tr", "rows => rows.map(row => row.offsetHeight)")
    assert max(heights) <= 80
    wide = "one => one.scrollWidth - one.clientWidth"
    assert page.eval_on_selector("#claims ~ .pst-scrollable-table-container", wide) <= 0


FRAMES = """[...document.querySelectorAll("iframe.part")].map(frame => [frame.clientHeight,
    frame.contentDocument.body.scrollHeight, getComputedStyle(frame.contentDocument.documentElement).colorScheme])"""
"""Of each part of another page on the front page: its height, that of what it shows, and its theme."""


def test_the_front_page_has_a_broken_loss_and_the_circle(open_page, address):
    page = open_page(f"{address}/index.html", viewport={"width": 1280, "height": 900}, color_scheme="light")
    box, circle = (page.frame_locator(f"iframe[title='{title}']") for title in ("Verify a loss", "Points on a circle"))
    assert "def nt_xent(z1, z2, temperature):" in box.locator("#source").input_value()
    top = page.locator("iframe.part").first.bounding_box()["y"]
    assert max(top, box.locator("#run").bounding_box()["y"]) < 900
    page.locator("iframe.part").last.scroll_into_view_if_needed()
    assert circle.locator(".point").count() == 6
    assert not circle.locator(".readings").is_visible()
    page.wait_for_function(f"{FRAMES}.every(([height, inside]) => inside <= height)")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"{FRAMES}.every(([, , scheme]) => scheme === 'dark')")


def test_tabs_are_chosen_by_mouse_and_keyboard_and_remembered(open_page, address):
    page = open_page(f"{address}/generated/losses/nt_xent.html")
    code = page.locator("[role=tabpanel]:not([hidden]) pre")
    assert code.inner_text().startswith("from nceref import losses\n")
    page.get_by_role("tab", name="PyTorch").click()
    assert code.inner_text().startswith("import nceref.torch\n")
    page.keyboard.press("ArrowRight")
    assert code.inner_text().startswith("import nceref.jax\n")
    assert page.evaluate("document.activeElement.textContent") == "JAX"
    page.goto(f"{address}/generated/losses/clip.html")
    assert code.inner_text().startswith("import nceref.jax\n")


def test_the_explorer_leads_to_a_claim_and_back(open_page, address):
    page = open_page(f"{address}/explorer/index.html#preset=hard")
    page.get_by_role("link", name="QT-5").click()
    page.wait_for_url("**/generated/claims/source_003.html#qt-5")
    page.locator("#qt-5").get_by_role("link", name="Negative nearest").click()
    page.wait_for_url("**/explorer/index.html#preset=hard")


def test_pages_are_complete_without_a_script(open_page, address):
    page = open_page(f"{address}/generated/losses/nt_xent.html", java_script_enabled=False)
    formula = page.locator("div.math .katex-html").first
    assert formula.bounding_box()["width"] > 100
    assert page.locator(".katex-error").count() == 0
    page.goto(f"{address}/generated/claims/index.html")
    assert page.locator("tbody tr:visible").count() == len(prove.claims())
