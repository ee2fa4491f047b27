"""What is evaluated of a training step: the quantities of an answer, those of a search, and the rows of tables of layouts.

A quantity is computed once for each distinct row of the first level that holds the columns it depends on.
"""

from costmodel.equations.parallelism.legality import RULES
from costmodel.equations.placed_training import OnSwitches, OnTorus
from costmodel.symbolic import Chapter, EquationSystem

STEPS: dict[str, type[Chapter]] = {"switches": OnSwitches, "torus": OnTorus}
"""The training step on each kind of machine."""

DEGREES = ("tp", "cp", "pp", "dp")
JUDGED = ("legal", *RULES)
"""What a search looks at first, for tuples of degrees: which layouts are legal, and which rule rejects the others."""
SEARCHED = ("step_time", "allocated", "device_used", "legal")
"""What it looks at then, for every placement of the degrees that have a legal layout."""

HOSTED = ("host_left",)
"""What it looks at besides where hosts keep something."""

ALONE: dict[str, int] = {
    "optimizer_away": 0,
    "weights_away": 0,
    "activations_away": 0,
    "gradients_away": 0,
    "host_exposed_forward": 0,
    "host_exposed_backward": 0,
    "host_exposed_update": 0,
    "rule_offload": 1,
}
"""What these are where hosts keep nothing: a search that does not ask for it is spared their axes."""

_ANSWERS = frozenset(
    [
        "step_time",
        "step_tokens",
        "tokens_per_second",
        "model_flops",
        "hardware_flops",
        "chip_rate",
        "mfu",
        "mfu_causal",
        "hfu",
        "allocated",
        "reserved",
        "device_used",
        "margin",
        "overflow",
        "stage_peak",
        "memory_use",
        "legal",
        "host_used",
        "drives_used",
        "host_left",
        "host_states",
        "host_activations",
        "host_needed_forward",
        "host_needed_backward",
    ]
)
_ITEMS = ("time_", "total_", "memory_", "rule_")


def reported(step: EquationSystem) -> list[str]:
    """The quantities that one answer shows."""
    return [
        e.name for e in step.equations.values() if not e.is_input and (e.name in _ANSWERS or e.name.startswith(_ITEMS))
    ]


def _on_switches(axis: str) -> tuple[str, ...]:
    return (f"domain_{axis}", f"unit_{axis}")


def _on_torus(axis: str) -> tuple[str, ...]:
    return (*(f"{axis}{what}_{along}" for what in ("", "_stride", "_ring") for along in "xyz"), f"{axis}_slices")


def _levels(placed: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {
        "once": (),
        "by_tp": ("tp",),
        "by_tp_and_cp": ("tp", "cp"),
        "by_pp": ("pp",),
        "by_placed_tp": ("tp", "cp", *placed["tp"]),
        "by_placed_cp": ("tp", "cp", *placed["cp"]),
        "by_degrees": DEGREES,
        "by_placed_tp_and_cp": ("tp", "cp", *placed["tp"], *placed["cp"]),
        "by_placed_pp": ("tp", "cp", "pp", *placed["pp"]),
        "by_placed_dp": (*DEGREES, *placed["cp"], *placed["dp"]),
        "by_degrees_and_placed_tp": (*DEGREES, *placed["tp"], *placed["cp"]),
        "layouts": (*DEGREES, *placed["tp"], *placed["cp"], *placed["pp"], *placed["dp"]),
    }


RULE_LEVELS: dict[str, tuple[str, ...]] = {"once": (), "by_degrees": DEGREES}
"""Columns of each level of rows for the rules, which do not ask where groups are placed."""

LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "switches": _levels({axis: _on_switches(axis) for axis in DEGREES}),
    "torus": _levels({axis: _on_torus(axis) for axis in DEGREES}),
}
"""Columns of each level of rows, coarse to fine, for each kind of machine."""
