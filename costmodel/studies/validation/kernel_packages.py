"""The measured kernel tables of NVIDIA's aiconfigurator-core, where the extra `deep` has installed it.

The tables hold device times of CUDA-graph replays in milliseconds. What must be known of them: a row can stand twice (the first is
taken), a time can be zero or less (dropped), and the rows of eight bits include the cast of the activations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

PACKAGE = "aiconfigurator_core"
MISSING = "the package aiconfigurator-core is not installed: pip install 'roofline-costmodel[deep]'"
SOURCE = "aiconfigurator-core 0.12.0"
Row = Mapping[str, str]

SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "gb200": "gb200",
    "l40s": "l40s",
    "b300_sxm": "b300-sxm",
}
"""Its name of each machine whose kernels constants were fitted to, and the catalog's of the chip."""
FURTHER_SYSTEMS = {"gb300": "gb300", "rtx_pro_6000_server": "rtx-pro-6000-server"}
"""Those of chips that take the constants of a sister, or usual ones."""

VERSIONS = {"trtllm": "1.3.0rc20", "vllm": "0.24.0", "sglang": "0.5.14"}
OLDER = {"a100_sxm": {"trtllm": "1.0.0", "vllm": "0.14.0", "sglang": "0.5.10"}}
IMPLEMENTATIONS = {"trtllm": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}

MATMUL_OF = {
    "bf16": ("trtllm", "bfloat16"),
    "fp8": ("vllm", "fp8"),
    "fp8-block": ("sglang", "fp8_block"),
    "fp4": ("trtllm", "nvfp4"),
}
"""The framework whose products of each precision are taken: those of others differ by 3 % in the median in bf16, by 30 % in fp8."""

EXPERTS_OF = {"bf16": "bfloat16", "fp8-block": "fp8_block"}
SHAPE = {
    "matmul": ("columns", "features"),
    "prefill": ("heads", "kv_heads", "head_size"),
    "decode": ("heads", "kv_heads", "head_size"),
    "experts": ("hidden_size", "expert_ffn_size", "experts", "experts_per_token"),
    "cast": ("features",),
}
"""Columns that are the shape of weights or heads, by which rows are parted into those that are fitted and those that judge."""
WITHOUT_GATE = {(2688, 1856), (2048, 5120), (8192, 5120)}
"""Widths of models and experts of Nemotron 3, whose experts have two matrices. The newest collectors time them so: of tokens for all
experts they take 0.7 to 0.9 of what three matrices would take through memory. Older ones gave them a gate."""
REPEATS = 5
"""Copies of the weights that the collector uses in turn, at most; fewer where one fills the cache."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One table of the package: kernels of one kind, precision and implementation on one chip."""

    kind: str
    system: str
    framework: str
    precision: str
    path: Path

    @property
    def chip(self) -> str:
        """The catalog's name."""
        return (SYSTEMS | FURTHER_SYSTEMS)[self.system]

    @property
    def implementation(self) -> str:
        """Who called the kernel."""
        return IMPLEMENTATIONS[self.framework]

    @property
    def source(self) -> str:
        """What to cite."""
        *_, framework, version, table = self.path.with_suffix("").parts
        return f"{SOURCE}, {framework}/{version}/{table}"


def installed() -> Path | None:
    """The folder of its tables, or None where the package is not there; it is not imported."""
    found = find_spec(PACKAGE) if find_spec("pyarrow") is not None else None
    places = found.submodule_search_locations if found is not None else None
    return Path(places[0]) / "systems" / "data" if places else None


def tables(root: Path, systems: Iterable[str] = SYSTEMS) -> Iterator[Measured]:
    """The tables that constants are fitted to: of each kind and precision those of one framework and version a kernel."""
    for system in systems:
        versions = VERSIONS | OLDER.get(system, {})

        def at(
            family: str, framework: str, name: str, system: str = system, versions: Mapping[str, str] = versions
        ) -> Path:
            return root / system / family / framework / versions[framework] / f"{name}.parquet"

        for precision, (framework, _) in MATMUL_OF.items():
            yield Measured("matmul", system, framework, precision, at("gemm", framework, "gemm_perf"))
        for framework in versions:
            yield Measured("prefill", system, framework, "bf16", at("attention", framework, "context_attention_perf"))
            if framework != "trtllm":  # whose decode kernels follow none of the smooth forms
                yield Measured(
                    "decode", system, framework, "bf16", at("attention", framework, "generation_attention_perf")
                )
        for framework in versions:
            for precision in EXPERTS_OF:
                yield Measured("experts", system, framework, precision, at("moe", framework, "moe_perf"))
        yield Measured("cast", system, "vllm", "fp8", at("quantize", "vllm", "scale_matrix_perf"))


