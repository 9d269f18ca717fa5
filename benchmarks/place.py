"""Places for arrays: NumPy's memory, or a CUDA device through CuPy or, without it, PyTorch."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import RefusedError


@dataclass(frozen=True)
class Place:
    """A place for arrays.

    Attributes
    ----------
    name, library : str
        Name of the device, and the array library with its version.
    put, get : callable
        Functions that put a NumPy array there, and that get an array from there.
    wait : callable
        Function that returns when all work is done.
    """

    name: str
    library: str
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]
    wait: Callable[[], Any] = lambda: None


HOST = Place("cpu", f"NumPy {np.__version__}", lambda x: x, np.asarray)


def place(device: str) -> Place:
    """The place called "cpu" or "cuda"."""
    return HOST if device == "cpu" else cuda()


def cuda() -> Place:
    """The first CUDA device; refused where there is none."""
    for library in (_cupy, _torch):
        place = library()
        if place is not None:
            return place
    msg = "no CUDA device: this needs an NVIDIA GPU with CuPy (pip install 'nceref[cuda12]') or a CUDA build of PyTorch"
    raise RefusedError(msg)


def _cupy() -> Place | None:
    if importlib.util.find_spec("cupy") is None:
        return None
    import cupy

    try:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    return Place(name, f"CuPy {cupy.__version__}", cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize)


def _torch() -> Place | None:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    name, version = torch.cuda.get_device_name(), torch.__version__
    return Place(name, f"PyTorch {version}", _to_cuda, _from_torch, torch.cuda.synchronize)


def _to_cuda(x: Any) -> Any:
    import torch

    return torch.as_tensor(x, device="cuda")


def _from_torch(x: Any) -> Any:
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)
