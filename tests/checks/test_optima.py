"""The least value of each loss and that of equal rows: 120 digits of a batch that attains it, and descent."""

import math
import re
from itertools import islice, product

import mpmath
import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref import losses
from nceref.checks import expect
from nceref.checks.expect import Reading, expected_readings
from nceref.checks.locate import locate
from nceref.checks.optima import sigmoid_optimum
from nceref.errors import InputError
from nceref.exact.number_systems import Mpmath
from nceref.exact.reference import mapped
from nceref.spec import Array, Choice, Labels, Scalar

ALL = losses.all_losses()
M = Mpmath(120)
"""The smallest values, of 1e-56, leave more than 50 of these digits."""
UP = [[1.0, 0.0]]


@pytest.fixture
def without_chance(monkeypatch):
    """The mean over random rows takes most of the time, and optimum, bounds and collapse do not depend on it."""
    whole = expect._reading

    def reading(expectation, sizes):
        if expectation.situation != "chance":
            return whole(expectation, sizes)
        # It may depend on each of them, so that none is refused.
        sizes.read.update(sizes.values)
        return Reading("chance", None, "", "left out")

    monkeypatch.setattr(expect, "_reading", reading)


def readings(name, given):
    return {r.situation: r for r in expected_readings(name, given).readings}


def exact(name, **arguments):
    """Mean of the rows of the formula; what is not given has its default."""
    loss, given = ALL[name].declaration, {}
    for p in loss.parameters:
        value = arguments.get(p.name, getattr(p, "default", None))
        number = isinstance(p, Array | Scalar) and value is not None
        given[p.name] = mapped(M.number, value) if number else value
    rows = loss.formula(M, **given)
    if not loss.has_rows:
        return rows
    return sum(rows) / len(given[loss.mean_over] if loss.mean_over else rows)


def simplex(corners, dim=None):
    """Corners of a regular simplex, exact but for their length, which the formula makes 1."""
    return [
        [float(corners * (i == j) - 1) for j in range(corners)] + [0.0] * ((dim or corners) - corners)
        for i in range(corners)
    ]


def opposite(rows):
    return [[-x for x in row] for row in rows]


def classes(count, each, rows=None):
    """Rows and labels of balanced classes."""
    labels = [k for k in range(count) for _ in range(each)]
    rows = rows or (simplex(count) if count > 1 else [[1.0]])
    return [rows[k] for k in labels], labels


def weighted(count, each, **scalars):
    """Class weights on a simplex, and every row equal to those of its class."""
    x, target = classes(count, each)
    return {"embeddings": x, "class_weights": simplex(count), "target": target, **scalars}


def between(n, d):
    """s_i sqrt(1 - d) + u sqrt(d) and s_i sqrt(1 - d) - u sqrt(d), u orthogonal to the corners of a simplex."""
    c, out = M.context, ([], [])
    for row in simplex(n):
        length = c.sqrt(sum(c.mpf(x) ** 2 for x in row))
        for sign, side in zip((1, -1), out, strict=True):
            side.append([*(c.sqrt(1 - d) * x / length for x in row), sign * c.sqrt(d)])
    return {"image": out[0], "text": out[1]}


def logits_of(smoothing, count):
    """Logits whose softmax is the smoothed target."""
    c = M.context
    own, other = 1 - c.mpf(smoothing) + c.mpf(smoothing) / count, c.mpf(smoothing) / count
    return [[c.log(own), *[c.log(other)] * (count - 1)]]


