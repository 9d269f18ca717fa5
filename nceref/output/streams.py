"""Standard output and error: no character makes them fail, and what could not be written is an error, not silence."""

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from nceref.errors import NcerefError

_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Lambda Phi Omega"
)
GREEK = dict(zip("αβγδεζηθκλμνξπρστφχψωΓΔΛΦΩ", _NAMES.split(), strict=True))
"""Greek letters and their names."""
WRITTEN = {
    "±": "+-",
    "−": "-",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "²": "^2",
    "√": "sqrt",
    "∞": "inf",
    **GREEK,
    "Σ": "sum",
    "Π": "prod",
    "≠": "!=",
    "≃": "~",
    "∂": "d",
    "∇": "grad ",
    "∫": "int",
    "∈": "in",
    "∀": "for all",
    "←": "<-",
    "↦": "->",
    "⇒": "=>",
    "⇔": "<=>",
    "⪯": "<=",
    "‖": "||",
    "·": "*",
    "⊙": "*",
    "ᵀ": "^T",
    "ℓ": "l",
    "\u0304": "_mean",
    "\u0303": "~",
    "\u0302": "^",
}
"""Replacements of characters of our own that the encoding lacks; all others become escapes."""
_HANDLER = "nceref.written"


class OutputError(NcerefError):
    """Standard output cannot be written: the disk is full, or it is closed."""


class ClosedPipeError(Exception):
    """Nobody reads standard output any more, as after ``nceref losses | head -1``: no error, but the end."""


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Context in which writing to standard output succeeds or raises one of two errors; standard error never raises.

    Raises `OutputError` or `ClosedPipeError`, at its end too, for what stands in the buffer until then.
    """
    _occupy()
    codecs.register_error(_HANDLER, _written)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Guarded(stream, must) for stream, must in zip(before, (True, False), strict=True))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = before


def encodes(text: str) -> bool:
    """Whether the encoding of standard output has all these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_utf8() -> bool:
    """Whether standard output is UTF-8, as JSON and XML are unless they hold ASCII alone."""
    return codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name == "utf-8"


def discard() -> None:
    """Drop what still stands in the buffers: it would fail again when Python ends, with a message of its own."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]


class _Guarded:
    """A standard stream, or none, whose failures have a name; `must` is whether they are errors at all."""

    def __init__(self, stream: Any, must: bool) -> None:
        self._stream, self._must = stream, must
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)

    def write(self, text: str) -> int:
        with self._named():
            if self._stream is None:
                raise OSError(None, "it is closed")
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._named():
            if self._stream is not None:
                self._stream.flush()

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        # ValueError: the stream object was closed.
        except (OSError, ValueError) as error:
            if not self._must:
                return
            if isinstance(error, BrokenPipeError):
                raise ClosedPipeError from error
            reason = getattr(error, "strerror", None) or "it is closed"
            msg = f"cannot write standard output: {reason.lower()}"
            raise OutputError(msg) from error

    def __getattr__(self, name: str) -> Any:
        # The bytes below would be a way around: click takes it where it mistrusts an encoding.
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


def _written(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    text = "".join(WRITTEN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in characters)
    return text, error.end


def _occupy() -> None:
    """Fill closed standard descriptors: the next file that is opened would become standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
