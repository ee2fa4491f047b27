"""Shapes of slices, and which axes wrap."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.entries import shape_text
from costmodel.topology import slices
from tests.topology.hand_made import CLUSTERS

# Names of real slices with their shapes, as Google's pages and MaxText's table of accelerators have them.
REAL = """
v4-8 2x2x1, v4-16 2x2x2, v4-32 2x2x4, v4-64 2x4x4, v4-128 4x4x4, v4-256 4x4x8, v4-512 4x8x8, v4-1024 8x8x8, v4-2048 8x8x16,
v4-4096 8x16x16, v5p-8 2x2x1, v5p-16 2x2x2, v5p-32 2x2x4, v5p-64 2x4x4, v5p-128 4x4x4, v5p-256 4x4x8, v5p-384 4x4x12,
v5p-512 4x8x8, v5p-640 4x4x20, v5p-768 4x8x12, v5p-896 4x4x28, v5p-1024 8x8x8, v5p-1152 4x12x12, v5p-1280 4x8x20,
v5p-1536 8x8x12, v5p-1792 4x8x28, v5p-2048 8x8x16, v5p-2304 8x12x12, v5p-3072 8x12x16, v5p-4096 8x16x16, v5p-6144 12x16x16,
v5p-8192 16x16x16, v5p-12288 16x16x24, v5p-17920 16x20x28, tpu7x-2 1x1x1, tpu7x-8 2x2x1, tpu7x-128 4x4x4, tpu7x-512 4x8x8,
tpu7x-18432 16x24x24, v5litepod-1 1x1, v5litepod-4 2x2, v5litepod-8 2x4, v5litepod-16 4x4, v5litepod-32 4x8,
v5litepod-64 8x8, v5litepod-128 8x16, v5litepod-256 16x16, v6e-32 4x8, v6e-128 8x16, v6e-256 16x16, v3-2048 32x32
"""
NAMES = [tuple(entry.split()) for entry in REAL.replace("\n", " ").split(",")]
V5P, V5E = CLUSTERS["tpu-v5p"].scale_up, CLUSTERS["tpu-v5e"].scale_up


def cluster_of(prefix):
    return next(made for made in CLUSTERS.values() if prefix in made.scale_up.slice_prefixes)


@pytest.mark.parametrize(("name", "shape"), NAMES)
def test_real_slices(name, shape):
    prefix, count = name.split("-")
    scale_up = cluster_of(prefix).scale_up
    found = slices.with_chips(scale_up, int(count) // scale_up.chips_in_slice_name)
    assert shape_text(found) == shape


@pytest.mark.parametrize(("name", "shape"), NAMES)
def test_which_axes_of_real_slices_wrap(name, shape):
    scale_up = cluster_of(name.split("-")[0]).scale_up
    lengths = tuple(int(length) for length in shape.split("x"))
    whole_cubes = all(length % 4 == 0 for length in lengths)
    expected = [whole_cubes] * 3 if len(lengths) == 3 else [length == max(scale_up.largest) for length in lengths]
    assert list(slices.wraps(scale_up, lengths)) == expected


def test_shapes_of_published_runs_exist_though_longer_than_a_side_of_the_pod():
    for shape in ((4, 8, 64), (8, 16, 32), (8, 16, 48), (16, 16, 24), (16, 20, 28)):
        assert shape in slices.legal(V5P)
    assert (16, 16, 36) not in slices.legal(V5P)
    assert (4, 4, 6) not in slices.legal(V5P)
    assert (4, 16) not in slices.legal(V5E)


def test_rules_of_wrapping():
    assert slices.wraps(CLUSTERS["trainium2"].scale_up, (4, 4)) == (True, True)
    assert slices.wraps(V5E, (8, 16)) == (False, True)
    assert slices.wraps(V5P, (2, 4, 4)) == (False, False, False)


@given(st.lists(st.integers(1, 70), min_size=3, max_size=3).map(tuple))
def test_the_nearest_shape_of_a_legal_one_is_itself_and_all_nearest_are_legal(shape):
    near = slices.nearest_shapes(V5P, shape)
    assert set(near) <= slices.legal(V5P)
    if tuple(sorted(shape)) in slices.legal(V5P):
        assert near[0] == tuple(sorted(shape))


@given(st.integers(1, 9000))
def test_the_nearest_counts_enclose_the_count_asked_for(chips):
    near = slices.nearest_counts(V5P, chips)
    assert all(prod(slices.with_chips(V5P, count)) == count for count in near)
    assert chips not in near
    assert len(near) == 1 or near[0] < chips < near[1]