def all_settings():
    """Name, what `expect` gets, and a batch that reads the optimum."""
    for n, t in product((2, 3, 5), (0.05, 0.5, 3.0)):
        s, given = simplex(n), {"n": n, "temperature": t, "dim": n - 1}
        for name, scale in (("nt_xent", {}), ("dcl", {}), ("dclw", {"sigma": 0.5})):
            yield name, {**given, **scale}, {"z1": s, "z2": s, "temperature": t, **scale}
        yield "info_nce", given, {"queries": s, "keys": s, "temperature": t}
        yield "sampled_softmax", given, {
            "queries": s, "items": s, "expected_counts": [0.5] * n, "temperature": t,
        }  # fmt: skip
        yield "mnrl", given, {"queries": s, "documents": s, "temperature": t}
        for directions in ("all", "qd_qq_dd", "qd_qq", "qd_dd", "qd_dq", "symmetric"):
            chosen = {"temperature": t, "directions": directions}
            yield "multi_direction", {**given, **chosen}, {"queries": s, "documents": s, **chosen}
        for hardness in (0.0, 0.3):
            more = {"candidates": "own", "hardness": hardness, "hardness_of": "all"}
            yield "mnrl", {**given, **more, "hard_negatives": 2}, {
                "queries": s, "documents": s, "negatives": [[x, x] for x in opposite(s)], "temperature": t, **more,
            }  # fmt: skip
        yield "mnrl", {"candidates": "hard", "n": n, "hard_negatives": 3, "temperature": t}, {
            "queries": UP * n, "documents": UP * n, "negatives": [opposite(UP) * 3] * n, "temperature": t,
            "candidates": "hard",
        }  # fmt: skip
        yield "clip", {"n": n, "logit_scale": 1 / t}, {"image": s, "text": s, "logit_scale": 1 / t}
        yield "moco", {"queue": n, "temperature": t}, {
            "queries": UP * 3, "keys": UP * 3, "queue": opposite(UP) * n, "temperature": t,
        }  # fmt: skip
        for fraction in (0.1, 0.5, 1.0):
            yield "hard_contrastive", {**given, "fraction": fraction}, {
                "queries": s, "keys": s, "temperature": t, "fraction": fraction,
            }  # fmt: skip
        for prior, concentration in product((0.0, 1 / (2 * n - 1) - 1e-9, 0.15, 0.9), (None, 0.0, 2.0)):
            more = {"positive_prior": prior} | ({} if concentration is None else {"concentration": concentration})
            name = "debiased" if concentration is None else "hcl"
            yield name, {**given, **more}, {"z1": s, "z2": s, "temperature": t, **more}
    for count, each, t in product((1, 2, 3, 5), (2, 4), (0.05, 0.5, 3.0)):
        x, labels = classes(count, each)
        for name in ("supcon_in", "supcon_out"):
            given = {"n": count * each, "classes": count, "temperature": t, "dim": max(1, count - 1)}
            yield name, given, {"embeddings": x, "labels": labels, "temperature": t}
    for count, margin, scale in product((2, 3, 7), (0.0, 0.5, 1.2, 1.6, 2.0, 2.5, 3.1), (0.5, 64.0)):
        scalars = {"margin": margin, "scale": scale}
        yield "cosface", {"classes": count, "dim": count - 1, **scalars}, weighted(count, 2, **scalars)
        for fallback in ("none", "linear"):
            batch = weighted(count, 2, **scalars, fallback=fallback)
            if fallback == "none" and math.cos(margin) < (count - 2) / (2 * count - 2):
                batch |= {"embeddings": opposite([[1.0]] * 2 * count), "class_weights": [[1.0]] * count}
            yield "arcface", {"classes": count, "dim": count - 1, "fallback": fallback, **scalars}, batch
    for n, t, b in product((1, 2, 5), (0.3, 3.0, 20.0), (-15.0, -3.0, 0.0, 3.0)):
        yield "siglip", {"n": n, "logit_scale": t, "logit_bias": b}, {"logit_scale": t, "logit_bias": b}
    for count, smoothing in product((1, 2, 10), (1e-9, 0.1, 0.9, 1.0)):
        yield "cross_entropy", {"classes": count, "label_smoothing": smoothing}, {
            "logits": logits_of(smoothing, count), "target": [0], "label_smoothing": smoothing,
        }  # fmt: skip
    for weight in (None, 0.0, 0.1, 0.3):
        yield "simple", {"n": 4, "negative_weight": weight}, {
            "queries": simplex(4), "keys": simplex(4), "negative_weight": weight,
        }  # fmt: skip


