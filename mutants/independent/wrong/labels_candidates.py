"""Labels wrong in who is a positive, who a candidate, and what stands for them."""

import numpy as np

from mutants.bug import bug, log_softmax, logsumexp, peak, unit


def _scores(embeddings, temperature):
    z = unit(embeddings)
    return z @ z.T / temperature


def _others(n):
    return ~np.eye(n, dtype=bool)


@bug("supcon_out", named="other-positives-dropped", thread="tfzhou/ContrastiveSeg#6")
def supcon_out_negatives_and_this_positive(embeddings, labels, *, temperature):
    """Each positive is compared with itself and the negatives, as the paper of the segmentation has it."""
    scores = _scores(embeddings, temperature)
    rows = []
    for i, row in enumerate(scores):
        negatives = row[labels != labels[i]]
        positives = [p for p in np.flatnonzero(labels == labels[i]) if p != i]
        pairs = [row[p] - logsumexp(np.append(negatives, row[p])) for p in positives]
        rows.append(-sum(pairs) / len(pairs))
    return np.mean(rows)


@bug("supcon_out", named="other-positives-dropped+exp-overflows", seen="zysong0113/SAVC losses.py")
def supcon_out_log_of_one_and_a_product(embeddings, labels, *, temperature):
    """Log of 1 plus the negatives' sum times e to minus the positive, in bare exponentials."""
    scores = _scores(embeddings, temperature)
    same = labels[:, None] == labels
    negatives = np.sum(np.where(same, 0, np.exp(scores)), axis=1, keepdims=True)
    positives = same & _others(len(labels))
    pairs = np.where(positives, np.log(1 + negatives * np.exp(-scores)), 0)
    return np.mean(np.sum(pairs, axis=1) / np.sum(positives, axis=1))


@bug("supcon_out", named="measured-formula", thread="alinlab/CSI#49")
def supcon_out_log_of_the_empty_diagonal(embeddings, labels, *, temperature):
    """The label mask keeps the diagonal, where the emptied probability gives minus log of the small constant."""
    scores = _scores(embeddings, temperature)
    p = np.exp(scores - peak(scores)) * _others(len(labels))
    losses = -np.log(p / (np.sum(p, axis=1, keepdims=True) + 1e-8) + 1e-8)
    same = labels[:, None] == labels
    return np.mean(np.sum(np.where(same, losses, 0), axis=1) / np.sum(same, axis=1))


@bug(
    "supcon_out",
    named="self-counted-as-positive+rows-not-normalized",
    seen="fsrt16/Hypergraph-Based-Contrastive-Embedding-and-Attention-Fusion-for-Detection-of-Skin-Cancer- "
    "ContrastiveLoss.py",
)
def supcon_out_raw_and_with_itself(embeddings, labels, *, temperature):
    """The label mask still has the anchor in it, its candidates do not, and nobody normalizes the features."""
    scores = embeddings @ embeddings.T / temperature
    others = logsumexp(np.where(_others(len(labels)), scores, -np.inf))
    same = labels[:, None] == labels
    log_prob = scores - others[:, None]
    return -np.mean(np.sum(np.where(same, log_prob, 0), axis=1) / np.sum(same, axis=1))


@bug("supcon_out", named="self-contrast-kept+self-counted-as-positive", thread="keras-team/keras-io#2398")
def supcon_out_npairs_targets(embeddings, labels, *, temperature):
    """The n-pairs loss of the similarity matrix: soft targets over the whole label mask, diagonal and all."""
    targets = labels[:, None] == labels
    log_prob = log_softmax(_scores(embeddings, temperature))
    return -np.mean(np.sum(np.where(targets, log_prob, 0), axis=1) / np.sum(targets, axis=1))


@bug("supcon_out", named="measured-formula", thread="keras-team/keras-io#2338")
def supcon_out_transposed_flat_labels(embeddings, labels, *, temperature):
    """Labels of one dimension are compared with their transpose, which is themselves: all others are positives."""
    n = len(labels)
    mask = np.broadcast_to(labels == labels.T, (n, n)) & _others(n)
    scores = np.where(_others(n), _scores(embeddings, temperature), -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    return -np.mean(np.sum(np.where(mask, log_prob, 0), axis=1) / np.sum(mask, axis=1))


@bug("supcon_out", named="masked-entries-count-one", thread="google-research/simclr#20")
def supcon_out_diagonal_multiplied_by_zero(embeddings, labels, *, temperature):
    """The matrix is multiplied by 1 minus the identity, which a reader takes for more precise than a large number."""
    log_prob = log_softmax(_scores(embeddings, temperature) * _others(len(labels)))
    positives = (labels[:, None] == labels) & _others(len(labels))
    return -np.mean(np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1))


@bug(
    "supcon_out",
    named="measured-formula",
    thread="sl-93/SUPERVISED-CONTRASTIVE-LEARNING-FOR-PRE-TRAINED-LANGUAGE-MODEL-FINE-TUNING#1",
)
def supcon_out_column_numbers_after_the_cut(embeddings, labels, *, temperature):
    """The diagonal is cut out of the matrix, and its columns are then looked up by the numbers that they had before."""
    n = len(labels)
    scores = _scores(embeddings, temperature)
    total = 0
    for i in range(n):
        cut = np.append(scores[i, :i], scores[i, i + 1 :])
        log_prob = cut - logsumexp(cut)
        hits = sum(log_prob[j] for j in range(n - 1) if labels[j] == labels[i])
        total = total - hits / (np.sum(labels == labels[i]) - 1)
    return total / n


