"""Wrong losses that no convention names, and the formula that is measured of each."""

import numpy as np

WRONG = {}
"""Name to the loss whose inputs it takes, the program, and its formula."""


def wrong(loss, formula):
    def register(program):
        WRONG[program.__name__] = (loss, program, formula)
        return program

    return register


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cosines(x, y):
    return unit(x) @ unit(y).T


def mass(logits):
    return np.exp(logits).sum(axis=1)


def views(z1, z2):
    """Cosines of all rows, the similarity of each with its other view, and what is the row itself."""
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    s = z @ z.T
    return s, s[np.arange(2 * n), (np.arange(2 * n) + n) % (2 * n)], np.eye(2 * n, dtype=bool)


def labelled(embeddings, labels):
    """Cosines, pairs of one label, and what is the row itself."""
    own = np.eye(len(labels), dtype=bool)
    return unit(embeddings) @ unit(embeddings).T, (labels[:, None] == labels) & ~own, own


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( <<3 e^(s_ii/T)>> + sum_{j != i} e^(s_ij/T) ) ], s: cosines")
def positive_counted_three_times(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    own = np.diag(logits)
    return np.mean(-own + np.log(mass(logits) + 2 * np.exp(own)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + <<sum_{j != i} e^(s_ij/T)/2>> ) ], s: cosines")
def negatives_weigh_a_half(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    own = np.diag(logits)
    return np.mean(-own + np.log((mass(logits) + np.exp(own)) / 2))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + <<sum_{j != i} e^(s_ij/T)/(N - 1)>> ) ], s: cosines")
def negatives_averaged(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    own = np.diag(logits)
    return np.mean(-own + np.log((mass(logits) - np.exp(own)) / (len(own) - 1) + np.exp(own)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) + <<1>> ) ], s: cosines")
def one_added_to_the_sum(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log1p(mass(logits)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) + <<0.001>> ) ], s: cosines")
def epsilon_in_the_logarithm(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits) + 1e-3))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + <<sum_{j != i} e^(s_ij/T^2)>> ) ], s: cosines")
def temperature_squared_on_negatives(queries, keys, temperature):
    s = cosines(queries, keys)
    own = np.diag(s) / temperature
    negatives = np.exp(s / temperature**2) * (1 - np.eye(len(s)))
    return np.mean(-own + np.log(negatives.sum(axis=1) + np.exp(own)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], <<s: cosines clamped at 0>>")
def similarities_clamped(queries, keys, temperature):
    logits = np.maximum(cosines(queries, keys), 0) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], <<s: squared cosines>>")
def similarities_squared(queries, keys, temperature):
    logits = cosines(queries, keys) ** 2 / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


@wrong("info_nce", "1/N sum_i [ <<s_ii/T>> + log( <<sum_{j} e^(-s_ij/T)>> ) ], <<s: distances of unit rows>>")
def distances_for_similarities(queries, keys, temperature):
    gaps = unit(queries)[:, None] - unit(keys)
    logits = -np.linalg.norm(gaps, axis=2) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


@wrong("info_nce", "1/N sum_i [ <<-s_ii/(T sqrt(D))>> + log( <<sum_{j} e^(s_ij/(T sqrt(D)))>> ) ], s: cosines")
def scaled_by_the_width(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature / np.sqrt(queries.shape[1])
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


@wrong(
    "info_nce",
    "<<3/(2 N)>> sum_i [ <<-2 s_ii/(3 T)>> + log( sum_{j} e^(s_ij/T) ) ], <<s: inner products of rows as they are>>",
)
def products_of_rows_as_they_are(queries, keys, temperature):
    logits = queries @ keys.T / temperature
    return np.mean(-np.diag(logits) + 1.5 * np.log(mass(logits)))


@wrong("info_nce", "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + sum_{j != i, j < i} e^(s_ij/T) ) ], s: cosines")
def earlier_keys_only(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(np.tril(np.exp(logits)).sum(axis=1)))


@wrong("info_nce", "<<1/N^2>> sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], s: cosines")
def divided_by_n_twice(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits))) / len(logits)


@wrong("info_nce", "<<log2(e)/N>> sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) ) ], s: cosines")
def logarithms_to_base_2(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits))) / np.log(2)


