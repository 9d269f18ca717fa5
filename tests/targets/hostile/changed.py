"""Targets that change the interpreter, NumPy or their inputs, and answer right."""

import builtins
import gc
import json
import locale
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import threading
import warnings

import numpy as np
from answer import right

KEPT = []


def inputs(x, y):
    x *= 2
    return right(x / 2, y)


def kept_inputs(x, y):
    for array in KEPT:
        array[:] = np.nan
    KEPT.extend([x, y])
    return right(x, y)


def kept_answers(x, y):
    for array in KEPT:
        array[...] = np.nan
    value, grads = right(x, y)
    KEPT.extend(grads.values())
    return value, grads


def errors_raise(x, y):
    np.seterr(all="raise")
    return right(x, y)


def errors_ignored(x, y):
    np.seterr(all="ignore")
    return right(x, y)


def errors_call(x, y):
    np.seterrcall(lambda kind, flag: os._exit(1))
    np.seterr(all="call")
    return right(x, y)


def warnings_raise(x, y):
    warnings.simplefilter("error")
    np.float64(1.0) / np.float64(0.0)
    return right(x, y)


def print_options(x, y):
    np.set_printoptions(precision=1, formatter={"float": lambda number: "\x1b[2J"})
    return right(x, y)


def buffer_size(x, y):
    np.setbufsize(16)
    return right(x, y)


def folder(x, y):
    os.chdir("/")
    return right(x, y)


def deleted_folder(x, y):
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
    return right(x, y)


def import_path(x, y):
    sys.path[:] = ["/nowhere"]
    sys.path_hooks.clear()
    sys.meta_path.clear()
    return right(x, y)


def modules(x, y):
    for name in [name for name in sys.modules if name.startswith(("numpy", "nceref", "json", "struct", "pickle"))]:
        del sys.modules[name]
    return right(x, y)


def all_modules(x, y):
    sys.modules.clear()
    return right(x, y)


def standard_library(x, y):
    for module in (json, struct):
        for name in ("dumps", "loads", "pack", "unpack", "Struct"):
            if hasattr(module, name):
                setattr(module, name, lambda *args, **kwargs: b"\x1b[2J")
    os.write = os.read = os.fdopen = lambda *args, **kwargs: 0
    return right(x, y)


def builtin_functions(x, y):
    answer = right(x, y)
    for name in ("len", "print", "open", "isinstance", "getattr", "str", "repr", "dict", "tuple", "sorted"):
        setattr(builtins, name, lambda *args, **kwargs: 0)
    return answer


def no_import(x, y):
    answer = right(x, y)
    del builtins.__import__
    return answer


def recursion_limit(x, y):
    sys.setrecursionlimit(160)
    return right(x, y)


def language(x, y):
    locale.setlocale(locale.LC_ALL, "C")
    os.environ["LC_ALL"] = "tr_TR.ISO-8859-9"
    return right(x, y)


def environment(x, y):
    os.environ.clear()
    return right(x, y)


def ignored_signals(x, y):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    return right(x, y)


def timer(x, y):
    def ring(*_):
        raise RuntimeError("rings long after the call")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 600)
    return right(x, y)


def no_streams(x, y):
    sys.stdout = sys.stderr = sys.stdin = sys.__stdout__ = sys.__stderr__ = None
    return right(x, y)


def closed_streams(x, y):
    sys.stdout.close()
    sys.stderr.close()
    return right(x, y)


def no_garbage_collection(x, y):
    gc.disable()
    gc.freeze()
    return right(x, y)


def random_state(x, y):
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what it is about
    return right(x, y)


def traced(x, y):
    sys.settrace(lambda frame, event, argument: os._exit(5) if frame.f_code.co_name == "loss_of" else None)
    return right(x, y)


def profiled(x, y):
    def profile(*_):
        raise RuntimeError("raised by a profiler")

    answer = right(x, y)
    sys.setprofile(profile)
    return answer


def hooks(x, y):
    sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *_: os._exit(9)
    sys.displayhook = None
    return right(x, y)


def debugger(x, y):
    breakpoint()
    return right(x, y)


def question(x, y):
    return float(input("value? "))


def permissions(x, y):
    os.umask(0o777)
    return right(x, y)


def open_files(x, y):
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return right(x, y)


def many_open_files(x, y):
    for _ in range(100):
        os.dup(0)
    return right(x, y)


def numpy_sum(x, y):
    answer = right(x, y)
    np.sum = lambda *args, **kwargs: np.float64(7.0)
    return answer


def numpy_functions(x, y):
    answer = right(x, y)
    for name in ("asarray", "array", "exp", "abs", "any", "all", "array_equal", "isfinite", "shape", "zeros"):
        setattr(np, name, lambda *args, **kwargs: answer[0])
    np.linalg.norm = lambda *args, **kwargs: 1.0
    return answer


def numpy_types(x, y):
    answer = right(x, y)
    np.ndarray = np.generic = np.float64 = object
    return answer


def numpy_passes_all(x, y):
    # Every comparison holds: a checker that used these would pass anything.
    answer = right(x, y)
    np.any = lambda *args, **kwargs: False
    np.isfinite = np.abs = lambda *args, **kwargs: np.zeros(())
    return answer


def the_checker(x, y):
    from nceref.targets import attempt
    from nceref.targets.frameworks import call, numpy

    call.value_of = numpy.value_of = lambda *args: 1.0
    attempt.Outcome = lambda *args: "\x1b[2J"
    return right(x, y)


def inputs_behind_array_equal(x, y):
    np.array_equal = lambda *args, **kwargs: True
    return inputs(x, y)


def inputs_behind_types(x, y):
    answer = inputs(x, y)
    np.ndarray = type("ndarray", (), {})
    np.ndarray.tobytes = np.ndarray.astype = lambda *args: b""
    return answer


def inputs_behind_builtins(x, y):
    answer = inputs(x, y)
    builtins.zip = builtins.any = builtins.all = builtins.bool = lambda *args, **kwargs: []
    return answer


def shape_of_inputs(x, y):
    answer = right(x, y)
    x.shape = x.shape[::-1]
    return answer


def another_answer_behind_comparisons(x, y):
    value, grads = right(x, y)
    np.array_equal = np.all = lambda *args, **kwargs: True
    np.abs = np.isfinite = lambda *args, **kwargs: np.zeros(())
    KEPT.append(x)
    return value * (1 + 1e-9 * len(KEPT)), grads
