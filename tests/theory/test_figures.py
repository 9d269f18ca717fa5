"""The figures: what they show holds, their words can be read, and a folder of them is checked by data and bytes."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import cos, exp, log, pi, radians, sin, sqrt
from pathlib import Path

import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref import InputError
from nceref.output.figure import BLUE, COLORS, SHADE, SKY, SMALL, Figure, compose, ink, render, spread, style
from nceref.theory import figure_files, limits
from nceref.theory.figures import class_bounds, contrastive_vs_simple, limit_infinity, limit_zero, temperature_easy_hard
from nceref.theory.tables.contrastive_vs_simple import LOSSES, TABLE
from nceref.training.quadrants import samples

pytestmark = pytest.mark.machine

FIGURES = figure_files.figures()
COMMITTED = Path(__file__).parents[2] / "figures"
ROUNDING = 1e-13

every_figure = sweep("figure", FIGURES.values(), ids=list(FIGURES))


@cache
def data(name):
    return FIGURES[name].data()


@every_figure
def test_a_figure_says_what_it_shows(figure):
    assert figure.title
    assert "\n" not in figure.title
    assert not figure.title.endswith(".")
    assert figure.caption.endswith(".")
    assert figure.source
    assert not figure.source.endswith(".")
    assert figure.claims
    assert all(re.fullmatch(r"[A-Z]+-\d+", claim) for claim in figure.claims)


@every_figure
def test_data_are_finite_floats(figure):
    for values in data(figure.name).values():
        assert values.dtype == np.float64
        assert values.size
        assert np.isfinite(values).all()


DRAWN = ("arcface-target", "quadrants", "extra-loss", "limit-zero")
"""Angles, a map, points and curves."""


@pytest.mark.parametrize("name", partly_slow(FIGURES, DRAWN.__contains__, "draws every figure, and they change seldom"))
def test_words_are_large_enough_whole_and_apart(name, monkeypatch):
    from matplotlib.text import Text

    figure, drawn, draw = FIGURES[name], {}, Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn[text] = text.get_window_extent(renderer)
        draw(text, renderer)

    monkeypatch.setattr(Text, "draw", record)
    with style():
        canvas = compose(figure, data(name))
        canvas.canvas.draw()
    shown = list(drawn.items())
    assert len(shown) >= 4
    assert [text.get_text() for text in drawn].count(figure.title) == 1
    for i, (text, box) in enumerate(shown):
        assert text.get_fontsize() >= SMALL
        assert min(box.x0, box.y0) >= 0, text
        assert max(box.x1 - canvas.bbox.width, box.y1 - canvas.bbox.height) <= 0, text
        for other, beside in shown[:i]:
            # A box has room for the highest and lowest letters, whether they are there or not.
            assert overlap(box, beside) <= 0.2 * min(box.height, beside.height), (text, other)


def overlap(a, b):
    across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return up if across > 1 and up > 0 else 0.0


@every_figure
def test_committed_pictures_can_be_read_on_white_and_on_dark(figure):
    from PIL import Image

    svg = _text(f"{figure.name}.svg")
    # The first patch is the page.
    assert re.search(r'<g id="patch_1">\s*<path d="[^"]*" style="fill: none"', svg)
    sheet, shades = on_dark(svg)
    assert sheet.startswith("svg{fill:#")
    assert shades.keys() == set(re.findall(r'(fill|stroke): (#[0-9a-f]{6})[;"]', svg.replace(sheet, "")))
    for (_, color), shade in shades.items():
        if color not in ("#ffffff", SHADE):
            assert contrast(shade, DARK) >= 4.5, color
    with Image.open(COMMITTED / f"{figure.name}.png") as picture:
        assert picture.width == 1360
        assert picture.convert("RGBA").getchannel("A").getextrema() == (255, 255)


DARK = "#14181e"
"""The ground of the documentation, where it is dark."""


def on_dark(svg):
    """The style sheet of an SVG for a dark page, and the shade of each kind and color in it."""
    sheet = re.search(r"@media \(prefers-color-scheme: dark\)\{(.*)\}</style>", svg)[1]
    rules = re.findall(r'\[style\*="(fill|stroke): (#\w{6})"\]\{(\w+):(#\w{6}) !important\}', sheet)
    assert all(what == changed for what, _, changed, _ in rules)
    return sheet, {(what, color): shade for what, color, _, shade in rules}


def test_names_can_be_read_on_a_dark_band():
    _, shades = on_dark(_text("limit-zero.svg"))
    opacity = float(re.search(rf"fill: {SKY}; fill-opacity: ([\d.]+)", _text("limit-zero.svg"))[1])
    pairs = [(int(shades["fill", SKY][i : i + 2], 16), int(DARK[i : i + 2], 16)) for i in (1, 3, 5)]
    band = "#" + "".join(f"{round(opacity * above + (1 - opacity) * below):02x}" for above, below in pairs)
    for name in (BLUE, SKY):
        assert contrast(shades["fill", ink(name)], band) >= 4.5


def _text(name):
    return (COMMITTED / name).read_text(encoding="utf-8")


def words_of(name, shown):
    """What stands on a figure, panel by panel; the title of the panel first."""
    with style():
        panels = compose(FIGURES[name], shown).axes
        return [[axes.get_title(), *(text.get_text() for text in axes.texts)] for axes in panels]


def test_quadrants_are_sorted_and_count_what_is_covered():
    rng = np.random.default_rng(0)
    features = rng.uniform(-0.9, 0.9, (4, 100, 2))
    features[3, samples.LABELS == 1] = [1, -1]
    features[3, samples.LABELS == 2] = [-1, 1]
    features[3, np.flatnonzero(samples.LABELS == 2)[:3]] = 0.5
    shown = {"temperature": np.array([0.05, 0.5, 0.05, 0.001]), "features": features}
    panels = [[word for word in panel if word] for panel in words_of("quadrants", shown)]
    lengths = [f"{np.hypot(*one.T).mean():.2f}" for one in features[[1, 0, 2, 3]]]
    titles = ["τ = 0.5", "τ = 0.05", "τ = 0.05, repeated", "τ = 0.001"]
    assert [panel[:2] for panel in panels] == list(map(list, zip(titles, lengths, strict=True)))
    assert [panel[2:] for panel in panels] == [[], [], [], ["25", "22"]]


def test_published_dots_stand_where_they_are_published():
    shown = data("temperature-easy-hard")
    with style():
        canvas = compose(FIGURES["temperature-easy-hard"], shown)
        canvas.canvas.draw()
        for axes, case in zip(canvas.axes, ("easy", "hard"), strict=True):
            dots = [line for line in axes.lines if line.get_marker() == "o"]
            tau, *published = shown[f"{case}: published"].T
            for line, y in zip(dots, published, strict=True):
                expected = axes.transData.transform(np.stack([tau, y], axis=1))
                assert line.get_transform().transform(line.get_xydata()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sizes", "members"),
    [
        (contrastive_vs_simple.SIZES, contrastive_vs_simple.PAPER),
        (temperature_easy_hard.SIZES, temperature_easy_hard.TABLES["hard"].SIMILARITIES),
    ],
)
def test_no_dot_covers_one_on_the_same_place(sizes, members):
    assert len(sizes) == len(members)
    assert all(later < earlier for earlier, later in pairwise(sizes))


def test_bounds_of_classes_are_shown_whole():
    with style():
        canvas = compose(FIGURES["class-bounds"], data("class-bounds"))
        canvas.canvas.draw()
        for axes in canvas.axes:
            inside = axes.get_window_extent()
            for line in axes.lines:
                values = axes.transData.transform(line.get_xydata())[:, 1]
                assert inside.y0 <= values.min() < values.max() <= inside.y1


def contrast(color, ground):
    """As WCAG 2.1 defines it, which asks for 4.5 at level AA."""
    lights = []
    for one in (color, ground):
        shares = [int(one[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


@sweep("color", COLORS)
def test_names_of_curves_have_contrast_to_white(color):
    assert contrast(ink(color), "#ffffff") >= 4.5


def test_names_are_spread_as_little_as_possible():
    assert spread([0.1, 0.5], 0.1) == [0.1, 0.5]
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    moved = spread([0.0, 0.09, 0.18, 0.9], 0.1)
    assert min(np.diff(moved)) == pytest.approx(0.1)
    assert moved[-1] == 0.9


@pytest.mark.parametrize("case", limit_zero.CASES)
def test_low_temperature_stays_in_its_band(case):
    shown = data("limit-zero")
    value, low, high = (shown[f"{case}: {what}"] for what in ("tau L", "low", "high"))
    assert (low - ROUNDING <= value).all()
    assert (value <= high + ROUNDING).all()
    assert value[0] == pytest.approx(max(limit_zero.gap(limit_zero.CASES[case]), 0), abs=0.01 * log(4))


@pytest.mark.parametrize("case", limit_infinity.CASES)
def test_high_temperature_stays_in_its_band(case):
    shown = data("limit-infinity")
    value, line, high = (shown[f"{case}: {what}"] for what in ("loss", "line", "high"))
    assert (line - ROUNDING <= value).all()
    assert (value <= high + ROUNDING).all()
    assert (value[0], line[0]) == pytest.approx((log(4), log(4)), rel=1e-15)


def test_log_n_is_a_line_in_every_panel_of_the_high_temperature():
    with style():
        for axes in compose(FIGURES["limit-infinity"], data("limit-infinity")).axes:
            assert any(np.ptp(y) == 0 and y[0] == log(4) for y in (line.get_ydata() for line in axes.lines))


def test_the_minimum_is_found_where_the_source_denies_it():
    shown = data("limit-minimum")
    best, lowest = shown["minimum"]
    s = (0.25, 0.5, -0.45, -0.1)
    weights = [exp(x / best) for x in s]
    assert round(best, 4) == 0.5629  # the issue, from the second table of source 003
    assert sum(w * x for w, x in zip(weights, s, strict=True)) / sum(weights) == pytest.approx(s[0], rel=1e-13)
    assert shown["loss"].min() >= lowest
    assert abs(np.argmin(shown["loss"]) - np.searchsorted(shown["temperature"], best)) <= 1
    assert shown["published"].tolist() == [[1.0, 1.2486], [0.5, 1.2214]]  # source 003


def test_the_force_peaks_where_its_formula_says():
    shown = data("sphere-force")
    step = shown["angle"][1]
    for tau, force, s, angle in zip(
        shown["temperature"], shown["force"], shown["peak similarity"], shown["peak angle"], strict=True
    ):
        assert abs(shown["angle"][np.argmax(force)] - angle) <= step
        assert s == pytest.approx((sqrt(tau * tau + 4) - tau) / 2, rel=1e-14)
        assert force.max() == pytest.approx(1, abs=1e-3)
        assert force[0] == 0
        at = radians(100)
        ratio = exp((cos(at) - s) / tau) * sin(at) / sqrt(1 - s * s)
        assert np.interp(100, shown["angle"], force) == pytest.approx(ratio, rel=1e-12)


def test_softmax_adds_up_and_passes_through_the_published_points():
    shown = data("temperature-easy-hard")
    for case in ("easy", "hard"):
        curves = shown[f"{case}: probabilities"]
        assert curves.sum(axis=1) == pytest.approx(1, rel=1e-14)
        for tau, *printed in shown[f"{case}: published"]:
            at = [np.interp(tau, shown["temperature"], curve) for curve in curves.T]
            assert at == pytest.approx(printed, abs=2e-3)


def test_relative_penalties_follow_the_law_of_boltzmann():
    shown = data("relative-penalty")
    assert shown["penalty"].mean(axis=1) == pytest.approx(1, rel=1e-13)
    slopes = np.diff(np.log(shown["penalty"]), axis=1) / np.diff(shown["similarity"])
    assert slopes == pytest.approx(np.repeat(1 / shown["temperature"][:, None], slopes.shape[1], 1), rel=1e-9)


@pytest.mark.parametrize(("case", "tied"), [("one hardest", 1), ("two tied hardest", 2), ("all tied", 3)])
def test_entropy_rises_from_log_m_to_log_k(case, tied):
    entropy = data("entropy-temperature")[case]
    assert (np.diff(entropy) >= -ROUNDING).all()
    assert entropy[0] == pytest.approx(log(tied), abs=1e-6)
    assert entropy[-1] == pytest.approx(log(3), abs=1e-3)


def test_the_extra_loss_has_its_minimum_at_0_71():
    shown = data("extra-loss")
    best, lowest = shown["minimum"]
    assert round(best, 2) == 0.71  # source 004
    assert best == pytest.approx(1 / (1 + 0.05 * 8.192), rel=1e-15)
    assert (shown["extra loss"] >= lowest).all()
    assert (np.diff(shown["extra loss"], 2) > 0).all()
    assert abs(shown["probability"][np.argmin(shown["extra loss"])] - best) <= np.diff(shown["probability"])[0]


def test_the_contrastive_part_ends_at_its_floor():
    shown = data("supcon-part")
    assert shown["supcon"][-1] == pytest.approx(8.192 * log(8.192), rel=1e-13)
    assert (shown["supcon"] >= shown["floor"][0] - ROUNDING).all()
    assert shown["probability"][-1] == pytest.approx(1 / 1.4096, rel=1e-15)
    assert 1 - shown["probability"][-1] == pytest.approx(8.192 * 0.05 / 1.4096, rel=1e-14)


def test_pair_probabilities_are_those_of_the_source():
    shown = data("pair-probability")
    expected = [1 / (1 / alpha + shown["positives"]) for alpha in shown["alpha"]]
    assert shown["probability"] == pytest.approx(np.array([1 / shown["positives"], *expected]), rel=1e-14)


def test_class_bounds_part_most_at_the_marked_alpha():
    shown = data("class-bounds")
    total, normalized = (shown[form][0] - shown[form][-1] for form in ("sum", "normalized"))
    assert (np.diff(total) > 0).all()
    widest = np.searchsorted(shown["alpha"], shown["widest"][0])
    assert abs(np.argmax(normalized) - widest) <= 1
    assert shown["widest"][0] == 1 / sqrt(class_bounds.POSITIVES[0] * class_bounds.POSITIVES[-1])


def test_the_margin_is_read_from_the_loss():
    shown = data("arcface-target")
    beyond, turn = shown["angle beyond"], np.argmin(shown["margin"])
    assert shown["no margin"] == pytest.approx(np.cos(shown["angle"]), abs=1e-12)
    assert shown["margin"] == pytest.approx(np.cos(shown["angle"] + 0.5), abs=1e-12)
    assert shown["fallback"] == pytest.approx(np.cos(beyond) - 0.5 * sin(0.5), abs=1e-12)
    assert abs(shown["angle"][turn] - (pi - 0.5)) <= shown["angle"][1]
    assert shown["margin"][-1] > shown["margin"][turn]


def test_gradient_descent_aligns_the_pairs_and_spreads_them():
    shown = data("alignment-uniformity")
    (_, clumped), (aligned, spread_out) = shown["before"], shown["after"]
    n = len(shown["x after"])
    evenly = log(np.mean([exp(-4 * (1 - cos(2 * pi * k / n))) for k in range(1, n)]))
    assert aligned < 1e-3
    assert clumped > -1.2
    assert spread_out == pytest.approx(evenly, abs=1e-3)
    assert f"{evenly:.3f}".replace("-", "−") in FIGURES["alignment-uniformity"].caption


def test_published_points_are_the_printed_ones_of_the_plain_losses():
    shown = data("contrastive-vs-simple")
    rows = [row for row in TABLE.rows() if row["loss"] in ("contrastive", "simple")]
    printed = [tuple(float(row[what].published) for what in ("accuracy", "uniformity", "tolerance")) for row in rows]
    drawn = np.stack([shown[name].ravel() for name in contrastive_vs_simple.MEASURES], axis=1)
    assert drawn.tolist() == [list(row) for row in printed]
    assert shown["temperature"].tolist() == [t for name, t in LOSSES if name == "contrastive"]


def test_a_width_is_a_standard_deviation_and_is_called_an_illustration():
    shown = data("temperature-width")
    for tau, curve in zip(shown["temperature"], shown["weight"], strict=True):
        assert np.interp(sqrt(tau), shown["position"], curve) == pytest.approx(exp(-0.5), abs=2e-3)
    assert FIGURES["temperature-width"].title.startswith("Illustration")


def sample(**changes):
    def draw(canvas, data):
        canvas.subplots().plot(data["x"], data["y"])

    x = np.linspace(0, 1, 11)
    plain = Figure(
        name="sample", title="A sample", caption="A line.", source="Nowhere", claims=("WL-1",),
        data=lambda: {"x": x, "y": x * x}, draw=draw,
    )  # fmt: skip
    return replace(plain, **changes)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one figure, the only one there is; bytes that follow from it stand for its pictures."""
    declare(monkeypatch, sample())
    monkeypatch.setattr(figure_files, "render", lambda figure, data, suffix: f"{figure.name} {suffix} {data}".encode())
    list(figure_files.draw(out=tmp_path))
    return tmp_path


