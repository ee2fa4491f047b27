"""What a step sends, in bytes: its quantities as the equations of traffic take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WITHOUT_EXPERTS = {
    "ep": 1,
    "expert_replicas": 1,
    "expert_sharing_ranks": 1,
    "heaviest_experts": 0,
    "layer_experts": 0,
    "expert_share": 0,
    "repeated_ep": 0,
    "experts_per_token": 0,
    "sent_tokens": 0,
    "dispatched_token": 0,
    "combined_token": 0,
    "etp": 1,
    "gathered_rows": 0,
}
"""What a step of a dense model has of experts."""


def traffic_inputs(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the equations of traffic are given, by name, from the inputs and quantities of a step."""
    return {**WITHOUT_EXPERTS, **given, **values}
