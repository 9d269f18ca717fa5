"""The page that verifies in the browser: in a real one, with the Pyodide that NCEREF_PYODIDE names."""

import os

import pytest

from tools.site import browser

PATIENT = 240_000
"""Milliseconds for a busy machine to load Python and judge a loss."""
RIGHT = """
import numpy as np
print("loaded here")
def my_loss(z1, z2, exponent):
    u1, u2 = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (z1, z2))
    return np.mean(np.sum((u1 - u2) ** 2, axis=1) ** (exponent / 2))
"""
SENDING = """
import js
print([getattr(js, name, None) for name in ("fetch", "XMLHttpRequest", "WebSocket", "importScripts", "Worker")])
def f(z1, z2, exponent):
    return 0.0
"""
HANGING = """
while True:
    pass
def f(z1, z2):
    pass
"""
WORKER = """() => new Promise(done => {
    const source = `
        addEventListener("securitypolicyviolation", event => postMessage(event.effectiveDirective));
        fetch("http://192.0.2.1/paste").catch(error => setTimeout(() => postMessage(error.name), 5000));`;
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => done(data);
})"""
SELECTED = "area => area.value.slice(area.selectionStart, area.selectionEnd)"


@pytest.fixture(scope="module")
def plain(tmp_path_factory, serve):
    """The address of the page without its wheels, and with no Pyodide."""
    folder = tmp_path_factory.mktemp("plain")
    browser.write_page(folder / "browser")
    return f"{serve(folder)}/browser/"


@pytest.fixture(scope="module")
def address(tmp_path_factory, serve):
    """The address of the page, with the Pyodide that it is served with."""
    if not os.environ.get(browser.PYODIDE):
        pytest.skip(f"{browser.PYODIDE} names no folder with Pyodide and its NumPy")
    folder = tmp_path_factory.mktemp("site")
    browser.write(folder / "browser")
    return f"{serve(folder)}/browser/"


def judged(page, source, loss="alignment", seconds="1800"):
    """The verdict and the sentence under it, once they are there."""
    page.fill("#source", source)
    page.select_option("#loss", loss)
    page.eval_on_selector("#limit", "(list, seconds) => list.replaceChildren(new Option(seconds, seconds))", seconds)
    page.click("#run")
    page.wait_for_selector("#result:not([hidden])", timeout=PATIENT)
    return page.text_content("#verdict"), page.text_content("#sentence")


def test_the_page_is_readable_everywhere(plain, open_page, window, accessibility_faults, screenshots):
    name, options = window
    page = open_page(plain, bypass_csp=True, **options)
    page.wait_for_function("document.getElementById('about-loss').textContent.includes('Inputs: z1, z2, temperature')")
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=screenshots / f"browser-{name}.png", full_page=True)


def test_without_python_it_says_so(plain, open_page):
    page = open_page(plain)
    page.route("**/pyodide.js", lambda route: route.fulfill(status=404))
    (verdict, sentence), faults = judged(page, RIGHT), open_page.faults
    assert verdict == "Not checked"
    assert sentence == (
        "Python could not be loaded from cdn.jsdelivr.net. Check the network, or check the loss in a terminal: "
        "nceref verify FILE:FUNCTION --loss alignment"
    )
    faults.clear()
    assert page.is_enabled("#run")


def test_an_example_brings_its_loss(plain, open_page):
    page = open_page(plain)
    page.select_option("#example", label="CLIP: images look for texts, but texts not for images")
    assert page.input_value("#loss") == "clip"
    assert "def clip(image, text, logit_scale):" in page.input_value("#source")
    assert "logit_scale" in page.text_content("#about-loss")


def test_the_box_of_the_front_page_is_readable(plain, open_page, window, accessibility_faults):
    _, options = window
    page = open_page(f"{plain}?box", bypass_csp=True, **options)
    page.wait_for_function("document.getElementById('source').value")
    assert not page.is_visible("h1")
    assert not page.is_visible("#suite")
    assert page.is_visible("#example")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert accessibility_faults(page) == []


def test_losses_are_judged(address, open_page, accessibility_faults, screenshots):
    page = open_page(address, bypass_csp=True)
    example = page.input_value("#source")
    assert judged(page, example, "nt_xent") == ("DIFFERS", "the value fails on 28 of 28 cases")
    report = page.frame_locator("#report").locator("body")
    assert page.text_content("#explanations").startswith("self-contrast-kept your loss equals the reference with ")
    for words in ("self-contrast-kept", "this system starts no processes"):
        report.get_by_text(words).first.wait_for(state="attached")
    assert report.locator("a[href^=http]").first.get_attribute("target") == "_blank"
    report.get_by_role("link", name="Environment").click()
    assert page.evaluate("scrollY") > 1000
    report.get_by_text("self-contrast-kept").first.wait_for()
    for width, scheme in ((375, "dark"), (1440, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert accessibility_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=screenshots / f"browser-judged-{width}-{scheme}.png", full_page=True)
    verdict, sentence = judged(page, RIGHT)
    assert (verdict, sentence.partition(";")[0]) == ("VALUE-ONLY", "the value is right on 14 of 14 cases")
    assert page.text_content("#printed pre") == "loaded here\n"


NO_PYTHON = {
    "def f(z1):\n    return (1 +\n": "This is no Python: '(' was never closed, line 2: return (1 +",
    "<img src=x onerror=alert(1)>": "This is no Python: invalid syntax, line 1: <img src=x onerror=alert(1)>",
    "x = 1\x00": "This is no Python: source code string cannot contain null bytes",
    "x = 1": "There is no function in it: paste one that begins with def.",
}


def test_bad_pastes_are_named_and_the_page_goes_on(address, open_page):
    page = open_page(address)
    for source, sentence in NO_PYTHON.items():
        got = judged(page, source)
        assert got[0] == "Not checked"
        assert got[1].startswith(sentence)
        if "line 2" in sentence:
            assert page.eval_on_selector("#source", SELECTED) == "    return (1 +"
    assert judged(page, SENDING)[0] == "DIFFERS"
    assert page.text_content("#printed pre") == f"{[None] * 5}\n"
    stopped = "The loss did not return within 3 s and was stopped. Is there an endless loop?"
    assert judged(page, HANGING, seconds="3") == ("Stopped", stopped)
    assert judged(page, RIGHT)[0] == "VALUE-ONLY"
    assert open_page.faults == []


def test_a_worker_of_the_page_can_reach_no_other_machine(plain, open_page):
    page = open_page(plain)
    page.wait_for_function("document.getElementById('about-loss').textContent")
    assert page.evaluate(WORKER) == "connect-src"
    open_page.faults.clear()
