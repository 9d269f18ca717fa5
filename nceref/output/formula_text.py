r"""A formula of LaTeX as a line of text: Greek letters and signs as they are, fractions with a stroke.

>>> text_of(r"-\frac1\tau\sum_{j\ge1}P_j=-\frac{1-P_+}\tau")
'- 1/τ Σ_(j ≥ 1) P_j = - (1-P_+)/τ'
"""

import re
from collections.abc import Iterator

from nceref.output.streams import GREEK

_GREEK = {name: letter for letter, name in GREEK.items()} | {"varepsilon": "ε", "varphi": "φ"}
_SIGNS = {
    "le": " ≤ ", "leq": " ≤ ", "ge": " ≥ ", "geq": " ≥ ", "ne": " ≠ ", "neq": " ≠ ", "approx": " ≈ ", "simeq": " ≃ ",
    "propto": " ∝ ", "in": " ∈ ", "notin": " ∉ ", "to": " → ", "rightarrow": " → ", "longrightarrow": " → ",
    "preceq": " ⪯ ", "Rightarrow": " ⇒ ", "iff": " ⇔ ",
    "leftarrow": " ← ", "mapsto": " ↦ ", "cdot": "·", "times": "×", "pm": "±", "infty": "∞", "partial": "∂",
    "nabla": "∇", "sum": " Σ", "prod": " Π", "int": " ∫", "dots": "...", "ldots": "...", "cdots": "...", "mid": " | ",
    "|": "‖", "Vert": "‖", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "langle": "⟨", "rangle": "⟩",
    "setminus": " \\ ", "cup": " ∪ ", "cap": " ∩ ", "ell": "ℓ", "top": "T", "prime": "'", "star": "*", "ast": "*",
    "circ": "°", "gg": " ≫ ", "ll": " ≪ ", "sim": " ~ ", "equiv": " ≡ ", "forall": "∀ ", "colon": ": ", "bmod": " mod ",
    "quad": "\0", "qquad": "\0", ",": " ", ";": " ", ":": " ", " ": " ", "!": "", "{": "{", "}": "}", "_": "_",
    "\\": "; ", "%": "%", "&": "&", "#": "#", "subset": " ⊂ ", "subseteq": " ⊆ ", "odot": "⊙", "lfloor": "⌊",
    "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "downarrow": " ↓ ", "uparrow": " ↑ ", "searrow": " ↘ ", "vert": "|",
    "Sigma": "Σ", "Pi": "Π", "bot": "⊥", "perp": " ⊥ ",
}  # fmt: skip
_WITHOUT_A_SIGN = re.compile(
    r"left|right|[bB]igg?[lr]?|(display|text)style|(no)?limits|(math|text)(rm|it|bf|sf|bb|cal)|text|operatorname"
    r"|boldsymbol|rm"
)
"""Commands about size and letters, which a line of text has not."""
_MARKS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303", "dot": "\u0307", "vec": "\u20d7", "overline": "\u0304"}
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)


def text_of(formula: str) -> str:
    """The formula in a line; a command without a sign of its own stands by its name."""
    line = "".join(_parts(iter([token for token in _TOKEN.findall(formula) if token != "&"])))
    # A sum, a limit or a maximum has its index beside it, and a space before what it is of.
    line = re.sub(r"\b(lim|max|min|inf|sup) (?=_)", r"\1", line)
    line = re.sub(r"(Σ_[a-z](?=[A-Z])|(?:max|min)_\w(?=\w)|(?:[ΣΠ]|lim|max|min)_\([^()]*\)(?=\w))", r"\1 ", line)
    line = re.sub(r"(?<=[\w)])([-+]) +(?=\w)", r" \1 ", line)
    line = re.sub(r"(?<=[^\s(\[{;=<>|^_/])\s*([=<>])\s*", r" \1 ", line)
    # An exponent of one letter ends where the next letter begins.
    line = re.sub(r"(\^\w)(?=[^\W\d_])", r"\1 ", re.sub(r" +", " ", line))
    return re.sub(r"(?<=[(\[]) +| +(?=[,;)\]])", "", re.sub(r" ?\0[ \0]*", "   ", line)).strip()


def _parts(tokens: Iterator[str]) -> Iterator[str]:
    """The text of each token up to the end, or to the brace that closes a group."""
    for token in tokens:
        if token == "}":
            return
        yield _part(token, tokens)


def _part(token: str, tokens: Iterator[str]) -> str:
    """The text of one token with its arguments."""
    if token == "{":
        return "".join(_parts(tokens))
    if token in "^_":
        inside = _argument(tokens)
        if token == "^" and inside == "T":
            return "ᵀ"
        plain = inside.isalpha() if token == "_" else inside.isdigit()
        return f"{token}{inside}" if len(inside) == 1 or plain else f"{token}({inside})"
    if not token.startswith("\\"):
        return " " if token.isspace() else token
    name = token[1:]
    if name in ("frac", "tfrac", "dfrac"):
        above, below = _argument(tokens), _argument(tokens)
        return f" {above if re.fullmatch(_PRODUCT, above) else f'({above})'}/{_whole(below)} "
    if name == "sqrt":
        return f"√{_whole(_argument(tokens))}"
    if name in _MARKS:
        inside = _argument(tokens)
        return f"{inside}{_MARKS[name]}" if len(inside) == 1 else inside
    if name in ("begin", "end"):
        _argument(tokens)
        return " "
    if (sign := _SIGNS.get(name, _GREEK.get(name))) is not None:
        return sign
    return "" if _WITHOUT_A_SIGN.fullmatch(name) else f" {name} "


def _argument(tokens: Iterator[str]) -> str:
    """The group or the token that follows."""
    token = next((token for token in tokens if not token.isspace()), "")
    return _part(token, tokens).strip() if token else ""


_ATOM = r"(?:\d+|\w)(?:_\w|_\([^()]*\))?(?:\^\w|\^\([^()]*\)|ᵀ)?"
_PRODUCT = rf"[∂-]?(?:{_ATOM})+"


def _whole(text: str) -> str:
    """A divisor, or what is under a root: in parentheses unless it is one number or letter."""
    return text if re.fullmatch(_ATOM, text) else f"({text})"