def declare(monkeypatch, *figures):
    monkeypatch.setattr(figure_files, "figures", lambda: {figure.name: figure for figure in figures})


def findings(folder, names=()):
    return [f"{one.figure}: {finding}" for one in figure_files.check(names, folder) for finding in one.findings]


def test_a_folder_holds_both_formats_manifest_and_index(folder):
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "manifest.json", "sample.png", "sample.svg"]
    entry = json.loads((folder / "manifest.json").read_text())["sample"]
    assert entry["claims"] == ["WL-1"]
    assert entry["command"] == "nceref figures sample"
    assert entry["drawn with"] == figure_files.tools()
    page = (folder / "README.md").read_text()
    assert all(word in page for word in ("sample.svg", "A line.", "WL-1", "`nceref figures sample`"))
    assert figure_files.check(out=folder) == [figure_files.Checked("sample"), figure_files.Checked("README.md")]


def test_changed_data_are_drift(folder, monkeypatch):
    x = np.linspace(0, 1, 11)
    declare(monkeypatch, sample(data=lambda: {"x": x, "y": x * x + 1e-7}))
    monkeypatch.setattr(figure_files, "tools", lambda: {"matplotlib": "1.0"})
    assert findings(folder) == ["sample: the data behind it changed"]


def test_changed_words_are_drift(folder, monkeypatch):
    declare(monkeypatch, sample(caption="Another line."))
    assert findings(folder) == ["sample: the caption changed"]


