"""Least values of losses over rows of length 1, and how they are attained.

Most rest on one lemma. Let x_i and y_i, i = 1 .. n, be rows of length at most 1, p the mean of x_i.y_i and q the mean
of x_i.y_j over i != j. Then for some c and e with |c| + |e| <= 1

    p = c + e,    q = e - c / (n - 1).

Proof: less their means x0 and y0 the rows have mean squares a <= 1 - |x0|^2 and b <= 1 - |y0|^2. Let c be the mean of
the products of what is left and e = x0.y0. Then p = c + e, and n p + n (n - 1) q = n^2 e. By Cauchy-Schwarz
|c| + |e| <= sqrt(a b) + sqrt((1 - a) (1 - b)) <= 1.

Every such c and e with c >= 0 is attained in n dimensions by x_i = sqrt(c) s_i + sqrt(|e|) u and
y_i = sqrt(c) s_i +- sqrt(|e|) u, where c + |e| = 1, s_i are the corners of a simplex and u is orthogonal to all.
n - 1 dimensions are enough for e = 0, one for c = 0.
"""

import math


def log_sigmoid(x: float) -> float:
    """Logarithm of 1 / (1 + e^-x)."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


def target_entropy(smoothing: float, classes: int) -> float:
    """Entropy of (1 - e) onehot + e / C: by Gibbs' inequality no cross-entropy to that target is less."""
    other = smoothing / classes
    missing = (classes - 1) * other
    # log(own) keeps its digits where little is missing to 1.
    return -(1 - missing) * math.log1p(-missing) - (missing * math.log(other) if missing else 0.0)


def largest_margin_logit(margin: float, *, linear: bool) -> float:
    """The supremum of psi over all angles: the target's logit of ArcFace over its scale.

    cos(angle + m) falls from cos m to -1 at the angle pi - m and rises to -cos m at pi. The linear fallback jumps there
    to cos(pi - m) - m sin m and falls.
    """
    beyond = -math.cos(margin) - (margin * math.sin(margin) if linear else 0.0)
    return max(math.cos(margin), beyond)


def margin_gap(margin: float, classes: int, *, linear: bool) -> tuple[float, bool] | None:
    """The most that psi of the target is above the mean cosine of the others, in the mean over balanced classes.

    A row is softplus(log sum of e^(s cos) over the others - s psi), so that by Jensen's inequality, twice, the mean
    is at least softplus(log(C - 1) - s gap). With the means of the classes as x_i and their weights as y_i of the
    lemma, the gap is at most the maximum of env(p) - q over |c| + |e| <= 1, where env is the least concave function
    above psi, as a function of the cosine. That is convex on the cosines above cos(pi - m):

    - as printed, env is the chord p cos m. The maximum is cos m + 1 / (C - 1) at c = 1, or 1 - cos m at e = -1.
    - with the fallback, env is a chord to p = 1 from p = -1 or, where its slope a = (2 cos m + m sin m) / (1 + cos m)
      is less than 1, from the jump at -cos m. The maximum is at c = 1 if a >= (C - 2) / (2 (C - 1)), and else at the
      jump, where psi has no value.

    Result: the gap, and whether it takes the simplex, c = 1; None where it is not attained.
    """
    cosine, others = math.cos(margin), classes - 1
    simplex, opposite = cosine + 1 / others, 1 - cosine
    if not linear:
        return max(simplex, opposite), simplex >= opposite
    slope = 2 * cosine + margin * math.sin(margin)
    return (simplex, True) if slope >= (1 + cosine) * (others - 1) / (2 * others) else None


def sigmoid_optimum(scale: float, bias: float, n: int) -> tuple[float, int]:
    """The least sigmoid loss of n pairs, and in how many dimensions it is attained.

    By Jensen's inequality the loss is at least softplus(-t p - b) + (n - 1) softplus(t q + b), with p and q of the
    lemma. That falls with c, and with e too where e > 0 and c = 1 - e. So it is least for c = 1 - d and e = -d with a d
    from 0 to 1, where

        p = 1 - 2 d,    q = -(1 + (n - 2) d) / (n - 1)

    and it is convex in d. Its slope is 2 t sigmoid(-t p - b) - (n - 2) t sigmoid(t q + b), the first term of which
    rises with d and the second falls: bisection.
    """
    if n == 1:
        return -log_sigmoid(scale + bias), 1

    def at(d: float) -> tuple[float, float]:
        return -scale * (1 - 2 * d) - bias, bias - scale * (1 + (n - 2) * d) / (n - 1)

    def rises(d: float) -> bool:
        own, other = at(d)
        return n == 2 or math.log(2) + log_sigmoid(own) >= math.log(n - 2) + log_sigmoid(other)

    low, high = 0.0, 1.0
    if rises(low):
        best, dim = low, n - 1
    elif not rises(high):
        best, dim = high, 1
    else:
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if rises(middle) else (middle, high)
        best, dim = high, n
    own, other = at(best)
    return -log_sigmoid(-own) - (n - 1) * log_sigmoid(-other), dim


def debiased_optimum(temperature: float, prior: float, n: int) -> float | None:
    """The least debiased loss of n >= 2 pairs, with any concentration; None where it is not known.

    A row is log(1 + k max(f(r), e^(-1/T) / e^+)) with k = 2n - 2 negatives, f(r) = (r - prior) / (1 - prior) and r the
    mean of e^(s/T) over them, weighted or not, over e^+. Weights that rise with the similarity lower no mean. So a row
    is at least log(1 + k e^(-2/T)), and at least log(A + B e^u) with u = log of the unweighted r, B = k / (1 - prior)
    and A = 1 - prior B. That is convex in u for A >= 0, and the mean of u is at least -n / ((n - 1) T).
    Aligned views on a simplex attain the larger of both; if that is the first, the sign of A does not matter.
    """
    least, k = -2 / temperature, 2 * n - 2
    free = math.exp(-n / ((n - 1) * temperature)) - prior
    level = math.log(free) - math.log1p(-prior) if free > 0 else -math.inf
    if level > least and prior * (k + 1) > 1:
        return None
    return -log_sigmoid(-math.log(k) - max(level, least))
