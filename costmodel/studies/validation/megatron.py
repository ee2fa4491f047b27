"""Memory that Megatron-LM's functional tests logged, byte by byte, of the last rank: between steps, and at the peak."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from costmodel.catalog.entries import Model
from costmodel.errors import InputError
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import Layout, parse_layout
from costmodel.search.recomputation import recomputation
from costmodel.search.workload import Workload
from costmodel.studies.intervals import of_memory
from costmodel.studies.question import ask
from costmodel.studies.validation import megatron_experts
from costmodel.studies.validation.machines import Place
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.prepared import Preparing
from costmodel.studies.validation.rows import Row, UnreadError, id_of, read_table
from costmodel.studies.validation.shapes import checked

KIND = "memory"
SOURCE = "megatron-lm-functional-tests"
COLUMNS = {
    "test": "test",
    "family": "family",
    "environment": "environment",
    "platform": "platform",
    "chips": "n_gpus",
    "between_steps_bytes": "allocated_bytes",
    "peak_allocated_bytes": "max_allocated_bytes",
    "layers": "num-layers",
    "hidden_size": "hidden-size",
    "ffn_size": "ffn-hidden-size",
    "heads": "num-attention-heads",
    "head_size": "kv-channels",
    "grouped_queries": "group-query-attention",
    "kv_heads": "num-query-groups",
    "sequence_length": "seq-length",
    "learned_positions": "max-position-embeddings",
    "positions": "position-embedding-type",
    "micro_batch_sequences": "micro-batch-size",
    "global_batch_sequences": "global-batch-size",
    "tp": "tensor-model-parallel-size",
    "pp": "pipeline-model-parallel-size",
    "layers_of_chunk": "num-layers-per-virtual-pipeline-stage",
    "virtual_stages": "num-virtual-stages-per-pipeline-rank",
    "cp": "context-parallel-size",
    "ep": "expert-model-parallel-size",
    "sequence_parallel": "sequence-parallel",
    "distributed_optimizer": "use-distributed-optimizer",
    "bf16": "bf16",
    "fp16": "fp16",
    "gated_ffn": "swiglu",
    "untied_embeddings": "untie-embeddings-and-output-weights",
    "no_biases": "disable-bias-linear",
    "norm": "normalization",
    "vocabulary": "vocab-size",
    "vocabulary_multiple": "make-vocab-size-divisible-by",
    **megatron_experts.COLUMNS,
    "recomputation": "recompute-granularity",
    "recomputed_modules": "recompute-modules",
    "recompute_method": "recompute-method",
    "recompute_layers": "recompute-num-layers",
    "attention_dropout": "attention-dropout",
    "hidden_dropout": "hidden-dropout",
    "implementation": "transformer-impl",
    "flash_attention": "use-flash-attn",
    "attention_backend": "attention-backend",
    "fused_cross_entropy": "cross-entropy-loss-fusion",
    "fp8": "fp8-format",
    "optimizer": "optimizer",
    "latent_attention": "multi-latent-attention",
    "megatron_fsdp": "use-megatron-fsdp",
    "optimizer_instances": "num-distributed-optimizer-instances",
    "qk_norm": "qk-layernorm",
    "further_tokens_layers": "mtp-num-layers",
    "first_stage_layers": "decoder-first-pipeline-num-layers",
    "last_stage_layers": "decoder-last-pipeline-num-layers",
    "gradients_in_bf16": "grad-reduce-in-bf16",
}
"""The columns of tables/published/megatron_memory.csv, and the options of Megatron-LM that they hold."""

GPT2_VOCABULARY = 50_257
DEFAULT_DROPOUT = 0.1
ONE_NODE = 8
PLATFORMS = {"dgx_a100": "a100-sxm-80gb", "dgx_h100": "h100-sxm", "dgx_gb200": "gb200"}
"""Machines that the tests run on now, and the chips in them; readings of other names are old and do not count."""

UNLISTED = re.compile(
    r"frozen|grpo|inference|modelopt|gdn|dsa|muon|mup|fsdp|zp_z3|hybrid|rl_|retro|uneven|account_for|offload|nemotron|reruns|distill|"
    r"cudagraph|a2a_ovlp|decoupled|check_grads|engram|mhc|layer_wise|nd_parallel|optim_cpu|cpu_off|emerging|paged|fim|multi_token|"
    r"defer_embedding|interleaved_group|release|reshard"
)
"""Words in the name of a test for something that its options here do not show and the equations do not have."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one test logged: the workload and layout that its options come to, and constants that they change."""

    workload: Workload
    layout: Layout
    changes: dict[str, float]


