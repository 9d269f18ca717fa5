"""The constraints of `make test-oldest` are the floors that pyproject.toml declares, and no second list."""

from pathlib import Path

import pytest

from tools.oldest import declared, oldest

TEXT = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")


def test_every_declared_floor_is_a_constraint():
    constraints = oldest(declared(TEXT))
    assert {"numpy==2.1", "hypothesis==6.140"} <= set(constraints)
    assert [one.replace("==", ">=") for one in constraints] == declared(TEXT)


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy>=2.0,<3"])
def test_a_requirement_without_a_single_floor_is_refused(requirement):
    with pytest.raises(ValueError, match="must be a name and the oldest version"):
        oldest([requirement])
