"""Hostile targets by file, what becomes of each, and what holds for all of them."""

import ast
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from nceref.verification.report import page_of
from nceref.verification.verifier import verify_with

FOLDER = Path(__file__).parent / "hostile"
RIGHT = f"{FOLDER / 'answer.py'}:right"
CASE = {"loss": "alignment", "normalize": "none", "suite": "quick", "case": "designed"}
CONFORMS, DIFFERS, DISTRUST, FAILS = 0, 1, 3, 4
AGREES = (CONFORMS, "value and gradients agree on the only case")
ANY = (None, "")
HANGS = (FAILS, "does not return within")
PATIENT = 60.0
"""Seconds in which a busy machine answers for sure; nothing waits that long."""


def raises(words):
    return FAILS, f"no case could be judged: raises {words}"


def dies(how):
    return FAILS, f"ends the process with {how}"


def unloaded(words):
    return FAILS, words


GARBLES = (FAILS, "closes or garbles the pipe to its parent")

RAISED = {
    "lone_surrogate": raises(r"RuntimeError: \udcff half a pair (raised.py, line "),
    "escape_sequences": raises(r"RuntimeError: \x1b[2J\x1b]0;title\x07\x9b31m red"),
    "markup": raises("RuntimeError: [red]warning[/red] [/] [link=http://example.org]here[/link]"),
    "commands": raises(r"RuntimeError: ::error::a ::stop-commands::b ::add-mask::c"),
    "unprintable": raises(r"RuntimeError: NUL \x00, backspace \x08\x08\x08, bidi \u202eabc\u2066, line"),
    "hundred_megabytes": raises("RuntimeError: aaaaa"),
    "text_raises": raises("_TextRaises: (_TextRaises without a text)"),
    "text_hangs": HANGS,
    "text_exits": raises("_TextExits: (_TextExits without a text)"),
    "text_is_a_number": raises("_TextIsANumber: (_TextIsANumber without a text)"),
    "argument_without_repr": raises("KeyError: (KeyError without a text)"),
    "odd_class_name": raises(r"\x1b[31mRed [bold]xxxx"),
    "class_without_a_name": raises("OfNoName: nameless"),
    "own_base_exception": raises("Outside: not an Exception"),
    "keyboard_interrupt": (FAILS, "KeyboardInterrupt"),
    "generator_exit": raises("GeneratorExit"),
    "system_exit": (FAILS, r"exits (SystemExit: \x1b[2J \ud800)"),
    "system_exit_without_text": (FAILS, "exits (SystemExit: (SystemExit without a text))"),
    "stop_iteration": raises("StopIteration"),
    "memory_error": raises("MemoryError"),
    "group": raises("ExceptionGroup: several (2 sub-exceptions)"),
    "circular_cause": raises("RuntimeError: caused by itself"),
    "pretends_to_be_another": raises("_Pretender: not what it seems"),
    "recursion": raises("RecursionError"),
    "odd_file_name": raises(r"RuntimeError: from nowhere (\x1b[31m[red]\ud800.py, line 1)"),
    "error_of_the_checker": raises("InputError: `loss` is wrong"),
    "trouble_of_the_checker": raises("Trouble: is all right"),
    "warning_as_error": raises(r"UserWarning: \x1b[2J now an error"),
    "notes": raises("RuntimeError: with a note"),
}


def no_number(words):
    return FAILS, f"no case could be judged: returns {words}"


