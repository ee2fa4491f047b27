"""What keeping states, weights or activations on the host would do to a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.search.workload import Workload
from costmodel.topology.places import pairs


def offload_inputs(
    workload: Workload, given: Mapping[str, Any], values: Mapping[str, Any], catalog: Catalog
) -> dict[str, Any]:
    """What the equations of offload are given, by name, from the inputs and quantities of a step.

    What the catalog does not know of a host is left out: what needs it is then refused by name.
    """
    machine = workload.machine
    to_host = pairs(machine)["host"].inputs
    host = {name: fact.value for name, fact in machine.cluster.host.items()}
    efficiency = catalog.assumptions("host")["dram_efficiency"].value
    found = {
        **given,
        **values,
        **{name: number.value for name, number in catalog.assumptions("offload").items()},
        "repeated": values["repeated_tp"],
        "link_bandwidth": to_host["host_link_bandwidth"] * to_host["pair_share"],
        "chips_per_host": min(machine.cluster.chips_per_host, machine.chips),
    }
    if "dram_bandwidth" in host:
        found["memory_bandwidth_of_host"] = host["dram_bandwidth"] * efficiency
    if "drive_read_bandwidth" in host:
        found |= {"drives": host.get("drives", 1), "drive_bandwidth": host["drive_read_bandwidth"]}
    return found
