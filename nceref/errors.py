"""The exceptions that `nceref` raises on purpose, and warnings. A failed check is a result, not an exception."""

import re


class NcerefError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(NcerefError, ValueError):
    """An argument is wrong: the message names it, its value, what was expected and what to do."""


class FileError(InputError, OSError):
    """A file cannot be read or written: the message names it, and says why and what to do."""


class DeclarationError(NcerefError, TypeError):
    """A declaration file in one of the package's folders does not have the promised shape."""


class UnavailableError(NcerefError, ImportError):
    """A package is not installed, or too old: the message names it and how to install it."""


class DerivativeError(NcerefError, NotImplementedError):
    """A derivative is taken that was not derived by hand: the message names the loss, and says what to do."""


class ClusterError(NcerefError, RuntimeError):
    """Workers, or their scheduler, were lost for good: the message says what became of them and what to do."""


class TargetError(NcerefError):
    """A target of the verifier cannot be loaded or called: the message names what was expected and what to do."""


class SignatureError(TargetError):
    """A target cannot be handed the inputs of the loss: the message has a call expression to start from."""


class LackingInputError(SignatureError):
    """A target needs inputs that a loss may do without: the message has the settings that give them."""

    @property
    def names(self) -> list[str]:
        """The inputs; read from the message, which is what a child process sends of an error."""
        return re.findall(r"--set (\w+)=given", str(self))


class RenamedWarning(FutureWarning):
    """A name that has been replaced: it works until the next major version, and the message has the new one."""


class OneValueWarning(UserWarning):
    """A target is an object with a scalar of its own: the message has its value, and says how it could vary."""
