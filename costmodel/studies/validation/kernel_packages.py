"""The measured kernel tables of NVIDIA's aiconfigurator-core, where the extra `deep` has installed it.

The tables hold device times of CUDA-graph replays in milliseconds. What must be known of them: a row can stand twice (the first is
taken), a time can be zero or less (dropped), and the rows of eight bits include the cast of the activations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "aiconfigurator_core"
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
"""Its name of each machine, and the catalog's of the chip."""

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
        return SYSTEMS[self.system]

    @property
    def implementation(self) -> str:
        """Who called the kernel."""
        return IMPLEMENTATIONS[self.framework]

    @property
    def source(self) -> str:
        """What to cite."""
        *_, framework, version, table = self.path.with_suffix("").parts
        return f"aiconfigurator-core 0.12.0, {framework}/{version}/{table}"


def installed() -> Path | None:
    """The folder of its tables, or None where the package is not there; it is not imported."""
    found = find_spec(PACKAGE)
    places = found.submodule_search_locations if found is not None else None
    return Path(places[0]) / "systems" / "data" if places else None


def tables(root: Path) -> Iterator[Measured]:
    """Every table that a kind of kernel of the model has a form for."""
    for system in SYSTEMS:
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

    `cache_bytes` is the last-level cache of the chip, which decides how many copies of the weights the collector used in turn.
    """
    if not table.path.exists():
        return []
    from pyarrow import parquet

    found = _usual([raw for raw in parquet.read_table(table.path).to_pylist() if _taken(table, raw)])
    seen: dict[tuple[tuple[str, str], ...], Row] = {}
    for raw in found:
        row = _COLUMNS[table.kind](table, raw, cache_bytes)
        seen.setdefault(tuple(row.items()), {**row, "time_us": f"{raw['latency'] * 1e3:.6g}"})
    return list(seen.values())


def _usual(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the kernel that most rows ran: a framework picks among several."""
    kernels = [raw["kernel_source"] for raw in found]
    most = max(sorted(set(kernels)), key=kernels.count, default="")
    return [raw for raw in found if raw["kernel_source"] == most]


def _taken(table: Measured, raw: Mapping[str, Any]) -> bool:
    if not raw["latency"] or not raw["latency"] > 0 or not math.isfinite(raw["latency"]):
        return False
    if table.kind == "matmul":
        return bool(raw["gemm_dtype"] == MATMUL_OF[table.precision][1])
    if table.kind in {"prefill", "decode"}:
        plain = raw["attn_dtype"] == "bfloat16" and raw["kv_cache_dtype"] == "bfloat16"
        return plain and not raw.get("window_size")
    if table.kind == "experts":
        whole = raw["moe_ep_size"] == 1 and raw["distribution"] == "balanced"
        return whole and raw["moe_dtype"] == EXPERTS_OF[table.precision] and "nongated" not in raw["kernel_source"]
    return bool(raw["quant_dtype"] == "fp8")


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
    return _common(table) | {
        "tokens": str(raw["num_tokens"]),
        "hidden_size": str(raw["hidden_size"]),
        "expert_ffn_size": str(raw["inter_size"] // raw["moe_tp_size"]),
        "experts": str(raw["num_experts"]),
        "experts_per_token": str(raw["topk"]),
    }


def _cast(table: Measured, raw: Mapping[str, Any], _: float) -> Row:
    return _common(table) | {"rows": str(raw["m"]), "features": str(raw["k"])}


_COLUMNS = {"matmul": _matmul, "prefill": _attention, "decode": _attention, "experts": _experts, "cast": _cast}
