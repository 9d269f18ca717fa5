"""Files of figures: drawn, with their manifest and index, and compared with what would be drawn now.

A figure is drawn twice, as SVG and as PNG, and its bytes depend on nothing but its data and the tools that draw it.
The manifest holds a hash of the data, which is the same everywhere, and names the tools.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nceref.errors import FileError, InputError
from nceref.output import files
from nceref.output.figure import Figure, render
from nceref.output.json_text import json_object, json_text
from nceref.registry import choose, discover

FORMATS = ("svg", "png")
"""The formats of drawings in the manifest and the index."""
MANIFEST, INDEX = "manifest.json", "README.md"
_OPENING = """# Figures

Drawn by `nceref figures`, which rewrites this page; `nceref figures --check` compares."""


class Checked(NamedTuple):
    """The findings of a check about one figure, or the index: sentences, none if all is well.

    `note` says why bytes were not compared; empty where they were.
    """

    figure: str
    findings: tuple[str, ...] = ()
    note: str = ""


def figures() -> Mapping[str, Figure]:
    """Every figure by name."""
    return discover("nceref.theory.figures", "FIGURE", Figure)


def drawn_by(command: str) -> tuple[str, ...]:
    """Names of the figures that a command of their own draws, such as ``nceref plot-limits``."""
    return tuple(name for name, figure in figures().items() if figure.command == command)


def chosen(names: Iterable[str] = ()) -> list[Figure]:
    """The figures of these names or aliases, each once, in their order; all for none. An unknown name raises."""
    known = figures()
    named = {alias: figure.name for figure in known.values() for alias in figure.aliases}
    return choose("figure", (named.get(name, name) for name in names), known, "nceref figures --list")


def draw(names: Iterable[str] = (), out: str | os.PathLike[str] = "figures") -> Iterator[Path]:
    """Draw figures into a folder, and bring its manifest and index up to date.

    No names are all figures, and the folder `out` is created if it does not exist. Each file is yielded once it is
    there; it replaces an older one in one step. Raises `InputError` if there is no figure of some name, and `FileError`
    if a file cannot be written.
    """
    wanted, out = chosen(names), Path(out)
    # Before anything is drawn: the index is written last.
    _refuse_to_lose(out)
    _kept(out)
    files.make_folder(out)
    for figure in wanted:
        data = figure.data()
        for suffix in FORMATS:
            yield _put(out / f"{figure.name}.{suffix}", render(figure, data, suffix))
        # After each figure, so that an interrupted run leaves a manifest of what is there.
        entry = _about(figure) | {"data": fingerprint(data), "drawn with": tools()}
        # Read anew: another run may draw other figures into the folder.
        with files.alone(out):
            _put(out / MANIFEST, _text(_kept(out) | {figure.name: entry}))
    yield out / MANIFEST
    with files.alone(out):
        index = write_index(out)
    yield index


def draw_alone(wanted: Iterable[Figure], out: str | os.PathLike[str], formats: Iterable[str]) -> Iterator[Path]:
    """Draw figures into a folder in these formats, ``"svg"``, ``"png"`` or ``"pdf"``, without manifest and index."""
    formats, made = tuple(dict.fromkeys(formats)), files.make_folder(out)
    for figure in wanted:
        data = figure.data()
        for suffix in formats:
            yield _put(made / f"{figure.name}.{suffix}", render(figure, data, suffix))


def check(names: Iterable[str] = (), out: str | os.PathLike[str] = "figures") -> list[Checked]:
    """Compare what lies in a folder with what would be drawn now.

    The data behind each figure are always compared, by their hash. Bytes are compared where the tools are those of
    the manifest: platform, matplotlib, and the libraries with which it draws letters and writes PNG.

    There is one result for each figure, and one for the index. Raises `InputError` if there is no figure of some name,
    or no manifest in the folder.
    """
    names, out = tuple(names), Path(out)
    wanted = chosen(names)
    entries = _entries(out)
    checked = [_checked(figure, entries.get(figure.name), out) for figure in wanted]
    if not names:
        gone = [name for name in entries if name not in figures()]
        checked += [Checked(name, ("is in the manifest, but there is no such figure any more",)) for name in gone]
    path = out / INDEX
    same = path.is_file() and files.read(path) == _index(entries).encode()
    return [*checked, Checked(INDEX, () if same else ("does not say what the manifest says",))]


def _kept(out: Path) -> dict[str, Any]:
    """The entries of the manifest in a folder, if there is one, but for figures that are gone."""
    return {name: entry for name, entry in _entries(out, missing={}).items() if name in figures()}


def _checked(figure: Figure, entry: Mapping[str, Any] | None, out: Path) -> Checked:
    if entry is None:
        return Checked(figure.name, ("is not in the manifest",))
    data = figure.data()
    findings = [f"the {key} changed" for key, value in _about(figure).items() if entry.get(key) != value]
    if entry.get("data") != fingerprint(data):
        findings.append("the data behind it changed")
    paths = {suffix: out / f"{figure.name}.{suffix}" for suffix in FORMATS}
    findings += [f"{path.name} is missing" for path in paths.values() if not path.is_file()]
    # Other tools draw other bytes from the same data, which is no finding.
    here, there = tools(), entry.get("drawn with", {})
    if there != here:
        note = f"bytes were not compared: drawn with {_words(there)}; here is {_words(here)}"
        return Checked(figure.name, tuple(findings), note)
    findings += [
        f"{path.name} has other bytes than would be drawn now"
        for suffix, path in paths.items()
        if path.is_file() and files.read(path) != render(figure, data, suffix)
    ]
    return Checked(figure.name, tuple(findings))


def _words(used: Mapping[str, str]) -> str:
    return ", ".join(f"{what} {which}" for what, which in used.items())


def write_index(out: str | os.PathLike[str] = "figures") -> Path:
    """Write the page that shows every figure of the folder's manifest with its caption, claims and command."""
    out = Path(out)
    return _put(out / INDEX, _index(_entries(out)).encode())