def test_changed_bytes_are_drift(folder):
    path = folder / "sample.svg"
    path.write_bytes(path.read_bytes() + b"\n")
    assert findings(folder) == ["sample: sample.svg has other bytes than would be drawn now"]


def test_bytes_are_not_compared_with_those_of_another_matplotlib(folder, monkeypatch):
    path = folder / "sample.svg"
    path.write_bytes(path.read_bytes() + b"\n")
    monkeypatch.setattr(figure_files, "tools", lambda: {"matplotlib": "1.0"})
    one, _ = figure_files.check(out=folder)
    assert not one.findings
    assert one.note.startswith("bytes were not compared: drawn with platform ")
    assert one.note.endswith("here is matplotlib 1.0")


def test_missing_files_are_drift(folder):
    (folder / "sample.png").unlink()
    (folder / "README.md").unlink()
    assert findings(folder) == ["sample: sample.png is missing", "README.md: does not say what the manifest says"]


def test_new_and_removed_figures_are_drift(folder, monkeypatch):
    declare(monkeypatch, sample(name="other"))
    assert findings(folder) == [
        "other: is not in the manifest",
        "sample: is in the manifest, but there is no such figure any more",
    ]
    list(figure_files.draw(out=folder))
    assert findings(folder) == []


def test_drawing_one_figure_keeps_the_others_in_the_manifest(folder, monkeypatch):
    declare(monkeypatch, sample(), sample(name="other"))
    before = (folder / "sample.png").stat()
    written = list(figure_files.draw(["other"], folder))
    assert [path.name for path in written] == ["other.svg", "other.png", "manifest.json", "README.md"]
    assert (folder / "sample.png").stat() == before
    assert list(json.loads((folder / "manifest.json").read_text())) == ["other", "sample"]
    assert findings(folder) == findings(folder, ["sample"]) == []


