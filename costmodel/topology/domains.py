"""Chips of a switched machine over its fast domains, and domains over the levels of its network: as few as do, filled alike."""

from __future__ import annotations

from costmodel.catalog.entries import Cluster, Level
from costmodel.errors import InputError

LARGEST_MACHINE = 2**20
"""Chips of a machine that can be asked for."""


def filled_domains(cluster: Cluster, numbers: tuple[int, ...]) -> tuple[int, int]:
    """How many chips of each fast domain are used, and how many domains, by the `numbers` of a machine's size.

    Raises InputError, with the nearest sizes, where the chips do not spread evenly over domains in whole hosts.
    """
    scale_up, host = cluster.scale_up, cluster.chips_per_host
    if not numbers:
        return scale_up.size, 1
    if len(numbers) == 1 or (len(numbers) == 2 and numbers[1] == host):
        chips = numbers[0] if len(numbers) == 1 else numbers[0] * host
        domains = _even_domains(cluster, chips)
        if domains:
            return chips // domains, domains
        raise InputError(_why_not_chips(cluster, chips))
    part = min(host, scale_up.size)
    if len(numbers) == 2:
        domains, used = numbers
        if used <= scale_up.size and (used % part == 0 or (domains == 1 and used < part)):
            return used, domains
    typed = "x".join(str(number) for number in numbers[:4])
    used = min(scale_up.size, max(part, round(numbers[-1] / part) * part))
    whole = "a domain" if scale_up.size != host else "a node"
    raise InputError(
        f"{cluster.name}:{typed} cannot be had: {whole} of {cluster.name} has {scale_up.size} chips"
        + (f" in hosts of {host}" if host < scale_up.size else "")
        + f"; the nearest is {cluster.name}:{numbers[0]}x{used}"
    )


def _even_domains(cluster: Cluster, chips: int) -> int:
    """The fewest domains over which `chips` spread evenly in whole hosts, or 0 when less than half of each is used."""
    size = cluster.scale_up.size
    part = min(cluster.chips_per_host, size)
    if chips <= part:
        return 1
    if chips % cluster.chips_per_host and (chips > cluster.chips_per_host or chips % part):
        return 0
    fewest = -(-chips // size)
    fitting = (n for n in range(fewest, 2 * fewest + 1) if chips % (n * part) == 0)
    return next(fitting, 0)


def _why_not_chips(cluster: Cluster, chips: int) -> str:
    host = cluster.chips_per_host
    chips = min(chips, LARGEST_MACHINE)
    below = next((n for n in range(chips - 1, 0, -1) if _even_domains(cluster, n)), 0)
    above = next((n for n in range(chips + 1, chips + 64 * host) if _even_domains(cluster, n)), 0)
    counts = [n for n in (below, above) if n]
    near = ("are " if len(counts) > 1 else "is ") + " or ".join(f"{cluster.name}:{n}" for n in counts)
    if chips % host:
        return f"{chips} chips are not whole hosts of {cluster.name}, {host} chips each; the nearest {near}"
    return (
        f"{chips} chips do not spread evenly over domains of {cluster.scale_up.size} chips; the nearest {near}, "
        f"or say how many chips of each domain to use, such as {cluster.name}:4x{cluster.scale_up.size // 2}"
    )


def even_parts(total: int, level: Level) -> int:
    """The fewest equal parts of `total` blocks that fit the blocks of `level`.

    Where more than twice the parts would be needed (a prime number of nodes) and the uplinks are not oversubscribed,
    everything is taken to be in one block: the level costs no bandwidth, and a part of the steps a little latency.
    """
    fewest = -(-total // level.blocks)
    parts = next(parts for parts in range(fewest, total + 1) if total % parts == 0)
    return 1 if parts > 2 * fewest and level.oversubscription.value <= 1 else parts
