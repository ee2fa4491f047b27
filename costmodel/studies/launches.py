"""`kernel launch`: how long a chain of kernels takes, and what of it is launching, by the way in which they are launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Number
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.report import Record, Table, human
from costmodel.runtime import call

LARGEST = 2**31
LONGEST = 86_400.0
"""Seconds that a single kernel can be said to take: a day, which none comes near."""
_MODES = {
    "eager": ("eager_time", "eager_gap", "each kernel launched by the host as it comes"),
    "dsl": ("dsl_time", "dsl_gap", "the same, some through a Python kernel language"),
    "pdl": ("pdl_time", "pdl_gap", "eager, the next kernel's prologue begins early (programmatic dependent launch)"),
    "graph": ("graph_time", "graph_gap", "one launch of a CUDA graph"),
    "graph with pdl": ("pdl_graph_time", "pdl_graph_gap", "a graph with such edges"),
}


@dataclass(frozen=True, slots=True)
class Launching:
    """One way of launching: the whole chain, the gap between two kernels, and what of the whole is no kernel."""

    mode: str
    time_s: float
    gap_s: float
    overhead_s: float
    meaning: str


@dataclass(frozen=True, slots=True)
class LaunchAnswer:
    """A chain of kernels by every way of launching it."""

    on: str
    kernels: int
    kernel_time_s: float
    slow_kernels: int
    busy_s: float
    ways: tuple[Launching, ...]
    notes: tuple[str, ...]
    exit_code: int = 0

    def records(self) -> Sequence[Record]:
        """One row a way."""
        return [
            {
                "on": self.on,
                "kernels": self.kernels,
                "kernel_time_s": self.kernel_time_s,
                "slow_kernels": self.slow_kernels,
                "launch": way.mode,
                "time_s": way.time_s,
                "gap_s": way.gap_s,
                "overhead_s": way.overhead_s,
            }
            for way in self.ways
        ]

    def long_records(self) -> Sequence[Record]:
        """As the rows."""
        return self.records()

    def results(self) -> Sequence[Mapping[str, object]]:
        """As the rows."""
        return self.records()

    def extras(self) -> Mapping[str, object]:
        """What was assumed."""
        return {"notes": list(self.notes)}

    def tables(self) -> Sequence[Table]:
        """One table."""
        rows = [
            (way.mode, human.seconds(way.time_s), human.seconds(way.gap_s), human.seconds(way.overhead_s))
            for way in self.ways
        ]
        each = human.seconds(self.kernel_time_s)
        title = f"{self.kernels:,} kernels of {each} on {self.on}: {human.seconds(self.busy_s)} busy"
        return [Table(title, ("launched", "time", "gap", "no kernel runs"), rows), Table("", notes=self.notes)]


def launch(
    kernels: int,
    kernel_time: float,
    on: str,
    *,
    slow_kernels: int | None = None,
    catalog: Catalog | Path | None = None,
) -> LaunchAnswer:
    """A chain of kernels that follow one another, launched in every way.

    Args:
        kernels: how many.
        kernel_time: seconds of the average one on the device.
        on: the chip.
        slow_kernels: of these, those launched through a Python kernel language in the way `dsl`; all by default.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.

    Raises InputError for counts and times out of range and for chips whose launch gap is unknown.

    """
    opened = Catalog.of(catalog)
    InputError.unless(on, str, "a chip is a name such as 'h100-sxm'")
    chip = opened.chip(on)
    slow = kernels if slow_kernels is None else slow_kernels
    for what, count, least in (("kernels", kernels, 1), ("slow kernels", slow, 0)):
        InputError.unless(count, int, f"{what} are a whole number")
        if not least <= count <= LARGEST:
            raise InputError(f"{count} {what} are out of range: {least} to 2**31")
    if slow > kernels:
        raise InputError(f"{slow} of {kernels} kernels cannot be launched slowly: at most {kernels}")
    if not 0 < kernel_time <= LONGEST:
        raise InputError(f"a kernel takes more than 0 s and at most a day, not {kernel_time:g} s")
    assumed = {name: number.value for name, number in opened.assumptions("kernels").items()}
    gap, in_graph = chip.attainable["launch"], chip.attainable.get("launch_in_graph")
    given = {
        **assumed,
        "kernels": kernels,
        "kernel_time": kernel_time,
        "slow_kernels": slow,
        "device_gap": gap.value,
        "graph_gap": (in_graph if isinstance(in_graph, Number) else gap).value,
    }
    found = call(kernels_math.launches, given)
    ways = tuple(
        Launching(mode, found[time], found[between], found[f"{time.removesuffix('_time')}_overhead"], meaning)
        for mode, (time, between, meaning) in _MODES.items()
    )
    fast, slowly = human.seconds(assumed["host_launch"]), human.seconds(assumed["slow_host_launch"])
    notes = (
        f"Host: {fast} a launch by a fast path, {slowly} through a Python kernel language ({slow:,} of them in `dsl`).",
        *(f"{way.mode}: {way.meaning}." for way in ways),
        "Programmatic dependent launch needs an NVIDIA chip of compute capability 9.0 or more.",
        "No interval: three published chains are all that is at hand, and hosts differ.",
    )
    return LaunchAnswer(chip.name, kernels, kernel_time, slow, found["busy_time"], ways, notes)
