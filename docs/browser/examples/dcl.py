# DCL: a small temperature overflows
import numpy as np


def dcl(z1, z2, temperature):
    z = np.concatenate([z1, z2])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    similar = np.exp(z @ z.T / temperature)
    partner = np.roll(np.arange(len(z)), len(z1))
    positive = np.log(similar[np.arange(len(z)), partner])
    similar[np.arange(len(z)), partner] = 0
    np.fill_diagonal(similar, 0)
    return np.mean(np.log(similar.sum(axis=1)) - positive)