def knows(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns is one of such readings."""
    given = set(columns)
    return given >= set(COLUMNS) or given >= {"test", "max_allocated_bytes", "num-layers", "hidden-size"}


def read(path: Path) -> list[Row]:
    """The rows of a table under our names of the columns. Raises InputError for a file that is no such table."""
    columns, rows = read_table(path)
    if not knows(columns):
        raise InputError(f"{str(path)[:200]!r} is no table of Megatron-LM's memory readings")
    if set(columns) >= set(COLUMNS):
        return rows
    return [Row({ours: row.text(theirs) for ours, theirs in COLUMNS.items()}, row.where) for row in rows]


def outcomes(table: Path, preparing: Preparing) -> Iterator[Outcome]:
    """Two outcomes a reading: what stays allocated between steps, and the peak, both of the last stage."""
    seen: Counter[tuple[str, ...]] = Counter()
    names: Counter[str] = Counter()
    for row in read(table):
        name = id_of(row)
        names[name] += 1
        same = tuple(
            row.text(key) for key in ("between_steps_bytes", "peak_allocated_bytes", "layers", "tp", "pp", "cp")
        )
        seen[same] += 1
        left_out = "" if seen[same] == 1 else "the same reading as of another variant of the test"
        if row.text("platform") not in PLATFORMS or row.text("environment") != "dev":
            left_out = "an old name of the platform, or an old environment"
        yield from _both(row, name if names[name] == 1 else f"{name}#{names[name]}", left_out, preparing)


def _both(row: Row, name: str, left_out: str, preparing: Preparing) -> Iterator[Outcome]:
    reason, found, strategy = "", {}, ""
    classes: dict[str, tuple[str, ...]] = {}
    try:
        reading = reading_of(row, preparing)
        strategy = "+".join(axis for axis in ("tp", "cp", "pp", "ep", "dp") if getattr(reading.layout, axis) > 1)
        chip, experts = reading.workload.machine.chip, reading.workload.model.experts is not None
        classes = {name: of_memory(name, chip, experts=experts) for name in ("between_steps", "allocated")}
        given = inputs(reading.workload, reading.layout, preparing.catalog)
        found = dict(call(math_module(reading.workload).evaluate, given | reading.changes))
        broken = [key for key, value in found.items() if key.startswith("rule_") and value <= 0]
        if broken:
            raise UnreadError(f"an illegal layout: {math_module(reading.workload).MEANING[broken[0]]}")
    except InputError as error:
        reason = str(error)
    for quantity, column, equation in (
        ("between_steps_bytes", "between_steps_bytes", "head_between_steps"),
        ("allocated_bytes", "peak_allocated_bytes", "head_allocated"),
    ):
        try:
            measured = row.number(column)
        except UnreadError as error:
            measured, reason = None, str(error)
        if measured is None and not reason:
            continue
        yield Outcome(
            KIND,
            name,
            quantity,
            measured,
            predicted=None if reason else found[equation],
            skipped=reason,
            source=SOURCE,
            chip=PLATFORMS.get(row.text("platform"), row.text("platform")),
            strategy=strategy,
            left_out=left_out,
            classes=() if reason else classes[quantity.removesuffix("_bytes")],
        )


def reading_of(row: Row, preparing: Preparing) -> Reading:
    """The test as a workload and a layout. Raises UnreadError for an option that the equations do not have."""
    _check(row)
    chips = int(row.text("chips")) if row.text("chips").isdigit() and int(row.text("chips")) > 1 else ONE_NODE
    place = Place(
        preparing.machines.chip(PLATFORMS.get(row.text("platform"), "a100-sxm-80gb")), chips, min(chips, ONE_NODE)
    )
    machine = preparing.machines.at(place)
    half = "bf16" if _yes(row, "bf16") else "fp16"
    sequence, batch, micro = (
        row.whole(key) for key in ("sequence_length", "global_batch_sequences", "micro_batch_sequences")
    )
    if sequence is None or batch is None or micro is None:
        raise UnreadError("the sequence length or the batch is not stated")
    recipe = f"megatron-{half}"
    if _yes(row, "fused_cross_entropy") and half == "bf16":
        recipe = "megatron-bf16-fused-loss"
    question = ask(
        _model(row),
        machine,
        preparing.catalog,
        sequence_length=sequence,
        batch=batch,
        tokens=1,
        dtype=half,
        recipe=recipe,
        multi_token_prediction=row.whole("further_tokens_layers") or 0,
    )
    changes = megatron_experts.changes(row)
    if _dropout(row, "hidden_dropout"):
        changes["dropout_bytes"] = preparing.constants["dropout_bytes"].value
    if unfused(row):
        changes["score_bytes"] = preparing.constants["naive_score_bytes"].value
    if row.text("vocabulary_multiple"):
        changes["vocabulary_multiple"] = row.whole("vocabulary_multiple") or 1
    return Reading(question.with_sequences(batch), _layout(row, chips, micro), changes)


def _check(row: Row) -> None:
    """Raise UnreadError for what the equations do not have."""
    family = row.text("family")
    if family not in {"gpt", "moe", "mixtral"}:
        raise UnreadError(f"models of the family {family}")
    word = UNLISTED.search(row.text("test"))
    if word:
        raise UnreadError(f"a test of {word[0].strip('_')}")
    for key, said in (
        ("latent_attention", "latent attention whose ranks are not stated"),
        ("megatron_fsdp", "Megatron-FSDP"),
        ("fp8", "8-bit products"),
        ("first_stage_layers", "stages of their own number of layers"),
        ("last_stage_layers", "stages of their own number of layers"),
        ("gradients_in_bf16", "gradients in bf16"),
    ):
        if row.text(key) not in {"", "False", "false", "0"}:
            raise UnreadError(said)
    if row.text("optimizer_instances") not in {"", "1"}:
        raise UnreadError("several instances of the distributed optimizer")
    if not (_yes(row, "bf16") or _yes(row, "fp16")):
        raise UnreadError("training in 32 bits")
    if row.text("optimizer") not in {"", "adam"}:
        raise UnreadError(f"the optimizer {row.text('optimizer')}")


def _layout(row: Row, chips: int, micro: int) -> Layout:
    tp, pp, cp = (row.whole(key) or 1 for key in ("tp", "pp", "cp"))
    if chips % (tp * pp * cp):
        raise UnreadError(f"tp {tp} x cp {cp} x pp {pp} does not divide {chips} chips")
    dp = chips // (tp * pp * cp)
    layers, of_chunk = row.whole("layers") or 0, row.whole("layers_of_chunk")
    chunks = row.whole("virtual_stages") or (layers // pp // of_chunk if of_chunk else 1)
    sharded = _yes(row, "distributed_optimizer") and dp * cp > 1
    context = f" cp={cp}" if cp > 1 else ""
    return parse_layout(
        f"tp={tp}{context}{megatron_experts.words(row, tp)} pp={pp} dp={dp} v={max(1, chunks)} mbs={micro} zero={int(sharded)} "
        f"sp={int(_yes(row, 'sequence_parallel') and tp > 1)} recompute={recomputed_by(row)}",
        chips,
    )


def recomputed_by(row: Row) -> str:
    """What the options of a test run again, as `recompute` in a layout. Raises InputError for what Megatron-core does not have."""
    kind = row.text("recomputation")
    if kind == "full" and row.text("recompute_method"):
        return str(recomputation(f"full-{row.text('recompute_method')}-{row.whole('recompute_layers') or 1}"))
    if kind in {"", "full"}:
        return kind or "none"
    named = row.text("recomputed_modules").strip("[]").split()
    return str(recomputation("+".join(named))) if named else "attention"


def _model(row: Row) -> Model:
    layers, hidden, heads = (row.whole(key) for key in ("layers", "hidden_size", "heads"))
    if layers is None or hidden is None or heads is None:
        raise UnreadError("the shape is not stated")
    gated = _yes(row, "gated_ffn")
    learned = row.text("positions") in {"", "learned_absolute"}
    biased = not _yes(row, "no_biases")
    # Megatron-LM's defaults: two thirds of 4 H in whole 64s for a gated feed-forward.
    ffn = row.whole("ffn_size") or (4 * hidden * 2 // 3 // 64 * 64 if gated else 4 * hidden)
    return checked(
        Model(
            name=row.text("test")[:100],
            aliases=(),
            family="megatron-test",
            layers=layers,
            hidden_size=hidden,
            ffn_size=ffn,
            heads=heads,
            kv_heads=(row.whole("kv_heads") or heads) if _yes(row, "grouped_queries") else heads,
            head_size=row.whole("head_size") or hidden // heads,
            vocabulary=row.whole("vocabulary") or GPT2_VOCABULARY,
            tied_embeddings=not _yes(row, "untied_embeddings"),
            gated_ffn=gated,
            norm="rmsnorm" if row.text("norm") == "RMSNorm" else "layernorm",
            norms_per_layer=2,
            final_norm=True,
            attention_bias="qkvo" if biased else "none",
            ffn_bias=biased,
            qk_norm="per-head" if _yes(row, "qk_norm") else "none",
            positions=(row.whole("learned_positions") or 0) if learned else 0,
            max_sequence=2**24,
            experts=megatron_experts.experts(row, ffn),
        )
    )


def _yes(row: Row, column: str) -> bool:
    return row.text(column).lower() in {"true", "1"}


def _dropout(row: Row, column: str) -> bool:
    text = row.text(column)
    return float(text) > 0 if re.fullmatch(r"\d*\.?\d+", text) else DEFAULT_DROPOUT > 0


def unfused(row: Row) -> bool:
    """Whether attention writes its scores to memory."""
    local = row.text("implementation") == "local" and not _yes(row, "flash_attention")
    return row.text("attention_backend") == "unfused" or local
