"""Targets that raise what a report cannot print, or what is no ordinary exception."""

import threading
import warnings

from nceref.errors import InputError
from nceref.targets.frameworks.call import Trouble


def lone_surrogate(x, y):
    raise RuntimeError("\udcff half a pair")


def escape_sequences(x, y):
    raise RuntimeError("\x1b[2J\x1b]0;title\x07\x9b31m red")


def markup(x, y):
    raise RuntimeError("[red]warning[/red] [/] [link=http://example.org]here[/link]")


def unprintable(x, y):
    raise RuntimeError("NUL \x00, backspace \b\b\b, bidi \u202eabc\u2066, line \u2028 separator, \r\n break")


def commands(x, y):
    raise RuntimeError("::error::a ::stop-commands::b ::add-mask::c ##[error]d ##vso[task.complete result=x]e " * 2)


def hundred_megabytes(x, y):
    raise RuntimeError("a" * 10**8)


def text_raises(x, y):
    raise _TextRaises


class _TextRaises(Exception):
    def __str__(self):
        raise RuntimeError("no text either")

    __repr__ = __str__


def text_hangs(x, y):
    raise _TextHangs


class _TextHangs(Exception):
    def __str__(self):
        threading.Event().wait()

    __repr__ = __str__


def text_exits(x, y):
    raise _TextExits


class _TextExits(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__


def text_is_a_number(x, y):
    raise _TextIsANumber


class _TextIsANumber(Exception):
    def __str__(self):
        return 3

    __repr__ = __str__


def argument_without_repr(x, y):
    raise KeyError(_TextRaises())


def odd_class_name(x, y):
    raise type("\x1b[31mRed\n[bold]" + 10**5 * "x", (Exception,), {})("odd")


class _Nameless(type):
    def __getattribute__(cls, name):
        raise RuntimeError("no name")


def class_without_a_name(x, y):
    raise _Nameless("OfNoName", (Exception,), {})("nameless")


def own_base_exception(x, y):
    raise type("Outside", (BaseException,), {})("not an Exception")


def keyboard_interrupt(x, y):
    raise KeyboardInterrupt


def generator_exit(x, y):
    raise GeneratorExit


def system_exit(x, y):
    raise SystemExit("\x1b[2J \ud800")


def system_exit_without_text(x, y):
    raise SystemExit(_TextRaises())


def stop_iteration(x, y):
    raise StopIteration


def memory_error(x, y):
    raise MemoryError


def group(x, y):
    raise ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [KeyError("two")])])


def circular_cause(x, y):
    error = RuntimeError("caused by itself")
    error.__cause__ = error.__context__ = error
    raise error


def pretends_to_be_another(x, y):
    raise _Pretender("not what it seems")


class _Pretender(Exception):
    @property
    def __class__(self):
        return SystemExit


def recursion(x, y):
    return recursion(x, y)


def odd_file_name(x, y):
    exec(compile("raise RuntimeError('from nowhere')", "\x1b[31m[red]\ud800.py", "exec"))


def error_of_the_checker(x, y):
    raise InputError("`loss` is wrong")


def trouble_of_the_checker(x, y):
    raise Trouble("is all right", "")


def warning_as_error(x, y):
    warnings.simplefilter("error")
    warnings.warn("\x1b[2J now an error", stacklevel=1)


def notes(x, y):
    error = RuntimeError("with a note")
    error.add_note("\x1b[2J\ud800")
    error.__traceback__ = None
    raise error
