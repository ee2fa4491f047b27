"""What is evaluated of a training step: the quantities of an answer, those of a search, and the rows of tables of layouts.

A quantity is computed once for each distinct row of the first level that holds the columns it depends on.
"""

from functools import cache

from costmodel.equations.parallelism.legality import RULES, Legality
from costmodel.equations.training_on_switches import OnSwitches
from costmodel.equations.training_on_torus import OnTorus
from costmodel.symbolic import Chapter, EquationSystem

STEPS: dict[str, type[Chapter]] = {"switches": OnSwitches, "torus": OnTorus}
"""The training step on each kind of machine."""

WITH_EXPERTS = "_with_experts"
KINDS = tuple(fabric + blocks for blocks in ("", WITH_EXPERTS) for fabric in STEPS)
"""Machines, with models whose layers are all dense, and with any model: the same equations, but the first know more beforehand."""

DENSE = {"experts": 0, "ep": 1, "etp": 1, "kv_rank": 0, "query_rank": 0}
"""What holds for models without experts and latent attention."""

DEGREES = ("tp", "cp", "pp", "dp")
EXPERT_DEGREES = ("ep", "etp")
SEARCHED = ("step_time", "allocated", "device_used", "legal")
"""What it looks at then, for every placement of the degrees that have a legal layout."""

HOSTED = ("host_left",)
"""What it looks at besides where hosts keep something."""

ALONE = {"offload": 0, "states_on_drives": 0, "multi_token_modules": 0}
"""What holds where hosts keep nothing and no further tokens are predicted: a search that asks for neither is spared both."""

WITH_HOSTS = "_with_hosts"
"""Kinds of machine for searches in which hosts may keep something or further tokens are predicted, whatever the model."""


@cache
def step(kind: str) -> EquationSystem:
    """The training step of a kind of machine and model."""
    fabric, experts, _ = kind.partition(WITH_EXPERTS)
    return STEPS[fabric].system if experts else STEPS[fabric].system.settled(DENSE)


@cache
def searched_step(kind: str) -> EquationSystem:
    """The same for a search: hosts keep nothing and no further token is predicted, but of the kinds `WITH_HOSTS`."""
    fabric, hosts, _ = kind.partition(WITH_HOSTS)
    return STEPS[fabric].system if hosts else step(kind).settled(ALONE)


@cache
def legality(experts: bool) -> EquationSystem:
    """The rules of layouts, for models with and without experts."""
    return Legality.system if experts else Legality.system.settled(DENSE)


def judged(system: EquationSystem) -> list[str]:
    """What a search looks at first, for tuples of degrees: which are legal, and which rule rejects the others."""
    return ["legal", *(rule for rule in RULES if not system[rule].expression.is_Number)]


_ANSWERS = frozenset(
    [
        "step_time",
        "step_tokens",
        "tokens_per_second",
        "trained_parameters",
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
        "between_steps",
        "head_allocated",
        "head_between_steps",
        "megatron_flops",
        "stage_peak",
        "memory_use",
        "phase_allocated",
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


def _levels(placed: dict[str, tuple[str, ...]], experts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    levels = {
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
    }
    if experts:
        levels |= {
            "by_tp_and_experts": ("tp", "cp", *experts),
            "by_all_degrees": (*DEGREES, *experts),
            "by_placed_stage": (*DEGREES, *experts, *placed["tp"], *placed["cp"], *placed["dp"]),
        }
    return levels | {
        "layouts": (*DEGREES, *experts, *placed["tp"], *placed["cp"], *placed["pp"], *placed["dp"]),
    }


def rule_levels(experts: bool) -> dict[str, tuple[str, ...]]:
    """Columns of each level of rows for the rules, which do not ask where groups are placed."""
    return {"once": (), "by_degrees": (*DEGREES, *(EXPERT_DEGREES if experts else ()))}


_PLACED: dict[str, dict[str, tuple[str, ...]]] = {
    "switches": {axis: _on_switches(axis) for axis in DEGREES},
    "torus": {axis: _on_torus(axis) for axis in DEGREES},
}

LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    fabric + blocks: _levels(placed, EXPERT_DEGREES if blocks else ())
    for blocks in ("", WITH_EXPERTS, WITH_HOSTS)
    for fabric, placed in _PLACED.items()
}
"""Columns of each level of rows, coarse to fine, for each kind of machine and model."""

IN_BLOCKS = ("by_placed_stage",)
"""Levels with nearly as many rows as the table."""
