"""Reference vectors in formats that other programs read without JSON: NumPy's, safetensors' and C99.

Each stands beside the JSON, which `nceref vectors compare` reads, and names its manifest. All real numbers are float64.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref import __version__
from nceref.tolerance.implementation import FORMATS
from nceref.verification.vectors.records import VectorCase, VectorOutput

MOST_DIMENSIONS = 3
"""Of an array in C."""
_NAMES = {"<f8": "F64", "<f4": "F32", "<i8": "I64"}
"""Formats of arrays, and their names in safetensors."""
NO_METADATA: Mapping[str, str] = MappingProxyType({})


def arrays_of(cases: Sequence[VectorCase]) -> dict[str, Any]:
    """All arrays of some cases by name.

    Result: ``ID/inputs/NAME``, ``ID/outputs/NAME``, for an output that has not all rows ``ID/rows/NAME``, and
    ``ID/allowed/DTYPE/NAME``; float64, and int64 for labels and rows.
    """
    out: dict[str, Any] = {}
    for case in cases:
        out |= {f"{case.id}/inputs/{name}": x for name, x in case.inputs.items()}
        for name, output in case.outputs.items():
            out[f"{case.id}/outputs/{name}"] = output.numbers
            out |= {f"{case.id}/allowed/{dtype}/{name}": room for dtype, room in output.allowed.items()}
            out |= {} if output.rows is None else {f"{case.id}/rows/{name}": np.array(output.rows)}
    return {name: _wide(x) for name, x in out.items()}


def _wide(x: Any) -> Any:
    array = np.asarray(x)
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def _about(loss: str, cases: Sequence[VectorCase], manifest: str) -> dict[str, Any]:
    """The content that is no array."""
    about = {case.id: {"expect": case.expect, "settings": dict(case.settings)} for case in cases}
    return {"loss": loss, "manifest": manifest, "reduction": "mean", "cases": about}


def npz(loss: str, cases: Sequence[VectorCase], manifest: str) -> bytes:
    """An archive of NumPy, with the JSON text of everything else as ``about``; nothing in it is pickled."""
    stream = io.BytesIO()
    np.savez(stream, about=np.array(json.dumps(_about(loss, cases, manifest))), **arrays_of(cases))
    return stream.getvalue()


def safetensors(loss: str, cases: Sequence[VectorCase], manifest: str) -> bytes:
    """A file of safetensors, with the JSON text of everything else as ``about`` of its metadata."""
    return tensors(arrays_of(cases), {"about": json.dumps(_about(loss, cases, manifest))})


def tensors(arrays: Mapping[str, Any], metadata: Mapping[str, str] = NO_METADATA) -> bytes:
    """Arrays of float64, float32 or int64 by name as a file of safetensors.

    Eight bytes have the length of the header, which is JSON and ends in spaces up to a multiple of eight; then come the
    arrays, little-endian, in row-major order.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, end = [], 0
    for name, x in arrays.items():
        little = x.astype(x.dtype.newbyteorder("<"))
        parts.append(little.tobytes())
        start, end = end, end + x.nbytes
        header[name] = {"dtype": _NAMES[little.dtype.str], "shape": list(x.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def arrays_of_tensors(content: bytes) -> dict[str, Any]:
    """The arrays of what `tensors` wrote, by name."""
    start = 8 + int.from_bytes(content[:8], "little")
    out, kinds = {}, {name: kind for kind, name in _NAMES.items()}
    for name, about in json.loads(content[8:start]).items():
        if name != "__metadata__":
            first, last = (start + end for end in about["data_offsets"])
            out[name] = np.frombuffer(content[first:last], kinds[about["dtype"]]).reshape(about["shape"])
    return out


_TYPES = f"""\
#ifndef NCEREF_VECTORS
#define NCEREF_VECTORS
typedef struct {{
    const char *name;          /* of the input, or "value", "grad.NAME" */
    int dimensions;            /* 0: one number */
    long shape[{MOST_DIMENSIONS}];             /* of the whole array */
    long size;                 /* how many numbers follow, row by row */
    const double *numbers;     /* NULL for labels */
    const long long *integers; /* of labels, else NULL */
    const long *rows;          /* of a large output: which rows the numbers are; NULL: all */
    /* absolute errors that are allowed in {", ".join(FORMATS)}, one for each number; NULL: not judged */
    const double *allowed[{len(FORMATS)}];
}} nceref_array;
typedef struct {{
    const char *name, *value;
}} nceref_setting;
typedef struct {{
    const char *id, *expect; /* "value", or "error": these inputs must be refused */
    int setting_count, input_count, output_count;
    const nceref_setting *settings;
    const nceref_array *inputs, *outputs;
}} nceref_case;
#endif
"""


def c_header(loss: str, cases: Sequence[VectorCase], manifest: str) -> bytes:
    """A header of C99 that needs no other: tables of constants, whose numbers are exact, written in hexadecimal."""
    lines = [
        f"/* Reference vectors of {loss} by nceref {__version__}, under the reduction mean. CC0-1.0. */",
        f"#ifndef NCEREF_{loss.upper()}_H\n#define NCEREF_{loss.upper()}_H\n",
        _TYPES,
        f'#define NCEREF_{loss.upper()}_MANIFEST "{manifest}"',
    ]
    entries = []
    for place, case in enumerate(cases):
        stem = f"nceref_{loss}_{place}"
        lines += _tables(stem, case)
        counts = ", ".join(str(len(x)) for x in (case.settings, case.inputs, case.outputs))
        tables = [_named(f"{stem}_{part}", getattr(case, part)) for part in ("settings", "inputs", "outputs")]
        entries.append(f'    {{"{case.id}", "{case.expect}", {counts}, {", ".join(tables)}}},')
    lines += [f"static const nceref_case nceref_{loss}_cases[] = {{", *entries, "};"]
    lines += [f"static const int nceref_{loss}_count = {len(cases)};", "#endif"]
    return "\n".join(lines).encode() + b"\n"


def _named(name: str, content: Any) -> str:
    # C has no empty arrays.
    return name if content else "0"


def _tables(stem: str, case: VectorCase) -> Iterator[str]:
    """The definitions of one case: numbers first, then the tables that name them."""
    for part, given in (("inputs", case.inputs), ("outputs", case.outputs)):
        entries = []
        for name, x in given.items():
            own = f"{stem}_{part}_{name.replace('.', '_')}"
            numbers, rows = (x.numbers, x.rows) if isinstance(x, VectorOutput) else (x, None)
            array = _wide(numbers)
            yield _definition("long long" if array.dtype.kind == "i" else "double", own, array)
            if rows is not None:
                yield _definition("long", f"{own}_rows", np.array(rows))
            if isinstance(x, VectorOutput):
                for dtype, room in x.allowed.items():
                    yield _definition("double", f"{own}_allowed_{dtype}", room)
            entries.append(_entry(name, own, array, x if isinstance(x, VectorOutput) else None))
        yield from _table("nceref_array", f"{stem}_{part}", entries)
    settings = [f'    {{"{name}", "{_word(x)}"}},' for name, x in case.settings.items()]
    yield from _table("nceref_setting", f"{stem}_settings", settings)


def _entry(name: str, own: str, array: Any, output: VectorOutput | None) -> str:
    shape = array.shape if output is None else output.shape
    sizes = ", ".join(str(n) for n in (*shape, *[1] * (MOST_DIMENSIONS - len(shape))))
    pointers = (f"0, {own}" if array.dtype.kind == "i" else f"{own}, 0") + ", "
    pointers += "0" if output is None or output.rows is None else f"{own}_rows"
    judged = () if output is None else output.allowed
    allowed = ", ".join(f"{own}_allowed_{dtype}" if dtype in judged else "0" for dtype in FORMATS)
    return f'    {{"{name}", {len(shape)}, {{{sizes}}}, {array.size}, {pointers}, {{{allowed}}}}},'


def _definition(kind: str, name: str, array: Any) -> str:
    numbers = ", ".join(_hexadecimal(x) if isinstance(x, float) else str(x) for x in array.ravel().tolist())
    return f"static const {kind} {name}[] = {{{numbers}}};"


def _hexadecimal(x: float) -> str:
    """An exact constant of C, without zeros at its end.

    >>> _hexadecimal(-0.75), _hexadecimal(1.0), _hexadecimal(-0.0)
    ('-0x1.8p-1', '0x1p+0', '-0x0p+0')
    """
    digits, _, exponent = x.hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}"


def _table(kind: str, name: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield "\n".join([f"static const {kind} {name}[] = {{", *entries, "};"])


def _word(x: Any) -> str:
    """A setting as text: words as they are, truth values and integers as JSON has them."""
    return x if isinstance(x, str) else json.dumps(x)


WRITERS: Mapping[str, tuple[str, Callable[[str, Sequence[VectorCase], str], bytes]]] = MappingProxyType(
    {
        "npz": (".npz", npz),
        "safetensors": (".safetensors", safetensors),
        "c-header": (".h", c_header),
    }
)
"""Formats beside JSON: the ending of a file, and what makes it of a loss, its cases and the sha256 of the manifest."""