def test_a_missing_or_broken_manifest_is_an_error_that_says_what_to_do(folder):
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json is not JSON: .* draw the figures again"):
        figure_files.check(out=folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"there is no .*manifest\.json; draw the figures first: nceref figures"):
        figure_files.check(out=folder)


def test_two_runs_at_once_in_one_folder_keep_both_figures(tmp_path, monkeypatch):
    declare(monkeypatch, sample(), sample(name="other"))
    monkeypatch.setattr(figure_files, "render", lambda figure, data, suffix: f"{figure.name} {suffix}".encode())
    runs = [figure_files.draw([name], tmp_path) for name in ("sample", "other")]
    # In turns: each has written its pictures before the other writes the manifest.
    for _ in range(4):
        for each in runs:
            next(each)
    assert list(json.loads((tmp_path / "manifest.json").read_text())) == ["other", "sample"]
    assert findings(tmp_path) == []


def test_every_flipped_byte_of_a_manifest_or_an_index_is_noticed(folder, monkeypatch):
    pictures = {suffix: (folder / f"sample.{suffix}").read_bytes() for suffix in ("svg", "png")}
    tools = figure_files.tools()
    monkeypatch.setattr(figure_files, "render", lambda figure, data, suffix: pictures[suffix])
    monkeypatch.setattr(figure_files, "tools", lambda: tools)
    data = figure_files.fingerprint(sample().data())
    monkeypatch.setattr(figure_files, "fingerprint", lambda _: data)
    refused = 0
    for name in ("manifest.json", "README.md"):
        content = (folder / name).read_bytes()
        damaged = [content[:i] + bytes([x ^ (1, 4, 32, 128)[i % 4]]) + content[i + 1 :] for i, x in enumerate(content)]
        for each in (*damaged, *(content[:i] for i in range(len(content)))):
            (folder / name).write_bytes(each)
            try:
                checked = figure_files.check(out=folder)
            except InputError as error:
                refused += 1
                assert "manifest.json" in str(error)  # noqa: PT017
            else:
                same = name == "manifest.json" and json.loads(each) == json.loads(content)
                assert same or any(one.findings or one.note for one in checked), each
        (folder / name).write_bytes(content)
    assert refused > 100


