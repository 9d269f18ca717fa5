"""Other ways of calling a target: each has a program that only this way shows to be wrong, and says so."""

import numpy as np
import pytest
from programs import plain

import nceref
from nceref import get_loss
from nceref.errors import InputError
from nceref.verification.modes import MODES

QUICK = {"loss": "info_nce", "suite": "quick"}
BY_THEMSELVES = {name for name, mode in MODES.items() if not mode.optional}


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def jax():
    return pytest.importorskip("jax", reason="jax is not installed")


def results(report):
    return {r.quantity.removeprefix("mode."): r.status for r in report.results if r.quantity.startswith("mode.")}


def ids(report):
    return [one.id for one in report.diagnosis]


def as_if_dense(x):
    """The array as a program reads it that takes the memory behind it for its rows, one after the other."""
    start = x if x.base is None else x.base
    return np.frombuffer(start.tobytes()[: x.nbytes], x.dtype).reshape(x.shape)


def reads_memory(queries, keys, temperature):
    return plain.info_nce(as_if_dense(queries), keys, temperature)


def sums_wrongly(queries, keys, temperature, reduction="mean"):
    value = plain.info_nce(queries, keys, temperature)
    return value if reduction == "mean" else value * (len(queries) + 1)


def kept_from_the_first_call():
    calls = []

    def program(queries, keys, temperature):
        calls.append((queries.tobytes(), float(temperature)))
        # The second of two calls in a row is the same still.
        return plain.info_nce(queries, keys, temperature) * (1.0 if len(calls) < 3 or calls[-1] != calls[0] else 1.1)

    return program


def test_all_that_apply_are_judged_and_hold_for_a_right_program():
    report = nceref.verify(plain.with_gradients, **QUICK)
    assert report.ok
    assert results(report) == dict.fromkeys(("again", "strided", "offset", "transposed", "after-larger"), "pass")


def test_memory_that_is_read_as_if_it_had_no_gaps_is_named():
    report = nceref.verify(reads_memory, **QUICK)
    assert report.exit_code == 1
    assert ids(report) == ["memory-layout-ignored"]
    assert {name for name, status in results(report).items() if status == "fail"} == {"strided", "offset", "transposed"}


def test_a_layout_that_is_refused_is_a_remark():
    def contiguous_only(queries, keys, temperature):
        if not queries.flags.c_contiguous:
            msg = "contiguous arrays, please"
            raise ValueError(msg)
        return plain.info_nce(queries, keys, temperature)

    report = nceref.verify(contiguous_only, **QUICK)
    assert report.ok
    assert results(report)["strided"] == "skip"


def test_another_reduction_of_the_same_program_is_judged():
    report = nceref.verify(sums_wrongly, **QUICK)
    assert ids(report) == ["another-reduction-wrong"]
    assert "with the reduction sum: value: yours" in report.diagnosis[0].sentence


def test_what_stays_from_an_earlier_call_is_not_blamed_on_anything_else():
    report = nceref.verify(kept_from_the_first_call(), **QUICK)
    assert ids(report) == ["earlier-calls-kept"]
    # Where the same call does not give the same, other ways of calling are not tried.
    assert results(report) == {"again": "fail"}


class MaskOfTheLargestBatch:
    """Right until a batch is smaller than one before it: the mask keeps its size."""

    rows = 0

    def __call__(self, logits, target, class_counts):
        self.rows = max(self.rows, len(logits))
        return get_loss("balanced_softmax")(logits, target, class_counts) * len(logits) / self.rows


class MaskOfEachSize:
    """Right until the labels are others: the mask is kept by the size of the batch."""

    def __init__(self):
        self.same = {}

    def __call__(self, embeddings, labels, temperature):
        same = self.same.setdefault(len(labels), labels[:, None] == labels)
        return get_loss("supcon_out")(embeddings, mask=same & ~np.eye(len(labels), dtype=bool), temperature=temperature)


def test_another_batch_of_the_same_size_comes_before():
    report = nceref.verify(MaskOfEachSize, loss="supcon_out", suite="quick")
    assert ids(report) == ["earlier-calls-kept"]
    assert "after another batch of the same size" in report.reason


def test_a_larger_batch_before_has_the_constants_of_the_case():
    # The largest case has other class counts: the largest that shares them is called first.
    report = nceref.verify(MaskOfTheLargestBatch, loss="balanced_softmax", suite="quick")
    assert ids(report) == ["earlier-calls-kept"]
    assert {name for name, status in results(report).items() if status == "fail"} == {"after-larger"}


