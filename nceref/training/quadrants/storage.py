"""Saved runs: one .npz file with a header that says what it holds, and a digest of everything in it."""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import partial
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


def save(path: str | os.PathLike[str], setup: Setup, state: State) -> None:
    """Write a state in one step: whoever reads the file sees the old content or the new one.

    Parameters
    ----------
    path : path
        As it is given: no suffix is added.
    setup : Setup
    state : State

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    header = json.dumps({"format": FORMAT, "version": VERSION, "done": state.done, **asdict(setup)})
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    content = io.BytesIO()
    np.savez(content, header=np.array(header), digest=np.array(_digest(header, arrays)), **arrays)
    files.replace(path, content.getvalue())


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse to replace a file that `save` did not write; a new or an empty one is fine.

    Raises
    ------
    InputError
        If there is another file.
    """
    given = Path(path)
    if given.is_file() and given.stat().st_size:
        load(given)


def load(path: str | os.PathLike[str]) -> tuple[Setup, State]:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    setup : Setup
    state : State

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, or is something else.
    """
    content = files.read(path)
    try:
        arrays = _arrays(content)
        text, digest = str(arrays.pop("header")), str(arrays.pop("digest"))
        header = json.loads(text)
    # For a damaged file, zipfile, NumPy and json raise errors of many classes.
    except Exception:
        raise _refused(path, "damaged, or not an .npz file of a run") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _refused(path, f"its header does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise _refused(path, f"it is of version {header.get('version')!r}, not {VERSION}")
    # Last: a file of another version is refused for that, and not as damaged.
    if digest != _digest(text, arrays):
        raise _refused(path, "damaged, its content is not what was saved")
    try:
        return _checked(header, arrays)
    # Anybody can write a digest that fits.
    except (KeyError, TypeError, InputError) as error:
        raise _refused(path, f"it says what no run does ({error})") from None


def _arrays(content: bytes) -> dict[str, Any]:
    """The arrays in a file by name; a file that `save` cannot have written raises one of many errors."""
    names = ("header", "digest", *_ARRAYS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        # `save` packs nothing: what is packed may swell to any size.
        small = sum(entry.file_size for entry in entries) <= len(content)
        if not small or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise zipfile.BadZipFile
        if sorted(entry.filename for entry in entries) != sorted(f"{name}.npy" for name in names):
            raise KeyError
        # A pickle could run any code, and the file may be anybody's.
        read = partial(np.lib.format.read_array, allow_pickle=False)
        return {name: read(io.BytesIO(archive.read(f"{name}.npy"))) for name in names}


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
    """Of everything in a file, dtypes and shapes included."""
    digest = sha256(header.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _refused(path: str | os.PathLike[str], why: str) -> InputError:
    return InputError(f"{os.fspath(path)} is no saved run: {why}; name another file")
