"""From what is typed after --on to dimensions."""

import re
from math import prod

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.topology.domains import LARGEST_MACHINE
from costmodel.topology.groups import group_descriptors
from costmodel.topology.machine import parse_machine
from tests.topology.hand_made import CATALOG, CLUSTERS


def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


def check_advice(message):
    """Each machine that an error advises must exist."""
    advice = re.split("write |nearest|did you mean |at most |ask for |such as ", message, maxsplit=1)[1:]
    for choice in re.findall(rf"(?:{'|'.join(CLUSTERS)}):[0-9x]+", "".join(advice)):
        assert machine(choice).chips <= LARGEST_MACHINE


def sizes(on, slices=1):
    return [dimension.size for dimension in machine(on, slices).dimensions]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("dgx-h100", [8, 1, 1]),
        ("dgx-h100:1", [1, 1, 1]),
        ("dgx-h100:3", [3, 1, 1]),
        ("dgx-h100:8", [8, 1, 1]),
        ("dgx-h100:1x4", [4, 1, 1]),
        ("dgx-h100:512", [8, 32, 2]),
        ("dgx-h100:64x8", [8, 32, 2]),
        ("DGX-H100:64X8", [8, 32, 2]),
        ("dgx-h100:320", [8, 20, 2]),
        ("dgx-h100:296", [8, 37, 1]),
        ("gb200-nvl72", [72, 1, 1]),
        ("gb200-nvl72:4", [4, 1, 1]),
        ("gb200-nvl72:576", [72, 8, 1]),
        ("gb200-nvl72:144x4", [72, 8, 1]),
        ("gb200-nvl72:1024", [64, 8, 2]),
        ("gb200-nvl72:16x64", [64, 8, 2]),
        ("gb200-nvl72:18x36", [36, 6, 3]),
        ("mi300x:16", [8, 2, 1]),
        ("workstation:2", [2]),
    ],
)
def test_switched_machines(on, expected):
    assert sizes(on) == expected
    assert machine(on).chips == prod(expected)


@pytest.mark.parametrize(
    ("on", "slices", "expected"),
    [
        ("tpu-v5p", 1, [2, 2, 1, 1]),
        ("tpu-v5p:8x16x16", 1, [8, 16, 16, 1]),
        ("tpu-v5p:16x8x16", 1, [16, 8, 16, 1]),
        ("tpu-v5p:512", 1, [8, 8, 8, 1]),
        ("tpu-v5p:512", 4, [8, 8, 8, 4]),
        ("v5p-512", 1, [4, 8, 8, 1]),
        ("v5p-8", 2, [2, 2, 1, 2]),
        ("v4-128", 1, [4, 4, 4, 1]),
        ("v5litepod-64", 1, [8, 8, 1]),
        ("v6e-256", 1, [16, 16, 1]),
        ("tpu7x-128", 1, [4, 4, 4, 1]),
        ("tpu-v5e", 1, [2, 4, 1]),
        ("trainium2:16", 1, [4, 4]),
    ],
)
def test_torus_machines(on, slices, expected):
    assert sizes(on, slices) == expected
    assert machine(on, slices).chips == prod(expected)


