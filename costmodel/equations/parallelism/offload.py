"""What the host keeps for its chips: optimizer states, gradients, weights, activations, in its memory or on its drives.

All chips of a host use their links, its memory and its drives at once. Copies out of the chip and into it are counted one after
the other, which is right where both wait for the same memory, and too much where a link works both ways at once.
"""

from costmodel.symbolic import (
    BYTE,
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    flop,
    flop_per_byte,
    flop_per_second,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)

ZERO_OFFLOAD = "Ren et al. 2021, ZeRO-Offload"
ZERO_INFINITY = "Rajbhandari et al. 2021, ZeRO-Infinity"
ESTIMATOR = "DeepSpeed, estimators of model states"
BOTH_WAYS = "copies out and in are counted one after the other"


class HostRates(Chapter):
    """What the links, the memory and the drives of a host attain, of what they are rated at."""

    offload_link_rate = given(bytes_per_second, "a chip's link to its host, one way", owner="link")
    offload_link_share = given(count, "share of it that copies attain", owner="link")
    dram_bandwidth = given(bytes_per_second, "memory of a host", owner="cluster")
    dram_efficiency = given(count, "share of it that streams reach", owner="assumption")
    drives = given(count, "drives of a host", owner="cluster")
    drive_read_bandwidth = given(bytes_per_second, "one drive", owner="cluster")

    offload_link_bandwidth = equation(
        bytes_per_second, offload_link_rate * offload_link_share, "a chip's link to its host as attained, one way"
    )
    offload_memory_bandwidth = equation(
        bytes_per_second, dram_bandwidth * dram_efficiency, "memory of a host as attained"
    )
    offload_drive_bandwidth = equation(bytes_per_second, drives * drive_read_bandwidth, "all drives of a host")


class HostShare(Chapter):
    """What one chip gets of its host while all others do the same."""

    link_bandwidth = given(bytes_per_second, "a chip's link to its host as attained, one way", owner="link")
    memory_bandwidth_of_host = given(bytes_per_second, "memory of a host as attained", owner="cluster")
    chips_per_host = given(count, "chips of a host that run", owner="cluster")

    per_chip = equation(
        bytes_per_second,
        smallest(link_bandwidth, memory_bandwidth_of_host / chips_per_host),
        "between host and one chip",
    )
    per_host = equation(
        bytes_per_second,
        chips_per_host * per_chip,
        "of a whole model, each chip fetching its part over its own link, gathered over the fast links",
        source=ZERO_INFINITY,
    )


class Streamed(Chapter):
    """Bytes that are copied for some work: what the copies leave of the chip's rate, and the bandwidth that they need."""

    work = given(flop, "what is computed")
    moved = given(bytes_, "what is copied for it")
    compute_rate = given(flop_per_second, "of the chip as attained")
    bandwidth = given(bytes_per_second, "between host and chip")
    efficiency = given(count, "share of the chip's rate that is wanted", owner="assumption")

    intensity = equation(flop_per_byte, work / moved, "work for a byte that is copied", source=ZERO_INFINITY)
    compute = equation(seconds, work / compute_rate, "of the work")
    copied = equation(seconds, moved / bandwidth, "of the copies")
    reached = equation(
        count,
        intensity * bandwidth / (intensity * bandwidth + compute_rate),
        "share of the chip's rate when copies and work take turns",
        source=ZERO_INFINITY,
    )
    needed_in_turn = equation(
        bytes_per_second,
        efficiency / (1 - efficiency) * compute_rate / intensity,
        "bandwidth for the wanted share when they take turns",
        source=ZERO_INFINITY,
    )
    needed = equation(bytes_per_second, compute_rate / intensity, "bandwidth that hides the copies behind the work")
    exposed = equation(seconds, largest(0, copied - compute), "what shows of copies that overlap the work")