RETURNED = {
    "none": no_number("a NoneType, None, instead of a number"),
    "text": no_number(r"a str, '\x1b[2J\ud800[red]xxx"),
    "plain_object": no_number("a object, <object object at"),
    "generator": no_number("a generator"),
    "itself": no_number("a function"),
    "awaitable": no_number("a coroutine"),
    "empty_tuple": no_number("a tuple of nothing"),
    "nested_in_itself": no_number("a list of list"),
    "outcome_of_the_checker": no_number("a Outcome"),
    "huge_array": no_number("shape (1048576, 1048576), but the reduction 'mean' asks for one number"),
    "huge_gradient": (FAILS, "the gradient of `x` has shape (1048576, 1048576), but the input has (5, 3)"),
    "huge_integer": no_number("entries of type object instead of real numbers"),
    "huge_dictionary": no_number("a dict of 0 NoneType, 1 NoneType"),
    "odd_keys": no_number(r"a gradient named '\\x1b[2J\\ud800'; the inputs are x, y"),
    "too_many_gradients": no_number("100000 gradients, but has 2 inputs: x, y"),
    "gradient_of_text": (FAILS, "the gradient of `x` has entries of type <U4 instead of real numbers"),
    "gradient_of_objects": (FAILS, "the gradient of `x` has entries of type object instead of real numbers"),
    "object_array": no_number("entries of type object instead of real numbers"),
    "structured_array": no_number(r"entries of type [('\x1b[2J\ud800', '<f8')] instead of real numbers"),
    "date": no_number("entries of type datetime64[us] instead of real numbers"),
    "complex_number": no_number("entries of type complex128 instead of real numbers"),
    "masked_array": no_number("masked entries instead of real numbers"),
    "fraction": no_number("entries of type object instead of real numbers"),
    "decimal_number": no_number("entries of type object instead of real numbers"),
    "nan_with_payload": (DIFFERS, "the value fails on the only case"),
    "infinity": (DIFFERS, "the value fails on the only case"),
    "bad_float": raises("RuntimeError: no number"),
    "array_hangs": HANGS,
    "array_exits": (FAILS, "exits (SystemExit: 0)"),
    "array_interrupts": (FAILS, "KeyboardInterrupt"),
    "array_is_no_array": raises("ValueError: object __array__ method not producing an array"),
    "bad_array": raises("RuntimeError: no attribute"),
    "bad_gradients": AGREES,
    "lying_array": AGREES,
    "bad_mapping": raises("RuntimeError: no item"),
    "gradients_without_end": raises("RuntimeError: no item"),
    "without_repr": no_number("a _TextRaises, <_TextRaises instance at"),
    "repr_hangs": HANGS,
    "odd_repr": no_number(r"a \x1b[31mRed, "),
    "half_the_time": (DIFFERS, "the target gives another value when it is called again with the same inputs"),
    "read_only": AGREES,
    "its_inputs": (DIFFERS, "the value is right, the gradient is wrong; gradients fail on the only case"),
}
BUILT = {
    "ConstructionRaises": raises(r"RuntimeError: \x1b[2J\ud800"),
    "ConstructionExits": dies("exit code 7"),
    "ConstructionWaits": HANGS,
    "ConstructionGivesAnother": raises("TypeError: 'int' object is not callable"),
    "DeletionRaises": AGREES,
    "lying_signature": unloaded("needs `c`, and no input of alignment fits it"),
    "broken_signature": AGREES,
    "odd_default": AGREES,
    "wrapped_in_itself": AGREES,
    "odd_annotations": AGREES,
    "attributes_raise": unloaded("cannot be examined: RuntimeError: no "),
    "has_everything": no_number("a _HasEverything"),
    "pretender": unloaded("cannot be examined: RuntimeError: no class"),
    "NoAttributes": unloaded("cannot be examined: RuntimeError: no "),
    "ünïcödé": AGREES,
    "renamed": AGREES,
    "number": unloaded("is a int, which cannot be called"),
    "odd_text": unloaded("is a str, which cannot be called"),
}
CHANGED = {
    "inputs": (DIFFERS, "the target changes `x` in place"),
    "inputs_behind_array_equal": (DIFFERS, "the target changes `x` in place"),
    "inputs_behind_types": (DIFFERS, "the target changes `x` in place"),
    "inputs_behind_builtins": (DIFFERS, "the target changes `x` in place"),
    "shape_of_inputs": (DIFFERS, "the target changes `x` in place"),
    "another_answer_behind_comparisons": (DIFFERS, "gives another value when it is called again"),
    "kept_inputs": AGREES,
    "kept_answers": AGREES,
    "errors_raise": AGREES,
    "errors_ignored": AGREES,
    "errors_call": AGREES,
    "warnings_raise": raises("RuntimeWarning: divide by zero"),
    "print_options": AGREES,
    "buffer_size": AGREES,
    "folder": AGREES,
    "deleted_folder": AGREES,
    "import_path": AGREES,
    "modules": ANY,
    "all_modules": ANY,
    "standard_library": AGREES,
    "builtin_functions": ANY,
    "no_import": ANY,
    "recursion_limit": AGREES,
    "language": AGREES,
    "environment": AGREES,
    "ignored_signals": AGREES,
    "timer": AGREES,
    "no_streams": AGREES,
    "closed_streams": AGREES,
    "no_garbage_collection": AGREES,
    "random_state": AGREES,
    "traced": dies("exit code 5"),
    "profiled": raises("RuntimeError: raised by a profiler"),
    "hooks": AGREES,
    "debugger": raises("BdbQuit"),
    "question": raises("EOFError"),
    "permissions": AGREES,
    "open_files": AGREES,
    "many_open_files": AGREES,
    "numpy_sum": (DIFFERS, "the target gives another value when it is called again with the same inputs"),
    "numpy_functions": (FAILS, "it replaces numpy.abs, numpy.all, numpy.any"),
    "numpy_types": (FAILS, "it replaces numpy.float64, numpy.generic, numpy.ndarray"),
    "numpy_passes_all": AGREES,
    "the_checker": dies("exit code 1"),
}
PRINTED = {
    "escape_sequences": AGREES,
    "surrogates": AGREES,
    "flood": AGREES,
    "flood_of_descriptors": AGREES,
    "last_words": dies(r"exit code 7: \x1b[2J"),
    "flood_and_last_words": dies(r"exit code 7: \x1b[2J"),
    "reads_input": (DIFFERS, "the value fails on the only case"),
    "garbage_into_the_pipe": GARBLES,
    "zeros_into_the_pipe": GARBLES,
    "huge_length_into_the_pipe": GARBLES,
    "json_into_the_pipe": GARBLES,
    "lines_into_the_pipe": GARBLES,
    "pickle_into_the_pipe": GARBLES,
    # One case was judged; calling again is what fails.
    "repeated_into_the_pipe": (DIFFERS, "reordering the samples keeps the value: closes or garbles the pipe"),
    "answer_to_another_request_into_the_pipe": GARBLES,
    "closes_everything": GARBLES,
    "closes_the_pipes": GARBLES,
    "steals_requests": ANY,
}


