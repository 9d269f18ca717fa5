"""Pairs that are judged one by one, and data against noise: no softmax joins the candidates of a row."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nceref.diagnosis.dense.ways import logits, pairs
from nceref.diagnosis.dense.ways.lineup import compared, mean_stage
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way
from nceref.diagnosis.tape import edge


def _softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _biased(w: Any) -> Any:
    x = w["similarities"] * w.scale + w.inputs["logit_bias"]
    return x, x


def _scaled(of: Any) -> Any:
    def way(w: Any, c: Any) -> Any:
        x = of(w["similarities"], w.scale, w.inputs["logit_bias"], w)
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
    ("t s_ij + b/2", lambda s, t, b, w: t * s + b / 2),
    ("t s_ij + 2 b", lambda s, t, b, w: t * s + 2 * b),
    ("t s_ij + b/N", lambda s, t, b, w: t * s + b / w.samples),
    ("t s_ij - log N", lambda s, t, b, w: t * s - np.log(w.samples)),
    ("t s_ij + |b|", lambda s, t, b, w: t * s + np.abs(b)),
)


def _shifted(w: Any, by: Any) -> Any:
    return (w.j == (w.i + by) % w.own.shape[1]) * 1.0


_TOGETHER = (
    ("1 for i = j, else -1", lambda w: np.where(w.together, 1.0, -1.0)),
    ("1 for i = j, else 0", lambda w: w.together * 1.0),
    ("-1", lambda w: -np.ones(w.own.shape)),
    ("1", lambda w: np.ones(w.own.shape)),
    ("-1 for i = j, else 1", lambda w: np.where(w.together, -1.0, 1.0)),
    ("-1 for i = j, else 0", lambda w: -1.0 * w.together),
    ("0 for i = j, else -1", lambda w: w.together - 1.0),
    ("1 for j = i + 1, else -1", lambda w: 2 * _shifted(w, 1) - 1),
    ("1 for j = i - 1, else -1", lambda w: 2 * _shifted(w, -1) - 1),
    ("1 for j >= i, else -1", lambda w: np.where(w.j >= w.i, 1.0, -1.0)),
    ("1 for j <= i, else -1", lambda w: np.where(w.j <= w.i, 1.0, -1.0)),
)


def _of_batch(f: Any) -> Any:
    return lambda w, c: f(w)


def _of_batch_and_constant(f: Any) -> Any:
    return lambda w, c: f(w, c) * 1.0


def _of_similarities(f: Any) -> Any:
    return lambda w, c: f(w["similarities"], w, c)


def _pairwise(f: Any) -> Any:
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


def _weights() -> Any:
    """Weights of pairs: all in the reference, or the sets and weights that denominators have."""
    out = [Way("all pairs", lambda w, c: np.ones(w.own.shape))]
    out += [Way(text, _of_batch(f)) for text, f in pairs.MASKS]
    out += [Way(text, _of_batch_and_constant(f), k) for text, f, k in pairs.WEIGHTS]
    out += [
        Way("positives twice", lambda w, c: 1.0 + w.together),
        Way("negatives twice", lambda w, c: 2.0 - w.together),
        Way("positives N times", lambda w, c: np.where(w.together, w.samples, 1.0)),
        Way("positives N - 1 times", lambda w, c: np.where(w.together, w.samples - 1, 1.0)),
        Way("every positive and 1/N^2 of every negative", _over(lambda n: n * n)),
        Way("every positive and 1/(N (N - 1)) of every negative", _over(lambda n: n * (n - 1))),
        Way("pairs with |j - i| < {c}", lambda w, c: (np.abs(w.j - w.i) < c) * 1.0, INTEGER),
        Way("pairs of one half of the batch", lambda w, c: ((w.i < w.samples // 2) == (w.j < w.samples // 2)) * 1.0),
    ]
    return tuple(out)


def _over(of: Any) -> Any:
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
    ("the mean over positives plus the mean over negatives", lambda f, m, w: (np.sum(f * w.together, axis=1) + np.sum(
        f * m * ~w.together, axis=1) / max(w.samples - 1, 1))),
    ("half of the mean of positives and half of the mean of negatives", lambda f, m, w: 0.5 * (np.sum(
        f * w.together, axis=1) + np.sum(f * m * ~w.together, axis=1) / max(w.samples - 1, 1))),
)  # fmt: skip


def _added(f: Any) -> Any:
    return lambda w, c: f(w["surprises"], w["weights of pairs"], w)


def _pair_stages(
    middle: tuple[Stage, ...], reduction: str, names: tuple[str, ...], inputs: Mapping[str, Any]
) -> tuple[Stage, ...]:
    return (
        *compared(names, inputs),
        *middle,
        Stage("weights of pairs", "m_ij over ", _weights()),
        Stage("rows", "L_i = ", tuple(Way(t, _added(f)) for t, f in _SUMS)),
        mean_stage(reduction),
    )


def sigmoid_stages(inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss that judges all pairs by a sigmoid."""
    usual = logits.tempered_ways(_biased, "t s_ij + b")
    middle = (
        Stage("logits", "l_ij = ", (*usual, *(Way(t, _scaled(f)) for t, f in _SCALED))),
        Stage("labels of pairs", "y_ij = ", tuple(Way(t, _of_batch(f)) for t, f in _TOGETHER)),
        Stage("surprises", "f_ij = ", tuple(Way(t, _pairwise(f), k) for t, f, k in _SURPRISES)),
    )
    return _pair_stages(middle, reduction, ("image", "text"), inputs)


