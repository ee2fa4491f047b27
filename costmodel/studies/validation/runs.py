"""A published training run: the facts of one row, whichever of the two sets of columns its table has.

The free text of a table with the columns of its sources is put into words of ours by `words`; tables/published/training.csv holds
those words already, so that they are read the same way twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from costmodel.errors import InputError
from costmodel.studies.validation import words
from costmodel.studies.validation.rows import Row, UnreadError, read_table

OURS = (
    *("id", "source", "citation", "framework", "model", "chip"),
    *("chips", "chips_per_node", "network_chip_gb_per_s", "slices", "slice", "sequence_length_tokens"),
    *("global_batch_sequences", "micro_batch_sequences", "tp", "sequence_parallel", "pp", "virtual_stages"),
    *("cp", "ep", "dp", "zero", "shard_group_ranks", "precision"),
    *("recomputation", "attention", "schedule", "traits", "step_time_s", "throughput_step_time_s"),
    *("chip_tflops", "flops_counted", "mfu_percent", "hfu_percent", "memory_quantity", "memory_bytes"),
)
"""The columns of tables/published/training.csv."""
THEIRS = ("id", "source_key", "model", "accelerator", "n_accel", "seq_len", "global_batch", "framework")
"""Columns by which the other kind of table is known."""

GIB, GB = 2.0**30, 1e9


class MemoryRule(NamedTuple):
    """What a code prints as memory, and in which unit."""

    pattern: str
    quantity: str
    unit_bytes: float
    because: str


MEMORY = (
    MemoryRule(r"torchtitan", "reserved_bytes", GIB, "the largest pool of the allocator on any GPU"),
    MemoryRule(
        r"zero-bubble|^megatron-lm$",
        "allocated_bytes",
        GB,
        "the code divides by 1e6; beside its own schedules it ran Megatron-LM's",
    ),
    MemoryRule(r"megatron-deepspeed", "device_used_bytes", GIB, "nvidia-smi; which GB is meant is not known"),
    MemoryRule(
        r"nanotron", "reserved_bytes", GIB, "allocated or reserved: the code logs both, the figure does not say which"
    ),
    MemoryRule(r"megatron-bridge", "allocated_bytes", GB, "bytes over 1e9"),
    MemoryRule(r"^nemo", "between_steps_bytes", GB, "read after the step: states alone"),
)
"""By framework, in order; memory of others is skipped."""


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One run. Words are those of costmodel/studies/validation/words.py, empty or None where the source does not say."""

    id: str
    source: str
    citation: str
    framework: str
    model: str
    chip: str
    chips: int | None
    chips_per_node: int
    network: words.Network
    sequence_length: int | None
    global_batch: int | None
    micro_batch: float | None
    tp: int | None
    sequence_parallel: str
    pp: int | None
    virtual_stages: int | None
    cp: int
    ep: int
    dp: int | None
    zero: str
    shard_group: int
    precision: str
    recompute: str
    attention: str
    schedule: str
    traits: frozenset[str]
    step_time_s: float | None
    throughput_step_time_s: float | None
    chip_tflops: float | None
    flops_counted: str
    mfu_percent: float | None
    hfu_percent: float | None
    memory_quantity: str
    memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A row that could not be read, with the reason and what of it is known."""

    id: str
    source: str
    chip: str
    reason: str
    step_time_s: float | None


def knows(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns is one of training runs."""
    return set(OURS) <= set(columns) or set(THEIRS) <= set(columns)


def read_runs(path: Path) -> Iterator[PublishedRun | Unread]:
    """The runs of a table; a row with a field that cannot be read comes with the reason.

    Raises InputError for a file that is no table of training runs.
    """
    columns, rows = read_table(path)
    if not knows(columns):
        raise InputError(
            f"{str(path)[:200]!r} is no table of training runs: it lacks the columns {', '.join(c for c in THEIRS if c not in columns)}"
        )
    read = _ours if set(OURS) <= set(columns) else _theirs
    for row in rows:
        try:
            yield read(row)
        except UnreadError as error:
            yield Unread(*_known(row), str(error), _first_time(row))


def _known(row: Row) -> tuple[str, str, str]:
    return (
        row.text("id") or row.where,
        row.text("source_key") or row.text("source"),
        row.text("accelerator") or row.text("chip"),
    )


def _first_time(row: Row) -> float | None:
    for column in ("step_time_s", "step_time_derived_s", "throughput_step_time_s"):
        try:
            if (value := row.number(column)) is not None:
                return value
        except UnreadError:
            continue
    return None


