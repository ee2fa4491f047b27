"""`collective`: how long a collective takes, by every algorithm that applies, and what bounds it.

Payload, by the convention of nccl-tests: the whole gathered array of an all-gather, the whole array of each rank of a
reduce-scatter or all-reduce, one rank's whole send buffer of an all-to-all, the root's whole buffer of a gather or scatter,
the message else. "How To Scale Your Model" counts an all-to-all's array over all devices: n times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.links import PROTOCOLS
from costmodel.catalog.units import ELEMENT_BYTES, parse_size
from costmodel.errors import InputError
from costmodel.report import Record, Scalar, Table, human
from costmodel.studies.messages import interval, messages
from costmodel.studies.operations import EXCHANGES, PAYLOADS, PLACES, ROUTED, operation_named
from costmodel.studies.overlay import SeenThrough, overlaid
from costmodel.studies.sharing import SharedLinks, sharing
from costmodel.studies.ties import TIE
from costmodel.studies.timings import Group, Routing, Timing, timings, twist_gain
from costmodel.topology.libraries import NONE, known_library, library_named
from costmodel.topology.machine import Machine, parse_machine

DTYPE = "bf16"

_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class CollectiveAnswer:
    """Timings of one operation, fastest first; of a sweep, the fastest at each size.

    `comparison` holds bounds and other conventions, which nobody runs as they stand; `overlays` the links into the network that
    something lies over; `twist_gain` how many times less an exchange loads the cables of a twisted slice than of a plain one.
    """

    operation: str
    on: str
    group: str
    timings: tuple[Timing, ...]
    comparison: tuple[Timing, ...]
    notes: tuple[str, ...]
    sweep: bool = False
    overlays: tuple[SeenThrough, ...] = ()
    shared: SharedLinks | None = None
    twist_gain: float | None = None
    exit_code: int = 0

    def records(self) -> Sequence[Record]:
        """One row an algorithm, or a size of a sweep."""
        return [{"on": self.on, **timing.record()} for timing in self.timings]

    def long_records(self) -> Sequence[Record]:
        """One row a resource of each."""
        return [
            {"on": self.on, **timing.key(), "item": item, "value": value, "unit": "s"}
            for timing in self.timings
            for item, value in {"latency": timing.latency_s, **timing.parts}.items()
        ]

    def results(self) -> Sequence[Mapping[str, object]]:
        """As the rows, with the seconds on each resource."""
        return [{"on": self.on, **timing.result()} for timing in self.timings]

    def extras(self) -> Mapping[str, object]:
        """Bounds and other conventions, links behind an overlay, and what was assumed."""
        return {
            "comparison": [timing.result() for timing in self.comparison],
            "overlays": [link.result() for link in self.overlays],
            "shared_links": self.shared.result() if self.shared is not None else None,
            "twist_gain": self.twist_gain,
            "notes": list(self.notes),
        }

    def tables(self) -> Sequence[Table]:
        """What was asked, what to compare it with, and what to know."""
        first = self.timings[0]
        what = f" of {human.size(first.size_bytes)}" if first.size_bytes and not self.sweep else ""
        title = f"{self.operation}{what} on {self.on}" + (f": {self.group}" if self.group else "")
        tables = [Table(title, *_grid(self.timings, sweep=self.sweep))]
        if self.comparison:
            tables.append(Table("For comparison", *_grid(self.comparison)))
        tables += [link.table() for link in self.overlays]
        if self.shared is not None:
            tables.append(self.shared.table())
        return [*tables, Table("", notes=self.notes)]


def collective(
    operation: str,
    size: int | str | None,
    on: str,
    *,
    group: int | None = None,
    axes: str | None = None,
    stride: int = 1,
    algorithm: str | None = None,
    dtype: str | None = None,
    slices: int = 1,
    between: str | None = None,
    routing: Routing | None = None,
    sweep: str | None = None,
    overlay: str | None = None,
    mtu: int | str | None = None,
    library: str | None = None,
    protocol: str | None = None,
    started_by: str | None = None,
    beside: str | None = None,
    groups_sharing: int = 1,
    catalog: Catalog | Path | None = None,
) -> CollectiveAnswer:
    """The time of a collective by every algorithm that applies.

    Args:
        operation: as `costmodel collective --help` lists them; `allreduce` and `all_reduce` are understood too.
        size: the payload in bytes, or as text (`1GiB`); none for a barrier, for routed tokens, or with a sweep.
        on: the machine, such as `dgx-h100:512` or `tpu-v5p:8x16x16`.
        group: ranks in a group, all by default; all such groups run at once.
        axes: on a torus, the axes that the group takes whole, such as `x`, `xy` or `xyz+slices`.
        stride: on switches, how many ranks lie from one of the group to the next.
        algorithm: this one only.
        dtype: of the elements; switches do not add integers.
        slices: torus slices of that shape, joined by the data-center network.
        between: of a message, the places: `domain`, a level of the network, `neighbour`, `farthest`, `dcn`, `host`.
        routing: of dispatch and combine, what is sent.
        sweep: the smallest and the largest size, such as `1KiB:16GiB`; doubled from one to the next.
        overlay: what packets go through between fast domains: tunnels, ciphers and a transport of
            hardware/assumptions/networks.yaml, such as `vxlan,ipsec`, or `none`; as the catalog says when it is left out.
        mtu: the largest packet there, in bytes.
        library: what runs the collective: `nccl`, `xla`, or `none` for what the links would allow; that of the machine when it is
            left out, where measurements of it are known and it has the `algorithm`.
        protocol: of nccl, this one only: `ll`, `ll128` or `simple`.
        started_by: the framework whose host starts the collective by itself: `torch` or `jax`; none, from a captured graph.
        beside: another collective at the same time on the same machine, such as `all-gather:64MiB:8`, its group last.
        groups_sharing: groups that run the collective over the same links at the same time.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.

    Raises InputError, with the nearest valid choice, for anything that cannot be used.

    """
    opened = Catalog.of(catalog)
    name = operation_named(operation)
    elements = DTYPE if dtype is None else dtype.lower()
    if elements not in ELEMENT_BYTES:
        raise InputError.unknown("dtype", elements, ELEMENT_BYTES)
    machine, overlays = overlaid(parse_machine(on, slices, opened), overlay, mtu, opened)
    said, ranks = "", None
    InputError.unless(library, (str, type(None)), "a library is named by text, such as 'nccl'")
    run_by = library_named(library, machine)
    dispatch = dispatch_latency(run_by, opened, started_by)
    InputError.unless(routing, (Routing, type(None)), "routing is a costmodel.Routing")
    sizes = _sizes(name, size, sweep, routing, elements)
    if name in PLACES:
        found = [messages(name, payload, machine, between, run_by, dispatch) for payload in sizes]
    else:
        if between is not None:
            raise InputError(
                f"--between is for {' and '.join(PLACES)}; {name} is among the ranks of a group, see --group"
            )
        ranks = Group.of(machine, group=group, axes=axes, stride=stride, library=run_by, dispatch_latency=dispatch)
        said = str(ranks)
        _check_routing(routing, ranks)
        _check_protocol(protocol, ranks)
        found = [timings(name, payload, ranks, elements, routing, protocol) for payload in sizes]
        if protocol is not None and not all(found):
            raise InputError(f"{protocol} does not run {name} here: leave out --protocol")
        if ranks.has_forms_of_library:
            hardware = [timings(name, payload, replace(ranks, library=NONE), elements, routing) for payload in sizes]
            if library is None and algorithm is not None and not _named(algorithm, found[0]):
                found, run_by = hardware, NONE
            else:
                found = [_beside(rows, ideal) for rows, ideal in zip(found, hardware, strict=True)]
    if algorithm is not None:
        found = [_only(algorithm, rows) for rows in found]
    competing = [[row for row in rows if row.competes or algorithm] for rows in found]
    shown = [rows[0] for rows in competing] if sweep else competing[0]
    shown = [replace(row, interval=interval(row, run_by, machine, ranks, opened)) for row in shown]
    others = [row for row in found[0] if not row.competes] if algorithm is None and not sweep else []
    shared = sharing(competing[0][0], name in PLACES or sweep is not None, beside, groups_sharing, ranks, elements)
    gain = twist_gain(ranks) if ranks is not None and name in EXCHANGES else None
    where = machine.name_as_typed + (f" x {machine.slices} slices" if machine.slices > 1 else "")
    notes = (
        *machine.notes,
        PAYLOADS[name],
        who_runs(run_by, machine),
        *([f"The busiest cable carries {gain:.4g} times less than on the plain torus of that shape."] if gain else []),
        *dict.fromkeys(f"80 % interval, {row.interval.said()}." for row in shown if row.interval),
        *_notes([*shown, *others], tied=sweep is None and name not in PLACES),
    )
    return CollectiveAnswer(
        *(name, where, said, tuple(shown), tuple(others), notes),
        sweep=sweep is not None,
        overlays=overlays,
        shared=shared,
        twist_gain=gain,
    )


def _sizes(operation: str, size: int | str | None, sweep: str | None, routing: Routing | None, dtype: str) -> list[int]:
    """The payloads to answer for, in bytes."""
    if (routing is not None) != (operation in ROUTED):
        if routing is None:
            raise InputError(f"{operation} needs --tokens, --hidden, --experts and --top-k")
        raise InputError(f"--tokens, --hidden, --experts and --top-k are for {' and '.join(ROUTED)}, not {operation}")
    if routing is not None or operation == "barrier":
        if size is not None or sweep is not None:
            raise InputError(f"{operation} takes no size: leave out --size and --sweep")
        return [routing.payload(ELEMENT_BYTES[dtype]) if routing else 0]
    if size is not None and sweep is not None:
        raise InputError("--size is one payload and --sweep a range of them: give one of the two")
    if size is None and sweep is None:
        raise InputError(f"{operation} needs a payload: give --size, such as 1GiB, or --sweep, such as 1KiB:16GiB")
    if sweep is None:
        return [_bytes(size)]
    low, colon, high = sweep.partition(":")
    if not colon:
        raise InputError(
            f"--sweep {sweep[:40]!r} is not a range: write the smallest and the largest size, such as 1KiB:16GiB"
        )
    smallest, largest = parse_size(low, "the smallest size"), parse_size(high, "the largest size")
    if smallest > largest:
        raise InputError(f"--sweep goes from the smaller to the larger size: {high}:{low}")
    return [smallest << k for k in range(_LARGEST.bit_length()) if smallest << k <= largest]


def _bytes(size: int | str | None) -> int:
    if isinstance(size, str):
        return parse_size(size)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= _LARGEST:
        raise InputError(f"a payload is a whole number of bytes from 1 to 2**63, not {str(size)[:30]}")
    return size


def _check_routing(routing: Routing | None, group: Group) -> None:
    if routing is None:
        return
    for what, count in (("tokens", routing.tokens), ("hidden", routing.hidden_size), ("experts", routing.experts)):
        if count < 1:
            raise InputError(f"--{what} is a count, 1 or more, not {count}")
        if count > _LARGEST:
            raise InputError(f"--{what} {str(count)[:20]} is too large: at most 2**63")
    if not 1 <= routing.chosen <= routing.experts:
        raise InputError(f"--top-k {routing.chosen} is not possible with {routing.experts} experts: from 1 to that")
    if routing.experts % group.ranks:
        fitting = [n for n in range(1, 2 * group.ranks) if routing.experts % n == 0]
        near = min(fitting, key=lambda n: abs(n - group.ranks))
        raise InputError(
            f"{routing.experts} experts do not lie evenly on {group.ranks} ranks; the nearest group is --group {near}"
        )
    if routing.node_limit is not None:
        fewest = ceil(routing.chosen * group.domains / routing.experts)
        if not fewest <= routing.node_limit <= group.domains:
            raise InputError(
                f"--node-limit {routing.node_limit} is not possible: {routing.chosen} experts of a token lie on "
                f"{fewest} to {group.domains:g} fast domains"
            )


def dispatch_latency(library: str, catalog: Catalog, started_by: str | None) -> float:
    """Seconds that the host adds to a collective that it starts by itself; raises InputError where that is not known."""
    if started_by is None:
        return 0.0
    if library != "nccl":
        raise InputError(f"--started-by is known for collectives of nccl; here runs {library}")
    known = {name.removesuffix("_start"): number for name, number in catalog.assumptions("nccl").items()}
    if started_by.lower() not in known:
        raise InputError.unknown("framework that starts a collective", started_by, known)
    return known[started_by.lower()].value


def who_runs(library: str, machine: Machine) -> str:
    """What runs the collective, in a sentence."""
    if library != NONE:
        return f"As {library} runs it, by constants fitted to measurements; --library none: what the links would allow."
    known = known_library(machine)
    if known != NONE:
        return f"What the links would allow; --library {known}: as that runs it."
    return "What the links would allow: no library of collectives is measured on them."


def _beside(rows: Sequence[Timing], ideal: Sequence[Timing]) -> list[Timing]:
    """A library's timings, for comparison with the fastest that the links would allow and with bounds and conventions."""
    fastest = next((row for row in ideal if row.competes), None)
    bound = (
        [replace(fastest, algorithm="hardware", competes=False, meaning=f"by the links alone, {fastest.algorithm}")]
        if fastest is not None and rows[0].ranks > 1
        else []
    )
    return [*rows, *bound, *(row for row in ideal if not row.competes)]


