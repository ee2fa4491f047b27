"""Rows of the collection of published kernel figures, in the columns of tables/published/kernels."""

from __future__ import annotations

from costmodel.studies.validation.rows import Row

THEIRS = frozenset(
    {
        "op",
        "chip",
        "dtype",
        "M",
        "N",
        "K",
        "groups",
        "batch",
        "seqlen",
        "heads",
        "head_dim",
        "causal",
        "impl",
        "time_us",
    }
)
"""The columns by which the collection is known."""

_CHIPS = {
    "H800 SXM5": "h800-sxm",
    "H100 80GB SXM5": "h100-sxm",
    "A100 80GB SXM4": "a100-sxm-80gb",
    "B200": "b200-sxm",
}
_IMPLEMENTATIONS = {
    "FlashAttention-2": "flash-attention-2",
    "FlashAttention-3": "flash-attention-3",
    "DeepGEMM": "deepgemm",
}


def translated(row: Row) -> Row:
    """A row in our columns; what it does not state stays empty, and is then the reason that it is skipped."""
    operation, dtype, way = row.text("op"), row.text("dtype"), row.text("direction")
    product = "gemm" in operation
    passes = {"fwd": "prefill", "fwd+bwd": "forward-backward"}
    cells = {
        "kind": "matmul" if product else passes.get(way, operation),
        "chip": _CHIPS.get(row.text("chip"), row.text("chip")),
        "implementation": _IMPLEMENTATIONS.get(row.text("impl"), row.text("impl")),
        "precision": "fp8-block" if dtype.startswith("fp8 block") else dtype.partition("/")[0],
        "groups": row.text("groups") or "1",
        "rows": row.text("M"),
        "columns": row.text("N"),
        "features": row.text("K"),
        "weight_copies": "1000",
        "cast_included": "no" if product else "",
        "sequences": row.text("batch"),
        "tokens": row.text("seqlen"),
        "context_tokens": "0",
        "causal": row.text("causal"),
        "heads": row.text("heads"),
        "kv_heads": row.text("heads"),
        "head_size": row.text("head_dim"),
        "time_us": row.text("time_us"),
        "source": row.text("source"),
    }
    return Row(cells, row.where)
