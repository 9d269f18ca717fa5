"""Formulas as one line of text or LaTeX, one beside the other, with what differs marked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from nceref.diagnosis.probe.design import Design
from nceref.diagnosis.probe.expressions import Exponential, Expression, Product, divided, scaled
from nceref.diagnosis.probe.pattern import ALL, SINGLE, Formula, Key
from nceref.diagnosis.simple_numbers import recognized

MARK = "<<", ">>"
"""Around what is not in the other formula."""
Slot = tuple[Any, ...]
_COMPOUND = re.compile(r"[ (]")


def written(expression: Expression, what: str = "") -> str:
    """An expression in plain text: ``3/N``, ``-2/(2N - 1)``, ``1/T + log N``; ``0`` for no term.

    `what`: another factor, as in ``3 s_ij/T``.
    """
    if what and len(expression) > 1:
        return f"({written(expression)}) {what}"
    out = ""
    for term in expression:
        text = _term(term, what)
        out += f" - {text[1:]}" if out and text.startswith("-") else f" + {text}" if out else text
    return out or "0"


def _term(term: Product, what: str) -> str:
    sign, number = "-" * (term.number < 0), abs(term.number)
    near = Fraction(number).limit_denominator(64)
    top, bottom = [], []
    if abs(float(near) - number) <= 1e-12 * number:
        top += [str(near.numerator)] * (near.numerator != 1)
        bottom += [str(near.denominator)] * (near.denominator != 1)
    else:
        top.append(recognized(number, 1e-12)[1])
    for name, power in term.factors:
        if isinstance(name, Exponential):
            top.append(f"e^({written(scaled(name.of, power))})")
            continue
        (top if power > 0 else bottom).append(
            _power(name, abs(power), bool(what or len(term.factors) > 1 or power < 0))
        )
    over = " ".join([*top, what] if what else top) or "1"
    under = " ".join(bottom)
    compound = len(bottom) > 1 or (_COMPOUND.search(under) and not under.endswith(")"))
    return sign + (f"{over}/{f'({under})' if compound else under}" if under else over)


def _power(name: str, power: float, inside: bool) -> str:
    name = "|P(i)|" if name == "P" else name.replace("P + 1", "|P(i)| + 1")
    if power == 0.5:
        return f"sqrt({name})"
    wrapped = f"({name})" if " " in name and not name.endswith(")") and inside else name
    return wrapped if power == 1 else f"{wrapped}^{power:g}"


@dataclass(frozen=True)
class Row:
    """The row loss of one anchor: its factor, and its parts by slot."""

    anchors: str
    factor: str
    parts: Mapping[Slot, str]
    offset: str = ""


@dataclass(frozen=True)
class Difference:
    """Terms of a formula in the place of those of the reference; empty where one of them has nothing there."""

    yours: str
    reference: str
    name: str = ""
    """What stands before both in a sentence."""

    @property
    def sentence(self) -> str:
        """The differences in words."""
        if not self.yours:
            return f"no {self.reference}, which is in the reference"
        rest = f", in the reference {self.reference}" if self.reference else ", which is not in the reference"
        return f"{self.name}{self.yours}{rest}"

    @property
    def remedy(self) -> str:
        """The change that makes it the reference's, as an imperative."""
        if not self.reference:
            return f"leave out {self.yours}"
        return f"write {self.reference} in the place of {self.yours}" if self.yours else f"add {self.reference}"


Lines = tuple[str, str, tuple[Difference, ...]]


def side_by_side(yours: Formula, reference: Formula | None, design: Design) -> Lines:
    """Both formulas, with what differs marked in each, and the differences.

    `design`: any of the loss: names of inputs and what belongs together. `yours, reference`: one line each; the second
    is empty without a reference.
    """
    both = [yours] if reference is None else [yours, reference]
    rows = [_Writer(one, design, both).rows() for one in both]
    plain = [f"{_line(row, {})}, {_legend(one, {})}" for row, one in zip(rows, both, strict=True)]
    if reference is None:
        return plain[0], "", ()
    if plain[0] == plain[1]:
        return _with_anchors(yours, reference, plain[0])
    mine, theirs = ({(k, *slot): text for k, row in enumerate(x) for slot, text in _slots(row)} for x in rows)
    different = {slot for slot in mine.keys() | theirs.keys() if mine.get(slot) != theirs.get(slot)}
    words = list(_differences(rows, mine, theirs, different))
    if yours.how.name != reference.how.name:
        words.insert(0, Difference(yours.how.words, reference.how.words, "s are "))
        different.add(("s",))
    first, second = (f"{_line(x, different)}, {_legend(one, different)}" for x, one in zip(rows, both, strict=True))
    return first, second, tuple(words)