def least_on_the_way(given):
    """The sigmoid loss of `between` at its least d, by the formula."""
    n, scalars = given["n"], {key: given[key] for key in ("logit_scale", "logit_bias")}
    if n == 1:
        return exact("siglip", image=UP, text=UP, **scalars)

    def at(d):
        return exact("siglip", **between(n, d), **scalars)

    low, high = M.context.mpf(0), M.context.mpf(1)
    # The slope is 0 there: 1e-9 off changes the value by 1e-18.
    for _ in range(50):
        third = (high - low) / 3
        low, high = (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
    return min(at(M.context.mpf(0)), at(low), at(M.context.mpf(1)))


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("step", partly_slow((9, 1), (9).__eq__, "15 seconds; the others are of the same forms"))
def test_an_arrangement_attains_each_optimum_in_every_setting(step):
    checked, absent = {}, []
    for name, given, batch in islice(all_settings(), 0, None, step):
        best = readings(name, given)["optimum"]
        if best.value is None:
            absent.append((name, given, best.because))
            continue
        value = least_on_the_way(given) if name == "siglip" else exact(name, **batch)
        assert abs(value - best.value) <= 1e-13 * max(abs(value), M.context.mpf(10) ** -290), (name, given, value, best)
        checked[name] = checked.get(name, 0) + 1
    if step > 1:
        return
    assert {name for name, *_ in absent} == {"arcface", "debiased", "hcl"}
    assert {because for name, _, because in absent if name == "arcface"} == {
        "approached where the linear fallback jumps, never attained"
    }
    # Alignment and uniformity have tests of their own; the others have none, as `LEFT_OUT` and the guide say.
    assert checked.keys() == ALL.keys() - {"alignment", "uniformity", "guided_info_nce"} - LEFT_OUT.keys()


LEFT_OUT = {"balanced_softmax": {"classes": 4}, "nce": {"noise_ratio": 2}, "paco": {}}


def test_an_infimum_that_logits_approach_is_no_optimum():
    cases = {**LEFT_OUT, "cross_entropy": {"classes": 4}}
    del cases["paco"]
    for name, given in cases.items():
        known = readings(name, given)
        assert (known["optimum"].value, known["lower bound"].value) == (None, 0)
        assert known["optimum"].because == "the infimum 0 is approached as logits grow, never attained"
    for far in (10.0, 100.0):
        value = exact("balanced_softmax", logits=[[far, 0.0]], target=[0], class_counts=[1.0, 9.0])
        other = exact("nce", data_logits=[far], noise_logits=[-far], data_log_noise=[0.0], noise_log_noise=[0.0],
                      noise_ratio=2.0)  # fmt: skip
        plain = exact("cross_entropy", logits=[[far, 0.0]], target=[0])
        assert all(0 < x < 20 * math.exp(-far) for x in (value, other, plain))
    for name in ("balanced_softmax", "cross_entropy"):
        assert readings(name, {"classes": 1})["optimum"].value == 0


@sweep("n", [2, 3, 6, 20])
def test_a_trained_scale_and_bias_bring_the_sigmoid_loss_to_0_without_attaining_it(n):
    values = []
    for scale in (1.0, 10.0, 100.0):
        given = {"logit_scale": scale, "logit_bias": -scale * (n - 2) / (2 * n - 2)}
        # What the reading says of the simplex.
        formula = n * M.context.log1p(M.context.exp(-M.context.mpf(scale) * n / (2 * n - 2)))
        assert abs(exact("siglip", **between(n, 0), **given) - formula) < 1e-12 * formula
        values.append(readings("siglip", {"n": n, **given})["optimum"].value)
        assert 0 < values[-1] <= formula * (1 + 1e-12)
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-19


def test_least_sigmoid_loss_takes_as_many_dimensions_as_is_said():
    # Aligned, between, opposite.
    assert [sigmoid_optimum(t, b, 6)[1] for t, b in ((3.0, -3.0), (3.0, 0.0), (3.0, 5.0))] == [5, 6, 1]
    known = readings("siglip", {"n": 6, "logit_scale": 3, "logit_bias": 0, "dim": 5})
    assert (known["optimum"].value, known["optimum"].because) == (None, "known for D >= 6")
    assert known["lower bound"].value == sigmoid_optimum(3.0, 0.0, 6)[0]


def test_linear_fallback_comes_as_near_to_its_infimum_as_one_likes():
    # At the margin 2.9 an angle just past the jump is better than 0; the lower bound of every target has it too.
    margin, scale, known = 2.9, 4.0, []
    for nearer in (0.1, 1e-3, 1e-6):
        angle = math.pi - margin + nearer
        x, w = [[math.cos(angle), math.sin(angle)]], [[1.0, 0.0], [-math.cos(angle), -math.sin(angle)]]
        value = exact("arcface", embeddings=x, class_weights=w, target=[0], margin=margin, scale=scale,
                      fallback="linear")  # fmt: skip
        known.append(value)
    bound = readings("arcface", {"classes": 2, "margin": margin, "scale": scale, "fallback": "linear"})["lower bound"]
    assert known == sorted(known, reverse=True)
    assert bound.value < known[-1] < bound.value * (1 + 1e-4)


@sweep(("margin", "fallback"), [(0.5, "none"), (0.5, "linear"), (2.0, "none"), (2.0, "linear"), (2.6, "none")])
@sweep("count", [2, 5])
def test_a_batch_of_one_class_reads_the_lower_bound_of_margins(margin, fallback, count):
    scalars = {"margin": margin, "scale": 3.0}
    x, w = [[1.0]] * 3, [[1.0], *[[-1.0]] * (count - 1)]
    known = readings("arcface", {"classes": count, "fallback": fallback, **scalars})["lower bound"]
    # As printed, the target's logit at the angle pi is more than at 0 from m = pi / 2 on.
    turned = [[-1.0], *w[1:]] if fallback == "none" and margin > math.pi / 2 else w
    value = exact("arcface", embeddings=x, class_weights=turned, target=[0] * 3, fallback=fallback, **scalars)
    assert abs(value - known.value) < 1e-15
    value = exact("cosface", embeddings=x, class_weights=w, target=[0] * 3, **scalars)
    assert abs(value - readings("cosface", {"classes": count, **scalars})["lower bound"].value) < 1e-15


def halves_on_the_clamp():
    """Views that are aligned and, with half of them opposite, all on the clamp: on a line, for a prior of 1/2."""
    return [[1.0], [1.0], [-1.0], [-1.0]]


@sweep("temperature", [0.1, 1.0])
def test_lower_bound_of_debiased_is_attained_where_the_clamp_acts_on_each_row(temperature):
    z, scalars = halves_on_the_clamp(), {"temperature": temperature, "positive_prior": 0.5}
    known = readings("debiased", {"n": 4, **scalars})
    assert abs(exact("debiased", z1=z, z2=z, **scalars) / known["lower bound"].value - 1) < 1e-14
    assert known["optimum"].value == known["lower bound"].value


def settings_of(loss):
    """Scalars at both ends of their typical ranges, with each policy that a reading may know."""
    scalars = [p for p in loss.parameters if isinstance(p, Scalar) and not p.optional]
    policies = [p for p in loss.parameters if isinstance(p, Choice) and p.name in ("form", "fallback")]
    ranges = [*(sorted(set(p.typical)) for p in scalars), *(p.options for p in policies)]
    return [dict(zip([p.name for p in (*scalars, *policies)], values, strict=True)) for values in product(*ranges)]


def readings_of_what_is_read(name, given):
    """The readings, without what they refuse since it changes none of them; none for a policy that they do not know."""
    given = dict(given)
    while True:
        try:
            return expected_readings(name, given).readings
        except InputError as error:
            if "are known for" in str(error):
                return ()
            del given[re.search(r"(?:; leave `|no size or scalar `)(\w+)", str(error))[1]]


def test_a_policy_that_no_reading_knows_is_refused():
    sizes = {"n": 6, "classes": 3, "temperature": 0.5}
    assert readings_of_what_is_read("supcon_out", {**sizes, "form": "sum"}) == ()
    assert readings_of_what_is_read("uniformity", {"n": 6, "dim": 3, "include_diagonal": True}) == ()


@pytest.mark.usefixtures("without_chance")
@sweep("name", ALL)
def test_rows_of_many_makes_stay_within_the_bounds_in_every_setting(name):
    rng, loss = np.random.default_rng(0), ALL[name].declaration
    for given, dim in product(settings_of(loss), (1, 4)):
        sizes = {"n": 6, "classes": 3, "dim": dim, "queue": 4 if name == "moco" else 0}
        known = [r for r in readings_of_what_is_read(name, {**given, **sizes}) if r.value is not None]
        low = max((r.value for r in known if r.situation in ("lower bound", "optimum")), default=-math.inf)
        high = min((r.value for r in known if r.situation == "upper bound"), default=math.inf)
        for noise in (0.0, 0.3, 10.0):
            value = ALL[name](**batch_near(rng, loss, dim, noise), **given)
            slack = 1e-10 * (1 + abs(value))
            assert low - slack <= value <= high + slack, (given, dim, noise, value, low, high)


def batch_near(rng, loss, dim, noise):
    """Rows of equal labels near one another, every embedding alike: at no noise equal or opposite for one feature."""
    letters = {"N": 6, "D": dim, "E": dim, "C": 3, "M": 4, "K": 4}
    means, out = rng.standard_normal((3, dim)), {}
    for p in loss.parameters:
        if isinstance(p, Array) and p.required:
            shape = tuple(letters[letter] for letter in p.shape)
            near = np.resize(means, shape) if len(shape) == 2 and p.shape[1] != "C" else 0
            out[p.name] = abs(rng.standard_normal(shape)) + 0.1 if p.like == "counts" else (
                near + noise * rng.standard_normal(shape))  # fmt: skip
        elif isinstance(p, Labels) and (p.required or p.name == "labels"):
            out[p.name] = np.arange(letters[p.shape[0]]) % 3
    return out


@pytest.mark.usefixtures("without_chance")
@sweep("name", [n for n, loss in ALL.items() if n != "uniformity"
                and any(e.situation == "collapse" for e in loss.declaration.expectations)])  # fmt: skip
def test_equal_rows_read_collapse_in_every_setting(name):
    loss = ALL[name].declaration
    n, dim, count = 6, 3, 3
    for given in settings_of(loss):
        check_collapse(name, loss, given, n, dim, count)


def check_collapse(name, loss, given, n, dim, count):
    letters = {"N": n, "D": dim, "E": dim, "C": count, "M": 4, "K": 4}
    batch = {}
    for p in loss.parameters:
        if isinstance(p, Array) and p.required:
            shape = [letters[letter] for letter in p.shape]
            rows = [[1.0, 2.0, 2.0]] * shape[0]
            batch[p.name] = [1.0] * shape[0] if len(shape) == 1 else rows if p.shape[1] != "C" else [[0.5] * count] * n
        elif isinstance(p, Labels) and (p.required or p.name == "labels"):
            batch[p.name] = [i % count for i in range(n)]
    if name == "paco":
        batch["centers"] = [[0.0] * dim] * count
    queued = any(p.name == "queue" and p.required for p in loss.parameters if isinstance(p, Array))
    sizes = {"n": n, "classes": count, **({"queue": 4} if queued else {})}
    known = {r.situation: r.value for r in readings_of_what_is_read(name, {**given, **sizes})}
    if known:
        value, collapse = exact(name, **batch, **given), known["collapse"]
        assert abs(value - collapse) <= 1e-13 * max(1, abs(value)), (given, value, collapse)


def least_by_descent(name, arrays, fixed):
    """The value that descent from random rows comes to."""
    from scipy.optimize import minimize

    sizes = [int(np.prod(shape)) for shape in arrays.values()]

    def split(flat):
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        return {key: part.reshape(shape) for (key, shape), part in zip(arrays.items(), parts, strict=True)}

    def at(flat):
        value, grads = ALL[name].value_and_grad(**split(flat), **fixed)
        return value, np.concatenate([grads[key].ravel() for key in arrays])

    start = np.random.default_rng(0).standard_normal(sum(sizes))
    return minimize(at, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).fun


LABELS = np.arange(6) % 3
DESCENTS = [
    *(("supcon_in", {"embeddings": (6, dim)}, {"labels": LABELS, "temperature": t}, {"n": 6, "classes": 3, "dim": dim})
      for dim, t in ((2, 0.3), (4, 1.0), (1, 0.5))),
    *(("cosface", {"embeddings": (6, dim), "class_weights": (3, dim)}, {"target": LABELS, "scale": s, "margin": m},
       {"classes": 3, "dim": dim}) for dim, s, m in ((2, 2.0, 0.35), (4, 6.0, 1.5), (1, 2.0, 0.3))),
    *(("arcface", {"embeddings": (8, dim), "class_weights": (4, dim)},
       {"target": np.arange(8) % 4, "scale": s, "margin": m, "fallback": f}, {"classes": 4, "dim": dim})
      for f, dim, s, m in (("none", 3, 2.0, 0.5), ("none", 5, 4.0, 1.1), ("none", 3, 2.0, 2.2), ("linear", 3, 2.0, 0.5),
                           ("linear", 4, 3.0, 1.3))),
    *(("siglip", {"image": (5, dim), "text": (5, dim)}, {"logit_scale": t, "logit_bias": b}, {"n": 5, "dim": dim})
      for dim, t, b in ((5, 2.0, 0.0), (7, 3.0, -1.0), (4, 2.0, 1.0), (6, 10.0, -10.0), (5, 1.0, 2.0))),
    *(("hard_contrastive", {"queries": (5, dim), "keys": (5, dim)}, {"temperature": t, "fraction": f},
       {"n": 5, "dim": dim}) for dim, t, f in ((4, 0.5, 0.25), (6, 0.2, 0.5), (2, 0.5, 0.5))),
    *((name, {"z1": (4, dim), "z2": (4, dim)}, {"temperature": t, "positive_prior": p, **more}, {"n": 4, "dim": dim})
      for name, more in (("debiased", {}), ("hcl", {"concentration": 0.7}))
      for dim, t, p in ((3, 0.5, 0.14), (3, 1.0, 0.05), (4, 2.0, 0.1), (3, 0.2, 0.4))),
]  # fmt: skip


@pytest.mark.usefixtures("without_chance")
@pytest.mark.parametrize("turn", partly_slow(range(3), (0).__eq__, "the same losses with other sizes and scalars"))
def test_descent_from_random_rows_ends_at_the_optimum_and_never_below(turn):
    for name, arrays, fixed, sizes in DESCENTS[turn::3]:
        scalars = {k: v for k, v in fixed.items() if not isinstance(v, np.ndarray)}
        known = readings(name, {**scalars, **sizes})
        # Descent stalls at kinks: where the angle is 0, negatives are equally hard, or a clamp begins.
        smooth = name in ("supcon_in", "cosface", "siglip")
        least = least_by_descent(name, arrays, fixed)
        floor = max(r.value for s, r in known.items() if s in ("optimum", "lower bound") and r.value is not None)
        assert least >= floor - 1e-9 * max(1, floor), (name, fixed)
        if known["optimum"].value is not None and smooth:
            assert least <= floor + 1e-4, (name, fixed)


@sweep("prior", [0.15, 0.2])
def test_debiased_optimum_is_left_out_where_unequal_rows_may_be_better(prior):
    known = readings("debiased", {"n": 4, "temperature": 2.0, "positive_prior": prior})
    assert known["optimum"].because == "known for prior <= 1/(2N-1), or where the clamp acts on a simplex"


@sweep("name", ["cosface", "arcface"])
def test_a_batch_of_one_class_is_possible_below_the_optimum_of_balanced_ones(name):
    expected = expected_readings(name, {"classes": 4, "scale": 2})
    best = next(r.value for r in expected.readings if r.situation == "optimum")
    place = locate(expected, f"{best - 0.01:.6f}")
    assert place.possible
    assert place.sentences[0].endswith("no batch of balanced classes reads that, others may.")
    low = next(r.value for r in expected.readings if r.situation == "lower bound")
    assert not locate(expected, f"{low - 0.01:.6f}").possible


def test_balanced_classes_need_a_multiple_of_them():
    known = readings("cosface", {"n": 7, "dim": 9, "classes": 3})
    assert known["optimum"].because == "known for balanced classes (7 is not a multiple of 3)"


@pytest.mark.parametrize("given", [{"n": 6, "classes": 4}, {"n": 5, "classes": 3, "form": "normalized"}])
def test_collapse_of_paco_needs_balanced_labels_or_the_number_of_positives(given):
    given |= {"alpha": 0.1, "temperature": 0.5}
    assert readings("paco", given)["collapse"].because.endswith("or `positives`")
    assert readings("paco", {**given, "positives": 2})["collapse"].value is not None


def test_chance_of_the_linear_fallback_is_the_mean_of_random_rows():
    rng = np.random.default_rng(0)
    for margin, dim in ((0.5, 2), (2.0, 3), (1.2, 6)):
        scalars = {"margin": margin, "scale": 4.0, "fallback": "linear"}
        x, w = rng.standard_normal((40_000, dim)), rng.standard_normal((40_000, 3, dim))
        # Rows of their own class weights: the draws are independent.
        unit = [a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (x, w)]
        angles = np.arccos(np.clip(np.einsum("id,ikd->ik", unit[1][:, 0] * 0 + unit[0], unit[1]), -1, 1))
        own = np.where(angles[:, 0] > np.pi - margin, np.cos(angles[:, 0]) - margin * np.sin(margin),
                       np.cos(angles[:, 0] + margin))  # fmt: skip
        logits = 4 * np.concatenate([own[:, None], np.cos(angles[:, 1:])], axis=1)
        rows = np.logaddexp.reduce(logits, axis=1) - logits[:, 0]
        chance = readings("arcface", {"classes": 3, "dim": dim, **scalars})["chance"].value
        assert abs(rows.mean() - chance) < 4 * rows.std() / 200


def test_a_jump_makes_no_difference_where_the_function_has_none():
    from nceref.checks.integrals import mean_log_sum

    for dim, kappa, jump in ((2, 5.0, 1.0), (3, 64.0, 2.6), (128, 64.0, 1.5), (4096, 14.0, 3.0)):
        smooth = mean_log_sum(10, kappa, dim, lambda cos, _: cos - 0.1)
        assert abs(mean_log_sum(10, kappa, dim, lambda cos, _: cos - 0.1, jump=jump) / smooth - 1) < 1e-13


def test_smoothed_cross_entropy_never_reads_less_than_the_entropy_of_its_target():
    rng = np.random.default_rng(0)
    with mpmath.workdps(50):
        for smoothing, count in product((0.05, 0.5, 1.0), (2, 7)):
            known = readings("cross_entropy", {"classes": count, "label_smoothing": smoothing})["lower bound"].value
            for size in (0.1, 1.0, 10.0):
                x = size * rng.standard_normal((50, count))
                rows = losses.cross_entropy(x, np.zeros(50, int), label_smoothing=smoothing, reduction="none")
                assert rows.min() >= known - 1e-14 * (1 + known)