class ZeroOffload(Chapter):
    """Optimizer states and the update on the host: gradients go out, weights come back, each rank for the part that it owns."""

    parameters = given(count, "weights that a chip computes with (P)")
    shards = given(count, "ranks that share their optimizer states (N)")
    wire_bytes = given(bytes_, "a weight or gradient as it is copied", owner="assumption")
    update_traffic = given(bytes_, "traffic of host memory for the update of one weight", owner="assumption")
    passes_flops = given(flop, "of a weight and token: forward, backward, and what is run again", owner="assumption")
    compute = given(seconds, "forward and backward passes of a step")
    compute_rate = given(flop_per_second, "of the chip as attained")
    host = part(HostShare, shared=True)

    owned = equation(count, parameters / shards, "weights that a rank updates")
    gradients_out = equation(seconds, owned * wire_bytes / host.per_chip, "gradients to the host")
    weights_in = equation(seconds, owned * wire_bytes / host.per_chip, "updated weights back")
    copies = equation(seconds, gradients_out + weights_in, "both", approximate=BOTH_WAYS, source=ZERO_OFFLOAD)
    update = equation(
        seconds,
        owned * host.chips_per_host * update_traffic / host.memory_bandwidth_of_host,
        "Adam on the host for the parts of all its chips, bound by its memory",
    )
    exposed = equation(
        seconds,
        largest(0, copies - compute) + update,
        "what shows: the update, and copies that the passes do not cover",
        source=ZERO_OFFLOAD,
        approximate="the copy back is taken to overlap the next forward pass",
    )
    exposed_delayed = equation(
        seconds, largest(0, copies + update - compute), "what shows where the update may come one step late"
    )
    token_work = equation(flop, passes_flops * parameters, "of a token of the rank")
    tokens_for_copies = equation(
        count, copies * compute_rate / token_work, "tokens of a rank and step from which on the copies hide"
    )
    tokens_for_all = equation(
        count, (copies + update) * compute_rate / token_work, "the same for copies and a delayed update"
    )


class DriveUpdate(Chapter):
    """Optimizer states on the drives of a host: read and written once in a step."""

    owned = given(count, "weights that a rank updates")
    drives = given(count, "drives of a host", owner="cluster")
    drive_bandwidth = given(bytes_per_second, "one drive as attained", owner="cluster")
    chips_per_host = given(count, "chips of a host that run", owner="cluster")
    drive_traffic = given(bytes_, "read and written of one weight's states", owner="assumption")

    drive_update = equation(
        seconds,
        drive_traffic * owned * chips_per_host / (drives * drive_bandwidth),
        "the least that an optimizer step takes",
        source=ZERO_INFINITY,
    )


class HostStates(Chapter):
    """What a host must hold in its memory."""

    owned = given(count, "weights whose states a rank keeps")
    chips_per_host = given(count, "chips of a host that run", owner="cluster")
    states = given(bytes_, "states of a weight in host memory", owner="assumption")
    states_with_weights = given(bytes_, "states and the weight itself", owner="assumption")
    buffers = given(count, "what is set aside over what the states take", owner="assumption")

    optimizer_on_host = equation(
        bytes_, buffers * chips_per_host * owned * states, "optimizer states", source=ESTIMATOR
    )
    all_on_host = equation(
        bytes_, buffers * chips_per_host * owned * states_with_weights, "states and weights", source=ESTIMATOR
    )


class EstimatedZero2(Chapter):
    """DeepSpeed's estimate of model states under ZeRO-2: no activations, no buffers of communication."""

    parameters = given(count, "weights of the model")
    gpus_per_host = given(count, "GPUs of a host")
    hosts = given(count, "hosts")
    buffers = given(count, "what is set aside over what the states take", owner="assumption")

    gpus = equation(count, gpus_per_host * hosts, "GPUs in all")
    on_gpu = equation(bytes_, (4 + 16 / gpus) * parameters * BYTE, "nothing offloaded", source=ESTIMATOR)
    on_host = equation(bytes_, 4 * parameters * gpus_per_host * buffers * BYTE, "then on the host", source=ESTIMATOR)
    on_gpu_offloaded = equation(bytes_, 2 * parameters * BYTE, "optimizer on the host", source=ESTIMATOR)
    on_host_offloaded = equation(
        bytes_, largest(4 * gpus, 16) * parameters * buffers * BYTE, "then on the host", source=ESTIMATOR
    )


