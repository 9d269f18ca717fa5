"""Training an encoder with any loss of the package, by name: `supply` feeds the loss, `trainer` takes the steps."""

from nceref.training.batch import Batch, Member
from nceref.training.recipe import Moment, Recipe, Trained
from nceref.training.trainer import train

__all__ = ["Batch", "Member", "Moment", "Recipe", "Trained", "train"]