def _with_anchors(yours: Formula, reference: Formula, line: str) -> Lines:
    """The pair of `side_by_side` where both read alike: the input whose rows are the anchors, where that differs."""
    mine, theirs = _anchors(yours), _anchors(reference)
    if mine == theirs or len(mine) != 1 or len(theirs) != 1 or line.count("sum_i ") != 1:
        return line, line, ()
    words = [f"i in {anchors[0]}" for anchors in (mine, theirs)]
    first, second = (line.replace("sum_i ", f"sum_{{{MARK[0]}{word}{MARK[1]}}} ") for word in words)
    return first, second, (Difference(words[0], words[1]),)


def _legend(formula: Formula, different: Any) -> str:
    text = f"s: {formula.how.words}"
    return f"{MARK[0]}{text}{MARK[1]}" if ("s",) in different else text


def _slots(row: Row) -> Iterator[tuple[Slot, str]]:
    yield ("factor",), row.factor
    yield from row.parts.items()
    yield ("offset",), row.offset


def _differences(
    rows: Any, mine: Mapping[Slot, str], theirs: Mapping[Slot, str], different: Any
) -> Iterator[Difference]:
    """The differences, slot by slot; rows that only the reference has, each as a whole."""
    missing = {k for k in {slot[0] for slot in theirs} if not any(text for slot, text in mine.items() if slot[0] == k)}
    yield from (Difference("", _line([rows[1][k]], {}).removeprefix("L = ")) for k in sorted(missing))
    for slot in (*mine, *(slot for slot in theirs if slot not in mine)):
        if slot in different and slot[0] not in missing:
            yield Difference(mine.get(slot, ""), theirs.get(slot, ""))


def _line(rows: Sequence[Row], different: Any) -> str:
    out = ""
    for k, row in enumerate(rows):

        def marked(slot: Slot, text: str, k: int = k) -> str:
            return f"{MARK[0]}{text}{MARK[1]}" if (k, *slot) in different and text else text

        pulls = _added(marked(s, t) for s, t in row.parts.items() if s[0] == "pull")
        inside = _added(marked(s, t) for s, t in row.parts.items() if s[0] in ("member", "d"))
        outside = _added(marked(s, t) for s, t in row.parts.items() if s[0] == "single")
        body = _added(x for x in (pulls, f"log( {inside} )" if inside else "", outside) if x)
        factor = marked(("factor",), row.factor)
        factor = "" if factor == "1" else f"{factor} "
        # What depends on the anchor stands within the sum.
        outer, inner = ("", factor) if "P(i)" in factor else (factor, "")
        term = f"{outer}{row.anchors}{inner}[ {body} ]" if row.anchors else body
        out = _added(x for x in (out, term if body else "", marked(("offset",), row.offset)) if x)
    return f"L = {out or '0'}"


def _added(texts: Any) -> str:
    out = ""
    for text in texts:
        bare = text.removeprefix(MARK[0])
        if not out:
            out = text
        elif bare.startswith("-") and bare == text:
            out += f" - {text[1:]}"
        else:
            out += f" + {text}"
    return out


def _anchors(formula: Formula) -> list[str]:
    """Inputs whose rows have a logarithm of their own, with a factor."""
    return [key[0] for (kind, key), x in formula.terms.items() if kind == "B" and key[0] not in (ALL, SINGLE) and x]


