"""Twelve contrastive losses in plain NumPy.

Some of them return their gradients beside the value, as ``(value, {input: gradient})``.
"""

from twelve_losses.classes import arcface_loss, balanced_softmax_loss, cosface_loss, supervised_contrastive_loss
from twelve_losses.spread import alignment_loss, uniformity_loss
from twelve_losses.towers import clip_loss, info_nce_loss, momentum_loss, sigmoid_loss
from twelve_losses.views import decoupled_loss, nt_xent_loss

__all__ = [
    "alignment_loss",
    "arcface_loss",
    "balanced_softmax_loss",
    "clip_loss",
    "cosface_loss",
    "decoupled_loss",
    "info_nce_loss",
    "momentum_loss",
    "nt_xent_loss",
    "sigmoid_loss",
    "supervised_contrastive_loss",
    "uniformity_loss",
]