def test_a_twisted_slice_has_open_short_axes():
    made = machine("tpu-v4:4x8x8_twisted")
    assert made.twisted and [axis.wrap for axis in made.fast] == [False, True, True]
    assert [axis.wrap for axis in machine("tpu-v4:8x4x4_TWISTED").fast] == [True, False, False]
    assert "twisted torus" in made.notes[0]
    for plain in ("tpu-v4:4x8x8", "tpu-v4:4x8x8_untwisted"):
        assert not machine(plain).twisted and all(axis.wrap for axis in machine(plain).fast)
        assert machine(plain).dimensions == machine("tpu-v4:4x8x8").dimensions


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("tpu-v4:4x4x4_twisted", "k x k x 2k or k x 2k x 2k; these can: tpu-v4:4x4x8_twisted or "),
        ("tpu-v4:4x4x16_twisted", "twice as long"),
        ("tpu-v5p:12x12x24_twisted", "not among the shapes that are offered so"),
        ("tpu-v4:128_twisted", "say the shape of a twisted slice, such as tpu-v4:4x4x8_twisted"),
        ("tpu-v5e:8x16_twisted", "leave out _twisted"),
        ("tpu-v5e:8x16_untwisted", "leave out _untwisted"),
        ("dgx-h100:64_twisted", "no torus"),
        ("tpu-v4:4x4x8_twist", "only _twisted or _untwisted"),
        ("tpu-v4:4x4x8_", "only _twisted or _untwisted"),
        ("tpu-v4:_twisted", "no usable size"),
    ],
)
def test_slices_that_cannot_be_twisted(on, said):
    with pytest.raises(InputError, match=said):
        machine(on)


def test_a_dimension_knows_its_links():
    domain, leaf, spine = machine("tight:512").dimensions
    assert [level.link.name for level in (domain, leaf, spine)] == ["nvlink", "nic", "nic"]
    assert [level.oversubscription for level in (domain, leaf, spine)] == [1, 1, 7]
    assert [level.levels_below for level in (domain, leaf, spine)] == [0, 0, 1]


def test_oversubscription_grows_with_each_level():
    made = machine("tighter:512")
    assert [(level.size, level.oversubscription) for level in made.network] == [(4, 1), (4, 2), (4, 6)]
    assert made.unit == 8 * 4 * 4
    assert made.unit_uplinks is made.network[2]
    assert machine("tighter:32").unit_uplinks is None


def test_slices_are_joined_by_their_own_network():
    *_, slices = machine("tpu-v5p:4x4x4", 2).dimensions
    assert (slices.kind, slices.link.name, slices.size) == ("dcn", "dcn", 2)


def test_how_the_text_was_read_is_said():
    assert machine("tpu-v5p:512").notes == ("512 chips are taken as the slice 8x8x8",)
    assert machine("dgx-h100").notes == ("without a size, one node of 8 chips is taken",)
    assert machine("gb200-nvl72:1024").notes == ("64 of the 72 chips of each of 16 domains are used",)
    assert "16x16x24" in machine("tpu-v5p:16x20x28").notes[0]
    assert "16384" in machine("dgx-h100:32768").notes[0]
    assert "filled alike" in machine("tight:320").notes[0]
    assert machine("dgx-h100:320").notes == machine("tpu-v5p:8x8x8").notes == ()