def _check_protocol(protocol: str | None, group: Group) -> None:
    if protocol is None:
        return
    if not group.has_forms_of_library:
        raise InputError(f"--protocol is of nccl; here runs {group.library}")
    if protocol not in PROTOCOLS:
        raise InputError.unknown("protocol", protocol, PROTOCOLS)


def _named(algorithm: str, rows: Sequence[Timing]) -> list[Timing]:
    """The timing of an algorithm."""
    name = algorithm.lower().replace("_", "-")
    return [row for row in rows if row.algorithm == name]


def _only(algorithm: str, rows: Sequence[Timing]) -> list[Timing]:
    if rows[0].ranks == 1:
        return list(rows)
    found = _named(algorithm, rows)
    if not found:
        raise InputError.unknown(f"algorithm of {rows[0].operation} here", algorithm, [row.algorithm for row in rows])
    return found


def _grid(rows: Sequence[Timing], *, sweep: bool = False) -> tuple[Sequence[str], Sequence[Sequence[Scalar]]]:
    """Headers and cells; an approximate time is marked. Beside an interval there is no room for the parts of the time."""
    first = ["size"] if sweep else []
    bounded = any(row.interval for row in rows)
    told = ["latency", "bandwidth"] if not bounded else ["80 % interval"] if sweep else ["80 % interval", "latency"]
    headers = [*first, "algorithm", "time", *told, "algbw", "busbw", "bound"]
    cells = [
        [
            *([human.size(row.size_bytes)] if sweep else []),
            row.algorithm + (f" ({row.protocol})" if row.protocol else ""),
            ("~" if row.why else "") + human.seconds(row.time_s),
            *([human.span(row.bounds, human.seconds, "-")] if bounded else []),
            *([] if bounded and sweep else [human.seconds(row.latency_s)]),
            *([] if bounded else [human.seconds(row.bandwidth_s)]),
            human.rate(row.algbw_bytes_per_s),
            human.rate(row.busbw_bytes_per_s),
            row.bound,
        ]
        for row in rows
    ]
    return headers, cells


def _notes(rows: Sequence[Timing], *, tied: bool) -> list[str]:
    """Which algorithms are not told apart, what each one is, and which forms are not exact and why."""
    notes = []
    close = [row.algorithm for row in rows if row.competes and row.time_s <= rows[0].time_s * (1 + TIE)]
    if tied and len(close) > 1:
        notes.append(f"Within {TIE:.0%}, and so not told apart: {', '.join(close)}.")
    by_name = {row.algorithm: row for row in rows}
    for row in by_name.values():
        needs = f" ({row.needs})" if row.needs else ""
        notes.append(f"{row.algorithm}: {row.meaning}{needs}.")
    for reason in dict.fromkeys(row.why for row in rows if row.why):
        names = ", ".join(name for name, row in by_name.items() if row.why == reason)
        notes.append(f"Not exact (~), {names}: {reason}.")
    return notes
