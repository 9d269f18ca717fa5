"""What fails in 16 bits is explained where bounds tell more: in float32, if it fails there too."""

import numpy as np
import pytest

from nceref import losses, verify


def masked_by(size):
    """The normalized temperature-scaled loss, in the format of its rows, with the self-contrast lowered by a number."""

    def nt_xent(z1, z2, temperature):
        z = np.concatenate([z1, z2]).astype(np.float32)
        z = (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(z1.dtype)
        logits = z @ z.T / temperature - np.asarray(size, z1.dtype) * np.eye(len(z), dtype=z1.dtype)
        logits = logits.astype(np.float32)
        own = np.diagonal(np.roll(logits, len(z1), axis=1))
        return np.mean(np.logaddexp.reduce(logits, axis=1) - own)

    return nt_xent


@pytest.mark.parametrize(("size", "dtype"), [(1e2, "float16"), (1e3, "float16"), (1e4, "float32")])
def test_a_mask_that_leaks_is_called_that_in_every_format(size, dtype):
    report = verify(masked_by(size), "nt_xent", suite="quick", dtype=dtype)
    assert [d.id for d in report.diagnosis] == ["mask-leaks"]
    assert f"masked logits lowered by {size:g}" in report.diagnosis[0].sentence
    assert report.diagnosis[0].sentence.startswith("in float32, where it fails too, your loss") == (dtype == "float16")
    assert "fails on" in report.reason


def test_what_only_16_bits_show_is_explained_there():
    def overflows(z1, z2, temperature):
        # 1e3 squared is out of the range of float16.
        return masked_by(6e4)(z1, z2, temperature) * (np.asarray(1e3, z1.dtype) ** 2 / np.asarray(1e6, np.float32))

    report = verify(overflows, "nt_xent", suite="quick", dtype="float16")
    assert report.diagnosis
    assert not any(d.sentence.startswith("in float32") for d in report.diagnosis)


def test_of_inputs_that_a_call_changes_the_remedy_is_to_leave_them():
    """The gradient is then one by what the call has made of them, and its factor is no remedy."""

    def scales_in_place(queries, keys, temperature):
        lengths = np.linalg.norm(queries, axis=1, keepdims=True)
        value, grads = losses.info_nce.value_and_grad(queries, keys, temperature=temperature)
        queries /= lengths
        return value, {**grads, "queries": lengths * grads["queries"]}

    report = verify(scales_in_place, loss="info_nce", suite="quick")
    assert report.diagnosis[0].id == "gradient-constant-factor"
    fix = "Write into new arrays: your loss changes `queries` in place. Then look at the gradient again."
    assert (report.diagnosis[0].fix, report.diagnosis[0].threads) == (fix, ())
