"""What the links and switches of a machine give one chip: its fair share of its host's links, a step of a level."""

from costmodel.equations.collectives.twisted import TwistedSlice
from costmodel.symbolic import Chapter, bytes_per_second, count, equation, given, part, seconds, smallest


class FairShare(Chapter):
    """A chip's share of its host's links into a network, all chips of the host sending at once."""

    links_per_host = given(count, "links of a host", owner="cluster")
    link_bandwidth = given(bytes_per_second, "one link, one way", owner="link")
    chips_per_host = given(count, "chips of a host", owner="cluster")

    per_chip = equation(
        bytes_per_second, links_per_host * link_bandwidth / chips_per_host, "a chip's fair share of its host's links"
    )


class SliceShare(Chapter):
    """A chip's share of the network between slices: what it sends there passes its link to its host first."""

    share = part(FairShare, shared=True)
    host_link_bandwidth = given(bytes_per_second, "one chip's link to its host, one way", owner="link")

    out_of_slice = equation(
        bytes_per_second, smallest(share.per_chip, host_link_bandwidth), "what a chip can send to other slices"
    )


class LevelStep(Chapter):
    """One step over a level of a network: up to a switch of the level and down again."""

    link_latency = given(seconds, "one step under the lowest switch", owner="link")
    levels_below = given(count, "levels of switches below the level", owner="cluster")
    switch_latency = given(seconds, "one further switch on the way", owner="link")

    beyond = equation(seconds, 2 * levels_below * switch_latency, "what further switches add, there and back")
    latency = equation(seconds, link_latency + beyond, "one step over the level")


class SwitchFabric(Chapter):
    """What a switched machine gives each of its chips beyond the fast domain."""

    nics_per_host = given(count, "NICs of a host", owner="cluster")
    nic_bandwidth = given(bytes_per_second, "one NIC, one way", owner="link")
    unit_link_latency = given(seconds, "one step between units under the lowest switch", owner="link")
    unit_levels_below = given(count, "levels of switches below the one that joins units", owner="cluster")

    nic = part(FairShare, links_per_host=nics_per_host, link_bandwidth=nic_bandwidth)
    unit = part(LevelStep, link_latency=unit_link_latency, levels_below=unit_levels_below)


class TorusFabric(Chapter):
    """What a torus machine gives each of its chips beyond the slice, and whether the slice is twisted."""

    dcn_links_per_host = given(count, "links of a host into the data-centre network", owner="cluster")
    dcn_bandwidth = given(bytes_per_second, "one of them, one way", owner="link")

    twist = part(TwistedSlice, shared=True)
    dcn = part(SliceShare, links_per_host=dcn_links_per_host, link_bandwidth=dcn_bandwidth)
