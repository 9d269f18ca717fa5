"""Results that source 004 has as images, beside a small analogue, and the published numbers that could be read."""

from typing import Any

from nceref.theory.analogues import NAMES, recorded
from nceref.theory.table import Cell, Table

NO_NUMBER = "no number"
SUPCON = ("SupCon sum", "SupCon mean")

# Image, measures and losses of the analogue.
SHOWN = (
    ("PaCoF2", ("pull slope", "norm slope"), (*SUPCON, "CE", "PaCo 0.05")),
    ("PaCoT1", ("probe",), ("CE", *SUPCON)),
    ("PaCoF3", ("all",), ("PaCo 0.01", "PaCo 0.05", "PaCo 0.5")),
    ("PaCoF6", ("all", "tail"), ("CE", "balanced", *SUPCON, "PaCo 0.05")),
)
ACCURACIES = ("probe", "all", "tail")

# Read elsewhere; whether the images of the source have them cannot be seen.
READ = (
    ("abstract", "ImageNet", "R200", "81.8"),
    ("README", "ImageNet-LT", "R50", "57.0"),
    ("README", "ImageNet-LT", "X50", "58.2"),
    ("README", "ImageNet-LT", "X101", "60.0"),
    ("README", "iNaturalist", "R50", "73.2"),
    ("README", "iNaturalist", "R152", "75.2"),
)


def rows() -> list[dict[str, Any]]:
    """A row for each image, measure, loss and data, then one for each number that was read."""
    images = [(image, m, loss, name) for image, measures, losses in SHOWN for m in measures for loss in losses
              for name in NAMES]  # fmt: skip
    return [_row(*image) for image in images] + [
        {"image": place, "measure": "all", "loss": f"PaCo, {network}", "data": data, "published": Cell(number, None)}
        for place, data, network, number in READ
    ]


def _row(image: str, measure: str, loss: str, name: str) -> dict[str, Any]:
    mean, half = recorded(name)["measures"][loss][measure]
    factor = 100 if measure in ACCURACIES else 1
    # Six digits are recorded, and a factor of 100 must not add any; an interval is known to two.
    mean, half = float(f"{factor * mean:.6g}"), float(f"{factor * half:.2g}")
    data = "digits" if name.endswith("digits") else "drawn"
    return {
        "image": image, "measure": measure, "loss": loss, "data": data, "published": NO_NUMBER, "analogue": mean,
        "interval": half,
    }  # fmt: skip


TABLE = Table(
    name="long-tail-results",
    title="Results that source 004 shows as images, and a small analogue",
    source="Source 004, PaCoF2, PaCoT1, PaCoF3, PaCoF6; abstract and README of PaCo (PC-13, PC-17 to PC-20)",
    columns=("image", "measure", "loss", "data", "published", "analogue", "interval"),
    rows=rows,
    note=(
        "Each of the four is an image, no number: the text of the source has none, and no table of the paper was read. "
        "What PaCoF3 shows is not said; it follows the choice of alpha. Beside them stands nceref experiment "
        "long-tail, on drawn data and on handwritten digits: the mean over six seeds, and half of its 95 % "
        "interval. "
        "Slopes of the log size of a gradient against the log of the class size: pull, by the logits of an anchor; "
        "norm, by the features of a sample. Accuracies in percent: probe, all losses read by one probe; all, by their "
        "own last layer or centers, SupCon by the probe; tail, the least frequent third of the classes. Last, the "
        "accuracies that the abstract of the paper and the README of its code print, of ResNets and ResNeXts on "
        "images; they cannot be reproduced here, and whether the images show them is not known."
    ),
)
