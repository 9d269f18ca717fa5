"""Pairs that are judged one by one, and data against noise: no softmax joins the candidates of a row."""

from functools import partial

import numpy as np

from nceref.diagnosis.probe.losses.towers import tower_works
from nceref.diagnosis.probe.parts import logits, pairs
from nceref.diagnosis.probe.parts.layouts import PartedFamily, PartedLoss, compared, mean_part
from nceref.diagnosis.probe.parts.work import INTEGER, REAL, LossPart, PartWay, Work


def _softplus(x):
    return np.logaddexp(0, x)


def _biased(w):
    x = w["similarities"] * w.sharp + w.scalars["logit_bias"]
    return x, x


def _scaled(of):
    def way(w, c):
        x = of(w["similarities"], w.sharp, w.scalars["logit_bias"], w)
        return x, x

    return way


_SCALED = (
    ("t s_ij - b", lambda s, t, b, w: t * s - b),
    ("t (s_ij + b)", lambda s, t, b, w: t * (s + b)),
    ("t s_ij", lambda s, t, b, w: t * s),
    ("s_ij/t + b", lambda s, t, b, w: s / t + b),
    ("e^t s_ij + b", lambda s, t, b, w: np.exp(t) * s + b),
    ("log(t) s_ij + b", lambda s, t, b, w: np.log(t) * s + b),
    ("s_ij + b", lambda s, t, b, w: s + b),
    ("t s_ij + b for negatives, t s_ij for positives", lambda s, t, b, w: t * s + b * ~w.together),
    ("t s_ij + b for positives, t s_ij for negatives", lambda s, t, b, w: t * s + b * w.together),
    ("t s_ij + b/N", lambda s, t, b, w: t * s + b / w.samples),
    ("t s_ij - log N", lambda s, t, b, w: t * s - np.log(w.samples)),
    ("t s_ij + |b|", lambda s, t, b, w: t * s + np.abs(b)),
)


def _shifted(w, by):
    return (w.j == (w.i + by) % w.own.shape[1]) * 1.0


_TOGETHER = (
    ("1 for i = j, else -1", lambda w: np.where(w.together, 1.0, -1.0)),
    ("1 for i = j, else 0", lambda w: w.together * 1.0),
    ("-1", lambda w: -np.ones(w.own.shape)),
    ("1", lambda w: np.ones(w.own.shape)),
    ("-1 for i = j, else 1", lambda w: np.where(w.together, -1.0, 1.0)),
    ("-1 for i = j, else 0", lambda w: -w.together * 1.0),
    ("0 for i = j, else -1", lambda w: w.together - 1.0),
    ("1 for j = i + 1, else -1", lambda w: 2 * _shifted(w, 1) - 1),
    ("1 for j = i - 1, else -1", lambda w: 2 * _shifted(w, -1) - 1),
    ("1 for j >= i, else -1", lambda w: np.where(w.j >= w.i, 1.0, -1.0)),
    ("1 for j <= i, else -1", lambda w: np.where(w.j <= w.i, 1.0, -1.0)),
)


def _of_work(f):
    return lambda w, c: f(w)


def _of_work_and_constant(f):
    return lambda w, c: f(w, c) * 1.0


def _of_similarities(f):
    return lambda w, c: f(w["similarities"], w, c)


def _pairwise(f):
    return lambda w, c: f(w["labels of pairs"] * w["logits"][0], w, c)


_SURPRISES = (
    ("-log sigmoid(y_ij l_ij)", lambda x, w, c: _softplus(-x), ""),
    ("-sigmoid(y_ij l_ij)", lambda x, w, c: -1 / (1 + np.exp(-x)), ""),
    ("1 - sigmoid(y_ij l_ij)", lambda x, w, c: 1 / (1 + np.exp(x)), ""),
    ("(1 - sigmoid(y_ij l_ij))^2", lambda x, w, c: 1 / (1 + np.exp(x)) ** 2, ""),
    ("-log sigmoid(y_ij l_ij), (1 - sigmoid)^2 times as much", lambda x, w, c: _softplus(-x) / (1 + np.exp(x)) ** 2,
     ""),
    ("-log(sigmoid(y_ij l_ij) + {c})", lambda x, w, c: -np.log(1 / (1 + np.exp(-x)) + c), REAL),
    ("-log(max(sigmoid(y_ij l_ij), {c}))", lambda x, w, c: np.minimum(_softplus(-x), -np.log(c)), REAL),
    ("max(0, {c} - y_ij l_ij)", lambda x, w, c: np.maximum(0, c - x), REAL),
    ("min(-log sigmoid(y_ij l_ij), {c})", lambda x, w, c: np.minimum(_softplus(-x), c), REAL),
    ("-log sigmoid(y_ij l_ij)/log 2", lambda x, w, c: _softplus(-x) / np.log(2), ""),
    ("-log sigmoid(2 y_ij l_ij)", lambda x, w, c: _softplus(-2 * x), ""),
    ("log(1 + y_ij l_ij^2)", lambda x, w, c: np.log1p(x * x), ""),
    ("(1 - y_ij l_ij)^2", lambda x, w, c: (1 - x) ** 2, ""),
    ("-y_ij l_ij", lambda x, w, c: -x, ""),
    ("e^(-y_ij l_ij)", lambda x, w, c: np.exp(-x), ""),
    ("-log sigmoid(y_ij l_ij) for positives, sigmoid(l_ij) for negatives",
     lambda x, w, c: np.where(w.together, _softplus(-x), 1 / (1 + np.exp(x))), ""),
)  # fmt: skip


