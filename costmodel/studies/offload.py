"""What keeping states, weights or activations on the host would do to a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.search.host import NEEDED, NEEDED_ON_DRIVES
from costmodel.search.workload import Workload


def offload_inputs(
    workload: Workload, given: Mapping[str, Any], values: Mapping[str, Any], catalog: Catalog
) -> dict[str, Any]:
    """What the equations of offload are given, by name, from the inputs and quantities of a step.

    What the catalog does not know of a host is left out: what needs it is then refused by name.
    """
    host = workload.machine.cluster.host
    unknown = {name for name in (*NEEDED, *NEEDED_ON_DRIVES) if name not in host}
    known = {name: value for name, value in (dict(given) | dict(values)).items() if name not in unknown}
    return {
        **known,
        **{name: number.value for name, number in catalog.assumptions("offload").items()},
        "repeated": values["repeated_layer"],
        "chips_per_host": given["offload_chips"],
    }