def _weight(w: Any) -> Any:
    given = w.inputs["negative_weight"]
    return 1 / max(w.samples - 1, 1) if given is None else given


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


def linear_stages(inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss that adds similarities up as they are."""
    pushes = tuple(Way(t, _of_similarities(f), k) for t, f, k in _PUSHES)
    return _pair_stages((Stage("surprises", "f_ij = ", pushes),), reduction, ("queries", "keys"), inputs)


def _each(f: Any) -> Any:
    def of(w: Any, c: Any) -> Any:
        nu = w.inputs["noise_ratio"]
        return tuple(
            f(w.inputs[f"{name}_logits"], w.inputs[f"{name}_log_noise"], nu, w, c, name) for name in ("data", "noise")
        )

    return of


def _log(x: Any) -> Any:
    """The logarithm of a normalizer, which programs may detach."""
    return edge(np.log(x), "the normalizer")


def _normalizer(w: Any) -> Any:
    both = np.concatenate([w.inputs["data_logits"], w.inputs["noise_logits"]])
    return _log(np.sum(np.exp(both)))


def _many(w: Any) -> Any:
    return len(w.inputs["noise_logits"])


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
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _log(np.sum(np.exp(x))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the own ones",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _log(np.mean(np.exp(x))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _log(np.mean(np.exp(w.inputs["noise_logits"]))), ""),
    ("x - log p_noise - log nu less the log of the mean of e^x over the data",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) - _log(np.mean(np.exp(w.inputs["data_logits"]))), ""),
    ("x - log p_noise - log nu for data, x for noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) if name == "data" else x, ""),
    ("x for data, x - log p_noise - log nu for noise",
     lambda x, q, nu, w, c, name: x - q - np.log(nu) if name == "noise" else x, ""),
    ("log sigmoid(x) - log p_noise - log nu", lambda x, q, nu, w, c, name: -_softplus(-x) - q - np.log(nu), ""),
    ("log sigmoid(x - log p_noise - log nu)", lambda x, q, nu, w, c, name: -_softplus(-(x - q - np.log(nu))), ""),
)  # fmt: skip


def _judged(f: Any) -> Any:
    def of(w: Any, c: Any) -> Any:
        u, v = w["odds"]
        return f(u, v, w.inputs["noise_ratio"], w, c)

    return of


def _mean(x: Any) -> Any:
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
    ("mean_data softplus(-u) - nu mean_noise (1 - sigmoid(u))",
     lambda u, v, nu, w, c: _mean(_softplus(-u)) - nu * _mean(1 / (1 + np.exp(v))), ""),
    ("-mean_data sigmoid(u) + nu mean_noise sigmoid(u)",
     lambda u, v, nu, w, c: -_mean(1 / (1 + np.exp(-u))) + nu * _mean(1 / (1 + np.exp(-v))), ""),
)  # fmt: skip


def noise_stages(inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss that tells data from noise."""
    total = Way("J", lambda w, c: w["judged"])
    more = (
        Way("N J", lambda w, c: w.samples * w["judged"]),
        Way("{c} J", lambda w, c: c * w["judged"], REAL),
        Way("J + {c}", lambda w, c: c + w["judged"], REAL),
    )
    return (
        Stage("odds", "u = ", tuple(Way(t, _each(f), k) for t, f, k in _ODDS)),
        Stage("judged", "J = ", tuple(Way(t, _judged(f), k) for t, f, k in _JUDGED)),
        Stage("mean", "L = ", (total, *more) if reduction == "mean" else (more[0], total, *more[1:])),
    )
