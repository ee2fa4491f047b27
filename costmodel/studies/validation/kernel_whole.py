"""Every measured kernel of aiconfigurator-core that a form of the model is for, not only the tables that constants are fitted to.

Beside those: other frameworks' and versions' kernels, those that a framework picks for some shapes alone, and chips that nothing was
fitted to. What no form is for is named, once a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from costmodel.studies.validation.kernel_packages import (
    EXPERTS_OF,
    FURTHER_SYSTEMS,
    IMPLEMENTATIONS,
    MATMUL_OF,
    SYSTEMS,
    Measured,
    Row,
    by_kernel,
    part_of,
    tables,
    usual_kernel,
)

FITTED = "the constants were fitted to its shape"
OTHERS = "a kernel of another framework or version, or one picked for some shapes, than constants were fitted to"
EAGER = "started eagerly by the host: no time of the device alone"
KINDS = {
    "gemm_perf": "matmul",
    "context_attention_perf": "prefill",
    "generation_attention_perf": "decode",
    "moe_perf": "experts",
    "scale_matrix_perf": "cast",
}
"""Its tables that a form is for."""
COMMUNICATION = "comm"
UNLIKE = {
    "matmul": "rows of other precisions of products",
    "prefill": "rows in eight bits, or with a window",
    "decode": "rows with a cache in eight bits, or with a window",
    "experts": "rows of unevenly routed tokens, of experts over ranks, without gates, or of other precisions",
    "cast": "rows of other types of casts",
}
"""Rows of those tables that the form, or its constants, are not for."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """A table, or the rest of one, that is not predicted."""

    name: str
    source: str
    why_not: str


@dataclass(frozen=True, slots=True)
class Found:
    """A measured kernel: its cells, who ran it, and why it does not count."""

    row: Row
    source: str
    left_out: str


def unlike(root: Path) -> Iterator[Unlike]:
    """The tables that no form is for; those of communication are of another kind of measurement."""
    for path in sorted(root.glob("*/*/*/*/*.parquet")):
        system, family, framework, *_ = path.relative_to(root).parts
        if family != COMMUNICATION and not (
            system in SYSTEMS | FURTHER_SYSTEMS and _tables_of(path, system, framework)
        ):
            known = system in SYSTEMS | FURTHER_SYSTEMS
            why = f"no form is for kernels of {family.replace('_', ' ')} on their own"
            yield _unlike(root, path, why if known else f"{system} is no chip of the catalog")


def rest(root: Path, taken: Mapping[Path, int]) -> Iterator[Unlike]:
    """Of tables of which so many rows were taken, those that hold more."""
    from pyarrow import parquet

    for path, count in taken.items():
        if count < parquet.read_metadata(path).num_rows:
            yield _unlike(root, path, UNLIKE[KINDS[path.stem]])


def _unlike(root: Path, path: Path, why: str) -> Unlike:
    system, _, framework, version, _ = path.relative_to(root).parts
    return Unlike(f"{system}/{framework}/{version}/{path.stem}", f"{framework}/{version}/{path.stem}", why)


def whole_tables(root: Path) -> Iterator[Measured]:
    """Every table that a form is for, a precision at a time, so that shapes come again soon."""
    for system in SYSTEMS | FURTHER_SYSTEMS:
        every = [
            table
            for path in sorted((root / system).glob("*/*/*/*.parquet"))
            for table in _tables_of(path, system, path.parts[-3])
        ]
        yield from sorted(every, key=lambda table: (table.kind, table.precision))


def _tables_of(path: Path, system: str, framework: str) -> list[Measured]:
    kind = KINDS.get(path.stem)
    if kind is None or framework not in IMPLEMENTATIONS:
        return []
    precisions = {"matmul": tuple(MATMUL_OF), "experts": tuple(EXPERTS_OF), "cast": ("fp8",)}.get(kind, ("bf16",))
    return [Measured(kind, system, framework, precision, path) for precision in precisions]


def found_in(root: Path, table: Measured, cache_bytes: float) -> list[Found]:
    """The measured kernels of a table; those count that are of a kernel that constants are fitted to, in a shape that they are not."""
    every = list(by_kernel(table, cache_bytes))
    usual = usual_kernel(kernel for kernel, _ in every) if table in set(tables(root, SYSTEMS | FURTHER_SYSTEMS)) else ""
    eager = table.kind == "matmul" and (table.framework, table.precision) == ("vllm", "fp8-block")
    return [
        Found(
            row,
            f"{table.source}, {kernel}",
            EAGER if eager else OTHERS if kernel != usual else FITTED if part_of(row) == "fit" else "",
        )
        for kernel, row in every
    ]
