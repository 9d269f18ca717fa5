"""The documentation site: `make site` writes the generated pages and then runs Sphinx with this file."""

import re
import sys
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish
from sphinxcontrib import katex

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import nceref  # noqa: E402 - of this clone
from nceref.theory import prove  # noqa: E402
from tools.site.links import relinked  # noqa: E402
from tools.site.pages import KATEX, places  # noqa: E402
from tools.site.subjects import SUBJECTS, by_subject  # noqa: E402
from tools.site.words import SPLIT_QUERY, words  # noqa: E402

project, author, copyright = "nceref", "the nceref developers", "the nceref developers"
version = release = nceref.__version__
extensions = [
    "myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinxcontrib.katex",
]  # fmt: skip
exclude_patterns = ["explorer", "browser", "generated/static"]
nitpicky = True
suppress_warnings = ["myst.header"]
default_role = "code"
smartquotes = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3

autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Its style and letters are served from the site itself.
katex.KATEX_DEFAULT_OPTIONS = {"throwOnError": True, "strict": "error"}
# On a busy machine a socket of the file system may refuse its first connection; this one is tried again.
katex.KaTeXServer.start_server_process = katex.KaTeXServer.start_network_socket
katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0
katex_prerender = True
katex_js_path = str(KATEX / "katex.min.js")
katex_css_path = "katex/katex.min.css"

html_theme = "pydata_sphinx_theme"
html_title = "nceref"
html_static_path = ["_static", "generated/assets"]
html_extra_path = ["generated/static"]
html_favicon = "_static/icon.svg"
html_css_files = ["palette.css", "site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
# Else the theme reports an error on the console.
html_context = {"default_mode": "auto"}
html_search_scorer = str(ROOT / "docs" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "nceref"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

CHILDREN = {
    "index": (
        "tutorials/index", "guide", "losses", "Theory </claims>", "Reference </generated/api/index>",
    ),
    "tutorials/index": (
        "generated/start", "A notebook </generated/notebook>", "tutorials/numpy", "tutorials/pytorch",
        "tutorials/moco", "tutorials/training", "tutorials/ci", "tutorials/maintainers", "tutorials/mathematics",
    ),
    "guide": (
        "verify", "report", "bounds", "security", "score", "other-languages", "commands", "ranks", "vectors",
        "own-loss", "library", "beyond-one-machine", "training", "experiments/README", "audit", "conventions",
        "performance", "reliability", "stability",
        "generated/contributing", "generated/changelog",
    ),
    "losses": ("generated/losses/*",),
    "claims": (
        "generated/claims/index", *(f"generated/claims/{chapter.name}" for chapter in prove.chapters()),
        "generated/derivations/index", "generated/tables", "generated/figures",
    ),
    "generated/derivations/index": ("generated/derivations/*",),
    "generated/api/index": ("generated/api/*",),
}  # fmt: skip
"""The pages below a page. They stand here, as on a code host a table of contents would be a block of code."""
PLACES = places()
_HARD = ("hard", "negatives", "mining")
_LEARNED = ("learnable", "learned", "temperature", "logit_scale")
KEYWORDS = {
    "ranks": ("DDP", "DistributedDataParallel", "all_gather", "gather", "multi", "GPU", "distributed"),
    "tutorials/pytorch": (*_LEARNED, "nn.Module", "autograd"),
    "generated/losses/clip": _LEARNED,
    "generated/losses/siglip": _LEARNED,
    "generated/losses/hcl": _HARD,
    "generated/losses/hard_contrastive": _HARD,
    "generated/losses/cross_entropy": ("label", "smoothing"),
    "generated/losses/moco": ("queue", "momentum", "memory", "bank"),
    "tutorials/ci": ("GitHub", "Actions", "pytest"),
}
"""Words that readers look for and that a page has in others, or in passing: the search knows each of them."""


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Give a page its children, keywords, the names and links of the site, and the table of losses its pages."""
    path = PurePosixPath("docs") / f"{name}.md"
    text = by_subject(relinked(source[0], path, path, PLACES))
    text = text.replace("<!-- {.readers} -->", "{.readers}")
    if name == "losses":
        text = re.sub(r"^\| (`(\w+)\([^|]*`) \|", r"| [\1](generated/losses/\2.md) |", text, flags=re.MULTILINE)
    if name in CHILDREN:
        entries = "\n".join(entry if "<" in entry else f"/{entry}" for entry in CHILDREN[name])
        text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{entries}\n```\n"
    if name in KEYWORDS:
        text = f"---\nmyst:\n  html_meta:\n    keywords: {', '.join(KEYWORDS[name])}\n---\n\n{text}"
    source[0] = text


def compile_formulas(app: Sphinx, doctree: nodes.document) -> None:
    """End the build at the first formula that KaTeX refuses, with the page that has it."""
    for kind, display in ((nodes.math, False), (nodes.math_block, True)):
        for node in doctree.findall(kind):
            try:
                katex.render_latex(node.astext(), {"displayMode": display})
            except katex.KaTeXError as error:
                msg = f"{app.env.docname}: a formula does not compile: {node.astext()}: {error}"
                raise ExtensionError(msg) from error


class SearchWords(SearchEnglish):
    """English, but for decimals and names: 0.71 and nt_xent are words."""

    js_splitter_code = SPLIT_QUERY

    def split(self, text: str) -> list[str]:
        """As the page is indexed."""
        return words(text)


def setup(app: Sphinx) -> None:
    """Connect both, and the words of the search."""
    app.add_search_language(SearchWords)
    # What `prepare` knows beside the text of a page: with another, every page is read anew.
    app.add_config_value("prepared_with", repr((CHILDREN, KEYWORDS, PLACES, SUBJECTS)), "env")
    app.connect("source-read", prepare)
    app.connect("doctree-read", compile_formulas)
