"""Saved runs: one .npz file with a header that says what it holds, and a digest of everything in it."""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from nceref.engine.arguments import integer
from nceref.errors import InputError
from nceref.output import files
from nceref.training.quadrants import batch
from nceref.training.quadrants.batch import Setup, State

FORMAT, VERSION = "nceref quadrants", 1
_ARRAYS = tuple(field.name for field in fields(State) if field.name != "done")


def save(path: str | os.PathLike[str], setup: Setup, state: State, name: str = "") -> None:
    """Write a state in one step: whoever reads the file sees the old content or the new one.

    No suffix is added to the path; messages name the argument `name`. Raises `FileError` if the file cannot be written.
    """
    header = json.dumps({"format": FORMAT, "version": VERSION, "done": state.done, **asdict(setup)})
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    content = io.BytesIO()
    np.savez(content, header=np.array(header), digest=np.array(_digest(header, arrays)), **arrays)
    files.replace(path, content.getvalue(), name)


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse to replace a file that `save` did not write; a new or an empty one is fine.

    Raises `InputError` if there is another file.
    """
    given = Path(path)
    if given.is_file() and given.stat().st_size:
        load(given)


def load(path: str | os.PathLike[str]) -> tuple[Setup, State]:
    """Read what `save` wrote.

    Raises `InputError` if the file cannot be read, is damaged, or is something else.
    """
    arrays = _arrays(path, files.read(path))
    text, digest = str(arrays.pop("header")), str(arrays.pop("digest"))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _refused(path, "damaged, its `header` is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _refused(path, f"its header does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise _refused(path, f"it is of version {header.get('version')!r}, not {VERSION}")
    # Last: a file of another version is refused for that, and not as damaged.
    if digest != _digest(text, arrays):
        raise _refused(path, "damaged, its checksum (`digest`) is not that of its content")
    try:
        return _checked(header, arrays)
    # Anybody can write a digest that fits.
    except (KeyError, TypeError, InputError) as error:
        raise _refused(path, f"it says what no run does ({error})") from None


def _arrays(path: str | os.PathLike[str], content: bytes) -> dict[str, Any]:
    """The arrays in a file by name; one that `save` cannot have written is refused."""
    names = {"header", "digest", *_ARRAYS}
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    # For a damaged file, zipfile and NumPy raise errors of many classes.
    except Exception:
        raise _refused(path, "damaged, its end is missing, or it is not an .npz file") from None
    with archive:
        entries = archive.infolist()
        if missing := sorted(names - {entry.filename.removesuffix(".npy") for entry in entries}):
            raise _refused(path, f"damaged, or another .npz file: it has no `{missing[0]}`")
        # `save` packs nothing: what is packed may swell to any size.
        small = sum(entry.file_size for entry in entries) <= len(content)
        if not small or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise _refused(path, "it is packed, or says wrong sizes")
        if len(entries) > len(names):
            raise _refused(path, "it has more arrays than a run")
        return {name: _array(path, archive, name) for name in ("header", "digest", *_ARRAYS)}


def _array(path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str) -> Any:
    try:
        # A pickle could run any code, and the file may be anybody's.
        return np.lib.format.read_array(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    except Exception:
        raise _refused(path, f"damaged, its `{name}` cannot be read") from None


def _checked(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> tuple[Setup, State]:
    """Setup and state, if they belong together; else a KeyError, a TypeError or an `InputError`."""
    given = {field.name: header[field.name] for field in fields(Setup)}
    if not isinstance(given["confounder"], bool):
        msg = f"confounder must be true or false, got {given['confounder']!r}"
        raise InputError(msg)
    setup = Setup(**given | {name: tuple(given[name]) for name in ("seeds", "temperatures")})
    state = State(done=integer("`done`", header["done"], 0, setup.steps), **arrays)
    runs = len(setup.seeds) * len(setup.temperatures)
    # Before arrays of that size are made.
    if state.losses.shape != (setup.steps, runs):
        msg = f"losses of shape {state.losses.shape}"
        raise InputError(msg)
    begun = batch.begin(setup)
    for name, array in arrays.items():
        first = getattr(begun, name)
        if (array.dtype, array.shape) != (first.dtype, first.shape):
            msg = f"{name} of dtype {array.dtype} and shape {array.shape}"
            raise InputError(msg)
    if not (np.isfinite(state.weights).all() and (state.stopped >= 0).all() and (state.stopped <= state.done).all()):
        msg = "weights or steps out of their range"
        raise InputError(msg)
    return setup, state


def _digest(header: str, arrays: Mapping[str, Any]) -> str:
    """The digest of everything in a file, dtypes and shapes included."""
    digest = sha256(header.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _refused(path: str | os.PathLike[str], why: str) -> InputError:
    return InputError(f"{os.fspath(path)} is no saved run: {why}; name another file")
