"""A batch of samples from many classes: how many negatives of an anchor belong to its own class."""

from nceref.theory.claim import LOGARITHMIC, Drawn, Scenario


def symbols():
    """A positive share and a batch size."""
    import sympy

    return {"q": sympy.Symbol("q", positive=True), "N": sympy.Symbol("N", integer=True, positive=True)}


def draw(rng):
    """Shares of the anchor's class from 0.001 to 0.3, log-uniform; batches of 2 to 60 samples."""
    return {"q": float(10 ** rng.uniform(-3, -0.523)), "N": int(rng.integers(2, 61))}


def terms(m, base):
    """Chance of at least one false negative for three batch sizes, and the expected share of them."""
    q, n = base["q"], base["N"]
    named = {
        "q": q, "N": n,
        "chance": 1 - (1 - q) ** (n - 1),
        "with_one_more": 1 - (1 - q) ** n,
        "in_twice_as_many": 1 - (1 - q) ** (2 * n - 1),
    }  # fmt: skip
    return named if m.symbolic else {**named, "share": _expected(q, n - 1) / (n - 1)}


def _expected(q, count):
    """Mean of a binomial law, summed over all of its values."""
    weight, total = (1 - q) ** count, 0 * q
    for k in range(1, count + 1):
        weight *= (count - k + 1) * q / (k * (1 - q))
        total += k * weight
    return total


SCENARIO = Scenario(
    name="false_negatives",
    setting="a batch, seen from one anchor",
    given="2 <= N and 0 < q < 1",
    meaning={
        "q": "probability that a sample is of the anchor's class",
        "N": "samples in the batch, drawn independently, the anchor included",
        "chance": "probability that at least one of the N - 1 others is of the anchor's class",
        "with_one_more": "the same with one more sample in the batch",
        "in_twice_as_many": "the same with 2 N samples in the batch",
        "share": "expected share of the N - 1 others that is of the anchor's class, a sum over the binomial law",
    },
    symbols=symbols,
    fixed=({"q": 0.001, "N": 256}, {"q": 0.1, "N": 64}, {"q": 0.25, "N": 2}),
    draw=draw,
    drawn={"q": Drawn(0.001, 0.3, scale=LOGARITHMIC), "N": Drawn(2, 60)},
    terms=terms,
)
