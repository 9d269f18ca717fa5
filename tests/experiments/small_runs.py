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
def shortened(name):
    """An experiment with the same settings and statements, on few samples and steps, with two seeds."""
    study = ALL[name]
    more = {k: v for k, v in study.run.keywords.items() if k not in ("data", "training")}
    return replace(study, run=partial(study.run.func, data=few_samples, training=TRAINING, **more), seeds=2)


@cache
def trained(name):
    """Its results and the jobs that were reported."""
    jobs = []
    return run(shortened(name), on_progress=jobs.append), tuple(jobs)
