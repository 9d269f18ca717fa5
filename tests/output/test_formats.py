"""One page with every kind of block, in each format; what others wrote is escaped in all of them."""

import re

from theory import latex

from nceref.output.formats.html import html
from nceref.output.pages import Entry, Math, Page


def page():
    shown = Page()
    shown.heading("A loss_of two", 1)
    shown.print("With ", Math("τ > 0", r"\tau > 0"), ("bold", "bold"), " words and a <b> & 50 %.")
    shown.print()
    shown.grid([("yours", "L = 2 s_i")], 9, styles=("", "code"))
    shown.grid([("fix", "Halve it.")], 9)
    shown.grid([("", "It is read twice.")], 9)
    shown.heading("\nNumbers")
    shown.table([("dcl", "1.5"), ("a|b", "2")], header=[("loss", "value")], right=(False, True))
    shown.formula("L &= 2", lambda _: "L = 2", indent=2)
    shown.print("  nceref verify f.py:f", wrap=False)
    shown.grid([("", "dL/ds = 2,"), ("", "s = 1")], 0, styles=("", "code"))
    return shown


MARKDOWN = """\
# A loss_of two

With $\\tau > 0$**bold** words and a \\<b> & 50 %.

- **yours**: `L = 2 s_i`
- **fix**: Halve it.
  It is read twice.

## Numbers

| loss | value |
| --- | ---: |
| dcl | 1.5 |
| a\\|b | 2 |

$$
\\begin{aligned}
L &= 2
\\end{aligned}
$$

```text
nceref verify f.py:f
```

```text
dL/ds = 2,
s = 1
```
"""
LATEX = r"""% \usepackage{amsmath}

\section*{A loss\_of two}

With $\tau > 0$\textbf{bold} words and a $<$b$>$ \& 50 \%.

\begin{description}
\item[{yours}] \texttt{L = 2 s\_i}
\item[{fix}] Halve it.
It is read twice.
\end{description}

\subsection*{Numbers}

\begin{center}
\small\setlength{\tabcolsep}{3pt}
\begin{tabular}{@{}lr@{}}
\hline
loss & value \\
\hline
dcl & 1.5 \\
a$|$b & 2 \\
\hline
\end{tabular}
\end{center}

\begin{align*}
  L &= 2
\end{align*}

\begin{verbatim}
  nceref verify f.py:f
\end{verbatim}

\begin{verbatim}
dL/ds = 2,
s = 1
\end{verbatim}
"""
HTML = (
    "<h1>A loss_of two</h1>",
    "<strong>bold</strong> words and a &lt;b&gt; &amp; 50 %.</p>",
    '<dl class="wide"><dt>yours</dt><dd><code>L = 2 s_i</code></dd>'
    "<dt>fix</dt><dd>Halve it.<br>It is read twice.</dd></dl>",
    '<h2>Numbers</h2><div class="scroll" tabindex="0"><table><thead><tr><th scope="col">loss</th>',
    '<tr><th scope="row">a|b</th><td>2</td></tr>',
    "<pre><code>nceref verify f.py:f</code></pre><pre><code>dL/ds = 2,\ns = 1</code></pre>",
)


def test_each_format_of_every_kind_of_block():
    assert page().written("markdown") == MARKDOWN
    assert page().written("latex") == LATEX
    document = page().written("html")
    assert [part for part in HTML if part not in document] == []


def test_text_of_others_is_escaped_in_every_format():
    evil = "<script>x</script>\x1b[31m ![a](b) $d$ \\input{e} | \u202e # _f_"
    shown = Page()
    shown.heading(evil, 1)
    shown.print(evil, ("`" + evil, "code"))
    shown.grid([(evil, evil)], 4)
    shown.table([(evil,)], header=[(evil,)])
    shown.print(f"```\n\\end{{verbatim}} {evil}", wrap=False)
    for form in ("markdown", "latex", "html"):
        assert shown.written(form).replace("\n", "").isprintable()
    assert "<script" not in shown.written("html")
    assert latex.faults(shown.written("latex")) == []
    outside = re.sub(r"(`+)text.*?\1|``.*?``", "", shown.written("markdown"), flags=re.DOTALL)
    assert outside.count("script") == 12
    assert not re.search(r"(?<!\\)(<script|\[a|\$d|_f)", outside)


