"""Numbers for people: three digits, the right prefix, also just below the next one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.report import human


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (human.seconds(5.503), "5.50 s"),
        (human.seconds(0.0123), "12.3 ms"),
        (human.seconds(4.1e-6), "4.10 us"),
        (human.seconds(0.9999), "1.00 s"),
        (human.seconds(0.9994), "999 ms"),
        (human.seconds(1234.5), "1,234 s"),
        (human.seconds(0), "0 s"),
        (human.seconds(2e-10), "0.200 ns"),
        (human.seconds(math.inf), "inf s"),
        (human.seconds(None), "-"),
        (human.seconds(math.nan), "-"),
        (human.duration(86400 * 54.3), "54.3 days"),
        (human.duration(3600 * 5), "5.00 hours"),
        (human.duration(90), "90.0 s"),
        (human.size(80e9), "74.5 GiB"),
        (human.size(1 << 30), "1.00 GiB"),
        (human.size((1 << 30) - 1), "1.00 GiB"),
        (human.size(1023 << 20), "1,023 MiB"),
        (human.size(512), "512 B"),
        (human.size(-3 * (1 << 30)), "-3.00 GiB"),
        (human.size(0), "0 B"),
        (human.rate(1.2e12), "1.20 TB/s"),
        (human.rate(3.21e6, "tokens/s"), "3.21 Mtokens/s"),
        (human.rate(None), "-"),
        (human.flops(989.4e12), "989 TFLOP/s"),
        (human.percent(0.41251), "41.3%"),
        (human.percent(None), "-"),
        (human.count(405.85e9), "406 B"),
        (human.count(16384), "16.4 K"),
        (human.count(126), "126"),
        (human.count(9999), "9,999"),
        (human.count(None), "-"),
        (human.dollars(2.99), "$2.99"),
        (human.dollars(41.2e6), "$41.2 M"),
        (human.energy(27.1e9 * 3600), "27.1 GWh"),
        (human.number(1e30), "1.00e+30"),
        (human.number(1e-9), "1.00e-09"),
        (human.number(0.0123), "0.0123"),
        (human.number(-math.inf), "-inf"),
        (human.number(9.996), "10.0"),
        (human.number(1234567.8), "1,234,568"),
    ],
)
def test_examples(text, expected):
    assert text == expected


_FACTOR = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@given(st.floats(1e-9, 1e6))
def test_a_printed_time_is_the_time_to_half_a_digit(value):
    digits, unit = human.seconds(value).split()
    shown = float(digits.replace(",", "")) * _FACTOR[unit]
    assert shown == pytest.approx(value, rel=5.001e-3)
    assert unit == "s" or 1 <= float(digits) < 1000
