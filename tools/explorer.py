"""The quadrant preset of the explorer: directions of the features of source 003, before training and after it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nceref.training.quadrants import findings, replay
from nceref.training.quadrants.samples import draw, encoded
from nceref.training.quadrants.statistics import of_features

TARGET = Path(__file__).parents[1] / "docs" / "explorer" / "quadrants.js"
SHOWN = (0.99, 0.05, 0.01)
HEAD = """// Written by `python -m tools.explorer`: directions of the 100 features of source 003, seed 0, in degrees, 25
// from each quadrant, and what nceref.training.quadrants says of them.
"""


def content() -> str:
    """The module with the data; `tests/site` compares it with the file."""
    drawn = draw(0)
    runs = {run.temperature: run.features for run in findings.by_temperature(replay.run(dtype="float64").runs)}
    # In float64: float32 is rounded in another way on another machine.
    untrained = encoded(*(x.astype(np.float64) for x in (drawn.samples, drawn.W1, drawn.W2)))
    features = {"untrained": untrained, **{f"{t:g}": runs[t] for t in SHOWN}}
    entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(_entry(x))}" for name, x in features.items())
    return f"{HEAD}export const quadrants = {{\n{entries},\n}};\n"


def _entry(features: Any) -> dict[str, Any]:
    statistics = of_features(features)
    angles = np.degrees(np.arctan2(features[:, 1], features[:, 0]))
    named = {"within": statistics.cosine_within, "between": statistics.cosine_between}
    numbers = {name: round(x, 4) for name, x in (named | {"uniformity": statistics.uniformity}).items()}
    return {"angles": [round(float(angle), 3) for angle in angles], **numbers}


if __name__ == "__main__":
    TARGET.write_text(content(), encoding="utf-8")