def test_an_entry_has_styles_of_its_own_and_a_link_hides_no_other():
    page = Page()
    good, bad = "https://example.org/1", "https://example.org/) [x](javascript:y"
    page.grid([("-", Entry(("f", "code"), (": why ", ""), (good, "link"))), ("-", Entry((bad, "link")))], 1)
    page.table([(Entry(("`f`", "code"), (" <x>", "")),)], header=[("name",)])
    text = page.text()
    assert text.startswith(f"-  f: why {good}\n-  {bad}\n")
    made = page.written("markdown")
    assert f"- `f`: why [Source]({good})\n" in made
    assert r"\[x\](javascript:y" in made
    assert r"| `` `f` `` \<x> |" in made
    made = page.written("html")
    assert f'<code>f</code>: why <a href="{good}">Source</a>' in made
    assert 'javascript:y"' not in made
    assert "<code>`f`</code> &lt;x&gt;" in made
    assert good in page.written("latex")


def test_pictures_and_details_are_words_where_nothing_is_drawn_or_folded():
    page, inside, below = Page(), Page(), Page()
    below.heading("Part <1>", 1, anchor="1/part")
    below.figure(("3 fail", "red"), draw=lambda names: f"<svg>{'a b' in names} {'gone' in names}</svg>")
    below.figure(("all pass", ""), draw=lambda _: "<svg/>")
    inside.table([(Entry(("x", "code"), ("\nwhy", "dim"), anchors=["a b", "more"]), Entry(("y", ""), to="gone"))])
    below.folded("2 <cases>", inside)
    below.folded("nothing", Page())
    page.heading("All", 1)
    page.table([(Entry(("first", ""), to="1/part"), "")])
    page.add(below, levels=1)
    assert page.text() == "All\nfirst\nPart <1>\n3 fail\nall pass\n2 <cases>\nx    y\nwhy\n"
    made = page.written("markdown")
    assert "## Part <1>\n\n3 fail\n\nall pass\n\n2 \\<cases>\n\n" in made
    assert "| `x` why | y |" in made
    made = page.written("latex")
    assert "3 fail" in made
    assert "2 $<$cases$>$" in made
    made = page.written("html")
    assert '<nav aria-label="Sections"><a href="#1/part">Part &lt;1&gt;</a></nav>' in made
    assert '<a href="#1/part">first</a>' in made
    assert '<h2 id="1/part">' in made
    assert made.count('class="plots"') == 1
    assert '<figcaption><span class="fail">3 fail</span></figcaption><svg>True False</svg>' in made
    assert "<details><summary>2 &lt;cases&gt;</summary>" in made
    assert '<th scope="row" id="a_b-' in made
    assert "<td>y</td>" in made


def test_a_document_that_would_be_too_long_has_fewer_details():
    page, inside = Page(), Page()
    rows = [(Entry((f"{n} {'x' * 500}", ""), anchors=[f"row-{n}"]),) for n in range(500)]
    inside.table(rows)
    inside.grid([(f"id-{n}",) for n in range(500)], styles=("code",))
    page.figure(("words", ""), draw=lambda names: f"<svg>{sum(f'row-{n}' in names for n in range(500))}</svg>")
    page.folded("details", inside)
    page.table([(f"whole {n}",) for n in range(100)])
    whole = html(page.blocks)
    assert "<svg>500</svg>" in whole
    assert "more do not fit in" not in whole
    shown = {size: html(page.blocks, size) for size in (100_000, 20_000)}
    assert all(len(text) < size and "whole 99" in text for size, text in shown.items())
    assert "<svg>150</svg>" in shown[100_000]
    assert shown[100_000].count('<p class="dim">350 more do not fit in; --json FILE has all</p>') == 2
    assert "id-149" in shown[100_000]
    assert "id-150" not in shown[100_000]
    assert "<svg" not in shown[20_000]
    assert "words" in shown[20_000]