@bug("supcon_out", named="measured-formula", thread="FlamieZhu/Balanced-Contrastive-Learning#5")
def supcon_out_classes_averaged_below(embeddings, labels, *, temperature):
    """Each exponential of the denominator is divided by how many candidates its class has, as balanced losses do."""
    n = len(labels)
    others = _others(n)
    same = labels[:, None] == labels
    count = np.sum(same, axis=0) - (same & others)
    scores = np.where(others, _scores(embeddings, temperature), -np.inf)
    log_prob = scores - logsumexp(scores - np.log(np.where(others, np.maximum(count, 1), 1)))[:, None]
    positives = same & others
    return -np.mean(np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1))


@bug("supcon_out", named="measured-formula", thread="tfzhou/ContrastiveSeg#66")
def supcon_out_background_is_no_anchor(embeddings, labels, *, temperature):
    """Class 0 is taken for the ignored label: its rows are candidates of the others, never anchors."""
    scores = np.where(_others(len(labels)), _scores(embeddings, temperature), -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    positives = (labels[:, None] == labels) & _others(len(labels))
    rows = -np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1)
    kept = labels != 0
    return np.sum(np.where(kept, rows, 0)) / max(np.sum(kept), 1)


@bug(
    "supcon_out",
    named="measured-formula",
    thread="sayakpaul/Supervised-Contrastive-Learning-in-TensorFlow-2#2",
)
def supcon_out_pairs_above_the_diagonal(embeddings, labels, *, temperature):
    """Only the upper triangle is kept against pairs with oneself: a positive must come later in the batch."""
    n = len(labels)
    scores = np.where(_others(n), _scores(embeddings, temperature), -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    later = np.triu(labels[:, None] == labels, 1)
    rows = -np.sum(np.where(later, log_prob, 0), axis=1) / np.maximum(np.sum(later, axis=1), 1)
    return np.sum(rows) / np.sum(np.any(later, axis=1))


@bug("supcon_out", named="measured-formula", thread="KevinMusgrave/pytorch-metric-learning#288")
def supcon_out_negative_distances(embeddings, labels, *, temperature):
    """The logit of a pair is minus its Euclidean distance, not its cosine."""
    z = unit(embeddings)
    n = len(labels)
    gaps = z[:, None] - z
    distances = np.sqrt(np.sum(gaps * gaps, axis=2) + np.eye(n))
    scores = np.where(_others(n), -distances / temperature, -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    positives = (labels[:, None] == labels) & _others(n)
    return -np.mean(np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1))


@bug("supcon_out", named="measured-formula", thread="lifuguan/IGGT_official#24")
def supcon_out_unit_mean_of_positives(embeddings, labels, *, temperature):
    """The anchor meets the mean of its positives, which is scaled to length 1 once more."""
    z = unit(embeddings)
    n = len(labels)
    positives = (labels[:, None] == labels) & _others(n)
    prototypes = unit(positives @ z)
    scores = np.where(_others(n), z @ z.T / temperature, -np.inf)
    return np.mean(logsumexp(scores) - np.sum(z * prototypes, axis=1) / temperature)


@bug("supcon_out", named="measured-formula", thread="LTH14/targeted-supcon#15")
def supcon_out_two_positives_at_most(embeddings, labels, *, temperature):
    """Of every anchor's positives the first two are drawn, and the mean is over these."""
    n = len(labels)
    scores = np.where(_others(n), _scores(embeddings, temperature), -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    rows = []
    for i in range(n):
        drawn = [j for j in range(n) if j != i and labels[j] == labels[i]][:2]
        rows.append(-sum(log_prob[i, j] for j in drawn) / len(drawn))
    return np.mean(rows)


@bug("supcon_out", named="measured-formula", also=("views-interleaved",), thread="RyanWangZf/transtab#17")
def supcon_out_rows_reordered_without_labels(embeddings, labels, *, temperature):
    """Two stacked views are put side by side row by row, while the labels stay in the order that they had."""
    n = len(labels)
    half = n // 2
    order = [*np.arange(2 * half).reshape(2, half).T.reshape(-1), *range(2 * half, n)]
    scores = np.where(_others(n), _scores(embeddings[order], temperature), -np.inf)
    log_prob = scores - logsumexp(scores)[:, None]
    positives = (labels[:, None] == labels) & _others(n)
    return -np.mean(np.sum(np.where(positives, log_prob, 0), axis=1) / np.sum(positives, axis=1))


@bug("supcon_in", named="positive-dropped-from-denominator+other-positives-dropped", thread="HobbitLong/SupContrast#64")
def supcon_in_negatives_below(embeddings, labels, *, temperature):
    """The positives are taken out of the denominator, as a section of the paper is read: negatives only."""
    scores = _scores(embeddings, temperature)
    same = labels[:, None] == labels
    positives = same & _others(len(labels))
    count = np.sum(positives, axis=1)
    share = logsumexp(np.where(positives, scores, -np.inf)) - np.log(count)
    return np.mean(logsumexp(np.where(same, -np.inf, scores)) - share)


@bug("supcon_in", named="columns-normalized", thread="HobbitLong/SupContrast#10")
def supcon_in_normalized_over_the_batch(embeddings, labels, *, temperature):
    """The features are normalized along the wrong axis, which for one view runs over the batch."""
    z = unit(embeddings, axis=0)
    scores = np.where(_others(len(labels)), z @ z.T / temperature, -np.inf)
    positives = (labels[:, None] == labels) & _others(len(labels))
    share = logsumexp(np.where(positives, scores, -np.inf)) - np.log(np.sum(positives, axis=1))
    return np.mean(logsumexp(scores) - share)
