"""The pages of derivations; nothing is written before every step of the topic has been checked (`chain`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from textwrap import wrap
from typing import Any

from nceref.errors import DeclarationError, InputError
from nceref.output.pages import FORMS, WIDTH, Math, Page
from nceref.registry import discover, pick
from nceref.theory.chain import BrokenError, Chain, Step, equal, index_ranges
from nceref.theory.proofs import prove
from nceref.theory.relations import interval

_MARGIN = 4
_WIDE = 160
"""Letters of LaTeX; commands are letters too."""


@dataclass(frozen=True, eq=False)
class Derivation:
    """One topic, named like its file in `nceref.theory.derivations`; `steps()` builds its chain."""

    name: str
    title: str
    sources: tuple[str, ...]
    steps: Callable[[], Chain]


def topics() -> Mapping[str, Derivation]:
    """Every derivation by its name."""
    discovered: Mapping[str, Derivation] = discover("nceref.theory.derivations", "DERIVATION", Derivation)
    return discovered


def get(name: str) -> Derivation:
    """The derivation of that name; an `InputError` that suggests some for a name that is not there."""
    return pick("derivation", name, topics(), "nceref derive")


@cache
def follow(derivation: Derivation) -> tuple[Chain, tuple[str, ...]]:
    """Build the chain and check all of it, once a process; returned with what was checked of each step.

    Raises `DeclarationError` for the first step that does not follow: topic, step, both sides, and what to do.
    """
    # Built only now: to list the topics, no chain is needed.
    chain = derivation.steps()
    notes = []
    for number, step in enumerate(chain.steps, 1):
        for use in step.uses:
            if use.topic:
                follow(get(use.topic[0]))
        try:
            notes.append(prove(chain, step))
        except BrokenError as broken:
            sides = f"{step.relation.lhs} {step.sign} {step.relation.rhs}"
            msg = (
                f"derivation {derivation.name!r}, step {number} ({step.rule}) does not follow by {step.check}: {sides};"
                f" {broken}. Correct this step, or the one that it builds on, in nceref/theory/derivations/"
                f"{derivation.name.replace('-', '_')}.py"
            )
            raise DeclarationError(msg) from broken
    return chain, tuple(notes)


def render(derivation: Derivation, form: str = "text", width: int = WIDTH) -> str:
    """Check every step of a derivation, then write it out as a string that ends in a newline.

    The form "text" has formulas in two dimensions where they fit, else on one line, and so has "ascii", in plain
    letters; the others are those of every page, see `Page.written`. Text has lines of `width` columns, at least 40; the
    others have lines of any length. Raises `DeclarationError` if a step does not follow, and `InputError` for another
    form.
    """
    if form not in (known := ("text", "ascii", *FORMS)):
        msg = f"`form` must be one of {', '.join(map(repr, known))}, got {form!r}"
        raise InputError(msg)
    page = page_of(derivation, unicode=form != "ascii")
    return page.text(width=width) if form in ("text", "ascii") else page.written(form)


def page_of(derivation: Derivation, *, unicode: bool = True) -> Page:
    """The page of a derivation, every step of which has been checked; `unicode`: with the letters of mathematics."""
    chain, notes = follow(derivation)
    page, write = Page(), partial(_math, unicode=unicode)
    page.heading(derivation.title, 1, style="")
    page.print(f"Sources: {'; '.join(derivation.sources)}.", hang=_MARGIN)
    page.print()
    for name in chain.names:
        page.print(write(name.symbol), f": {name.meaning}", hang=_MARGIN)
        if name.definition is not None and not callable(name.definition):
            _show(page, Step("", equal(name.symbol, name.definition)), unicode)
    page.print(*_given(chain, write), hang=_MARGIN)
    page.print(*_evaluated(chain, write), hang=_MARGIN)
    for number, (step, note) in enumerate(zip(chain.steps, notes, strict=True), 1):
        page.print()
        page.print(f"{number}. {step.rule}", hang=len(f"{number}. "))
        page.print()
        _show(page, step, unicode)
        page.print()
        page.print(f"[{note}]", style="dim", indent=_MARGIN, hang=_MARGIN + 1)
    return page


def _math(expression: Any, unicode: bool) -> Math:
    return Math(_pretty(expression, unicode), tex(expression))


Write = Callable[[Any], Math]
"""A function that writes an expression within a sentence."""
Parts = Sequence[str | Math]


def _listed(parts: Iterable[str | Math], between: str) -> list[str | Math]:
    """The parts with what stands between them."""
    return [each for part in parts for each in (between, part)][1:]


def _given(chain: Chain, write: Write) -> Parts:
    """The hypotheses: signs of symbols, relations, ranges of indices, and those that are words."""
    from sympy import Gt

    signs: list[Parts] = [[write(Gt(x, 0, evaluate=False))] for x in _free(chain) if x.is_positive]
    given: list[Parts] = [[write(one)] for one in chain.given]
    bounds = [(write(i), write(low), write(high)) for i, (low, high) in index_ranges(chain).items()]
    ranges: list[Parts] = [[i, " from ", low, " to ", high] for i, low, high in bounds]
    parts = [*signs, *given, *ranges, *([one] for one in chain.conditions)]
    return ["Given: ", *[each for part in parts for each in ("; ", *part)][1:], "."]


def _evaluated(chain: Chain, write: Write) -> Parts:
    """The sentence on the intervals of the random points, and on the sizes."""
    drawn: dict[tuple[Any, Any], list[Math]] = {}
    computed = {name.symbol for name in chain.names if callable(name.definition)}
    for x in (x for x in _free(chain) if x not in computed):
        drawn.setdefault(interval(chain, x), []).append(write(x))
    points = [
        each
        for (low, high), names in drawn.items()
        for each in ("; ", *_listed(names, ", "), f" in ({low}, {high})")
    ]  # fmt: skip
    sizes = [
        each
        for size in filter(None, chain.sizes)
        for each in (" and with ", *[e for x, n in size.items() for e in (", ", write(x), f" = {n}")][1:])
    ]
    first = ["Before they are proved, identities and inequalities are evaluated at a random point: ", *points[1:], "."]
    if not sizes:
        return first
    return [*first, " Formulas of losses are compared with ", *sizes[1:], "; the rest is proved for every size."]


def _free(chain: Chain) -> list[Any]:
    """The real numbers that the steps are about and that have no formula, in the order of the page."""
    from sympy import Indexed

    defined = {name.symbol for name in chain.names if name.definition is not None and not callable(name.definition)}
    symbols = [name.symbol for name in chain.names]
    labels = {x.base.label for x in symbols if isinstance(x, Indexed)}
    for step in chain.steps:
        plain = {x for x in step.relation.free_symbols - labels if not isinstance(x, Indexed)}
        symbols += sorted(plain, key=str)
    return [x for x in dict.fromkeys(symbols) if x not in defined and not x.is_integer]


def _show(page: Page, step: Step, unicode: bool) -> None:
    """Add the relation of a step, or a definition."""
    left, right = tex(step.relation.lhs), tex(step.relation.rhs)
    # A relation that is wider than a page has its right side on a line of its own.
    wide = "\\\\\n&" if len(left) + len(right) > _WIDE else "&"
    sign = step.sign.replace("≤", "\\le")
    page.formula(f"{left} {wide}{sign} {right}", lambda room: _text(step, room, unicode), indent=_MARGIN)


def _text(step: Step, room: int, unicode: bool) -> str:
    """The relation in two dimensions, or with each side on lines of its own, or in one dimension and wrapped."""
    relation = step.relation
    sign = step.sign if unicode else step.sign.replace("≤", "<=")
    whole = _pretty(relation, unicode)
    if _wide(whole) <= room:
        return whole
    left, right = (_pretty(x, unicode) for x in (relation.lhs, relation.rhs))
    if max(_wide(left), _wide(right) + len(sign) + 1) <= room:
        return left + "\n" + _beside(f"{sign} ", right)
    flat = f"{relation.lhs} {sign} {relation.rhs}".replace("**", "^")
    return "\n".join(wrap(flat, room, subsequent_indent="  ", break_long_words=True))


def _wide(text: str) -> int:
    return max(map(len, text.splitlines()))


def _beside(sign: str, block: str) -> str:
    """A sign to the left of a block, at the height of its middle."""
    lines = block.splitlines()
    return "\n".join((sign if i == (len(lines) - 1) // 2 else " " * len(sign)) + line for i, line in enumerate(lines))


def _pretty(expression: Any, unicode: bool) -> str:
    """An expression in two dimensions, in Unicode or ASCII: indices as subscripts, derivatives as fractions."""
    from sympy.printing.pretty.pretty import PrettyPrinter
    from sympy.printing.pretty.pretty_symbology import pretty_use_unicode
    from sympy.printing.pretty.stringpict import prettyForm

    partial_sign = "∂" if unicode else "d"

    class Printer(PrettyPrinter):  # type: ignore[misc]
        def _print_Indexed(self, x: Any) -> Any:  # noqa: N802 - SymPy looks for these names
            from sympy import Symbol

            return self._print(Symbol(f"{x.base.label}_{x.indices[0]}"))

        def _print_Derivative(self, x: Any) -> Any:  # noqa: N802
            below = prettyForm(*prettyForm(partial_sign).right(self._print(x.variables[0])))
            above = self._print(x.expr) if x.expr.is_Atom else prettyForm(*self._print(x.expr).parens())
            return prettyForm(*prettyForm(partial_sign).right(above)) / below

    # SymPy keeps this for the whole process: it is set back.
    before = pretty_use_unicode(unicode)
    try:
        return str(Printer({"wrap_line": False}).doprint(expression))
    finally:
        pretty_use_unicode(before)


def tex(expression: Any) -> str:
    """An expression, or a relation, as LaTeX, with partial derivatives."""
    from sympy.printing.latex import LatexPrinter

    class Printer(LatexPrinter):  # type: ignore[misc]
        def _print_Derivative(self, x: Any) -> str:  # noqa: N802 - SymPy looks for this name
            # Set for derivatives alone: SymPy glues the same word to the variable of an integral.
            if x.expr.is_Symbol and x.derivative_count == 1:
                return rf"\frac{{\partial {self._print(x.expr)}}}{{\partial {self._print(x.variables[0])}}}"
            before = self._settings["diff_operator_latex"]
            self._settings["diff_operator_latex"] = r"\partial"
            try:
                return str(super()._print_Derivative(x))
            finally:
                self._settings["diff_operator_latex"] = before

        def _print_ExpBase(self, x: Any, exp: str | None = None) -> str:  # noqa: N802
            # A fraction in an exponent is too small to read; over one number or letter, a stroke is as clear.
            before = self._settings["fold_short_frac"]
            self._settings["fold_short_frac"] = x.exp.as_numer_denom()[1].is_Atom
            try:
                return str(super()._print_ExpBase(x, exp=exp))
            finally:
                self._settings["fold_short_frac"] = before

        def _as_ordered_terms(self, x: Any, order: str | None = None) -> list[Any]:
            # A sum begins with what is added, as people write it.
            return sorted(super()._as_ordered_terms(x, order), key=lambda term: term.could_extract_minus_sign())

    return str(Printer().doprint(expression))