def _weights():
    """Weights of pairs: all in the reference, or the sets and weights that denominators have."""
    out = [PartWay("all pairs", lambda w, c: np.ones(w.own.shape))]
    out += [PartWay(text, _of_work(f)) for text, f in pairs.MASKS]
    out += [PartWay(text, _of_work_and_constant(f), k) for text, f, k in pairs.WEIGHTS]
    out += [
        PartWay("pairs with j > i and the positive", lambda w, c: ((w.j > w.i) | w.together) * 1.0),
        PartWay("pairs with j < i and the positive", lambda w, c: ((w.j < w.i) | w.together) * 1.0),
        PartWay("positives twice", lambda w, c: 1.0 + w.together),
        PartWay("negatives twice", lambda w, c: 2.0 - w.together),
        PartWay("positives N times", lambda w, c: np.where(w.together, w.samples, 1.0)),
        PartWay("positives N - 1 times", lambda w, c: np.where(w.together, w.samples - 1, 1.0)),
        PartWay("every positive and 1/(N - 1) of every negative", _over(lambda n: n - 1)),
        PartWay("every positive and 1/N of every negative", _over(lambda n: n)),
        PartWay("every positive and 1/N^2 of every negative", _over(lambda n: n * n)),
        PartWay("every positive and 1/(N (N - 1)) of every negative", _over(lambda n: n * (n - 1))),
        PartWay("1/N of every pair", lambda w, c: np.ones(w.own.shape) / w.samples),
        PartWay("pairs with |j - i| < {c}", lambda w, c: (np.abs(w.j - w.i) < c) * 1.0, INTEGER),
        PartWay(
            "pairs of one half of the batch", lambda w, c: ((w.i < w.samples // 2) == (w.j < w.samples // 2)) * 1.0
        ),
    ]
    return tuple(out)


def _over(of):
    return lambda w, c: np.where(w.together, 1.0, 1 / max(of(w.samples), 1))


_SUMS = (
    ("sum_j m_ij f_ij", lambda f, m, w: np.sum(m * f, axis=1)),
    ("mean_j m_ij f_ij", lambda f, m, w: np.mean(m * f, axis=1)),
    ("sum_j m_ij f_ij/sum_j m_ij", lambda f, m, w: np.sum(m * f, axis=1) / np.maximum(np.sum(m, axis=1), 1)),
    ("sum_j m_ij f_ij/(N - 1)", lambda f, m, w: np.sum(m * f, axis=1) / max(w.samples - 1, 1)),
    ("max_j m_ij f_ij", lambda f, m, w: np.max(m * f, axis=1)),
    ("log sum_j m_ij e^(f_ij)", lambda f, m, w: np.log(np.sum(m * np.exp(f), axis=1))),
    ("the positive and the hardest negative", lambda f, m, w: np.sum(f * w.together, axis=1)
     + np.max(np.where(w.together, -np.inf, m * f), axis=1)),
    ("the mean of positives and the mean of negatives", lambda f, m, w: (np.sum(f * w.together, axis=1) + np.sum(
        f * m * ~w.together, axis=1) / max(w.samples - 1, 1))),
    ("half of the mean of positives and half of the mean of negatives", lambda f, m, w: 0.5 * (np.sum(
        f * w.together, axis=1) + np.sum(f * m * ~w.together, axis=1) / max(w.samples - 1, 1))),
)  # fmt: skip


def _added(f):
    return lambda w, c: f(w["surprises"], w["weights of pairs"], w)


def _pair_parts(middle, reduction, names, inputs):
    return (
        *compared(names, inputs),
        *middle,
        LossPart("weights of pairs", "m_ij over ", _weights()),
        LossPart("rows", "L_i = ", tuple(PartWay(t, _added(f)) for t, f in _SUMS)),
        mean_part(reduction),
    )


def _sigmoid_parts(inputs, reduction):
    warm = logits.tempered_ways(_biased, "t s_ij + b")
    middle = (
        LossPart("logits", "l_ij = ", (*warm, *(PartWay(t, _scaled(f)) for t, f in _SCALED))),
        LossPart("labels of pairs", "y_ij = ", tuple(PartWay(t, _of_work(f)) for t, f in _TOGETHER)),
        LossPart("surprises", "f_ij = ", tuple(PartWay(t, _pairwise(f), k) for t, f, k in _SURPRISES)),
    )
    return _pair_parts(middle, reduction, ("image", "text"), inputs)


def _weight(w):
    return w.scalars.get("negative_weight", 1 / max(w.samples - 1, 1))


_PUSHES = (
    ("-s_ij for i = j, w s_ij otherwise", lambda s, w, c: np.where(w.together, -s, _weight(w) * s), ""),
    ("-s_ij for i = j, s_ij otherwise", lambda s, w, c: np.where(w.together, -s, s), ""),
    ("-s_ij for i = j, s_ij/N otherwise", lambda s, w, c: np.where(w.together, -s, s / w.samples), ""),
    ("-s_ij for i = j, 0 otherwise", lambda s, w, c: np.where(w.together, -s, 0), ""),
    ("-s_ij for i = j, w max(s_ij, 0) otherwise", lambda s, w, c: np.where(
        w.together, -s, _weight(w) * np.maximum(s, 0)), ""),
    ("-s_ij for i = j, w |s_ij| otherwise", lambda s, w, c: np.where(w.together, -s, _weight(w) * np.abs(s)), ""),
    ("-s_ij for i = j, w s_ij^2 otherwise", lambda s, w, c: np.where(w.together, -s, _weight(w) * s * s), ""),
    ("-s_ij for i = j, w max(s_ij - {c}, 0) otherwise", lambda s, w, c: np.where(
        w.together, -s, _weight(w) * np.maximum(s - c, 0)), REAL),
    ("-s_ij for i = j, {c} s_ij otherwise", lambda s, w, c: np.where(w.together, -s, c * s), REAL),
    ("1 - s_ij for i = j, w s_ij otherwise", lambda s, w, c: np.where(w.together, 1 - s, _weight(w) * s), ""),
    ("1 - s_ij for i = j, w max(s_ij, 0) otherwise", lambda s, w, c: np.where(
        w.together, 1 - s, _weight(w) * np.maximum(s, 0)), ""),
    ("1 - s_ij for i = j, w (1 + s_ij) otherwise", lambda s, w, c: np.where(w.together, 1 - s, _weight(w) * (1 + s)),
     ""),
    ("(1 - s_ij)^2 for i = j, w s_ij^2 otherwise", lambda s, w, c: np.where(w.together, (1 - s) ** 2, _weight(w) * s * s
     ), ""),
    ("-log s_ij for i = j, -w log(1 - s_ij) otherwise", lambda s, w, c: np.where(
        w.together, -np.log(s), -_weight(w) * np.log(1 - s)), ""),
    ("-s_ij for i = j, w s_ij for all pairs", lambda s, w, c: _weight(w) * s - w.together * s, ""),
    ("-s_ij for i = j, s_ij/N for all pairs", lambda s, w, c: s / w.samples - w.together * s, ""),
)  # fmt: skip


def _linear_parts(inputs, reduction):
    pushes = tuple(PartWay(t, _of_similarities(f), k) for t, f, k in _PUSHES)
    return _pair_parts((LossPart("surprises", "f_ij = ", pushes),), reduction, ("queries", "keys"), inputs)


def _noise_works(inputs):
    sharp = {k: float(x) for k, x in inputs.items() if isinstance(x, float | int) and not isinstance(x, bool)}
    n = len(inputs["data_logits"])
    nobody = np.zeros((n, 1), dtype=bool)
    more = {k: np.asarray(x) for k, x in inputs.items() if isinstance(x, np.ndarray)}
    return [Work({**sharp, "sharp": 1.0}, (), np.arange(n), np.arange(1), nobody, nobody * 1.0, nobody, nobody,
                 np.zeros(n, dtype=int), np.zeros(1, dtype=int), n, more=more)]  # fmt: skip


def _each(f):
    def of(w, c):
        nu = w.scalars["noise_ratio"]
        return tuple(
            f(w.more[f"{name}_logits"], w.more[f"{name}_log_noise"], nu, w, c, name) for name in ("data", "noise")
        )

    return of


def _normalizer(w):
    both = np.concatenate([w.more["data_logits"], w.more["noise_logits"]])
    return np.log(np.sum(np.exp(both)))


def _many(w):
    return len(w.more["noise_logits"])


_ODDS = (
    ("x - log p_noise - log nu", lambda x, q, nu, w, c, name: x - q - np.log(nu), ""),
    ("x - log p_noise + log nu", lambda x, q, nu, w, c, name: x - q + np.log(nu), ""),
    ("x + log p_noise - log nu", lambda x, q, nu, w, c, name: x + q - np.log(nu), ""),
    ("x - log p_noise", lambda x, q, nu, w, c, name: x - q, ""),
    ("x - log nu", lambda x, q, nu, w, c, name: x - np.log(nu), ""),
    ("x", lambda x, q, nu, w, c, name: x, ""),
    ("x - p_noise - log nu", lambda x, q, nu, w, c, name: x - np.exp(q) - np.log(nu), ""),
    ("x - p_noise nu", lambda x, q, nu, w, c, name: x - np.exp(q) * nu, ""),
    ("x - log p_noise - nu", lambda x, q, nu, w, c, name: x - q - nu, ""),
    ("x - p_noise", lambda x, q, nu, w, c, name: x - np.exp(q), ""),
    ("x - nu log p_noise", lambda x, q, nu, w, c, name: x - q * nu, ""),
    ("e^x - p_noise nu", lambda x, q, nu, w, c, name: np.exp(x) - np.exp(q) * nu, ""),
    ("log(e^x) - log(p_noise nu + {c})", lambda x, q, nu, w, c, name: x - np.log(np.exp(q) * nu + c), REAL),
    ("x - log(p_noise + {c}) - log nu", lambda x, q, nu, w, c, name: x - np.log(np.exp(q) + c) - np.log(nu), REAL),
    ("log(e^x + {c}) - log p_noise - log nu", lambda x, q, nu, w, c, name: np.log(np.exp(x) + c) - q - np.log(nu),
     REAL),
    ("x - {c} - log p_noise - log nu", lambda x, q, nu, w, c, name: x - c - q - np.log(nu), REAL),
    ("x - {c} log p_noise - log nu", lambda x, q, nu, w, c, name: x - c * q - np.log(nu), REAL),
    ("{c} x - log p_noise - log nu", lambda x, q, nu, w, c, name: c * x - q - np.log(nu), REAL),
    ("x - log p_noise - log M", lambda x, q, nu, w, c, name: x - q - np.log(_many(w)), ""),
    ("x - log p_noise - log N", lambda x, q, nu, w, c, name: x - q - np.log(w.samples), ""),
    ("x - log p_noise - log(M/N)", lambda x, q, nu, w, c, name: x - q - np.log(_many(w) / w.samples), ""),
    ("x - log p_noise - log(nu M)", lambda x, q, nu, w, c, name: x - q - np.log(nu * _many(w)), ""),
    ("x - log p_noise - log nu less the log of the sum of all e^x",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _normalizer(w), ""),
    ("x - log p_noise - log nu less the log of the mean of all e^x",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _normalizer(w) + np.log(_many(w) + w.samples), ""),
    ("x - log p_noise - log nu less the log of the sum of e^x over the own ones",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - np.log(np.sum(np.exp(x))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the own ones",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - np.log(np.mean(np.exp(x))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - np.log(np.mean(np.exp(w.more["noise_logits"]))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the data",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - np.log(np.mean(np.exp(w.more["data_logits"]))), ""),
    ("x - log p_noise - log nu for data, x for noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) if name == "data" else x, ""),
    ("x for data, x - log p_noise - log nu for noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) if name == "noise" else x, ""),
    ("log sigmoid(x) - log p_noise - log nu", lambda x, q, nu, w, c, name: -_softplus(-x) - q - np.log(nu), ""),
    ("log sigmoid(x - log p_noise - log nu)", lambda x, q, nu, w, c, name: -_softplus(-(x - q - np.log(nu))), ""),
    ("log(e^x/(e^x + nu p_noise))", lambda x, q, nu, w, c, name: -_softplus(-(x - q - np.log(nu))), ""),
)  # fmt: skip


def _judged(f):
    def of(w, c):
        u, v = w["odds"]
        return f(u, v, w.scalars["noise_ratio"], w, c)

    return of


def _mean(x):
    return np.mean(x) if x.size else np.nan


_JUDGED = (
    ("mean_data softplus(-u) + nu mean_noise softplus(u)",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + nu * _mean(_softplus(v)), ""),
    ("mean_data softplus(-u) + mean_noise softplus(u)",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + _mean(_softplus(v)), ""),
    ("mean_data softplus(-u) + sum_noise softplus(u)",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + np.sum(_softplus(v)), ""),
    ("mean_data softplus(-u) + sum_noise softplus(u)/N",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + np.sum(_softplus(v)) / w.samples, ""),
    ("(sum_data softplus(-u) + sum_noise softplus(u))/(N + M)",
     lambda u, v, nu, w, c: (np.sum(_softplus(-u)) + np.sum(_softplus(v))) / (u.size + v.size), ""),
    ("sum_data softplus(-u) + sum_noise softplus(u)",
     lambda u, v, nu, w, c: np.sum(_softplus(-u)) + np.sum(_softplus(v)), ""),
    ("(mean_data softplus(-u) + mean_noise softplus(u))/2",
     lambda u, v, nu, w, c: (_mean(_softplus(-u)) + _mean(_softplus(v))) / 2, ""),
    ("(mean_data softplus(-u) + nu mean_noise softplus(u))/(1 + nu)",
     lambda u, v, nu, w, c: (_mean(_softplus(-u)) + nu * _mean(_softplus(v))) / (1 + nu), ""),
    ("mean_data softplus(-u) + mean_noise softplus(u)/nu",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + _mean(_softplus(v)) / nu, ""),
    ("nu mean_data softplus(-u) + mean_noise softplus(u)",
     lambda u, v, nu, w, c: nu * _mean(_softplus(-u)) + _mean(_softplus(v)), ""),
    ("mean_data softplus(-u)", lambda u, v, nu, w, c: _mean(_softplus(-u)), ""),
    ("mean_data softplus(-u) + nu mean_noise softplus(-u)",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + nu * _mean(_softplus(-v)), ""),
    ("-(mean_data softplus(-u) + nu mean_noise softplus(u))",
     lambda u, v, nu, w, c: -_mean(_softplus(-u)) - nu * _mean(_softplus(v)), ""),
    ("-mean_data log(sigmoid(u) + {c}) - nu mean_noise log(1 - sigmoid(u) + {c})",
     lambda u, v, nu, w, c: -_mean(np.log(1 / (1 + np.exp(-u)) + c)) - nu * _mean(np.log(1 / (1 + np.exp(v)) + c)),
     REAL),
    ("mean_data softplus(-u) + {c} mean_noise softplus(u)",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) + c * _mean(_softplus(v)), REAL),
    ("-mean_data u + log(sum_noise e^u + sum_data e^u)",
     lambda u, v, nu, w, c: -_mean(u) + np.log(np.sum(np.exp(u)) + np.sum(np.exp(v))), ""),
    ("-mean_data sigmoid(u) + nu mean_noise sigmoid(u)",
     lambda u, v, nu, w, c: -_mean(1 / (1 + np.exp(-u))) + nu * _mean(1 / (1 + np.exp(-v))), ""),
)  # fmt: skip


def _noise_parts(inputs, reduction):
    total = PartWay("J", lambda w, c: w["judged"])
    more = (
        PartWay("N J", lambda w, c: w.samples * w["judged"]),
        PartWay("{c} J", lambda w, c: c * w["judged"], REAL),
        PartWay("J + {c}", lambda w, c: c + w["judged"], REAL),
    )
    return (
        LossPart("odds", "u = ", tuple(PartWay(t, _each(f), k) for t, f, k in _ODDS)),
        LossPart("judged", "J = ", tuple(PartWay(t, _judged(f), k) for t, f, k in _JUDGED)),
        LossPart("mean", "L = ", (total, *more) if reduction == "mean" else (more[0], total, *more[1:])),
    )


PARTED = PartedFamily(
    "pairs",
    {
        "siglip": PartedLoss(partial(tower_works, ("image", "text"), False), _sigmoid_parts),
        "simple": PartedLoss(partial(tower_works, ("queries", "keys"), False), _linear_parts),
        "nce": PartedLoss(_noise_works, _noise_parts),
    },
)
