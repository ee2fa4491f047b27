"""Measurements of one kind with what predicts them, whatever their kind is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from costmodel.catalog.entries import Number
from costmodel.studies.calibration.constants import Constant, Values


@dataclass(frozen=True, slots=True)
class Case:
    """One measured time in seconds. Cases of one `group` are repeats of each other, and are left out together.

    `kernel` names the kernel that ran, where the kind is one of kernels.
    """

    name: str
    group: str
    measured_s: float
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """All cases of a kind: `predict` gives their times in seconds with other numbers in place of some of the catalog's.

    `constants` are those that may be fitted, the ones that are told apart first in front. `blocks` are whole sets of constants that an
    overlay has to hold because no file of the chip does: by chip and name, the constants of a kernel.
    """

    name: str
    files: tuple[str, ...]
    cases: Sequence[Case]
    constants: Sequence[Constant]
    predict: Callable[[Values], Sequence[float]]
    notes: tuple[str, ...] = ()
    blocks: Mapping[tuple[str, str], Mapping[str, Number]] | None = None
