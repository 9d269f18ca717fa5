"""Namespaces of Linux by its system calls: what `unshare` and `mount` do, for a process that any user may start.

Sources: unshare(2), user_namespaces(7), mount_setattr(2), open_tree(2), move_mount(2), capabilities(7).
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_NEW = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""Numbers of system calls, the same on every architecture."""
_HERE, _EMPTY_PATH, _RECURSIVE, _CLONE, _FROM_EMPTY_PATH = -100, 0x1000, 0x8000, 1, 4
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS, _PRIVATE = 1, 2, 4, 8, 1 << 18
_DROP_BOUND, _NO_NEW_PRIVILEGES = 24, 38
_CAPABILITIES_VERSION = 0x20080522
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


def enter() -> None:
    """Put this process into namespaces of its own; the process identifiers hold from the next fork on.

    Raises `OSError` if the system does not permit it.
    """
    user, group = os.getuid(), os.getgid()
    _checked("unshare", _libc().unshare(sum(_NEW.values())))
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(content, encoding="ascii")


def furnish(kept: Iterable[str], private: Iterable[str]) -> None:
    """Make the file system read-only, replace private folders by empty ones, and give up the right to change that.

    The folders and files in `kept` stay visible where they lie inside private ones. Raises `OSError` if the system does
    not permit it.
    """
    folder = Path.cwd()
    shown = {path: _copy(path) for path in kept}
    devices = {path: _copy(path) for path in (*(f"/dev/{n}" for n in _DEVICES), *accelerators()) if Path(path).exists()}
    _restrict(_HERE, "/", _READ_ONLY | _NO_SUID | _NO_DEVICES)
    for path in private:
        _mount("tmpfs", path, _NO_SUID | _NO_DEVICES, "mode=1777")
    # In a folder where everybody may write, nobody may open another's device with O_CREAT.
    _mount("tmpfs", "/dev", _NO_SUID | _NO_DEVICES, "mode=755")
    _mount("proc", "/proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    # An administrator could set the system's parameters there, and change the rights of devices.
    _restrict(_HERE, "/proc", _READ_ONLY)
    for path, mount in devices.items():
        _restrict(mount, "", _READ_ONLY | _NO_SUID)
        _place(mount, path)
    Path("/dev/shm").mkdir()
    for name, descriptor in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        Path(f"/dev/{name}").symlink_to(f"/proc/self/fd{descriptor}")
    for path, mount in shown.items():
        _restrict(mount, "", _READ_ONLY | _NO_SUID | _NO_DEVICES)
        _place(mount, path)
    # By its name: what was the current folder may lie below one that is replaced.
    os.chdir(folder if folder.is_dir() else "/")
    _give_up_rights()


def accelerators() -> list[str]:
    """Devices of GPUs that are there."""
    patterns = ("nvidia*", "dri", "kfd")
    return sorted(str(path) for pattern in patterns for path in Path("/dev").glob(pattern))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _call(what: str, number: int, *arguments: object) -> int:
    words = [ctypes.c_long(x) if isinstance(x, int) else x for x in arguments]
    return _checked(what, int(_libc().syscall(ctypes.c_long(number), *words)))


def _copy(path: str) -> int:
    """A mount of what is at a path, at no place yet."""
    return _call(f"open_tree {path}", _OPEN_TREE, _HERE, path.encode(), _CLONE | _RECURSIVE | os.O_CLOEXEC)


def _place(mount: int, path: str) -> None:
    """Put a mount where it was copied from, in a folder that is new."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(os.fstat(mount).st_mode):
        place.mkdir(exist_ok=True)
    elif not place.exists():
        place.touch()
    _call(f"move_mount {path}", _MOVE_MOUNT, mount, b"", _HERE, path.encode(), _FROM_EMPTY_PATH)
    os.close(mount)


def _restrict(folder: int, path: str, attributes: int) -> None:
    """Set attributes of all mounts from a path on."""
    wanted = _MountAttributes(attributes, 0, _PRIVATE, 0)
    flags = _RECURSIVE | (0 if path else _EMPTY_PATH)
    size = ctypes.sizeof(wanted)
    _call(f"mount_setattr {path}", _MOUNT_SETATTR, folder, path.encode(), flags, ctypes.byref(wanted), size)


def _mount(kind: str, path: str, flags: int, options: str = "") -> None:
    names = kind.encode(), path.encode(), kind.encode()
    _checked(f"mount {path}", _libc().mount(*names, ctypes.c_ulong(flags), options.encode()))


def _give_up_rights() -> None:
    """Give up all capabilities, for now and for any program that is started later."""
    libc = _libc()
    for number in range(64):
        # Fails where there is no such capability.
        libc.prctl(_DROP_BOUND, number, 0, 0, 0)
    _checked("prctl", libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    _checked("capset", libc.capset(header, (ctypes.c_uint32 * 6)()))
