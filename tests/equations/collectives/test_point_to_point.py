"""One message over hops, and from the host."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from tests.equations.collectives.drawn import bandwidths, evaluate, latencies, payloads
from tests.simulators import jobs, line, ring
from tests.simulators.jobs import carry_out
from tests.simulators.network import Line, Network, free_running

chunk_counts = st.integers(1, 12)


@given(st.integers(1, 8), st.integers(1, 3), chunk_counts, payloads, latencies, bandwidths)
def test_a_message_streams_through_its_hops(h, paths, k, S, alpha, W):
    """In k chunks it is late by h - 1 chunks; on disjoint paths each carries its part."""
    part = S / paths
    run = carry_out(
        ring.path(h + 1, alpha, W),
        line.relay(h, k),
        jobs.broadcast(range(h + 1), part, jobs.even(k)),
        free_running,
        pipelined=True,
    )
    found = evaluate("cut-through", {"h": h, "paths": paths, "S": S, "alpha": alpha, "W": W})
    assert found["send_recv"] == run - (h - 1) * part / (k * W)


@given(chunk_counts, payloads, latencies, bandwidths, bandwidths)
@example(k=1, S=Fraction(8), latency=Fraction(1), memory=Fraction(2), link=Fraction(1))
def test_loading_from_the_host_takes_its_slower_stage(k, S, latency, memory, link):
    """Host memory, then the host's link: in k chunks the quicker stage adds one chunk."""
    stages: dict = {(0, 1): Line(Fraction(0), memory), (1, 2): Line(latency, link)}
    network = Network(stages, lambda transfer: [(transfer.source, transfer.target)])
    job = jobs.broadcast(range(3), S, jobs.even(k))
    run = carry_out(network, line.relay(2, k), job, free_running, pipelined=True)
    inputs = {"S": S, "host_latency": latency, "host_link": link, "host_memory": memory}
    assert evaluate("host-load", inputs)["host_load"] == run - S / k / max(memory, link)
