"""Text that others wrote, made printable: messages of exceptions, names, paths, what a program prints."""

import codecs
import re
import reprlib

LONGEST = 300
"""Characters of a message that are shown."""
_MORE = "..."
COMMAND = re.compile(r"^([ \t]*):(?=:)|(#)#(?=\w*\[)", re.MULTILINE)
"""Texts that a collector of logs takes for a command: ``::error::`` at the start of a line, ``##[error]`` anywhere."""
_ABBREVIATED = reprlib.Repr()
_ABBREVIATED.maxstring = _ABBREVIATED.maxother = _ABBREVIATED.maxlong = 80


def printable(thing: object, limit: int = LONGEST) -> str:
    r"""One line that is safe to show anywhere: on a terminal, in a file, in JSON and in XML.

    Parameters
    ----------
    thing : object
        Text, or an object whose ``str`` is the text, such as an exception; it may raise.
    limit : int
        The most characters of the result.

    Returns
    -------
    str
        White space is one space, and what is not printable stands as Python writes it.

    >>> printable("one\n  two\x1b[31m")
    'one two\\x1b[31m'
    """
    # Cut first: a message may have any length.
    line = " ".join(harmless(" ".join(_text(thing)[: 20 * limit].split())).split())
    return line if len(line) <= limit else line[: limit - len(_MORE)] + _MORE


def shown(value: object) -> str:
    """A value as it stands in a message: the beginning and the end of its ``repr``, whatever that does.

    >>> shown(10**100), shown([1, "a"])
    ('1000000000000000000000000000000000000...000000000000000000000000000000000000000', "[1, 'a']")
    """
    try:
        text = _ABBREVIATED.repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        # An integer has one that raises, too, if it has more digits than Python writes.
        text = f"a value of type {class_name(value)}"
    return printable(text)


def reason(error: BaseException) -> str:
    """An exception as it stands in another one's message: its type and its text."""
    return printable(f"{class_name(error)}: {_text(error)}")


def harmless(text: str) -> str:
    r"""The text with its lines and tabs, where every other character that is not printable is escaped.

    Escaped are control characters, what changes the direction of writing or has no width, spaces other than the
    common one, lone surrogates and code points without a character; and one character of each `COMMAND`.

    >>> harmless("a\x1b[31m\u202eb\udcff\n")
    'a\\x1b[31m\\u202eb\\udcff\n'
    >>> harmless("::error::b"), harmless("##vso[task]")
    ('\\x3a:error::b', '#\\x23vso[task]')
    """
    # Nearly always: the test is fast, and what looks at each character of a long text is not.
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = text.translate({ord(c): _escaped(c) for c in set(text) - {"\n", "\t"} if not c.isprintable()})
    return without_commands(text)


def without_commands(text: str) -> str:
    """The text, where one character of each `COMMAND` is escaped."""
    return COMMAND.sub(_plain, text) if "::" in text or "##" in text else text


def _plain(command: "re.Match[str]") -> str:
    return f"{command[1]}\\x3a" if command[2] is None else "#\\x23"


def class_name(thing: object) -> str:
    """The name of an object's class, printable and short, whatever the class says that it is called."""
    # The slot itself: a metaclass may have a `__name__` that raises.
    return printable(type.__dict__["__name__"].__get__(type(thing)), 60)


def _escaped(character: str) -> str:
    # Not `encode`, which looks the codec up with an import that a target may have replaced.
    return codecs.unicode_escape_encode(character)[0].decode("ascii")


def _text(thing: object) -> str:
    # The method of an exception is code of others too: it may raise, and its text may be of a class of its own.
    try:
        return str.__str__(str(thing))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"({class_name(thing)} without a text)"