def _theirs(row: Row) -> PublishedRun:
    framework = row.text("framework")
    per_node = row.whole("accel_per_node") or 8
    found = words.traits(row.cells)
    pattern = re.search(r"group=(\d+)|^fsdp (\d+) within node", row.text("sharding"))
    quantity, size = _memory(row, framework)
    run = PublishedRun(
        id=row.text("id") or row.where,
        source=row.text("source_key"),
        citation=row.text("source"),
        framework=framework,
        model=row.text("model"),
        chip=row.text("accelerator"),
        chips=row.whole("n_accel"),
        chips_per_node=per_node,
        network=words.network(row.text("network"), per_node),
        sequence_length=row.whole("seq_len"),
        global_batch=row.whole("global_batch"),
        micro_batch=row.number("micro_batch"),
        tp=row.whole("tp"),
        sequence_parallel=words.word("sp", words.SEQUENCE_PARALLEL, row.text("sp")),
        pp=row.whole("pp"),
        virtual_stages=row.whole("vpp"),
        cp=row.whole("cp") or 1,
        ep=row.whole("ep") or 1,
        dp=row.whole("dp"),
        zero=words.word("sharding", words.SHARDING, row.text("sharding")),
        shard_group=int(pattern[1] or pattern[2])
        if pattern
        else per_node
        if re.search(r"^hsdp.*in node", row.text("sharding"))
        else 0,
        precision=words.word("precision", words.PRECISION, row.text("precision")),
        recompute=words.recompute(row.text("recompute")),
        attention=words.word("attention_kernel", words.ATTENTION, row.text("attention_kernel")),
        schedule=words.word("overlap", words.SCHEDULE, row.text("overlap")),
        traits=found,
        step_time_s=row.number("step_time_s"),
        throughput_step_time_s=row.number("step_time_derived_s"),
        chip_tflops=row.number("tflops_per_accel"),
        flops_counted=words.word("tflops_convention", words.FLOPS, row.text("tflops_convention")),
        mfu_percent=row.number("mfu"),
        hfu_percent=_hfu(row.text("notes")),
        memory_quantity=quantity,
        memory_bytes=size,
    )
    return _in_chips(run) if run.chip == "tpu-v7x" else run


def _in_chips(run: PublishedRun) -> PublishedRun:
    """A run whose source counts devices of half a chip, as JAX does on Ironwood: micro-batch and context parallelism a chip."""
    cp = max(1, run.cp // 2)
    dp = None if run.dp is None else run.dp * run.cp // cp
    return replace(run, cp=cp, dp=dp, micro_batch=None if run.micro_batch is None else 2 * run.micro_batch)


def _hfu(notes: str) -> float | None:
    found = re.search(r"\bHFU=(\d+(?:\.\d+)?)", notes)
    value = float(found[1]) if found else 0.0
    return None if not value else value * 100 if value < 1.5 else value


def _memory(row: Row, framework: str) -> tuple[str, float | None]:
    printed = row.number("peak_mem_gib")
    if printed is None:
        return "", None
    for rule in MEMORY:
        if re.search(rule.pattern, framework, re.IGNORECASE):
            return rule.quantity, printed * rule.unit_bytes
    return "unknown", printed * GIB


def _ours(row: Row) -> PublishedRun:
    network = words.Network(row.number("network_chip_gb_per_s"), row.whole("slices") or 1, row.text("slice"))
    return PublishedRun(
        id=row.text("id"),
        source=row.text("source"),
        citation=row.text("citation"),
        framework=row.text("framework"),
        model=row.text("model"),
        chip=row.text("chip"),
        chips=row.whole("chips"),
        chips_per_node=row.whole("chips_per_node") or 8,
        network=network,
        sequence_length=row.whole("sequence_length_tokens"),
        global_batch=row.whole("global_batch_sequences"),
        micro_batch=row.number("micro_batch_sequences"),
        tp=row.whole("tp"),
        sequence_parallel=_one_of(row, "sequence_parallel", ("on", "off")),
        pp=row.whole("pp"),
        virtual_stages=row.whole("virtual_stages"),
        cp=row.whole("cp") or 1,
        ep=row.whole("ep") or 1,
        dp=row.whole("dp"),
        zero=_one_of(row, "zero", ("0", "1", "2", "3")),
        shard_group=row.whole("shard_group_ranks") or 0,
        precision=row.text("precision"),
        recompute=row.text("recomputation"),
        attention=_one_of(row, "attention", ("naive", "flash-2", "fused")),
        schedule=row.text("schedule"),
        traits=frozenset(row.text("traits").split()),
        step_time_s=row.number("step_time_s"),
        throughput_step_time_s=row.number("throughput_step_time_s"),
        chip_tflops=row.number("chip_tflops"),
        flops_counted=_one_of(row, "flops_counted", [rule.word for rule in words.FLOPS]),
        mfu_percent=row.number("mfu_percent"),
        hfu_percent=row.number("hfu_percent"),
        memory_quantity=_one_of(row, "memory_quantity", [rule.quantity for rule in MEMORY] + ["unknown"]),
        memory_bytes=row.number("memory_bytes"),
    )


def _one_of(row: Row, column: str, choices: Sequence[str]) -> str:
    """The cell, empty or one of `choices`. Raises UnreadError for anything else."""
    text = row.text(column)
    if text and text not in choices:
        raise UnreadError(f"{column} is {text[:40]!r}, not one of {', '.join(dict.fromkeys(choices))}")
    return text


def as_ours(run: PublishedRun) -> dict[str, str]:
    """The run as a row of tables/published/training.csv."""
    values = (
        run.id,
        run.source,
        run.citation,
        run.framework,
        run.model,
        run.chip,
        run.chips,
        run.chips_per_node,
        run.network.chip_gbytes_per_s,
        run.network.slices if run.network.slices > 1 else None,
        run.network.slice_named,
        run.sequence_length,
        run.global_batch,
        run.micro_batch,
        run.tp,
        run.sequence_parallel,
        run.pp,
        run.virtual_stages,
        run.cp,
        run.ep,
        run.dp,
        run.zero,
        run.shard_group or None,
        run.precision,
        run.recompute,
        run.attention,
        run.schedule,
        " ".join(sorted(run.traits)),
        run.step_time_s,
        run.throughput_step_time_s,
        run.chip_tflops,
        run.flops_counted,
        run.mfu_percent,
        run.hfu_percent,
        run.memory_quantity,
        run.memory_bytes,
    )
    return {
        name: "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
        for name, value in zip(OURS, values, strict=True)
    }
