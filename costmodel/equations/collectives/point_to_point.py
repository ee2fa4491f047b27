"""One message between two places, loading from the host, and waiting for each other."""

from costmodel.equations.collectives.fabric import FairShare, LevelStep, SliceShare
from costmodel.equations.collectives.sources import BOOK_LINKS, BOOK_SHARDING, HENSGEN
from costmodel.equations.collectives.sources import LINK_BY_LINK as COUNTED
from costmodel.equations.collectives.torus import SubAxis
from costmodel.equations.collectives.twisted import SEARCHED, TwistedSlice
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_log2,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
)


class StoreAndForward(Chapter):
    """A message over h links, each hop waiting for all of it. Exact for every h; nothing for h = 0."""

    h = given(count, "links on the way")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")

    send_recv_latency = equation(seconds, h * alpha, "every hop", source=COUNTED)
    send_recv_bandwidth = equation(seconds, h * S / W, "the whole message over every link", source=COUNTED)
    send_recv = equation(seconds, send_recv_latency + send_recv_bandwidth, "hop after hop", source=COUNTED)


class CutThrough(Chapter):
    """A message over h links that starts to leave each hop as it arrives, divided over the disjoint paths there are."""

    h = given(count, "links on the longest of the paths")
    paths = given(count, "paths that share no link: a corner of a 2D mesh has two")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")

    send_recv_latency = equation(seconds, h * alpha, "every hop", source=BOOK_LINKS)
    send_recv_bandwidth = equation(seconds, S / (paths * W), "once, over all paths", source=BOOK_LINKS)
    send_recv = equation(
        seconds,
        send_recv_latency + send_recv_bandwidth,
        "streamed through",
        source=BOOK_LINKS,
    )


class HopPayload(Chapter):
    """What a link carries while a hop takes its time: smaller messages are bound by latency."""

    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")

    payload = equation(bytes_, alpha * W, "as long on the link as in the hop", source=BOOK_SHARDING)


class HostLoad(Chapter):
    """Data from the memory of hosts into the memory of their chips, streamed: the slowest stage decides."""

    S = given(bytes_, "what one chip receives")
    host_latency = given(seconds, "start of a copy over the host's link")
    host_link = given(bytes_per_second, "one chip's link to its host, one way")
    host_memory = given(bytes_per_second, "a chip's share of the host's memory bandwidth")

    host_load_latency = equation(seconds, host_latency, "one start")
    host_load_bandwidth = equation(
        seconds, largest(S / host_link, S / host_memory), "the slower of link and host memory"
    )
    host_load = equation(seconds, host_load_latency + host_load_bandwidth, "host memory to chip memory")


class Dissemination(Chapter):
    """A barrier in which rank i signals rank i + 2^j in step j. Exact for every n."""

    n = given(count, "ranks in the group")
    alpha = given(seconds, "latency of one step")

    barrier_latency = equation(
        seconds,
        ceil_log2(n) * alpha,
        "log2 n steps, rounded up",
        source=HENSGEN,
    )
    barrier_bandwidth = equation(seconds, 0, "nothing is carried")
    barrier = equation(seconds, barrier_latency + barrier_bandwidth, "no rank leaves before all have come")


class Message(Chapter):
    """One message between two places while nothing else is sent: its start, and `CutThrough`."""

    h = given(count, "links on the longest of the paths")
    paths = given(count, "paths that share no link")
    S = given(bytes_, "the message")
    launch_latency = given(seconds, "from the call to the first byte")
    alpha = given(seconds, "latency of one hop")
    link_bandwidth = given(bytes_per_second, "one link, one way")
    pair_share = given(count, "share of it that two places attain")

    W = equation(bytes_per_second, link_bandwidth * pair_share, "what one link attains, one way")
    way = part(CutThrough)
    send_recv_latency = equation(seconds, launch_latency + way.send_recv_latency, "start, and every hop")
    send_recv_bandwidth = equation(seconds, way.send_recv_bandwidth, "once, over all paths")
    send_recv = equation(seconds, send_recv_latency + send_recv_bandwidth, "started, then streamed through")


class MessageToNeighbour(Chapter):
    """Between two chips with a link, or of one fast domain."""

    message = part(Message, shared=True, h=1, paths=1)


class MessageToFarthest(Chapter):
    """Between the two chips of a torus that are the farthest apart, on the disjoint ways that start along each axis."""

    size_x = given(count, "chips along X")
    size_y = given(count, "chips along Y")
    size_z = given(count, "chips along Z")
    ring_x = given(count, "1 when X closes to a ring, else 0")
    ring_y = given(count, "1 when Y closes to a ring, else 0")
    ring_z = given(count, "1 when Z closes to a ring, else 0")

    x = part(SubAxis, size=size_x, stride=1, ring=ring_x)
    y = part(SubAxis, size=size_y, stride=1, ring=ring_y)
    z = part(SubAxis, size=size_z, stride=1, ring=ring_z)

    hops = equation(count, x.hops + y.hops + z.hops, "cables to the farthest chip")
    paths = equation(count, x.ways + y.ways + z.ways, "paths of that length that share no cable")
    message = part(Message, shared=True, h=hops)


class MessageToFarthestOfTwist(Chapter):
    """Between two chips of a twisted torus that are the farthest apart; six ways of that length share no cable."""

    twisted = part(TwistedSlice, shared=True)

    hops = equation(count, twisted.twisted_hops, "cables to the farthest chip")
    paths = equation(count, 6, "paths of that length that share no cable", source=SEARCHED, valid="k even")
    message = part(Message, shared=True, h=hops)


class MessageOverNetwork(Chapter):
    """Between ranks of different fast domains, whose ways meet at the switches of one level."""

    share = part(FairShare, shared=True)
    step = part(LevelStep, shared=True)
    message = part(Message, shared=True, h=1, paths=1, alpha=step.latency, link_bandwidth=share.per_chip)


class MessageBetweenSlices(Chapter):
    """Between chips of different slices, over the data-centre network."""

    share = part(SliceShare, shared=True)
    message = part(Message, shared=True, h=1, paths=1, link_bandwidth=share.out_of_slice)


class MessageFromHost(Chapter):
    """From a host's memory to its chips, all of them loading at once."""

    host_link_bandwidth = given(bytes_per_second, "one chip's link to its host, one way")
    pair_share = given(count, "share of it that is attained")
    host_memory_bandwidth = given(bytes_per_second, "memory bandwidth of the host")
    chips_per_host = given(count, "chips of a host")

    load = part(
        HostLoad,
        shared=True,
        host_link=host_link_bandwidth * pair_share,
        host_memory=host_memory_bandwidth / chips_per_host,
    )