def moco(queries, keys, queue, temperature):
    a, b, c = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys, queue))
    logits = np.concatenate([np.sum(a * b, axis=1, keepdims=True), a @ c.T], axis=1) / temperature
    top = logits.max(axis=1)
    return np.mean(np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top - logits[:, 0])


class GivenItsQueue:
    def __init__(self, queue):
        self.queue = queue

    def __call__(self, queries, keys, temperature):
        return moco(queries, keys, self.queue, temperature)


class GivenItsQueueAndKeepsRows(GivenItsQueue):
    rows = 0

    def __call__(self, queries, keys, temperature):
        self.rows = max(self.rows, len(queries))
        return super().__call__(queries, keys, temperature) * len(queries) / self.rows


class PutsKeysIntoItsQueue(GivenItsQueue):
    def __call__(self, queries, keys, temperature):
        value = super().__call__(queries, keys, temperature)
        self.queue = np.concatenate([keys, self.queue])[: len(self.queue)]
        return value


MOCO = {"loss": "moco", "suite": "quick"}


def test_an_object_that_was_made_for_a_case_is_called_before_with_what_it_was_made_of():
    report = nceref.verify(GivenItsQueue, framework="numpy", **MOCO)
    assert report.ok, report.reason
    assert results(report)["after-larger"] == "pass"
    report = nceref.verify(GivenItsQueueAndKeepsRows, framework="numpy", **MOCO)
    assert ids(report) == ["earlier-calls-kept"]
    assert {name for name, status in results(report).items() if status == "fail"} == {"after-larger"}
    assert "; the call before has changed `rows`" in report.diagnosis[0].sentence


def test_state_that_a_program_keeps_by_design_is_named():
    report = nceref.verify(PutsKeysIntoItsQueue, framework="numpy", **MOCO)
    words = "gives another value when it is called again with the same inputs; the first call has changed `queue`"
    assert words in report.reason


CALLS = []


def test_state_around_a_function_is_named():
    rows = []

    def keeps(queries, keys, temperature):
        rows.append(len(queries))
        CALLS.append(len(queries))
        keeps.last = len(queries)
        return plain.info_nce(queries, keys, temperature) * len(queries) / max(rows)

    report = nceref.verify(keeps, loss="info_nce", suite="quick", case="designed-0.3")
    assert report.ok, "what is kept changes nothing on one case"

    def counts(queries, keys, temperature):
        rows.append(len(queries))
        CALLS.append(len(queries))
        counts.last = len(rows)
        return plain.info_nce(queries, keys, temperature) * len(rows)

    report = nceref.verify(counts, loss="info_nce", suite="quick", case="designed-0.3")
    sentences = {r.quantity: r.why for r in report.results}
    assert sentences["behavior.not-deterministic"].endswith("; the first call has changed `CALLS`, `last`, `rows`")
    assert ids(report) == ["earlier-calls-kept"]


def test_a_torch_module_that_was_made_for_a_case_is_called_before_with_what_it_was_made_of(torch):
    class Module(torch.nn.Module):
        def __init__(self, queue):
            super().__init__()
            self.register_buffer("queue", queue.detach().clone())

        def forward(self, queries, keys, temperature):
            a, b, c = (torch.nn.functional.normalize(x) for x in (queries, keys.detach(), self.queue))
            logits = torch.cat([torch.sum(a * b, dim=1, keepdim=True), a @ c.T], dim=1) / temperature
            return torch.nn.functional.cross_entropy(logits, torch.zeros(len(a), dtype=torch.int64))

    class PutsIn(Module):
        def forward(self, queries, keys, temperature):
            value = super().forward(queries, keys, temperature)
            self.queue = torch.cat([keys.detach(), self.queue])[: len(self.queue)]
            return value

    class LeavesInTheGraph(Module):
        def __init__(self, queue):
            super().__init__(queue)
            self.queue = queue

    report = nceref.verify(Module, **MOCO)
    assert report.ok, report.reason
    assert results(report)["after-larger"] == "pass"
    words = "gives another value when it is called again with the same inputs; the first call has changed `queue`"
    assert words in nceref.verify(PutsIn, **MOCO).reason
    # The gradient of what the constructor was handed is that of the first call.
    report = nceref.verify(LeavesInTheGraph, **MOCO)
    assert ids(report) == ["constants-get-gradient"]
    assert "behavior.not-deterministic" not in {r.quantity for r in report.results}


def test_a_wrong_program_is_not_blamed_for_the_way_it_is_called():
    report = nceref.verify(lambda queries, keys, temperature: 1 + plain.info_nce(queries, keys, temperature), **QUICK)
    assert not results(report)


