"""Experiments on few samples and steps, each trained once for all tests of a process."""

from dataclasses import replace
from functools import cache, partial

from nceref.cli import experiment_page
from nceref.experiments.experiment import run
from nceref.experiments.samples import long_tail, synthetic
from nceref.experiments.setting import Training

ALL = experiment_page.experiments()
TRAINING = Training((32, 8, 4), 12, 6, 1e-3)
NAMES = ("contrastive-vs-simple", "long-tail")
"""One experiment of each kind; those on digits differ in their data only."""


def few_samples(seed):
    return synthetic(seed, long_tail(3, 12, 3), latent=2, test=3)


@cache
def shortened(name, settings=None):
    """An experiment with its first settings, or all, and its statements, on few samples and steps, with two seeds."""
    study = ALL[name]
    more = study.run.keywords | {"data": few_samples, "training": TRAINING}
    more["settings"] = more["settings"][:settings]
    names = study.settings[:settings]
    return replace(study, run=partial(study.run.func, **more), settings=names, seeds=2)


@cache
def trained(name):
    """Its results and the jobs that were reported."""
    jobs = []
    return run(shortened(name), on_progress=jobs.append), tuple(jobs)
