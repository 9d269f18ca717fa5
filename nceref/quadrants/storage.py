"""Saved runs: one .npz file with a header that is checked before anything is read from it."""

import io
import json
import os
import zipfile
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from nceref import files
from nceref.errors import InputError
from nceref.quadrants import batch
from nceref.quadrants.batch import Setup, State

FORMAT, VERSION = "nceref quadrants", 1
_ARRAYS = tuple(field.name for field in fields(State) if field.name != "done")


def save(path: str | os.PathLike[str], setup: Setup, state: State) -> None:
    """Write a state in one step: whoever reads the file sees the old content or the new one.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    header = {"format": FORMAT, "version": VERSION, "done": state.done, **asdict(setup)}
    content = io.BytesIO()
    np.savez(content, header=np.array(json.dumps(header)), **{name: getattr(state, name) for name in _ARRAYS})
    try:
        files.replace(path, content.getvalue())
    except OSError as error:
        msg = f"cannot write {os.fspath(path)}: {error.strerror or error}; choose another place"
        raise InputError(msg) from None


def load(path: str | os.PathLike[str]) -> tuple[Setup, State]:
    """Read what `save` wrote.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, or is something else.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        msg = f"cannot read {os.fspath(path)}: {error.strerror or error}"
        raise InputError(msg) from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("header", *_ARRAYS)}
        header = json.loads(str(arrays.pop("header")))
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise _refused(path, f"damaged, or not an .npz file of a run ({error})") from None
    return _checked(path, header, arrays)


def _checked(path: str | os.PathLike[str], header: Any, arrays: dict[str, Any]) -> tuple[Setup, State]:
    """Setup and state, if the header is ours and every array has the shape and dtype that it announces."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _refused(path, f"its header does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise _refused(path, f"it is of version {header.get('version')!r}, not {VERSION}")
    try:
        given = {field.name: header[field.name] for field in fields(Setup)}
        setup = Setup(**given | {name: tuple(given[name]) for name in ("seeds", "temperatures")})
        done = header["done"]
    except (KeyError, TypeError, InputError) as error:
        raise _refused(path, f"its header is incomplete or wrong ({error})") from None
    if len(arrays["losses"]) != setup.steps:
        raise _refused(path, f"`losses` has {len(arrays['losses'])} steps, its header announces {setup.steps}")
    empty = batch.begin(setup)
    for name, array in arrays.items():
        wanted = getattr(empty, name)
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            announced = f"{wanted.dtype} {wanted.shape}"
            raise _refused(path, f"`{name}` is {array.dtype} {array.shape}, its header announces {announced}")
    whole = isinstance(done, int) and 0 <= done <= setup.steps and (done % batch.BLOCK == 0 or done == setup.steps)
    if not whole or not np.isfinite(arrays["weights"]).all():
        raise _refused(path, f"its state after step {done!r} is not one that was saved")
    return setup, State(done=done, **arrays)


def _refused(path: str | os.PathLike[str], why: str) -> InputError:
    return InputError(f"{os.fspath(path)} is no saved run: {why}; delete it and start again")
