"""The reference that a contrastive loss is checked against.

Values, hand-derived gradients and properties of the InfoNCE family in plain NumPy, without autodiff.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "InputError": "nceref.errors",
    "NcerefError": "nceref.errors",
    "UnavailableError": "nceref.errors",
    "all_losses": "nceref.losses",
    "config": "nceref.engine.settings",
    "get_loss": "nceref.losses",
    "verify": "nceref.verification.verifier",
}
_MODULES = ("losses", "exact", "testing", "tolerance", "transforms")

__all__ = [
    "InputError",
    "NcerefError",
    "UnavailableError",
    "all_losses",
    "config",
    "exact",
    "get_loss",
    "losses",
    "testing",
    "tolerance",
    "transforms",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"nceref.{name}")
    msg = f"module 'nceref' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