@wrong(
    "info_nce", "1/N sum_i [ -s_ii/T + log( sum_{j} e^(s_ij/T) + <<sum_{j != i in queries} e^(s_ij/T)>> ) ], s: cosines"
)
def other_queries_among_the_negatives(queries, keys, temperature):
    logits, others = cosines(queries, keys) / temperature, np.exp(cosines(queries, queries) / temperature)
    return np.mean(-np.diag(logits) + np.log(mass(logits) + others.sum(axis=1) - np.diag(others)))


@wrong("info_nce", "1/N sum_i [ <<-s_{i,i+1}/T>> + log( sum_{j} e^(s_ij/T) ) ], s: cosines")
def positive_is_the_next_key(queries, keys, temperature):
    logits, n = cosines(queries, keys) / temperature, len(keys)
    return np.mean(-logits[np.arange(n), (np.arange(n) + 1) % n] + np.log(mass(logits)))


@wrong(
    "nt_xent", "1/(2 N) sum_{i in both views} [ -s_ip/T + log( sum_{j != i} e^(s_ij/T) + <<e^(1/T)/2>> ) ], s: cosines"
)
def half_of_the_self_contrast(z1, z2, temperature):
    s, pair, own = views(z1, z2)
    return np.mean(-pair / temperature + np.log((np.exp(s / temperature) * (1 - own / 2)).sum(axis=1)))


@wrong("nt_xent", "1/(2 N) sum_{i in both views} [ <<-2 s_ip/T>> + log( sum_{j != i} e^(s_ij/T) ) ], s: cosines")
def positive_pulls_twice(z1, z2, temperature):
    s, pair, own = views(z1, z2)
    return np.mean(-2 * pair / temperature + np.log((np.exp(s / temperature) * ~own).sum(axis=1)))


@wrong(
    "nt_xent",
    "1/(2 N) sum_{i in both views} [ -s_ip/T + log( sum_{j in the other view} e^(s_ij/T)"
    " + <<sum_{j != i in the own view} 2 e^(s_ij/T)>> ) ], s: cosines",
)
def own_view_weighs_twice(z1, z2, temperature):
    s, pair, own = views(z1, z2)
    first = np.arange(len(s)) < len(z1)
    weight = (1.0 + (first[:, None] == first)) * ~own
    return np.mean(-pair / temperature + np.log((weight * np.exp(s / temperature)).sum(axis=1)))


@wrong(
    "dcl",
    "1/(2 N) sum_{i in both views} [ -s_ip/T + log( sum_{j not in {i, p}} e^(s_ij/T) ) ]"
    " + <<-log(2N - 2)>>, s: cosines",
)
def mean_of_the_negatives(z1, z2, temperature):
    s, pair, own = views(z1, z2)
    total = (np.exp(s / temperature) * ~own).sum(axis=1) - np.exp(pair / temperature)
    return np.mean(-pair / temperature + np.log(total / (len(s) - 2)))


@wrong(
    "dcl",
    "<<1/N>> sum_{i in z1} [ -s_ip/T + log( sum_{j not in {i, p}} e^(s_ij/T) ) ], s: cosines",
)
def anchors_of_the_first_view(z1, z2, temperature):
    s, pair, own = views(z1, z2)
    total = (np.exp(s / temperature) * ~own).sum(axis=1) - np.exp(pair / temperature)
    return np.mean((-pair / temperature + np.log(total))[: len(z1)])


@wrong(
    "supcon_out",
    "1/N sum_i [ sum_{p in P(i)} -s_ip/(|P(i)| T) + log( <<sum_{p in P(i)} e^(s_ip/T)/4>>"
    " + sum_{n not in P(i)} e^(s_in/T) ) ], s: cosines",
)
def positives_weigh_a_quarter(embeddings, labels, temperature):
    s, together, own = labelled(embeddings, labels)
    weight = np.where(together, 0.25, 1.0) * ~own
    pull = (s * together).sum(axis=1) / together.sum(axis=1)
    return np.mean(-pull / temperature + np.log((weight * np.exp(s / temperature)).sum(axis=1)))


@wrong(
    "supcon_out",
    "1/N sum_i [ <<sum_{p in P(i)} -s_ip/((|P(i)| + 1) T)>> + log( sum_{j != i} e^(s_ij/T) ) ], s: cosines",
)
def anchor_counted_among_its_positives(embeddings, labels, temperature):
    s, together, own = labelled(embeddings, labels)
    pull = (s * together).sum(axis=1) / (together.sum(axis=1) + 1)
    return np.mean(-pull / temperature + np.log((np.exp(s / temperature) * ~own).sum(axis=1)))


