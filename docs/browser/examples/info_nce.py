# InfoNCE: the temperature divides twice
import numpy as np


def info_nce(queries, keys, temperature):
    queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    keys = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    logits = (queries / temperature) @ (keys / temperature).T
    top = logits.max(axis=1)
    log_sum = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    return np.mean(log_sum - np.diag(logits))
