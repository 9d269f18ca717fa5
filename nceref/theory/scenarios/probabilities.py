"""The PaCo loss at its minimum, as a function of the probability p that all class centers share."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """The symbols, all positive."""
    import sympy

    return {name: sympy.Symbol(name, positive=True) for name in ("p", "alpha", "K")}


def draw(rng):
    """A probability in (0, 1), also near both ends; alpha 0.01 to 1; 0.1 to 100 positives, not an integer."""
    log_odds, log_alpha, log_count = rng.uniform(-5.988, 5.988), rng.uniform(-2, 0), rng.uniform(-1, 2)
    return {"p": float(1 / (1 + 2.718**-log_odds)), "alpha": float(10**log_alpha), "K": float(10**log_count)}


def terms(m, base):
    """L_extra with the place and the value of its minimum, and L_supcon where every positive has its best value."""
    p, alpha, count = base["p"], base["alpha"], base["K"]
    pull = alpha * count
    pair = alpha / (1 + pull)
    return {
        "p": p, "alpha": alpha, "K": count,
        "L_extra": -m.log(p) - pull * m.log(1 - p),
        "lowest": (1 + pull) * m.log(1 + pull) - pull * m.log(pull),
        "p_star": 1 / (1 + pull),
        "pair": pair,
        "L_supcon": -count * m.log(pair / (1 - p)),
    }  # fmt: skip


SCENARIO = Scenario(
    name="probabilities",
    setting="one anchor",
    given="0 < p < 1 and 0 < alpha and 0 < K",
    meaning={
        "p": "probability of all class centers together",
        "alpha": "weight of each positive beside the weight 1 of the center",
        "K": "expected number of positives",
        "L_extra": "-log p - alpha K log(1 - p)",
        "lowest": "(1 + alpha K) log(1 + alpha K) - alpha K log(alpha K)",
        "p_star": "1 / (1 + alpha K)",
        "pair": "probability of each positive at the minimum, alpha / (1 + alpha K)",
        "L_supcon": "-K log(pair / (1 - p))",
    },
    symbols=symbols,
    fixed=(
        {"p": 0.5, "alpha": 0.05, "K": 8.192},
        {"p": 0.9, "alpha": 0.05, "K": 8.192},
        {"p": 0.25, "alpha": 0.5, "K": 90.5},
        {"p": 0.7, "alpha": 1.0, "K": 0.375},
    ),
    draw=draw,
    drawn={
        "p": Drawn(0.0025, 0.9975),
        "alpha": Drawn(0.01, 1, scale=LOGARITHMIC),
        "K": Drawn(0.1, 100, scale=LOGARITHMIC),
    },
    terms=terms,
)
