"""Writing files: in one step, or not at all."""

import os
from pathlib import Path


def replace(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file at `path`: whoever reads it sees the old content or the new one.

    A link stays a link, and what it points to is replaced. Devices and pipes are written to.

    Parameters
    ----------
    path : path
        Its folder is created if it does not exist.
    content : bytes
    """
    given = Path(path)
    if given.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if str(given).startswith(("/dev/", "/proc/")) or (given.exists() and not given.is_file()):
        with given.open("wb") as stream:
            stream.write(content)
        return
    target = Path(os.path.realpath(given))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
