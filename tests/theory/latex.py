"""LaTeX for the tests: a strict reader that needs no engine, and the engines that there are."""

import json
import re
import shutil
import subprocess

COMMANDS = frozenset(
    re.findall(
        r"\w+",
        """
        Big Delta Pr Rightarrow Vert alpha approx arg bar begin beta big bmod cdot chi cos coth cup delta dots
        ell end epsilon eta forall frac ge hat iff in inf infty int item kappa lVert lambda le left leftarrow
        lim limits ln log longrightarrow mapsto mathrm max mid min mu nabla ne noindent notin nu odot paragraph
        partial pi preceq propto psi qquad quad rVert rho right sigma simeq sin sinh sqrt sum tanh tau text
        textasciicircum textstyle tfrac theta tilde to top varepsilon
        """,
    )
)
"""Every one that is printed anywhere, and no other: the engines compile all of them."""
MATH = {"align*"}
TOKEN = re.compile(r"\\(?:begin|end)\{[a-z]+\*?\}|\\[A-Za-z]+|\\.|[{}$&#%^_~]|\n\n|[^\x00-\x7f]", re.DOTALL)


def faults(source, *, math=False):
    """What a TeX engine would refuse, in the order in which it stands; comments are left out."""
    read = _Reader(math)
    for token in TOKEN.findall(re.sub(r"(?m)^%.*\n?", "", source)):
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
        fits = {"&": "align*" in self.opened, "^": self.math, "_": self.math, "~": not self.math, "\n\n": not self.math}
        if not fits.get(token, False):
            self.faults.append(f"{token!r} out of place")

    def _command(self, name):
        if name not in COMMANDS:
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
        whole = "\\documentclass{article}\\usepackage{amsmath}\n\\begin{document}\n" + source + "\n\\end{document}\n"
        (folder / "whole.tex").write_text(whole, encoding="ascii")
        done = subprocess.run(
            [engine, "-halt-on-error", "-interaction=nonstopmode", "whole.tex"], capture_output=True, cwd=folder
        )
        return "" if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:]

    return compiled
