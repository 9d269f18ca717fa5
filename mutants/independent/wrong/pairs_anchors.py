"""Losses of two views: which rows are anchors, positives and candidates, and what a mask leaves of them."""

import math

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, stop, unit

_LOG_OF_SMALLEST = math.log(1e-45)


def _partners(n):
    """Numbers of the 2N rows, and of the other view of each."""
    rows = np.arange(2 * n)
    return rows, (rows + n) % (2 * n)


def _nt_xent(z, temperature):
    """The loss as it should be, of rows that are normalized, view 1 first."""
    rows, partner = _partners(len(z) // 2)
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    return -np.mean(log_softmax(s)[rows, partner])


@bug("nt_xent", named="measured-formula", thread="Spijkervet/SimCLR#37")
def nt_xent_gathered_rank_by_rank(z1, z2, *, temperature):
    """Two ranks gather both of their views in turn, but positives are looked for as if all of view 1 came first."""
    h = len(z1) // 2
    return _nt_xent(unit(np.concatenate([z1[:h], z2[:h], z1[h:], z2[h:]])), temperature)


@bug("nt_xent", named="measured-formula", thread="microsoft/A-CLIP#4")
def nt_xent_first_augmentation_given_twice(z1, z2, *, temperature):
    """Both views are sliced from the first half of the batch, so that the second augmentation is never used."""
    both = np.concatenate([z1, z2])
    n = len(both) // 2
    return _nt_xent(unit(np.concatenate([both[:n], both[:n]])), temperature)


@bug("nt_xent", named="measured-formula", thread="vturrisi/solo-learn#206")
def nt_xent_second_rank_is_its_own_positive(z1, z2, *, temperature):
    """The diagonal of the first block is cut whatever the rank: rows of view 2 lose their positive, not themselves."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    first = rows < len(z1)
    hidden, positive = np.where(first, rows, partner), np.where(first, partner, rows)
    s = np.where(hidden[:, None] == rows, -np.inf, z @ z.T / temperature)
    return -np.mean(log_softmax(s)[rows, positive])


@bug("nt_xent", named="views-interleaved", thread="open-mmlab/mmselfsup#159")
def nt_xent_every_second_index_twice(z1, z2, *, temperature):
    """Positives have the indices 0, 0, 2, 2, ... beside the diagonal, but the views lie one after the other."""
    z = unit(np.concatenate([z1, z2]))
    m = len(z)
    s = (z @ z.T / temperature)[~np.eye(m, dtype=bool)].reshape(m, m - 1)
    return -np.mean(log_softmax(s)[np.arange(m), np.arange(m) // 2 * 2])


@bug("nt_xent", named="first-view-only", thread="tensorflow/similarity#262")
def nt_xent_from_a_to_b_alone(z1, z2, *, temperature):
    """The loss is taken from view a to view b and never from b to a."""
    a, b = unit(z1), unit(z2)
    own = np.where(np.eye(len(a), dtype=bool), -np.inf, a @ a.T / temperature)
    logits = np.concatenate([a @ b.T / temperature, own], axis=1)
    return -np.mean(np.diagonal(log_softmax(logits)))


@bug("nt_xent", named="same-view-only", seen="PyGCL/PyGCL GCL/losses/infonce.py")
def nt_xent_inter_and_intra_exchanged(z1, z2, *, temperature):
    """The two similarities have each other's names, and the negatives are those of the anchor's own view."""
    h1, h2 = unit(z1), unit(z2)

    def one_way(a, b):
        positive = np.sum(a * b, axis=1) / temperature
        own = np.where(np.eye(len(a), dtype=bool), -np.inf, a @ a.T / temperature)
        return logsumexp(np.concatenate([positive[:, None], own], axis=1)) - positive

    return np.mean((one_way(h1, h2) + one_way(h2, h1)) * 0.5)


@bug("nt_xent", named="denominators-added-as-logs", thread="catalyst-team/catalyst#1278")
def nt_xent_formula_of_a_review(z1, z2, *, temperature):
    """A review has the logarithm of the sum over the own view plus that of the sum over the other view."""
    f1, f2 = unit(z1), unit(z2)

    def one_way(a, b):
        own = np.where(np.eye(len(a), dtype=bool), -np.inf, a @ a.T / temperature)
        return -np.sum(a * b, axis=1) / temperature + logsumexp(own) + logsumexp(a @ b.T / temperature)

    return np.mean(np.concatenate([one_way(f1, f2), one_way(f2, f1)]))


@bug(
    "nt_xent",
    named="cross-view-only+first-view-only",
    thread="catalyst-team/catalyst#1278",
    also=("wrong-loss",),
)
def nt_xent_one_way_between_views(z1, z2, *, temperature):
    """The first version pulls rows of view 1 to view 2 and compares with rows of view 2 alone."""
    s = unit(z1) @ unit(z2).T / temperature
    return np.mean(logsumexp(s) - np.diagonal(s))


@bug("nt_xent", named="value-not-finite", seen="fhahaha/SimCLR contrastive_loss.py")
def nt_xent_mask_times_infinity(z1, z2, *, temperature):
    """The mask is multiplied by infinity and subtracted: 0 times infinity is NaN off the diagonal."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature - np.eye(len(z), dtype=z1.dtype) * np.inf
    return -np.mean(log_softmax(s)[rows, partner])


@bug("nt_xent", named="masked-entries-count-one", thread="google-research/simclr#20")
def nt_xent_inverse_mask_as_factor(z1, z2, *, temperature):
    """The logits of the diagonal are multiplied by 0, which was thought more precise than subtracting 1e9."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    keep = 1 - np.eye(len(z), dtype=z1.real.dtype)
    return -np.mean(log_softmax(z @ z.T / temperature * keep)[rows, partner])


@bug("nt_xent", named="measured-formula", seen="PyGCL/PyGCL GCL/losses/infonce.py")
def nt_xent_bare_self_similarity_subtracted(z1, z2, *, temperature):
    """The cosine of a row with itself is taken from a sum of exponentials: 1 where exp(1 / T) is meant."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    total = logsumexp(s)
    # log(e^total - 1), which does not overflow.
    return np.mean(total + np.log1p(-np.diagonal(z @ z.T) * np.exp(-total)) - s[rows, partner])


@bug("nt_xent", named="candidates-detached", thread="facebookresearch/vissl#123")
def nt_xent_gathered_side_without_gradient(z1, z2, *, temperature):
    """Embeddings are compared with the gathered buffer, through which no gradient flows back."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ stop(z).T / temperature)
    return -np.mean(log_softmax(s)[rows, partner])


@bug("nt_xent", named="gradient-constant-factor", thread="JohnGiorgi/DeCLUTR#212")
def nt_xent_gradient_averaged_over_ranks(z1, z2, *, temperature):
    """Each of four ranks has the gradient of its own rows, and the mean over ranks makes it a quarter."""
    z = np.concatenate([z1, z2])
    return _nt_xent(unit(stop(z) + (z - stop(z)) / 4), temperature)


@bug("nt_xent", named="gradient-missing-rows", thread="huggingface/sentence-transformers#3862")
def nt_xent_gradient_of_the_last_minibatch(z1, z2, *, temperature):
    """Embeddings are cached in mini-batches of four, and every gradient but that of the last one is dropped."""
    begin = (len(z1) - 1) // 4 * 4
    z1, z2 = (np.concatenate([stop(z[:begin]), z[begin:]]) for z in (z1, z2))
    return _nt_xent(unit(np.concatenate([z1, z2])), temperature)


@bug("dcl", named="measured-formula", thread="raminnakhli/Decoupled-Contrastive-Learning#14")
def dcl_logits_times_log_of_smallest(z1, z2, *, temperature):
    """A user multiplies masked logits by log(1e-45): where a cosine is negative, that makes them huge."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    hidden = (rows[:, None] == rows) | (partner[:, None] == rows)
    return np.mean(logsumexp(np.where(hidden, s * _LOG_OF_SMALLEST, s)) - s[rows, partner])


@bug("dcl", named="mask-leaks", thread="raminnakhli/Decoupled-Contrastive-Learning#14")
def dcl_log_of_smallest_is_not_enough(z1, z2, *, temperature):
    """log(1e-45) = -103 is added to masked logits, which reach far above that at small temperatures."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    hidden = (rows[:, None] == rows) | (partner[:, None] == rows)
    return np.mean(logsumexp(np.where(hidden, s + _LOG_OF_SMALLEST, s)) - s[rows, partner])


@bug(
    "dcl",
    named="first-view-only+mask-leaks",
    seen="chrisantuseze/active-self-pretraining models/self_sup/simclr/loss/dcl_loss.py",
)
def dcl_called_once(z1, z2, *, temperature):
    """The one-way loss is called for view 1 alone, and its mask adds -103."""
    z1, z2 = unit(z1), unit(z2)
    cross = z1 @ z2.T
    s = np.concatenate([z1 @ z1.T, cross], axis=1) / temperature
    hidden = np.tile(np.eye(len(z1), dtype=bool), (1, 2))
    return np.mean(logsumexp(np.where(hidden, s + _LOG_OF_SMALLEST, s)) - np.diagonal(cross) / temperature)


@bug("dcl", named="positive-kept-in-denominator", thread="amazon-science/sccl#27", also=("wrong-loss",))
def dcl_code_unlike_its_paper(z1, z2, *, temperature):
    """The paper divides by the negatives, and the code by the negatives and the positive."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    hidden = (rows[:, None] == rows) | (partner[:, None] == rows)
    others = logsumexp(np.where(hidden, -np.inf, s))
    positive = s[rows, partner]
    return np.mean(logsumexp(np.stack([others, positive], axis=1)) - positive)


@bug("dcl", named="denominators-added-as-logs", thread="lightly-ai/lightly#1826")
def dcl_log_sum_exp_of_each_view(z1, z2, *, temperature):
    """A log-sum-exp of the own view and one of the other view are added, where one of both is meant."""
    z1, z2 = unit(z1), unit(z2)
    own = np.eye(len(z1), dtype=bool)

    def one_way(a, b):
        same, cross = (np.where(own, -np.inf, a @ c.T / temperature) for c in (a, b))
        return -np.sum(a * b, axis=1) / temperature + logsumexp(same) + logsumexp(cross)

    return (np.mean(one_way(z1, z2)) + np.mean(one_way(z2, z1))) / 2


@bug("nt_xent", named="positive-dropped-from-denominator", thread="leftthomas/SimCLR#27", also=("wrong-loss",))
def nt_xent_two_n_minus_two_candidates(z1, z2, *, temperature):
    """A reader takes the positive out of the sum, since the paper counts 2 (N - 1) negatives."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    hidden = (rows[:, None] == rows) | (partner[:, None] == rows)
    return np.mean(logsumexp(np.where(hidden, -np.inf, s)) - s[rows, partner])


@bug("nt_xent", named="self-contrast-kept", thread="Yunfan-Li/Contrastive-Clustering#9")
def nt_xent_sum_over_all_rows(z1, z2, *, temperature):
    """The formula of a paper sums over all rows, the anchor too, for simplicity."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    return -np.mean(log_softmax(z @ z.T / temperature)[rows, partner])


@bug("nt_xent", named="outer-factor-constant", thread="KevinMusgrave/pytorch-metric-learning#363")
def nt_xent_times_the_world_size(z1, z2, *, temperature):
    """The loss is multiplied by the number of processes, eight, whose gradients are averaged later."""
    return 8 * _nt_xent(unit(np.concatenate([z1, z2])), temperature)


@bug("dcl", named="sum-instead-of-mean", thread="raminnakhli/Decoupled-Contrastive-Learning#13")
def dcl_formula_without_one_over_n(z1, z2, *, temperature):
    """The formula of the paper is followed, which sums over samples and views and divides by nothing."""
    z = unit(np.concatenate([z1, z2]))
    rows, partner = _partners(len(z1))
    s = z @ z.T / temperature
    hidden = (rows[:, None] == rows) | (partner[:, None] == rows)
    return np.sum(logsumexp(np.where(hidden, -np.inf, s)) - s[rows, partner])
