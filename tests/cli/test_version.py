"""`nceref --version`, and with `--verbose` what a number may depend on."""

import platform
import sys
from importlib import metadata

import numpy as np
import pytest
from sweep import sweep

import nceref
from nceref.cli import version_page


@pytest.fixture
def lines(run):
    """The page by the first word of each line."""

    def lines(*words):
        status, out, err = run(*(words or ("--version", "--verbose")))
        assert (status, err) == (0, "")
        first, *rest = out.splitlines()
        assert first == f"nceref {nceref.__version__}"
        return {name: text.strip() for name, _, text in (line.strip().partition("  ") for line in rest)}

    return lines


def test_packages_blas_threads_and_platform_are_named(lines, monkeypatch):
    for name in version_page.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NCEREF_THREADS", "3")
    page = lines()
    assert page["numpy"] == np.__version__
    assert page["Python"] == f"{platform.python_version()}, {platform.python_implementation()}"
    assert all(page[name] == metadata.version(name) for name in version_page.PACKAGES)
    assert (page["large batches"], page["NCEREF_THREADS"]) == ("3 threads", "3")
    assert page["platform"] == platform.platform()
    assert "OMP_NUM_THREADS" not in page
    assert lines("--verbose", "--version") == page


def test_the_blas_is_the_one_that_is_loaded(lines, monkeypatch):
    from threadpoolctl import threadpool_limits

    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    with threadpool_limits(1, "blas"):
        assert lines()["BLAS of NumPy"].endswith(", 1 thread")
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert lines()["BLAS of NumPy"].startswith(f"{name} ")
    assert "; kernel and threads need threadpoolctl" in " ".join(str(version_page.page_of()).split())


def test_what_is_missing_or_damaged_is_told_and_optional_packages_only_if_installed(lines, monkeypatch):
    def version(name):
        if name in ("sympy", "torch"):
            raise metadata.PackageNotFoundError(name)
        return {"jax": "0.1", "scipy": None}.get(name, "1.0")

    monkeypatch.setattr(version_page.metadata, "version", version)
    page = lines()
    assert (page["sympy"], page["scipy"], page["jax"]) == ("not installed", "of unknown version", "0.1")
    assert "torch" not in page


def test_settings_that_are_wrong_do_not_hide_the_page(lines, monkeypatch):
    monkeypatch.setenv("NCEREF_THREADS", "many\x1b[31m")
    page = lines()
    assert page["NCEREF_THREADS"] == r"many\x1b[31m"
    assert "must be an integer from 1 to 1,024" in version_page.page_of().text(width=200)


@sweep("width", ["40", "60", "300"])
def test_it_fits_any_width(run, monkeypatch, width):
    monkeypatch.setattr(platform, "platform", lambda: "Linux-" + 50 * "x")
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr("nceref.output.terminal.screen", lambda: {"width": int(width)})
    _, out, _ = run("--version", "--verbose")
    assert max(map(len, out.splitlines())) <= int(width)
    assert 50 * "x" in "".join(out.split())


@sweep(
    ("words", "status", "printed"),
    [
        (("--version",), 0, f"nceref {nceref.__version__}\n"),
        (("--version", "losses"), 0, f"nceref {nceref.__version__}\n"),
        (("--verbose",), 2, "--verbose goes with --version"),
        (("--verbose", "losses"), 2, "--verbose goes with --version"),
        (("--verbose=1", "--version"), 2, "--verbose"),
    ],
)
def test_verbose_is_about_the_version_alone(run, words, status, printed):
    got, out, err = run(*words)
    assert (got, printed in (err if status else out)) == (status, True)
