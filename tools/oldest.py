"""Prints the oldest versions that pyproject.toml allows, as constraints for pip: `make test-oldest` installs those.

The floors are read from the one place where they are declared, so that none can be tested that is not promised.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

EXTRAS = ("dask", "test")
"""Optional dependencies that `make test-oldest` installs too."""


def declared(pyproject: str) -> list[str]:
    """The requirements of the package and of `EXTRAS`, from the text of a pyproject.toml."""
    project = tomllib.loads(pyproject)["project"]
    extras = (one for extra in EXTRAS for one in project["optional-dependencies"][extra])
    # An extra may name others, which are in the list themselves.
    return [*project["dependencies"], *(one for one in extras if not one.startswith("nceref["))]


def oldest(requirements: Iterable[str]) -> list[str]:
    """A constraint for each requirement, such as ``numpy==2.0`` for ``numpy>=2.0``.

    Raises `ValueError` for a requirement that has no floor.
    """
    constraints = []
    for requirement in requirements:
        found = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement)
        if not found:
            msg = f"{requirement!r} must be a name and the oldest version, such as 'numpy>=2.0'"
            raise ValueError(msg)
        constraints.append(f"{found[1]}=={found[2]}")
    return constraints


def main() -> None:
    """Print the constraints, one a line."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    print("\n".join(oldest(declared(text))))  # noqa: T201 - for a shell


if __name__ == "__main__":
    main()
