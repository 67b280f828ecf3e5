"""AdamW against torch.optim.AdamW."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import seqlib.np as snp

OPTIONS = [
    {"lr": 0.1},
    {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.3},
    {"lr": 0.02, "weight_decay": 0.0},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_equals_torch_over_several_steps(options, rng):
    params = {"w": rng.standard_normal((3, 5)), "b": rng.standard_normal(7)}
    twins = {name: torch.nn.Parameter(torch.tensor(p)) for name, p in params.items()}
    optimizer, state = torch.optim.AdamW(twins.values(), **options), {}
    for _ in range(5):
        grads = {name: rng.standard_normal(p.shape) for name, p in params.items()}
        for name, p in twins.items():
            p.grad = torch.tensor(grads[name])
        optimizer.step()
        params, state = snp.adamw_step(params, grads, state, **options)
        for name, p in params.items():
            assert_allclose(p, twins[name].detach(), rtol=1e-12, atol=1e-14)
    assert state["step"] == 5


def test_the_first_step_has_the_size_of_the_learning_rate():
    params, grads = {"w": np.zeros(3)}, {"w": np.array([1e-3, -5.0, 0.0])}
    params, _ = snp.adamw_step(params, grads, {}, lr=0.1)
    assert_allclose(params["w"], [-0.1, 0.1, 0.0], rtol=1e-4)


def test_weight_decay_is_not_scaled_by_the_gradient():
    """Adam with the penalty in the gradient would divide it away."""
    params, grads = {"w": np.array([2.0, 2.0])}, {"w": np.array([0.0, 1e3])}
    params, _ = snp.adamw_step(params, grads, {}, lr=0.1, weight_decay=0.5)
    assert_allclose(params["w"], [1.9, 1.8], rtol=1e-12)


def test_arguments_are_not_modified_and_float32_stays(rng):
    params = {"w": rng.standard_normal(5).astype(np.float32)}
    grads = {"w": rng.standard_normal(5).astype(np.float32)}
    state = {}
    for _ in range(3):
        before = [params["w"].copy(), grads["w"].copy()]
        old_params, old_state = params, state
        moments = [state[k]["w"].copy() for k in ("m", "v")] if state else []
        params, state = snp.adamw_step(params, grads, state, lr=0.1)
        assert_array_equal(old_params["w"], before[0])
        assert_array_equal(grads["w"], before[1])
        assert old_state is not state
        for k, moment in zip(("m", "v"), moments, strict=False):
            assert_array_equal(old_state[k]["w"], moment)
        assert {params["w"].dtype, state["m"]["w"].dtype, state["v"]["w"].dtype} == {
            np.dtype(np.float32)
        }


def test_rejects_gradients_that_do_not_fit():
    params = {"w": np.zeros(3), "b": np.zeros(2)}
    with pytest.raises(ValueError, match=r"^grads must hold one array .* missing: \['b'\]"):
        snp.adamw_step(params, {"w": np.zeros(3)}, {}, lr=0.1)
    message = r"^grads\['b'\] must have shape \(2,\), got \(3,\)$"
    with pytest.raises(ValueError, match=message):
        snp.adamw_step(params, {"w": np.zeros(3), "b": np.zeros(3)}, {}, lr=0.1)
