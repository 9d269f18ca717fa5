"""The explorer in a browser: what is dragged, slid, played and linked does what it says, in numbers of the package."""

import math
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from nceref.losses import get_loss
from nceref.theory.tables import paco_optimum, temperature_easy, temperature_hard

EXPLORER = Path(__file__).parents[2] / "docs" / "explorer"
PRESETS = ("start", "easy", "hard", "dead", "quadrants", "paco", "margin")
DEFAULTS = {"alpha": 0.05, "m": 0.5, "b": -3.0, "length": 3.0, "rate": 0.1}
ARRAYS = {
    **{name: {"queries": "q", "keys": "k"} for name in ("info_nce", "simple", "hard_contrastive")},
    **{name: {"z1": "q", "z2": "k"} for name in ("nt_xent", "dcl")},
    "siglip": {"image": "q", "text": "k"},
    "supcon_out": {"embeddings": "s"},
    "arcface": {"embeddings": "s", "class_weights": "c"},
    "paco": {"embeddings": "s", "centers": "c"},
}


@pytest.fixture
def explorer(open_page, serve):
    """Open the explorer at a state, which is the part of its address behind #."""
    address = f"{serve(EXPLORER)}/index.html"

    def explorer(state="", **options):
        page = open_page(f"{address}#{state}", **options)
        page.wait_for_selector("html.ready")
        return page

    return explorer


def _number(page, selector):
    return float(page.locator(selector).first.get_attribute("data-value"))


def _value(page):
    return _number(page, "#value")


def _points(page):
    """Role, label and angle of every point, to the tenth of a degree that is said of it."""
    return page.eval_on_selector_all(
        ".point", "nodes => nodes.map(n => [n.getAttribute('aria-label'), Number(n.getAttribute('aria-valuenow'))])"
    )


def _settled(page):
    """The link: copying it writes it into the address at once."""
    page.evaluate("document.querySelector('#copy').click()")
    return urlsplit(page.url).fragment


def _given(text):
    return dict(part.split("=", 1) for part in text.split("&"))


def _arguments(name, points, temperature, **scalars):
    """Arguments of a loss of the package for points (role, label, angle) on the circle."""
    set_to = DEFAULTS | scalars

    def rows(role):
        angles = np.radians([angle for r, _, angle in points if r == role])
        length = set_to["length"] if (name, role) == ("paco", "c") else 1.0
        return length * np.stack([np.cos(angles), np.sin(angles)], axis=1)

    given = {argument: rows(role) for argument, role in ARRAYS[name].items()}
    labels = [label for role, label, _ in points if role == "s"]
    if name == "info_nce" and any(role == "n" for role, _, _ in points):
        given["negatives"] = rows("n")
    return given | {
        "supcon_out": {"labels": labels, "temperature": temperature},
        "paco": {"labels": labels, "temperature": temperature, "alpha": set_to["alpha"]},
        "arcface": {"target": labels, "scale": 1 / temperature, "margin": set_to["m"]},
        "siglip": {"logit_scale": 1 / temperature, "logit_bias": set_to["b"]},
        "hard_contrastive": {"temperature": temperature, "fraction": 0.5},
        "simple": {},
    }.get(name, {"temperature": temperature})


def _link(points):
    return ",".join(f"{role}{label}:{angle}" for role, label, angle in points)


PAIRS = (("q", 0, 100), ("k", 0, 20), ("q", 1, 140), ("k", 1, 215), ("q", 2, 275), ("k", 2, 330.5))
CLASSES = (("s", 0, 70), ("s", 0, 95), ("s", 1, 200), ("s", 1, 251.5), ("s", 1, 330), ("c", 0, 85), ("c", 1, 240))


