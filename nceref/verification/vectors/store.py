"""The folder of reference vectors: a manifest with checksums, and a file for each loss."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nceref import __version__
from nceref.cases.rounding import rounded
from nceref.errors import FileError, InputError
from nceref.losses import default_of, get_loss
from nceref.output.files import read
from nceref.output.json_text import json_object
from nceref.output.schema import check
from nceref.output.text import shown
from nceref.output.words import counted
from nceref.registry import choose
from nceref.spec import Array, Labels, Scalar
from nceref.verification.vectors import packed
from nceref.verification.vectors.records import FEW_BITS, VALUE, VectorCase, case_of, record_of

DATA = Path(__file__).parent / "data"
"""The vectors of the package."""
MANIFEST, RANKS = "MANIFEST.json", "ranks.json"
CHANGES = "CHANGES.jsonl"
"""A line for each version of the corpus: what changed, and the sha256 of its ids, sorted, one a line."""
FORMAT, FORMER = "2.0", "1"
"""Of the files. The first number changes where a reader of before would misread them: format 1 had one allowed error
for a whole output."""
CORPUS = "2026.11.3"
"""Version of the cases, by year and month."""
SPECIFICATION = 1
"""What the losses mean: one whose meaning changes gets another number."""
PathLike = str | os.PathLike[str]
_ID = re.compile(rb'"id"\s*:\s*"([^"\\]+)"')
NOTHING: Mapping[str, bytes] = MappingProxyType({})


class ChecksumError(InputError):
    """A file of the vectors is not the one that the manifest names."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """A folder of vectors that was read: the manifest as it stands in its file, and the cases by loss, in order.

    `sha256` is of the bytes of the manifest: what recorded outputs have to name.
    """

    manifest: Mapping[str, Any]
    sha256: str
    cases: Mapping[str, tuple[VectorCase, ...]]


def read_vectors(folder: PathLike | None = None, losses: tuple[str, ...] = ()) -> Vectors:
    """Read a folder of vectors that ``nceref vectors export`` wrote, whole or the files of some losses.

    None is the folder of the package; no names are all losses. Raises `ChecksumError` for a file that is not the one of
    the manifest, `FileError` for one that cannot be read or is no JSON, and `InputError` for a loss without vectors, a
    format of another version, and anything else that is not as it must be.
    """
    place = DATA if folder is None else Path(folder)
    content = read(place / MANIFEST)
    manifest = _manifest(place / MANIFEST, content)
    files = {loss: f"{loss}.json" for loss in manifest["counts"]}
    if folder is not None and (absent := [loss for loss in losses if loss not in files]):
        msg = f"{place} has no vectors of {absent[0]}; it has {', '.join(files)}"
        raise InputError(msg)
    chosen = choose("loss with vectors", losses, files, "nceref vectors list") if losses else list(files.values())
    names = [name.removesuffix(".json") for name in chosen]
    large = _large_cases(place, names, manifest)
    # Of a folder of the format before, all losses look up their cases in the package, which is read once.
    own = cache(lambda: read_vectors(losses=tuple(names)).cases)
    held = {loss: (*_small_cases(place, loss, manifest, folder is not None, own), *large[loss]) for loss in names}
    cases = {loss: _counted(place / f"{loss}.json", each, manifest) for loss, each in held.items()}
    return Vectors(manifest, hashlib.sha256(content).hexdigest(), cases)


def _small_cases(
    place: Path,
    loss: str,
    manifest: Mapping[str, Any],
    foreign: bool,
    own: Callable[[], Mapping[str, tuple[VectorCase, ...]]],
) -> Sequence[VectorCase]:
    return cases_in(
        place / f"{loss}.json",
        manifest,
        lambda: own()[loss],
        lambda content, record, where: case_of(content["loss"], record, where),
        "cases.schema.json" if foreign else "",
    )


def cases_in(
    path: Path,
    manifest: Mapping[str, Any],
    own: Callable[[], Iterable[Any]],
    made: Callable[[Mapping[str, Any], Mapping[str, Any], str], Any],
    schema: str,
) -> tuple[Any, ...]:
    """The cases of a file; of format 1, those of the package with the same ids, and so with the same contents.

    `own`: the cases of the package. `made`: the case of a file's content, a record in it, and the place of that.
    `schema`: what a file of somebody else is checked by; empty for a file of the package.
    """
    content = json_object(path, text_of(path, checked_content(path, manifest)))
    if is_former(manifest):
        return tuple(_present({case.id: case for case in own()}, _ids_of(content), path))
    if schema:
        check(content, DATA / schema, str(path))
    return tuple(made(content, each, f"{path}, entry {i}") for i, each in enumerate(content["cases"], 1))


def is_former(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is of the format before."""
    return str(manifest["format"]).partition(".")[0] == FORMER


