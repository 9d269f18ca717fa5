"""Options of the fuzzer, and its count by loss and outcome."""

from collections import Counter


def pytest_addoption(parser):
    group = parser.getgroup("fuzz")
    group.addoption("--inputs", type=int, help="inputs of the fuzzer, all losses together")
    group.addoption("--fuzz-seed", type=int, help="which inputs: the same seed gives the same ones")


def pytest_terminal_summary(terminalreporter):
    """The count, of all processes together."""
    counts = Counter()
    for status in ("passed", "failed"):
        for report in terminalreporter.stats.get(status, []):
            counts.update(
                {tuple(key): number for name, keys in report.user_properties if name == "fuzz" for key, number in keys}
            )
    if not counts:
        return
    losses = sorted({loss for loss, _ in counts})
    outcomes = ("right", "refused by name", "finding")
    terminalreporter.section("fuzz")
    terminalreporter.write_line(f"{'':18}" + "".join(f"{outcome:>17}" for outcome in outcomes))
    for loss in losses:
        terminalreporter.write_line(f"{loss:18}" + "".join(f"{counts[loss, outcome]:17,}" for outcome in outcomes))
    total = {outcome: sum(counts[loss, outcome] for loss in losses) for outcome in outcomes}
    terminalreporter.write_line(
        f"{sum(total.values()):,} inputs: {total['right']:,} right, {total['refused by name']:,} refused by name, "
        f"{total['finding']:,} findings"
    )