@pytest.mark.parametrize("name", ARRAYS)
def test_value_probabilities_and_a_step_are_those_of_the_package(explorer, name):
    points = PAIRS if "q" in ARRAYS[name].values() else CLASSES[: 5 if name == "supcon_out" else None]
    page = explorer(f"preset=start&loss={name}&t=0.3&rate=0.2&points={_link(points)}")
    assert page.locator("#loss").input_value() == name
    arguments = _arguments(name, points, 0.3)
    loss = get_loss(name)
    value, grads = loss.value_and_grad(**arguments)
    assert _value(page) == pytest.approx(value, rel=1e-12)

    shown = page.eval_on_selector_all(".matrix tbody td", "cells => cells.map(cell => cell.dataset.value ?? null)")
    seen = np.array([np.nan if p is None else float(p) for p in shown])
    if name in ("info_nce", "nt_xent", "supcon_out", "hard_contrastive", "paco"):
        anatomy = loss.anatomy(**arguments)
        expected = np.where(anatomy.taking_part, anatomy.probabilities, np.nan)
        np.testing.assert_allclose(seen, expected.ravel(), rtol=1e-9)
    if name == "dcl":
        np.testing.assert_allclose(np.nan_to_num(seen), loss.anatomy(**arguments).relative_penalties.ravel(), rtol=1e-9)

    first = next(iter(ARRAYS[name]))
    angle = math.radians(points[0][2])
    tangent = -math.sin(angle), math.cos(angle)
    assert _number(page, "#force b") == pytest.approx(-float(grads[first][0] @ tangent), rel=1e-9)

    page.locator("#step").click()
    after = {(part[0], i): part for i, part in enumerate(_given(_settled(page))["points"].split(","))}
    moved = [float(part.split(":")[1]) for part in after.values()]
    places = {argument: [i for i, p in enumerate(points) if p[0] == role] for argument, role in ARRAYS[name].items()}
    for argument, at in places.items():
        for row, i in enumerate(at):
            angle = math.radians(points[i][2])
            length = DEFAULTS["length"] if (name, argument) == ("paco", "centers") else 1.0
            slope = length * float(grads[argument][row] @ (-math.sin(angle), math.cos(angle)))
            turn = math.radians(moved[i]) - (angle - 0.2 * slope)
            assert math.sin(turn) == pytest.approx(0, abs=1e-12)
            assert math.cos(turn) > 0


def _place(page, angle):
    """Where an angle is on the screen."""
    return page.evaluate(
        """angle => {
            const circle = document.querySelector("#circle"), turn = angle * Math.PI / 180;
            const p = new DOMPoint(100 * Math.cos(turn), -100 * Math.sin(turn)).matrixTransform(circle.getScreenCTM());
            return [p.x, p.y];
        }""",
        angle,
    )


def test_a_point_is_dragged_by_mouse_and_touch(explorer):
    page = explorer("preset=start", has_touch=True, viewport={"width": 1000, "height": 900})
    page.mouse.move(*_place(page, 100))
    page.mouse.down()
    page.mouse.move(*_place(page, 60), steps=4)
    page.mouse.up()
    page.mouse.move(*_place(page, 0))
    touch = page.context.new_cdp_session(page)
    page.evaluate("window.cancelled = 0; addEventListener('pointercancel', () => window.cancelled += 1)")
    for kind, angle in (("touchStart", 140), *(("touchMove", a) for a in (150, 160, 180, 170)), ("touchEnd", None)):
        x_y = [] if angle is None else [dict(zip("xy", _place(page, angle), strict=True))]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": x_y})
        # Moves wait for a frame.
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
    angles = dict(_points(page))
    # The browser did not take the finger for a scroll of the page.
    assert page.evaluate("window.cancelled") == 0
    assert angles["blue circle"] == pytest.approx(60, abs=0.5)
    assert angles["orange square"] == pytest.approx(170, abs=0.5)
    points = [(p[0], int(p[1]), float(p.split(":")[1])) for p in _given(_settled(page))["points"].split(",")]
    assert _value(page) == pytest.approx(get_loss("info_nce")(**_arguments("info_nce", points, 0.5)), rel=1e-12)