def test_figures_answer_to_the_names_of_their_tables_and_to_former_ones():
    from nceref.registry import names as declared

    aliases = [alias for figure in FIGURES.values() for alias in figure.aliases]
    assert len({*FIGURES, *aliases}) == len(FIGURES) + len(aliases)
    names = ["published-metrics", "softmax-temperature", "temperature-hard", "class-bounds"]
    chosen = [figure.name for figure in figure_files.chosen(names)]
    assert chosen == ["contrastive-vs-simple", "temperature-easy-hard", "class-bounds"]
    former = {"published-metrics", "softmax-temperature"}
    assert {alias.replace("-", "_") for alias in {*aliases} - former} <= set(declared("nceref.theory.tables"))


def test_an_unknown_name_suggests_near_ones(tmp_path):
    with pytest.raises(InputError, match="no figure named 'limit_zero'; did you mean 'limit-zero'"):
        figure_files.check(["limit_zero"], tmp_path)
    with pytest.raises(InputError, match="no figure named 'sphere'; did you mean 'sphere-force'"):
        next(figure_files.draw(["sphere"], tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_file_where_the_folder_should_be_is_named(tmp_path, monkeypatch):
    declare(monkeypatch, sample())
    (tmp_path / "figures").write_text("")
    with pytest.raises(OSError, match=r"cannot write .*figures: not a directory"):
        next(figure_files.draw(out=tmp_path / "figures"))


@pytest.mark.parametrize("given", [((0.5, 0.6), (0.2, 0.21)), ((-0.987654, *[0.12345] * 998), (1e-6, 1e-5))])
def test_titles_of_an_own_case_are_whole(given):
    figure = limits.own_case(*given)
    with style():
        canvas = compose(figure, figure.data())
        canvas.canvas.draw()
        for axes in canvas.axes:
            box = axes.title.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= canvas.bbox.width
            assert 0 <= box.y0 < box.y1 <= canvas.bbox.height


@pytest.mark.parametrize("s", [(0.25, 0.5, -0.45, -0.1), (0.9, -1.0), (0.5, 0.5, 0.5)])
def test_own_case_stays_in_its_bands(s):
    shown = limits.own_case(s, (0.05, 0.5)).data()
    assert shown["temperature"][[0, -1]].tolist() == [0.05, 0.5]
    assert shown["1 / temperature"][[0, -1]].tolist() == [0, 6]
    assert shown["L"][0] == pytest.approx(log(len(s)), rel=1e-14)
    for curve in ("tau L", "L"):
        value, low, high = (shown[f"{curve}{edge}"] for edge in ("", ": low", ": high"))
        assert (low - ROUNDING <= value).all()
        assert (value <= high + ROUNDING).all()


@sweep(
    ("similarities", "temperatures", "message"),
    [
        ((0.5,), (0.1, 1), "`--similarities` must be that of the positive and 1 to 999 of negatives, got 1 numbers"),
        ((0.5, 1.5), (0.1, 1), "`--similarities` must be cosines, from -1 to 1, got 1.5"),
        ((0.5, float("nan")), (0.1, 1), "`--similarities` must be cosines, from -1 to 1, got nan"),
        ((0.5, 0.1), (1, 0.1), "a lower and a higher one, from 1e-6 to 1e6, such as 0.01,1; got 1,0.1"),
        ((0.5, 0.1), (0, 1), "`--temperatures` must be a lower"),
        ((0.5, 0.1), (0.1, 1, 2), "`--temperatures` must be a lower"),
        ((0.5, 0.1), (0.1, float("inf")), "`--temperatures` must be a lower"),
    ],
)  # fmt: skip
def test_an_own_case_out_of_range_names_the_option(similarities, temperatures, message):
    with pytest.raises(InputError, match=re.escape(message)):
        limits.own_case(similarities, temperatures)


@sweep(
    ("words", "message"),
    [
        ("plot-limits --similarities 0.5;0.1", "--similarities takes numbers with commas between them"),
        ("plot-limits --similarities 0.5,0.1 --temperatures low,1", "--temperatures takes numbers with commas"),
        ("plot-limits --temperatures 0.1,1", "--temperatures goes with --similarities"),
        ("plot-limits --similarities 2,1", "`--similarities` must be cosines"),
        ("figures --list --format pdf", "it goes without --list"),
        ("figures --check --format pdf", "it goes without --check"),
        ("figures --check --list", "--list prints names and --check compares files: give one of them"),
    ],
)
def test_wrong_options_are_named(run, words, message):
    status, out, err = run(*words.split())
    assert (status, out) == (2, "")
    assert message in err


def test_a_format_is_drawn_alone_and_the_same_twice(folder, monkeypatch):
    monkeypatch.setattr(figure_files, "render", render)
    before = sorted(folder.iterdir())
    (path,) = figure_files.draw_alone([sample()], folder, ["pdf", "pdf"])
    assert path == folder / "sample.pdf"
    first = path.read_bytes()
    list(figure_files.draw_alone([sample()], folder, ["pdf"]))
    assert path.read_bytes() == first
    assert first.startswith(b"%PDF-")
    assert not re.search(rb"/(CreationDate|Creator|Producer)", first)
    assert sorted(folder.iterdir()) == sorted([*before, folder / "sample.pdf"])


def test_plot_limits_draws_the_limits():
    assert figure_files.drawn_by("nceref plot-limits") == ("limit-infinity", "limit-minimum", "limit-zero")


def test_the_hash_of_data_does_not_see_last_bits_or_the_sign_of_zero():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(5000) * 10.0 ** rng.integers(-8, 8, 5000)
    same = figure_files.fingerprint({"x": x})
    assert figure_files.fingerprint({"x": np.nextafter(x, np.inf)}) == same
    assert figure_files.fingerprint({"x": np.array([0.0, 1])}) == figure_files.fingerprint({"x": np.array([-0.0, 1])})
    assert figure_files.fingerprint({"x": np.array([0.0, 1])}) == figure_files.fingerprint({"x": np.array([-1e-17, 1])})


@pytest.mark.parametrize("x", [1.0, -3.7e-9, 6.1e150])
def test_the_hash_of_data_sees_the_eighth_digit(x):
    assert figure_files.fingerprint({"x": x}) != figure_files.fingerprint({"x": x * (1 + 2e-8)})


def test_the_hash_of_data_sees_names_and_shapes():
    x = np.arange(6.0)
    hashes = {figure_files.fingerprint(one) for one in ({"x": x}, {"y": x}, {"x": x.reshape(2, 3)}, {"x": x, "y": x})}
    assert len(hashes) == 4


def test_data_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="must be finite, got nan"):
        figure_files.fingerprint({"x": np.array([1.0, np.nan])})


@pytest.mark.parametrize("suffix", figure_files.FORMATS)
def test_bytes_depend_on_no_setting_of_the_user_and_on_no_clock(suffix, monkeypatch):
    import matplotlib as mpl

    figure = FIGURES["extra-loss"]
    first = render(figure, data("extra-loss"), suffix)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 20, "svg.fonttype": "none", "savefig.dpi": 30}):
        assert render(figure, data("extra-loss"), suffix) == first
        assert mpl.rcParams["lines.linewidth"] == 9
    assert not re.search(rb"20\d\d-\d\d-\d\d|[Mm]atplotlib version|Software|tIME", first)


