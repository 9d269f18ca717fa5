"""Shapes in letters: equal letters are equal sizes, in all arguments of a call."""

from collections.abc import Iterable
from typing import Any

from nceref import spec
from nceref.errors import InputError

Sizes = dict[str, tuple[int, str]]
"""Size of every shape letter met so far, and the argument that set it."""


def shape_text(letters: Iterable[Any]) -> str:
    """A shape as it is written: ``(N, D)``, ``(N,)``."""
    parts = [str(letter) for letter in letters]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def shapes_text(p: spec.Array | spec.Labels) -> str:
    """The shapes that an argument may have: ``(N, D) or (N, V, D)``."""
    return " or ".join(shape_text(letters) for letters in (p.shape, getattr(p, "alternative", None)) if letters)


def got_text(shape: Iterable[int]) -> str:
    """The shape that was given."""
    return str(tuple(shape)) if tuple(shape) else "one number"


def check_shape(p: spec.Array | spec.Labels, x: Any, sizes: Sizes) -> None:
    """Check the shape of an argument.

    `sizes` has the sizes of the letters of earlier arguments, which this one must match; its own are added. Raises
    `InputError` if it is another one, or has a 0 in it.
    """
    alternative = getattr(p, "alternative", None)
    letters = alternative if alternative is not None and x.ndim == len(alternative) else p.shape
    known = [sizes.get(letter) for letter in letters]
    fits = x.ndim == len(letters) and all(k is None or k[0] == size for k, size in zip(known, x.shape, strict=False))
    if not fits:
        raise InputError(_shape_message(p, tuple(x.shape), letters, sizes))
    if 0 in x.shape:
        msg = f"`{p.name}` is empty: its shape is {tuple(x.shape)}; pass at least one row and one feature"
        raise InputError(msg)
    for letter, size in zip(letters, x.shape, strict=True):
        sizes.setdefault(letter, (size, p.name))


def _shape_message(p: spec.Array | spec.Labels, shape: tuple[int, ...], letters: tuple[str, ...], sizes: Sizes) -> str:
    got = got_text(shape)
    others = sorted({sizes[letter][1] for letter in letters if letter in sizes} - {p.name})
    if not others:
        return f"`{p.name}` must be {shapes_text(p)}, got {got}"
    expected = shape_text(sizes[letter][0] if letter in sizes else letter for letter in letters)
    to_match = " and ".join(f"`{other}`" for other in others)
    return f"`{p.name}` must be {shape_text(letters)} = {expected} to match {to_match}, got {got}"
