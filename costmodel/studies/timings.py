"""One collective at one size: the time of every algorithm, where it goes, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any

from costmodel.catalog.links import PROTOCOLS
from costmodel.catalog.units import ELEMENT_BYTES
from costmodel.generated import collectives_math
from costmodel.generated.labels import CHOICES
from costmodel.report import Scalar
from costmodel.studies.intervals import ErrorClass
from costmodel.topology.groups import group_descriptors
from costmodel.topology.libraries import NONE, library_inputs
from costmodel.topology.machine import Machine

INTEGERS = ("int8", "int32")
"""What switches do not add."""

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Routing:
    """What a router of experts sends: tokens of a rank, features of one, experts in all and of a token.

    `node_limit` is the fast domains that one token may go to, all of them when it is None.
    """

    tokens: int
    hidden_size: int
    experts: int
    chosen: int
    node_limit: int | None = None

    def payload(self, element_bytes: float) -> int:
        """Bytes of all copies that a rank sends, one for each expert."""
        return round(self.tokens * self.chosen * self.hidden_size * element_bytes)


@dataclass(frozen=True, slots=True)
class Timing:
    """One algorithm at one size. Seconds, bytes, bytes a second; `parts` are the seconds on each resource.

    `why` says why an approximate form is not exact, `needs` where it is valid, `protocol` how a library sends. What does not compete is a
    bound or another convention. `interval` is the class of error that bounds the time; a bound or a convention has none.
    """

    operation: str
    algorithm: str
    size_bytes: int
    ranks: int
    time_s: float
    latency_s: float
    bandwidth_s: float
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    bound: str
    parts: Mapping[str, float]
    meaning: str
    source: str = ""
    needs: str = ""
    why: str = ""
    competes: bool = True
    protocol: str = ""
    interval: ErrorClass | None = None

    @property
    def status(self) -> str:
        """Whether the form is exact."""
        return "approximate" if self.why else "exact"

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The 80 % interval of the time."""
        return (None, None) if self.interval is None else self.interval.time(self.time_s)

    def key(self) -> dict[str, Scalar]:
        """What it is the timing of."""
        return {
            "operation": self.operation,
            "algorithm": self.algorithm,
            "protocol": self.protocol,
            "size_bytes": self.size_bytes,
            "ranks": self.ranks,
        }

    def record(self) -> dict[str, Scalar]:
        """As one flat row."""
        return {
            **self.key(),
            "time_s": self.time_s,
            "time_p10_s": self.bounds[0],
            "time_p90_s": self.bounds[1],
            "latency_s": self.latency_s,
            "bandwidth_s": self.bandwidth_s,
            "algbw_bytes_per_s": self.algbw_bytes_per_s,
            "busbw_bytes_per_s": self.busbw_bytes_per_s,
            "bound": self.bound,
            "status": self.status,
            "source": self.source,
            "error_class": self.interval.name if self.interval else None,
        }

    def result(self) -> dict[str, object]:
        """As scripts take it."""
        return {
            **self.record(),
            "approximate": self.why,
            "meaning": self.meaning,
            "needs": self.needs,
            "resources_s": dict(self.parts),
        }


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of a collective: what the equations need to know of them and of the machine."""

    machine: Machine
    inputs: Mapping[str, float]
    ranks: int
    library: str = NONE

    @classmethod
    def of(
        cls,
        machine: Machine,
        *,
        group: int | None,
        axes: str | None,
        stride: int,
        library: str = NONE,
        dispatch_latency: float = 0.0,
    ) -> Group:
        """The group that was asked for; raises InputError if the machine has none such."""
        inputs = {
            **group_descriptors(machine, group=group, axes=axes, stride=stride),
            **library_inputs(machine, library, dispatch_latency),
        }
        if machine.is_torus:
            ranks = inputs["size_x"] * inputs["size_y"] * inputs["size_z"] * inputs["slices"]
        else:
            ranks = inputs["n"]
        return cls(machine, inputs, int(ranks), library)

    @property
    def has_forms_of_library(self) -> bool:
        """Whether its library has forms of its own; on a torus it has constants only."""
        return self.library != NONE and not self.machine.is_torus

    @property
    def module(self) -> str:
        """The generated module of its collectives."""
        by = "_by_library" if self.has_forms_of_library else ""
        return f"costmodel.generated.group_on_{self.machine.fabric}{by}_math"

    def __str__(self) -> str:
        """As a person says it."""
        if self.machine.is_torus:
            axes = [name for name in "xyz" if self.inputs[f"size_{name}"] > 1]
            shape = "x".join(f"{self.inputs[f'size_{name}']:g}" for name in axes)
            along = f" along {''.join(axes)}" if axes else ""
            slices = f" in each of {self.domains:g} slices" if self.domains > 1 else ""
            inside = f", {shape or 1}" if len(axes) != 1 or slices else ""
            return f"{self.ranks:,} ranks{inside}{along}{slices}"
        inside = f", {self.inputs['m']:g} to a domain" if self.domains > 1 else ""
        return f"{self.ranks:,} rank{'s' * (self.ranks > 1)}{inside}"

    @property
    def domains(self) -> float:
        """Fast domains, or slices, that the group spans."""
        return self.inputs["slices"] if self.machine.is_torus else self.inputs["n"] / self.inputs["m"]


def timings(
    operation: str, size: int, group: Group, dtype: str, routing: Routing | None, protocol: str | None = None
) -> list[Timing]:
    """Every algorithm that applies to elements of `dtype`, fastest first; of a library by its fastest protocol, or by `protocol`."""
    if group.ranks == 1:
        alone = Timing(
            operation, "alone", size, 1, 0.0, 0.0, 0.0, None, None, "nothing", {}, "one rank has nothing to send"
        )
        return [alone]
    module = import_module(group.module)
    known = inputs(size, group, dtype, routing)
    values = module.times(**{name: known[name] for name in module.times.__annotations__ if name in known})
    name = operation.replace("-", "_")
    found = []
    for algorithm, facts in module.ALGORITHMS[name].items():
        quantity = f"{name}_{algorithm}"
        if not isfinite(values[quantity]):
            continue
        name_of, by = _split(algorithm, of_library=group.has_forms_of_library)
        if protocol is not None and by != protocol:
            continue
        parts: dict[str, float] = {}
        for resource in facts["resources"]:
            place = _resource(resource, group)
            parts[place] = max(parts.get(place, 0.0), float(values[f"{quantity}_{resource}"]))
        found.append(
            timing(
                *(operation, name_of, size, group.ranks),
                *(float(values[quantity]), float(values[f"{quantity}_latency"]), parts),
                meaning=module.MEANING[quantity],
                needs=facts["valid"],
                source=facts["source"],
                why=facts["approximate"],
                competes=facts["competes"],
                protocol=by,
            )
        )
    fastest: dict[str, Timing] = {}
    for row in sorted(found, key=lambda timing: timing.time_s):
        fastest.setdefault(row.algorithm, row)
    return list(fastest.values())


def _split(algorithm: str, *, of_library: bool) -> tuple[str, str]:
    """The name of an algorithm and that of its protocol, empty where it has none."""
    name, _, last = algorithm.rpartition("_")
    if of_library and last in PROTOCOLS:
        return name.replace("_", "-"), last
    return algorithm.replace("_", "-"), "simple" if of_library and algorithm == "nvls_tree" else ""


def twist_gain(group: Group) -> float | None:
    """By how many times an exchange among all chips of a twisted slice loads its cables less than those of the plain torus.

    None for other groups.
    """
    if not group.machine.twisted:
        return None
    module = import_module(group.module)
    known = inputs(1, group, "bf16", None)
    values = module.times(**{name: known[name] for name in module.times.__annotations__ if name in known})
    gain = float(values["all_to_all_twist_gain"])
    return gain if gain > 1 else None


def inputs(size: int, group: Group, dtype: str, routing: Routing | None) -> dict[str, float]:
    """What the equations of the group take; without a router, one token of no bytes for each rank."""
    router = routing or Routing(1, 0, group.ranks, 1)
    token_bytes = router.hidden_size * ELEMENT_BYTES[dtype]
    inputs = dict(group.inputs) | {
        "S": size,
        "tokens": router.tokens,
        "dispatch_bytes": token_bytes,
        "combine_bytes": token_bytes,
        "experts": router.experts,
        "chosen": router.chosen,
    }
    if not group.machine.is_torus:
        inputs["node_limit"] = router.node_limit or group.domains
        if dtype in INTEGERS:
            inputs["nvls_share"] = inputs["in_network_share"] = 0
    return inputs


def _resource(name: str, group: Group) -> str:
    """What a resource of the equations is called on this machine."""
    if name == "slowest":
        spans = group.inputs
        if spans["n"] <= spans["m"]:
            name = "ports"
        else:
            name = "uplinks" if spans["n"] > spans["u"] and spans["unit_oversubscription"] > 1 else "nics"
    if name in {"ports", "links"}:
        return group.machine.dimensions[0].link.kind
    return {"nics": "nic", "uplinks": "uplink", "dcn": "dcn"}[name]


def timing(
    operation: str,
    algorithm: str,
    size: int,
    ranks: int,
    time: float,
    latency: float,
    parts: Mapping[str, float],
    **more: Any,
) -> Timing:
    """A timing with its rates and its bound."""
    rates: Mapping[str, Any] = {}
    if size and time > 0:
        number = CHOICES["operation"].index(operation.replace("-", "_"))
        rates = collectives_math.rates(operation=number, n=ranks, S=size, time=time)
    largest = max([latency, *parts.values()])
    binding = [
        name for name, value in {"latency": latency, **parts}.items() if value >= largest * (1 - _EQUAL) and value > 0
    ]
    return Timing(
        operation,
        algorithm,
        size,
        ranks,
        time,
        latency,
        time - latency,
        rates.get("algorithm_bandwidth"),
        rates.get("bus_bandwidth"),
        " and ".join(binding) or "nothing",
        parts,
        **more,
    )