def _forged(words):
    return FAILS, f"closes or garbles the pipe to its parent: {words}"


FORGED = {
    "format_is_refused": _forged("`dtype` is wrong"),
    "all_formats_are_refused": _forged("`device` is wrong"),
    "outcomes_are_refused": _forged("`loss` is wrong"),
    "numbers_are_refused": (FAILS, "raises InputError: `loss` is wrong"),
    "messages_are_errors": _forged("`loss` is wrong"),
    "messages_are_of_another_target": _forged("`loss` is wrong"),
    "messages_are_of_a_missing_package": _forged("pip install something-else"),
    "messages_are_of_another_signature": _forged("`loss` is wrong"),
    "answers_are_errors": _forged("`loss` is wrong"),
    "replies_are_errors": _forged(r"\x1b[2J\ud800"),
    "lines_are_errors": _forged("`loss` is wrong"),
    "errors_have_another_name": _forged("a name of the target"),
    "unavailable": _forged("a framework is missing"),
    "error_into_the_pipe": _forged("`loss` is wrong"),
}
ENDED = {
    "quietly": dies("exit code 0"),
    "with_a_status": dies("exit code 7"),
    "segmentation_fault": dies("signal SIGSEGV"),
    "abort": dies("signal SIGABRT"),
    "killed": dies("signal SIGKILL"),
    "terminated": dies("signal SIGTERM"),
    "hung_up": dies("signal SIGHUP"),
    "interrupted": (FAILS, "KeyboardInterrupt"),
    "alarmed": dies("signal SIGALRM"),
    "illegal_instruction": dies("signal SIGILL"),
    "floating_point_signal": dies("signal SIGFPE"),
    "real_time_signal": dies("signal "),
    "own_group": dies("signal SIGKILL"),
    "another_program": dies("exit code 0"),
    "another_program_that_hangs": GARBLES,
    "out_of_time": dies("signal SIGXCPU"),
    "stack_overflow": ANY,
    "out_of_memory": (FAILS, "MemoryError"),
    "waits": HANGS,
    "sleeps": HANGS,
    "loops": HANGS,
    "stops": HANGS,
    "waits_and_ignores_signals": HANGS,
    "waits_in_a_chain_of_handlers": HANGS,
    "at_exit": AGREES,
    "exits_with_a_hook_that_waits": (FAILS, "exits (SystemExit: 0)"),
    "threads_that_never_end": AGREES,
    "thread_that_ends_it_later": ANY,
    "program": AGREES,
    "program_in_a_session_of_its_own": AGREES,
    "program_in_a_session_of_its_own_and_hangs": HANGS,
    "program_that_holds_the_pipe": dies("exit code 7"),
    "program_that_inherits_the_pipe": dies("exit code 7"),
    "daemon": AGREES,
    "daemon_that_ends_its_parent": dies("exit code 7"),
    "fork_bomb": HANGS,
    "fork_that_answers_twice": AGREES,
    "fork_that_goes_on_alone": dies("exit code 7"),
    "goes_on_in_new_processes": dies("exit code 0"),
    "goes_on_in_new_processes_of_another_session": AGREES,
    "stopped_program": AGREES,
    "kills_the_parent": ANY,
    "terminates_the_parent": HANGS,
    "interrupts_the_parent": HANGS,
    "ends_the_group_of_the_parent": HANGS,
}
IMPORTED = {
    "another_import": ANY,
    "another_module": AGREES,
    "attributes_raise": unloaded(r"cannot be examined: RuntimeError: \x1b[2J\ud800"),
    "base_exception": unloaded(r"base_exception.Outside\x1b[2J: not an Exception"),
    "closes_everything": unloaded("cannot be loaded: importing it closes or garbles the pipe to its parent"),
    "deletes_its_file": AGREES,
    "errors_raise": AGREES,
    "exits_hard": unloaded("cannot be loaded: importing it ends the process with exit code 7"),
    "floods": AGREES,
    "hundred_megabytes": unloaded("RuntimeError: aaa"),
    "input_error": unloaded("InputError: `loss` is wrong"),
    "keyboard_interrupt": unloaded("KeyboardInterrupt"),
    "leaves_a_program": AGREES,
    "many_lines": unloaded("RuntimeError: line"),
    "missing_package": unloaded(r"imports \x1b[2J\ud800, and there is no module of that name"),
    "odd_text": unloaded(r"RuntimeError: \x1b[2J\ud800 [red]\u202e\x00"),
    "hides_writing": (DIFFERS, "the target changes `x` in place"),
    "hides_another_answer": (DIFFERS, "gives another value when it is called again"),
    "refuses_usage": unloaded("refuses_usage.py:f closes or garbles the pipe to its parent: `loss` is wrong"),
    "replaces_the_answers": unloaded("closes or garbles the pipe to its parent: pip install x"),
    "patches_numpy": (DISTRUST, "the target replaces numpy.asarray, and its answers are read with that"),
    "recursion": unloaded("RecursionError"),
    "removes_itself": AGREES,
    "replaces_numpy": unloaded("import of numpy halted"),
    "segmentation_fault": unloaded("cannot be loaded: importing it ends the process with signal SIGSEGV"),
    "syntax_error": unloaded("SyntaxError"),
    "system_exit": unloaded(r"exits while it is imported (SystemExit: \x1b[2J\ud800)"),
    "target_error": unloaded(r"TargetError: \x1b[2J\ud800"),
    "text_raises": unloaded("cannot be imported"),
    "waits": unloaded("cannot be loaded: importing it does not return within 0.3 s"),
}
"""Files that do it while they are imported."""
CALLED = {
    f"{file}:{name}": expected
    for file, kinds in {
        "raised.py": RAISED,
        "returned.py": RETURNED,
        "built.py": BUILT,
        "changed.py": CHANGED,
        "printed.py": PRINTED,
        "forged.py": FORGED,
    }.items()
    for name, expected in kinds.items()
}
"""Target to exit status and a part of the sentence; with no status, only that it is contained."""


def kinds_in(file):
    """The targets of a file: what is public in it and defined there."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    for node in tree.body:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        names += [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        yield from (f"{file}:{name}" for name in names if not name.startswith("_") and not name.isupper())


def is_printable(text, longest=20_000):
    """Also where a system collects it as a log, and takes some lines for commands."""
    commands = re.search(r"^\s*::|##\w*\[", text, re.MULTILINE)
    return not commands and len(text) < longest and all(c.isprintable() or c in "\n\t" for c in text)


def check(target, expected, **options):
    """Verify a target: there is a report, it says what is expected, and it can be shown."""
    report = verify_with(target, **CASE, **options)
    status, words = expected
    assert status in (None, report.exit_code), report.reason
    assert words in report.reason
    assert is_printable(page_of(report).text(width=80))
    assert is_printable(report.to_json())
    assert is_printable(report.to_junit())
    assert json.loads(report.to_json())["exit_code"] == report.exit_code
    ET.fromstring(report.to_junit())
    return report