class EstimatedZero3(Chapter):
    """DeepSpeed's estimate of model states under ZeRO-3: no activations, no gathered blocks but the largest layer."""

    parameters = given(count, "weights of the model")
    largest_layer = given(count, "weights of the largest layer, the embedding mostly")
    gpus_per_host = given(count, "GPUs of a host")
    hosts = given(count, "hosts")
    sharded_from_start = given(count, "1 where no rank ever holds the whole model (zero.Init), else 0")
    buffers = given(count, "what is set aside over what the states take", owner="assumption")

    gpus = equation(count, gpus_per_host * hosts, "GPUs in all")
    gathered = equation(bytes_, 4 * largest_layer * BYTE, "the largest layer, gathered", source=ESTIMATOR)
    on_gpu = equation(bytes_, gathered + 18 * parameters / gpus * BYTE, "nothing offloaded", source=ESTIMATOR)
    on_gpu_optimizer = equation(
        bytes_, gathered + 2 * parameters / gpus * BYTE, "optimizer on the host", source=ESTIMATOR
    )
    on_gpu_all = equation(bytes_, gathered, "optimizer and weights on the host", source=ESTIMATOR)
    whole_models = equation(
        bytes_, 4 * gpus_per_host * BYTE, "bytes of a weight when every rank of a host makes the model"
    )
    on_host = equation(
        bytes_,
        select(sharded_from_start > 0, largest_layer, parameters) * whole_models * buffers,
        "on the host when nothing is offloaded",
        source=ESTIMATOR,
    )
    on_host_optimizer = equation(
        bytes_,
        parameters
        * select(sharded_from_start > 0, 16 * BYTE / hosts, largest(whole_models, 16 * BYTE / hosts))
        * buffers,
        "on the host with the optimizer",
        source=ESTIMATOR,
    )
    on_host_all = equation(
        bytes_,
        parameters
        * select(sharded_from_start > 0, 18 * BYTE / hosts, largest(whole_models, 18 * BYTE / hosts))
        * buffers,
        "on the host with the optimizer and the weights",
        source=ESTIMATOR,
    )


class StageOffload(Chapter):
    """The heaviest stage of a layout, its states, weights or activations kept by the host."""

    heaviest_stage = given(count, "weights on a rank of the heaviest stage")
    replicas = given(count, "ranks that hold the same weights")
    optimizer_sharded = given(count, "1 when they share the optimizer states", owner="layout")
    micro_batches = given(count, "micro-batches of a step")
    repeated = given(count, "1 where the forward pass is run again, else 0")
    mean_layers = given(count, "layers of the average stage")
    hidden_state_bytes = given(bytes_, "the hidden states of a micro-batch on a rank")
    element_size = given(bytes_, "a weight or gradient as it is copied", owner="workload")
    step_time = given(seconds, "one step, everything on the chip")
    optimizer = given(seconds, "of it, the optimizer on the chip")
    hardware_flops = given(flop, "of a step, what is run again counted")
    chips = given(count, "chips", owner="cluster")
    optimizer_bytes = given(bytes_, "optimizer states of a weight", owner="assumption")
    rates = part(HostRates, shared=True)
    bandwidths = {
        "link_bandwidth": rates.offload_link_bandwidth,
        "memory_bandwidth_of_host": rates.offload_memory_bandwidth,
    }
    host = part(HostShare, shared=True, **bandwidths)

    compute = equation(seconds, step_time - optimizer, "a step without its optimizer")
    compute_rate = equation(flop_per_second, hardware_flops / (chips * compute), "of a chip as attained")
    chip_work = equation(flop, hardware_flops / chips, "of a chip in a step")

    states = part(
        ZeroOffload,
        shared=True,
        **bandwidths,
        parameters=heaviest_stage,
        shards=select(optimizer_sharded > 0, replicas, 1),
        wire_bytes=element_size,
        passes_flops=(6 + 2 * repeated) * FLOP,
    )
    slower = equation(seconds, states.exposed - optimizer, "what a step takes more with its optimizer on the host")
    slower_delayed = equation(seconds, states.exposed_delayed - optimizer, "the same with the update one step late")
    freed = equation(bytes_, states.owned * optimizer_bytes, "what a chip no longer holds of optimizer states")
    on_drives = part(DriveUpdate, shared=True, owned=states.owned, drive_bandwidth=rates.drive_read_bandwidth)
    in_memory = part(HostStates, shared=True, owned=states.owned)

    weight_copies = equation(
        bytes_,
        micro_batches * (3 + repeated) * element_size * heaviest_stage / replicas,
        "of a chip in a step: its part of the weights in for each pass, of the gradients out",
        source=ZERO_INFINITY,
    )
    weights = part(Streamed, work=chip_work, moved=weight_copies, compute_rate=compute_rate, bandwidth=host.per_chip)
    activation_copies = equation(
        bytes_,
        2 * micro_batches * mean_layers * hidden_state_bytes,
        "of a chip in a step: the input of every layer out and back, all else run again",
        source=ZERO_INFINITY,
    )
    activations = part(
        Streamed, work=chip_work, moved=activation_copies, compute_rate=compute_rate, bandwidth=host.per_chip
    )
