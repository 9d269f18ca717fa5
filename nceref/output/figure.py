"""The parts of a figure: its declaration, style and palette, and labels that stand beside what they name."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Okabe & Ito's colors, which color-blind readers tell apart.
BLACK, BLUE, VERMILLION, GREEN = "#000000", "#0072b2", "#d55e00", "#009e73"
PURPLE, ORANGE, SKY = "#cc79a7", "#e69f00", "#56b4e9"
COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GRAY = "#767676"
SHADE = "#ececec"
"""The color of a part of the axes that is set apart."""

WIDTH = 3.4
"""The width of half a column, in inches."""

_TITLE = 0.18
"""The height of a line of the title, in inches."""

SMALL = 7.0
"""The size of the smallest letters on a figure, in points."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 8.0,
    "figure.titlesize": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "figure.constrained_layout.use": True,
    "savefig.dpi": 400.0,
    # The page is seen through the axes.
    "axes.facecolor": "none",
    # Letters are drawn as paths, so that no font is needed to look at them, and ids are hashes of what they name.
    "svg.fonttype": "path",
    # TrueType, which publishers ask for.
    "pdf.fonttype": 42,
    "svg.hashsalt": "nceref",
}


_PROGRAMS = {"svg": ("Date", "Creator"), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
"""Metadata that is left out, by format: a date, a version or the name of a program."""
_ON_DARK = {BLACK: "#e6e6e6", "#ffffff": "#14181e", SHADE: "#2d333b", SKY: SKY}
"""The colors of black, white, shade and sky in an SVG on a dark page; every other color becomes lighter."""


@dataclass(frozen=True)
class Figure:
    """One figure, named like its file in `nceref.theory.figures`.

    `title` is what it shows, in a line that stands above it; `source` is what it is drawn after, and where its formulas
    were read; `claims` are those that it shows, as in ``WL-13``. `data()` returns everything that is drawn, computed
    now: arrays of floats by name, and `draw(canvas, data)` puts it on an empty matplotlib figure in the style of the
    package. The height is in inches, without the title; every figure is 3.4 wide. `command` is what draws it; empty:
    ``nceref figures NAME``. `aliases` are other names that it is asked for by: former ones, and those of the tables
    that it draws.
    """

    name: str
    title: str
    caption: str
    source: str
    claims: tuple[str, ...]
    data: Callable[[], Mapping[str, Any]]
    draw: Callable[["Canvas", Mapping[str, Any]], None]
    height: float = 2.4
    command: str = ""
    aliases: tuple[str, ...] = ()


def render(figure: Figure, data: Mapping[str, Any], suffix: str) -> bytes:
    """One figure as SVG, PNG or PDF: the same bytes for the same data and tools, whatever the user's settings are.

    The data are those of `figure.data()`, or others of that shape.
    """
    with style():
        canvas, paper = compose(figure, data), io.BytesIO()
        # Of the three, only an SVG can follow the page it stands on; black letters on a dark one would be lost.
        ground = "none" if suffix == "svg" else "white"
        canvas.savefig(paper, format=suffix, facecolor=ground, metadata=dict.fromkeys(_PROGRAMS[suffix]))
    return with_dark_theme(paper.getvalue()) if suffix == "svg" else paper.getvalue()


def with_dark_theme(svg: bytes) -> bytes:
    """Add the colors for a dark page to an SVG of Matplotlib.

    They stand in a style sheet beside the colors of the elements, which stay: a program that knows no style sheets
    shows the picture for a white page.
    """
    text = svg.decode()
    used = sorted(set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", text)))
    # What is black has no `fill` of its own.
    rules = [f"svg{{fill:{_ON_DARK[BLACK]}}}"]
    rules += [f'[style*="{what}: {color}"]{{{what}:{_on_dark(color)} !important}}' for what, color in used]
    sheet = "@media (prefers-color-scheme: dark){" + "".join(rules) + "}"
    return text.replace("</style>", f"{sheet}</style>", 1).encode()


def _on_dark(color: str) -> str:
    """The shade of a color that can be read on a dark page; letters are lighter than the line they name."""
    lines = {ink(one): one for one in (*COLORS, GRAY)}
    white = 0.65 if color in lines else 0.4
    channels = (int(lines.get(color, color)[i : i + 2], 16) for i in (1, 3, 5))
    shade = "#" + "".join(f"{round((1 - white) * x + white * 255):02x}" for x in channels)
    return _ON_DARK.get(color, shade)


@contextmanager
def style() -> Iterator[None]:
    """The settings of the figures, over the defaults of matplotlib and not over those of the user."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def compose(figure: Figure, data: Mapping[str, Any]) -> "Canvas":
    """Put a figure on a canvas of its size; within `style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    # Not by pyplot, which holds on to its figures and may open a window.
    canvas = Canvas(figsize=(WIDTH, figure.height + _TITLE))
    FigureCanvasAgg(canvas)
    figure.draw(canvas, data)
    canvas.suptitle(figure.title, x=0.005, ha="left", weight="bold")
    return canvas


def ink(color: str) -> str:
    """The shade of a color in which small letters can be read on white."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"#{red * 2 // 3:02x}{green * 2 // 3:02x}{blue * 2 // 3:02x}"


def write(axes: "Axes", text: str, at: tuple[float, float], color: str = BLACK, **options: Any) -> None:
    """Put words at a point of the data.

    The color is that of the thing that is named; the letters are darker. The option ``offset`` from the point is in
    points of 1/72 inch; others are those of `Axes.annotate`.
    """
    offset = options.pop("offset", (0, 0))
    axes.annotate(text, at, offset, color=ink(color), fontsize=SMALL, textcoords="offset points", **options)


def point(axes: "Axes", at: Any, color: str = BLACK) -> list[Any]:
    """Mark points: a dot with a white rim, which stays visible on a line of its own color; returns the marks."""
    return axes.plot(*at, "o", color=color, markersize=4.5, markeredgecolor="white", markeredgewidth=0.7, clip_on=False)


def name_ends(axes: "Axes", ends: Iterable[tuple[float, str, str]], least: float = 0.085) -> None:
    """Name curves at their right ends: (y, text, color) each, moved apart where they would touch.

    The places depend on the limits of the axes, which must be set. `least` is the distance of two names, in heights of
    the axes.
    """
    sorted_ends = sorted(ends)
    # Distances of names are those on paper, so they are taken after a logarithmic scale.
    to_axes = axes.transScale + axes.transLimits
    wanted = [float(to_axes.transform((axes.get_xlim()[1], y))[1]) for y, _, _ in sorted_ends]
    for height, (_, text, color) in zip(spread(wanted, least), sorted_ends, strict=True):
        axes.annotate(
            text,
            (1.0, height),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            color=ink(color),
            fontsize=SMALL,
        )


def spread(heights: Sequence[float], least: float) -> list[float]:
    """Move sorted heights apart, as little as possible, until neighbors differ by `least`.

    Both are in rising order.
    """
    # Groups of neighbors that touch, as (center, count). Two that overlap merge around their common mean, where the
    # sum of squared moves is least. The 1e-12 keeps rounding from merging names that are just far enough apart.
    groups: list[tuple[float, int]] = []
    for height in heights:
        groups.append((height, 1))
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < least * (groups[-1][1] + groups[-2][1]) / 2 - 1e-12:
            (high, n), (low, m) = groups.pop(), groups.pop()
            groups.append(((high * n + low * m) / (n + m), n + m))
    return [center + least * (i - (count - 1) / 2) for center, count in groups for i in range(count)]
