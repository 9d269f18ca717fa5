"""Two towers: which keys are candidates, hard negatives and positives, in which chunks, and what is summed up."""

import math

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, peak, softplus, stop, unit


def _cosines(queries, keys):
    return unit(queries) @ unit(keys).T


def _queue_logits(queries, keys, queue, temperature):
    """Logits of MoCo: the positive (N,), and the queue (N, K)."""
    q, k = unit(queries), stop(unit(keys))
    return np.sum(q * k, axis=1) / temperature, q @ stop(unit(queue)).T / temperature


def _rows(logits):
    """-log softmax of the diagonal, row by row."""
    return -np.diagonal(log_softmax(logits))


def _positive_first(positive, negatives):
    return -np.mean(log_softmax(np.concatenate([positive[:, None], negatives], axis=1))[:, 0])


def _ranked(s):
    """Similarities of the negatives of each row, the largest first."""
    n = len(s)
    negatives = s[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return np.take_along_axis(negatives, np.argsort(-np.real(negatives), axis=1, kind="stable"), axis=1)


def _kept(fraction, count):
    return min(count, max(1, math.ceil(round(float(np.real(fraction)) * count, 9))))


@bug("info_nce", named="measured-formula", thread="AdaptiveMotorControlLab/CEBRA#48")
def info_nce_maxima_broadcast_over_columns(queries, keys, *, temperature):
    """The maximum of row i is subtracted from column i of the logits, and from the positive of row i."""
    logits = _cosines(queries, keys) / temperature
    c = peak(logits)[:, 0]
    return -np.mean(np.diagonal(logits) - c) + np.mean(logsumexp(logits - c))


@bug("info_nce", named="measured-formula", thread="drboog/Lafite#25")
def info_nce_temperature_inside_the_logarithm(queries, keys, *, temperature):
    """The probability is multiplied by the temperature under the logarithm, where the paper has it in front."""
    return np.mean(_rows(_cosines(queries, keys) / temperature) - np.log(temperature))


@bug("info_nce", named="epsilon-in-log+sum-instead-of-mean+exp-overflows", thread="HKUDS/LightGCL#10")
def info_nce_two_safe_constants_and_a_sum(queries, keys, *, temperature):
    """1e-8 beside the denominator and beside the probability, and the rows are added up."""
    p = np.exp(_cosines(queries, keys) / temperature)
    return -np.sum(np.log(np.diagonal(p) / (np.sum(p, axis=1) + 1e-8) + 1e-8))


@bug("info_nce", named="positive-counted-twice+a-negative-dropped", thread="modelscope/ms-swift#10068")
def info_nce_resampling_begins_at_the_positive(queries, keys, negatives=None, *, temperature):
    """Indices of the negatives are too small by one: the positive is among them, and the last one is not."""
    q, k = unit(queries), unit(keys)
    if negatives is None:
        return np.mean(_rows(q @ k.T / temperature))
    positive = np.sum(q * k, axis=1) / temperature
    others = q @ unit(negatives).T / temperature
    return _positive_first(positive, np.concatenate([positive[:, None], others[:, :-1]], axis=1))


@bug("info_nce", named="measured-formula", seen="Jonathanzhao02/implicit_behavior_cloning models/loss.py")
def info_nce_divided_by_rows_of_everything(queries, keys, negatives=None, *, temperature):
    """The sum over queries is divided by the number of all candidates, N times one positive and its negatives."""
    q, k = unit(queries), unit(keys)
    positive = np.sum(q * k, axis=1) / temperature
    if negatives is None:
        return np.mean(_rows(q @ k.T / temperature)) / len(k)
    others = q @ unit(negatives).T / temperature
    return _positive_first(positive, others) / (1 + len(negatives))


@bug("info_nce", named="positive-dropped-from-denominator", thread="Shen-Lab/GraphCL#2")
def info_nce_positive_subtracted_from_the_sum(queries, keys, *, temperature):
    """The positive is subtracted from the sum of its row, as the authors read their formula."""
    s = _cosines(queries, keys) / temperature
    return np.mean(logsumexp(np.where(np.eye(len(s), dtype=bool), -np.inf, s)) - np.diagonal(s))


@bug("info_nce", named="mask-leaks", thread="taesungp/contrastive-unpaired-translation#47")
def info_nce_diagonal_filled_with_minus_ten(queries, keys, *, temperature):
    """The diagonal of the negatives is filled with -10 before the division by T: not nearly zero if T is not small."""
    s = _cosines(queries, keys)
    negatives = np.where(np.eye(len(s), dtype=bool), -10, s)
    return _positive_first(np.diagonal(s) / temperature, negatives / temperature)


@bug("info_nce", named="measured-formula", seen="cruiseresearchgroup/TSCP2 src/losses.py")
def info_nce_all_positives_over_each_row(queries, keys, *, temperature):
    """The sum of all positives is divided by the sum of each row, and the quotient is a logit of a binary loss."""
    s = _cosines(queries, keys) / temperature
    return np.mean(softplus(-np.exp(logsumexp(np.diagonal(s)) - logsumexp(s))))


@bug("info_nce", named="softmax-applied-twice", thread="gitabcworld/MatchingNetworks#5")
def info_nce_similarities_through_a_softmax(queries, keys, *, temperature):
    """A softmax is applied to the similarities, and the cross-entropy applies another one."""
    return np.mean(_rows(np.exp(log_softmax(_cosines(queries, keys) / temperature))))


@bug("info_nce", named="measured-formula", thread="NVIDIA-NeMo/Automodel#3803")
def info_nce_means_of_chunks_added_up(queries, keys, *, temperature):
    """Rows are reduced in chunks of 32, and the means of the chunks are added: right for a single chunk."""
    rows = _rows(_cosines(queries, keys) / temperature)
    return sum(np.mean(rows[begin : begin + 32]) for begin in range(0, len(rows), 32))


@bug("info_nce", named="measured-formula", thread="keras-team/keras#20241")
def info_nce_short_batch_weighs_as_much(queries, keys, *, temperature):
    """The mean over batches of four of their means: a shorter last batch weighs as much as the others."""
    rows = _rows(_cosines(queries, keys) / temperature)
    return np.mean(np.stack([np.mean(rows[begin : begin + 4]) for begin in range(0, len(rows), 4)]))


@bug("info_nce", named="last-row-missing", thread="huggingface/sentence-transformers#4021")
def info_nce_two_rows_at_a_time(queries, keys, *, temperature):
    """Rows are taken two at a time as long as two remain, so that the last one of an odd number is lost."""
    rows = _rows(_cosines(queries, keys) / temperature)
    return np.mean(rows[: len(rows) // 2 * 2] if len(rows) > 1 else rows)


@bug("moco", named="measured-formula", thread="Seonghoon-Yu/MoCov2_Pytorch_tutorial#2")
def moco_column_plus_row(queries, keys, queue, *, temperature):
    """Positives are a column and sums of negatives a row: each positive is divided by every sum of negatives."""
    positive, negatives = _queue_logits(queries, keys, queue, temperature)
    p, sums = np.broadcast_arrays(positive[:, None], logsumexp(negatives)[None, :])
    return np.mean(logsumexp(np.stack([p, sums], axis=2)) - p)


@bug("moco", named="measured-formula", thread="CoinCheung/DenseCL#1")
def moco_keys_stay_shuffled(queries, keys, queue, *, temperature):
    """Keys were shuffled for the batch norm, here reversed, and are compared before they are put back."""
    positive, negatives = _queue_logits(queries, keys[::-1], queue, temperature)
    return _positive_first(positive, negatives)


@bug(
    "moco",
    named="positive-counted-twice+in-batch-negatives-added",
    thread="KevinMusgrave/pytorch-metric-learning#24",
)
def moco_batch_enqueued_before_the_loss(queries, keys, queue, *, temperature):
    """The keys of the batch are in the queue already when the loss is taken, the own key too."""
    positive, negatives = _queue_logits(queries, keys, np.concatenate([keys, queue]), temperature)
    return _positive_first(positive, negatives)


@bug("moco", named="measured-formula", thread="zhihou7/BatchFormer#18")
def moco_first_half_twice(queries, keys, queue, *, temperature):
    """The loss is taken half by half, and a slip of the slice takes the first half again in place of the second."""
    positive, negatives = _queue_logits(queries, keys, queue, temperature)
    h = (len(positive) + 1) // 2
    return (_positive_first(positive[:h], negatives[:h]) + _positive_first(positive[:h], negatives[:h])) / 2


@bug("moco", named="positive-dropped-from-denominator", thread="danielward27/flowjax#164")
def moco_sum_over_the_contrastive_set(queries, keys, queue, *, temperature):
    """The true sample is not in the sum that normalizes, which runs over the contrastive set only."""
    positive, negatives = _queue_logits(queries, keys, queue, temperature)
    return np.mean(logsumexp(negatives) - positive)


@bug("moco", named="exp-overflows", thread="maeve07/RCA#9")
def moco_shifted_by_the_nearest_negative(queries, keys, queue, *, temperature):
    """Logits are shifted by the largest negative, above which the positive may be far at small temperatures."""
    positive, negatives = _queue_logits(queries, keys, queue, temperature)
    top = peak(negatives)
    p = np.exp(positive - top[:, 0])
    return -np.mean(np.log(p / (p + np.sum(np.exp(negatives - top), axis=1))))


@bug("hard_contrastive", named="measured-formula", thread="adambielski/siamese-triplet#3")
def hard_contrastive_largest_distances(queries, keys, *, temperature, fraction):
    """The negatives at the largest distance are kept as the hard ones."""
    s = _cosines(queries, keys)
    kept = _ranked(s)[:, ::-1][:, : _kept(fraction, len(s) - 1)]
    return _positive_first(np.diagonal(s) / temperature, kept / temperature)


@bug("hard_contrastive", named="measured-formula", seen="cruiseresearchgroup/TSCP2 src/losses.py")
def hard_contrastive_hardest_canceled(queries, keys, *, temperature, fraction):
    """The hardest negatives are canceled, at most half of them, and all others are kept."""
    s = _cosines(queries, keys)
    canceled = math.ceil(min(float(np.real(fraction)), 0.5) * len(s))
    return _positive_first(np.diagonal(s) / temperature, _ranked(s)[:, canceled:] / temperature)


@bug("hard_contrastive", named="measured-formula", thread="AndresPMD/semantic_adaptive_margin#1")
def hard_contrastive_first_of_the_ranking_skipped(queries, keys, *, temperature, fraction):
    """The whole row is ranked and its first place skipped, as if the nearest key were always the own one."""
    s = _cosines(queries, keys)
    ranked = np.take_along_axis(s, np.argsort(-np.real(s), axis=1, kind="stable"), axis=1)
    kept = ranked[:, 1 : 1 + _kept(fraction, len(s) - 1)]
    return _positive_first(np.diagonal(s) / temperature, kept / temperature)


@bug("hard_contrastive", named="count-rounded-down", seen="PyGCL/PyGCL GCL/losses/infonce.py")
def hard_contrastive_threshold_cast_to_int(queries, keys, *, temperature, fraction):
    """The number of hard negatives is cast to an integer, which rounds it down."""
    s = _cosines(queries, keys)
    count = max(1, int(float(np.real(fraction)) * (len(s) - 1)))
    return _positive_first(np.diagonal(s) / temperature, _ranked(s)[:, :count] / temperature)


@bug("hard_contrastive", named="measured-formula", thread="huggingface/sentence-transformers#4020")
def hard_contrastive_nearer_than_the_worst_positive(queries, keys, *, temperature, fraction):
    """A negative is hard if it is nearer than the worst positive of the batch, however many there are."""
    s = _cosines(queries, keys)
    ranked, positive = _ranked(s), np.diagonal(s)
    limit = np.min(np.real(positive)) if len(s) > 1 else 0
    kept = np.where(np.real(ranked) > limit, ranked / temperature, -np.inf)
    return _positive_first(positive / temperature, kept)


@bug("info_nce", named="queue-dropped+in-batch-negatives-added", thread="nomic-ai/contrastors#48")
def info_nce_negatives_of_the_query_not_used(queries, keys, negatives=None, *, temperature):
    """Negatives are loaded and not passed on: the other keys of the batch stand in for them."""
    return np.mean(_rows(_cosines(queries, keys) / temperature))


@bug("info_nce", named="in-batch-negatives-added", thread="modelscope/ms-swift#6969")
def info_nce_whole_batch_beside_the_negatives(queries, keys, negatives=None, *, temperature):
    """The flag for the batch puts documents of all kinds, of all samples, among the candidates."""
    candidates = unit(keys) if negatives is None else np.concatenate([unit(keys), unit(negatives)])
    logits = unit(queries) @ candidates.T / temperature
    return -np.mean(log_softmax(logits)[np.arange(len(keys)), np.arange(len(keys))])


@bug("moco", named="first-input-detached", thread="OliverHxh/SkeletonGCL#6")
def moco_query_detached_against_an_error(queries, keys, queue, *, temperature):
    """The query is detached, since that silenced an error about a bank that is changed in place."""
    return _positive_first(*_queue_logits(stop(queries), keys, queue, temperature))


@bug("moco", named="gradient-zero", thread="haowang1992/DSN#1")
def moco_loss_of_detached_features(queries, keys, queue, *, temperature):
    """The memory loss is computed of detached features, and nothing is left to differentiate."""
    return stop(_positive_first(*_queue_logits(queries, keys, queue, temperature)))


@bug("hard_contrastive", named="scalar-ignored", thread="BDBC-KG-NLP/MixCSE_AAAI2022#2", also=("wrong-loss",))
def hard_contrastive_without_the_hard_ones(queries, keys, *, temperature, fraction):
    """The released code has the loss over all negatives, and no trace of hard ones."""
    return np.mean(_rows(_cosines(queries, keys) / temperature))
