"""The experts and the latent attention of a Megatron-LM test, and the ranks they take, from its options."""

from __future__ import annotations

import re

from costmodel.catalog.entries import Experts
from costmodel.studies.validation.rows import Row, UnreadError

COLUMNS = {
    "experts": "num-experts",
    "experts_per_token": "moe-router-topk",
    "expert_ffn_size": "moe-ffn-hidden-size",
    "shared_ffn_size": "moe-shared-expert-intermediate-size",
    "expert_layers": "moe-layer-freq",
    "etp": "expert-tensor-parallel-size",
    "grouped_products": "moe-grouped-gemm",
}
"""The columns of tables/published/megatron_memory.csv that tell of experts, and the options of Megatron-LM that they hold."""

DEFAULT_PER_TOKEN = 2
"""Megatron-LM's --moe-router-topk."""


def experts(row: Row, ffn_size: int) -> Experts | None:
    """The mixture of experts of a test, None without one. Raises UnreadError for layers of experts in no regular order."""
    count = row.whole("experts")
    if count is None:
        return None
    shared = row.whole("shared_ffn_size") or 0
    first, every = _layers(row.text("expert_layers"))
    return Experts(
        count=count,
        per_token=row.whole("experts_per_token") or DEFAULT_PER_TOKEN,
        ffn_size=row.whole("expert_ffn_size") or ffn_size,
        shared=1 if shared else 0,
        shared_ffn_size=shared,
        first_layer=first,
        every=every,
    )


def _layers(text: str) -> tuple[int, int]:
    """The first layer with experts, and of how many each one has them: every layer, one in so many, or `([0]*3+[1]*12)`."""
    if not text:
        return 0, 1
    if text.isdigit() and int(text) > 0:
        return 0, int(text)
    dense_first = re.fullmatch(r"\(\[0\]\*(\d+)\+\[1\]\*\d+\)", text)
    if dense_first is None:
        raise UnreadError(f"layers of experts as {text[:40]}")
    return int(dense_first[1]), 1


def words(row: Row, tp: int) -> str:
    """The words of a layout about experts: tensor-parallel ranks share each expert unless the test says otherwise.

    The dispatchers of these tests, all-gather and all-to-all, keep the same of each row.
    """
    if not row.text("experts"):
        return ""
    return f" ep={row.whole('ep') or 1} etp={row.whole('etp') or tp} dispatch=expert"


def changes(row: Row) -> dict[str, float]:
    """Constants that the options change: experts multiplied one by one need no workspaces of grouped products."""
    grouped = row.text("grouped_products").lower() == "true"
    return {} if grouped else {"grouped_workspace_bytes": 0.0}
