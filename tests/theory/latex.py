"""LaTeX for the tests: a strict reader that needs no engine, and the engines that there are."""

import json
import re
import shutil
import subprocess

MATHEMATICS = frozenset(
    re.findall(
        r"\w+",
        """
        Big Bigg Bigl Bigr Delta Gamma Lambda Leftrightarrow Omega Phi Pi Pr Psi Rightarrow Sigma Theta Upsilon
        Vert Xi alpha approx arccos arcsin arctan arg bar beta big bigg biggl biggr bigl bigr binom bmod bullet cap
        cdot cdots chi circ cos cosh cot coth cup dbinom ddots delta det dfrac dim displaystyle div dots downarrow
        ell emptyset epsilon equiv eta exists exp forall frac gamma gcd ge geq gg hat hbar iff iiint iint
        implies in inf infty int iota kappa ker lVert lambda langle lceil ldots le left leftarrow leq lfloor lim
        liminf limits limsup ll ln log longrightarrow lvert mapsto mathbb mathbf mathcal mathit mathrm max mid
        min mp mu nabla ne neg neq not notin nu odot oint omega operatorname oplus otimes overbrace overline
        parallel partial perp phi pi pm pmod prec preceq prime prod propto psi qquad quad rVert rangle rceil
        rfloor rho right rightarrow rvert sec setminus sigma sim simeq sin sinh sqrt star subset subseteq succ
        sum sup supset surd tan tanh tau tbinom text textstyle tfrac theta tilde times to top triangle underbrace
        underline uparrow upsilon varepsilon varphi varrho varsigma vartheta vdots vec vee wedge widehat widetilde
        xi zeta
        """,
    )
)
"""Commands of LaTeX with amsmath that KaTeX knows as well."""
WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        LTcapwidth allowbreak arraybackslash centering endfirsthead endhead footnotesize hline item linewidth paragraph
        raggedright scriptsize section setlength shortstack small subsection tabcolsep textasciicircum textasciitilde
        textbackslash textbf texttt
        """,
    )
)
"""Those of text."""
MATH = {"align*"}
COLUMNS = {"align*", "tabular", "longtable"}
"""Environments in which & parts columns."""
TOKEN = re.compile(r"\\(?:begin|end)\{[a-z]+\*?\}|\\[A-Za-z]+|\\.|[{}$&#%^_~]|\n\n|[^\x00-\x7f]", re.DOTALL)


def faults(source, *, math=False):
    """What a TeX engine would refuse, in the order in which it stands; comments are left out."""
    read = _Reader(math)
    plain = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", source, flags=re.DOTALL)
    # The columns of a table are no text.
    plain = re.sub(r"(\\begin\{(?:tabular|longtable)\})\{@\{\}.*@\{\}\}", r"\1", plain)
    for token in TOKEN.findall(re.sub(r"(?m)^%.*\n?", "", plain)):
        read.token(token)
    return [*read.faults, *(f"{one} is not closed" for one in reversed(read.opened))]


class _Reader:
    """The groups, environments and delimiters that are open, and whether mathematics is set in them."""

    def __init__(self, math):
        self.math, self.opened, self.faults = math, [], []

    def token(self, token):
        if word := re.fullmatch(r"\\([A-Za-z]+)", token):
            self._command(word[1])
        elif word := re.fullmatch(r"\\(begin|end)\{(.*)\}", token):
            self._environment(word[1], word[2])
        elif token == "$":
            self._pair("$", closes=self.opened[-1:] == ["$"])
            self.math = self.opened[-1:] == ["$"]
        elif token in "{}":
            self._pair("{", closes=token == "}")
        elif token[0] != "\\":
            self._plain(token)

    def _plain(self, token):
        fits = {
            "&": bool(COLUMNS & {*self.opened}),
            "^": self.math,
            "_": self.math,
            "~": not self.math,
            "\n\n": not self.math,
        }
        if not fits.get(token, False):
            self.faults.append(f"{token!r} out of place")

    def _command(self, name):
        if name not in (MATHEMATICS if self.math else MATHEMATICS | WORDS):
            self.faults.append(f"\\{name} is no command")
        elif name in ("left", "right"):
            self._pair("\\left", closes=name == "right")

    def _environment(self, kind, name):
        self._pair(name, closes=kind == "end")
        self.math = bool(MATH & {*self.opened})

    def _pair(self, opening, *, closes):
        if not closes:
            self.opened.append(opening)
        elif self.opened[-1:] == [opening]:
            self.opened.pop()
        else:
            self.faults.append(f"the end of {opening} is out of place")


def formulas(document):
    """The mathematics of a document: what stands between dollar signs and in displays."""
    body = re.sub(r"(?m)^%.*\n?", "", document)
    return ["".join(one) for one in re.findall(r"(\\begin\{align\*\}.*?\\end\{align\*\})|\$([^$]+)\$", body, re.DOTALL)]


KATEX = """
const katex = require("katex"), given = JSON.parse(require("fs").readFileSync(0))
const compiled = given.map(one => {
  try { katex.renderToString(one, {displayMode: true, throwOnError: true, strict: "error"}); return "" }
  catch (error) { return error.message }
})
console.log(JSON.stringify(compiled))
"""


def katex(folder):
    """A function that compiles formulas, with KaTeX as npm installs it into that folder; nothing if it is not there."""
    node = shutil.which("node")
    if not node or not (folder / "node_modules/katex").is_dir():
        return None

    def compiled(sources):
        done = subprocess.run(
            [node, "-e", KATEX], input=json.dumps(sources), capture_output=True, text=True, cwd=folder, check=True
        )
        return json.loads(done.stdout)

    return compiled


def tex(folder):
    """A function that compiles whole documents with the first TeX engine on the path; nothing if there is none."""
    engine = next(filter(None, map(shutil.which, ("pdflatex", "xelatex", "lualatex"))), None)
    if not engine:
        return None

    def compiled(source):
        whole = (
            "\\documentclass{article}\\usepackage{amsmath,array,longtable,pdflscape}\n\\begin{document}\n"
            + source
            + "\n\\end{document}\n"
        )
        (folder / "whole.tex").write_text(whole, encoding="ascii")
        done = subprocess.run(
            [engine, "-halt-on-error", "-interaction=nonstopmode", "whole.tex"], capture_output=True, cwd=folder
        )
        return "" if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:]

    return compiled