def _ids_of(content: Mapping[str, Any]) -> list[str]:
    """The ids of the cases of a file, as far as it has any."""
    cases = content.get("cases")
    return [str(case.get("id")) for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []


def _present(own: Mapping[str, Any], ids: Iterable[str], path: Path) -> Iterator[Any]:
    """The cases of the package that have these ids; raises `InputError` for one that has none."""
    for id in ids:
        if id not in own:
            msg = f"{path}: this version has no case {shown(id)}; export the vectors anew"
            raise InputError(msg)
        yield own[id]


def losses_of(ids: Collection[str], folder: PathLike | None = None) -> dict[str, str]:
    """The loss of each id that a file of a folder has, without reading what else the files hold.

    The folder is as for `read_vectors`, which raises the same.
    """
    place, manifest = DATA if folder is None else Path(folder), read_manifest(folder)
    contents = ((loss, checked_content(place / f"{loss}.json", manifest)) for loss in manifest["counts"])
    listed = ((loss, id.decode(errors="replace")) for loss, text in contents for id in _ID.findall(text))
    return {id: loss for loss, id in listed if id in ids}


def check_files(folder: PathLike | None = None) -> int:
    """Compare the checksum of every file of a folder with the manifest; how many there are.

    Raises `ChecksumError` for the first that differs.
    """
    place, manifest = DATA if folder is None else Path(folder), read_manifest(folder)
    for name in manifest["files"]:
        checked_content(place / name, manifest)
    return len(manifest["files"])


def checked_content(path: Path, manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a file that are those of the manifest."""
    content, wanted = read(path), manifest["files"].get(path.name, "no such file")
    if (got := hashlib.sha256(content).hexdigest()) != wanted:
        msg = f"{path} was changed: its sha256 is {got}, the manifest has {wanted}; export the vectors anew"
        raise ChecksumError(msg)
    return content


def read_manifest(folder: PathLike | None = None) -> dict[str, Any]:
    """The manifest of a folder, or of the package; raises as `read_vectors` does."""
    path = (DATA if folder is None else Path(folder)) / MANIFEST
    return _manifest(path, read(path))


def _manifest(path: Path, content: bytes) -> dict[str, Any]:
    manifest = json_object(path, text_of(path, content))
    version = manifest.get("format")
    known = FORMAT.partition(".")[0]
    if not isinstance(version, str) or version.partition(".")[0] not in (FORMER, known):
        msg = (
            f"{path}: `format` must be {known}.x or {FORMER}.x, which this version reads, got {shown(version)}; "
            "use the version that wrote it"
        )
        raise InputError(msg)
    check({**manifest, "format": FORMAT}, DATA / "manifest.schema.json", str(path))
    if outside := [name for name in manifest["files"] if Path(name).name != name]:
        msg = f"{path}: `files` must be names of files beside it, got {shown(outside[0])}"
        raise InputError(msg)
    return manifest


def _counted(path: Path, cases: tuple[VectorCase, ...], manifest: Mapping[str, Any]) -> tuple[VectorCase, ...]:
    """The cases, if these are all that the manifest has of the loss, and as many of them required."""
    ids, count = [case.id for case in cases if case.loss == path.stem], manifest["counts"][path.stem]
    if not len(cases) == count == len(set(ids)):
        msg = (
            f"{path}: the manifest counts {counted(count, 'case')} of {path.stem}, with different ids; "
            f"got {len(set(ids))}"
        )
        raise InputError(msg)
    required, given = sum(map(is_required, cases)), manifest["min_cases"].get(path.stem)
    if given != required:
        where = f"{path.with_name(MANIFEST)}: `min_cases` of {path.stem}"
        msg = f"{where} must be {required}, got {shown(given)}; export the vectors anew"
        raise InputError(msg)
    if (given := manifest["specification"].get(path.stem)) != SPECIFICATION:
        where = f"{path.with_name(MANIFEST)}: `specification` of {path.stem}"
        msg = f"{where} must be {SPECIFICATION}, which this version means by the loss, got {shown(given)}"
        raise InputError(msg)
    return cases


def _large_cases(place: Path, losses: Sequence[str], manifest: Mapping[str, Any]) -> dict[str, tuple[VectorCase, ...]]:
    """The cases of files of their own in the package, by loss."""
    if packed.RECORDS not in manifest["files"] or is_former(manifest):
        return dict.fromkeys(losses, ())
    return _unpacked(losses, *(checked_content(place / name, manifest) for name in (packed.RECORDS, packed.ARRAYS)))


def _unpacked(losses: Collection[str], records: bytes, arrays: bytes) -> dict[str, tuple[VectorCase, ...]]:
    cases: dict[str, tuple[VectorCase, ...]] = dict.fromkeys(losses, ())
    try:
        for loss, record in packed.unpacked(records, arrays, losses):
            cases[loss] += (case_of(loss, record, packed.RECORDS),)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # No schema describes these two files, which are the package's own; another folder seldom has them.
        msg = f"{packed.RECORDS} and {packed.ARRAYS} are not as this version writes them; export the vectors anew"
        raise InputError(msg) from error
    return cases


def text_of(path: Path, content: bytes) -> str:
    """The text of a file; raises `FileError` for what is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        msg = f"{path} is no text in UTF-8: {error}"
        raise FileError(msg) from None


def folder_files(cases: Mapping[str, Sequence[VectorCase]], others: Mapping[str, bytes] = NOTHING) -> dict[str, bytes]:
    """The contents of a folder of vectors by name of file, the manifest last; `cases` are by loss.

    `others` has by name the contents of files without cases of one loss alone.
    """
    files = {**{f"{loss}.json": _loss_file(loss, each) for loss, each in cases.items()}, **others}
    files |= {path.name: read(path) for path in (*sorted(DATA.glob("*.schema.json")), DATA / CHANGES)}
    return {**files, MANIFEST: manifest_file(cases, files)}


def _loss_file(loss: str, cases: Sequence[VectorCase]) -> bytes:
    """The file of a loss, a case on each line."""
    lines = ",\n".join(json.dumps(record_of(case), allow_nan=False) for case in cases)
    return f'{{"format": "{FORMAT}", "loss": "{loss}", "cases": [\n{lines}\n]}}\n'.encode()


def manifest_file(cases: Mapping[str, Sequence[VectorCase]], files: Mapping[str, bytes]) -> bytes:
    """The manifest of a folder with these cases in these files."""
    content = {
        "format": FORMAT,
        "corpus": CORPUS,
        "specification": dict.fromkeys(cases, SPECIFICATION),
        "generator": f"nceref {__version__}",
        "license": "CC0-1.0",
        "reduction": "mean",
        "counts": {loss: len(each) for loss, each in cases.items()},
        "min_cases": {loss: sum(map(is_required, each)) for loss, each in cases.items()},
        "files": {name: hashlib.sha256(x).hexdigest() for name, x in files.items()},
    }
    return f"{json.dumps(content, indent=1)}\n".encode()


def is_required(case: VectorCase) -> bool:
    """Whether every implementation of the loss has to answer a case: it has the arguments of the first variant.

    Constants that have a default, such as a label smoothing, are at it: not every implementation has them.
    """
    declared = get_loss(case.loss).declaration
    first = {p.name: default_of(p) for p in declared.parameters} | dict(declared.variants[0])
    optional = {p.name for p in declared.parameters if isinstance(p, Array | Labels) and not p.required}
    constants = [p for p in declared.parameters if isinstance(p, Scalar) and p.constant]
    fixed = {p.name for p in constants if isinstance(p.default, float)}
    at = {name: rounded(x, FEW_BITS) if isinstance(x, float) else x for name, x in first.items()}
    same = all(at[name] == x for name, x in case.arguments.items() if name in {*case.settings, *fixed})
    given = {name for name in optional if first[name] is not None}
    return case.expect == VALUE and same and optional & case.inputs.keys() == given
