"""How the algorithms of all-to-all run on the levels of a switched machine."""

from costmodel.equations.collectives.all_to_all import BruckExchange
from costmodel.equations.collectives.sources import BRUCK, THAKUR
from costmodel.equations.collectives.sources import ON_LEVELS as COUNTED
from costmodel.equations.collectives.switch_levels import SLOWER, DirectByLevels, RelayedByLevels, SwitchLevels
from costmodel.symbolic import Chapter, equation, largest, part, seconds


class BlocksOnSwitches(Chapter):
    """All-to-all: every rank has a block of S/n for every rank. No placement saves traffic, it only moves it."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S

    direct = part(DirectByLevels)
    direct_ports = direct.ports
    direct = equation(
        seconds,
        direct.latency + largest(direct.ports, direct.nics, direct.uplinks),
        "every block straight to its rank",
        source=COUNTED,
    )

    relayed = part(RelayedByLevels)
    relayed = equation(
        seconds,
        relayed.latency + largest(relayed.ports, relayed.nics, relayed.uplinks),
        "over the fast domain to the right rail, then out (PXN)",
        source="NVIDIA 2022, Doubling all2all performance with NCCL 2.12",
    )

    pairwise_latency = equation(
        seconds,
        at.launch_latency + (m - 1) * at.domain_latency + (u - m) * at.nic_latency + (n - u) * at.unit_latency,
        "n - 1 rounds, one partner each",
    )
    pairwise_ports = equation(seconds, direct_ports, "rounds inside the domain", source=COUNTED)
    pairwise_nics = equation(seconds, (u - m) * S / (n * at.nic), "rounds between domains of the unit")
    pairwise_uplinks = equation(seconds, (n - u) * S / (n * at.uplink), "rounds between units")
    pairwise = equation(
        seconds,
        pairwise_latency + pairwise_ports + pairwise_nics + pairwise_uplinks,
        "one partner after the other, in step",
        source=THAKUR,
    )

    flat = part(BruckExchange, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    bruck_latency = equation(seconds, at.launch_latency + flat.all_to_all_latency, "log2 n steps", approximate=SLOWER)
    bruck_slowest = equation(
        seconds, flat.all_to_all_bandwidth, "each block once for each one in its distance", approximate=SLOWER
    )
    bruck = equation(
        seconds, bruck_latency + bruck_slowest, "blocks share messages on the way", approximate=SLOWER, source=BRUCK
    )
