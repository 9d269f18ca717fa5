"""Every generated page: its name below docs/generated, and the function that writes its text."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath

from nceref.losses import all_losses
from nceref.theory import derivation, prove
from tools.site import api, claims, losses, notebook, theory
from tools.site.links import relinked

ROOT = Path(__file__).parents[2]
GENERATED = PurePosixPath("docs/generated")
KATEX = Path(os.environ.get("NCEREF_NODE", ROOT / ".venv")) / "node_modules/katex/dist"
"""The folder into which npm installs KaTeX."""


def pages() -> Mapping[str, Callable[[], str]]:
    """The pages of losses, claims, derivations and public names, and those that lie outside of docs."""
    found: dict[str, Callable[[], str]] = {
        "claims/index": claims.index,
        "derivations/index": theory.derivations,
        "tables": theory.tables,
        "notebook": notebook.page,
        "api/index": api.index,
    }
    found |= {f"losses/{name}": partial(losses.page, loss) for name, loss in all_losses().items()}
    found |= {f"claims/{chapter.name}": partial(claims.page, chapter) for chapter in prove.chapters()}
    found |= {f"derivations/{name}": partial(theory.derived, topic) for name, topic in derivation.topics().items()}
    found |= {f"api/{name}": partial(api.page, name) for name in api.MODULES}
    return found | {name: partial(_moved, origin, name) for origin, name in MOVED.items()}


MOVED = {
    "README.md": "start",
    "figures/README.md": "figures",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}
"""Pages outside of docs, and what they are on the site."""
SHOWN = {
    "nceref": "api/index",
    "nceref/theory/claims": "claims/index",
    "nceref/theory/derivations": "derivations/index",
    "nceref/theory/tables": "tables",
    "docs/notebook.ipynb": "notebook",
}
"""Folders of declarations and a notebook, to which pages link where there is no site, and the pages that show them."""


def places() -> Mapping[str, str]:
    """Files of the clone that the site shows in another place: path and place, both from the root of the clone."""
    files = {f"nceref/theory/claims/{chapter.name}.py": f"claims/{chapter.name}" for chapter in prove.chapters()}
    return {origin: f"{GENERATED}/{name}.md" for origin, name in {**MOVED, **SHOWN, **files}.items()}


def _moved(origin: str, name: str) -> str:
    text = (ROOT / origin).read_text(encoding="utf-8")
    if name == "start":
        text = text.replace("# nceref\n", "# A first example\n", 1)
    text = relinked(text, PurePosixPath(origin), GENERATED / f"{name}.md", places())
    return claims.linked(text, "claims/") if name == "figures" else text
