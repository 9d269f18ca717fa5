"""A batch of a user's own from a file: arrays by name, in NumPy's or in safetensors' format."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np

from nceref.cases.aliases import match_input
from nceref.cases.corpus.resizing import MOST_ROWS
from nceref.cases.rounding import rounded
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
from nceref.errors import InputError, UnavailableError
from nceref.output import files
from nceref.output.text import printable, shown
from nceref.spec import Array, Labels, Loss, Scalar

ENDINGS = (".npz", ".safetensors")


def read_inputs(path: Any, loss: Loss) -> dict[str, Any]:
    """The inputs of a loss that a file has: float64 arrays, int64 labels, and floats, by the name of the input.

    `path` is a file ``.npz`` or ``.safetensors`` with arrays under the names of inputs, or under other names for them.
    Raises `InputError` if the file cannot be read, or has an array that is no input, is not finite, or is too large;
    `UnavailableError` without the package that reads safetensors. Pickled objects are never loaded.
    """
    stored = _arrays(path)
    known = {p.name: p for p in loss.parameters if isinstance(p, Array | Labels | Scalar)}
    out: dict[str, Any] = {}
    for key, x in stored.items():
        name = match_input(key, known)
        if name is None or name in out:
            why = "stands for an input that is there already" if name else f"is no input of {loss.name}"
            msg = f"`inputs` has {printable(key, 60)!r}, which {why}; it has {', '.join(f'`{n}`' for n in known)}"
            raise InputError(msg)
        out[name] = _checked(key, x, known[name])
    missing = [p.name for p in known.values() if isinstance(p, Array | Labels) and p.required and p.name not in out]
    if missing:
        msg = f"`inputs` must have every array that {loss.name} needs; {', '.join(map(repr, missing))} is missing"
        raise InputError(msg)
    _same_sizes(out, known)
    return out


def _same_sizes(arrays: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse two inputs that should have the same size, such as rows, and have not."""
    seen: dict[str, tuple[int, str]] = {}
    for name, x in arrays.items():
        letters = getattr(known[name], "shape", ())
        for letter, n in zip(letters, np.shape(x), strict=False) if len(letters) == np.ndim(x) else ():
            first = seen.setdefault(letter, (n, name))
            if first[0] != n:
                shapes = f"{np.shape(arrays[first[1]])} in `{first[1]}` and {np.shape(x)} in `{name}`"
                msg = f"`inputs` must have one size {letter}, got {shapes}"
                raise InputError(msg)


def given_inputs(
    loss: Loss, given: Mapping[str, Any], settings: Mapping[str, Any], dtype: str, fixed: Mapping[str, float]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cases of a user's own batch: at the temperature that it has, or that is fixed, or at usual ones.

    `given` is the result of `read_inputs`, and `settings` are the conventions that the target intends. Arrays and
    scalars are rounded to `dtype`, but for those in `fixed`, which the target was made with. Each case is its inputs
    with an id that begins with `GIVEN`, such as ``given-0.07``.
    """
    plain = {name: x for name, x in settings.items() if x is not ...}
    scalars = {p.name: p.default for p in loss.parameters if isinstance(p, Scalar) and isinstance(p.default, float)}
    typical = {p.name: float(np.mean(p.typical)) for p in loss.parameters if isinstance(p, Scalar) and p.default is ...}
    first = {name: x for name, x in loss.variants[0].items() if x is not ... and x != "views"}
    inputs = {**typical, **scalars, **first, **plain, **given}
    hot = next((p.name for p in loss.parameters if p.name in INVERSE_TEMPERATURES), None)
    free = hot is not None and hot not in {*given, *plain, *fixed}
    for temperature in USUAL if free else (None,):
        here = {**inputs, hot: at_temperature(hot, temperature)} if hot and temperature else inputs
        made = {name: rounded(x, dtype) for name, x in here.items()}
        yield f"{GIVEN}-{temperature:g}" if temperature else GIVEN, {**made, **fixed}


GIVEN = "given"
"""The prefix of the ids of cases of a user's own batch; no id of the suites begins with it."""
USUAL = (0.3, 0.07, 0.01)
"""Temperatures at which a batch is judged that has none."""


def _arrays(path: Any) -> Mapping[str, Any]:
    file = Path(str(path))
    if file.suffix not in ENDINGS:
        msg = f"`inputs` must be a file {' or '.join(ENDINGS)}, got {shown(str(path))}"
        raise InputError(msg)
    content = files.read(file, "`inputs`")
    try:
        return _npz(content) if file.suffix == ".npz" else _safetensors(content)
    # What a broken file raises depends on where it is broken.
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        msg = f"`inputs` cannot be read: {printable(file, 200)}: {printable(error, 200)}"
        raise InputError(msg) from None


def _npz(content: bytes) -> Mapping[str, Any]:
    if not is_zipfile(BytesIO(content)):
        msg = "it is no archive of arrays, as numpy.savez writes them"
        raise ValueError(msg)
    with np.load(BytesIO(content), allow_pickle=False) as data:
        return {key: data[key] for key in data.files}


def _safetensors(content: bytes) -> Mapping[str, Any]:
    try:
        from safetensors import SafetensorError, deserialize
    except ImportError:
        msg = "to read a .safetensors file, install safetensors; or save the arrays with numpy.savez"
        raise UnavailableError(msg) from None
    try:
        return {name: _decoded(name, **stored) for name, stored in deserialize(content)}
    except SafetensorError as error:
        raise ValueError(str(error)) from None


_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?",
          **{f"{sign}{8 * size}": f"<{sign.lower()}{size}" for sign in "IU" for size in (1, 2, 4, 8)}}  # fmt: skip


def _decoded(name: str, dtype: str, shape: Any, data: Any) -> Any:
    """A tensor of the file; NumPy has no bfloat16, which is the upper half of float32."""
    if dtype not in _KINDS:
        msg = f"{printable(name, 60)!r} is of type {printable(dtype, 20)}; store it in float32"
        raise ValueError(msg)
    x = np.frombuffer(data, _KINDS[dtype]).reshape(shape)
    return (x.astype("<u4") << 16).view("<f4") if dtype == "BF16" else x


def _checked(key: str, x: Any, p: Any) -> Any:
    """The array as what the input is."""
    x = np.asarray(x)
    wanted = "iu" if isinstance(p, Labels) else "fiu"
    if x.dtype.kind not in wanted:
        kinds = "integers" if isinstance(p, Labels) else "numbers"
        msg = f"`inputs` must have {kinds} under {printable(key, 60)!r}, got {x.dtype}"
        raise InputError(msg)
    if x.dtype.kind == "f" and not np.all(np.isfinite(x)):
        msg = f"`inputs` must be finite, got NaN or infinity in {printable(key, 60)!r}"
        raise InputError(msg)
    if isinstance(p, Scalar):
        if x.size != 1:
            msg = f"`inputs` must have one number under {printable(key, 60)!r}, got shape {x.shape}"
            raise InputError(msg)
        return float(x.reshape(()))
    if x.size == 0:
        msg = f"`inputs` is empty under {printable(key, 60)!r}: its shape is {x.shape}; save at least one row"
        raise InputError(msg)
    if x.ndim == 0 or x.shape[0] > MOST_ROWS:
        msg = (
            f"`inputs` must have between 1 and {MOST_ROWS} rows under {printable(key, 60)!r}, got shape {x.shape}:"
            " bounds take rows by rows; save a part of the batch"
        )
        raise InputError(msg)
    return x.astype(np.int64 if isinstance(p, Labels) else np.float64)