@wrong(
    "clip",
    "<<3/(4 N)>> sum_i [ <<-2 t s_ii/3>> + log( sum_{j} e^(t s_ij) ) ]"
    " + <<1/(4 N)>> sum_i [ <<-2 t s_ii>> + log( sum_{j} e^(t s_ji) ) ], s: cosines",
)
def directions_weigh_three_to_one(image, text, logit_scale):
    logits = logit_scale * cosines(image, text)
    own = np.diag(logits)
    return np.mean(0.75 * (np.log(mass(logits)) - own) + 0.25 * (np.log(mass(logits.T)) - own))


@wrong(
    "siglip",
    "<<sum_{i} log( 1 + e^(-t s_ii - b/2) )/N>> + <<sum_{j != i} log( 1 + e^(t s_ij + b/2) )/N>>, s: cosines",
)
def half_of_the_bias(image, text, logit_scale, logit_bias):
    logits = logit_scale * cosines(image, text) + logit_bias / 2
    signs = 2 * np.eye(len(logits)) - 1
    return np.sum(np.log1p(np.exp(-signs * logits))) / len(logits)


@wrong("cross_entropy", "<<T^2/N>> sum_i [ -s_iy/T + log( sum_{k} e^(s_ik/T) ) ], s: logits")
def multiplied_by_the_squared_temperature(logits, target, temperature):
    logits = logits / temperature
    return np.mean(-logits[np.arange(len(logits)), target] + np.log(mass(logits))) * temperature**2


@wrong(
    "arcface",
    "1/N sum_i [ -s s_iy + log( <<2 e^(s s_iy)>> + sum_{k != y} e^(s s_ik) ) ], s: cosines of angles plus the margin",
)
def target_counted_twice(embeddings, class_weights, target, margin, scale):
    c, rows = cosines(embeddings, class_weights), np.arange(len(embeddings))
    c[rows, target] = np.cos(np.arccos(c[rows, target]) + margin)
    own = scale * c[rows, target]
    return np.mean(-own + np.log(mass(scale * c) + np.exp(own)))


@wrong("cosface", "1/N sum_i [ -s s_iy + log( e^(s s_iy) + <<sum_{k != y} e^(s s_ik + 2 s m)>> ) ], s: cosines")
def margin_twice(embeddings, class_weights, target, margin, scale):
    c, rows = cosines(embeddings, class_weights), np.arange(len(embeddings))
    c[rows, target] -= 2 * margin
    return np.mean(-scale * c[rows, target] + np.log(mass(scale * c)))


@wrong("balanced_softmax", "1/N sum_i [ <<-s_iy/T>> + log( sum_{k} n_k e^(s_ik/T) ) ], s: logits")
def numerator_without_its_count(logits, target, class_counts, temperature):
    logits = logits / temperature
    return np.mean(-logits[np.arange(len(logits)), target] + np.log((class_counts * np.exp(logits)).sum(axis=1)))


@wrong("moco", "1/N sum_i [ -s_ii/T + log( e^(s_ii/T) + <<sum_{k in queue} e^(s_ik/T)/K>> ) ], s: cosines")
def queue_averaged(queries, keys, queue, temperature):
    own = np.sum(unit(queries) * unit(keys), axis=1) / temperature
    negatives = mass(cosines(queries, queue) / temperature) / len(queue)
    return np.mean(-own + np.log(np.exp(own) + negatives))


@wrong("alignment", "<<sum_{i} 3 s_ii/N>>, s: powers of distances of unit rows")
def three_times_the_distance(x, y, exponent):
    return 3 * np.mean(np.linalg.norm(unit(x) - unit(y), axis=1) ** exponent)


@wrong("uniformity", "<<log( sum_{i < j} e^(-t s_ij/2) )>> - log(N(N - 1)/2), s: squared distances of unit rows")
def half_of_the_sharpness(x, t):
    gaps = unit(x)[:, None] - unit(x)
    i, j = np.triu_indices(len(x), 1)
    return np.log(np.mean(np.exp(-t * (gaps**2).sum(axis=2)[i, j] / 2)))


@wrong("simple", "<<sum_{i} (-1/N + 1/N^2) s_ii>> + <<sum_{j != i} s_ij/N^2>>, s: cosines")
def positive_among_the_pushed(queries, keys):
    s = cosines(queries, keys)
    return np.mean(-np.diag(s) + s.mean(axis=1))
