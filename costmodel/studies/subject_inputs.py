"""What the equations of a subject of `explain` are given, by name, under a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from costmodel.errors import InputError
from costmodel.search.evaluate import evaluate, inputs
from costmodel.studies.buckets import bucket_inputs, reduced_whole
from costmodel.studies.economics import list_price, run_inputs
from costmodel.studies.intervals import StepErrors
from costmodel.studies.offload import offload_inputs
from costmodel.studies.traffic import traffic_inputs

if TYPE_CHECKING:
    from costmodel.catalog.catalog import Catalog
    from costmodel.search.layout import Layout
    from costmodel.search.workload import Workload


def subject_inputs(
    subject: str, workload: Workload, layout: Layout, train_tokens: int, catalog: Catalog
) -> tuple[dict[str, Any], list[str]]:
    """The inputs, and what is to be said of them; raises InputError where the layout has nothing of the subject."""
    given = inputs(workload, layout, catalog)
    if subject == "training":
        return given, []
    values = evaluate(workload, layout, catalog)
    if subject == "run":
        price = list_price(workload.machine.cluster.prices)
        return run_inputs(workload, values, catalog, train_tokens, price), []
    if subject == "buckets":
        if not reduced_whole(layout):
            raise InputError(
                f'no gradient is reduced in buckets under "{layout}": give --layout with zero=0 and dp of 2 or more'
            )
        return bucket_inputs(workload, layout, values, catalog), []
    if subject == "overlap":
        return _overlap_inputs(workload, layout, given, values, catalog), []
    if subject == "offload":
        return offload_inputs(workload, given, values, catalog), []
    if subject == "interval":
        error = StepErrors.of(workload, catalog).time
        return error.inputs(values["step_time"]), [error.said()]
    return traffic_inputs(given, values), []


def _overlap_inputs(
    workload: Workload, layout: Layout, given: Mapping[str, Any], values: Mapping[str, Any], catalog: Catalog
) -> dict[str, Any]:
    if layout.tp == 1 or not layout.sequence_parallel:
        raise InputError(
            f'nothing is gathered and scattered in a layer under "{layout}": give --layout with tp and sp=1'
        )
    if workload.model.experts is not None or workload.model.latent_attention is not None:
        raise InputError(
            f"overlaps are of layers with dense feed-forwards and plain attention, which {workload.model.name} has not: "
            "try llama-3-70b"
        )
    pieces = {name: number.value for name, number in catalog.assumptions("tensor-overlap").items()}
    return {
        **given,
        **values,
        **pieces,
        "tp_all_gather": values["along_tp_all_gather"],
        "tp_reduce_scatter": values["along_tp_reduce_scatter"],
    }
