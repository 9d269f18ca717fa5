"""Train an encoder with any loss of the package, by name: networks and optimizers with explicit backward passes.

A `Recipe` says how; `train` takes the steps for every `Member` of an ensemble, on batches that a function draws.
"""

from nceref.training.batch import Batch, Member
from nceref.training.network import Linear, Network, Normalize, ReLU, Tanh, mlp
from nceref.training.optimizers import SGD, Adam
from nceref.training.recipe import Moment, Recipe, Trained
from nceref.training.trainer import train

__all__ = [
    "SGD",
    "Adam",
    "Batch",
    "Linear",
    "Member",
    "Moment",
    "Network",
    "Normalize",
    "ReLU",
    "Recipe",
    "Tanh",
    "Trained",
    "mlp",
    "train",
]
