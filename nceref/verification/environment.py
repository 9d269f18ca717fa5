"""What a verification ran with: versions, formats, and how the arguments were matched."""

import platform
from importlib import metadata
from typing import Any

from nceref import __version__
from nceref.verification.request import Request


def environment(asked: Request, target: Any) -> dict[str, Any]:
    """Versions, dtype, device, suite, seed, algorithm, and which input goes where.

    Parameters
    ----------
    asked : Request
    target : Target or None
        None if it could not be loaded.
    """
    framework = target.framework if target is not None else asked.framework
    found = {
        "nceref": __version__,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "framework": framework,
        "dtype": ", ".join(asked.dtypes),
        "device": asked.device,
        "suite": asked.suite,
        "seed": asked.seed,
        "algorithm": asked.algorithm,
        "platform": platform.platform(terse=True),
    }
    if framework not in ("", "numpy"):
        found[framework] = _version(framework)
    if target is not None:
        found["arguments"] = target.binding
    return found


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