def rows(table: Measured, cache_bytes: float) -> list[Row]:
    """The rows of a table in the columns of tables/published/kernels, in the package's order; none where it has no such table.

    They are those of the kernel that most rows ran, for a framework picks among several. `cache_bytes` is the last-level cache of the
    chip, which decides how many copies of the weights the collector used in turn.
    """
    found = list(by_kernel(table, cache_bytes))
    usual = usual_kernel(kernel for kernel, _ in found)
    return [row for kernel, row in found if kernel == usual]


def usual_kernel(kernels: Iterable[str]) -> str:
    """The one that most rows ran."""
    counts = Counter(kernels)
    return max(sorted(counts), key=counts.__getitem__, default="")


def by_kernel(table: Measured, cache_bytes: float) -> Iterator[tuple[str, Row]]:
    """Each kernel that ran and its row, as `rows` tells them; of rows that stand more than once the first."""
    if not table.path.exists():
        return
    from pyarrow import parquet

    seen = set()
    for raw in parquet.read_table(table.path, filters=_filters(table)).to_pylist():
        if _is_measured(raw):
            kernel, row = str(raw["kernel_source"]), _COLUMNS[table.kind](table, raw, cache_bytes)
            if (key := (kernel, *row.values())) not in seen:
                seen.add(key)
                yield kernel, {**row, "time_us": f"{raw['latency'] * 1e3:.6g}"}


def part_of(row: Row) -> str:
    """The part that a row belongs to: by a checksum of the shape of its weights or heads."""
    shape = " ".join([row["kind"], *(row[column] for column in SHAPE[row["kind"]])])
    return "judge" if crc32(shape.encode()) % 2 else "fit"


def _filters(table: Measured) -> list[tuple[str, str, str | int]]:
    """What the rows of a table must be that its form and constants are for."""
    if table.kind == "matmul":
        return [("gemm_dtype", "==", MATMUL_OF[table.precision][1])]
    if table.kind == "experts":
        even: list[tuple[str, str, str | int]] = [("moe_ep_size", "==", 1), ("distribution", "==", "balanced")]
        return [*even, ("moe_dtype", "==", EXPERTS_OF[table.precision])]
    if table.kind == "cast":
        return [("quant_dtype", "==", "fp8")]
    return [("attn_dtype", "==", "bfloat16"), ("kv_cache_dtype", "==", "bfloat16")]


def _is_measured(raw: Mapping[str, Any]) -> bool:
    """Whether a row has a time, and is of no window and no experts without a gate."""
    time = raw["latency"]
    timed = bool(time) and time > 0 and math.isfinite(time)
    return timed and not raw.get("window_size") and "nongated" not in (raw["kernel_source"] or "")


def _common(table: Measured) -> dict[str, str]:
    return {
        "kind": table.kind,
        "chip": table.chip,
        "implementation": table.implementation,
        "precision": table.precision,
    }


def _matmul(table: Measured, raw: Mapping[str, Any], cache_bytes: float) -> Row:
    element = {"bf16": 2.0, "fp4": 0.5}.get(table.precision, 1.0)
    copies = min(max(math.ceil(cache_bytes / (raw["n"] * raw["k"] * element)), 1), REPEATS)
    return _common(table) | {
        "groups": "1",
        "rows": str(raw["m"]),
        "columns": str(raw["n"]),
        "features": str(raw["k"]),
        "weight_copies": str(copies),
    }


def _attention(table: Measured, raw: Mapping[str, Any], _: float) -> Row:
    prefill = table.kind == "prefill"
    return _common(table) | {
        "sequences": str(raw["batch_size"]),
        "tokens": str(raw["isl"] if prefill else 1),
        "context_tokens": str(0 if prefill else raw["step"]),
        "causal": "1",
        "heads": str(raw["num_heads"]),
        "kv_heads": str(raw["num_key_value_heads"]),
        "head_size": str(raw["head_dim"]),
    }


def _experts(table: Measured, raw: Mapping[str, Any], _: float) -> Row:
    newest = table.path.parent.name == VERSIONS[table.framework]
    return _common(table) | {
        "tokens": str(raw["num_tokens"]),
        "hidden_size": str(raw["hidden_size"]),
        "expert_ffn_size": str(raw["inter_size"] // raw["moe_tp_size"]),
        "experts": str(raw["num_experts"]),
        "experts_per_token": str(raw["topk"]),
        "gated": "0" if newest and (raw["hidden_size"], raw["inter_size"]) in WITHOUT_GATE else "1",
    }


def _cast(table: Measured, raw: Mapping[str, Any], _: float) -> Row:
    return _common(table) | {"rows": str(raw["m"]), "features": str(raw["k"])}


_COLUMNS = {"matmul": _matmul, "prefill": _attention, "decode": _attention, "experts": _experts, "cast": _cast}
