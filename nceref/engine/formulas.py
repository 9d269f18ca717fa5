"""Words that formulas are written in, over any number system `m` (see `exact`)."""

from typing import Any

Number = Any


def unit(m: Any, row: list[Number]) -> list[Number]:
    """The row divided by its Euclidean length."""
    length = m.sqrt(dot(row, row))
    return [x / length for x in row]


def rows(m: Any, matrix: list[list[Number]], normalize: str) -> list[list[Number]]:
    """The rows as they enter a dot product."""
    return [unit(m, row) for row in matrix] if normalize == "l2" else matrix


def dot(a: list[Number], b: list[Number]) -> Number:
    """sum_k a_k b_k; numbers may have a rule of their own for all of it (see `exact.reverse_mode`)."""
    at_once = getattr(a[0], "dot_product", None)
    return at_once(a, b) if at_once else sum(x * y for x, y in zip(a, b, strict=True))


def squared_distance(a: list[Number], b: list[Number]) -> Number:
    """sum_k (a_k - b_k)^2, as `dot`."""
    at_once = getattr(a[0], "squared_distance", None)
    return at_once(a, b) if at_once else sum((x - y) * (x - y) for x, y in zip(a, b, strict=True))


def labelled_rows(
    m: Any, embeddings: Any, labels: Any, mask: Any, anchor_mode: str, queue: Any, queue_labels: Any, normalize: str
) -> Any:
    """Samples with labels or a mask, as formulas see them.

    `embeddings` are N rows of D numbers, or N lists of V such rows; without `labels` and `mask` a sample's views are
    each other's positives. Returns all rows, view 1 of every sample first and the queue last; the indices of the
    anchors among them; and weight(i, j), the weight of row j as a positive of row i.
    """
    views = len(embeddings[0]) if isinstance(embeddings[0][0], list) else 1
    n = len(embeddings)
    flat = [embeddings[i][v] for v in range(views) for i in range(n)] if views > 1 else _single(embeddings)
    z = rows(m, flat + (queue or []), normalize)
    names = (list(range(n)) if labels is None else labels) * views + (queue_labels or [])

    def weight(i: int, j: int) -> Number:
        return mask[i % n][j % n] if mask is not None else int(names[i] == names[j])

    return z, range(n if anchor_mode == "one" else n * views), weight


def _single(embeddings: Any) -> Any:
    return [row[0] if isinstance(row[0], list) else row for row in embeddings]
