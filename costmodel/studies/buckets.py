"""What DDP's buckets make of the reduction of gradients under a layout, and which size would show least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.report import human
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload

REDUCTION = "gradients_of_stage_all_reduce"


@dataclass(frozen=True, slots=True)
class GradientBuckets:
    """Buckets of the fullest stage, by the names of the JSON keys: ideal streams, neither of which slows the other.

    `exposed_s` is with no_sync before the last micro-batch of a step.
    """

    bucket_bytes: float
    buckets: int
    reduced_s: float
    exposed_s: float
    exposed_without_no_sync_s: float
    best_bucket_bytes: float
    best_exposed_s: float

    def figures(self) -> dict[str, float]:
        """By name."""
        return asdict(self)

    def said(self) -> str:
        """In a sentence."""
        count = "one bucket" if self.buckets == 1 else f"{self.buckets:,} buckets of {human.size(self.bucket_bytes)}"
        return (
            f"gradients are reduced at once here; PyTorch's DDP in {count} on an idle wire shows {human.seconds(self.exposed_s)} of {human.seconds(self.reduced_s)}; "
            f"{human.size(self.best_bucket_bytes)} a bucket shows least, {human.seconds(self.best_exposed_s)}"
        )


def reduced_whole(layout: Layout) -> bool:
    """Whether every rank keeps, and so reduces, all of its gradients."""
    return layout.zero == 0 and layout.dp * layout.cp > 1


def gradient_buckets(
    workload: Workload, layout: Layout, values: Mapping[str, Any], catalog: Catalog
) -> GradientBuckets | None:
    """The buckets of a layout whose ranks keep whole gradients and states; None where nothing is reduced that way, or by groups of experts too."""
    from costmodel.generated import buckets_math

    if not reduced_whole(layout) or workload.model.experts is not None:
        return None
    given = bucket_inputs(workload, layout, values, catalog)
    found = call(buckets_math.buckets, given)
    return GradientBuckets(
        bucket_bytes=given["bucket_cap"],
        buckets=int(found["buckets"]),
        reduced_s=found["reduced"],
        exposed_s=found["exposed"],
        exposed_without_no_sync_s=found["exposed_without_no_sync"],
        best_bucket_bytes=found["best_bucket"],
        best_exposed_s=found["at_best_exposed"],
    )


def bucket_inputs(workload: Workload, layout: Layout, values: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """What the equations of buckets are given, by name, from the quantities of a step."""
    caps = {name: number.value for name, number in catalog.assumptions("ddp").items()}
    parameters = max(values["stage_parameters"])
    # The all-reduce of one bucket is that of the stage with so few bytes a weight.
    small = inputs(workload, layout, catalog) | {"gradient_wire_bytes": caps["bucket_cap"] / parameters}
    return {
        **values,
        **caps,
        "parameters": parameters,
        "layers": values["mean_layers"],
        "whole_reduction": values[REDUCTION],
        "bucket_reduction": call(math_module(workload).evaluate, small)[REDUCTION],
    }
