"""One message between two places, loading from the host, and waiting for each other."""

from costmodel.equations.collectives.sources import BOOK_LINKS, BOOK_SHARDING, HENSGEN
from costmodel.equations.collectives.sources import LINK_BY_LINK as COUNTED
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
    W = given(bytes_per_second, "one link, one way")

    way = part(CutThrough)
    send_recv_latency = equation(seconds, launch_latency + way.send_recv_latency, "start, and every hop")
    send_recv_bandwidth = equation(seconds, way.send_recv_bandwidth, "once, over all paths")
    send_recv = equation(seconds, send_recv_latency + send_recv_bandwidth, "started, then streamed through")
