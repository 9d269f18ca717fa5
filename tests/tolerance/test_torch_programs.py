"""The bounds of a right program, by programs in PyTorch for every loss and format: see `test_implementation`."""

import numpy as np
import pytest

from nceref import get_loss, registry
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.tolerance.implementation import FORMATS

torch = pytest.importorskip("torch", reason="the programs that the bounds are judged by are written in PyTorch")
from tolerance import torch_programs  # noqa: E402

torch.set_num_threads(1)

FAMILY = registry.names("nceref.family")
BREAKS = {"debiased", "hcl"}
"""Their plain programs take the logarithm of a probability, which is 0 for cold temperatures."""


def run(name, how, probe):
    """Value and gradients of a program on a probe, computed in its format, in float64."""
    dtype = getattr(torch, probe.dtype)
    constants = {p.name for p in probe.loss.parameters if getattr(p, "constant", False)}
    leaves, arguments = {}, {}
    for key, x in probe.inputs.items():
        array = isinstance(x, np.ndarray)
        arguments[key] = torch.tensor(x) if array else x
        if (array and x.dtype.kind == "f") or (isinstance(x, float) and key not in constants):
            arguments[key] = torch.tensor(x, dtype=dtype, requires_grad=key not in constants)
            leaves.update({} if key in constants else {key: arguments[key]})
    rows, weights = getattr(torch_programs, name)(how, **arguments)
    if probe.reduction != "mean":
        weights = weights / weights[weights > 0].min()
    weighted = rows * weights.to(rows.dtype)
    value = weighted if probe.reduction == "none" else weighted.sum()
    slopes = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True)
    grads = {
        k: np.zeros(leaves[k].shape) if g is None else g.double().numpy() for k, g in zip(leaves, slopes, strict=True)
    }
    return value.detach().double().numpy(), grads


def shares(name, probe, how):
    """Error over bound of every quantity of a program; infinite where it is not finite."""
    value, grads = run(name, how, probe)
    pairs = {"value": (value, probe.value, probe.bounds.value)}
    pairs |= {k: (grads[k], probe.grads[k], probe.bounds.grads[k]) for k in probe.grads}
    ratios = {k: np.abs(a - b) / c for k, (a, b, c) in pairs.items()}
    return {k: float(np.max(np.where(np.isfinite(x), x, np.inf))) for k, x in ratios.items()}


def may_break(name, how, probe):
    """Whether a program may take the logarithm of 0 on a probe, which no tolerance excuses.

    Exponentials without a shift, or after one by the largest logit of all, the anchor's own included.
    """
    size = max(1 / probe.inputs.get("temperature", 1.0), probe.inputs.get("logit_scale", 0.0))
    deep = size > -np.log(FORMATS[probe.dtype].storage.tiny) / 4
    return deep and (name in BREAKS or (how == 1 and name in ("supcon_in", "supcon_out", "paco")))


def judged(name, dtype, suite="quick", settings=None, reduction="mean"):
    loss = get_loss(name).declaration
    for probe in corpus(loss, settings or {}, suite=suite, dtype=dtype, reduction=reduction):
        if not probe.skip:
            yield from ((probe, how, shares(name, probe, how)) for how in range(3) if not may_break(name, how, probe))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_textbook_programs_stay_within_the_bound_and_not_far_below(loss_name, dtype):
    outcomes = list(judged(loss_name, dtype))
    worst = max((max(share.values()), probe.id, how, share) for probe, how, share in outcomes)
    assert worst[0] <= 1, worst
    # Where a program meets the exact number, the share is 0; a bound that is 10^4 times too large has a smaller median.
    assert np.median([s for *_, share in outcomes for s in share.values() if s > 0]) > 1e-4
    assert worst[0] > 1e-3


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits_with_sums_in_thirty_two_stay_within_the_bound(loss_name, dtype):
    for probe, how, share in judged(loss_name, dtype):
        finite = {k: s for k, s in share.items() if np.isfinite(s)}
        assert max(finite.values(), default=0.0) <= 1, (probe.id, how, share)


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("name", ["nt_xent", "supcon_out", "siglip", "clip", "nce", "paco", "arcface"])
def test_sums_and_single_rows_have_bounds_of_their_own(name, reduction):
    for dtype in ("float64", "float32"):
        for probe, how, share in judged(name, dtype, reduction=reduction):
            assert max(share.values()) <= 1, (dtype, probe.id, how, share)
            assert np.shape(probe.bounds.value) == np.shape(probe.value)


@pytest.mark.parametrize("name", [n for n in FAMILY if len(get_loss(n).declaration.variants) > 1])
def test_every_variant_of_a_loss_is_admitted(name):
    for variant in get_loss(name).declaration.variants[1:]:
        for probe, how, share in judged(name, "float32", settings=dict(variant)):
            assert max(share.values()) <= 1, (variant, probe.id, how, share)


@pytest.mark.parametrize("seed", [40, 61, 167])
def test_a_column_has_room_for_the_rounding_of_its_own_probabilities(seed):
    """These batches have a positive that is the largest of its column, and far from the largest of its row."""
    rng = np.random.default_rng(seed)
    image, text = 10 ** rng.uniform(-1.5, 1.5, (2, 5, 1)) * rng.standard_normal((2, 5, 3))
    probe = evaluate(get_loss("clip").declaration, {"image": image, "text": text, "logit_scale": 1000.0})
    leaves = [torch.tensor(x, requires_grad=True) for x in (image, text)]
    s = 1000 * torch.nn.functional.normalize(leaves[0]) @ torch.nn.functional.normalize(leaves[1]).T
    assert torch.any((s.argmax(0) == torch.arange(5)) & (s.argmax(1) != torch.arange(5)))
    value = ((s.logsumexp(1) + s.logsumexp(0)) / 2 - s.diagonal()).mean()
    for name, got in zip(("image", "text"), torch.autograd.grad(value, leaves), strict=True):
        assert np.all(np.abs(got.numpy() - probe.grads[name]) <= probe.bounds.grads[name])
