# CLIP: images look for texts, but texts not for images
import numpy as np


def clip(image, text, logit_scale):
    image = image / np.linalg.norm(image, axis=1, keepdims=True)
    text = text / np.linalg.norm(text, axis=1, keepdims=True)
    logits = logit_scale * image @ text.T
    top = logits.max(axis=1)
    log_sum = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    return np.mean(log_sum - np.diag(logits))
