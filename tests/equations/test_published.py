"""Printed rates turned into steps, on round numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.published import FLOPS_COUNTED
from costmodel.generated import published_math

STEP = {
    "chips": 10,
    "step_tokens": 1000,
    "training_flops": 6e9,
    "training_flops_causal": 5e9,
    "megatron_flops": 8e12,
}


@pytest.mark.parametrize(("counted", "seconds"), [("full", 6), ("causal", 5), ("hardware", 8)])
def test_a_rate_tells_of_the_step_by_what_it_counts(counted, seconds):
    """6, 5 and 8 TFLOP of a step at 0.1 TFLOP/s on each of ten chips."""
    found = published_math.printed_rate(**STEP, flops_counted=FLOPS_COUNTED.index(counted), printed_rate=1e11)
    assert found["printed_step_time"] == pytest.approx(seconds)


@given(st.floats(0.5, 3))
def test_a_third_more_is_a_whole_forward_pass_again(ratio):
    share = published_math.printed_utilisation(hfu_over_mfu=ratio)["rerun_share"]
    assert 0 <= share <= 1
    assert published_math.printed_utilisation(hfu_over_mfu=4 / 3)["rerun_share"] == pytest.approx(1)
    assert published_math.printed_utilisation(hfu_over_mfu=1)["rerun_share"] == 0
    if 1 <= ratio <= 4 / 3:
        assert share == pytest.approx(3 * (ratio - 1))
