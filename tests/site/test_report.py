"""The report in a browser: readable without JavaScript, by everyone, on a phone; a link opens its row."""

import pytest
from programs import plain

import nceref
from nceref.verification.document import html_of

LINK = "float32/aligned-0.3/value"


@pytest.fixture(scope="module")
def report():
    return nceref.verify(plain.doubled, loss="info_nce", suite="quick", dtype=["float64", "float32"])


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report.to_html(), encoding="utf-8")
    return file


def test_everyone_can_read_it(open_page, accessibility_faults, screenshots, path, window):
    name, options = window
    page = open_page(path.as_uri(), **options)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=screenshots / f"report-{name}.png")
    # The row of a link has another background.
    page.goto(f"{path.as_uri()}#{LINK}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=screenshots / f"report-{name}-whole.png", full_page=True)
    # Sentences wrap; tables of numbers scroll by themselves.
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll:has(.words)')].every(t => t.scrollWidth <= t.clientWidth)"
    )
    assert accessibility_faults(page) == []


def test_a_link_opens_its_row(open_page, path):
    page = open_page(f"{path.as_uri()}#{LINK}", java_script_enabled=False)
    # Locators are the driver's own, also where the page has no scripts.
    row = page.locator("tr", has=page.locator(f'[id="{LINK}"]'))
    assert row.bounding_box()["height"] > 0
    assert 0 <= row.bounding_box()["y"] < page.viewport_size["height"]
    assert "aligned-0.3" in row.locator("xpath=..").inner_text()


def test_without_a_script_the_first_screen_says_what_is_wrong_and_what_to_change(open_page, path, report):
    page = open_page(path.as_uri(), java_script_enabled=False, viewport={"width": 1440, "height": 900})
    first = report.diagnosis[0]
    for words in ("differs", first.fix, report.command):
        box = page.get_by_text(words).first.bounding_box()
        assert box["y"] + box["height"] <= 900, words
    page.locator("summary").first.click()
    assert page.locator("table td").first.is_visible()
    assert page.locator("svg circle, svg path").count() > 50


def test_by_keyboard_the_first_stop_skips_to_the_report(open_page, path):
    page = open_page(path.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_a_mark_leads_to_its_row(open_page, path):
    page = open_page(path.as_uri())
    mark = page.locator("svg a").first
    wanted = mark.get_attribute("href")[1:]
    mark.click()
    assert page.locator(f'[id="{wanted}"]').is_visible()


def test_several_reports_are_as_readable(open_page, accessibility_faults, screenshots, report, tmp_path):
    file = tmp_path / "audit.html"
    right = nceref.verify(plain.with_gradients, loss="info_nce", suite="quick")
    # As many as an audit of released packages has, and as many that differ.
    reports = [right] * 24 + [report] * 10
    file.write_text(html_of(reports, "Many reports", ["as known"] * len(reports)), encoding="utf-8")
    page = open_page(file.as_uri(), viewport={"width": 375, "height": 812})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # A measurement beside the pictures: no test is red because a machine is slow.
    assert page.locator("h2").count() == len(reports)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    (screenshots / "report-first-paint.txt").write_text(f"{paint:.0f} ms, {file.stat().st_size:,} bytes\n")
    assert accessibility_faults(page) == []
