"""Networks that are not clean: headers of frames, tunnels and encryption, limits on packets and flows, slow paths.

A packet is what the network's MTU bounds: an IP packet, or the payload of an InfiniBand packet. A tunnel or a cipher takes its
bytes from inside the MTU; a tag or the frame itself adds bytes outside of it.
"""

from costmodel.symbolic import (
    BYTE,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    floor_log2,
    given,
    infinite,
    largest,
    part,
    per_second,
    seconds,
    select,
    smallest,
)


class Framing(Chapter):
    """What of the bytes on the wire is payload, in full packets."""

    mtu = given(bytes_, "largest packet that the network carries", owner="link")
    header_bytes = given(bytes_, "headers of the transport in a packet", owner="assumption")
    frame_bytes = given(bytes_, "what a frame adds round a packet on the wire", owner="assumption")
    tunnel_bytes = given(bytes_, "all tunnels and ciphers, inside the MTU", owner="assumption")
    tag_bytes = given(bytes_, "all tags and ciphers of the link, outside the MTU", owner="assumption")
    largest_payload = given(
        bytes_, "where payloads are powers of two, the largest; 0: whatever is left of the MTU", owner="assumption"
    )

    room = equation(
        bytes_, mtu - tunnel_bytes - header_bytes, "left of the MTU; less than a byte: nothing gets through"
    )
    payload = equation(
        bytes_,
        select(
            largest_payload > 0,
            smallest(largest_payload, BYTE * 2 ** floor_log2(largest(1, room / BYTE))),
            largest(BYTE, room),
        ),
        "of a full packet",
    )
    wire = equation(
        bytes_, payload + header_bytes + tunnel_bytes + tag_bytes + frame_bytes, "on the wire for a full packet"
    )
    goodput = equation(count, payload / wire, "payload over bytes on the wire: the goodput factor")


class EqualCostPaths(Chapter):
    """Flows that a hash spreads over paths of equal cost (ECMP), all of them always with something to send."""

    flows = given(count, "flows")
    paths = given(count, "paths of equal cost")

    used_share = equation(
        count,
        1 - (1 - 1 / paths) ** flows,
        "share of the paths that carry a flow, in the mean: of the capacity, what is used",
        source="each flow misses a path with the chance 1 - 1/paths",
    )


class Overlay(Chapter):
    """What one link into a network gives through tunnels, ciphers and virtual switches.

    `attained` is of the wire's rate. Measured shares of a link hold for its usual framing, so that `bandwidth` is by how much the
    link is slower than in that framing: what takes the place of its rate wherever it is used.
    """

    link_bandwidth = given(bytes_per_second, "one link, one way", owner="link")
    mtu = given(bytes_, "largest packet that the network carries", owner="link")
    usual_mtu = given(bytes_, "the one that measured shares of the link hold for", owner="assumption")
    packet_rate = given(per_second, "packets that a virtual switch forwards", owner="link")
    cores = given(count, "processor cores that move data", owner="link")
    core_rate = given(bytes_per_second, "what one of them moves", owner="link")
    flows = given(count, "flows that a link's traffic is spread over", owner="link")
    paths = given(
        count, "links of a switch upwards that flows are hashed over, as many as links below it", owner="link"
    )
    flow_rate = given(bytes_per_second, "largest rate of one flow", owner="link")
    window = given(bytes_, "largest amount of a flow on the way, not yet acknowledged", owner="link")
    round_trip = given(seconds, "there and back", owner="link")

    full = part(Framing, shared=True)
    usual = part(Framing, mtu=usual_mtu, tunnel_bytes=0 * BYTE, tag_bytes=0 * BYTE)

    by_wire = equation(bytes_per_second, link_bandwidth * full.goodput, "payload when the wire is full")
    by_packets = equation(bytes_per_second, packet_rate * full.payload, "payload of all packets that are forwarded")
    by_cores = equation(bytes_per_second, cores * core_rate, "what all cores move")
    flow_by_window = equation(
        bytes_per_second, select(round_trip > 0, window / round_trip, infinite), "one flow: a window each round trip"
    )
    one_flow = equation(bytes_per_second, smallest(flow_rate, flow_by_window), "what one flow gets at most")
    by_flows = equation(bytes_per_second, flows * one_flow, "what all flows get at most")
    hashed = part(EqualCostPaths, flows=flows * paths)
    by_paths = equation(
        bytes_per_second,
        by_wire * hashed.used_share,
        "payload when all links under a switch send upwards",
        approximate="the mean link; the flow on the fullest path gets less",
    )
    attained = equation(
        bytes_per_second, smallest(by_wire, by_paths, by_packets, by_cores, by_flows), "payload of one link, one way"
    )
    bandwidth = equation(
        bytes_per_second,
        smallest(link_bandwidth, attained / usual.goodput),
        "rate of a link in its usual framing that carries as much",
    )
    flows_to_fill = equation(
        count,
        largest(1, ceil_divide(smallest(by_wire, by_packets, by_cores), one_flow)),
        "flows that it takes for all there is",
    )
    delay_product = equation(
        bytes_, link_bandwidth * round_trip, "on the way when the wire is full (bandwidth-delay product)"
    )


class SlowPaths(Chapter):
    """Latency through a virtual network whose common packets take a fast path, others a slower one.

    The first packet of a flow goes through a gateway or a controller; features that cost processor time run apart.
    """

    link_latency = given(seconds, "one step without any of this", owner="link")
    fast_path_latency = given(seconds, "what the fast path adds", owner="link")
    coprocessor_latency = given(seconds, "what a packet that needs more work waits beside", owner="link")
    coprocessor_share = given(count, "messages with such a packet", owner="link")
    first_packet_latency = given(seconds, "what the first packet of a flow waits beside", owner="link")

    latency = equation(
        seconds,
        link_latency + fast_path_latency + coprocessor_share * coprocessor_latency,
        "one step of a known flow, in the mean",
        source="the paths of Dalton et al. 2018, Andromeda",
    )
    added = equation(seconds, latency - link_latency, "what it adds to a step of a known flow, in the mean")
    slowest = equation(
        seconds,
        link_latency + fast_path_latency + select(coprocessor_share > 0, coprocessor_latency, 0),
        "one step of a known flow at worst: what a group of many ranks sees",
    )
    first = equation(seconds, slowest + first_packet_latency, "the first step of a new flow")


class OverlaidLink(Chapter):
    """A link as all others see it through the overlay: its rate and its latency."""

    overlay = part(Overlay, shared=True)
    paths = part(SlowPaths, shared=True)
