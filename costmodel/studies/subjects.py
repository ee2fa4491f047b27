"""What `explain` can be asked about: subjects, the quantities of each that answer something, and their equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costmodel.symbolic import Axis, EquationSystem

SUBJECTS = {
    "training": "one training step, time and memory",
    "run": "what a training run takes, as if nothing failed and with failures",
    "buckets": "gradients reduced in buckets behind the backward pass (DDP)",
    "overlap": "tensor-parallel traffic behind products that are cut for it, as Megatron-LM cuts them",
    "offload": "states, weights or activations of a step kept by the host",
    "interval": "between which four of five measured steps lie where such a step is predicted",
    "traffic": "bytes that a rank sends in a step",
    "collective": "the collectives of a group of ranks, by every algorithm",
    "model": "parameters, FLOPs and KV cache of a model",
}

COUNTS = (
    *("parameters", "active_parameters", "active_parameters_without_embedding"),
    *("forward_flops", "training_flops", "training_flops_causal", "cache_per_token", "cache_per_sequence"),
)
FEW = {
    "run": (
        *("run_time", "cost", "energy", "mtbf", "checkpoint_interval", "goodput"),
        *("run_time_with_failures", "cost_with_failures", "energy_with_failures"),
    ),
    "buckets": ("reduced", "exposed", "exposed_without_no_sync", "best_bucket"),
    "overlap": (
        *("all_of_step", "plain_of_step", "overlapped_of_step"),
        *("overlapped_forward", "overlapped_backward", "plain_backward"),
    ),
    "offload": (
        *("exposed", "exposed_delayed", "slower", "freed", "tokens_for_copies", "tokens_for_all", "drive_update"),
        *("optimizer_on_host", "all_on_host", "weights_exposed", "weights_needed", "activations_exposed"),
        "activations_needed",
    ),
    "interval": ("p10", "p90"),
    "traffic": ("sent_tp", "sent_cp", "sent_ep", "sent_dp", "sent_fsdp", "sent_pp", "message"),
}
OF_A_STEP = ("training", *FEW)
"""Subjects whose numbers are those of a model on a machine."""


def systems(subject: str) -> list[tuple[EquationSystem, tuple[Axis, ...]]]:
    """The systems of a subject and the axes that their values are lists along: on switches first, then on a torus.

    Those of a training step come again for models with experts.
    """
    if subject == "training":
        from costmodel.equations.axes import INNER_AXES
        from costmodel.equations.evaluation import KINDS, step

        return [(step(kind), INNER_AXES) for kind in KINDS]
    if subject == "collective":
        from costmodel.equations.collectives.group_on_switches import CollectivesOnSwitches
        from costmodel.equations.collectives.group_on_torus import CollectivesOnTorus
        from costmodel.equations.collectives.library_group import CollectivesByLibrary

        return [(system.system, ()) for system in (CollectivesOnSwitches, CollectivesOnTorus, CollectivesByLibrary)]
    from costmodel.equations.model.cache import KeyValueCache
    from costmodel.equations.model.flops import Flops
    from costmodel.equations.model.parameters import Parameters
    from costmodel.symbolic import EquationSystem

    if subject == "run":
        from costmodel.equations.economics import Economics

        return [(Economics.system, ())] * 2
    if subject == "buckets":
        from costmodel.equations.parallelism.buckets import StageBuckets

        return [(StageBuckets.system, ())] * 2
    if subject == "overlap":
        from costmodel.equations.axes import MATMUL, PART
        from costmodel.equations.parallelism.layer_overlap import LayerOverlap

        return [(LayerOverlap.system, (PART, MATMUL))] * 2
    if subject == "offload":
        from costmodel.equations.parallelism.offload import StageOffload

        return [(StageOffload.system, ())] * 2
    if subject == "interval":
        from costmodel.equations.intervals import TimeInterval

        return [(TimeInterval.system, ())] * 2
    if subject == "traffic":
        from costmodel.equations.parallelism.traffic import Traffic

        return [(Traffic.system, ())] * 2
    made_of = EquationSystem("model")
    for chapter in (Parameters, Flops, KeyValueCache):
        made_of.include(chapter.system)
    return [(made_of, ())]
