"""What the equations of offload need to know of a machine's hosts, and whether it is known."""

from __future__ import annotations

from math import inf

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.search.layout import on_drives, parts_offloaded
from costmodel.topology.machine import Machine
from costmodel.topology.places import pairs

NEEDED = {"dram_capacity": "memory", "dram_bandwidth": "bandwidth of the memory"}
NEEDED_ON_DRIVES = {"drive_read_bandwidth": "bandwidth of a drive", "drive_capacity": "size of a drive"}


def host_inputs(machine: Machine, catalog: Catalog) -> dict[str, float]:
    """The inputs by name; what nobody knows is without limit, which `check_host` refuses where a layout would rest on it."""
    to_host = pairs(machine)["host"].inputs
    host = {name: fact.value for name, fact in machine.cluster.host.items()}
    constants = {name: number.value for name, number in catalog.assumptions("offload").items()}
    return {
        "offload_link_rate": to_host["host_link_bandwidth"],
        "offload_link_share": to_host["pair_share"],
        "offload_chips": min(machine.cluster.chips_per_host, machine.chips),
        "dram_bandwidth": host.get("dram_bandwidth", inf),
        "dram_efficiency": catalog.assumptions("host")["dram_efficiency"].value,
        "drives": host.get("drives", 1),
        "drive_read_bandwidth": host.get("drive_read_bandwidth", inf),
        "host_capacity": host.get("dram_capacity", inf),
        "drive_capacity": host.get("drive_capacity", inf),
        "host_update_traffic": constants["update_traffic"],
        "host_drive_traffic": constants["drive_traffic"],
        "host_set_aside": constants["buffers"],
    }


def unknown_of_host(machine: Machine, offload: str) -> list[str]:
    """What a layout that offloads so rests on and the catalog does not know of the hosts."""
    needed = NEEDED if parts_offloaded(offload) else {}
    needed = needed | (NEEDED_ON_DRIVES if on_drives(offload) else {})
    return [words for name, words in needed.items() if name not in machine.cluster.host]


def check_host(machine: Machine, offload: str) -> None:
    """Raise InputError naming what is not known of the hosts of a machine, where the layout rests on it."""
    if missing := unknown_of_host(machine, offload):
        raise InputError(
            f"offload={offload} needs the {' and the '.join(missing)} of a host, which the catalog does not know of "
            f"{machine.cluster.name}: give them in a cluster of your own (--catalog), under host"
        )
