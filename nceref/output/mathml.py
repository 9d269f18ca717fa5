"""A formula in a line of text as MathML, in pieces between which a browser may break the line.

>>> formula("L = <<3>> e^(s_ij/T), s: cosines").count("<math>")
5
"""

import re
from collections.abc import Iterator

from nceref.output.html_elements import Markup, element, escape, join
from nceref.output.streams import GREEK

_LETTERS = {name: letter for letter, name in GREEK.items()}
_FUNCTIONS = frozenset({
    "log", "exp", "cos", "sin", "max", "min", "mean", "sqrt", "softmax", "sigmoid", "softplus", "ceil", "round", "top",
    "onehot",
})  # fmt: skip
_SIGNS = {"-": "−", "!=": "≠", "*": "·", "sum": "∑", "in": "∈", "not in": "∉", "<=": "≤", ">=": "≥"}
_MARKS = {"<<": ">>"}
_TOKEN = re.compile(r"<<|>>|!=|<=|>=|\bnot in\b|[^\W\d_]+|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_INDICES = 2
"""Letters of an index that are indices each: s_ij, but p_noise."""


def formula(text: str) -> Markup:
    """A formula with its indices below and its exponents above; words that it has stay words.

    The text is that of the terminal, and the label for a screen reader; differences stand between ``<<`` and ``>>``.
    """
    plain = re.sub("<<|>>", "", text)
    return element("span", join(_Line(text).pieces()), role="math", aria_label=plain, class_="formula")


class _Line:
    """The tokens of a line, read once from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.place = 0

    def pieces(self, end: str = "") -> Iterator[Markup]:
        """Pieces between spaces, each as a formula or as a word, up to the token that ends a mark."""
        piece: list[tuple[str, Markup]] = []
        while (token := self._next()) and token != end:
            if token.isspace() or token in _MARKS:
                yield from _piece(piece)
                piece = []
                yield Markup(" ") if token.isspace() else element("mark", join(self.pieces(_MARKS[token])))
            else:
                piece.append((token, self._with_scripts(token, is_index=False)))
        yield from _piece(piece)

    def _next(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1] if self.place <= len(self.tokens) else ""

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _with_scripts(self, token: str, is_index: bool) -> Markup:
        """A token with the index and the exponent that follow it."""
        base, scripts = _sign(token, is_index), {}
        # A dot between two names multiplies.
        if token == "." and self._peek()[:1].isalpha():
            base = element("mo", "·")
        while self._peek() in ("_", "^") and self._peek() not in scripts:
            kind = self._next()
            scripts[kind] = self._script(kind)
        tag = {"_": "msub", "^": "msup", "_^": "msubsup"}.get("".join(sorted(scripts, reverse=True)), "")
        return element(tag, base, *(scripts[kind] for kind in sorted(scripts, reverse=True))) if scripts else base

    def _script(self, kind: str) -> Markup:
        token = self._next()
        if token in ("{", "("):
            return element("mrow", self._row({"{": "}", "(": ")"}[token]))
        if kind == "_" and token.isalpha() and len(token) <= _INDICES:
            return element("mrow", (element("mi", letter) for letter in token))
        return _sign(token, is_index=False) if token else element("mrow")

    def _row(self, end: str) -> Iterator[Markup]:
        """The tokens of a group up to the one that closes it; what differs is a row of its own."""
        depth = 0
        while (token := self._next()) and (depth or token != end):
            depth += (token in "([{") - (token in ")]}")
            if token in _MARKS:
                yield element("mrow", self._row(_MARKS[token]), class_="mark")
            elif token.isspace():
                yield element("mspace", width="0.25em")
            else:
                yield self._with_scripts(token, is_index=True)


def _piece(parts: list[tuple[str, Markup]]) -> Iterator[Markup]:
    """Tokens without a space between them; a word with its comma, and what is quoted, stays text."""
    if not parts:
        return
    tokens = [token for token, _ in parts]
    if "'" in tokens or (_is_word(tokens[0]) and not any(token[0].isalnum() for token in tokens[1:])):
        yield escape("".join(tokens))
    else:
        yield element("math", (markup for _, markup in parts))


def _is_word(token: str) -> bool:
    return len(token) > 1 and token.isalpha() and token not in _FUNCTIONS and token not in _LETTERS and token != "sum"


def _sign(token: str, is_index: bool) -> Markup:
    """One token; `in` is a sign in an index, and a word elsewhere."""
    if token in _SIGNS and (is_index or token not in ("in", "not in")):
        return element("mo", _SIGNS[token])
    if token[0].isdecimal():
        return element("mn", token)
    if is_index and _is_word(token):
        return element("mtext", token)
    if token[0].isalpha():
        return element("mi", _LETTERS.get(token, token))
    return element("mo", token, stretchy="false")
