"""The child's side of a rank: its place in the process group of PyTorch, and what it waits in."""

import importlib
import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from nceref.errors import UnavailableError

NEVER = timedelta(days=1)
"""A collective that hangs is ended by the parent, which knows how long a case may take."""
_LOOPBACK = {"linux": "lo", "darwin": "lo0"}


def join(group: Mapping[str, Any]) -> None:
    """Become a rank: a process group of gloo, by a file and the loopback device.

    `group` has the ``rank``, the ``world_size``, and the ``store``, the path of a file that all ranks of this group
    share. Raises `UnavailableError` if PyTorch is missing, or has no gloo here.
    """
    try:
        import torch
        from torch import distributed
    except ImportError as error:
        msg = "ranks of PyTorch need PyTorch, which is not installed: pip install torch"
        raise UnavailableError(msg) from error
    if not distributed.is_available() or not distributed.is_gloo_available():
        msg = f"ranks of PyTorch need torch.distributed with gloo, which torch {torch.__version__} does not have here"
        raise UnavailableError(msg)
    leave()
    # Its functions have the group that is there when they are defined as a default; without one, that of the call.
    importlib.import_module("torch.distributed.nn")
    # Processes side by side would wait for one another's threads.
    torch.set_num_threads(1)
    if sys.platform in _LOOPBACK:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK[sys.platform])
    store = distributed.FileStore(group["store"], group["world_size"])
    distributed.init_process_group(
        "gloo", store=store, rank=group["rank"], world_size=group["world_size"], timeout=NEVER
    )


def leave() -> None:
    """Leave the process group, if there is one."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def waiting_in(frame: FrameType | None) -> str:
    """The collective that a thread is in, if any, and the last line of the target's own code.

    `frame` is the innermost one of the thread. The result is such as ``all_gather (loss.py, line 12)``; it is empty
    where nothing is known.
    """
    collective = place = ""
    own = str(Path(__file__).parents[2])
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if f"{os.sep}distributed{os.sep}" in file and not name.startswith("_") and name not in _WRAPPERS:
            collective = name
        elif not place and not file.startswith(own) and "site-packages" not in file and not file.startswith("<"):
            place = f"{Path(file).name}, line {frame.f_lineno}"
        frame = frame.f_back
    return f"{collective} ({place})" if collective and place else collective or place


_WRAPPERS = ("wrapper", "apply", "forward", "backward")
