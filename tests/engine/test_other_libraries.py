"""PyTorch tensors without a graph go through the same engine; what they are compared with is NumPy."""

import numpy as np
import pytest

from nceref import get_loss
from nceref.checks.cases import cases
from nceref.tolerance import bounds

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tensors_give_what_arrays_give(loss_name, dtype):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random", "odd", "lonely"), (0.3, 0.01)):
        inputs = case.cast(dtype)
        tensors = {k: torch.from_numpy(np.array(v)) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        copies = {k: v.clone() for k, v in tensors.items() if isinstance(v, torch.Tensor)}
        (value, grads), (expected, truth) = loss.value_and_grad(**tensors), loss.value_and_grad(**inputs)
        allowed = bounds(loss, **inputs)
        assert abs(float(value) - expected) <= 2 * allowed.value
        for name, grad in truth.items():
            assert np.all(np.abs(np.asarray(grads[name]) - grad) <= 2 * allowed.grads[name]), (case.name, name)
        assert all(torch.equal(tensors[k], copy) for k, copy in copies.items())
