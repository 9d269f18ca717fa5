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
    "generated/figures.html", "generated/api/nceref.training.html",
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


def test_every_page_opens_without_an_error(open_page, address):
    page = open_page(f"{address}/index.html")
    faults = {}
    for name in PAGES:
        if name.startswith(APART):
            continue
        page.goto(f"{address}/{name}")
        assert page.locator("h1").count() == 1, name
        if open_page.faults:
            faults[name] = open_page.faults.copy()
            open_page.faults.clear()
    assert faults == {}
    assert {f"generated/{name}.html" for name in pages()} <= {*PAGES}


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
    assert set(page.locator("tbody tr:visible td:nth-child(3)").all_inner_texts()) == {"wrong"}
    page.get_by_label("Words").fill("WL-13")
    assert page.locator("tbody tr:visible td:first-child").all_inner_texts() == ["WL-13"]
    again = open_page(page.url)
    assert again.locator("tbody tr:visible td:first-child").all_inner_texts() == ["WL-13"]


SEARCHES = {"supcon_in": "supcon_in", "segmentation fault": "A loss in another language"}


@pytest.mark.parametrize(("words", "title"), SEARCHES.items())
def test_the_search_finds(open_page, address, words, title):
    page = open_page(f"{address}/search.html?q={words.replace(' ', '+')}")
    page.locator("#search-results li a").first.wait_for()
    assert title in " ".join(page.locator("#search-results li a").all_inner_texts())


def test_pages_are_complete_without_a_script(open_page, address):
    page = open_page(f"{address}/generated/losses/nt_xent.html", java_script_enabled=False)
    formula = page.locator("div.math .katex-html").first
    assert formula.bounding_box()["width"] > 100
    assert page.locator(".katex-error").count() == 0
    page.goto(f"{address}/generated/claims/index.html")
    assert page.locator("tbody tr:visible").count() == len(prove.claims())
