"""Units of the catalog, and what people write on a command line."""

import math
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.catalog.units import QUANTITIES, UNITS, parse_count, parse_size, unit_hint
from costmodel.errors import InputError

SIZE_UNITS = QUANTITIES["bytes"][1]


def test_giga_is_decimal_and_gibi_binary():
    assert UNITS["GB"] == ("bytes", 1e9)
    assert UNITS["GiB"] == ("bytes", 2**30)
    assert UNITS["Gbit/s"] == ("bytes per second", 1.25e8)
    assert UNITS["TFLOP/s"] == UNITS["TOP/s"] == ("operations per second", 1e12)
    assert UNITS["us"][1] == 1e-6 and UNITS["percent"] == ("share", 0.01)


def test_each_unit_has_one_meaning_and_the_si_unit_is_one_of_them():
    assert len(UNITS) == sum(len(units) for _, units in QUANTITIES.values())
    for si, units in QUANTITIES.values():
        assert units[si] == 1
        assert all(factor > 0 and math.isfinite(factor) for factor in units.values())


HINTS = {
    "Gb": "it does not say bits or bytes: write GB",
    "Gib": "it does not say bits or bytes: write GiB",
    "Gb/s": "it does not say bits or bytes: write Gbit/s or GB/s",
    "Gbps": "it does not say bits or bytes: write Gbit/s or GB/s",
    "GBps": "write GB/s (powers of 1000) or GiB/s (powers of 1024)",
    "GiBps": "write GiB/s",
    "KB": "write kB (powers of 1000) or KiB (powers of 1024)",
    "TFLOPS": "write TFLOP/s",
    "Tflop/s": "write TFLOP/s",
    "TOPs": "write TOP/s",
    "GHz/s": "did you mean GHz",
    "parsec": "the units are",
}


@pytest.mark.parametrize(("unit", "hint"), HINTS.items())
def test_an_unknown_unit_is_told_what_would_be_right(unit, hint):
    assert unit not in UNITS
    assert unit_hint(unit).startswith(hint)


@given(st.integers(1, 2**40), st.sampled_from(sorted(SIZE_UNITS)), st.sampled_from(["", " "]))
@example(1, "GiB", "")
def test_a_size_written_out_is_read_back(count, unit, space):
    size = count * int(SIZE_UNITS[unit])
    if size <= 2**63:
        assert parse_size(f"{count}{space}{unit}") == size
    else:
        with pytest.raises(InputError, match=r"larger than 2\*\*63"):
            parse_size(f"{count}{space}{unit}")


@given(st.integers(1, 2**50))
def test_a_size_in_mebibytes_with_decimals_is_exact(size):
    """n / 2^20 has at most 20 decimals, so that every whole number of bytes can be written so."""
    whole, rest = divmod(size, 2**20)
    assert parse_size(f"{whole}.{rest * 5**20:020d}MiB") == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GiB", 2**30),
        ("1.5GB", 1_500_000_000),
        ("4096", 4096),
        ("1e9", 10**9),
        ("1e-3GB", 10**6),
        ("16 MiB", 2**24),
        ("1_000kB", 10**6),
        (" 8B ", 8),
        ("+2KiB", 2048),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


BAD_SIZES = {
    "1Gb": "has the unit 'Gb': it does not say bits or bytes: write GB",
    "1Gib": "write GiB",
    "1KB": "write kB (powers of 1000) or KiB (powers of 1024)",
    "1G": "has the unit 'G': write GB or GiB",
    "1M": "write MB or MiB",
    "1GB/s": "has the unit 'GB/s': that is a unit of bytes per second, choose from B, kB",
    "1 parsec": "has the unit 'parsec'",
    "0": "is zero",
    "0GiB": "is zero",
    "-1GiB": "is negative",
    "nan": "is not finite",
    "inf": "is not finite",
    "-inf": "is not finite",
    "Infinity": "is not finite",
    "": "is not a number",
    "GiB": "is not a number",
    ".": "is not a number",
    "1.5": "is not a whole number of bytes",
    "1.3KiB": "is not a whole number of bytes",
    "1e400": "out of range",
    "1e30GB": "larger than 2**63",
    "1e-30GB": "is not a whole number of bytes",
    "9" * 50: "is too long",
    "1GiB; rm -rf": "has the unit",
    "-": "is not a number",
    "--1": "is not a number",
    "-x": "is not a number",
    "0x10": "is not a number",
    "1.2.3": "is not a number",
    "information": "is not a number",
    "\u0663GiB": "is not a number",
}


@pytest.mark.parametrize(("text", "message"), BAD_SIZES.items())
def test_sizes_that_are_refused(text, message):
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("16384", 16384),
        ("16M", 16_000_000),
        ("4Ki", 4096),
        ("1.5B", 1_500_000_000),
        ("2Mi", 2**21),
        ("7G", 7 * 10**9),
        ("16k", 16000),
        ("16K", 16000),
    ],
)
def test_counts(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["0", "-5", "nan", "1.5", "16m", "16MB", "", "x", "1e999", "16M sequences"])
def test_counts_that_are_refused(text):
    with pytest.raises(InputError, match="tokens"):
        parse_count(text, "tokens")


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    for parser in (parse_size, parse_count):
        with suppress(InputError):
            assert parser(text) > 0
