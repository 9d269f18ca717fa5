"""RemoveAccidentalHits of keras-rs 0.4.0 on two pairs of one item: a logit moves by 1e-40, and no candidate goes."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras_rs
import torch

logits, labels, ids = torch.zeros(2, 2), torch.eye(2), torch.tensor([7, 7])
print(keras_rs.layers.RemoveAccidentalHits()(logits, labels, ids).softmax(dim=1))