def writable(formula: Formula, design: Design) -> bool:
    """Whether a formula can be written without a word that may mislead: of some patterns it cannot.

    `design`: any of the loss.
    """
    terms, letters, anchors = formula.terms, dict(design.blocks), _anchors(formula)
    first = design.blocks[0][1]
    pulls = {key for (kind, key), x in terms.items() if kind == "A" and x}
    pulled = {tuple(sorted(key[:2])) for key in pulls if key[2]}
    own = {tuple(sorted(key[:2])) for kind, key in terms if kind == "c" and key[2] is True}
    return (
        # What rows of other inputs compare has no index of its own.
        all(letters[anchor] == first for anchor in anchors)
        # Seen from the other end, an order is another one.
        and not any(set(key[3:]) - {"j = i"} and {*key[:2]} <= {*anchors} for key in pulls)
        and all(len(x) <= 1 for (kind, _), x in terms.items() if kind == "B")
        and not (formula.own and own - pulled)
        and sum(kind == "c" and key[0] == ALL for kind, key in terms) <= 1
    )


class _Writer:
    """Writes a formula; kinds are merged only where all formulas beside it allow it."""

    def __init__(self, formula: Formula, design: Design, both: Sequence[Formula]) -> None:
        self.formula, self.design, self.both = formula, design, both
        self.letters = dict(design.blocks)
        self.anchors = list(dict.fromkeys(anchor for one in both for anchor in _anchors(one)))
        # Whether rows of one input meet each other in the reference.
        own = any(key[0] == key[1] for key in both[-1].pattern.members)
        self.views = own and len(design.blocks) > 1 and not design.classes

    def rows(self) -> list[Row]:
        """One row loss for each kind of anchor; those that read alike are one."""
        made = [self._row(block) for block in self.anchors]
        made += [self._pairs()] if self._pairs().parts else []
        offset = self._text("offset", ())
        offset = "" if offset == "0" else offset
        if not made:
            return [Row("", "1", {}, offset)]
        first = made[0]
        if len(self.anchors) == 2 == len(made) and self.views and all(self._alike(one) for one in self.both):
            made = [Row("sum_{i in both views} ", first.factor, first.parts)]
        return [*made[:-1], Row(made[-1].anchors, made[-1].factor, made[-1].parts, offset)]

    def _alike(self, formula: Formula) -> bool:
        first, second = (self._row(block, formula) for block in self.anchors)
        return first.factor == second.factor and [*first.parts.values()] == [*second.parts.values()]

    def _text(self, kind: str, key: Key) -> str:
        return written(self.formula.terms.get((kind, key), ()))

    def _row(self, block: str, formula: Formula | None = None) -> Row:
        formula = formula or self.formula
        terms = formula.terms
        if block not in _anchors(formula):
            return Row("", "", {})
        factor = next((x for (kind, key), x in terms.items() if kind == "B" and key[0] == block), ())
        parts: dict[Slot, str] = {}
        for keys, share in self._pulls(block, _anchors(formula)):
            a = divided(scaled(terms.get(("A", keys[0]), ()), share), factor)
            if a:
                first = keys[0] if keys[0][0] == block else (keys[0][1], keys[0][0], *keys[0][2:])
                index, among = self._index(first if len(keys) == 1 else first[:3])
                text = written(scaled(a, -1), f"s_{index}")
                if formula.own and first[2]:
                    text = f"-log( {_exponential(terms.get(('c', first), ()), a, index)} )"
                parts["pull", *keys] = f"sum_{{{among}}} {text}" if among else text
        for keys in self._merged(block):
            c, b = terms.get(("c", keys[0]), ()), terms.get(("b", keys[0]), ())
            if c:
                index, among = self._together(keys)
                text = _exponential(c, b, index)
                parts["member", *keys] = f"sum_{{{among}}} {text}" if among else text
        rest = next((x for (kind, key), x in terms.items() if kind == "d" and key[0] == block), ())
        if rest:
            parts["d",] = written(rest)
        return Row(f"sum_{{i in {block}}} " if self.views else "sum_i ", written(factor), parts)

    def _pulls(self, block: str, anchors: list[str]) -> Iterator[tuple[list[Key], float]]:
        """Kinds of pulls; those that differ in their order alone are one where every formula has them alike."""
        groups: dict[Key, list[Key]] = {}
        for key in dict.fromkeys(key for one in self.both for kind, key in one.terms if kind == "A"):
            groups.setdefault(key[:3], []).append(key)
        for group in groups.values():
            alike = all(one.terms.get(("A", key)) == one.terms.get(("A", group[0])) and not one.own
                        for one in self.both for key in group)  # fmt: skip
            ends = [end for end in group[0][:2] if end in anchors]
            if block in ends:
                yield from ((keys, 1 / len(ends)) for keys in ([group] if alike else [[key] for key in group]))

    def _merged(self, block: str) -> list[list[Key]]:
        """Kinds of members in groups of equal weight and power, in every formula; whole sets only."""
        keys = list(dict.fromkeys(key for one in self.both for kind, key in one.terms
                                  if kind == "c" and key[0] == block))  # fmt: skip
        keys.sort(key=lambda key: (not key[2], key[0] != key[1]))

        def same(a: Key, b: Key) -> bool:
            return all(one.terms.get((kind, a)) == one.terms.get((kind, b)) for one in self.both for kind in "cb")

        groups: list[list[Key]] = []
        for key in keys:
            home = next((g for g in groups if same(g[0], key) and self._joins(g, key)), None)
            if home is None:
                groups.append([key])
            else:
                home.append(key)
        return [part for group in groups for part in self._whole(group)]

    def _whole(self, group: list[Key]) -> list[list[Key]]:
        """The group; what belongs together apart where only some of the others are in it."""
        missing = self._refined(group)
        own, others = [k for k in group if k[2]], [k for k in group if not k[2]]
        mixed = bool(own and others)
        if self.views and mixed and all(k[0] == k[1] for k in others):
            missing = True
        return [own, others] if mixed and missing else [group]

    def _refined(self, group: list[Key]) -> bool:
        """Whether a group has only some of its kinds of pairs."""
        base = {k[:3] for k in group}
        return not {key for one in self.both for kind, key in one.terms if kind == "c" and key[:3] in base} <= set(
            group
        )

    def _joins(self, group: list[Key], key: Key) -> bool:
        return (self.views and not key[3:]) or all(
            self.letters[k[1]] == self.letters[key[1]] and k[1] == key[1] for k in group
        )

    def _index(self, key: Key) -> tuple[str, str]:
        """Indices of a kind, and what they run over; empty for a single candidate."""
        anchor, candidate, together, *more = key
        # What belongs together is one index already, and one step is an index of its own.
        more = [word for word in more if word != "j = i"]
        if more and more[0] in ("j = i + 1", "j = i - 1") and not self.design.classes:
            return f"{{i,i{more[0][6:].replace(' ', '')}}}", ""
        beside = "".join(f", {word}" for word in more)
        if self.design.classes:
            letter = "p" if together else "n"
            beside = beside.replace("j ", f"{'k' if self._is_class(candidate) else letter} ")
        if self.design.classes and self.letters[anchor] != self.letters[candidate]:
            labelled = any(
                self.design.nodes[v].block == candidate and v in self.design.classes
                for v in range(len(self.design.nodes))
            )
            if labelled and self.design.loss.parameters and self._is_class(candidate):
                return ("iy", beside[2:]) if together else ("ik", f"k != y{beside}")
        if self.design.classes:
            where = "" if candidate == anchor else f" in {candidate}"
            return ("ip", f"p in P(i){where}{beside}") if together else ("in", f"n not in P(i){where}{beside}")
        if self.views:
            if together:
                return "ip", beside[2:].replace("j ", "p ")
            return "ij", f"j != {'i in the own' if anchor == candidate else 'p in the other'} view{beside}"
        if together:
            return "ii", beside[2:].replace("j ", "i ")
        if anchor == candidate:
            return "ij", f"j != i{beside}" if len(self.design.blocks) == 1 else f"j != i in {candidate}{beside}"
        if self.letters[anchor] != self.letters[candidate]:
            return "ik", f"k in {candidate}{beside.replace('j ', 'k ')}"
        return ("ij" if self._first(anchor) else "ji"), f"j != i{beside}"

    def _first(self, block: str) -> bool:
        return block == self.design.blocks[0][0]

    def _is_class(self, block: str) -> bool:
        letters = {getattr(p, "classes", None) for p in self.design.loss.parameters}
        return self.letters[block] in letters

    def _together(self, keys: list[Key]) -> tuple[str, str]:
        if len(keys) == 1:
            return self._index(keys[0])
        words = {k[2] for k in keys}
        refined = [word for k in keys for word in k[3:] if word != "j = i"]
        beside = "" if not self._refined(keys) else " or ".join(dict.fromkeys(refined))
        # Where all belong together, they are told apart by their order alone.
        index, among = self._index(next((k for k in keys if not k[2]), keys[0])[:3])
        if len(words) == 2 and not beside:
            if "P(i)" in among and keys[0][0] != keys[0][1]:
                return "ij", f"j in {keys[0][1]}"
            other = self.views and all(k[0] != k[1] for k in keys)
            among = "j in the other view" if other else "j != i" if self.views or "P(i)" in among else among[0]
            return ("ij" if "P(i)" in self._index(keys[0])[1] or self.views else index), among
        if self.views and not beside and len({k[0] == k[1] for k in keys}) == 2:
            return "ij", "j not in {i, p}"
        letter = "j" if "j" in index else index[-1]
        return index, ", ".join(filter(None, (among, beside.replace("j ", f"{letter} "))))

    def _pairs(self) -> Row:
        """Pairs outside of the logarithms of anchors: all pairs in one, each in its own, linear ones."""
        terms, parts = self.formula.terms, {}
        for (kind, key), a in terms.items():
            if kind == "A" and a and not {*key[:2]} & {*_anchors(self.formula)}:
                index, among = self._index(key)
                if key[0] == key[1]:
                    labels = f", {'the same' if key[2] else 'another'} label" if self.design.classes else ""
                    index, among = "ij", ", ".join(["i < j", *map(str, key[3:])]) + labels
                parts["single", key] = f"sum_{{{among or 'i'}}} {written(scaled(a, -1), f's_{index}')}"
            if kind == "c" and key[0] == SINGLE and a:
                index, among = self._index(key[1:])
                b = terms.get(("b", key), ())
                outer = terms.get(("B", key), ())
                inside = f"1 + {_exponential(a, b, index)}"
                parts["single", key] = written(outer, f"sum_{{{among or 'i'}}} log( {inside} )")
            if kind == "c" and key[0] == ALL and a:
                index, _ = self._index(key[1:])
                b = terms.get(("b", (ALL, *key[1:])), ())
                rest = terms.get(("d", (ALL,)), ())
                inside = f"sum_{{i < j}} {_exponential(a, b, index)}"
                parts["single", key] = written(
                    terms.get(("B", (ALL,)), ()), f"log( {inside}{f' + {written(rest)}' if rest else ''} )"
                )
        return Row("", "1", parts)