def test_beside_a_wrong_gradient_what_is_right_is_judged_in_every_way():
    def program(queries, keys, temperature):
        value, grads = plain.with_gradients(as_if_dense(queries), keys, temperature)
        return value, {**grads, "temperature": 0 * temperature}

    report = nceref.verify(program, **QUICK)
    assert ids(report) == ["temperature-detached", "memory-layout-ignored"]
    assert not report.diagnosis[1].sentence.startswith("right")
    assert {name for name, status in results(report).items() if status == "fail"} == {"strided", "offset", "transposed"}


@pytest.mark.parametrize(("modes", "message"), [("compile", "targets of torch"), ("fast", "one of 'compile'")])
def test_a_mode_that_there_is_not_is_refused_by_name(modes, message):
    with pytest.raises(InputError, match=f"`modes` .*{message}"):
        nceref.verify(plain.info_nce, modes=modes, **QUICK)


def torch_info_nce(queries, keys, temperature, reduction="mean"):
    import torch
    from torch.nn import functional

    logits = functional.normalize(queries) @ functional.normalize(keys).T / temperature
    return functional.cross_entropy(logits, torch.arange(len(logits)), reduction=reduction)


def test_a_right_torch_program_holds_in_every_mode(torch):
    report = nceref.verify(torch_info_nce, dtype="float32", modes=["autocast", "tf32"], **QUICK)
    assert report.ok, report.reason
    assert results(report) == dict.fromkeys(BY_THEMSELVES - {"mean", "jit", "vmap"} | {"autocast", "tf32"}, "pass")
    rows = nceref.verify(torch_info_nce, reduction="none", **QUICK)
    assert results(rows) == dict.fromkeys(BY_THEMSELVES - {"jit", "vmap"}, "pass")


def test_a_backward_that_cuts_large_gradients_is_no_multiple_of_the_upstream_gradient(torch):
    def program(queries, keys, temperature):
        logits = torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(keys).T / temperature
        if logits.requires_grad:
            # No gradient by a logit of a mean is as large.
            logits.register_hook(lambda g: g.clamp(-1, 1))
        return torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)))

    report = nceref.verify(program, framework="torch", **QUICK)
    assert ids(report) == ["upstream-gradient-ignored"]


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_backward_that_ignores_the_upstream_gradient(torch, reduction, learned):
    class Known(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, grads, *inputs):
            ctx.save_for_backward(*grads)
            return value

        @staticmethod
        def backward(ctx, upstream):
            return None, None, *ctx.saved_tensors

    def wrong(queries, keys, temperature, reduction="mean"):
        inner = [x.detach().requires_grad_() for x in (queries, keys, temperature)]
        with torch.enable_grad():
            value = torch_info_nce(*inner, reduction)
            grads = torch.autograd.grad(value.sum(), inner)
        temperature = temperature if learned else temperature.detach()
        return Known.apply(value.detach(), grads, queries, keys, temperature)

    report = nceref.verify(wrong, reduction=reduction, **QUICK)
    assert ids(report) == [*([] if learned else ["temperature-detached"]), "upstream-gradient-ignored"]
    assert "the gradient stays that for 1" in report.diagnosis[-1].sentence


def test_evaluation_mode_and_no_grad_are_judged(torch):
    class Module(torch.nn.Module):
        def forward(self, queries, keys, temperature):
            return torch_info_nce(queries, keys, temperature) * (1.0 if self.training else 0.5)

    assert ids(nceref.verify(Module(), **QUICK)) == ["evaluation-mode-differs"]

    def without_graph(queries, keys, temperature):
        return torch_info_nce(queries, keys, temperature) * (1.0 if torch.is_grad_enabled() else 0.5)

    assert ids(nceref.verify(without_graph, **QUICK)) == ["no-grad-differs"]


def test_jax_programs_are_compiled_and_mapped(jax):
    import jax.numpy as jnp

    def right(queries, keys, temperature):
        a, b = (x / jnp.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
        logits = a @ b.T / temperature
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - jnp.diagonal(logits))

    def traced(queries, keys, temperature):
        return right(queries, keys, temperature) * (0.5 if isinstance(queries, jax.core.Tracer) else 1.0)

    report = nceref.verify(right, **QUICK)
    assert report.ok
    assert {"jit", "vmap", "upstream"} <= {name for name, status in results(report).items() if status == "pass"}
    assert not nceref.verify(traced, **QUICK).ok
