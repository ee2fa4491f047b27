"""Number formats of a training: that of the weight products, and that of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from costmodel.catalog.entries import Chip, Number
from costmodel.catalog.units import ELEMENT_BYTES
from costmodel.errors import InputError


class Precision(NamedTuple):
    """`operand` is the format of what enters a weight product, `needs` the peaks without which a chip cannot do it.

    `said` tells how numbers are scaled.
    """

    operand: str
    needs: tuple[str, ...]
    said: str


PRECISIONS = {
    "bf16": Precision("bf16", ("bf16",), "16 bits, 8 of them exponent"),
    "fp16": Precision("fp16", ("fp16",), "16 bits, 5 of them exponent, with loss scaling"),
    "fp8": Precision("fp8", ("bf16", "fp8"), "8 bits, one scale a tensor from its current values"),
    "fp8-delayed": Precision("fp8", ("bf16", "fp8"), "8 bits, one scale a tensor from the values of past steps"),
    "fp8-rowwise": Precision("fp8", ("bf16", "fp8"), "8 bits, one scale a row"),
    "fp8-block": Precision("fp8", ("bf16", "fp8"), "8 bits, one scale for 128 values, or for 128 x 128 weights"),
    "mxfp8": Precision(
        "fp8", ("bf16", "fp8", "fp4"), "8 bits, one scale for 32 values; chips that have 4 bits have it"
    ),
    "nvfp4": Precision("fp4", ("bf16", "fp4"), "4 bits, one scale for 16 values"),
}
"""By the names of --dtype."""
ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "fp8-current": "fp8",
    "fp8-tensorwise": "fp8",
    "fp8-blockwise": "fp8-block",
    "fp8-subchannel": "fp8-block",
    "fp8-mx": "mxfp8",
    "fp4": "nvfp4",
}
HALF = ("bf16", "fp16")
"""Those of the products that stay in 16 bits."""
FILE = "precisions"
"""The numbers of the formats are in hardware/assumptions/precisions.yaml."""


def precision_name(name: str) -> str:
    """The name in PRECISIONS. Raises InputError, with the nearest, where there is none."""
    word = name.lower()
    word = ALIASES.get(word, word)
    if word not in PRECISIONS:
        raise InputError.unknown("training precision", name, PRECISIONS)
    return word


def half_of(dtype: str) -> str:
    """The 16-bit format of what is not cast."""
    return dtype if dtype in HALF else HALF[0]


def offered(chip: Chip) -> list[str]:
    """The precisions that a chip can train in: all peaks that they need are known."""
    return [
        name
        for name, one in PRECISIONS.items()
        if all(isinstance(chip.peak.get(peak), Number) for peak in one.needs) and _share(one.operand) in chip.attainable
    ]


def precision_inputs(chip: Chip, dtype: str, constants: Mapping[str, Number]) -> dict[str, float]:
    """What the equations need to know of the weight products. Raises InputError for a precision that the chip lacks."""
    choices, operand = offered(chip), PRECISIONS[dtype].operand
    if dtype not in choices:
        if not choices and operand in chip.peak:
            _ = chip.peak[operand].value  # says which figure of the chip nobody has published
        raise InputError.unknown(f"training precision of {chip.name}", dtype, choices)
    return {
        "peak": chip.peak[operand].value,
        "matmul_share": chip.attainable[_share(operand)].value,
        "product_share": constants[f"product_share_{dtype}"].value if f"product_share_{dtype}" in constants else 1.0,
        "operand_bytes": ELEMENT_BYTES[operand],
        "cast_bytes": 0.0 if dtype in HALF else constants[f"cast_bytes_{dtype}"].value,
        "element_size": ELEMENT_BYTES[half_of(dtype)],
    }


def _share(operand: str) -> str:
    return "training_matmul" if operand in HALF else f"training_matmul_{operand}"
