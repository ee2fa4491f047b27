"""What `train` and `plan` are asked, made definite: names resolved, defaults taken and said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.counts import parameter_counts
from costmodel.catalog.entries import Model
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.units import parse_count
from costmodel.errors import InputError
from costmodel.search.batch import Batch, parse_batch
from costmodel.search.candidates import candidates, tried_recomputes
from costmodel.search.grid import Grid, search
from costmodel.search.layout import OFFLOADS, OVERLAPS
from costmodel.search.precision import precision_name
from costmodel.search.routing import ExpertRouting, parse_routing
from costmodel.search.software import Software
from costmodel.search.workload import Workload, check_model, default_dtype
from costmodel.topology.frameworks import BEST
from costmodel.topology.machine import Machine

LONGEST_SEQUENCE = 2**24


@dataclass(frozen=True, slots=True)
class Question:
    """A model, a machine, and a batch that may still be rounded."""

    workload: Workload
    batch: Batch
    train_tokens: int
    notes: tuple[str, ...]
    offloads: tuple[str, ...] = OFFLOADS[:1]
    """What a search lets hosts keep."""
    reshards: tuple[str, ...] = ()
    ep_overlap: str = OVERLAPS[0]
    """What the exchanges of experts hide behind."""
    """What a search tries of how long FSDP keeps gathered weights, beside what the recipe has."""
    recomputes: tuple[str, ...] = ()
    """What a search tries of recomputation; what is usual for the code that trains when empty."""
    placement: str = BEST
    """Which placements a search tries: all, or what a framework, an order or a placement reaches."""

    def with_sequences(self, sequences: int) -> Workload:
        """The workload with its batch settled."""
        return replace(self.workload, global_batch=sequences)

    def said(self, sequences: int) -> tuple[str, ...]:
        """What was assumed and rounded, in sentences."""
        rounding = self.batch.note(sequences, self.workload.sequence_length)
        return (*self.notes, *([rounding] if rounding else []))


def ask(
    model: str | Model,
    machine: Machine,
    catalog: Catalog,
    *,
    sequence_length: int | str | None,
    batch: int | str | None,
    tokens: int | str | None,
    dtype: str | None,
    recipe: str | None = None,
    routing: str | ExpertRouting | None = None,
    software: Software | None = None,
    document_length: int | str | None = None,
    loss_chunks: int = 1,
    multi_token_prediction: int = 0,
) -> Question:
    """Make a question definite. Raises InputError for a name, number or model that cannot be used."""
    InputError.unless(model, (str, Model), "a model is a name, a size such as '70B', or a path")
    shape = resolve_model(model, catalog) if isinstance(model, str) else model
    check_model(shape)
    defaults = catalog.assumptions("workload")
    notes = list(machine.notes)
    if sequence_length is None:
        length = min(int(defaults["sequence_length"].value), shape.max_sequence)
        notes.append(f"sequences of {length:,} tokens assumed (--seq)")
    else:
        length = parse_count(str(sequence_length), "sequence length")
        if length > LONGEST_SEQUENCE:
            raise InputError(
                f"a sequence of {length:,} tokens is longer than {LONGEST_SEQUENCE:,}, the most that is considered"
            )
        typed = str(sequence_length).strip()
        if typed[-1:] in {"k", "K"}:
            binary = f"{typed[:-1].strip()}Ki"
            notes.append(f"sequences of {length:,} tokens, since k is a thousand; {binary} is {parse_count(binary):,}")
        if length > shape.max_sequence:
            notes.append(f"{shape.name} was published for sequences up to {shape.max_sequence:,}")
    parameters = parameter_counts(shape)["parameters"]
    asked = parse_batch(None if batch is None else str(batch), length, parameters, defaults)
    if batch is None:
        notes.append(f"a batch of {asked.tokens:,} tokens assumed (--batch)")
    if tokens is None:
        train_tokens = int(defaults["train_tokens"].value)
        notes.append(f"a run of {train_tokens:,} tokens assumed (--tokens)")
    else:
        train_tokens = parse_count(str(tokens), "tokens")
    precision = default_dtype(machine.chip) if dtype is None else precision_name(dtype)
    if recipe is not None:
        catalog.recipe(recipe)
    document = 0 if document_length is None else parse_count(str(document_length), "document length")
    if document > length:
        raise InputError(f"--document-length {document:,} is more than a sequence of {length:,} tokens holds")
    InputError.unless(loss_chunks, int, "--loss-chunks is a whole number")
    if not 1 <= loss_chunks <= length:
        raise InputError(f"--loss-chunks {loss_chunks} is out of range: from 1 to the {length:,} tokens of a sequence")
    notes += further_tokens(shape, multi_token_prediction)
    if routing is not None and shape.experts is None:
        notes.append(f"{shape.name} has no experts: --routing changes nothing")
    if document:
        notes.append(f"documents of {document:,} tokens packed into sequences; attention stays inside them")
    workload = Workload(
        machine=machine,
        model=shape,
        sequence_length=length,
        global_batch=1,
        dtype=precision,
        recipe=recipe or "",
        routing=parse_routing(routing) if isinstance(routing, str) else routing or ExpertRouting(),
        software=software or Software(),
        document_length=document,
        loss_chunks=loss_chunks,
        multi_token_modules=multi_token_prediction,
    )
    return Question(workload, asked, train_tokens, tuple(notes))


def further_tokens(model: Model, trained: int) -> list[str]:
    """What is to be said of the modules that predict further tokens, those trained beside those that a model was published with.

    Raises InputError for a number of modules that cannot be.
    """
    InputError.unless(trained, int, "--mtp is a whole number of modules")
    published = model.multi_token_prediction_layers
    if not 0 <= trained <= model.layers:
        near = f"{model.name} was published with {published}" if published else "models are trained with 1 or 2"
        raise InputError(
            f"--mtp {trained} is out of range: from 0 to the {model.layers} layers of {model.name}; {near}"
        )
    if trained == published:
        return [f"trained with {_modules(trained)} (--mtp)"] if trained else []
    if not trained:
        return [
            f"trained without its {_modules(published)}; --mtp {published} adds {'it' if published == 1 else 'them'}"
        ]
    known = f"{model.name} was published with {published or 'none'}"
    return [f"trained with {_modules(trained)} (--mtp); {known}"]


def _modules(number: int) -> str:
    return f"{number} multi-token-prediction module{'' if number == 1 else 's'}"


def require_legal(grid: Grid) -> None:
    """Raise InputError, with the rule that most layouts broke, when no layout is legal."""
    if not grid.legal.any():
        worst = max(grid.broken, key=lambda rule: grid.broken[rule])
        raise InputError(
            f"no layout of {grid.workload.model.name} is legal on {grid.workload.machine.name_as_typed} with "
            f"{grid.workload.global_batch:,} sequences: most break the rule that {worst}"
        )


def batches(question: Question, catalog: Catalog) -> list[int]:
    """The numbers of sequences to try in turn, those that divide well over the chips first; one where it is exact."""
    slack = catalog.assumptions("workload")["batch_rounding"].value
    return question.batch.candidates(question.workload.machine.chips, question.workload.sequence_length, slack)


def searched(
    question: Question, catalog: Catalog, progress: Callable[[float], None] = lambda _: None, *, so_far: bool = False
) -> Grid:
    """The grid of all layouts, at the first batch that any legal layout divides.

    Where the batch may be rounded, sizes that divide well over the chips are tried in turn. `so_far` as for `search`.
    """
    grids: list[Grid] = []
    for sequences in batches(question, catalog):
        settled = question.with_sequences(sequences)
        tried = candidates(
            settled.model.layers,
            sequences,
            settled.sequence_length,
            recomputes=question.recomputes or tried_recomputes(settled.software),
            experts=settled.routed_experts,
            offloads=question.offloads,
            shards=settled.shards,
            reshards=question.reshards,
        )
        tried = replace(tried, ep_overlap=question.ep_overlap)
        grids.append(search(settled, catalog, tried, progress, placement=question.placement, so_far=so_far))
        if grids[-1].legal.any():
            return grids[-1]
    return grids[0]
