"""Many cheap cases in one test: pytest takes longer to set up a test than most of them take."""

import functools
import inspect

import pytest

from nceref import registry


def sweep(names, cases, ids=None):
    """Like `pytest.mark.parametrize`, as one test: every case is run, and each that fails is in what it raises.

    A case that skips is left out; where all do, the test is skipped. Fixtures are made once, for all cases.

    Parameters
    ----------
    names : str or sequence of str
        As for `parametrize`.
    cases : iterable
        Values of one parameter, or tuples of several.
    ids : callable or sequence, optional
        As for `parametrize`.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [_values(case, len(names)) for case in cases]

    def decorate(test):
        @functools.wraps(test)
        def run(**fixtures):
            failed, skipped = [], []
            for number, values in enumerate(listed):
                try:
                    test(**fixtures, **dict(zip(names, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as error:
                    error.add_note(f"case: {_label(ids, number, values)}")
                    failed.append(error)
            if failed:
                msg = f"{len(failed)} of {len(listed)} cases of {test.__name__}"
                raise BaseExceptionGroup(msg, failed)
            if listed and len(skipped) == len(listed):
                raise skipped[0]

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate


def _values(case, count):
    if isinstance(case, type(pytest.param())):
        assert not case.marks
        return case.values
    return tuple(case) if count > 1 else (case,)


def _label(ids, number, values):
    if ids is not None and not callable(ids):
        return ids[number]
    named = [ids(x) if ids else None for x in values]
    return "-".join(
        str(getattr(x, "__name__", ascii(x)) if name is None else name)[:200]
        for x, name in zip(values, named, strict=True)
    )


every_loss = sweep("loss_name", registry.names("nceref.family"))
"""In place of a test for each loss, which one gets that asks for `loss_name`."""
