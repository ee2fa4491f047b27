"""What a run takes, on round numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.economics import Economics
from costmodel.symbolic import compile_math

evaluate = compile_math(Economics.system)
RUN = {
    "step_time": 10,
    "step_tokens": 10**6,
    "train_tokens": 10**12,
    "chips": 1000,
    "chip_price": 3.6 / 3600,
    "chip_power": 1000,
    "training_share": 0.8,
    "host_power_per_chip": 150,
    "host_power_per_chip_nvl72": 100,
    "rack_scale_domain": 64,
    "domain_chips": 8,
    "network_power_per_chip": 50,
    "site_overhead": 1.2,
}


def test_a_million_steps():
    """1e6 steps of 10 s on 1000 chips at 3.60 dollars an hour, each drawing 1.2 x (800 + 150 + 50) = 1200 W."""
    found = evaluate(**RUN)
    assert found["steps"] == 10**6
    assert found["run_time"] == 10**7
    assert found["chip_time"] == 10**10
    assert found["cost"] == pytest.approx(10**10 / 3600 * 3.6)
    assert found["drawn_power"] == pytest.approx(1200)
    assert found["energy"] == pytest.approx(1.2e13)


def test_a_rack_that_is_one_domain_shares_its_hosts_otherwise():
    assert evaluate(**RUN | {"domain_chips": 72})["drawn_power"] == pytest.approx(1.2 * 950)


@given(st.integers(1, 10**15), st.integers(1, 10**8))
def test_the_last_step_may_be_partly_filled(tokens, step_tokens):
    found = evaluate(**RUN | {"train_tokens": tokens, "step_tokens": step_tokens})
    assert (found["steps"] - 1) * step_tokens < tokens <= found["steps"] * step_tokens


@given(st.sampled_from(("step_time", "chips")), st.integers(2, 1000))
def test_time_and_chips_multiply_all_of_it(name, times):
    one, many = evaluate(**RUN), evaluate(**RUN | {name: times * RUN[name]})
    for quantity in ("chip_time", "cost", "energy"):
        assert many[quantity] == pytest.approx(times * one[quantity])
