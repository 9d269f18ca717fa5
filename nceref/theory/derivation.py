"""Derivations as text and as LaTeX; nothing is written before every step of the topic has been checked (`chain`)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from textwrap import indent, wrap
from typing import Any

from nceref.errors import DeclarationError, InputError
from nceref.output.markdown import escaped
from nceref.output.pages import WIDTH, fitting
from nceref.registry import discover, pick
from nceref.theory.chain import BrokenError, Chain, Name, Step, equal, index_ranges
from nceref.theory.proofs import prove
from nceref.theory.relations import interval

_MARGIN = "    "
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
    letters; "latex" is a fragment that needs amsmath; "markdown" has formulas between dollar signs. Text has lines of
    `width` columns, at least 40; LaTeX and Markdown have lines of any length. Raises `DeclarationError` if a step does
    not follow, and `InputError` for another form.
    """
    writers: Mapping[str, Callable[..., Iterator[str]]] = {
        "text": partial(_text, unicode=True),
        "ascii": partial(_text, unicode=False),
        "latex": _latex,
        "markdown": _markdown,
    }
    if form not in writers:
        msg = f"`form` must be one of {', '.join(map(repr, writers))}, got {form!r}"
        raise InputError(msg)
    chain, notes = follow(derivation)
    return "\n".join(writers[form](derivation, chain, notes, fitting(width))) + "\n"


def _text(derivation: Derivation, chain: Chain, notes: tuple[str, ...], width: int, *, unicode: bool) -> Iterator[str]:
    yield from wrap(derivation.title, width)
    yield from wrap(f"Sources: {'; '.join(derivation.sources)}", width, subsequent_indent=_MARGIN)
    yield ""
    for name in chain.names:
        yield from _name(name, width, unicode)
    yield from wrap(_given(chain, partial(_pretty, unicode=unicode)), width, subsequent_indent=_MARGIN)
    yield from wrap(_evaluated(chain, partial(_pretty, unicode=unicode)), width, subsequent_indent=_MARGIN)
    for number, (step, note) in enumerate(zip(chain.steps, notes, strict=True), 1):
        yield ""
        yield from wrap(f"{number}. {step.rule}", width, subsequent_indent=" " * len(f"{number}. "))
        yield ""
        yield from _shown(step, width, unicode)
        yield ""
        yield from wrap(f"[{note}]", width, initial_indent=_MARGIN, subsequent_indent=_MARGIN + " ")


def _given(chain: Chain, write: Callable[[Any], str], words: Callable[[str], str] = str) -> str:
    """The hypotheses: signs of symbols, relations, ranges of indices, and those that are words."""
    from sympy import Gt

    signs = [write(Gt(x, 0, evaluate=False)) for x in _free(chain) if x.is_positive]
    ranges = [f"{write(i)} from {write(low)} to {write(high)}" for i, (low, high) in index_ranges(chain).items()]
    return f"Given: {'; '.join([*signs, *map(write, chain.given), *ranges, *map(words, chain.conditions)])}."


def _evaluated(chain: Chain, write: Callable[[Any], str]) -> str:
    """The sentence on the intervals of the random points, and on the sizes."""
    drawn: dict[tuple[Any, Any], list[str]] = {}
    computed = {name.symbol for name in chain.names if callable(name.definition)}
    for x in (x for x in _free(chain) if x not in computed):
        drawn.setdefault(interval(chain, x), []).append(write(x))
    points = "; ".join(f"{', '.join(names)} in ({low}, {high})" for (low, high), names in drawn.items())
    listed = ["with " + ", ".join(f"{write(x)} = {n}" for x, n in size.items()) for size in chain.sizes if size]
    sizes = f" Formulas of losses are compared {' and '.join(listed)}; the rest is proved for every size."
    first = f"Before they are proved, identities and inequalities are evaluated at a random point: {points}."
    return first + (sizes if listed else "")


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


