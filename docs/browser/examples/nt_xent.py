# SimCLR: the anchor is among its own negatives
import numpy as np


def nt_xent(z1, z2, temperature):
    z = np.concatenate([z1, z2])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    logits = z @ z.T / temperature
    top = logits.max(axis=1)
    log_sum = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    partner = np.roll(np.arange(len(z)), len(z1))
    return np.mean(log_sum - logits[np.arange(len(z)), partner])
