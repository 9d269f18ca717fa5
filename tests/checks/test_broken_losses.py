"""For every loss a broken head, a broken statistic and a broken backward pass are seen by the formula."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from checks.broken_losses import headed, no_projection, planned, scaled
from checks.frozen_references import all_cases, frozen
from sweep import every_loss, sweep

from nceref import get_loss
from nceref.checks import run
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum


def broken_statistic(plan):
    """Each statistic's derivative in the first comparison is off by one part in a million, its value is not."""

    class Wrong:
        def __init__(self, sound):
            self.sound = sound

        def __getattr__(self, name):
            return getattr(self.sound, name)

        def within(self, *limits):
            return Wrong(self.sound.within(*limits))

        def prepare(self, slope, out):
            return self.sound.prepare(1.000001 * slope, out)

    comparison = plan.comparisons[0]
    assert all(isinstance(t.statistic, LogSumExp | Sum | PositiveSet) for t in comparison.terms.values())
    terms = {name: replace(term, statistic=Wrong(term.statistic)) for name, term in comparison.terms.items()}
    return replace(plan, comparisons=(replace(comparison, terms=terms), *plan.comparisons[1:]))


BREAKS = {
    "head value": headed(lambda rows, vjp: (rows * (1 + 1e-9), vjp)),
    "head slopes": headed(lambda rows, vjp: (rows, lambda c: scaled(vjp(c), 1 + 1e-9))),
    "statistic": planned(broken_statistic),
}


def few_cases(loss):
    """Random rows of any length and, where the loss takes them, rows that are used as they are."""
    temperature = 0.3 if any(c.temperature == 0.3 for owner, c in all_cases().values() if owner is loss) else 1.0
    names = [f"{loss.name}/{geometry}-0-{temperature:g}" for geometry in ("random", "unnormalized")]
    return [all_cases()[name][1] for name in names if name in all_cases()]


@cache
def judged(sound):
    """A few cases, each with the bounds and the numbers of the sound loss."""
    return [(case, run.bounds(sound, **case.inputs), frozen(sound, case)) for case in few_cases(sound)]


def worst(loss, sound):
    """Largest error of a loss over a few cases, in units of the sound loss's bound."""
    ratios = []
    for case, allowed, truth in judged(sound):
        value, grads = run.losses.LossFunction(loss).value_and_grad(**case.inputs)
        ratios.append(abs(value - truth["value"]) / allowed.value)
        ratios += [float(np.max(np.abs(g - truth[name]) / allowed.grads[name])) for name, g in grads.items()]
    return max(ratios)


@sweep("part", BREAKS)
@every_loss
def test_breaking_one_part_is_seen(loss_name, part):
    loss = get_loss(loss_name).declaration
    assert worst(loss, sound=loss) <= 1
    assert worst(BREAKS[part](loss), sound=loss) > 1


@every_loss
def test_forgetting_the_projection_is_seen_wherever_rows_are_normalized(loss_name):
    loss = get_loss(loss_name).declaration
    case = few_cases(loss)[0]
    rows = [c.logits for c in loss.plan(**run.bind(loss, (), case.inputs)).comparisons]
    if not any(hasattr(logits, "anchors") and logits.anchors.parts[0].length is not None for logits in rows):
        pytest.skip("the loss compares no normalized rows by a dot product")
    assert worst(planned(no_projection)(loss), sound=loss) > 1