def test_the_committed_figures_have_the_data_and_words_of_today(monkeypatch):
    declare(monkeypatch, *(replace(figure, data=partial(data, figure.name)) for figure in FIGURES.values()))
    # Bytes of another Matplotlib are not compared, so nothing is drawn.
    monkeypatch.setattr(figure_files, "tools", lambda: {"matplotlib": "1.0"})
    assert findings(COMMITTED) == []


@pytest.mark.slow(reason="draws all figures in both formats; data and words are compared in `make test`")
def test_the_committed_figures_are_what_would_be_drawn():
    assert findings(COMMITTED) == []


def test_nothing_is_drawn_before_it_is_asked_for():
    code = "import sys; from nceref.theory import figure_files as f; f.figures(); sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ, timeout=60)


def test_the_list_is_a_line_each_at_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("figures", "--list")
    assert status == 0
    assert len(out.splitlines()) == len(FIGURES)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", ["figures", "plot-limits"])
def test_help_says_where_files_are_written(run, command):
    text = " ".join(run(command, "--help")[1].split())
    assert "manifest.json and an index, README.md, into ./figures or the folder of --out" in text


def _steps(values, axis=0):
    return np.diff(values, axis=axis)


def _directions(features):
    return np.degrees(np.arctan2(*features.T[::-1]))


