"""A collective while others use the same links: loads of each resource, together and alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costmodel.catalog.units import parse_size
from costmodel.errors import InputError
from costmodel.generated import collectives_math
from costmodel.report import Table, human
from costmodel.studies.operations import PLACES, ROUTED, operation_named
from costmodel.studies.timings import Group, Timing, timings
from costmodel.topology.machine import AXIS_NAMES

FAST, NICS, UPLINKS = "fast", "nics", "uplinks"
_OUTER = {"nic": NICS, "dcn": NICS, "uplink": UPLINKS}
NOTHING = {"latency": 0.0, "fast": 0.0, "nics": 0.0, "uplinks": 0.0, "time": 0.0}
MOST = 2**20


@dataclass(frozen=True, slots=True)
class SharedLinks:
    """What several collectives at once take. Seconds; `loads` by resource: one group, what is beside it, all of them."""

    groups: int
    beside: str
    loads: Mapping[str, tuple[float, float, float]]
    alone_s: float
    together_s: float
    in_turn_s: float
    slower: float

    def result(self) -> Mapping[str, object]:
        """As scripts take it."""
        names = ("one_s", "beside_s", "together_s")
        return {
            "groups": self.groups,
            "beside": self.beside,
            "alone_s": self.alone_s,
            "together_s": self.together_s,
            "in_turn_s": self.in_turn_s,
            "slower": self.slower,
            "loads": {name: dict(zip(names, seconds, strict=True)) for name, seconds in self.loads.items()},
        }

    def table(self) -> Table:
        """For people."""
        others = " and ".join(
            [*([f"{self.groups} groups"] if self.groups > 1 else []), *([self.beside] if self.beside else [])]
        )
        rows = [[name, *(human.seconds(value) for value in values)] for name, values in self.loads.items()]
        told = f"At once {human.seconds(self.together_s)}, {human.number(self.slower)} times as long as alone "
        told += f"({human.seconds(self.alone_s)}); one after the other {human.seconds(self.in_turn_s)}."
        return Table(f"Shared links: {others}", ("load of", "one group", "beside it", "all"), rows, (told,))


def sharing(
    first: Timing, refused: bool, beside: str | None, groups: int, ranks: Group | None, dtype: str
) -> SharedLinks | None:
    """The fastest way of the collective while others use its links; None where nothing else does.

    Raises InputError for a collective beside it that cannot be read or that the machine cannot run.
    """
    if not 1 <= groups <= MOST:
        raise InputError(f"--groups-sharing is a count from 1 to {MOST}, not {str(groups)[:20]}")
    if beside is None and groups == 1:
        return None
    if refused or ranks is None:
        raise InputError(
            "--beside and --groups-sharing are for one collective of one size: leave out --sweep and --between"
        )
    other, same = None, True
    if beside is not None:
        other, group = _beside(beside, ranks, dtype)
        same = not ranks.machine.is_torus or _share_an_axis(ranks, group)
    one, more = _load(first), NOTHING if other is None else _load(other)
    found = collectives_math.shared_links(
        groups=groups,
        same_fast_links=float(same),
        **{f"one_{name}": value for name, value in one.items()},
        **{f"other_{name}": value for name, value in more.items()},
    )
    kinds = {
        FAST: ranks.machine.dimensions[0].link.kind,
        NICS: "dcn" if ranks.machine.is_torus else "nic",
        UPLINKS: "uplink",
    }
    loads = {kind: (one[name], more[name], float(found[name])) for name, kind in kinds.items() if found[name] > 0}
    times = [float(found[name]) for name in ("together", "in_turn", "slower")]
    return SharedLinks(groups, beside or "", loads, first.time_s, *times)


def _beside(text: str, ranks: Group, dtype: str) -> tuple[Timing, Group]:
    """The fastest way of the collective beside, and its group."""
    operation, colon, rest = text.partition(":")
    size, _, where = rest.partition(":")
    if not colon or not size:
        raise InputError(
            f"--beside {text[:40]!r} is not OPERATION:SIZE or OPERATION:SIZE:GROUP, such as all-gather:64MiB:8"
        )
    name = operation_named(operation)
    if name in (*PLACES, *ROUTED, "barrier"):
        raise InputError(f"{name} has no size and group that --beside could give: all-gather:64MiB:8 has")
    machine = ranks.machine
    axes = where if where and not where.isdigit() else None
    group = Group.of(
        machine,
        group=int(where[:12]) if where.isdigit() else None,
        axes=axes,
        stride=1,
        library=ranks.library,
        dispatch_latency=ranks.inputs.get("dispatch_latency", 0.0),
    )
    rows = timings(name, parse_size(size), group, dtype, None)
    return next(row for row in rows if row.competes), group


def _share_an_axis(one: Group, other: Group) -> bool:
    """Whether two groups of a torus lie along an axis that both use."""
    return any(one.inputs[f"size_{axis}"] > 1 and other.inputs[f"size_{axis}"] > 1 for axis in AXIS_NAMES)


def _load(timing: Timing) -> dict[str, float]:
    """What the equations take of a timing."""
    load = {**NOTHING, "latency": timing.latency_s, "time": timing.time_s}
    for place, seconds in timing.parts.items():
        name = _OUTER.get(place, FAST)
        load[name] = max(load[name], seconds)
    return load
