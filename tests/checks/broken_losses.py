"""Deliberately broken losses: each changes one thing in a plan; `made_for` names the check that it was written for."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nceref.engine.embeddings import Rows
from nceref.engine.patterns import Everyone, Except
from nceref.engine.similarity import Dot
from nceref.engine.statistics import LogSumExp


@dataclass(frozen=True)
class Mutant:
    """A name, the check it was made for, and how it breaks a declaration."""

    name: str
    made_for: str
    breaks: Callable


def planned(change):
    """A mutant that changes the finished plan."""
    return lambda loss: replace(loss, plan=lambda **arguments: change(loss.plan(**arguments)))


def argued(change):
    """A mutant that changes the arguments of the plan."""
    return lambda loss: replace(loss, plan=lambda **arguments: loss.plan(**change(arguments)))


def headed(change):
    """A mutant that changes rows and slopes."""

    def breaks(plan):
        def head(stats):
            rows, vjp = plan.head(stats)
            return change(rows, vjp)

        return replace(plan, head=head)

    return planned(breaks)


def scaled(slopes, factor, word=""):
    """Slopes of the statistics with `word` in their name, multiplied."""
    return {name: slope * (factor if word in name else 1.0) for name, slope in slopes.items()}


def termed(change):
    """A mutant that changes every term."""

    def breaks(plan):
        comparisons = [replace(c, terms={n: change(n, t) for n, t in c.terms.items()}) for c in plan.comparisons]
        return replace(plan, comparisons=tuple(comparisons))

    return planned(breaks)


def log_sum_exp(name, term, k):
    """The term with another coefficient in its exponent, if it is a log-sum-exp."""
    is_one = isinstance(term.statistic, LogSumExp)
    return replace(term, statistic=LogSumExp(k * term.statistic.k)) if is_one else term


def self_kept(name, term):
    """Candidates that were left out are let in."""
    return replace(term, pattern=Everyone()) if isinstance(term.pattern, Except) else term


def rows_without_lengths(rows):
    return Rows(rows.values, tuple(replace(part, length=None) for part in rows.parts))


def no_projection(plan):
    """The backward pass forgets the normalization."""

    def change(logits):
        if not isinstance(logits, Dot):
            return logits
        anchors = rows_without_lengths(logits.anchors)
        same = logits.anchors is logits.candidates
        return replace(logits, anchors=anchors, candidates=anchors if same else rows_without_lengths(logits.candidates))

    return replace(plan, comparisons=tuple(replace(c, logits=change(c.logits)) for c in plan.comparisons))


def first_counts_double(plan):
    """One sample is not like the others."""
    n = plan.comparisons[0].logits.shape[0]
    return replace(plan, anchor_weights=np.where(np.arange(n) == 0, 2.0, 1.0))


def second_shifted(arguments):
    """The second input is moved off the origin."""
    name = list(arguments)[1]
    return {**arguments, name: arguments[name] + 0.125}


def mask_off_by_one(name, term):
    """The self mask sits beside the diagonal, as it does at the wrong rank of a gathered batch."""
    if not isinstance(term.pattern, Except):
        return term
    own, *others = term.pattern.pair_sets
    return replace(term, pattern=Except((own._replace(stop=own.stop - 1, shift=1), *others)))


def louder_positive(plan):
    """The positive alone is 1 % too large."""

    def head(stats):
        rows, vjp = plan.head({**stats, "positive": 1.01 * stats["positive"]})
        return rows, lambda c: scaled(vjp(c), 1.01, "positive")

    return replace(plan, head=head)


MUTANTS = (
    Mutant("rows minus 1", "nonnegative", headed(lambda rows, vjp: (rows - 1, vjp))),
    Mutant("sign flipped", "formula", headed(lambda rows, vjp: (-rows, lambda c: scaled(vjp(c), -1)))),
    Mutant("positive's slope flipped", "attracts_positives",
           headed(lambda rows, vjp: (rows, lambda c: scaled(vjp(c), -1, "positive")))),
    Mutant("negatives' slope flipped", "repels_negatives",
           headed(lambda rows, vjp: (rows, lambda c: scaled(vjp(c), -1, "negative")))),
    Mutant("negatives' slope 1 % off", "row_slopes_sum_to_zero",
           headed(lambda rows, vjp: (rows, lambda c: scaled(vjp(c), 1.01, "negative")))),
    Mutant("all slopes 1e-9 off", "formula", headed(lambda rows, vjp: (rows, lambda c: scaled(vjp(c), 1 + 1e-9)))),
    Mutant("log base 2", "formula",
           headed(lambda rows, vjp: (rows / np.log(2), lambda c: scaled(vjp(c / np.log(2)), 1)))),
    Mutant("root of the rows", "convex_in_logits",
           headed(lambda rows, vjp: (rows**0.5, lambda c: scaled(vjp(c / (2 * rows**0.5)), 1)))),
    Mutant("exponent 1 % off", "row_shift_invariant", termed(lambda name, term: log_sum_exp(name, term, 1.01))),
    Mutant("self and positive kept", "formula", termed(self_kept)),
    Mutant("self mask off by one", "formula", termed(mask_off_by_one)),
    Mutant("positive 1 % off", "formula", planned(louder_positive)),
    Mutant("backward pass without projection", "radial_slope_zero", planned(no_projection)),
    Mutant("not normalized", "scale_invariant", argued(lambda a: {**a, "normalize": "none"})),
    Mutant("first sample twice", "permutation_equivariant", planned(first_counts_double)),
    Mutant("second input shifted", "view_swap_invariant", argued(second_shifted)),
    Mutant("temperature inverted", "temperature_homogeneous",
           argued(lambda a: {**a, "temperature": 1 / a["temperature"]})),
    Mutant("first feature counts double", "rotation_invariant",
           argued(lambda a: {**a, "z1": a["z1"] * (1 + (np.arange(a["z1"].shape[1]) == 0))})),
)  # fmt: skip
