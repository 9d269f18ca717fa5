"""What goes wrong between ranks is named on simulated programs, and nothing of programs that are right."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from slow import partly_slow
from targets.ranks.simulated_ranks import observed, probes

from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.dense.batch import log_sum_exp, softplus
from nceref.diagnosis.ranks.by_rank import rank_records
from nceref.diagnosis.ranks.diagnose import diagnose_ranks
from nceref.diagnosis.ranks.intended import check_gather, intended_gather
from nceref.errors import InputError
from nceref.targets.ranks.contract import Contract

OWN_LOSS = Path(__file__).parents[3] / "docs/own-loss.md"


def stack(*arrays):
    """Rows below one another, with a batch axis of the complex step or without."""
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    return np.concatenate([np.broadcast_to(x, lead + x.shape[-2:]) for x in arrays], axis=-2)


def transposed(x):
    return np.swapaxes(x, -1, -2)


def unit(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def entropy(logits, labels, keep=None):
    """Mean of -log softmax at the labels."""
    kept = logits if keep is None else np.where(keep, logits, -np.inf)
    picked = np.take_along_axis(logits, np.broadcast_to(labels[:, None], (*logits.shape[:-1], 1)), axis=-1)[..., 0]
    return np.mean(log_sum_exp(kept) - picked, axis=-1)


def own_first(rank, shards):
    return [shards[rank], *shards[:rank], *shards[rank + 1 :]]


def clip(own, batch, rank, n, *, local=True, offset=1, order=own_first, ordered=(), factor=lambda w: 1.0, scale=1.0):
    """Both directions; joined, every rank computes all rows."""
    image, words = (unit(stack(*(order(rank, batch[k]) if k in ordered else batch[k]))) for k in ("image", "text"))
    shards = batch["image"]
    start = offset * sum(np.shape(s)[-2] for s in shards[:rank])
    mine = (unit(own["image"]), unit(own["text"])) if local else (image, words)
    labels = np.arange(mine[0].shape[-2]) + (start if local else 0)
    s = own["logit_scale"] * scale
    both = [s * (a @ transposed(b)) for a, b in ((mine[0], words), (mine[1], image))]
    return factor(len(shards)) * (entropy(both[0], labels) + entropy(both[1], labels)) / 2


def alone(own, batch, rank, n):
    """No gather at all."""
    return clip(own, {"image": [own["image"]], "text": [own["text"]]}, 0, n)


def share(own, batch, rank, n):
    return clip(own, batch, rank, n) * own["image"].shape[-2] / n


def share_of_all(own, batch, rank, n):
    return share(own, batch, rank, n) * len(batch["image"])


def one_way(own, batch, rank, n, *, hot=False):
    """Queries of the rank against the keys of all."""
    keys = unit(stack(*batch["keys"]))
    count = own["queries"].shape[-2]
    logits = unit(own["queries"]) @ transposed(keys) * (1.0 if hot else 1 / own["temperature"])
    return entropy(logits, np.arange(count) + rank * count)


def views(own, batch, rank, n, *, local=True, self_at=1, labels_at=1, interleaved=False):
    """Two views of every sample."""
    first, second = batch["z1"], batch["z2"]
    shards = [x for pair in zip(first, second, strict=True) for x in pair] if interleaved else [*first, *second]
    z, count = unit(stack(*shards)), own["z1"].shape[-2]
    rows = np.arange(n) if not local else rank * count + np.arange(count)
    anchors = unit(stack(own["z1"], own["z2"])) if local else z
    itself, sample = (at * rank * count + np.arange(len(rows)) if local else rows for at in (self_at, labels_at))
    itself = np.concatenate([itself, itself + n])
    partner = np.concatenate([sample + n, sample])
    logits = anchors @ transposed(z) / own["temperature"]
    return entropy(logits, partner, itself[:, None] != np.arange(2 * n))


def tempered(own, batch, rank, n):
    return 2 * np.ravel(own["temperature"]) * views(own, batch, rank, n, local=False)


def labelled(own, batch, rank, n, *, self_at=1, ordered=False, repeated=False):
    """Positives by label, anchors of the rank."""
    shards = batch["embeddings"]
    if repeated:
        batch = {**batch, "labels": [own["labels"]] * len(shards)}
    z, labels = unit(stack(*(own_first(rank, shards) if ordered else shards))), np.concatenate(batch["labels"])
    count = own["embeddings"].shape[-2]
    itself = (self_at * rank * count + np.arange(count))[:, None] == np.arange(n)
    logits = unit(own["embeddings"]) @ transposed(z) / own["temperature"]
    weights = (own["labels"][:, None] == labels) * ~itself
    log_p = logits - log_sum_exp(np.where(itself, -np.inf, logits))[..., None]
    return np.mean(-np.sum(weights * log_p, axis=-1) / np.sum(weights, axis=-1), axis=-1)


def sigmoids(own, batch, rank, n, *, bias_on=None):
    texts = unit(stack(*batch["text"]))
    bias = own["logit_bias"] if bias_on in (None, rank) else np.real(own["logit_bias"])
    logits = own["logit_scale"] * (unit(own["image"]) @ transposed(texts)) + bias
    count = own["image"].shape[-2]
    together = (rank * count + np.arange(count))[:, None] == np.arange(n)
    return np.sum(softplus(np.where(together, -logits, logits)), axis=(-2, -1)) / count


def one_side(own, batch, rank, n):
    """Own images against all texts, own texts against own images."""
    a, b = (own["logit_scale"] * unit(own[k]) @ transposed(unit(x)) for k, x in
            (("image", stack(*batch["text"])), ("text", own["image"])))  # fmt: skip
    count = own["image"].shape[-2]
    return (entropy(a, np.arange(count) + rank * count) + entropy(b, np.arange(count))) / 2


def one_view(own, batch, rank, n):
    """The first view of the rank alone, the second of all."""
    first, second, count = unit(own["z1"]), unit(own["z2"]), own["z1"].shape[-2]
    z, here = stack(first, unit(stack(*batch["z2"]))), np.arange(count)
    itself, partner = (
        np.concatenate(x) for x in ((here, (1 + rank) * count + here), ((1 + rank) * count + here, here))
    )
    logits = stack(first, second) @ transposed(z) / own["temperature"]
    return entropy(logits, partner, itself[:, None] != np.arange(count + n))


def ring(own, batch, rank, n, *, step):
    """Texts come from rank to rank, and the last one does not come."""
    total, count = 0.0, own["image"].shape[-2]
    for k, shard in enumerate(batch["text"]):
        if k != (rank + step) % len(batch["text"]):
            logits = own["logit_scale"] * (unit(own["image"]) @ transposed(unit(shard))) + own["logit_bias"]
            together = np.eye(count, dtype=bool) & (k == rank)
            total = total + np.sum(softplus(np.where(together, -logits, logits)), axis=(-2, -1)) / count
    return total


def weighted(own, batch, rank, n):
    """Decoupled; positives are weighed by a softmax over the own ones."""
    both, count = (unit(own["z1"]), unit(own["z2"])), own["z1"].shape[-2]
    mass = np.exp(np.real(np.sum(both[0] * both[1], axis=-1)) / own["sigma"])
    weight = 2 - mass / np.mean(mass, axis=-1, keepdims=True)
    logits = stack(*both) @ transposed(unit(stack(*batch["z1"], *batch["z2"]))) / own["temperature"]
    itself = np.concatenate([rank * count + np.arange(count), n + rank * count + np.arange(count)])
    partner = (itself + n) % (2 * n)
    keep = (itself[:, None] != np.arange(2 * n)) & (partner[:, None] != np.arange(2 * n))
    pulled = np.take_along_axis(logits, np.broadcast_to(partner[:, None], (*logits.shape[:-1], 1)), axis=-1)[..., 0]
    pushed = log_sum_exp(np.where(keep, logits, -np.inf))
    return np.mean(pushed - np.concatenate([weight, weight], axis=-1) * pulled, axis=-1)


def on_one(own, batch, rank, n, *, at, program, other):
    """Another program on one rank, that with the number or the one so far from the last."""
    return (other if rank == at % len(batch["image"]) else program)(own, batch, rank, n)


def doubled(own, batch, rank, n):
    return 2 * clip(own, batch, rank, n)


def detached(own, batch, rank, n):
    return clip({**own, "image": np.real(own["image"])}, batch, rank, n)


def robust(own, batch, rank, n, *, offset=1, joined=False):
    """The loss of docs/own-loss.md, which no dense form is stated of."""
    queries, keys = (unit(stack(*batch["queries"])) if joined else unit(own["queries"])), unit(stack(*batch["keys"]))
    p = np.exp(queries @ transposed(keys) / own["temperature"])
    at = np.arange(queries.shape[-2]) + (0 if joined else offset * rank * queries.shape[-2])
    pair = np.take_along_axis(p, np.broadcast_to(at[:, None], (*p.shape[:-1], 1)), axis=-1)[..., 0]
    return np.mean(((0.1 * np.sum(p, axis=-1)) ** 0.5 - pair**0.5) / 0.5, axis=-1)


def potential(own, batch, rank, n):
    x = unit(stack(*batch["x"]))
    squares = np.sum((x[..., :, None, :] - x[..., None, :, :]) ** 2, axis=-1)
    logits = np.where(np.eye(n, dtype=bool), -np.inf, -own["t"] * squares)
    return log_sum_exp(log_sum_exp(logits)) - np.log(n * (n - 1))


def rows(*names, d=3):
    return lambda rng, n: {name: rng.standard_normal((n, d)) for name in names}


def with_labels(rng, n):
    return {"embeddings": rng.standard_normal((n, 3)), "labels": np.arange(n) // 2 % 3}


def robust_loss():
    """The declaration that docs/own-loss.md has."""
    source = re.findall(r"```python\n# my_rince.py\n(.*?)```", OWN_LOSS.read_text(), re.DOTALL)[0]
    made = {}
    exec(source, made)
    return made["LOSS"]


MADE = {
    "clip": partial(probes, "clip", {}, rows("image", "text"), scalar="logit_scale"),
    "siglip": partial(probes, "siglip", {"logit_bias": -1.0}, rows("image", "text"), scalar="logit_scale"),
    "info_nce": partial(probes, "info_nce", {}, rows("queries", "keys")),
    "nt_xent": partial(probes, "nt_xent", {}, rows("z1", "z2")),
    "supcon_out": partial(probes, "supcon_out", {}, with_labels),
    "uniformity": partial(probes, "uniformity", {}, rows("x"), scalar="t"),
    "dclw": partial(probes, "dclw", {"sigma": 0.5}, rows("z1", "z2")),
    "rince": lambda: probes(robust_loss(), {"exponent": 0.5, "density": 0.1}, rows("queries", "keys")),
}
CASES = {}


def cases(name):
    if name not in CASES:
        CASES[name] = MADE[name]()
    return CASES[name]


def diagnosed(name, program, backward, count=2, **contract):
    """The diagnosis of a program."""

    def run(size):
        shards = (1, 2, 3)[:size] if contract.get("shards") else ()
        made = Contract(size, **{**contract, "shards": shards})
        return observed(program, cases(name), made, backward), made

    return diagnose_ranks(*run(count), lambda: run(2 if count > 2 else 3))


def ids(*args, **contract):
    return [d.id for d in diagnosed(*args, **contract)]


def times(k):
    return lambda w: float(w) ** k


JOINED = partial(clip, local=False)
NAMED = [
    ("clip", partial(JOINED, factor=times(1)), "sum", {}, "value-times-ranks+gradient-times-ranks"),
    ("clip", JOINED, "sum", {"sync": "sum"}, "gradient-times-ranks"),
    ("clip", share, "own", {}, "value-is-a-share+cross-rank-terms-missing+gradient-divided-by-ranks"),
    ("clip", clip, "sum", {"value": "each"}, "value-is-a-share"),
    ("nt_xent", tempered, "own", {}, "outer-factor-2-temperature+gradient-divided-by-ranks"),
    ("supcon_out", labelled, "own", {}, "cross-rank-terms-missing"),
    ("supcon_out", partial(labelled, self_at=0), "sum", {}, "rank-offset-forgotten"),
    ("supcon_out", partial(labelled, self_at=0, ordered=True), "sum", {}, "shards-reordered"),
    ("uniformity", potential, "own", {}, "gradient-divided-by-ranks"),
    ("siglip", sigmoids, "none", {}, "own-shard-detached"),
    ("siglip", partial(sigmoids, bias_on=0), "sum", {}, "scalar-not-synchronized"),
    ("clip", clip, "sum", {"shards": True}, "mean-of-means"),
    ("clip", alone, "none", {"shards": True}, "local-candidates-only"),
    ("clip", JOINED, "sum", {"count": 4, "duplicate": True}, "duplicated-rows"),
    ("nt_xent", one_view, "sum", {}, "one-input-not-gathered"),
    ("supcon_out", partial(labelled, repeated=True), "sum", {}, "own-labels-repeated"),
    ("siglip", partial(ring, step=-1), "own", {"count": 3}, "one-shard-missing+cross-rank-terms-missing"),
    ("dclw", weighted, "sum", {}, "weights-of-own-shard"),
    ("rince", robust, "own", {}, "cross-rank-terms-missing"),
]
"""Each name at least once, on the loss where it is found soonest."""
OTHERS = [
    ("clip", JOINED, "own", {}, "gradient-divided-by-ranks"),
    ("clip", partial(JOINED, factor=times(1)), "own", {}, "value-times-ranks+scalar-not-synchronized"),
    ("clip", JOINED, "sum", {"value": "sum"}, "value-times-ranks"),
    ("clip", clip, "own", {}, "cross-rank-terms-missing"),
    ("clip", clip, "slice", {}, "cross-rank-terms-missing"),
    ("clip", clip, "none", {}, "own-shard-detached"),
    ("clip", clip, "mean", {}, "gradient-divided-by-ranks"),
    ("clip", JOINED, "own", {"value": "each", "sync": "sum"}, "scalar-not-synchronized"),
    ("clip", partial(clip, offset=0), "sum", {}, "rank-offset-forgotten"),
    ("clip", partial(clip, offset=0), "none", {}, "rank-offset-forgotten+own-shard-detached"),
    ("clip", partial(clip, ordered=("image", "text")), "sum", {}, "shards-reordered"),
    ("clip", partial(clip, ordered=("image",)), "sum", {}, "shards-reordered"),
    ("clip", partial(JOINED, ordered=("image",)), "sum", {}, "shards-reordered"),
    ("clip", alone, "none", {}, "local-candidates-only"),
    ("clip", partial(JOINED, scale=2.0), "own", {}, "temperature-off-by-a-factor+gradient-divided-by-ranks"),
    ("clip", partial(JOINED, factor=lambda w: 2.0), "own", {}, "directions-summed+gradient-divided-by-ranks"),
    ("info_nce", one_way, "own", {}, "cross-rank-terms-missing"),
    ("info_nce", one_way, "none", {}, "own-shard-detached"),
    ("nt_xent", partial(views, local=False), "own", {}, "gradient-divided-by-ranks"),
    ("nt_xent", views, "none", {}, "own-shard-detached"),
    ("nt_xent", views, "own", {}, "cross-rank-terms-missing"),
    ("nt_xent", partial(views, self_at=0, labels_at=0), "sum", {}, "rank-offset-forgotten"),
    ("nt_xent", partial(views, self_at=0), "sum", {}, "rank-offset-forgotten"),
    ("nt_xent", partial(views, labels_at=0), "own", {}, "rank-offset-forgotten+cross-rank-terms-missing"),
    ("nt_xent", partial(views, local=False, interleaved=True), "sum", {}, "shards-reordered"),
    ("supcon_out", partial(labelled, ordered=True), "own", {}, "shards-reordered+cross-rank-terms-missing"),
    ("clip", partial(clip, offset=0), "sum", {"shards": True}, "rank-offset-forgotten+mean-of-means"),
    ("clip", partial(JOINED, factor=times(1)), "sum", {"count": 3}, "value-times-ranks+gradient-times-ranks"),
    ("clip", one_side, "sum", {}, "one-input-not-gathered"),
    ("clip", one_side, "own", {"count": 3}, "one-input-not-gathered+cross-rank-terms-missing"),
    ("siglip", partial(ring, step=1), "sum", {}, "one-shard-missing"),
    ("clip", partial(on_one, at=-1, program=clip, other=doubled), "sum", {"count": 3}, "one-rank-apart"),
    ("clip", partial(on_one, at=1, program=clip, other=detached), "sum", {}, "one-rank-apart"),
    ("rince", partial(robust, joined=True), "own", {}, "gradient-divided-by-ranks"),
    ("rince", partial(robust, offset=0), "sum", {}, "rank-offset-forgotten"),
]
WRONG = [*NAMED, *OTHERS]


@pytest.mark.parametrize(
    ("name", "program", "backward", "contract", "id"),
    partly_slow(WRONG, NAMED.__contains__, "other programs with the same names"),
    ids=[f"{k}-{case[0]}-{case[-1]}" for k, case in enumerate(WRONG)],
)
def test_what_is_wrong_between_ranks_is_named(name, program, backward, contract, id):
    assert ids(name, program, backward, **contract) == [id]


@pytest.mark.parametrize(
    ("forgotten", "effect"), [({"self_at": 0}, "negatives of themselves"), ({"labels_at": 0}, "wrong pairs together")]
)
def test_what_training_makes_of_an_offset_is_that_of_what_has_none(forgotten, effect):
    (diagnosis,) = diagnosed("nt_xent", partial(views, **forgotten), "sum")
    assert effect in diagnosis.sentence


RIGHT = [
    ("clip", JOINED, "sum", {}),
    ("clip", clip, "sum", {}),
    ("clip", share, "sum", {"value": "sum", "sync": "sum"}),
    ("clip", JOINED, "sum", {"value": "each"}),
    ("clip", partial(clip, factor=times(-1)), "sum", {"value": "sum", "sync": "sum"}),
    ("nt_xent", views, "sum", {"count": 3}),
    ("supcon_out", labelled, "sum", {}),
    ("siglip", sigmoids, "sum", {"count": 3}),
    ("clip", share_of_all, "sum", {"shards": True}),
    ("rince", robust, "sum", {}),
]
"""Programs that are right under their contract, which is the number of ranks too."""


@pytest.mark.parametrize(("name", "program", "backward", "contract"), RIGHT)
def test_nothing_is_named_where_nothing_is_wrong(name, program, backward, contract):
    assert ids(name, program, backward, **contract) == []


def test_a_case_that_one_rank_alone_has_wrong_hides_nothing():
    def run(size):
        made = Contract(size)
        seen = observed(one_way, cases("info_nce") * 3, made, "own")
        # As a program that returns 0 where it is cold.
        ranks = tuple(replace(a, value=0.0) for a in seen[0].outcome.ranks)
        return [Observation(seen[0].probe, replace(seen[0].outcome, ranks=ranks)), *seen[1:3], *seen[4:6]], made

    (named,) = diagnose_ranks(*run(2), lambda: run(3), frozenset({cases("info_nce")[0].id}))
    assert named.id == "cross-rank-terms-missing"
    # That is said only where nothing is named with it.
    assert "left out: 1 of 5 cases that one rank alone has wrong, n6-0.1" in named.sentence


def test_each_rank_has_a_record_of_what_is_wrong_with_it():
    contract = Contract(2)
    seen = observed(partial(on_one, at=1, program=clip, other=doubled), cases("clip"), contract)
    off = tuple(probe.id for probe in cases("clip"))
    assert [(r.right, r.wrong, r.cases) for r in rank_records("", seen, contract)] == [(True, (), 3), (False, off, 3)]
    failure = Outcome(trouble="raises", sentence="raises ValueError: no", ranks=(Outcome(trouble="raises"),))
    together = [Observation(probe, failure) for probe in cases("clip")]
    assert [(r.right, tuple(r.trouble)) for r in rank_records("", together, contract)] == [(False, off)] * 2
    assert [(r.right, r.sentence) for r in rank_records("", (), contract)] == [(False, "no case was judged")] * 2


@pytest.mark.parametrize(
    ("name", "program", "backward", "id", "contract"),
    [
        ("clip", clip, "own", "cross-rank-terms-missing", Contract(2)),
        ("clip", clip, "none", "own-shard-detached", Contract(3)),
        ("nt_xent", views, "own", "cross-rank-terms-missing", Contract(3)),
        ("clip", share_of_all, "own", "cross-rank-terms-missing", Contract(2, shards=(1, 2))),
    ],
)
def test_a_gather_without_gradient_can_be_intended(name, program, backward, id, contract):
    seen = observed(program, cases(name), contract, backward)
    meant = [Observation(intended_gather(o.probe, contract, id), o.outcome) for o in seen]
    assert {r.status for o in meant for r in judge(o)} == {"pass"}
    assert {r.status for o in seen for r in judge(o)} == {"pass", "fail"}


@pytest.mark.parametrize(
    ("intended", "contracts", "words"),
    [
        ("gradient-divided-by-ranks", [Contract(2)], "cross-rank-terms-missing or own-shard-detached"),
        ("own-shard-detached", [], "add ranks"),
        ("own-shard-detached", [Contract(2, duplicate=True)], "leave out `duplicate`"),
    ],
)
def test_a_gather_that_cannot_be_intended_is_refused(intended, contracts, words):
    with pytest.raises(InputError, match=words):
        check_gather(cases("clip")[0].loss, {"gather": intended}, contracts)