def test_everything_works_from_the_keyboard(explorer):
    page = explorer("preset=start")
    page.locator(".point[aria-label='blue circle']").focus()
    for key, angle in (("ArrowRight", 101), ("ArrowDown", 100), ("Shift+ArrowUp", 110), ("PageDown", 100)):
        page.keyboard.press(key)
        assert dict(_points(page))["blue circle"] == angle
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "partner blue circle"
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('.halo')).stroke") != "none"
    page.locator("#temperature").focus()
    page.keyboard.press("Home")
    assert _given(_settled(page))["t"] == "0.001"
    page.keyboard.press("End")
    assert _given(_settled(page))["t"] == "10"
    page.locator("[data-preset=hard]").focus()
    page.keyboard.press("Enter")
    page.locator("#published button").nth(3).focus()
    page.keyboard.press("Enter")
    assert page.locator("#published button").nth(3).evaluate("node => node === document.activeElement")
    assert _value(page) == pytest.approx(25.0)
    # Of a hundred points one is a stop of the Tab key; N and P go on from there.
    page.locator("[data-preset=quadrants]").click()
    assert page.locator(".point[tabindex='0']").count() == 1
    page.locator(".point[tabindex='0']").focus()
    page.keyboard.press("p")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "purple diamond"
    page.keyboard.press("ArrowLeft")
    assert "at=99" in _settled(page)
    page.locator("[data-preset=hard]").click()
    page.locator("#published button").nth(3).click()
    page.wait_for_function("document.querySelector('#live').textContent.includes('Loss 25.000')")


def test_sliders_and_the_curve_set_the_temperature(explorer):
    page = explorer("preset=paco")
    page.locator("#alpha-exact").fill("0.3")
    page.locator("#alpha-exact").press("Enter")
    page.locator("#alpha-exact").fill("7")
    page.locator("#alpha-exact").press("Enter")
    assert "0.001 to 1" in page.locator("#status").inner_text()
    assert _number(page, "#published tbody tr td:nth-child(3)") == pytest.approx(1 / (1 + 0.3 * 8))
    page.locator("#temperature").evaluate("node => { node.value = -1; node.dispatchEvent(new Event('input')); }")
    assert {"t": "0.1", "alpha": "0.3"}.items() <= _given(_settled(page)).items()
    box = page.locator("#curve").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 412 / 420, box["y"] + 60)
    assert float(_given(_settled(page))["t"]) == pytest.approx(10, rel=0.05)
    page.locator("#loss").select_option("simple")
    assert page.locator("[data-control=temperature]").is_hidden()


def test_descent_runs_stops_and_is_taken_back(explorer):
    page = explorer("preset=start")
    before = _value(page)
    page.locator("#play").click()
    page.wait_for_function("parseInt(document.querySelector('#steps').textContent) > 5")
    page.locator("#play").click()
    after, steps = _value(page), page.locator("#steps").inner_text()
    page.wait_for_timeout(100)
    assert after < before
    assert page.locator("#steps").inner_text() == steps
    page.locator("#reset").click()
    assert _value(page) == before
    assert page.locator("#steps").inner_text() == ""
    # A gradient that is dead moves nothing, and the page says so.
    page.goto(page.url.split("#")[0] + "#preset=easy&t=0.001")
    page.wait_for_function("document.querySelector('#preset-title').textContent === 'Positive nearest'")
    page.locator("#play").click()
    page.wait_for_function("document.querySelector('#status').textContent.includes('No force')")


def test_reduced_motion_has_no_animation(explorer):
    page = explorer("preset=paco", reduced_motion="reduce")
    for _ in range(4):
        page.locator("#play").click()
    assert page.locator("#steps").inner_text() == "800 steps"
    expected = paco_optimum.center_probability(0.05, 8), paco_optimum.pair_probability(0.05, 8)
    for row, probability in enumerate(expected, 1):
        assert _number(page, f"#published tbody tr:nth-child({row}) td:nth-child(3)") == pytest.approx(probability)
        assert _number(page, f"#published tbody tr:nth-child({row}) td:nth-child(4)") == pytest.approx(
            probability, abs=1e-3
        )
    assert _value(page) == pytest.approx(paco_optimum.lowest_loss(0.05, 8), abs=1e-3)


