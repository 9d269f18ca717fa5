"""Links: those of a page that is shown in another place, and those of the finished site that lead nowhere."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

_PAGE = re.compile(r"\[([^\]]*)\]\((?!https?:)(\S+\.html)\)")
_LINK = re.compile(r'(\]\(|src=")([^)"#:\s]+)(?=[)"#])')


def relinked(text: str, origin: PurePosixPath, page: PurePosixPath, places: Mapping[str, str]) -> str:
    """A page in Markdown with its relative links as they must be where it is shown.

    `origin` is the place of the page, and `page` where it is shown, both from the root of the clone. `places` maps
    paths of files that are shown elsewhere to where they are shown.
    """

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(str(origin.parent / link[2]))
        if origin == page and target not in places:
            return link[0]
        return link[1] + posixpath.relpath(places.get(target, target), str(page.parent))

    # Of a link to a page that is HTML already, Sphinx would make a download.
    return _PAGE.sub(r'<a href="\2">\1</a>', _LINK.sub(moved, text))


class _Page(HTMLParser):
    """The addresses that a page refers to, and the names of places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect both of one element."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.addresses.add(value)
            elif name == "id" and value:
                self.names.add(value)


def broken(site: Path) -> Iterator[str]:
    """The links, each with its page, that lead nowhere within a finished site, a folder of HTML files."""
    # What begins with an underscore belongs to Sphinx and its theme.
    paths = (path for path in sorted(site.rglob("*.html")) if not path.relative_to(site).parts[0].startswith("_"))
    read = {path: _Page() for path in paths}
    for path, page in read.items():
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in read.items():
        for address in sorted(page.addresses):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            names = read[target].names | {"", "top"} if target in read else None
            if "_downloads" in target.parts and target.suffix == ".html":
                yield f"{path.relative_to(site)}: {address} is a copy of a page, without what the page loads"
            # With "=" it is a state that a script reads, and no id.
            is_state = "=" in parts.fragment
            if not target.is_file() or (names is not None and not is_state and unquote(parts.fragment) not in names):
                yield f"{path.relative_to(site)}: {address} leads nowhere"
