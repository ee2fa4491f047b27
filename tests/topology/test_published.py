"""Worked examples of placements, from a cluster entry to link loads: tests/published/placement_examples.yaml."""

import re
from functools import cache
from math import prod
from pathlib import Path

import pytest
import yaml

from costmodel.catalog.entries import Cluster, Level, ScaleUp
from costmodel.equations.collectives.fabric import SwitchFabric, TorusFabric
from costmodel.equations.collectives.group_on_switches import SwitchGroup
from costmodel.equations.collectives.group_on_torus import TorusGroup
from costmodel.symbolic import Chapter, compile_math, part
from costmodel.topology import groups
from costmodel.topology.machine import Dimension, Machine, parse_machine
from costmodel.topology.placements import members
from tests.topology import hand_made

EXAMPLES = yaml.safe_load((Path(__file__).parents[1] / "published" / "placement_examples.yaml").read_text("utf-8"))
PAYLOAD = 1e9


class OnSwitches(Chapter):
    fabric = part(SwitchFabric, shared=True)
    group = part(SwitchGroup, shared=True)


class OnTorus(Chapter):
    fabric = part(TorusFabric, shared=True)
    group = part(TorusGroup, shared=True)


on_switches, on_torus = cache(compile_math), cache(compile_math)


def ideal(inputs):
    """The same with all bandwidth attained and no latency, as the examples have it."""
    shares = {name: 1.0 for name in inputs if name.endswith("_share")}
    return inputs | shares | {name: 0.0 for name in inputs if name.endswith("_latency")}


class OneCluster(hand_made.HandMade):
    """A cluster with the numbers of one example."""

    def __init__(self, *, domain, nics, domains_in_unit, port_GB_s, nic_GB_s, oversubscription, kind="switch"):
        level = Level("unit", domains_in_unit, "nic", nics, hand_made.number(oversubscription))
        spine = Level("spine", 0, "nic", nics, hand_made.number(1))
        scale_up = ScaleUp(kind, "port", size=domain)
        self.made = Cluster("example", (), "chip", domain, scale_up, (level, spine), "pcie", 2**20, ())
        self.links = {
            "port": hand_made.link("port", port_GB_s * 1e9, 0, 1),
            "nic": hand_made.link("nic", nic_GB_s * 1e9, 0, 1),
            "pcie": hand_made.LINKS["pcie"],
        }

    def cluster(self, name):
        assert name == "example"
        return self.made

    def link(self, name):
        return self.links[name]


def by_name(kind):
    return [pytest.param(example, id=example["name"].replace(" ", "-")) for example in EXAMPLES[kind]]


def read_chain(example):
    """Degrees and strides of the axes in the chain, and the groups that are joint in this example."""
    degrees = {axis: int(size) for axis, size in re.findall(r"([a-z]+)([0-9]+)", example["chain"])}
    strides, stride = {}, 1
    for axis, degree in degrees.items():
        strides[axis] = stride
        stride *= degree
    return degrees, strides, [(degrees[axis], strides[axis]) for axis in example["group"]]


def straddles(example):
    return example["members_in_domain"][0] < example["members_in_domain"][1]


@pytest.mark.parametrize("example", by_name("switch"))
def test_counts_on_switches(example):
    degrees, strides, joint = read_chain(example)
    machine = example["machine"]
    domain = machine["domain"]
    unit = min(domain * machine["domains_in_unit"], prod(degrees.values()))
    assert [strides[axis] for axis in example["group"]] == example["strides"]
    for block, counted in ((domain, "members_in_domain"), (unit, "members_in_unit")):
        by_axis = [groups.members_in_block(degree, stride, block) for degree, stride in joint]
        assert [prod(fewest) for fewest in zip(*by_axis, strict=True)] == example[counted]


def switch_inputs(example):
    """What the equations get for the group of an example."""
    degrees, _, joint = read_chain(example)
    machine = parse_machine(f"example:{prod(degrees.values())}", 1, OneCluster(**example["machine"]))
    axes = tuple(degrees)
    row = members("-".join(axes), degrees, machine, axes)
    counts = {
        "n": float(prod(degree for degree, _ in joint)),
        "m": prod(row[f"domain_{axis}"] for axis in example["group"]),
        "u": prod(row[f"unit_{axis}"] for axis in example["group"]),
    }
    return ideal(groups.fabric_inputs(machine)) | counts


# Blocks of a machine are filled alike, so that pods of 384 nodes hold 256 of 2048 each and not 384 with a rest of 128.
EVEN = [example for example in by_name("switch") if example.values[0]["machine"]["domains_in_unit"] != 384]


@pytest.mark.parametrize("example", EVEN)
def test_a_layout_in_an_order_has_these_members(example):
    inputs = switch_inputs(example)
    assert inputs["m"] == example["members_in_domain"][0]
    assert inputs["u"] == example["members_in_unit"][0]
    answer = on_switches(OnSwitches.system)(S=PAYLOAD, **inputs)
    assert answer["nic_per_chip"] == example["nic_share_GB_s"] * 1e9