def fingerprint(data: Mapping[str, Any]) -> str:
    """A hash of named arrays that does not see their last bits.

    Numbers count with 9 significant digits, and with none below 1e-13 of the largest in their array: what is left of
    a difference of large numbers is noise. Minus zero is zero.

    It is SHA-256, in hexadecimal; the order of the names does not matter. Raises `InputError` if a number is infinite
    or NaN.
    """
    content = {name: _digits(values) for name, values in sorted(data.items())}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _digits(values: Any) -> dict[str, Any]:
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        msg = f"the data of a figure must be finite, got {array[~np.isfinite(array)][0]}"
        raise InputError(msg)
    largest = float(np.max(np.abs(array), initial=0.0))
    # Decimal places: down to 1e-13 of the largest, and 9 significant digits of each, whichever is coarser.
    places = 13 - _exponent(largest)
    # Adding 0.0 makes 0.0 of -0.0.
    rounded = (round(x, min(8 - _exponent(x), places)) + 0.0 for x in array.ravel().tolist())
    return {"shape": array.shape, "numbers": [f"{x:.8e}" for x in rounded]}


def _exponent(x: float) -> int:
    return math.floor(math.log10(abs(x))) if x else 0


def tools() -> dict[str, str]:
    """The platform and the tools that the bytes of a drawing depend on, beside its data."""
    import platform

    import matplotlib as mpl
    import numpy as np
    import PIL
    from matplotlib import ft2font

    x = np.linspace(0.1, 3, 1001)
    values = np.concatenate([f(x) for f in (np.exp, np.log10, np.tanh, lambda x: np.power(10, x))])
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        # Last bits of elementary functions, which NumPy computes in another way on other processors.
        "functions": hashlib.sha256(values.tobytes()).hexdigest()[:6],
        "matplotlib": mpl.__version__,
        "freetype": ft2font.__freetype_version__,
        "pillow": PIL.__version__,
    }


def _about(figure: Figure) -> dict[str, Any]:
    command = figure.command or f"nceref figures {figure.name}"
    return {
        "title": figure.title,
        "caption": figure.caption,
        "source": figure.source,
        "claims": list(figure.claims),
        "command": command,
    }


def _entries(out: Path, missing: dict[str, Any] | None = None) -> dict[str, Any]:
    path = out / MANIFEST
    if not path.is_file():
        if missing is not None:
            return missing
        msg = f"there is no {path}; draw the figures first: nceref figures --out {out}"
        raise InputError(msg)
    try:
        entries = json_object(path, files.read_text(path))
    except FileError as error:
        msg = f"{error}; delete it and draw the figures again: nceref figures --out {out}"
        raise FileError(msg) from None
    if not all(map(_is_entry, entries.values())):
        msg = f"{path} is no manifest of figures, and would be lost; draw into another folder with --out"
        raise InputError(msg)
    return entries


_TEXTS = ("title", "caption", "source", "command", "data")


def _is_entry(entry: Any) -> bool:
    """Whether this has what the manifest says of a figure."""
    if not isinstance(entry, dict) or not entry.keys() >= {*_TEXTS, "claims", "drawn with"}:
        return False
    claims, used = entry["claims"], entry["drawn with"]
    if not isinstance(claims, list) or not isinstance(used, dict):
        return False
    return all(isinstance(text, str) for text in (*(entry[name] for name in _TEXTS), *claims, *used.values()))


def _text(entries: Mapping[str, Any]) -> bytes:
    content = {name: entries[name] for name in sorted(entries)}
    return json_text(content).encode()


def _index(entries: Mapping[str, Any]) -> str:
    parts = [_OPENING]
    for name, entry in sorted(entries.items()):
        picture = f'<img src="{name}.svg" width="480" alt="{entry["title"]}">'
        facts = f"{entry['source']}. Claims: {', '.join(entry['claims'])}. `{entry['command']}`"
        parts += [f"## {entry['title']}", picture, entry["caption"], facts]
    return "\n\n".join(parts) + "\n"


def _put(path: Path, content: bytes) -> Path:
    """Replace a file in one step."""
    files.replace(path, content)
    return path


def _refuse_to_lose(out: Path) -> None:
    """Raise for a page of somebody else's, where the index would be written."""
    page = out / INDEX
    if page.is_file() and not files.read(page).startswith(_OPENING.encode()):
        msg = f"{page} is not the index that nceref writes, and would be lost; draw into another folder with --out"
        raise InputError(msg)
