"""Threads: results within the bound and the same on every run; settings are checked and put back."""

import _thread
import threading
import time

import numpy as np
import pytest
from sweep import every_loss, sweep

from nceref import InputError, config, get_loss
from nceref.checks.cases import cases
from nceref.engine import settings, threads
from nceref.tolerance import bounds

pytestmark = pytest.mark.machine


@pytest.fixture
def eager(monkeypatch):
    """Threads start even where they do not pay."""
    monkeypatch.setattr(settings, "LEAST_PAIRS", 0)


@pytest.mark.usefixtures("eager")
@every_loss
def test_results_stay_within_the_bound_and_repeat_exactly(loss_name):
    loss = get_loss(loss_name)
    for number, case in enumerate(cases(loss.declaration, ("odd", "lonely"), (0.3,))):
        value, grads = loss.value_and_grad(**case.inputs)
        with config(block=2, threads=2 + number % 2):
            first, second = (loss.value_and_grad(**case.inputs) for _ in range(2))
        assert first[0] == second[0]
        allowed = bounds(loss, **case.inputs)
        assert abs(first[0] - value) <= 2 * allowed.value
        for name, grad in grads.items():
            assert np.array_equal(first[1][name], second[1][name])
            assert np.all(np.abs(first[1][name] - grad) <= 2 * allowed.grads[name]), (case.name, name)


@pytest.mark.usefixtures("eager")
def test_an_error_in_a_thread_reaches_the_caller():
    x = 1e200 * np.eye(4)
    with config(block=1, threads=2), pytest.raises(InputError, match="leaves the range of float64"):
        get_loss("info_nce")(x, x, temperature=0.1, normalize="none")


@pytest.mark.parametrize("end", [ZeroDivisionError, KeyboardInterrupt])
def test_when_one_thread_fails_or_the_caller_is_interrupted_the_others_end(end):
    seen, running, begun = [], [], threading.Event()

    def work(strips):
        running.append(None)
        for strip in strips:
            if strip.start == 0:
                begun.wait(10)
                if end is ZeroDivisionError:
                    running.pop()
                    return 1 // 0
                _thread.interrupt_main()
            begun.set()
            seen.append(strip)
            time.sleep(0.001)
        running.pop()
        return None

    with pytest.raises(end):
        threads.share(work, [slice(i, i + 1) for i in range(20000)], 2)
    # Without an end in between it would be all 10,000 strips of the other thread.
    assert len(seen) < 5000
    assert running == []


@sweep("bad", [0, -1, 1.5, True, "2", 10**9, 10**400])
def test_a_count_that_is_no_positive_integer_is_refused(bad):
    with pytest.raises(InputError, match="`threads` must be an integer from 1 to 1,024, got"):
        config(threads=bad)


def shape_and_threads():
    return settings.block_shape(1000, 1000, np.zeros(1), whole_rows=False)[0], settings.thread_count()


def test_settings_hold_from_the_call_on_and_are_put_back_by_with():
    before = shape_and_threads()
    with config(block=7, threads=3):
        assert shape_and_threads() == (7, 3)
        with config(block=9):
            assert shape_and_threads() == (9, 3)
        inner = config(threads=1)
        assert settings.thread_count() == 1
        with inner:
            pass
        assert settings.thread_count() == 3
    assert shape_and_threads() == before


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("NCEREF_THREADS", "3")
    assert settings.thread_count() == 3
    monkeypatch.setenv("NCEREF_THREADS", "many")
    with pytest.raises(InputError, match="the environment variable NCEREF_THREADS must be an integer from 1"):
        settings.thread_count()


def test_small_batches_start_no_thread(monkeypatch):
    monkeypatch.setattr(threads, "_pool", None)
    x = np.eye(8)
    assert get_loss("nt_xent")(x, x, temperature=0.1) > 0


@pytest.mark.usefixtures("eager")
def test_blas_gets_its_threads_back_after_calls_that_overlap():
    """The limit is the process's: the first caller sets it, the last one lifts it."""
    from threadpoolctl import threadpool_info, threadpool_limits

    def blas():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    # Another test may have loaded a second BLAS since, that of SciPy, which the package does not use.
    threads._controller.cache_clear()
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        with threads._blas:
            inside = blas()
            with threads._blas:
                pass
            assert blas() == inside
        assert blas() == before
    assert set(inside) <= {1}


@pytest.mark.usefixtures("eager")
def test_shares_are_computed_where_no_thread_can_be_started(monkeypatch):
    x = np.random.default_rng(0).standard_normal((6, 3))
    with config(block=2, threads=2):
        expected = get_loss("nt_xent")(x, x[::-1], temperature=0.1)

        class ShutDown:
            def submit(self, *job):
                msg = "cannot schedule new futures after interpreter shutdown"
                raise RuntimeError(msg)

        monkeypatch.setattr(threads, "_pool", lambda count: ShutDown())
        assert get_loss("nt_xent")(x, x[::-1], temperature=0.1) == expected