def _mean_direction(features):
    x, y = (features / np.hypot(*features.T)[:, None]).mean(axis=0)
    return np.degrees(np.arctan2(y, x))


HOLDS = {
    "Descent on both aligns pairs and spreads them out": lambda d: (d["after"] < d["before"]).all(),
    "Past π − m, ArcFace's target logit rises again": lambda d: (
        _steps(d["margin"][d["angle"] > pi - 0.5]) > 0
    ).all() and (_steps(d["margin"][d["angle"] < pi - 0.5]) < 0).all(),
    "A smaller α can widen the gap between classes": lambda d: (
        np.interp(d["widest"][0], d["alpha"], d["normalized"][0] - d["normalized"][-1])
        > (d["normalized"][0] - d["normalized"][-1])[-1] + 0.05
    ),
    "Only SupCon as a sum favors frequent classes": lambda d: [
        np.polyfit(np.log(d["samples"]), np.log(pull), 1)[0] > 0 for pull in d["pull"]
    ] == [True, False, False, False],
    "The contrastive loss is most accurate at τ = 0.3": lambda d: (
        d["temperature"][np.argmax(d["accuracy in percent"][:, :-1], axis=1)] == 0.3
    ).all() and (np.argmax(d["accuracy in percent"], axis=1) < len(d["temperature"])).all(),
    "A higher temperature evens out the penalties": lambda d: all(
        (_steps(d[case]) > -ROUNDING).all() and abs(d[case][-1] - log(3)) < 1e-3
        for case in d if case != "temperature"
    ),
    "L_extra is least at P_sup = 0.71": lambda d: (
        f"{d['minimum'][0]:.2f}" == "0.71" and d["extra loss"].min() >= d["minimum"][1]
    ),
    "At high temperature the loss tends to log N": lambda d: all(
        d[f"{case}: loss"][0] == pytest.approx(log(4), rel=1e-14) for case in ("easy", "hard")
    ),
    "With a hard negative, the loss is least at τ = 0.56": lambda d: (
        f"{d['minimum'][0]:.2f}" == "0.56" and d["loss"].min() >= d["minimum"][1]
    ),
    "At low temperature τ L tends to max(Δ, 0)": lambda d: all(
        d[f"{case}: tau L"][0] == pytest.approx(max(limit_zero.gap(s), 0), abs=0.02)
        for case, s in limit_zero.CASES.items()
    ),
    "A smaller α lowers the probability of every pair": lambda d: (_steps(d["probability"]) < 0).all(),
    "At τ = 0.001 nearly all lie in two directions": lambda d: (
        d["temperature"][-1] == 0.001
        and (np.abs((_directions(d["features"][-1]) + 45 + 90) % 180 - 90) < 5).sum() >= 90
    ),
    "Untrained, opposite quadrants point opposite ways": lambda d: all(
        abs(abs(_mean_direction(points[a == samples.LABELS]) - _mean_direction(points[b == samples.LABELS])) - 180) < 15
        for points in d.values() for a, b in ((0, 2), (1, 3))
    ),
    "A lower temperature pushes the hardest harder": lambda d: (_steps(d["penalty"][:, -1]) < 0).all(),
    "A negative at contact exerts no force": lambda d: not d["force"][:, 0].any(),
    "L_supcon falls with P_sup, but only to K log K": lambda d: (
        (_steps(d["supcon"]) < 0).all() and d["supcon"][-1] == pytest.approx(8.192 * log(8.192), rel=1e-13)
    ),
    "A lower temperature favors the most similar": lambda d: all(
        (_steps(d[f"{case}: probabilities"].max(axis=1)) <= 0).all()
        and (np.argmax(d[f"{case}: probabilities"], axis=1) == best).all()
        for case, best in (("easy", 0), ("hard", 1))
    ),
    "Illustration: a lower temperature is narrower": lambda d: (
        (_steps(d["temperature"]) > 0).all() and (_steps((d["weight"] > 0.5).sum(axis=1)) > 0).all()
    ),
}  # fmt: skip
"""What each title says, of the data that are drawn."""


