"""`explain`: what a formula says, in symbols and with the numbers of one answer put in.

A quantity is named `SUBJECT.NAME`, or NAME alone where that says enough. Subjects are the training step, the collectives of
a group of ranks, and what a model is made of. This is the one study that reads the equations themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costmodel.catalog.catalog import Catalog
from costmodel.errors import EquationError, InputError, nearest
from costmodel.studies.explain_inputs import Inputs, collective_inputs, model_inputs, training_inputs
from costmodel.studies.explanations import ExplainAnswer, Form, Quantities
from costmodel.studies.regimes import beyond_the_peak, named, regime_of
from costmodel.studies.subjects import COUNTS, FEW, OF_A_STEP, SUBJECTS, systems

if TYPE_CHECKING:
    from costmodel.catalog.entries import Model
    from costmodel.search.layout import Layout
    from costmodel.search.software import Software
    from costmodel.symbolic import Axis, EquationSystem
    from costmodel.symbolic.point import Point


def quantities() -> Quantities:
    """The quantities that answer something by themselves; all that they are made of can be explained too."""
    from costmodel.equations.collectives.group_on_switches import ALGORITHMS_ON_SWITCHES
    from costmodel.equations.evaluation import reported

    training, _ = systems("training")[0]
    names: dict[str, Iterable[str]] = {
        "training": [name for name in reported(training) if not name.startswith("rule_")],
        "collective": ALGORITHMS_ON_SWITCHES,
        "model": COUNTS,
    }
    names |= FEW
    rows = []
    for subject, chosen in names.items():
        system, _ = systems(subject)[0]
        rows += [(subject, e.name, e.unit.label, e.meaning) for e in map(system.__getitem__, chosen)]
    return Quantities(tuple(rows), SUBJECTS)


def explain(
    quantity: str,
    model: str | Model | None = None,
    on: str | None = None,
    *,
    size: int | str | None = None,
    layout: str | Layout | None = None,
    slices: int = 1,
    sequence_length: int | str | None = None,
    batch: int | str | None = None,
    dtype: str | None = None,
    recipe: str | None = None,
    software: Software | None = None,
    multi_token_prediction: int = 0,
    group: int | None = None,
    axes: str | None = None,
    stride: int = 1,
    library: str | None = None,
    depth: int | None = None,
    rows: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    values: Mapping[str, float | str] | None = None,
    form: Form = "text",
    catalog: Catalog | Path | None = None,
) -> ExplainAnswer:
    """The definition of a quantity, and of those that it is made of; with the numbers of an answer where one is named.

    Args:
        quantity: `SUBJECT.NAME` or NAME, such as `step_time`, `collective.all_reduce` or `model.parameters`.
        model: for numbers of a training step or of a model: as `train` takes it.
        on: for numbers of a training step or a collective: the machine.
        size: for numbers of a collective: its payload.
        layout: of a training step, as `train` takes it; the fastest one that fits when it is left out.
        slices: torus slices of that shape.
        sequence_length: tokens of a sequence.
        batch: sequences of a step, or tokens with a suffix such as `16M`.
        dtype: of the elements.
        recipe: of a training step, as `train` takes it; so is `software`.
        software: see `recipe`.
        multi_token_prediction: see `recipe`.
        group: ranks of a collective's group; `axes`, `stride` and `library` as `collective` takes them.
        axes: see `group`.
        stride: see `group`.
        depth: how many definitions to go down; 2 with numbers and 1 without, by default.
        rows: the row to look at, by axis, such as {"matmul": "ffn_in"}; where none is given, the one with the largest value.
        only: instead of the tree, the quantity as an expression of these others along the branches taken.
        values: numbers in place of the answer's, in SI units or as texts such as `2.2s`: inputs, or quantities whose formula
            then does not count, such as {"step_time": "2.2s"} of a measured step. Alone they do where they are all that is needed.
        form: of the tree in `tables()`: text, latex or markdown.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.

    Raises InputError, with the nearest valid choice, for anything that cannot be used.

    """
    from costmodel.studies.replaced import replace_numbers
    from costmodel.symbolic.explain import definition, tree
    from costmodel.symbolic.text import plain

    opened = Catalog.of(catalog)
    subject, name = _resolved(quantity, "model" if on is None and model is not None else "training")
    _check_subject(subject, model, on, size, group, axes)
    if multi_token_prediction and subject not in OF_A_STEP:
        raise InputError(
            "--mtp is of a training step, such as `explain step_time deepseek-v3 --on dgx-h100:1024 --mtp 1`"
        )
    if recipe is not None and subject not in OF_A_STEP:
        raise InputError("--recipe is of a training step, such as `explain step_time llama-3-70b --on dgx-h100:512`")
    if model is None and on is None and not values:
        if only or rows:
            raise InputError(
                f"--only and --row need numbers: say what {subject}.{name} is of, {_HOW['training' if subject in OF_A_STEP else subject]}"
            )
        system, looped = _system_with(subject, name)
        told = definition(system, name, 1 if depth is None else depth, looped)
        return ExplainAnswer(f"{subject}.{name}", told, form=form)
    found: Inputs
    if model is None and on is None:
        found = (None, {}, "the numbers given", ())
    elif subject == "collective":
        found = collective_inputs(
            name, on, size, slices, dtype, opened, group=group, axes=axes, stride=stride, library=library
        )
    elif subject == "model":
        found = model_inputs(model, sequence_length, dtype, opened)
    else:
        found = training_inputs(
            model,
            on,
            layout,
            slices,
            sequence_length,
            batch,
            dtype,
            recipe,
            software,
            multi_token_prediction,
            opened,
            subject,
            name,
        )
    kind, inputs, said, notes = found
    system, looped = _system_with(subject, name, kind)
    replaced: dict[str, float] = {}
    if values:
        system, replaced = replace_numbers(system, looped, values, name)
        inputs = {**inputs, **replaced}
        notes = (*notes, *(f"set: {e} = {plain(value, system[e].unit.label)}" for e, value in replaced.items()))
        missing = [] if model or on else [e.name for e in system.inputs([name]) if e.name not in inputs]
        if missing:
            more = f"{', '.join(missing[:8])}{' and others' if len(missing) > 8 else ''}"
            raise InputError(f"{subject}.{name} also needs {more}: --set them too, or name {_NAMED[subject]}")
    point = _point(system, looped, name, inputs, only, replaced)
    title = f"{subject}.{name} of {said}"
    try:
        told = tree(point, name, 2 if depth is None else depth, rows)
        found_regime = regime_of(point, name, only, rows) if only else None
    except EquationError as error:
        raise InputError(str(error)) from None
    return ExplainAnswer(title, told, found_regime, (*notes, *beyond_the_peak(point, name)), form)


_NAMED = dict.fromkeys(OF_A_STEP, "a model and a machine") | {
    "collective": "a payload and a machine",
    "model": "a model",
}
_HOW = {
    "training": "such as `llama-3-70b --on dgx-h100:512`",
    "collective": "such as `--size 1GiB --on dgx-h100:512`",
    "model": "such as `llama-3-70b`",
}


def _resolved(text: str, likely: str) -> tuple[str, str]:
    """Subject and name of a quantity, the likely subject before others; raises InputError with the nearest ones."""
    wanted = text.strip().replace("-", "_")
    subject, dot, name = wanted.rpartition(".")
    if dot and subject not in SUBJECTS:
        raise InputError.unknown("subject", subject, SUBJECTS)
    places = [subject] if dot else sorted(SUBJECTS, key=lambda place: place != likely)
    choices = []
    for place in places:
        known = [known for system, _ in systems(place) for known in system.equations]
        if name in known:
            return place, name
        choices += [other if place == "training" and not dot else f"{place}.{other}" for other in known]
    if not nearest(text, choices):
        raise InputError(f"unknown quantity {text[:60]!r}: `costmodel explain` lists those to start from")
    raise InputError.unknown("quantity", text, choices)


def _system_with(subject: str, name: str, kind: int | None = None) -> tuple[EquationSystem, tuple[Axis, ...]]:
    """The system of a kind of machine, or the first that has the quantity."""
    kinds = systems(subject)
    if kind is None:
        return next(found for found in kinds if name in found[0].equations)
    system = kinds[kind][0]
    if name not in system.equations:
        raise InputError.unknown("quantity of this kind of machine", name, system.equations)
    return kinds[kind]


def _check_subject(subject: str, model: object, on: object, size: object, group: object, axes: object) -> None:
    """Refuse what does not go together, in words."""
    if subject == "collective" and model is not None:
        raise InputError("a collective needs no model; name its payload and machine, " + _HOW["collective"])
    if subject == "collective" and (size is None) != (on is None):
        raise InputError("the numbers of a collective need both its payload and a machine, " + _HOW["collective"])
    if subject != "collective" and not (size is None and group is None and axes is None):
        raise InputError("--size, --group and --axes are of collectives, such as collective.all_reduce")
    if subject in OF_A_STEP and (model is None) != (on is None):
        raise InputError("the numbers of a training step need both a model and a machine, " + _HOW["training"])
    if subject == "model" and model is None and on is not None:
        raise InputError("what a model is made of needs a model and no machine, " + _HOW["model"])


def _point(
    system: EquationSystem,
    looped: Sequence[Axis],
    name: str,
    inputs: Mapping[str, Any],
    only: Sequence[str],
    replaced: Iterable[str],
) -> Point:
    """The values of a quantity, of all that it needs and of what is to be kept; `replaced` are the inputs that were set."""
    from costmodel.runtime import call
    from costmodel.symbolic import compile_math
    from costmodel.symbolic.point import Point

    kept = [named(system, text) for text in only]
    try:
        return Point(system, call(compile_math(system, [name, *kept], looped=looped), inputs), looped)
    except ZeroDivisionError:
        zero = ", ".join(f"--set {e}=0" for e in replaced if inputs[e] == 0)
        why = "the equations divide by it, or by what follows from it; give a number above 0"
        raise InputError(f"{name} cannot be worked out with {zero or 'these numbers'}: {why}") from None
    except ArithmeticError as error:
        raise InputError(f"{name} cannot be worked out with these numbers: {error}") from None
