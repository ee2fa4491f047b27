"""The numbers that an explanation puts in: the inputs of the equations for a training step, a collective or a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.subjects import systems

if TYPE_CHECKING:
    from costmodel.search.layout import Layout
    from costmodel.search.software import Software

_BY_LIBRARY = 2
"""Where the collectives as a library runs them stand among the systems of collectives."""

Inputs = tuple[int | None, Mapping[str, Any], str, tuple[str, ...]]
"""Which system, its inputs, what they are the numbers of, and what was assumed."""


def training_inputs(
    model: Any,
    on: Any,
    layout: str | Layout | None,
    slices: int,
    sequence_length: int | str | None,
    batch: int | str | None,
    dtype: str | None,
    recipe: str | None,
    software: Software | None,
    multi_token_prediction: int,
    catalog: Catalog,
    subject: str,
    name: str,
) -> Inputs:
    """Those of a training step, or of another subject that is worked out from one. Raises InputError as `train` does."""
    from costmodel.studies.intervals import StepErrors
    from costmodel.studies.question import ask
    from costmodel.studies.subject_inputs import subject_inputs
    from costmodel.studies.train import settle
    from costmodel.topology.machine import parse_machine

    machine = parse_machine(on, slices, catalog)
    question = ask(
        model,
        machine,
        catalog,
        sequence_length=sequence_length,
        batch=batch,
        tokens=None,
        dtype=dtype,
        recipe=recipe,
        software=software,
        multi_token_prediction=multi_token_prediction,
    )
    workload, chosen = settle(question, layout, catalog)
    said = f"{workload.model.name} on {machine.name_as_typed}"
    assumed = [note for note in question.said(workload.global_batch) if subject == "run" or "--tokens" not in note]
    given, noted = subject_inputs(subject, workload, chosen, question.train_tokens, catalog)
    assumed += noted
    if (subject, name) == ("training", "step_time"):
        assumed.append(f"80 % interval, {StepErrors.of(workload, catalog).time.said()}")
    kind = int(machine.is_torus) + 2 * (subject == "training" and workload.has_experts)
    return kind, given, said, (f"layout: {chosen}", *assumed)


def collective_inputs(
    name: str,
    on: Any,
    size: Any,
    slices: int,
    dtype: str | None,
    catalog: Catalog,
    *,
    group: int | None,
    axes: str | None,
    stride: int,
    library: str | None,
) -> Inputs:
    """Those of a collective of ranks of a machine. Raises InputError as `collective` does."""
    from costmodel.catalog.units import parse_size
    from costmodel.studies.collective import DTYPE, who_runs
    from costmodel.studies.operations import ROUTED
    from costmodel.studies.timings import Group, inputs
    from costmodel.topology.libraries import NONE, library_named
    from costmodel.topology.machine import parse_machine

    if name.startswith(ROUTED):
        raise InputError(f"{name} depends on a router: it is explained in symbols alone, without --size and --on")
    elements = (dtype or DTYPE).lower()
    _element_bytes(elements)
    machine = parse_machine(on, slices, catalog)
    run_by, kind = library_named(library, machine), int(machine.is_torus)
    if run_by != NONE and not machine.is_torus:
        if name in systems("collective")[_BY_LIBRARY][0].equations:
            kind = _BY_LIBRARY
        elif library is None:
            run_by = NONE
        else:
            raise InputError(f"{name} is no quantity of {run_by}: leave out --library, or say --library none")
    ranks = Group.of(machine, group=group, axes=axes, stride=stride, library=run_by)
    payload = parse_size(str(size))
    said = f"{size} on {machine.name_as_typed}, {ranks}"
    return kind, inputs(payload, ranks, elements, None), said, (*machine.notes, who_runs(run_by, machine))


def model_inputs(model: Any, sequence_length: int | str | None, dtype: str | None, catalog: Catalog) -> Inputs:
    """Those of what a model is made of. Raises InputError for an unknown model, length or precision."""
    from costmodel.catalog.resolve import resolve_model
    from costmodel.catalog.shape import equation_inputs
    from costmodel.catalog.units import parse_count
    from costmodel.studies.models import CACHE_DTYPE

    shape = resolve_model(model, catalog) if isinstance(model, str) else model
    length = sequence_length or int(catalog.assumptions("workload")["sequence_length"].value)
    tokens, cached = parse_count(str(length), "sequence length"), (dtype or CACHE_DTYPE).lower()
    inputs = equation_inputs(shape) | {
        "sequence_length": tokens,
        "document_length": tokens,
        "cache_value_bytes": _element_bytes(cached),
    }
    note = f"sequences of {tokens:,} tokens, a cache in {cached}, where that matters"
    return 0, inputs, shape.name, (note,)


def _element_bytes(dtype: str) -> float:
    from costmodel.catalog.units import ELEMENT_BYTES

    if dtype not in ELEMENT_BYTES:
        raise InputError.unknown("dtype", dtype, ELEMENT_BYTES)
    return ELEMENT_BYTES[dtype]
