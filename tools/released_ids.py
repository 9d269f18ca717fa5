"""Writes down the ids of this version: `python -m tools.released_ids`, once for each release.

What stands in the list goes on working: `nceref.cases.former_ids` has what has been renamed since.
"""

import json
import sys
from pathlib import Path

import nceref
from nceref.cases.corpus.geometries import specs
from nceref.cases.invariances import INVARIANCES
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.losses import all_losses
from nceref.output.files import write_text
from nceref.verification.modes import MODES

LIST = Path(__file__).parents[1] / "tests" / "data" / "released_ids.json"


def present() -> dict[str, list[str]]:
    """Ids of conventions, cases and quantities."""
    inputs = {parameter.name for loss in all_losses().values() for parameter in loss.declaration.parameters}
    quantities = {"value", *(f"grad.{name}" for name in inputs), *(f"mode.{name}" for name in MODES)}
    cases = {id for name, _, temperature, _ in specs("full") for id in (name, f"{name}-{temperature:g}")}
    return {
        "conventions": sorted(CONVENTIONS),
        "cases": sorted(cases),
        "quantities": sorted(quantities | {f"identity.{one.name}" for one in INVARIANCES}),
    }


def main(path: Path = LIST, version: str = nceref.__version__) -> None:
    """Add those of this version, which must not be in the list."""
    released = json.loads(path.read_text(encoding="utf-8"))
    if version in released:
        sys.exit(f"{path} has the ids of {version}: they were released, and stay")
    write_text(path, json.dumps({**released, version: present()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
