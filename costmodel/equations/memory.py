"""Memory of a training step on a rank: every stage, in every phase; the peak is the largest.

Three quantities, which people confuse: *allocated* is what the tensors take, *reserved* what the allocator holds for them,
*device-used* what the device reports, with the runtime's context and the communicators' buffers.
"""

from costmodel.equations.activations import KeptActivations
from costmodel.equations.axes import PHASE, STAGE
from costmodel.equations.parallelism.context import ContextPayloads
from costmodel.equations.parallelism.data import Resharding
from costmodel.equations.parallelism.in_flight import InFlight
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.offloaded import Offloaded
from costmodel.symbolic import (
    Chapter,
    at_worst,
    both,
    bytes_,
    count,
    either,
    equation,
    given,
    largest,
    part,
    rows,
    select,
    smallest,
    worst,
)


class Memory(Chapter):
    """Peak memory of a training step, item by item."""

    activations = part(KeptActivations, shared=True)
    context = part(ContextPayloads, shared=True)
    layout = part(Layout, shared=True)
    pp = layout.pp
    flight = part(InFlight, shared=True, pp=pp, micro_batches=layout.micro_batches)
    away = part(Offloaded, shared=True)
    resharding = part(Resharding, shared=True, pp=pp, micro_batches=layout.micro_batches)

    weight_bytes = given(bytes_, "a weight as stored", owner="assumption")
    gradient_bytes = given(bytes_, "a gradient as stored", owner="assumption")
    optimizer_bytes = given(bytes_, "optimizer states of a weight: master copy and moments", owner="assumption")
    step_extra_bytes = given(bytes_, "a weight, while the optimizer runs", owner="assumption")
    loss_bytes = given(bytes_, "a logit, while the loss is computed", owner="assumption")
    kept_loss_bytes = given(
        bytes_,
        "a logit of a loss whose backward pass waits: what modules that predict further tokens keep",
        owner="assumption",
    )
    kept_messages = given(
        count, "messages of a pipeline kept with each micro-batch in flight, 0 for most", owner="assumption"
    )
    gradients_stay = given(
        count,
        "1 where gradients keep their memory from step to step, 0 where each backward pass makes them",
        owner="assumption",
    )
    loss_chunks = given(count, "pieces in which head and loss are computed, 1 for all tokens at once", owner="workload")
    workspace_bytes = given(bytes_, "workspaces of the libraries, inside the allocator", owner="assumption")
    grouped_workspace_bytes = given(
        bytes_, "the same of grouped products of experts, one for each stream", owner="assumption"
    )
    reserved_factor = given(count, "what the allocator holds over what it has given out", owner="assumption")
    context_bytes = given(bytes_, "the runtime's own, outside the allocator", owner="assumption")
    communicator_bytes_few_nodes = given(
        bytes_, "buffers of the communication library, outside the allocator", owner="assumption"
    )
    communicator_bytes_many_nodes = given(bytes_, "the same on many nodes", owner="assumption")
    many_nodes = given(count, "nodes beyond which the larger figure holds", owner="assumption")
    chips = given(count, "chips", owner="cluster")
    chips_per_host = given(count, "chips of a host", owner="cluster")
    memory_capacity = given(bytes_, "of the chip, as the device reports it", owner="chip")

    running = equation(
        count, rows(PHASE, {"forward": 1, "loss": 1, "backward": 1, "optimizer": 0}), "1 while activations are held"
    )
    in_forward = equation(
        count, rows(PHASE, {"forward": 1, "loss": 0, "backward": 0, "optimizer": 0}), "1 in the forward pass"
    )
    in_loss = equation(
        count, rows(PHASE, {"forward": 0, "loss": 1, "backward": 0, "optimizer": 0}), "1 while the loss is computed"
    )
    in_backward = equation(
        count, rows(PHASE, {"forward": 0, "loss": 0, "backward": 1, "optimizer": 0}), "1 in the backward pass"
    )
    in_optimizer = equation(
        count, rows(PHASE, {"forward": 0, "loss": 0, "backward": 0, "optimizer": 1}), "1 in the optimizer step"
    )
    has_layers = equation(count, select(layout.stage_layers > 0, 1, 0), "1 where a stage exists")

    # States of a weight on the chip; what the host keeps is the rest
    weight_bytes_here = equation(bytes_, (1 - away.weights_away) * weight_bytes, "of a weight on the chip")
    gradient_bytes_here = equation(bytes_, (1 - away.gradients_away) * gradient_bytes, "of its gradient on the chip")
    optimizer_bytes_here = equation(bytes_, (1 - away.optimizer_away) * optimizer_bytes, "of its states on the chip")
    step_extra_bytes_here = equation(
        bytes_, (1 - away.optimizer_away) * step_extra_bytes, "of it on the chip, while the optimizer runs"
    )
    weights_held = equation(
        count,
        flight.weight_versions
        * (layout.stage_parameters / layout.weight_shards + layout.stage_experts / layout.expert_weight_shards),
        "weights of a stage that a rank holds",
        source="Rajbhandari et al. 2020, figure 1",
    )
    gradients_held = equation(
        count,
        layout.stage_parameters / layout.gradient_shards + layout.stage_experts / layout.expert_gradient_shards,
        "weights whose gradients it holds",
    )
    states_held = equation(
        count,
        layout.stage_parameters / layout.optimizer_shards + layout.stage_experts / layout.expert_optimizer_shards,
        "weights whose optimizer states it holds",
    )
    owned_parameters = equation(
        count,
        worst(states_held, STAGE),
        "weights of which a rank of the stage with most has the optimizer state, on the chip or with its host",
    )
    copied_parameters = equation(
        count,
        select(layout.weights_sharded > 0, 0, worst(layout.stage_parameters + layout.stage_experts, STAGE)),
        "weights that a rank of the heaviest stage writes again from their gathered or master form",
    )
    stage_weights = equation(bytes_, weights_held * weight_bytes_here, "weights of a stage on a rank")
    stage_gradients = equation(bytes_, gradients_held * gradient_bytes_here, "their gradients")
    gradients_present = equation(
        count,
        select(either(gradients_stay > 0, layout.micro_batches > 1), 1, in_optimizer),
        "1 while there are gradients; those of a single micro-batch come as its activations go, so that either peak is without the other",
        source="PyTorch: zero_grad sets gradients to none",
    )
    stage_gradients_now = equation(bytes_, gradients_present * stage_gradients, "gradients of a stage in a phase")
    stage_optimizer = equation(bytes_, states_held * optimizer_bytes_here, "their optimizer states")
    stage_step_extra = equation(
        bytes_, in_optimizer * states_held * step_extra_bytes_here, "held while the optimizer runs"
    )
    entry_excess = equation(
        count,
        rows(
            STAGE,
            {
                "first": largest(layout.folded, layout.two_way),
                "middle": 0,
                "last": layout.two_way,
            },
        )
        * (layout.entry_layers - layout.exit_layers),
        "layers by which the first stage of a pipeline exceeds the last, on ranks that have both",
    )
    modules_in_flight = equation(
        count,
        layout.stage_modules * flight.head_in_flight,
        "modules that predict further tokens whose activations are kept, once a micro-batch",
    )
    layers_in_flight = equation(
        count,
        layout.stage_layers * flight.in_flight
        + entry_excess * (flight.in_flight * (1 + layout.folded) / 2 - 1)
        + modules_in_flight,
        "layers whose activations are kept, once a micro-batch; of the last stage of a pipeline those of one micro-batch",
        source="an event simulator",
        approximate="exact of dualpipe, dualpipev and chimera, within one micro-batch of a stage of other folded schedules",
    )
    layers_waiting = equation(
        count,
        smallest((layout.stage_layers + layout.stage_modules) * flight.waiting, layers_in_flight),
        "of these, run again already, whose weights wait for their gradients, once a micro-batch",
    )
    layers_kept_here = equation(
        count,
        select(away.activations_away > 0, smallest(2, layers_in_flight), layers_in_flight),
        "of these, on the chip: two where the others are with the host, one in use and one on its way",
    )
    stage_activations = equation(
        bytes_,
        running
        * (
            layers_kept_here * activations.stage_kept_layer
            + layers_waiting * (activations.whole_layer - activations.stage_kept_layer)
            + modules_in_flight * activations.kept_joining
            + layout.has_embedding * flight.in_flight * activations.embedding_kept
        ),
        "kept activations of all micro-batches in flight; what was run again stays until the gradient of the weights is done",
    )
    kept_losses = equation(
        bytes_,
        layout.multi_token_modules * select(loss_chunks > 1, 0, kept_loss_bytes),
        "a logit of the next token, beside it: those of further tokens, unless losses are computed in pieces",
        source="Megatron-core: process_mtp_loss runs before the loss of the next token, backward after it",
    )
    stage_logits = equation(
        bytes_,
        in_loss
        * layout.has_head
        * layout.tokens
        * (
            layout.vocabulary_on_rank * loss_bytes / loss_chunks
            + layout.vocabulary_on_rank * kept_losses
            + (1 + layout.multi_token_modules) * 2 * layout.hidden_size * layout.element_size / layout.sequence_split
        ),
        "logits, softmax and their gradient; what the final norms read and wrote",
        source="exact allocator readings of Megatron-LM's last stage",
    )
    layers_gathered = equation(
        count,
        select(resharding.kept_to_backward > 0, layout.weight_copies * layout.stage_layers + layout.stage_modules, 2),
        "layers whose weights are gathered at once: one used and one prefetched, or all of a stage where they are kept",
        source="PyTorch FSDP2",
    )
    gathered_weights = equation(
        bytes_,
        select(
            either(layout.weights_sharded > 0, away.weights_away > 0),
            layout.element_size
            * (
                layers_gathered * (layout.layer_parameters + layout.layer_experts)
                + layout.has_embedding * layout.embedding_on_rank
                + layout.has_head * (layout.head_on_rank + layout.beside_head)
            ),
            0,
        ),
        "of these layers, of embedding and head",
        source="PyTorch FSDP2: one root group beside the blocks",
    )
    given_up_embedding = equation(
        bytes_,
        select(
            layout.weights_sharded > 0,
            (running - in_forward)
            * (resharding.embedding_gathers - 1)
            * layout.has_embedding
            * layout.embedding_on_rank
            * layout.element_size,
            0,
        ),
        "of this, the embedding where it is given up after its forward pass, and comes again when the activations are gone",
        source="pytorch/torchtitan pull request 1094",
    )
    unsharded_gradients = equation(
        bytes_,
        select(
            either(layout.gradients_sharded > 0, away.weights_away > 0),
            gradient_bytes
            * (layout.layer_parameters + layout.layer_experts)
            * select(
                resharding.kept_to_end > 0,
                layout.weight_copies * layout.stage_layers / layout.virtual_stages + layout.stage_modules,
                1,
            ),
            0,
        ),
        "of one layer, before they are scattered, or of a chunk of a stage, where they are once a step",
    )
    unsharded_present = equation(
        count,
        select(both(resharding.kept_to_end > 0, layout.micro_batches > 1), running, in_backward),
        "1 while there are any: in the backward pass, and where they wait for the end of the step from the first one on",
        source="PyTorch FSDP2: set_requires_gradient_sync",
    )
    head_gradient = equation(
        bytes_,
        layout.has_head * layout.vocabulary_on_rank * layout.hidden_size * layout.element_size,
        "of the head, as its product leaves it",
    )
    logits_gone = equation(
        bytes_,
        resharding.fsdp_tables_apart
        * layout.tokens
        * layout.vocabulary_on_rank
        * largest(0, loss_bytes - layout.element_size)
        / loss_chunks,
        "of logits and loss, by then, where it is not kept with the other gradients of one group",
    )
    unsharded_head_gradient = equation(
        bytes_,
        select(either(layout.gradients_sharded > 0, away.weights_away > 0), largest(0, head_gradient - logits_gone), 0),
        "of the head, while the gradient of the logits that it comes from is still there",
        source="PyTorch FSDP2",
    )
    pipeline_messages = equation(
        bytes_,
        select(pp > 1, (2 + kept_messages * flight.in_flight) * activations.layer_input, 0),
        "a message received and one sent; those that a framework keeps of every micro-batch in flight",
    )
    stage_working = equation(
        bytes_,
        (running - in_loss) * activations.gathered_sequence
        + running * context.forward_buffers
        + in_backward * (activations.recomputed_layer + context.gradient_buffers),
        "of the layer that is run: gathered tokens, keys and values of other ranks, what is run again",
    )
    stage_gathered = equation(
        bytes_,
        running * gathered_weights
        - given_up_embedding
        + in_loss * unsharded_head_gradient
        + unsharded_present * unsharded_gradients,
        "weights that are gathered, gradients not yet scattered",
    )
    stage_messages = equation(bytes_, running * pipeline_messages, "messages between stages")
    stage_buffers = equation(
        bytes_,
        has_layers * (stage_gathered + stage_messages + stage_working),
        "gathered weights, messages, and those of a layer",
    )
    memory_use = equation(
        bytes_,
        stage_weights
        + stage_gradients_now
        + stage_optimizer
        + stage_step_extra
        + stage_activations
        + stage_logits
        + stage_buffers,
        "of a stage in a phase",
    )
    stage_peak = equation(bytes_, worst(memory_use, PHASE), "of a stage in its worst phase")
    workspaces = equation(
        bytes_,
        workspace_bytes + select(layout.experts > 0, grouped_workspace_bytes, 0),
        "workspaces of the libraries, inside the allocator",
    )
    phase_allocated = equation(bytes_, memory_use + workspaces, "of a stage in a phase, workspaces included")
    allocated = equation(bytes_, worst(stage_peak, STAGE) + workspaces, "peak of the worst stage")
    reserved = equation(bytes_, reserved_factor * allocated, "by the allocator")
    # Megatron-LM logs the last rank, which holds the head and is rarely the fullest.
    head_allocated = equation(
        bytes_,
        worst(select(layout.has_head > 0, stage_peak, 0), STAGE) + workspaces,
        "peak of the stage with the head",
    )
    head_between_steps = equation(
        bytes_,
        worst(select(layout.has_head > 0, stage_weights + stage_gradients + stage_optimizer, 0), STAGE) + workspaces,
        "of the stage with the head between two steps: states, and workspaces",
    )
    between_steps = equation(
        bytes_,
        worst(stage_weights + stage_gradients + stage_optimizer, STAGE) + workspaces,
        "of the fullest stage between two steps",
    )
    communicator_bytes = equation(
        bytes_,
        select(
            either(chips / chips_per_host > many_nodes, layout.ulysses_ranks > 1, layout.ep > 1),
            communicator_bytes_many_nodes,
            communicator_bytes_few_nodes,
        ),
        "buffers of the communication library; an all-to-all connects every rank to every other",
        source="NVIDIA/nccl issues 864, 986 and 1685",
    )
    device_used = equation(bytes_, reserved + context_bytes + communicator_bytes, "as the device reports it")
    margin = equation(bytes_, memory_capacity - device_used, "left of the chip's memory; negative when it is short")
    overflow = equation(
        bytes_, allocated + context_bytes - memory_capacity, "positive when the tensors alone cannot fit"
    )

    # What the worst stage holds at its worst moment
    memory_parameters = equation(bytes_, at_worst(stage_weights, stage_peak, STAGE), "parameters")
    memory_gradients = equation(
        bytes_, at_worst(at_worst(stage_gradients_now, memory_use, PHASE), stage_peak, STAGE), "gradients"
    )
    memory_optimizer = equation(
        bytes_,
        at_worst(at_worst(stage_optimizer + stage_step_extra, memory_use, PHASE), stage_peak, STAGE),
        "optimizer states",
    )
    memory_activations = equation(
        bytes_, at_worst(at_worst(stage_activations, memory_use, PHASE), stage_peak, STAGE), "kept activations"
    )
    memory_logits = equation(
        bytes_, at_worst(at_worst(stage_logits, memory_use, PHASE), stage_peak, STAGE), "logits and loss"
    )
    memory_buffers = equation(
        bytes_, at_worst(at_worst(stage_buffers, memory_use, PHASE), stage_peak, STAGE), "buffers"
    )
    memory_overhead = equation(bytes_, workspaces, "workspaces of the libraries")