def _exponential(weight: Expression, power: Expression, index: str) -> str:
    """A weight times the exponential of a similarity; an exponential in the weight goes into the exponent."""
    exponent = written(power, f"s_{index}")
    weight = tuple(
        Product(t.number, tuple((f"n_{index[-1]}" if n == "n" else n, p) for n, p in t.factors)) for t in weight
    )
    if len(weight) == 1:
        inside = [(n.of, p) for n, p in weight[0].factors if isinstance(n, Exponential)]
        for of, p in inside:
            added = written(scaled(of, p))
            exponent += f" - {added[1:]}" if added.startswith("-") else f" + {added}"
        weight = (Product(weight[0].number, tuple(x for x in weight[0].factors if not isinstance(x[0], Exponential))),)
    return written(weight, f"e^({exponent})")


_LATEX = (
    (r"<<", r"\\underline{"), (r">>", "}"), (r"sum_i ", r"\\sum_i "), (r"sum_\{", r"\\sum_{"), (r"\blog\b", r"\\log"),
    (r"!=", r"\\ne "), (r"\bnot in\b", r"\\notin "), (r"\bin\b", r"\\in "), (r"s_(\w+)", r"s_{\1}"),
    (r"\bT\b", r"\\tau"), (r"sqrt\(([^)]*)\)", r"\\sqrt{\1}"),
)  # fmt: skip


def latex(line: str) -> str:
    """A line of `side_by_side` in LaTeX."""
    out = re.sub(r"e\^\(((?:[^()]|\([^()]*\))*)\)", r"e^{\1}", line)
    for old, new in _LATEX:
        out = re.sub(old, new, out)
    return out
