"""A layout that lets its hosts keep optimizer states, weights or activations: what, and what that costs a step.

Optimizer states that are kept by a host are updated there, by its processors. Weights come in layer by layer, each rank fetching
its part before all ranks gather it. Activations go out after the forward pass of a layer and come back before its backward pass.
States can go on to the drives of the host; activations stay in its memory.
"""

from costmodel.equations.axes import OFFLOAD, SHARDING
from costmodel.equations.parallelism.offload import BOTH_WAYS, ZERO_INFINITY, ZERO_OFFLOAD, DriveUpdate, HostShare
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class Offloaded(Chapter):
    """What of a rank's memory its host keeps, by the label of the layout."""

    offload = choice(OFFLOAD.labels, "what the host keeps", OFFLOAD)
    states_on_drives = given(count, "1 when states go on to the host's drives", OFFLOAD, owner="layout")
    gradients_sharded = given(count, "1 when data-parallel ranks share the gradients", SHARDING, owner="layout")

    layers_away = equation(
        count,
        choose(offload, {label: int("weights" in label or "activations" in label) for label in OFFLOAD.labels}),
        "1 when something of each layer is kept by the host",
    )
    optimizer_away = equation(
        count,
        choose(offload, {label: int("optimizer" in label) for label in OFFLOAD.labels}),
        "1 when optimizer states are kept by the host and updated there",
    )
    weights_away = equation(
        count, choose(offload, {label: int("weights" in label) for label in OFFLOAD.labels}), "1 when weights are"
    )
    activations_away = equation(
        count,
        choose(offload, {label: int("activations" in label) for label in OFFLOAD.labels}),
        "1 when activations are",
    )
    gradients_away = equation(
        count,
        optimizer_away * select(gradients_sharded > 0, 1, weights_away),
        "1 when gradients are: with the weights, or with the optimizer where each rank has its part as soon as it is reduced",
        source=ZERO_OFFLOAD,
    )