def test_a_link_keeps_everything(explorer, open_page):
    page = explorer("preset=hard&t=0.07&view=scaled&at=2")
    page.locator(".point").nth(2).press("ArrowLeft")
    # The address follows by itself, soon after.
    page.wait_for_function("location.hash.includes('points=')")
    page.locator("#play").click()
    page.wait_for_timeout(100)
    page.locator("#play").click()
    link, value, points = _settled(page), _value(page), _points(page)
    again = explorer(link)
    assert (_settled(again), _value(again), _points(again)) == (link, value, points)
    again.reload()
    assert (_settled(again), _value(again), _points(again)) == (link, value, points)
    again.locator("#copy").click()
    again.wait_for_function("document.querySelector('#status').textContent.length > 0")


UNREAD = {
    "preset=nowhere": "preset=nowhere (there is no such scene), “Three pairs” is shown",
    "preset=hard&loss=triplet": "loss=triplet (there is no such loss), InfoNCE is shown",
    "t=abc": "t=abc (temperature is a number from 0.001 to 10), 0.5 is shown",
    "t=-1&preset=paco": "t=-1 (temperature is a number from 0.001 to 10), 0.2 is shown",
    "points=q0:1,k7:2": "(it is a list such as q0:90,k0:20 of 120 points at most), those of the scene are shown",
    "points=": "points= (it is a list",
    "loss=paco&points=q0:1,k0:2": "PaCo takes samples s, and a center c for each",
    "at=99": "at=99 (there are points 0 to 5), 0 is chosen",
    "x=1": "x=1 (there is no such setting), it is left out",
    "preset=start&loss=arcface&points=s0:1,c3:2": "those of “A margin” are shown",
    "points=q0:1,k0:2,q1:3": "InfoNCE takes two or more pairs",
    "points=" + "q0:1,k0:2," * 500: "…",
    "t=1e-320&%00&view=log": "; view=log (it is loss or scaled), the loss is drawn; %00 (there is no such setting)",
}


@pytest.mark.parametrize("link", UNREAD)
def test_a_link_that_cannot_be_read_is_said_to_be_so(explorer, link):
    page = explorer(link)
    message = page.locator("#unread")
    assert message.is_visible()
    assert "could not be read: " in message.inner_text()
    assert UNREAD[link] in message.inner_text()
    assert len(message.inner_text()) < 300
    assert math.isfinite(_value(page))
    assert page.locator(".point").count() > 1
    # It goes with the first change.
    page.locator("[data-preset=easy]").click()
    assert message.is_hidden()


CAPTIONS = {
    "preset=start&loss=nt_xent": ("Three pairs", "A filled point", ""),
    "preset=start&loss=arcface": ("Three pairs", "Its points, under ArcFace.", "A filled point"),
    "preset=start&points=q0:90,k0:80,q1:9,k1:5": ("Points of your own", "in place of the scene “Three pairs”", "Press"),
    "preset=dead&t=1": ("Dead gradient", "τ is 1, in the scene 0.01. Of the scene as it was: The pairs crowd", ""),
    "preset=easy&points=q0:90,k0:20,n1:80,n2:0,n3:10": ("Positive nearest", "Points have been moved. Of the", ""),
    "preset=paco&alpha=0.3": ("PaCo’s 0.71", "α is 0.3, in the scene 0.05. Of the scene as it was: Press", ""),
    "preset=paco&points=s0:0,s1:90,c0:0,c1:90": ("Points of your own", "Under PaCo", "K = 8"),
    "preset=paco&points=s0:0,s0:3,s1:90,c0:0,c1:90": ("Points of your own", "Under PaCo", "optimum"),
    "preset=quadrants&points=s0:0,s0:3": ("Points of your own", "Under SupCon", "replayed"),
    "preset=easy&loss=dcl": ("Positive nearest", "Each of its negatives is a pair of two equal views here.", "printed"),
}