@every_figure
def test_a_title_is_true_of_what_is_drawn(figure):
    assert HOLDS[figure.title](data(figure.name))


def test_figures_name_claims_that_exist():
    from nceref.theory import prove

    named = {one for figure in figure_files.figures().values() for one in figure.claims}
    assert named <= set(prove.claims())


def test_captions_speak_of_what_the_pictures_show():
    # An axis that ends at alpha = 1; equal logits at pi - m / 2; one loss at three temperatures.
    assert "10" not in re.sub(r"\d+\.\d+", "", FIGURES["class-bounds"].caption)
    margin, plain, angle = (data("arcface-target")[key] for key in ("margin", "no margin", "angle"))
    assert ((margin < plain) == (angle < pi - 0.25)).all()
    assert "lowers the logit up to θ = π − m/2" in FIGURES["arcface-target"].caption
    assert "approaches its infimum" in FIGURES["pair-probability"].caption
    for accuracy, *_ in contrastive_vs_simple.PAPER.values():
        by_loss = {key: float(x) for key, x in zip(LOSSES, accuracy, strict=True)}
        best = {
            loss: max((x, t) for (name, t), x in by_loss.items() if name == loss) for loss in ("contrastive", "hard")
        }
        assert best["contrastive"][1] == 0.3
        assert best["hard"][1] in (0.7, 1)
        assert best["hard"][0] > by_loss["simple", None]


def test_class_gradients_are_those_of_the_analogue():
    shown = data("class-gradients")
    slopes = [np.polyfit(np.log(shown["samples"]), np.log(curve), 1)[0] for curve in shown["pull"]]
    # A slope of means over seeds is near the mean of their slopes; rarer classes pull less for the sum alone.
    assert slopes[0] > 0.3 > -0.2 > max(slopes[1:3])
    assert abs(slopes[3]) < 0.1
    for slope, recorded in zip(slopes, re.findall(r"[+−]\d\.\d\d", FIGURES["class-gradients"].caption), strict=True):
        assert abs(slope - float(recorded.replace("−", "-"))) < 0.06