def _name(name: Name, width: int, unicode: bool) -> Iterator[str]:
    yield from wrap(f"{_pretty(name.symbol, unicode)}: {name.meaning}", width, subsequent_indent=_MARGIN)
    if _printed(name):
        yield from _shown(Step("", _relation(name)), width, unicode)


def _printed(name: Name) -> bool:
    return name.definition is not None and not callable(name.definition)


def _relation(name: Name) -> Any:
    return equal(name.symbol, name.definition)


def _shown(step: Step, width: int, unicode: bool) -> list[str]:
    """The relation in two dimensions, or with each side on lines of its own, or in one dimension and wrapped."""
    relation, room = step.relation, width - len(_MARGIN)
    sign = step.sign if unicode else step.sign.replace("≤", "<=")
    whole, left, right = (_pretty(x, unicode) for x in (relation, relation.lhs, relation.rhs))
    if _wide(whole) <= room:
        shown = whole
    elif max(_wide(left), _wide(right) + len(sign) + 1) <= room:
        shown = left + "\n" + _beside(f"{sign} ", right)
    else:
        flat = f"{relation.lhs} {sign} {relation.rhs}".replace("**", "^")
        shown = "\n".join(wrap(flat, room, subsequent_indent="  ", break_long_words=True))
    return [line.rstrip() for line in indent(shown, _MARGIN).splitlines()]


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


def _latex(derivation: Derivation, chain: Chain, notes: tuple[str, ...], _: int) -> Iterator[str]:
    yield "% needs \\usepackage{amsmath}"
    yield f"\\paragraph{{{_escaped(derivation.title)}.}}"
    yield f"Sources: {_escaped('; '.join(derivation.sources))}."
    yield "\\begin{itemize}"
    for name in chain.names:
        meant = _relation(name) if _printed(name) else name.symbol
        yield f"  \\item ${tex(meant)}$: {_escaped(name.meaning)}"
    yield "\\end{itemize}"
    yield f"{_given(chain, _dollars, _escaped)}\n\n{_evaluated(chain, _dollars)}"
    for number, (step, note) in enumerate(zip(chain.steps, notes, strict=True), 1):
        yield f"\n\\noindent {number}. {_escaped(step.rule)}"
        left, right = tex(step.relation.lhs), tex(step.relation.rhs)
        sign = step.sign.replace("≤", "\\le")
        yield f"% {note}\n\\begin{{align*}}\n  {left} &{sign} {right}\n\\end{{align*}}"


def _markdown(derivation: Derivation, chain: Chain, notes: tuple[str, ...], _: int) -> Iterator[str]:
    yield f"# {escaped(derivation.title)}\n\nSources: {escaped('; '.join(derivation.sources))}.\n"
    for name in chain.names:
        meant = _relation(name) if _printed(name) else name.symbol
        yield f"- ${tex(meant)}$: {escaped(name.meaning)}"
    yield f"\n{_given(chain, _dollars, escaped)}\n\n{_evaluated(chain, _dollars)}"
    for number, (step, note) in enumerate(zip(chain.steps, notes, strict=True), 1):
        left, right = tex(step.relation.lhs), tex(step.relation.rhs)
        # A relation that is wider than a page has its right side on a line of its own.
        wide = "\\\\\n&" if len(left) + len(right) > _WIDE else "&"
        sign = step.sign.replace("≤", "\\le")
        yield f"\n**{number}.** {escaped(step.rule)}\n"
        yield f"$$\n\\begin{{aligned}}\n{left} {wide}{sign} {right}\n\\end{{aligned}}\n$$\n"
        yield f"*Checked by: {escaped(note)}*"


def _dollars(expression: Any) -> str:
    return f"${tex(expression)}$"


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


def _escaped(text: str) -> str:
    """Words as LaTeX text."""
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    special |= {"\\": "\\textbackslash{}", "<": "$<$", ">": "$>$", "|": "$|$"}
    return "".join(special.get(c, c) for c in text)