class HostTraffic(Chapter):
    """Copies between chip and host in a step, the update on the host, and what shows of them."""

    away = part(Offloaded, shared=True)
    offload_link_bandwidth = given(bytes_per_second, "a chip's link to its host as attained, one way")
    offload_memory_bandwidth = given(bytes_per_second, "memory of a host as attained")
    offload_drive_bandwidth = given(bytes_per_second, "all drives of a host")
    offload_chips = given(count, "chips of a host that run", owner="cluster")
    host_update_traffic = given(bytes_, "traffic of host memory for the update of one weight", owner="assumption")
    host_drive_traffic = given(bytes_, "read and written on drives for the update of one weight", owner="assumption")
    element_size = given(bytes_, "a weight or gradient as it is copied", owner="workload")
    layer_part = given(count, "a rank's part of the weights of a layer, as they are shared")
    owned = given(count, "weights that a rank updates")
    embedding_part = given(count, "a rank's part of the weights of the embedding, where the stage with the head has it")
    head_part = given(count, "a rank's part of the weights of head and final norm")
    backward_gathers = given(count, "times that the weights of a layer come in for its backward pass")
    served = given(count, "micro-batches that weights serve once they are in")
    kept_layer = given(bytes_, "activations that a layer keeps")
    scatters = given(count, "times that gradients are reduced in a step")
    forward_alone = given(seconds, "a layer, forward, without the host")
    backward_alone = given(seconds, "a layer, backward, without the host")
    mean_layers = given(count, "layers of the average stage")
    host_hidden_share = given(count, "share that really hides of copies that work can hide", owner="assumption")

    host = part(
        HostShare,
        link_bandwidth=offload_link_bandwidth,
        memory_bandwidth_of_host=offload_memory_bandwidth,
        chips_per_host=offload_chips,
    )
    states_bandwidth = equation(
        bytes_per_second,
        select(
            away.states_on_drives > 0,
            smallest(host.per_chip, offload_drive_bandwidth / offload_chips),
            host.per_chip,
        ),
        "between a chip and where its states are",
        approximate="drives write as fast as they read",
    )
    layer_fetch = equation(
        seconds,
        away.weights_away * layer_part * element_size / states_bandwidth,
        "a rank's part of a layer's weights into the chip",
        source=ZERO_INFINITY,
    )
    layer_gradient = equation(
        seconds,
        away.weights_away * layer_part * element_size / states_bandwidth,
        "a rank's part of a layer's gradients out of it",
        source=ZERO_INFINITY,
    )
    layer_activations = equation(
        seconds, away.activations_away * kept_layer / host.per_chip, "a layer's activations out or back in"
    )
    copied_forward = equation(
        seconds, layer_fetch / served + layer_activations, "copies of a layer and micro-batch, forward"
    )
    copied_backward = equation(
        seconds,
        (backward_gathers * layer_fetch + layer_gradient) / served + layer_activations,
        "copies of a layer and micro-batch, backward; what is run again uses the same weights",
        approximate=BOTH_WAYS,
    )
    exposed_forward = equation(
        seconds,
        away.layers_away * (copied_forward - host_hidden_share * smallest(copied_forward, forward_alone)),
        "what shows of them: the next layer's overlap this one",
    )
    exposed_backward = equation(
        seconds,
        away.layers_away * (copied_backward - host_hidden_share * smallest(copied_backward, backward_alone)),
        "what shows, backward",
    )

    # Embedding and head come in once, as they stay until the backward pass. The embedding is used first and its gradient is
    # complete last, when nothing is left to hide behind; the head has what the copies of a layer leave of its passes.
    embedding_copies = equation(
        seconds,
        away.weights_away * 2 * embedding_part * element_size / states_bandwidth,
        "a rank's part of the embedding into the chip, and of its gradient out of it",
        source=ZERO_INFINITY,
    )
    head_copy = equation(
        seconds,
        away.weights_away * head_part * element_size / states_bandwidth,
        "a rank's part of the head into the chip, or of its gradient out of it",
        source=ZERO_INFINITY,
    )
    table_copies = equation(
        seconds, (embedding_copies + 2 * head_copy) / served, "of embedding and head and a micro-batch"
    )
    exposed_tables = equation(
        seconds,
        away.weights_away
        * (
            table_copies
            - host_hidden_share
            / served
            * (
                smallest(head_copy, largest(0, forward_alone - copied_forward))
                + smallest(head_copy, largest(0, backward_alone - copied_backward))
            )
        ),
        "what shows of them",
    )

    needed_forward = equation(
        bytes_per_second,
        select(forward_alone > 0, host.per_chip * copied_forward / forward_alone, 0),
        "bandwidth of a chip with which the copies of a layer hide, forward",
        valid="states in memory",
    )
    needed_backward = equation(
        bytes_per_second,
        select(backward_alone > 0, host.per_chip * copied_backward / backward_alone, 0),
        "bandwidth of a chip with which they hide, backward",
        valid="states in memory",
    )

    # The optimizer on the host; with the weights there its gradients have gone out layer by layer
    gradients_out = equation(
        seconds,
        select(away.weights_away > 0, 0, away.optimizer_away * scatters * owned * element_size / host.per_chip),
        "gradients of a step to the host",
        source=ZERO_OFFLOAD,
    )
    weights_in = equation(
        seconds,
        select(away.weights_away > 0, 0, away.optimizer_away * owned * element_size / host.per_chip),
        "updated weights back",
        source=ZERO_OFFLOAD,
    )
    exposed_out = equation(
        seconds,
        away.optimizer_away
        * (gradients_out - host_hidden_share * smallest(gradients_out, scatters * mean_layers * backward_alone)),
        "what shows of the gradients: they overlap the backward passes in which they are reduced",
    )
    exposed_in = equation(
        seconds,
        away.optimizer_away * (weights_in - host_hidden_share * smallest(weights_in, mean_layers * forward_alone)),
        "what shows of the weights, behind the next forward",
    )
    on_drives = part(
        DriveUpdate,
        drives=1,
        drive_bandwidth=offload_drive_bandwidth,
        chips_per_host=offload_chips,
        drive_traffic=host_drive_traffic,
    )
    host_update = equation(
        seconds,
        away.optimizer_away
        * largest(
            owned * offload_chips * host_update_traffic / offload_memory_bandwidth,
            select(away.states_on_drives > 0, on_drives.drive_update, 0),
        ),
        "Adam on the host for the parts of all its chips, bound by its memory, or by its drives",
        source=ZERO_OFFLOAD,
    )
    exposed_update = equation(
        seconds, exposed_out + host_update + exposed_in, "what shows of the optimizer on the host"
    )