@pytest.mark.parametrize("example", EVEN)
def test_loads_on_switches(example):
    answer = on_switches(OnSwitches.system)(S=PAYLOAD, **switch_inputs(example))
    expected = {name: milliseconds / 1e3 for name, milliseconds in example["all_gather_ms"].items()}
    flat = max(answer[f"all_gather_ring_{resource}"] for resource in ("ports", "nics", "uplinks"))
    assert answer["all_gather_hierarchical_nics"] == pytest.approx(expected["nics"], rel=1e-7)
    assert answer["all_gather_hierarchical_log_uplinks"] == pytest.approx(expected["uplinks"], rel=1e-7)
    assert flat == pytest.approx(expected["flat_ring"], rel=1e-7)
    if not straddles(example):
        assert answer["all_gather_hierarchical_ports"] == pytest.approx(expected["ports"], rel=1e-7)
    if "all_to_all_ms" in example:
        expected = {name: milliseconds / 1e3 for name, milliseconds in example["all_to_all_ms"].items()}
        assert answer["all_to_all_direct_nics"] == pytest.approx(expected["nics"], rel=1e-7)
        if not straddles(example):
            assert answer["all_to_all_direct_ports"] == pytest.approx(expected["direct_ports"], rel=1e-7)
            assert answer["all_to_all_relayed_ports"] == pytest.approx(expected["relayed_ports"], rel=1e-7)


def torus_row(example):
    """The row of the example's placement, with axes called as the example calls them."""
    axes = tuple(sorted(set(re.findall(r"([a-z]+)[0-9]", example["placement"]))))
    link = hand_made.link("link", example["link_GB_s"] * 1e9, 0, 1)
    dimensions = tuple(
        Dimension(name, "torus", length, wrap, link)
        for name, length, wrap in zip("xyz", example["shape"], example["wrap"], strict=False)
    )
    cluster = hand_made.CLUSTERS["tpu-v5p"]
    machine = Machine(
        cluster, hand_made.CHIP, hand_made.LINKS["pcie"], prod(example["shape"]), dimensions, 1, "example"
    )
    degrees = dict.fromkeys(axes, 1)
    for axis, size in re.findall(r"([a-z]+)([0-9]+)", example["placement"]):
        degrees[axis] *= int(size)
    return machine, members(example["placement"], degrees, machine, axes)


@pytest.mark.parametrize("example", by_name("torus"))
def test_sub_axes_of_a_torus(example):
    _, row = torus_row(example)
    group = example["group"]
    for name in "xyz":
        size, stride = example["sub_axes"].get(name, (1, 1))
        assert (row[f"{group}_{name}"], row[f"{group}_stride_{name}"]) == (size, stride)
    links = [
        (1 + row[f"{group}_ring_{name}"]) / row[f"{group}_stride_{name}"]
        for name in "xyz"
        if row[f"{group}_{name}"] > 1
    ]
    assert sum(links) == example["links"]


@pytest.mark.parametrize("example", by_name("torus"))
def test_loads_on_a_torus(example):
    machine, row = torus_row(example)
    group = example["group"]
    sub_axes = {f"size_{name}": row[f"{group}_{name}"] for name in "xyz"}
    sub_axes |= {f"{kind}_{name}": row[f"{group}_{kind}_{name}"] for kind in ("stride", "ring") for name in "xyz"}
    inputs = ideal(groups.fabric_inputs(machine)) | sub_axes | {"slices": 1.0, "hop_latency": 1e-6}
    answer = on_torus(OnTorus.system)(S=PAYLOAD, **inputs)
    for split, milliseconds in example["all_gather_ms"].items():
        assert answer[f"all_gather_{split}_links"] == pytest.approx(milliseconds / 1e3, rel=1e-7)
    assert answer["all_gather_best_split_latency"] == pytest.approx(example["hops"] * 1e-6)
    assert answer["all_to_all_direct_links"] == pytest.approx(example["all_to_all_ms"] / 1e3, rel=1e-7)


@pytest.mark.parametrize("example", by_name("mesh"))
def test_full_meshes(example):
    entry = {"domain": example["chips"], "nics": 8, "domains_in_unit": 32, "nic_GB_s": 50, "oversubscription": 1}
    cluster = OneCluster(**entry, port_GB_s=example["link_GB_s"], kind="mesh")
    machine = parse_machine(f"example:{example['chips']}", 1, cluster)
    inputs = ideal(groups.group_descriptors(machine, group=example["group"]))
    answer = on_switches(OnSwitches.system)(S=PAYLOAD, **inputs)
    assert answer["all_gather_direct"] == pytest.approx(example["all_gather_ms"] / 1e3)


@pytest.mark.parametrize("example", by_name("dcn"))
def test_slices_over_the_data_centre_network(example):
    links = hand_made.LINKS
    assert links["dcn"].bandwidth.value == example["host_GB_s"] * 1e9
    assert links["pcie"].bandwidth.value == example["host_link_GB_s"] * 1e9
    machine = parse_machine(f"tpu-v5p:{example['chips_in_slice']}", example["slices"], hand_made.CATALOG)
    inputs = groups.group_descriptors(machine)
    answer = on_torus(OnTorus.system)(S=example["array_GB"] * 1e9, **ideal(inputs))
    assert answer["dcn_out_of_slice"] == example["share_GB_s"] * 1e9
    assert answer["all_gather_equal_split_dcn"] == pytest.approx(example["all_gather_ms"] / 1e3)
