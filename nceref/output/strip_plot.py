"""A strip plot as inline SVG: errors in units of their bounds, on a logarithmic axis, with the bound as a line."""

import math
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from nceref.output.html_elements import Markup, element, join, link

HEIGHT = 128
NARROWEST = 220
"""Width of a plot, in pixels, where many stand beside one another."""
_PAGE, _GAP = 976, 24
"""The width of a page of a report, and the gap between two plots, in pixels."""
_LEFT, _TOP, _BOTTOM = 36, 24, 108
_LANE = 9
"""The height of marks of errors that are not finite."""
LETTERS = 9
LEAST = 1e-3
"""The least error over bound on the plot: smaller ones, none of which matters, stand at its foot."""
_SPREAD, _APART = 14.0, 4.0
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Mark:
    """One result: its temperature or its number, error over bound (None: not finite), and the name that it leads to."""

    x: float
    y: float | None
    passes: bool
    name: str
    anchor: str = ""


@dataclass(frozen=True)
class Axes:
    """The axes that all plots of a document share, so that they can be compared; `low` and `high` are ends of `x`."""

    low: float
    high: float
    top: float
    logarithmic: bool = True
    width: int = NARROWEST

    @property
    def right(self) -> int:
        """The right end of the axis."""
        return self.width - 5

    def x(self, value: float) -> float:
        """The place of a temperature on the axis."""
        ends = [math.log(each) if self.logarithmic else each for each in (self.low, self.high, value)]
        share = (ends[2] - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5
        return _LEFT + 10 + share * (self.right - _LEFT - 20)

    def y(self, ratio: float | None) -> float:
        """The height of an error in units of its bound; None is the lane of errors that are not finite."""
        if ratio is None:
            return _LANE
        # A quotient may be out of range.
        least = math.log(LEAST)
        share = (math.log(min(max(ratio, LEAST), self.top)) - least) / (math.log(self.top) - least)
        return _BOTTOM - share * (_BOTTOM - _TOP)


def axes_of(marks: Sequence[Mark], logarithmic: bool = True, beside: int = 4) -> Axes:
    """Axes on which all marks have a place, as wide as a page has room for where so many plots stand beside another."""
    finite = [mark.y for mark in marks if mark.y is not None and math.isfinite(mark.y)]
    # Beyond 1e308 there is no power of ten.
    top = 10.0 ** min(max(math.ceil(math.log10(max([10.0, *finite]))), 1), 308)
    places = [mark.x for mark in marks] or [1.0]
    width = max(_PAGE // max(beside, 1) - _GAP, NARROWEST)
    return Axes(min(places), max(places), top, logarithmic, width)


def strip_plot(marks: Sequence[Mark], axes: Axes, names: Container[str] = ()) -> Markup:
    """The picture; readers who cannot see it are served by the words beside it, so it is hidden from them.

    Its marks are links, where what they lead to is among the `names`.
    """
    bound = axes.y(1.0)
    size = {"width": axes.right - _LEFT, "height": f"{_BOTTOM - bound:.1f}"}
    paper = [
        element("rect", x=_LEFT, y=f"{bound:.1f}", **size, class_="within", fill="#0072B2", fill_opacity="0.1"),
        _line(axes, bound, "bound", "#767676"),
        _line(axes, _BOTTOM, "axis", "#767676"),
        _label(_LEFT - 4, bound + 3, "bound", "end"),
        _label(_LEFT - 4, _TOP + 4, power(axes.top), "end"),
    ]
    # The labels of a wide axis would stand on one another.
    if _BOTTOM - bound > 2 * LETTERS:
        paper.append(_label(_LEFT - 4, _BOTTOM + 1, power(LEAST), "end"))
    if any(mark.y is None for mark in marks):
        paper.append(_label(_LEFT - 4, _LANE + 3, "NaN", "end"))
    places = spread(marks, axes)
    made = [(_kind(m), _shape(m, x, axes.y(m.y), m.anchor in names)) for m, x in zip(marks, places, strict=True)]
    shapes = {kind: [shape for own, shape in made if own == kind] for kind in _KINDS}
    groups = [element("g", inside, class_=kind, **_KINDS[kind]) for kind, inside in shapes.items() if inside]
    ticks = [_label(axes.x(t), HEIGHT - 6, f"{t:g}", "middle") for t in _ticks(axes)]
    view = Markup(f"0 0 {axes.width} {HEIGHT}")
    return element(
        "svg",
        paper,
        ticks,
        groups,
        viewBox=view,
        width=axes.width,
        height=HEIGHT,
        aria_hidden="true",
        focusable="false",
    )


def _ticks(axes: Axes) -> list[float]:
    if not axes.logarithmic or axes.high <= axes.low:
        return [axes.low] if axes.logarithmic else []
    decades = range(math.ceil(math.log10(axes.low) - 1e-9), math.floor(math.log10(axes.high) + 1e-9) + 1)
    return [10.0**k for k in decades]


def spread(marks: Sequence[Mark], axes: Axes) -> list[float]:
    """The places of marks from left to right: those of one temperature beside one another."""
    together = defaultdict(list)
    for number, mark in enumerate(marks):
        together[mark.x].append(number)
    places = [axes.x(mark.x) for mark in marks]
    for numbers in together.values():
        step = min(_APART, _SPREAD / len(numbers))
        for place, number in enumerate(numbers):
            places[number] += step * (place - (len(numbers) - 1) / 2)
    return places


def _line(axes: Axes, y: float, kind: str, color: str) -> Markup:
    return element("line", x1=_LEFT, x2=axes.right, y1=f"{y:.1f}", y2=f"{y:.1f}", class_=kind, stroke=color)


def _label(x: float, y: float, words: str, anchor: str) -> Markup:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size=LETTERS)


_KINDS = {
    "pass": {"fill": "#0072B2"},
    "fail": {"stroke": "#B3400C", "stroke_width": "1.7"},
    "nan": {"fill": "#B3400C"},
}
"""Colors for servers that forbid styles."""


def _kind(mark: Mark) -> str:
    return "pass" if mark.passes else "fail" if mark.y is not None else "nan"


def _shape(mark: Mark, x: float, y: float, is_link: bool) -> Markup:
    """A circle passes, a cross fails, a triangle is not finite: the shape says it, and the color again."""
    if mark.passes:
        shape = element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="2.8")
    elif mark.y is None:
        shape = element("path", d=Markup(f"M{x:.1f} {y - 4.2:.1f}l4.2 7.4h-8.4z"))
    else:
        shape = element("path", d=Markup(f"M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6"))
    named = join([element("title", mark.name), shape])
    return link(mark.anchor, named, tabindex="-1") if is_link else element("g", named)


def power(number: float) -> str:
    """A number of two digits, with a power of ten where it is far from 1.

    >>> power(4.4e14), power(1e-3), power(0.25), power(7.0), power(float("inf"))
    ('4.4×10¹⁴', '10⁻³', '0.25', '7', '∞')
    """
    if not math.isfinite(number):
        return "∞"
    plain = f"{number:.2g}"
    if number == 0 or 1e-2 <= abs(number) < 1e4:
        return f"{float(plain):g}"
    digits, _, exponent = f"{number:.1e}".partition("e")
    raised = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return raised if digits == "1.0" else f"{float(digits):g}×{raised}"
