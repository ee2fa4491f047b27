"""What a layout takes of the memory and of the drives of a host."""

from costmodel.equations.axes import STAGE
from costmodel.equations.memory import Memory
from costmodel.symbolic import Chapter, bytes_, count, equation, given, part, select, smallest, worst


class HostMemory(Chapter):
    """Bytes that a host keeps for its chips: what the chips no longer hold, and what is set aside over it.

    Chips of a host are taken to be on the same stage, the one with the most: hosts of a pipeline hold one stage each.
    """

    memory = part(Memory, shared=True)
    offload_chips = given(count, "chips of a host that run", owner="cluster")
    host_set_aside = given(count, "host memory set aside over what is kept there", owner="assumption")
    host_capacity = given(bytes_, "memory of a host", owner="cluster")
    drives = given(count, "drives of a host", owner="cluster")
    drive_capacity = given(bytes_, "one of them", owner="cluster")

    host_states = equation(
        bytes_,
        memory.weights_held * (memory.weight_bytes - memory.weight_bytes_here)
        + memory.gradients_held * (memory.gradient_bytes - memory.gradient_bytes_here)
        + memory.states_held * (memory.optimizer_bytes - memory.optimizer_bytes_here),
        "states of a stage that its chip's host keeps",
    )
    host_step_extra = equation(
        bytes_,
        memory.states_held * (memory.step_extra_bytes - memory.step_extra_bytes_here),
        "held there while the optimizer runs",
    )
    host_activations = equation(
        bytes_,
        (memory.layers_in_flight - memory.layers_kept_here) * memory.stage_kept_layer,
        "activations that it keeps",
    )
    states_in_memory = equation(
        bytes_, select(memory.states_on_drives > 0, 0, host_states) + host_step_extra, "states in its memory"
    )
    host_for_chip = equation(bytes_, worst(states_in_memory + host_activations, STAGE), "of the fullest stage")
    host_used = equation(bytes_, host_set_aside * offload_chips * host_for_chip, "memory of a host")
    drives_used = equation(
        bytes_,
        select(memory.states_on_drives > 0, offload_chips * worst(host_states, STAGE), 0),
        "on the drives of a host",
    )
    drives_capacity = equation(bytes_, drives * drive_capacity, "drives of a host together")
    host_left = equation(
        bytes_,
        smallest(host_capacity - host_used, drives_capacity - drives_used),
        "left of its memory, or of its drives where they have less; negative when it is short",
    )
