"""Shares of the time of a call by stage: a profile of nceref, for the rows nearest to their targets."""

import cProfile
import pstats
from typing import Any

from benchmarks.cases import LARGE, QUICK, SMALL, Case, inputs
from benchmarks.clock import OnProgress, fresh

STAGES = {
    "checks": (("arguments.py", "bind"),),
    "rows": (("embeddings.py", "embed"), ("embeddings.py", "vjp")),
    "products": (("similarity.py", "block"), ("similarity.py", "add")),
    "exponentials": (("tiles.py", "exp"), ("heads.py", "softplus_and_sigmoid_of_block")),
    "slopes": (("tiles.py", "total"),),
    "kept": (("tiles.py", "moved"),),
}
"""The stages, each the time in some functions of the package and in what they call; none of them calls another."""


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Shares of every stage in the time of a call, on one thread: a profiler sees no other."""
    rows = []
    for case in QUICK if quick else (*LARGE, *SMALL):
        on_progress(f"stages: {case.name}")
        rows.append({"name": case.name, "shares": fresh(profile, case=case.plain(), calls=3 if case in LARGE else 200)})
    return {"rows": rows}


def profile(case: dict[str, Any], calls: int) -> dict[str, float]:
    """Shares by stage of some calls, and "rest"."""
    from nceref import config, get_loss

    wanted = Case(**case)
    loss, given = get_loss(wanted.loss), inputs(wanted)
    profiler = cProfile.Profile()
    with config(threads=1):
        loss.value_and_grad(**given, **wanted.call.options)
        profiler.enable()
        for _ in range(calls):
            loss.value_and_grad(**given, **wanted.call.options)
        profiler.disable()
    return shares(pstats.Stats(profiler))


def shares(stats: pstats.Stats) -> dict[str, float]:
    """The part of each stage in the whole; what is in none is the rest."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for (path, _, function), (_, _, _, cumulative, _) in stats.stats.items():
        for stage, members in STAGES.items():
            if any(function == name and path.endswith(f"nceref/engine/{file}") for file, name in members):
                seconds[stage] += cumulative
    whole = stats.total_tt
    shares = {stage: time / whole for stage, time in seconds.items()}
    return shares | {"rest": 1 - sum(shares.values())}
