"""Published layouts as a person would give them to `train`, beside what their sources say of them.

tables/published/layouts.csv holds a layout a row as the words of `--layout`, on a machine as `--on` takes it. Nothing is assumed
that is not written there, so a row can be asked again by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report import Record
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import parse_layout
from costmodel.search.placing import written_out
from costmodel.studies.question import ask
from costmodel.studies.validation.memory import QUANTITIES
from costmodel.studies.validation.rows import Row, UnreadError, published, read_table
from costmodel.studies.validation.shapes import Shapes
from costmodel.studies.validation.training import step_time_of_rate
from costmodel.topology.frameworks import BEST
from costmodel.topology.machine import parse_machine

MFU = {"full": "mfu", "causal": "mfu_causal"}
"""The quantity by how a source counts the FLOPs of attention."""


def records(catalog: Catalog, table: Path | None = None) -> Iterator[Record]:
    """One record a row and published quantity: what was published, what is predicted, the error, or why there is no prediction.

    Raises InputError for a table that cannot be read.
    """
    shapes = Shapes(catalog, None)
    for row in read_table(table or published("layouts"))[1]:
        values: Mapping[str, Any] = {}
        reason = row.text("left_out")
        try:
            values = values if reason else _evaluated(row, catalog, shapes)
        except InputError as error:
            reason = str(error).partition(";")[0]
        for quantity, measured, predicted in _quantities(row, values):
            yield {
                **{key: row.text(key) for key in ("id", "source", "model", "on")},
                "sequence_length": row.whole("sequence_length"),
                "global_batch_sequences": row.whole("global_batch_sequences"),
                **{key: row.text(key) for key in ("dtype", "recipe")},
                "multi_token_prediction": row.whole("multi_token_prediction") or 0,
                "layout": row.text("layout"),
                "quantity": quantity,
                "published": measured,
                "predicted": predicted,
                "error": None if predicted is None or measured is None else predicted / measured - 1,
                "not_predicted": reason or None,
                "note": row.text("note") or None,
            }


def _evaluated(row: Row, catalog: Catalog, shapes: Shapes) -> Mapping[str, Any]:
    """Every quantity of the step. Raises InputError for what cannot be asked, and for a layout that breaks a rule."""
    machine = parse_machine(row.text("on"), row.whole("slices") or 1, catalog)
    question = ask(
        shapes.model(row.text("model")),
        machine,
        catalog,
        sequence_length=row.whole("sequence_length"),
        batch=row.whole("global_batch_sequences"),
        tokens=1,
        dtype=row.text("dtype") or None,
        recipe=row.text("recipe") or None,
        multi_token_prediction=row.whole("multi_token_prediction") or 0,
    )
    workload = question.with_sequences(row.whole("global_batch_sequences") or 0)
    unsaid = BEST if machine.is_torus else ""
    layout = parse_layout(row.text("layout"), machine.chips, unsaid, experts=workload.model.experts is not None)
    module = math_module(workload)
    given = inputs(workload, written_out(workload, layout, catalog), catalog)
    values: Mapping[str, Any] = call(module.evaluate, given)
    broken = [module.MEANING[name] for name, value in values.items() if name.startswith("rule_") and value <= 0]
    if broken:
        raise UnreadError(f"it breaks the rule that {broken[0]}")
    return values


def _quantities(row: Row, values: Mapping[str, Any]) -> Iterator[tuple[str, float | None, float | None]]:
    """What the row publishes: the quantity, its value, and the predicted one where there are any."""
    seconds, rate, mfu = (row.number(key) for key in ("step_time_s", "chip_tflops", "mfu_percent"))
    if seconds is None and rate is not None and values:
        seconds = step_time_of_rate(rate, row.text("flops_counted"), values)
    if seconds is not None or rate is not None:
        yield "step_time_s", seconds, values.get("step_time")
    if mfu is not None:
        name = MFU[row.text("flops_counted") or "full"]
        yield name, mfu / 100, values.get(name)
    size = row.number("memory_bytes")
    if size is not None:
        name = row.text("memory_quantity")
        yield name, size, values.get(QUANTITIES[name])
