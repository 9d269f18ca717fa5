"""Writing files: in one step, or not at all; and JSON as every file and command has it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from nceref.errors import InputError


def replace(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file at `path`: whoever reads it sees the old content or the new one.

    A link stays a link, and what it points to is replaced. Devices and pipes are written to.

    Parameters
    ----------
    path : path
        Its folder is created if it does not exist.
    content : bytes

    Raises
    ------
    OSError
        If it cannot be written; the old file stays as it was.
    """
    given = Path(path)
    if given.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if str(given).startswith(("/dev/", "/proc/")) or (given.exists() and not given.is_file()):
        with given.open("wb") as stream:
            stream.write(content)
        return
    # Beside the target: a file is replaced in one step only within its file system.
    target = Path(os.path.realpath(given))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        # A new file would have the rights of the process's umask, not those of the file that it replaces.
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file at `path` by text, as UTF-8 with its line ends as they are; see `replace`."""
    replace(path, text.encode())


def json_text(content: Any, indent: int | None = 2) -> str:
    """Plain data as JSON that ends in a newline.

    Parameters
    ----------
    content : object
        Mappings, lists, tuples, text, numbers, truth values and None.
    indent : int, optional
        None: all on one line.

    Raises
    ------
    ValueError
        For a number that is infinite or NaN, which JSON does not have.
    """
    text = json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
    # Not printable within text: what would change a terminal, and lone surrogates, which no file holds.
    if not text.isascii() or _DELETE in text:
        text = "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)
    return text + "\n"


_DELETE = "\x7f"


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if character != _DELETE else "\\u007f"


def must_be_writable(folders: Mapping[str, str | None], files: Mapping[str, str | None]) -> None:
    """Check that all output can be written, before the work begins and not after it.

    Parameters
    ----------
    folders, files : mappings
        Paths by option; None: the option is not used. Folders are created.

    Raises
    ------
    InputError
        If one cannot be written, or two options name the same file.
    """
    named = {option: path for option, path in files.items() if path is not None}
    seen: dict[str, str] = {}
    for option, path in named.items():
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            msg = f"{other} and {option} are the same file, {path}; name two"
            raise InputError(msg)
    for option, folder in folders.items():
        if folder is not None:
            _check_writable(option, Path(folder), folder=True)
    for option, path in named.items():
        _check_writable(option, Path(path), folder=False)


def _check_writable(option: str, path: Path, *, folder: bool) -> None:
    # Devices and pipes are what they are.
    if path.exists() and not path.is_file() and not path.is_dir():
        return
    parent = path if folder else path.parent
    try:
        if path.exists() and path.is_dir() != folder:
            raise OSError(None, f"it is a {'file' if folder else 'folder'}")
        if parent.is_file():
            raise NotADirectoryError(None, "not a directory")
        parent.mkdir(parents=True, exist_ok=True)
        # By making a file: the rights of a folder do not show a read-only disk.
        with TemporaryFile(dir=parent):
            pass
    except OSError as error:
        msg = f"cannot write {option} {path}: {(error.strerror or str(error)).lower()}; choose another place"
        raise InputError(msg) from None
