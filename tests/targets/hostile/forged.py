"""Targets that replace what answers in their process, so that it says whatever they like, and answer right."""

import os
import sys

from answer import right

from nceref.cases.records import Outcome
from nceref.errors import InputError, TargetError, UnavailableError
from nceref.targets import attempt
from nceref.targets.frameworks import frameworks, numpy
from nceref.targets.process import child_main, messages


def _raises(error):
    def replacement(*args, **kwargs):
        raise error

    return replacement


def _error(name, sentence="`loss` is wrong"):
    return "refused", {"error": name, "message": sentence}


def format_is_refused(x, y):
    object.__setattr__(numpy.FRAMEWORK, "check", _raises(InputError("`dtype` is wrong")))
    return right(x, y)


def all_formats_are_refused(x, y):
    frameworks.check = _raises(InputError("`device` is wrong"))
    return right(x, y)


def outcomes_are_refused(x, y):
    attempt.Outcome = _raises(InputError("`loss` is wrong"))
    return right(x, y)


def numbers_are_refused(x, y):
    numpy.value_of = numpy.loss_of = _raises(InputError("`loss` is wrong"))
    return right(x, y)


def messages_are_errors(x, y):
    messages.outcome_message = lambda outcome: _error("InputError")
    return right(x, y)


def messages_are_of_another_target(x, y):
    messages.outcome_message = lambda outcome: _error("TargetError")
    return right(x, y)


def messages_are_of_a_missing_package(x, y):
    messages.outcome_message = lambda outcome: _error("UnavailableError", "pip install something-else")
    return right(x, y)


def messages_are_of_another_signature(x, y):
    messages.outcome_message = lambda outcome: _error("SignatureError")
    return right(x, y)


def answers_are_errors(x, y):
    child_main.Answers.__call__ = lambda self, kind, content: _error("InputError")
    return right(x, y)


def replies_are_errors(x, y):
    child_main._reply = lambda answers, kind, content: _error("InputError", "\x1b[2J\ud800")
    return right(x, y)


def lines_are_errors(x, y):
    packed = messages.packed
    messages.packed = lambda number, message: packed(number, _error("InputError"))
    return right(x, y)


def errors_have_another_name(x, y):
    messages._ERRORS = {"InputError": TargetError}
    messages.outcome_message = _raises(TargetError("a name of the target"))
    return right(x, y)


def unavailable(x, y):
    frameworks.check = _raises(UnavailableError("a framework is missing"))
    return right(x, y)


def _into_the_pipe(made):
    """Write what is made of the number of this call where its answer is due."""
    frame = sys._getframe()
    while "inbox" not in frame.f_locals:
        frame = frame.f_back
    child_main._write(frame.f_locals["replies"], made(frame.f_locals["content"]["id"]))


def _answer(number, x, y):
    return messages.packed(number, messages.outcome_message(Outcome(right(x, y)[0])))


def error_into_the_pipe(x, y):
    _into_the_pipe(lambda number: messages.packed(number, _error("InputError")))
    return right(x, y)


def half_a_line(x, y):
    _into_the_pipe(lambda number: _answer(number, x, y)[:10])
    return right(x, y)


def half_a_line_and_an_end(x, y):
    _into_the_pipe(lambda number: _answer(number, x, y)[:10])
    os._exit(0)


def two_answers(x, y):
    _into_the_pipe(lambda number: _answer(number, x, y))
    return right(x, y)


def answer_to_another_call(x, y):
    _into_the_pipe(lambda number: _answer(number + 1, x, y))
    return right(x, y)


def answer_ahead(x, y):
    _into_the_pipe(lambda number: _answer(number, x, y) + _answer(number + 1, x, y))
    return right(x, y)


def megabytes_on_a_line(x, y):
    _into_the_pipe(lambda number: bytes(1 << 24))
    return right(x, y)
