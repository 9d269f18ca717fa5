"""Every input of every loss ends as the right numbers or as an `InputError` that names the argument at fault.

`make fuzz` runs 100,000 inputs of a new seed. A failure prints the smallest input that shows it, and a blob that
repeats it; `make fuzz SEED=...` repeats the run.
"""

from collections import Counter

import pytest
from fuzz import backend
from fuzz.cases import cases
from fuzz.judge import FINDING, judge
from hypothesis import HealthCheck, Phase, given, seed, settings

import nceref

pytestmark = pytest.mark.machine

NAMES = sorted(nceref.all_losses())
INPUTS = 500
"""Of `make test`."""
CHUNK = 500


def pytest_generate_tests(metafunc):
    """One test for so many inputs of a loss, so that processes can share them."""
    total = metafunc.config.getoption("inputs", None) or INPUTS
    # The losses that come first get what is left over.
    shares = {name: (total + len(NAMES) - 1 - i) // len(NAMES) for i, name in enumerate(NAMES)}
    chunks = [(name, start, min(CHUNK, n - start)) for name, n in shares.items() for start in range(0, n, CHUNK)]
    metafunc.parametrize(("name", "start", "count"), chunks)


def test_right_or_refused_by_name(name, start, count, request, record_property):
    outcomes = Counter()

    # The start tells chunks of one loss apart, and no two seeds meet.
    @seed((request.config.getoption("fuzz_seed", None) or 0) * 10**7 + start)
    @settings(
        backend=backend.NAME,
        max_examples=count,
        database=None,
        deadline=None,
        print_blob=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(nceref.get_loss(name).declaration))
    def run(case):
        outcome = judge(case)
        outcomes[name, outcome.kind] += 1
        assert outcome.kind != FINDING, f"{outcome.cause}: {outcome.text}\n{case}"

    try:
        run()
    finally:
        record_property("fuzz", list(outcomes.items()))