@pytest.mark.parametrize(
    ("on", "slices", "said"),
    [
        ("", 1, "expected a cluster"),
        ("dgx", 1, "dgx-h100"),
        ("dgx-h100:12", 1, "not whole hosts"),
        ("dgx-h100:0", 1, "no usable size"),
        ("dgx-h100:-8", 1, "no usable size"),
        ("dgx-h100:1.5", 1, "no usable size"),
        ("dgx-h100:x8", 1, "did you mean dgx-h100:8?"),
        ("dgx-h100:8xx8", 1, "did you mean dgx-h100:8x8?"),
        ("dgx-h100:", 1, "no usable size"),
        ("dgx-h100: 8", 1, "did you mean dgx-h100:8?"),
        ("dgx-h100:8 8", 1, "has spaces or unusual characters; write it like dgx-h100:512"),
        ("dgx-h100:4M\n", 1, "has spaces or unusual characters; write it like dgx-h100:512"),
        ("dgx-h100:\n", 1, "has spaces or unusual characters; write it like dgx-h100:512"),
        ("tpu-v5p:4xx4x4", 1, "did you mean tpu-v5p:4x4x4?"),
        ("dgx-h100:\N{FULLWIDTH DIGIT FIVE}12", 1, "did you mean dgx-h100:512?"),
        ("dgx-h100:\N{DEVANAGARI DIGIT FOUR}x8", 1, "no usable size"),
        ("dgx-h100:4x16", 1, "dgx-h100:4x8"),
        ("dgx-h100:64x3", 1, "dgx-h100:64x8"),
        ("dgx-h100:2x4x8", 1, "cannot be had"),
        ("dgx-h100:2097152", 1, "larger than what can be asked for"),
        ("dgx-h100:999999999999999999999999", 1, "no usable size"),
        ("dgx-h100:8", 2, "--slices is for torus slices"),
        ("tpu-v5p:8x8x8", 0, "1 or more"),
        ("tpu-v5p:8x8x8", 10**9, "larger than what can be asked for"),
        ("gb200-nvl72:100", 1, "spread evenly"),
        ("gb200-nvl72:6", 1, "not whole hosts"),
        ("gb200-nvl72:4x80", 1, "gb200-nvl72:4x72"),
        ("workstation:8", 1, "no network joins"),
        ("tighter:4100", 1, "tighter:512"),
        ("tpu-v5p:3x5x7", 1, "multiple of 4"),
        ("tpu-v5p:16x16", 1, "3 axes"),
        ("tpu-v5p:16x16x40", 1, "--slices 2"),
        ("tpu-v5p:9000", 1, "--slices 2"),
        ("tpu-v5p:500", 1, "tpu-v5p:448 or tpu-v5p:512"),
        ("tpu-v5e:16x32", 1, "tpu-v5e:16x16"),
        ("tpu-v5e:4x16", 1, "the shapes are"),
        ("v5p-1000", 1, "v5p-896 or v5p-1024"),
        ("v5p-7", 1, "the nearest is v5p-8"),
        ("v6e-96", 1, "v6e-64 or v6e-128"),
        ("trainium2:4x4", 2, "leave out --slices"),
    ],
)
def test_what_cannot_be_had_is_one_sentence_with_a_choice_that_can(on, slices, said):
    with pytest.raises(InputError) as caught:
        machine(on, slices)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    check_advice(message)


@given(
    st.text(max_size=40) | st.from_regex(rf"({'|'.join(CLUSTERS)})(:[0-9x -]{{0,12}})?", fullmatch=True),
    st.integers(-2, 5),
)
@example("workstation:x", 1)
@example("trainium2:x", 1)
@example("a \x1b[31m", 1)
def test_any_text_is_a_machine_or_an_error_with_good_advice(on, slices):
    try:
        made = machine(on, slices)
    except InputError as error:
        message = str(error)
    else:
        assert made.chips == prod(dimension.size for dimension in made.dimensions) >= 1
        assert made.slices == slices
        return
    assert message.isprintable()
    check_advice(message)


@pytest.mark.parametrize("on", ["tpu-v5p:x4x4", "tpu-v5p:0x4x4", "tpu-v5p:0x4x4x4", "dgx-h100:9x"])
def test_what_was_meant_is_not_guessed_where_there_is_no_such_machine(on):
    with pytest.raises(InputError, match=r"no usable size: write [^;]*$"):
        machine(on)


@given(st.sampled_from(["dgx-h100", "gb200-nvl72", "tight", "tighter"]), st.integers(1, 4000))
def test_counts_of_chips_are_kept_and_the_levels_hold_them(name, chips):
    try:
        made = machine(f"{name}:{chips}")
    except InputError:
        return
    domain, *levels = made.dimensions
    assert made.chips == chips
    assert domain.size <= CLUSTERS[name].scale_up.size
    for level, entry in zip(levels, CLUSTERS[name].network, strict=True):
        assert level.size <= entry.blocks or not entry.blocks or entry.oversubscription.value == 1


def test_every_cluster_of_the_catalog_makes_a_machine_with_numbers_for_the_equations():
    catalog = Catalog.open()
    for name in catalog.names("clusters"):
        made = parse_machine(name, 1, catalog)
        inputs = group_descriptors(made)
        assert made.chips >= 1
        assert all(value >= 0 for value in inputs.values())
