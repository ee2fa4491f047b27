"""Chips, links and clusters with round numbers, for tests of the topology that need no catalog files."""

from costmodel.catalog.entries import Chip, Cluster, Level, Link, Number, ScaleUp, Twists
from costmodel.errors import InputError


def number(value, unit="ratio"):
    return Number(float(value), unit, "made up", "guess")


CHIP = Chip(
    name="chip",
    aliases=(),
    vendor="other",
    kind="other",
    peak={"bf16": number(1e15, "FLOP/s")},
    memory_capacity=number(64 * 2**30, "B"),
    memory_bandwidth=number(1e12, "B/s"),
    power=number(500, "W"),
    attainable={"launch": number(2e-6, "s")},
)


def link(name, bandwidth, latency, share, *, switch_latency=None, in_network=None):
    attainable = {"collective": number(share)}
    if in_network:
        attainable["in_network"] = number(in_network)
    details = {"switch_latency": number(switch_latency, "s")} if switch_latency else {}
    return Link(name, (), "other", "chip", number(bandwidth, "B/s"), number(latency, "s"), attainable, details)


LINKS = {
    made.name: made
    for made in (
        link("nvlink", 400e9, 1e-6, 0.8, in_network=0.7),
        link("mesh-link", 64e9, 1e-6, 0.75),
        link("nic", 50e9, 2e-6, 0.9, switch_latency=0.25e-6),
        link("ici", 100e9, 1e-6, 0.9),
        link("dcn", 25e9, 15e-6, 0.9),
        link("pcie", 15e9, 1.5e-6, 0.85),
    )
}


def switched(name, size, host, levels, *, kind="switch", link="nvlink", largest=16384):
    network = tuple(Level(level, blocks, "nic", min(8, host), number(tight)) for level, blocks, tight in levels)
    return Cluster(name, (), "chip", host, ScaleUp(kind, link, size=size), network, "pcie", largest, ())


def torus(name, largest, wrap_rule, shapes, *, host=4, prefixes=(), counted=1, job_limit=(), network=True, twists=()):
    level = Level("dcn", 0, "dcn", 1, number(1))
    scale_up = ScaleUp(
        "torus",
        "ici",
        axes=len(largest),
        wrap_rule=wrap_rule,
        largest=largest,
        job_limit=job_limit,
        shapes=shapes,
        chips_in_slice_name=counted,
        slice_prefixes=prefixes,
        twists=Twists(twists, "made up", "guess") if twists else None,
    )
    return Cluster(name, prefixes, "chip", host, scale_up, (level,) * network, "pcie", 10**4, ())


SMALL_CUBES = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
TWISTS = ((4, 4, 8), (4, 8, 8), (8, 8, 16), (8, 16, 16))
FLAT_SHAPES = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
CLUSTERS = {
    made.name: made
    for made in (
        switched("dgx-h100", 8, 8, (("leaf", 32, 1), ("spine", 0, 1))),
        switched("tight", 8, 8, (("leaf", 32, 7), ("spine", 0, 1))),
        switched("tighter", 8, 8, (("leaf", 4, 2), ("spine", 4, 3), ("core", 4, 1))),
        switched("gb200-nvl72", 72, 4, (("leaf", 8, 1), ("spine", 0, 1))),
        switched("mi300x", 8, 8, (("leaf", 32, 1), ("spine", 0, 1)), kind="mesh", link="mesh-link"),
        switched("workstation", 4, 4, ()),
        torus(
            *("tpu-v5p", (16, 20, 28), "multiple-of-4", SMALL_CUBES),
            prefixes=("v5p",),
            counted=2,
            job_limit=(16, 16, 24),
            twists=TWISTS,
        ),
        torus("tpu-v4", (16, 16, 16), "multiple-of-4", SMALL_CUBES, prefixes=("v4",), counted=2, twists=TWISTS),
        torus("tpu7x", (16, 24, 24), "multiple-of-4", ((1, 1, 1), *SMALL_CUBES), prefixes=("tpu7x",), counted=2),
        torus("tpu-v5e", (16, 16), "exactly-16", FLAT_SHAPES, host=8, prefixes=("v5litepod", "v5e")),
        torus("tpu-v6e", (16, 16), "exactly-16", FLAT_SHAPES, host=8, prefixes=("v6e",)),
        torus("tpu-v3", (32, 32), "exactly-32", ((4, 4), (8, 8), (16, 16), (32, 32)), prefixes=("v3",), counted=2),
        torus("trainium2", (4, 4), "always", (), host=16, network=False),
    )
}


class HandMade:
    """Looks entries up as a Catalog does."""

    def chip(self, name):
        return {"chip": CHIP}[name]

    def link(self, name):
        return LINKS[name]

    def cluster(self, name):
        wanted = name.lower()
        for made in CLUSTERS.values():
            if wanted in {made.name, *made.aliases}:
                return made
        raise InputError.unknown("cluster", name, CLUSTERS)


CATALOG = HandMade()
