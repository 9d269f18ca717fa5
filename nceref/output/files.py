"""Files: read and written whole, with errors that name them."""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from nceref.errors import FileError, InputError
from nceref.output.text import harmless

try:
    import fcntl
# On Windows, and in a browser.
except ImportError:
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
LARGEST_TEXT = 2**24
"""Bytes of a text that is read."""
DRAFT = ".nceref-draft-"
"""The prefix of the name of a file that is not finished yet."""
_NO_SPACE = "free some space, or choose another place"
_NO_FOLDER = ("its folder does not exist", "make it first, or choose another place")
_REASONS = {
    errno.EISDIR: ("it is a folder", "name a file"),
    errno.EEXIST: ("not a directory", "choose another place"),
    errno.EFBIG: ("file too large", "raise the limit (ulimit -f), or choose another place"),
    errno.ENAMETOOLONG: ("file name too long", "choose a shorter one"),
    errno.ENOSPC: ("no space left on device", _NO_SPACE),
    errno.EDQUOT: ("disk quota exceeded", _NO_SPACE),
}
"""The meaning of an error number for a file, and the remedy; other numbers have the words of the system."""


def replace(path: PathLike, content: bytes, option: str = "") -> None:
    """Replace the file at `path`: whoever reads it sees the old content or the new one.

    That holds if the process is killed at any moment, if several processes or threads write the same file, and after a
    power failure. A killed process may leave a draft in the folder, under a name of its own; the next one that writes
    there removes it. A link stays a link, and what it points to is replaced. Devices and pipes are written to.

    Its folder must be there, as for other tools; see `make_folder`. Messages name the option. Raises `FileError` if it
    cannot be written, or is a file that may not be written to; the old file stays as it was.
    """
    with _errors("write", path, option):
        old = _status(path)
        if _is_stream(path, old):
            with Path(path).open("wb") as stream:
                stream.write(content)
        else:
            _replace(Path(os.path.realpath(path)), content, old)


def _replace(target: Path, content: bytes, old: os.stat_result | None) -> None:
    if old is not None:
        _must_be_open_to_us(target)
    # Beside the target: a file is replaced in one step only within its file system.
    with _draft(target.parent) as (stream, draft):
        if old is not None:
            _as_it_was(draft, old)
        stream.write(content)
        stream.flush()
        # After a power failure, some file systems have the new name without the content.
        os.fsync(stream.fileno())
        # An open file cannot be renamed on Windows.
        if sys.platform == "win32":
            stream.close()
        draft.replace(target)


def _must_be_open_to_us(target: Path) -> None:
    """Raise for a file that may not be written to: its folder would let it be replaced all the same."""
    with target.open("r+b"):
        pass


def _as_it_was(draft: Path, old: os.stat_result) -> None:
    """Give a draft the rights of the file that it replaces, and its group and owner where that is allowed."""
    if hasattr(os, "chown"):
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError):
                os.chown(draft, owner, group)
    draft.chmod(old.st_mode & 0o777)


