"""What memory traffic costs, in bytes counted by hand on a chip that moves a byte in a picosecond."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.kernels.elementwise import Elementwise, LossTraffic, OptimizerTraffic
from costmodel.symbolic import compile_math

between = compile_math(Elementwise.system)
loss = compile_math(LossTraffic.system)
optimizer = compile_math(OptimizerTraffic.system)
CHIP = {"memory_bandwidth": 1e12, "memory_share": 1.0}
TRAFFIC = {
    "norms_run": 2,
    "state_bytes_forward": 20,
    "state_bytes_backward": 24,
    "activation_bytes_forward": 6,
    "activation_bytes_backward": 10,
    "rotary_bytes": 4,
    "elementwise_traffic_factor": 2,
}
LAYER = {"norm_bytes_forward": 4, "hidden_size": 1000, "ffn_size": 3000, "rotated_size": 1250}


def layer(tp=1, sequence_split=1, tokens=1000, **changes):
    return between(tokens=tokens, tp=tp, sequence_split=sequence_split, **LAYER | CHIP | TRAFFIC | changes)


def test_a_layer_on_round_numbers():
    """20 x 1000 + 6 x 3000 + 4 x 1250 = 43,000 bytes a token forward, 59,000 backward, moved twice."""
    found = layer()
    assert found["forward"] == pytest.approx(1000 * 43_000 * 2 / 1e12)
    assert found["backward"] == pytest.approx(1000 * 59_000 * 2 / 1e12)


def test_tensor_parallel_ranks_share_the_inside_and_with_sequence_parallelism_the_rest():
    alone, shared, whole = layer(), layer(tp=4), layer(tp=4, sequence_split=4)
    assert whole["forward"] == pytest.approx(alone["forward"] / 4)
    assert shared["forward"] == pytest.approx(1000 * (20_000 + 23_000 / 4) * 2 / 1e12)


def test_norms_and_activation_alone():
    """Of it 4 x 2 x 1000 bytes a token in the norms and 6 x 3000 in the activation."""
    alone, shared = layer(), layer(tp=4)
    assert alone["norms"] == shared["norms"] == pytest.approx(1000 * 8000 * 2 / 1e12)
    assert alone["activation"] == 4 * shared["activation"] == pytest.approx(1000 * 18_000 * 2 / 1e12)
    assert layer(tp=4, sequence_split=4)["norms"] == pytest.approx(alone["norms"] / 4)


def test_loss_moves_its_bytes_a_logit():
    found = loss(tokens=1000, vocabulary_on_rank=50_000, loss_traffic_bytes=16, **CHIP)
    assert found["time"] == pytest.approx(1000 * 50_000 * 16 / 1e12)


NO_PRODUCTS = {"orthogonalisation_steps": 0, "hidden_size": 1000, "half_peak": 1e15, "half_share": 0.5}


def test_making_an_update_orthogonal_takes_three_products_a_step():
    """5 steps of X X', A A and B X on square matrices of 1,000 rows: 5 x 3 x 2 x 1e9 operations for each million of weights."""
    traffic = {"update_bytes": 0, "copy_bytes": 0, "accumulation_bytes": 0}
    told = optimizer(
        owned_parameters=3e6,
        local_parameters=0,
        copied_parameters=0,
        **traffic,
        **CHIP,
        **NO_PRODUCTS | {"orthogonalisation_steps": 5},
    )
    assert told["update"] == pytest.approx(3 * 5 * 3 * 2 * 1e9 / 0.5e15)


@given(st.integers(1, 64))
def test_sharing_the_optimizer_divides_its_update(dp):
    constants = {"update_bytes": 36, "copy_bytes": 6, "accumulation_bytes": 3} | NO_PRODUCTS
    whole = optimizer(owned_parameters=64e6, local_parameters=1e6, copied_parameters=64e6, **constants, **CHIP)
    part = optimizer(owned_parameters=64e6 / dp, local_parameters=1e6, copied_parameters=64e6, **constants, **CHIP)
    assert whole["update"] == pytest.approx(64e6 * 42 / 1e12)
    assert part["update"] == pytest.approx(64e6 * (36 / dp + 6) / 1e12)
    assert part["accumulation"] == whole["accumulation"] == pytest.approx(3e6 / 1e12)
