"""Writes the generated pages, and beside them what the site serves as it is; with a folder, looks for broken links."""

import shutil
import sys
from pathlib import Path

from tools.site import browser, links
from tools.site.pages import GENERATED, KATEX, ROOT, pages


def write() -> None:
    """Write every page anew: what is no longer declared is gone."""
    shutil.rmtree(ROOT / GENERATED, ignore_errors=True)
    for name, text in pages().items():
        path = ROOT / GENERATED / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
    assets = ROOT / GENERATED / "assets" / "katex"
    shutil.copytree(KATEX / "fonts", assets / "fonts", ignore=shutil.ignore_patterns("*.ttf", "*.woff"))
    shutil.copy(KATEX / "katex.min.css", assets)
    shutil.copytree(ROOT / "docs" / "explorer", ROOT / GENERATED / "static" / "explorer")
    browser.write(ROOT / GENERATED / "static" / "browser")


if __name__ == "__main__":
    if broken := [line for folder in sys.argv[1:] for line in links.broken(Path(folder))]:
        sys.exit("\n".join(broken))
    if not sys.argv[1:]:
        write()