@pytest.mark.parametrize("link", CAPTIONS)
def test_a_caption_is_about_what_is_shown(explorer, link):
    page = explorer(link)
    title, words, absent = CAPTIONS[link]
    assert page.locator("#unread").is_hidden()
    assert page.locator("#preset-title").inner_text() == title
    assert words in page.locator("#look").inner_text()
    preset = page.locator(".preset").inner_text()
    assert not absent or absent not in preset
    everything = page.locator("body").inner_text()
    assert not [word for word in ("NaN", "Infinity", "undefined", "null") if word in everything]
    # Play does what the text says: points that it moves are those of the scene.
    page.locator("#step").click()
    assert words in page.locator("#look").inner_text()


def test_another_loss_keeps_the_points_and_the_way_back_does(explorer):
    page = explorer("preset=easy&t=0.2")
    before, value = _points(page), _value(page)
    angles = {angle for _, angle in before}
    for loss in ("dcl", "siglip", "arcface", "supcon_out", "hard_contrastive"):
        page.locator("#loss").select_option(loss)
        assert {"preset": "easy", "t": "0.2"}.items() <= _given(_settled(page)).items()
        # Classes have centers beside the points.
        assert angles <= {angle for _, angle in _points(page)}, loss
    page.locator("#loss").select_option("info_nce")
    assert (_points(page), _value(page)) == (before, value)
    # What was moved stays where it is.
    page.locator(".point").first.press("ArrowRight")
    page.locator("#loss").select_option("dcl")
    assert _points(page)[0][1] == before[0][1] + 1
    # Two samples of one color are no two pairs: those of another scene are shown, with a word.
    page.goto(page.url.split("#")[0] + "#preset=quadrants&points=s0:0,s0:30")
    page.wait_for_function("document.querySelector('#preset-title').textContent === 'Points of your own'")
    page.locator("#loss").select_option("info_nce")
    assert "two or more pairs q, k of a color each: those of “Three pairs”" in page.locator("#status").inner_text()


@pytest.mark.parametrize(("preset", "table"), [("easy", temperature_easy), ("hard", temperature_hard)])
def test_published_tables_are_those_of_the_package(explorer, preset, table):
    page = explorer(f"preset={preset}")
    for row, published in enumerate(table.TABLE.rows()):
        line = page.locator("#published tbody tr").nth(row)
        cell = published["loss"]
        assert line.locator("td").first.inner_text() == cell.published
        assert float(line.locator("td").nth(1).get_attribute("data-value")) == pytest.approx(cell.computed, rel=1e-9)
        line.locator("button").click()
        assert _value(page) == pytest.approx(cell.computed, rel=1e-9)
        softmax = [published[f"softmax[{k}]"] for k in range(4)]
        bars = page.locator(".bars li")
        assert [bars.nth(k).locator(".printed").inner_text() for k in range(4)] == [one.published for one in softmax]
        for k, one in enumerate(softmax):
            here = float(bars.nth(k).locator(".number").get_attribute("data-value"))
            assert here == pytest.approx(one.computed, rel=1e-9)
    limits = [float(one) for one in page.eval_on_selector_all("#limits b", "all => all.map(one => one.dataset.value)")]
    gap = max(0.0, max(table.SIMILARITIES[1:]) - table.SIMILARITIES[0])
    assert limits == pytest.approx([gap, math.log(4)], abs=1e-12)


def test_every_preset_in_every_window(explorer, accessibility_faults, window, screenshots):
    name, options = window
    page = explorer("preset=quadrants", **options)
    for preset in PRESETS:
        page.locator(f"[data-preset={preset}]").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), preset
        here = page.eval_on_selector_all("#published tbody tr", "rows => rows.map(row => row.innerText.split('\\t'))")
        # Of the quadrants and of the tables, what is here is what is written beside it.
        if preset == "quadrants":
            assert all(row[1] == row[2] for row in here)
        page.screenshot(path=screenshots / f"explorer-{preset}-{name}.png", full_page=True)
        if preset in ("hard", "margin", "quadrants"):
            assert accessibility_faults(page) == []


def test_without_scripts_it_says_what_it_needs(open_page, serve):
    page = open_page(f"{serve(EXPLORER)}/index.html", java_script_enabled=False)
    page.wait_for_selector("#not-started", state="visible")
    assert "python -m http.server" in page.locator("#not-started").inner_text()
