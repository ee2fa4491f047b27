"""Numbers that a person puts in place of an answer's: measured ones, or those of a machine that nobody sells yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from costmodel.catalog.units import parse_measure
from costmodel.errors import InputError

if TYPE_CHECKING:
    from costmodel.symbolic import Axis, EquationSystem


def replace_numbers(
    system: EquationSystem, looped: Collection[Axis], asked: Mapping[str, float | str], wanted: str
) -> tuple[EquationSystem, dict[str, float]]:
    """The system with these quantities as inputs, and their values in SI units, from numbers or texts such as `50GB/s`.

    `wanted` is the quantity that is to be known. Raises InputError for a name that is unknown, does not enter it, is a choice or
    has a value in every row of a looped axis, and for a value that is no number of its unit.
    """
    names = {text: text.strip().replace("-", "_") for text in asked}
    for text, name in names.items():
        if name not in system.equations:
            raise InputError.unknown("quantity", text, system.equations)
        if system[name].labels:
            raise InputError(f"--set {name}: it is a choice of the layout, such as `--layout recompute=full`")
        if name == wanted:
            raise InputError(f"--set {name}: that is what is asked for; set what it is made of")
    axes = system.axes(names.values())
    for name in names.values():
        rows = [axis.name for axis in looped if axis.name in axes[name]]
        if rows:
            raise InputError(f"--set {name}: it has a value for every {' and '.join(rows)}, not one")
    piece = system.cut(*names.values())
    entering = {e.name for e in piece.order([wanted])}
    for name in names.values():
        if name not in entering:
            others = ", ".join(sorted(set(names.values()) - {name}))
            beside = f" once {others} is set" if others else ""
            raise InputError(f"--set {name}: {wanted} does not depend on it{beside}")
    return piece, {
        name: parse_measure(str(asked[text]), system[name].unit.label, f"--set {name}") for text, name in names.items()
    }
