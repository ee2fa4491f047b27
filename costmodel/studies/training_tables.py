"""Tables for people about training estimates."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel.report import Table, human
from costmodel.search.batch import counted
from costmodel.search.nearest import Change
from costmodel.studies.estimate import COMMUNICATION, MEMORY_ITEMS, TIME_ITEMS, Estimate
from costmodel.studies.intervals import PERCENTILES
from costmodel.studies.stages import MOMENTS

SMALLEST_SHARE = 5e-4
"""Items below this share of a step are left out of the table; CSV and JSON have them."""


def details(found: Estimate, notes: Sequence[str]) -> list[Table]:
    """One estimate: the answer in short, time and memory item by item."""
    return [summary(found, notes), time_table(found), memory_table(found)]


def summary(found: Estimate, notes: Sequence[str]) -> Table:
    """The answer in short."""
    overlap = human.span((found.step_time_overlapped_s, found.step_time_serial_s), human.seconds)
    tokens = found.global_batch * found.sequence_length
    rows = [
        ("layout", found.layout.without_placement),
        ("placement", found.layout.placement),
        ("batch", f"{counted(found.global_batch)} of {found.sequence_length:,} = {human.count(tokens)} tokens"),
        ("step time", f"{human.seconds(found.step_time_s)} (80 % interval {_interval(found, 'step_time', 's')})"),
        ("all overlapped to none", overlap),
        ("throughput", f"{human.rate(found.tokens_per_s, 'tokens/s')}, {human.flops(found.chip_flops_per_s)} a chip"),
        (
            "MFU",
            f"{human.percent(found.mfu)} (attention causal {human.percent(found.mfu_causal)}, hardware {human.percent(found.hfu)})",
        ),
        ("memory", _memory(found)),
        ("run", _run(found)),
        ("with failures", _run_with_failures(found)),
    ]
    return Table(f"{found.model} on {found.on} ({found.chips:,} x {found.chip})", ("", ""), rows, tuple(notes))


def _memory(found: Estimate) -> str:
    used = f"{human.size(found.device_used_bytes)} (80 % interval {_interval(found, 'device_used', 'bytes')})"
    return f"{used} of {human.size(found.capacity_bytes)}: fits {found.fits}"


def _run(found: Estimate) -> str:
    parts = [
        f"{human.count(found.train_tokens)} tokens in {human.duration(found.run_time_s)}",
        f"{human.count(found.chip_time_s / 3600)} chip-hours",
        human.dollars(found.cost_usd),
        human.energy(found.energy_j),
    ]
    return ", ".join(part for part in parts if part != human.UNKNOWN)


def _run_with_failures(found: Estimate) -> str:
    expected = found.failures
    parts = [
        human.duration(expected.run_time_with_failures_s),
        f"{human.count(expected.chip_time_with_failures_s / 3600)} chip-hours",
        human.dollars(expected.cost_with_failures_usd),
        human.energy(expected.energy_with_failures_j),
    ]
    goodput = (
        f"goodput {human.percent(expected.goodput)} "
        f"({human.percent(expected.goodput_low)} to {human.percent(expected.goodput_high)})"
    )
    stops = (
        f"a failure every {human.duration(expected.mtbf_s)}, a checkpoint every "
        f"{human.duration(expected.checkpoint_interval_s)}"
    )
    return f"{', '.join(part for part in parts if part != human.UNKNOWN)}; {goodput}: {stops}"


def time_table(found: Estimate) -> Table:
    """What the slowest stage does and waits for in a step."""
    rows = [
        (
            label,
            human.seconds(found.time[item]),
            human.seconds(found.communication[item]) if item in COMMUNICATION else "",
            human.percent(found.time[item] / found.step_time_s),
        )
        for item, label in TIME_ITEMS.items()
        if found.time[item] > SMALLEST_SHARE * found.step_time_s
        or found.communication.get(item, 0) > SMALLEST_SHARE * found.step_time_s
    ]
    rows.append(("step", human.seconds(found.step_time_s), "", human.percent(1.0)))
    notes = [found.buckets.said()] if found.buckets else []
    return Table("Time of a step", ("item", "shows", "in all", "share"), rows, notes)


def memory_table(found: Estimate) -> Table:
    """What the fullest stage holds at its fullest moment."""
    whole = found.capacity_bytes
    rows = [
        (label, human.size(found.memory[item]), human.percent(found.memory[item] / whole), "", "")
        for item, label in MEMORY_ITEMS.items()
        if found.memory[item] > 0
    ]
    rows += [
        (
            label,
            human.size(size),
            human.percent(size / whole),
            _range(found, quantity),
            _interval(found, quantity, "bytes"),
        )
        for label, quantity, size in (
            ("allocated", "allocated", found.allocated_bytes),
            ("reserved by the allocator", "reserved", found.reserved_bytes),
            ("used on the device", "device_used", found.device_used_bytes),
        )
    ]
    rows.append(("capacity", human.size(whole), human.percent(1.0), "", ""))
    notes = _host_notes(found)
    stage = "the only stage" if found.worst_stage == "only" else f"the {found.worst_stage} stage"
    moment = MOMENTS[found.worst_phase]
    headers = ("item", "size", "of capacity", "range", "80 % interval")
    return Table("Memory of a chip", headers, rows, (f"fullest on {stage}, {moment}", *notes))


def _host_notes(found: Estimate) -> list[str]:
    """What hosts keep, of what they have, and the bandwidth that hides the copies of a layer."""
    host, notes = found.host, []
    if host.used_bytes > 0:
        of = f" of {human.size(host.capacity_bytes)}" if host.capacity_bytes else ""
        notes.append(f"a host keeps {human.size(host.used_bytes)}{of}, what is set aside included")
    if host.drives_used_bytes > 0:
        of = f" of {human.size(host.drives_bytes)}" if host.drives_bytes else ""
        notes.append(f"its drives keep {human.size(host.drives_used_bytes)}{of}")
    if host.left_bytes < 0:
        notes.append(f"it is short by {human.size(-host.left_bytes)}")
    if host.needed_bytes_per_s > 0:
        notes.append(f"copies of a layer hide with {human.rate(host.needed_bytes_per_s, 'B/s')} between host and chip")
    return notes


def _interval(found: Estimate, quantity: str, unit: str) -> str:
    """The 80 % interval of a quantity."""
    low, high = (found.bounds[f"{quantity}_{end}_{unit}"] for end in PERCENTILES)
    return human.span((low, high), human.seconds if unit == "s" else human.size)


def _range(found: Estimate, quantity: str) -> str:
    """The ends of the range of a quantity, where it has one."""
    low, high = (found.memory_ranges[f"{quantity}_{end}_bytes"] for end in ("low", "high"))
    return "" if low == high else human.span((low, high), human.size)


def changes_table(found: Estimate, changes: Sequence[Change] | None) -> list[Table]:
    """With which changes a layout that does not surely fit would; nothing where it does."""
    if changes is None:
        return []
    if not changes:
        return [
            Table(
                "It would fit with", notes=("no layout of this model on these chips: `costmodel plan` says what would",)
            )
        ]
    rows = [
        (
            change.words,
            human.seconds(change.step_time_s),
            f"{100 * (change.step_time_s / found.step_time_s - 1):+.1f}%",
            human.size(change.device_used_bytes),
        )
        for change in changes
    ]
    told = f"all with {counted(found.global_batch)} in a step (--batch {found.global_batch})"
    notes = (f"the fewest changes of the layout, the cheapest first, {told}; `costmodel plan` searches all",)
    return [Table("It would fit with", ("change", "step", "slower", "memory"), rows, notes)]


def comparison(estimates: Sequence[Estimate]) -> Table:
    """Several models side by side."""
    rows = [
        (
            found.model,
            human.seconds(found.step_time_s),
            human.rate(found.tokens_per_s, "tok/s"),
            human.percent(found.mfu),
            human.size(found.device_used_bytes),
            found.fits,
            human.duration(found.run_time_s),
            human.dollars(found.cost_usd),
        )
        for found in estimates
    ]
    return Table("Models", ("model", "step", "throughput", "MFU", "memory", "fits", "run", "cost"), rows)
