"""The page of `nceref quadrants`: the numbers of its runs, and the published statements beside them."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from nceref.cli import claims_page
from nceref.engine.kernels import kernels
from nceref.output.pages import GAP, Page
from nceref.output.words import out_of
from nceref.theory import prove
from nceref.training.quadrants import batch, findings, samples
from nceref.training.quadrants.replay import LIMIT, Run, Runs
from nceref.training.quadrants.statistics import Statistics, of_features

CLAIMS = ("QT-9", "QT-10", "QT-11", "QT-12")
"""The statements that the runs are about."""
_COLUMNS = (
    ("", "loss,", "first"), ("", "loss,", "last"), ("", "align-", "ment"), ("", "unif-", "ormity"),
    ("cosine", "within", "class"), ("cosine", "across", "class"), ("", "square", "dist."), ("", "1-NN", "acc."),
    ("an ulp", "grows", "to"),
)  # fmt: skip
_CELL = 6
_NOTE = """\
loss: mean of the first and last 1000 steps. alignment, uniformity (t = 2) and cosines: on the circle; of uniform \
features, uniformity is {law:.3f}. square: energy distance to the uniform law on [-1, 1]^2. 1-NN: by cosine. an ulp: \
the distance to a twin that starts one unit in the last place away in every weight."""


def page_of(runs: Runs, beside: Runs | None = None) -> Page:
    """The page of the runs of one seed.

    `beside` are the same runs with the published learning rate, where `runs` hold rate over temperature fixed.
    """
    page = Page()
    page.heading(_opening(runs), 1)
    first = runs.runs[0]
    rows = [("input", _features(of_features(first.samples))), ("start", _features(findings.untrained(first)))]
    rows += [(f"{run.temperature:g}", _numbers(run)) for run in runs.runs]
    _add_table(page, _COLUMNS, rows)
    page.print(_NOTE.format(law=findings.UNIFORM_LAW), style="dim")
    page.print(f"Made with {kernels()}; others round otherwise.", style="dim")
    for sentence in _warnings(runs):
        page.print(sentence, style="yellow")
    if beside is not None:
        _compare(page, runs, beside)
        for sentence in _warnings(beside):
            page.print(f"With the published rate: {sentence}", style="yellow")
    _statements(page, runs)
    if beside is None:
        page.print(f"\nWith rate / temperature held at {batch.PER_TEMPERATURE}: nceref quadrants --confounder")
    return page


def _opening(runs: Runs) -> str:
    setup = runs.setup
    rate = f"rate / temperature {batch.PER_TEMPERATURE}" if setup.confounder else f"learning rate {batch.RATE:g}"
    done = "" if runs.done == setup.steps else f"{runs.done:,} of "
    steps = f"{done}{setup.steps:,} step{'s' * (setup.steps > 1)}"
    return f"Source 003, replayed: seed {setup.seeds[0]}, {setup.dtype}, {steps}, {rate}"


def _features(features: Statistics) -> list[str]:
    """The entries of a line of the table; those that only a run has stay empty."""
    angles = (
        features.alignment,
        features.uniformity,
        features.cosine_within,
        features.cosine_between,
        features.square_distance,
    )
    return ["", "", *map(_short, angles), f"{features.neighbor_accuracy:.2f}", ""]


def _numbers(run: Run) -> list[str]:
    row = _features(run.statistics)
    if run.over_steps is not None:
        row[:2] = _short(run.over_steps.loss_first), _short(run.over_steps.loss_last)
    row[-1] = f"{run.growth[-1][1]:.0e}" if run.growth else ""
    return row


def _short(x: float) -> str:
    """A number with three decimals, or as many as there is room for."""
    return f"{x:.3f}" if abs(x) < 100 else f"{x:.0f}" if abs(x) < 1e5 else f"{x:.0e}"


def _add_table(page: Page, columns: Sequence[Sequence[str]], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    header = ("tau", *(" ".join(filter(None, words)) for words in columns))
    lines = [(name, *numbers) for name, numbers in rows]
    page.table(lines, header=[header], right=[True] * len(header), layout=lambda width: _table(columns, rows, width))


def _table(columns: Sequence[Sequence[str]], rows: Sequence[tuple[str, Sequence[str]]], width: int) -> Page:
    """Labels and numbers; on a narrow page as several tables of some columns each."""
    page = Page()
    label = max(len(row[0]) for row in rows)
    # Columns of numbers that fit beside the labels, which every part repeats.
    room = max(1, (width - label) // (_CELL + GAP))
    for begin in range(0, len(columns), room):
        part = slice(begin, begin + room)
        heads = [(word, *line[part]) for word, line in zip(("", "", "tau"), zip(*columns, strict=True), strict=True)]
        widths = [label, *[_CELL] * len(columns[part])]
        lines = [(name, *row[part]) for name, row in rows]
        page.table(lines, header=[line for line in heads if any(line)], right=[True] * len(widths), widths=widths)
    return page


def _warnings(runs: Runs) -> list[str]:
    """Sentences on the runs that diverged, or that rounding decides."""
    sentences = []
    for number, run in enumerate(runs.runs, 1):
        name = f"Run {number} (tau = {run.temperature:g})"
        if run.stopped is not None:
            sentences.append(f"{name} diverged at step {run.stopped:,}; what is shown is the state before it.")
        elif not findings.is_reproducible(run):
            by = next(step for step, apart in run.growth if not apart < LIMIT)
            sentences.append(
                f"{name}: by step {by:,} a change of one ulp has grown above {LIMIT:g}. From there on rounding "
                "decides, and no two programs need to agree: the statements below leave this run out."
            )
    return sentences


def _compare(page: Page, held: Runs, published: Runs) -> None:
    """Two learning rates, temperature by temperature."""
    page.heading("\nBeside the published learning rate")
    rates = (("within", "fixed", "rate"), ("within", "fixed", "ratio"), ("square", "fixed", "rate"),
             ("square", "fixed", "ratio"), ("unif.", "fixed", "rate"), ("unif.", "fixed", "ratio"))  # fmt: skip
    rows = []
    for one, other in zip(findings.by_temperature(published.runs), findings.by_temperature(held.runs), strict=True):
        a, b = one.statistics, other.statistics
        numbers = (a.cosine_within, b.cosine_within, a.square_distance, b.square_distance, a.uniformity, b.uniformity)
        rows.append((f"{one.temperature:g}", [*map(_short, numbers)]))
    _add_table(page, rates, rows)


def _statements(page: Page, runs: Runs) -> None:
    """Print the published statements, each with its verdict in the ledger and with what these runs show of it."""
    page.heading("\nPublished statements, their verdicts (nceref claims), and these runs")
    shown = prove.chosen(CLAIMS)
    verdicts = claims_page.verdicts(shown)
    for claim in shown:
        lines = [(claim.id, f"{claim.title}: {verdicts[claim.id]}"), ("", f"Here: {_shown(claim.id, runs.runs)}")]
        page.grid(lines[:1], 5, styles=("bold", ""))
        page.grid(lines[1:], 5, styles=("", "dim"))


def _shown(id: str, runs: tuple[Run, ...]) -> str:
    """The sentence on what the runs show of a statement; those that diverged or that rounding decides are left out."""
    judged = tuple(filter(findings.is_reproducible, runs))
    return _SHOWN[id](judged) if judged else "No run is left: each diverged, or rounding decides it."


def _more_even(runs: tuple[Run, ...]) -> str:
    """The numbers of runs that end more evenly than they start, on the circle and in the square."""
    start = findings.untrained(runs[0])
    square = _counted(runs, lambda run: run.statistics.square_distance < start.square_distance)
    circle = _counted(runs, lambda run: run.statistics.uniformity < start.uniformity)
    return f"More even than at the start, in the square: {square}; on the circle: {circle}."


def _corners(runs: tuple[Run, ...]) -> str:
    """The numbers of features in each corner at the lowest temperature, and elsewhere."""
    run = min(runs, key=lambda one: one.temperature)
    if run.temperature > batch.PUBLISHED[-1]:
        needed = f"It takes a run at {batch.PUBLISHED[-1]:g} that rounding does not decide, or many seeds"
        return f"{needed}: nceref claims --prove QT-10."
    corners = findings.corners(run.features)
    where = [f"{n} at ({x:g}, {y:g})" for n, (x, y) in zip(corners.counts, samples.SIGNS, strict=True) if n]
    sentence = f"At {_tau(run)}: {', '.join([*where, f'{corners.elsewhere} elsewhere'])}."
    if not corners.hold_nearly_all:
        return f"{sentence} That is not nearly all in corners."
    return sentence + (" Opposite corners hold alike, as the encoder is odd." if corners.are_opposite else "")


def _contrast(runs: tuple[Run, ...]) -> str:
    """Whether the cosines follow the temperature, and what else changes with it."""
    comparable = findings.by_temperature(runs)
    lost = [f"{_tau(run)} (1-NN {run.statistics.neighbor_accuracy:.2f})" for run in runs if findings.merged(run)]
    merged = f" Classes are merged, not farther apart, at {_listed(lost)}." if lost else ""
    if len(comparable) < 2:
        return f"It takes two temperatures.{merged}"
    cosines = [run.statistics.cosine_within for run in comparable]
    rises = all(a < b for a, b in pairwise(cosines))
    order = "rises each time" if rises else "does not rise each time"
    ratios = [run.rate / run.temperature for run in comparable]
    mixed = max(ratios) / min(ratios)
    also = "with the same step sizes" if mixed < 1.001 else f"while rate / temperature grows {mixed:.3g}-fold"
    return (
        f"From tau = {_tau(comparable[0])} to {_tau(comparable[-1])} the cosine within classes {order}, {also}.{merged}"
    )


def _moderate(runs: tuple[Run, ...]) -> str:
    """The temperature with the most even features, on either measure."""
    if len({run.temperature for run in runs}) < 2:
        return "One temperature tells nothing of this."
    square = min(runs, key=lambda run: run.statistics.square_distance)
    circle = min(runs, key=lambda run: run.statistics.uniformity)
    return (
        f"Most even in the square: {_tau(square)} (distance {square.statistics.square_distance:.3f}); on the circle, "
        f"which is all that the loss sees: {_tau(circle)} ({circle.statistics.uniformity:.3f})."
    )


def _tau(run: Run) -> str:
    return f"{run.temperature:g}"


def _counted(runs: tuple[Run, ...], holds: Callable[[Run], bool]) -> str:
    """The temperatures at which it holds, each once; where it holds for some of equal ones only, for how many."""
    listed = []
    for tau in dict.fromkeys(map(_tau, runs)):
        answers = [holds(run) for run in runs if _tau(run) == tau]
        if any(answers):
            listed.append(tau if all(answers) else f"{tau} ({out_of(sum(answers), len(answers), 'run')})")
    return ", ".join(listed) or "none"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


_SHOWN: dict[str, Callable[[tuple[Run, ...]], str]] = {
    "QT-9": _more_even, "QT-10": _corners, "QT-11": _contrast, "QT-12": _moderate,
}  # fmt: skip
