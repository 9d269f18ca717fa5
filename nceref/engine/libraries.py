"""Which library a loss is computed by: that of arrays in memory, whichever it is, or Dask for arrays in chunks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nceref.engine.arguments import checked_arguments, named, one_of
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.chunks import is_chunked
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.spec import Loss

if TYPE_CHECKING:
    from nceref.engine.chunked.run import LossInChunks


def bound_by_library(
    loss: Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any], compute: Any = True
) -> "BoundLoss | LossInChunks":
    """A loss with its arguments, by position and by name, that the library of its arrays evaluates.

    `compute`: of arrays of Dask, whether results are computed now. Raises `InputError` for an argument that the loss
    refuses; the entries of chunks are looked at where they are computed.
    """
    given = named(loss, args, kwargs)
    if is_chunked(*given.values()):
        # Workers and schedulers are of no use to arrays in memory.
        from nceref.engine.chunked.run import LossInChunks

        return LossInChunks(loss, given, one_of("compute", compute, (True, False)))
    if compute is not True:
        msg = f"`compute` is for arrays of Dask, got {shown(compute)} for arrays in memory; leave it out"
        raise InputError(msg)
    return BoundLoss(loss, checked_arguments(loss, given))
