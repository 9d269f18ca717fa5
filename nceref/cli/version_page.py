"""The page of ``nceref --version --verbose``: what a number may depend on, for whoever reports one."""

import os
import platform
from collections.abc import Iterator
from importlib import metadata

from nceref import __version__
from nceref.errors import NcerefError
from nceref.output.pages import GAP, Page
from nceref.output.words import counted
from nceref.targets.frameworks import NAMES

PACKAGES = (
    "numpy", "array-api-compat", "scipy", "sympy", "mpmath", "matplotlib", "click", "threadpoolctl",
)  # fmt: skip
"""Packages that are installed with this one."""
OPTIONAL = (
    *NAMES[1:], "cupy", "cupy-cuda12x", "cupy-cuda13x", "dask", "distributed", "python-flint", "pytest",
)  # fmt: skip
"""Packages that are named where they are installed."""
VARIABLES = (
    "NCEREF_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
"""Variables of the environment that set the number of threads."""


def page_of() -> Page:
    """Versions, the BLAS of NumPy, threads and platform. None of the packages but NumPy is imported."""
    page = Page()
    page.heading(f"nceref {__version__}", 1)
    lines = [*_packages(), *_blas(), *_threads(), ("platform", platform.platform())]
    page.grid(lines, max(len(name) for name, _ in lines), styles=("", "dim"), indent=GAP)
    return page


def _packages() -> Iterator[tuple[str, str]]:
    yield "Python", f"{platform.python_version()}, {platform.python_implementation()}"
    for name in PACKAGES:
        yield name, _version(name) or "not installed"
    for name in OPTIONAL:
        if version := _version(name):
            yield name, version


def _version(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        # A damaged installation has a name and no version.
        return metadata.version(package) or "of unknown version"
    except metadata.PackageNotFoundError:
        return ""


def _blas() -> Iterator[tuple[str, str]]:
    import numpy as np

    try:
        # It sees what is loaded, and that is what NumPy has brought.
        from threadpoolctl import threadpool_info
    except ImportError:
        built: dict[str, str] = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[assignment]
        yield "BLAS of NumPy", f"{built['name']} {built['version']}; kernel and threads need threadpoolctl"
        return
    for library in threadpool_info():
        if library["user_api"] == "blas":
            kernel = library.get("architecture", "unknown")
            threads = counted(library["num_threads"], "thread")
            yield "BLAS of NumPy", f"{library['internal_api']} {library['version']}, kernel {kernel}, {threads}"


def _threads() -> Iterator[tuple[str, str]]:
    from nceref.engine.settings import thread_count

    try:
        threads = counted(thread_count(), "thread")
    except NcerefError as error:
        threads = str(error)
    yield "large batches", threads
    for name in VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]
