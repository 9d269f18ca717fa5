"""Everything `nceref` raises. A finding of a check is not an exception."""


class NcerefError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(NcerefError, ValueError):
    """An argument is wrong: the message names it, its value, what was expected and what to do."""


class DeclarationError(NcerefError, TypeError):
    """A declaration file in one of the package's folders does not have the promised shape."""


class UnavailableError(NcerefError, ImportError):
    """Something optional is not installed: the message names it and how to install it."""


class TargetError(NcerefError):
    """What is to be verified cannot be loaded or called: the message says what was looked for and what to do."""