@contextmanager
def _draft(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file that is locked while it is open; removed at the end, unless it has got another name by then."""
    _remove_leftovers(folder)
    stream, path = _new_file(folder)
    try:
        with stream:
            yield stream, path
    finally:
        path.unlink(missing_ok=True)


def _new_file(folder: Path) -> tuple[IO[bytes], Path]:
    while True:
        path = folder / f"{DRAFT}{uuid4().hex}"
        stream = path.open("xb")
        try:
            _lock(stream.fileno())
        # Somebody else takes it for a leftover, and removes it.
        except BlockingIOError:
            stream.close()
            continue
        # Some network file systems have no locks: nothing is taken for a leftover there.
        except OSError:
            pass
        if path.exists():
            return stream, path
        stream.close()


def _remove_leftovers(folder: Path) -> None:
    """Remove the drafts of processes that were killed: the lock of a draft ends with its process."""
    for path in folder.glob(f"{DRAFT}*"):
        # Not ours, or written just now.
        with suppress(OSError), path.open("r+b") as stream:
            _lock(stream.fileno())
            path.unlink()


def _lock(descriptor: int, wait: bool = False) -> None:
    """Lock a file until it is closed; a lock that somebody else has is waited for, or raises."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def make_folder(path: PathLike, option: str = "") -> Path:
    """Make a folder for several files, with those above it, unless it is there.

    Raises `FileError`, which names the option, if it cannot be made, or is a file.
    """
    with _errors("write", path, option):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


@contextmanager
def alone(folder: PathLike) -> Iterator[None]:
    """Wait until no other process or thread is in here for the same folder, where the system has such locks."""
    with ExitStack() as stack:
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            _lock(descriptor, wait=True)
        yield


def write_text(path: PathLike, text: str, option: str = "") -> None:
    """Replace the file at `path` by text, as UTF-8 with its line ends as they are; see `replace`."""
    # Of names and messages of others, what UTF-8 does not have is escaped.
    replace(path, text.encode(errors="backslashreplace"), option)


def read(path: PathLike, option: str = "", most: int | None = None) -> bytes:
    """The content of a regular file.

    Raises `FileError`, which names the option, if there is no such file, it cannot be read, or it has more than `most`
    bytes.
    """
    with _errors("read", path, option):
        # A device may have no end, and a pipe nobody who writes.
        if _is_stream(path, _status(path)):
            raise OSError(None, "it is not a regular file")
        with Path(path).open("rb") as stream:
            content = stream.read(-1 if most is None else most + 1)
        if most is not None and len(content) > most:
            raise OSError(None, f"it is larger than {most:,} bytes")
        return content


def read_text(path: PathLike, option: str = "") -> str:
    """The text in a regular file, in UTF-8; `FileError` as by `read`, and for more than `LARGEST_TEXT` bytes."""
    content = read(path, option, LARGEST_TEXT)
    with _errors("read", path, option):
        try:
            # Line ends as in a file that is opened as text, and no mark of byte order.
            return content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise OSError(None, f"it is not text in UTF-8 (byte {error.start})") from None


def must_be_writable(
    folders: Mapping[str, str | None], files: Mapping[str, str | None], inputs: Mapping[str, str | None] | None = None
) -> None:
    """Check that all output can be written, before the work begins and not after it.

    Paths are by option; None: the option is not used; a file -: standard output. Nothing is created. A folder need not
    be there, that of a file must. `inputs` are files that are read, which no output may replace. Raises `InputError` if
    one cannot be written, or two options name the same file.
    """
    wanted = {option: path for option, path in files.items() if path is not None}
    seen: dict[str, str] = {}
    for option, path in {**(inputs or {}), **wanted}.items():
        if path is None:
            continue
        with _errors("write", path, option):
            other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            msg = f"{other} and {option} are the same file, {path}; name two"
            raise InputError(msg)
    for option, folder in folders.items():
        if folder is not None:
            with _errors("write", folder, option):
                _check_folder(Path(folder))
    for option, path in wanted.items():
        if path != "-":
            with _errors("write", path, option):
                _check_file(path)


def _check_folder(folder: Path) -> None:
    status = _status(folder, folder=True)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(None, "it is a file")
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise NotADirectoryError(None, "not a directory")
    # By making a file: the rights of a folder do not show a read-only disk.
    with _draft(there):
        pass


def _check_file(path: str) -> None:
    old = _status(path)
    if _is_stream(path, old):
        return
    target = Path(os.path.realpath(path))
    if old is not None:
        _must_be_open_to_us(target)
    with _draft(target.parent):
        pass


def _status(path: PathLike, *, folder: bool = False) -> os.stat_result | None:
    """The status of the file or folder at a path; None where there is nothing yet."""
    if os.fsdecode(path).endswith(os.sep) and not folder:
        raise IsADirectoryError(errno.EISDIR, "")
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode) and not folder:
        raise IsADirectoryError(errno.EISDIR, "")
    return status


def _is_stream(path: PathLike, status: os.stat_result | None) -> bool:
    """Whether this is a device or a pipe, or a file that is open under another name, such as /dev/stdout."""
    if status is None:
        return False
    return not stat.S_ISREG(status.st_mode) or os.fsdecode(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))


@contextmanager
def _errors(doing: str, path: PathLike, option: str) -> Iterator[None]:
    """Errors of the system as a `FileError` that names option and path, and says why and what to do."""
    try:
        Path(path)
    except TypeError:
        msg = f"{option or 'a file'} must be named by text or a path, got {path!r}"
        raise InputError(msg) from None
    if not os.fsdecode(path):
        msg = f"{option or 'the name of a file'} is empty; give a path"
        raise FileError(msg)
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError) as error:
        # A ValueError: no file can have such a name, for instance one with a null byte.
        words = (getattr(error, "strerror", None) or str(error)).lower()
        # Each version of Python has words of its own for it.
        words = "embedded null byte" if "\0" in os.fsdecode(path) else words
        other = "choose another place" if doing == "write" else "name another file"
        why, remedy = _REASONS.get(getattr(error, "errno", None) or 0, (words, other))
        if doing == "write" and isinstance(error, FileNotFoundError):
            # The system itself keeps some folders, such as /proc.
            is_there = Path(os.path.realpath(path)).parent.is_dir()
            why, remedy = ("its folder takes no new files", other) if is_there else _NO_FOLDER
        named = " ".join(filter(None, (option, harmless(os.fsdecode(path)))))
        msg = f"cannot {doing} {named}: {why}; {remedy}"
        raise FileError(msg) from error
