"""Write the generated code and the reference of equations: `python -m costmodel.generate [--check]`.

With --check nothing is written; the exit code is 1 when a file is out of step with the equations, and it is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from pprint import pformat

from costmodel.symbolic import math_module, numpy_module
from costmodel.symbolic.reference import chapters, section
from costmodel.symbolic.write import NOTICE

ROOT = Path(__file__).resolve().parent.parent
RESOURCES = ("ports", "nics", "uplinks", "slowest", "links", "dcn")
"""What a collective loads, as the names of its equations end."""


def collectives_math() -> str:
    """The textbook forms of collectives."""
    from costmodel.equations.collectives import ALGORITHMS
    from costmodel.equations.collectives import point_to_point as places
    from costmodel.equations.collectives.contention import SharedLinks
    from costmodel.equations.collectives.fabric import FairShare
    from costmodel.equations.collectives.rates import Rates

    chapters = {algorithm.function: algorithm.chapter for algorithm in ALGORITHMS} | {
        "fair_share": FairShare,
        "message_to_neighbour": places.MessageToNeighbour,
        "message_to_farthest": places.MessageToFarthest,
        "message_to_farthest_of_twist": places.MessageToFarthestOfTwist,
        "message_over_network": places.MessageOverNetwork,
        "message_between_slices": places.MessageBetweenSlices,
        "message_from_host": places.MessageFromHost,
        "rates": Rates,
        "shared_links": SharedLinks,
    }
    functions = {name: (chapter.system, list(chapter.system.equations)) for name, chapter in chapters.items()}
    return math_module("The textbook forms of collectives, one function an algorithm.", functions)


def parameters_math() -> str:
    """Parameters, FLOPs and KV cache of a model."""
    from costmodel.equations.model.cache import KeyValueCache
    from costmodel.equations.model.flops import Flops
    from costmodel.equations.model.parameters import Parameters

    functions = {
        "parameters": (Parameters.system, list(Parameters.system.equations)),
        "flops": (Flops.system, list(Flops.system.equations)),
        "cache": (KeyValueCache.system, ["cache_per_token", "cache_per_sequence"]),
    }
    return math_module("What a model holds and does: parameters, FLOPs of a token, KV cache.", functions)


def economics_math() -> str:
    """What a training run takes."""
    from costmodel.equations.economics import Economics

    return math_module(
        "What a training run takes.", {"economics": (Economics.system, list(Economics.system.equations))}
    )


def buckets_math() -> str:
    """Gradients reduced in buckets behind a backward pass."""
    from costmodel.equations.parallelism.buckets import StageBuckets

    system = StageBuckets.system
    return math_module(
        "Gradients reduced in buckets behind a backward pass.", {"buckets": (system, list(system.equations))}
    )


def intervals_math() -> str:
    """Intervals by the measured error of a class."""
    from costmodel.equations.intervals import RateInterval, SizeInterval, TimeInterval

    chapters = {"time_interval": TimeInterval, "size_interval": SizeInterval, "rate_interval": RateInterval}
    return math_module(
        "Between which bounds four of five measured values lie.",
        {name: (chapter.system, ["p10", "p90"]) for name, chapter in chapters.items()},
    )


def published_math() -> str:
    """What printed rates say of a step."""
    from costmodel.equations.published import PrintedRate, PrintedUtilisation

    functions = {
        "printed_rate": (PrintedRate.system, ["printed_step_time"]),
        "printed_utilisation": (PrintedUtilisation.system, ["rerun_share"]),
    }
    return math_module("What rates that people print say of a step.", functions)


def overlay_math() -> str:
    """A link seen through tunnels, ciphers and virtual switches."""
    from costmodel.equations.collectives.overlay import OverlaidLink

    system = OverlaidLink.system
    return math_module(
        "A link seen through tunnels, ciphers and virtual switches.",
        {"overlay": (system, list(system.equations))},
    )


def kernels_math() -> str:
    """Single kernels on one chip; those of `_time` give the time alone, for tables of measured ones."""
    from costmodel.equations.kernels import fused_attention as attention
    from costmodel.equations.kernels.experts import ExpertBlock
    from costmodel.equations.kernels.gemm import Gemm
    from costmodel.equations.kernels.interval import Attained, KernelInterval, TypicalStreams, TypicalUnit
    from costmodel.equations.kernels.launch import LaunchChain
    from costmodel.equations.kernels.mainloop import BankConflicts, MainLoop
    from costmodel.equations.kernels.streams import Stream
    from costmodel.equations.kernels.systolic import SystolicGemm
    from costmodel.equations.kernels.tiles import KERNEL_AXES

    chapters = {
        "matmul": Gemm,
        "systolic_matmul": SystolicGemm,
        "main_loop": MainLoop,
        "bank_conflicts": BankConflicts,
        "prefill": attention.PrefillAttention,
        "decode": attention.DecodeAttention,
        "backward": attention.BackwardAttention,
        "forward_backward": attention.ForwardBackward,
        "experts": ExpertBlock,
        "stream": Stream,
        "launches": LaunchChain,
        "interval": KernelInterval,
        "attained": Attained,
        "typical_unit": TypicalUnit,
        "typical_streams": TypicalStreams,
    }
    functions = {name: (chapter.system, list(chapter.system.equations)) for name, chapter in chapters.items()}
    functions |= {"matmul_time": (Gemm.system, ["time", "work"])}
    return math_module("Single kernels on one chip.", functions, KERNEL_AXES)


def training_math(kind: str) -> str:
    """One training step on one kind of machine, every quantity that is reported."""
    from costmodel.equations.axes import INNER_AXES
    from costmodel.equations.evaluation import reported, step

    functions = {"evaluate": (step(kind), reported(step(kind)))}
    return math_module(f"One training step on {spoken(kind)}.", functions, INNER_AXES)


def training_numpy(kind: str) -> str:
    """Training steps on one kind of machine, over tables of layouts."""
    from costmodel.equations.axes import PRODUCT_AXES
    from costmodel.equations.evaluation import IN_BLOCKS, IN_PARTS, LEVELS, SEARCHED, SLICED, searched_step

    meaning = f"Training steps on {spoken(kind)}, over tables of layouts."
    return numpy_module(meaning, searched_step(kind), SEARCHED, PRODUCT_AXES, LEVELS[kind], IN_BLOCKS, IN_PARTS, SLICED)


def spoken(kind: str) -> str:
    """A kind of machine and model in words."""
    return kind.replace("_", " ")


def legality_numpy(experts: bool) -> str:
    """The rules of layouts, over tables of degrees."""
    from costmodel.equations.axes import PRODUCT_AXES
    from costmodel.equations.evaluation import judged, legality, rule_levels

    rules = legality(experts)
    meaning = f"The rules of layouts{' with experts' if experts else ''}, over tables of degrees."
    return numpy_module(meaning, rules, judged(rules), PRODUCT_AXES, rule_levels(experts))


def host_memory_numpy() -> str:
    """What a layout takes of its hosts, over tables of degrees."""
    from costmodel.equations.axes import PRODUCT_AXES
    from costmodel.equations.evaluation import HOSTED, rule_levels
    from costmodel.equations.host_memory import HostMemory

    return numpy_module(
        "What a layout takes of its hosts, over tables of degrees.",
        HostMemory.system,
        HOSTED,
        PRODUCT_AXES,
        rule_levels(experts=True),
    )


def group_math(kind: str) -> str:
    """The collectives of a group of ranks on one kind of machine, and what there is to say of each algorithm."""
    from costmodel.equations.collectives.group_on_switches import ALGORITHMS_ON_SWITCHES, CollectivesOnSwitches
    from costmodel.equations.collectives.group_on_torus import ALGORITHMS_ON_TORUS, CollectivesOnTorus
    from costmodel.equations.collectives.library_group import ALGORITHMS_OF_LIBRARY, CollectivesByLibrary

    chapter, algorithms = {
        "switches": (CollectivesOnSwitches, ALGORITHMS_ON_SWITCHES),
        "torus": (CollectivesOnTorus, ALGORITHMS_ON_TORUS),
        "switches_by_library": (CollectivesByLibrary, ALGORITHMS_OF_LIBRARY),
    }[kind]
    system = chapter.system
    table: dict[str, dict[str, dict[str, object]]] = {}
    wanted = list(algorithms)
    for operation, names in algorithms.items():
        table[operation] = {}
        for name in names:
            time = system[f"{operation}_{name}"]
            resources = tuple(resource for resource in RESOURCES if f"{time.name}_{resource}" in system.equations)
            wanted += [time.name, f"{time.name}_latency", *(f"{time.name}_{resource}" for resource in resources)]
            table[operation][name] = {
                "resources": resources,
                "competes": time.name in system[operation].uses,
                "approximate": time.approximate,
                "source": time.source,
                "valid": time.valid,
            }
    where = kind.replace("_", " ")
    wanted += [name for name in ("all_to_all_twist_gain",) if name in system.equations]
    source = math_module(
        f"Collectives of a group of ranks on {where}, by every algorithm.", {"times": (system, wanted)}
    )
    return f"{source}\n\nALGORITHMS: dict[str, dict[str, dict[str, Any]]] = {pformat(table, width=120, sort_dicts=False)}\n"


def labels() -> str:
    """What the inputs that hold a choice can hold, the rows of the axes whose rows are fixed, and families of schedules."""
    from costmodel.equations.axes import MODULES, PRODUCT_AXES
    from costmodel.equations.collectives.rates import Rates
    from costmodel.equations.evaluation import RARE_MODULES, STEPS
    from costmodel.equations.kernels.streams import Stream
    from costmodel.equations.parallelism.schedules import ASYNCHRONOUS, CHUNKED, FOLDED, TWO_WAY
    from costmodel.equations.published import PrintedRate

    systems = [*(step.system for step in STEPS.values()), Rates.system, Stream.system, PrintedRate.system]
    choices = {e.name: e.labels for system in systems for e in system.inputs() if e.labels}
    rows = {axis.name: axis.labels for axis in PRODUCT_AXES if axis.labels}
    meaning = (
        "The labels of choices, which enter the equations by their numbers, of the rows of axes, of families of schedules, and of "
        "modules that can be run again."
    )
    parts = [f'"""{NOTICE}\n\n{meaning}\n"""']
    modules = {"all": MODULES, "rare": RARE_MODULES}
    schedules = {"asynchronous": ASYNCHRONOUS, "chunked": CHUNKED, "folded": FOLDED, "two_way": TWO_WAY}
    for name, table in {"CHOICES": choices, "ROWS": rows, "SCHEDULES": schedules, "MODULES": modules}.items():
        parts.append(f"{name}: dict[str, tuple[str, ...]] = {pformat(table, width=120, sort_dicts=True)}")
    return "\n\n".join(parts) + "\n"


def equations_reference() -> str:
    """Every equation of the model, file by file."""
    from costmodel import equations
    from costmodel.equations.axes import PRODUCT_AXES
    from costmodel.equations.kernels.tiles import KERNEL_AXES

    names = sorted(found.name for found in walk_packages(equations.__path__, "costmodel.equations."))
    modules = [module for module in map(import_module, names) if chapters(module)]
    labels = {axis.name: axis.labels for axis in (*PRODUCT_AXES, *KERNEL_AXES) if axis.labels}
    intro = (
        "# Equations\n\nWritten by `python -m costmodel.generate` from the chapters in costmodel/equations. A chapter may "
        "hold others as parts; their quantities carry the part's name in front. `costmodel explain` shows the tree under "
        "a quantity with numbers put in."
    )
    return "\n\n".join([intro, *(section(module, labels) for module in modules)]) + "\n"


TARGETS: dict[str, Callable[[], str]] = {
    "docs/reference/equations.md": equations_reference,
    "costmodel/generated/buckets_math.py": buckets_math,
    "costmodel/generated/collectives_math.py": collectives_math,
    "costmodel/generated/group_on_switches_math.py": lambda: group_math("switches"),
    "costmodel/generated/group_on_switches_by_library_math.py": lambda: group_math("switches_by_library"),
    "costmodel/generated/group_on_torus_math.py": lambda: group_math("torus"),
    "costmodel/generated/economics_math.py": economics_math,
    "costmodel/generated/intervals_math.py": intervals_math,
    "costmodel/generated/kernels_math.py": kernels_math,
    "costmodel/generated/labels.py": labels,
    "costmodel/generated/overlay_math.py": overlay_math,
    "costmodel/generated/parameters_math.py": parameters_math,
    "costmodel/generated/published_math.py": published_math,
    "costmodel/generated/host_memory_numpy.py": host_memory_numpy,
    "costmodel/generated/legality_numpy.py": lambda: legality_numpy(experts=False),
    "costmodel/generated/legality_with_experts_numpy.py": lambda: legality_numpy(experts=True),
    "costmodel/generated/training_on_switches_math.py": lambda: training_math("switches"),
    "costmodel/generated/training_on_switches_numpy.py": lambda: training_numpy("switches"),
    "costmodel/generated/training_on_switches_with_experts_math.py": lambda: training_math("switches_with_experts"),
    "costmodel/generated/training_on_switches_with_experts_numpy.py": lambda: training_numpy("switches_with_experts"),
    "costmodel/generated/training_on_switches_with_hosts_numpy.py": lambda: training_numpy("switches_with_hosts"),
    "costmodel/generated/training_on_torus_math.py": lambda: training_math("torus"),
    "costmodel/generated/training_on_torus_numpy.py": lambda: training_numpy("torus"),
    "costmodel/generated/training_on_torus_with_experts_math.py": lambda: training_math("torus_with_experts"),
    "costmodel/generated/training_on_torus_with_experts_numpy.py": lambda: training_numpy("torus_with_experts"),
    "costmodel/generated/training_on_torus_with_hosts_numpy.py": lambda: training_numpy("torus_with_hosts"),
}
"""Each file, from the root of the checkout, and the function that gives its text."""


def orphans() -> list[Path]:
    """Modules beside those that are written, which an earlier run wrote under a name that is no more."""
    beside = {(ROOT / name).parent for name in TARGETS if name.endswith(".py")}
    found = (path for folder in sorted(beside) for path in sorted(folder.glob("*.py")))
    return [path for path in found if path.read_text("utf-8").startswith(f'"""{NOTICE}') and _name(path) not in TARGETS]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main(arguments: Sequence[str]) -> int:
    """Write what has changed and remove what is left over, or with --check name both and give 1."""
    check = list(arguments) == ["--check"]
    stale = 0
    for name, write in TARGETS.items():
        path, text = ROOT / name, write()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale += 1
        if not check:
            path.write_text(text, "utf-8")
        sys.stdout.write(f"{'out of step with the equations' if check else 'rewrote'}: {name}\n")
    for path in orphans():
        stale += 1
        if not check:
            path.unlink()
        sys.stdout.write(f"{'of no use any more' if check else 'removed'}: {path.relative_to(ROOT)}\n")
    if check and stale:
        sys.stderr.write("run python -m costmodel.generate\n")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
