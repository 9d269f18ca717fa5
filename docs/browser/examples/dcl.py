# DCL: the positive is left in the denominator
import numpy as np


def dcl(z1, z2, temperature):
    z = np.concatenate([z1, z2])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    logits = z @ z.T / temperature
    partner = np.roll(np.arange(len(z)), len(z1))
    positive = logits[np.arange(len(z)), partner]
    np.fill_diagonal(logits, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0] - positive)
