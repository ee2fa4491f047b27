"""One training step of a decoder: its time item by item, its memory, the rules it keeps.

The times of the collectives are inputs here; `training_on_switches` supplies them for groups of ranks on a machine.
"""

from costmodel.equations.axes import STAGE
from costmodel.equations.host_memory import HostMemory
from costmodel.equations.kernels.elementwise import OptimizerTraffic
from costmodel.equations.kernels.layer import LayerCompute
from costmodel.equations.parallelism.balance import Balance
from costmodel.equations.parallelism.contention import TakenLinks
from costmodel.equations.parallelism.context import ContextParallel
from costmodel.equations.parallelism.data import FullySharded, GradientSync, ShardedTables
from costmodel.equations.parallelism.experts import ExpertParallel, RoutedTraffic
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.legality import Legality
from costmodel.equations.parallelism.multi_token import MultiToken
from costmodel.equations.parallelism.offload import HostRates
from costmodel.equations.parallelism.offloaded import HostTraffic
from costmodel.equations.parallelism.pipeline import Pipeline
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.equations.parallelism.schedules import by_schedule
from costmodel.equations.parallelism.tensor import TensorParallel
from costmodel.symbolic import (
    Chapter,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
    total,
    worst,
)


class Step(Chapter):
    """A training step as the sum of what shows: compute, exposed communication, bubble, messages, optimizer."""

    layer = part(LayerCompute, shared=True)
    layout = part(Layout, shared=True)
    tp, pp, m = layout.tp, layout.pp, layout.micro_batches
    again = part(Recomputation, shared=True)
    repeated_tp, repeated_ep, repeated_cp = again.repeated_tp, again.repeated_ep, again.repeated_cp
    legality = part(Legality, shared=True)
    memory = part(HostMemory, shared=True)

    tp_hidden_share = given(
        count, "share of tensor-parallel communication that hides behind compute", owner="assumption"
    )
    cp_hidden_share = given(
        count, "share of what a ring of keys and values can hide that really hides", owner="assumption"
    )
    fsdp_hidden_share = given(count, "share of FSDP's communication that hides behind compute", owner="assumption")
    fsdp_wire_factor = given(
        count, "measured time of overlapped FSDP gathers over that of lone ones", owner="assumption"
    )
    dp_hidden_share = given(count, "share of gradient communication that hides behind compute", owner="assumption")
    dp_wire_factor = given(count, "measured time of overlapped reductions over that of lone ones", owner="assumption")
    step_overhead = given(seconds, "of a step, outside the model: data, logging, clipping", owner="assumption")

    tp_all_gather = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_reduce_scatter = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_all_reduce = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    cp_send = given(seconds, "keys and values of a rank to the next context-parallel rank")
    cp_send_gradient = given(seconds, "their gradients to the next context-parallel rank")
    cp_all_gather = given(seconds, "of keys and values over the context-parallel ranks")
    cp_reduce_scatter = given(seconds, "of their gradients over the context-parallel ranks")
    cp_exchange_in = given(seconds, "queries, keys and values, heads for tokens, among the context-parallel ranks")
    cp_exchange_out = given(seconds, "the attention's output, tokens for heads, among the context-parallel ranks")
    dp_gather_layer = given(seconds, "all-gather of one layer's weights over the ranks that share weights")
    dp_scatter_layer = given(seconds, "reduce-scatter of one layer's gradients over the ranks that share weights")
    dp_all_gather = given(seconds, "all-gather of a stage's weights over the ranks that share weights")
    dp_reduce_scatter = given(seconds, "reduce-scatter of a stage's gradients over the ranks that share weights")
    dp_across = given(seconds, "all-reduce of a rank's share of a stage's gradients among groups that share them")
    dp_all_reduce = given(seconds, "all-reduce of a stage's gradients over the ranks that share weights")
    pp_send = given(seconds, "one message between neighbouring stages")

    ep_dispatch = given(seconds, "tokens to their experts")
    ep_combine = given(seconds, "results of experts to their tokens")
    ep_dispatch_wire = given(
        seconds, "of the tokens to their experts, the bytes at what the fullest of the links attains"
    )
    ep_combine_wire = given(seconds, "of the results, the same")
    etp_gather = given(seconds, "rows of experts over the ranks that share an expert's features")
    etp_scatter = given(seconds, "their results, summed and scattered")

    ep_hidden_share = given(count, "share of the exchanges of experts that hides of what can hide", owner="assumption")
    tensor = part(
        TensorParallel,
        tp=tp,
        blocks=again.tp_blocks,
        all_gather=tp_all_gather,
        reduce_scatter=tp_reduce_scatter,
        all_reduce=tp_all_reduce,
        forward_compute=layer.forward_compute,
        backward_compute=layer.backward_compute,
        hidden_share=tp_hidden_share,
    )
    context = part(
        ContextParallel,
        cp=layout.cp,
        ring_ranks=layout.ring_ranks,
        send=cp_send,
        send_gradient=cp_send_gradient,
        all_gather=cp_all_gather,
        reduce_scatter=cp_reduce_scatter,
        exchange_in=cp_exchange_in,
        exchange_out=cp_exchange_out,
        attention_forward=layer.attention_forward,
        attention_backward=layer.attention_backward,
        first_forward=layer.first_forward,
        first_backward=layer.first_backward,
        hidden_share=cp_hidden_share,
    )
    experts = part(
        ExpertParallel,
        dispatch=ep_dispatch,
        combine=ep_combine,
        dispatch_wire=ep_dispatch_wire,
        combine_wire=ep_combine_wire,
        gather=etp_gather,
        scatter=etp_scatter,
        forward_compute=layer.forward_compute,
        backward_compute=layer.backward_compute,
        hidden_share=ep_hidden_share,
    )
    shown = part(
        RoutedTraffic,
        shared=True,
        forward=experts.forward,
        backward=experts.backward,
        exposed_forward=experts.exposed_forward,
        exposed_backward=experts.exposed_backward,
    )
    ep_forward, ep_backward = shown.ep_forward, shown.ep_backward
    ep_exposed_forward, ep_exposed_backward = shown.ep_exposed_forward, shown.ep_exposed_backward
    tp_shown_backward = equation(
        seconds,
        tensor.exposed_backward + repeated_tp * tensor.exposed_forward,
        "tensor-parallel traffic of a layer that shows, backward, what is repeated included",
    )
    cp_shown_backward = equation(
        seconds, context.exposed_backward + repeated_cp * context.exposed_forward, "the same, context-parallel"
    )
    ep_shown_backward = equation(
        seconds, ep_exposed_backward + repeated_ep * ep_exposed_forward, "the same, exchanges of experts"
    )
    accumulation = part(
        OptimizerTraffic,
        owned_parameters=(1 - memory.optimizer_away) * memory.owned_parameters,
        local_parameters=layout.layer_parameters + layout.layer_experts,
        copied_parameters=memory.copied_parameters,
    )
    forward_alone = equation(
        seconds,
        layer.forward_compute + tensor.exposed_forward + context.exposed_forward + ep_exposed_forward,
        "a layer, forward, before FSDP and what its host adds",
    )
    backward_alone = equation(
        seconds,
        layer.backward_compute
        + layer.recomputed_compute
        + tp_shown_backward
        + cp_shown_backward
        + ep_shown_backward
        + accumulation.accumulation,
        "a layer, backward, before FSDP and what its host adds",
    )
    mean_layers = equation(count, layout.layers / pp, "layers of the average stage")
    host_rates = part(HostRates, shared=True)
    host = part(
        HostTraffic,
        owned=memory.owned_parameters,
        layer_part=layout.layer_parameters / layout.weight_shards + layout.layer_experts / layout.expert_weight_shards,
        embedding_part=select(pp > 1, 0, layout.embedding_on_rank) / layout.weight_shards,
        head_part=(layout.head_on_rank + layout.beside_head) / layout.weight_shards,
        backward_gathers=memory.backward_gathers,
        served=memory.served,
        kept_layer=memory.kept_layer,
        scatters=select(layout.gradients_sharded > 0, m, 1),
        forward_alone=forward_alone,
        backward_alone=backward_alone,
        mean_layers=mean_layers,
    )
    layer_forward = equation(seconds, forward_alone + host.exposed_forward, "a layer, forward, before FSDP")
    layer_backward = equation(seconds, backward_alone + host.exposed_backward, "a layer, backward, before FSDP")
    layer_weight_gradient = equation(
        seconds,
        layer.weight_gradient_compute + accumulation.accumulation,
        "of this, what the gradient of the inputs does not wait for",
    )
    links = part(
        TakenLinks,
        tp_forward=tensor.exposed_forward,
        tp_backward=tp_shown_backward,
        cp_forward=context.exposed_forward,
        cp_backward=cp_shown_backward,
        ep_forward=ep_exposed_forward,
        ep_backward=ep_shown_backward,
    )
    free_forward = equation(
        seconds, layer_forward - links.taken_forward, "of a layer, forward, while the links of FSDP are free"
    )
    free_backward = equation(seconds, layer_backward - links.taken_backward, "the same, backward")
    sharded = part(
        FullySharded,
        dp=layout.replicas,
        gather_layer=dp_gather_layer,
        scatter_layer=dp_scatter_layer,
        forward_compute=free_forward,
        backward_compute=free_backward,
        wire_factor=fsdp_wire_factor,
        hidden_share=fsdp_hidden_share,
        backward_gathers=memory.backward_gathers,
        served=memory.served,
    )
    free_for_sync = equation(
        seconds,
        largest(
            0,
            layer_backward
            - links.taken_sync
            - links.fsdp_shares_across * smallest(sharded.backward_once, free_backward),
        ),
        "of a layer, backward, while the links of reduced gradients are free",
    )
    layer_time = equation(
        seconds,
        layer_forward + layer_backward + sharded.exposed_forward + sharded.exposed_backward,
        "a layer, both ways",
    )
    tables = part(
        ShardedTables,
        gather_layer=dp_gather_layer,
        scatter_layer=dp_scatter_layer,
        embedding_size=select(pp > 1, 0, layout.embedding_on_rank / (layout.layer_parameters + layout.layer_experts)),
        head_size=(layout.head_on_rank + layout.beside_head) / (layout.layer_parameters + layout.layer_experts),
        forward_left=largest(0, free_forward - sharded.forward_once),
        backward_left=largest(0, free_backward - sharded.backward_once),
        wire_factor=fsdp_wire_factor,
        hidden_share=fsdp_hidden_share,
        embedding_gathers=memory.embedding_gathers,
        served=memory.served,
    )
    head_share = equation(
        count, 1 / layout.weight_copies, "share of the micro-batches whose head a rank with a head has"
    )
    modules = layout.multi_token_modules
    further = part(MultiToken, shared=True)
    last_work = equation(
        seconds,
        further.losses_and_modules + tables.exposed + host.exposed_tables,
        "head and loss, those of modules that predict further tokens with what these run beside their layers, and their traffic",
    )
    # Only two kinds of stage can be the slowest: one with the most layers, and the one with the head.
    most_layers = equation(count, worst(layout.stage_layers, STAGE), "layers of the fullest stage")
    head_layers = equation(
        count,
        head_share * (total(layout.stage_layers * layout.has_head, STAGE) + modules),
        "layers of the stage with the head, those of modules that predict further tokens among them",
    )
    full_stage_time = equation(seconds, most_layers * layer_time, "a micro-batch on the fullest stage, both ways")
    head_stage_time = equation(
        seconds, head_layers * layer_time + head_share * last_work, "a micro-batch on the stage with the head"
    )
    slowest_stage = equation(seconds, largest(full_stage_time, head_stage_time), "a micro-batch on the slowest stage")
    all_stages = equation(
        seconds, (layout.layers + modules) * layer_time + last_work, "a micro-batch on all stages together"
    )
    plain = part(Balance, virtual_stages=1, folded=0, two_way=0)  # as 1F1B and GPipe have it, whatever a row's chunks
    pipeline = part(
        Pipeline,
        pp=pp,
        micro_batches=m,
        slowest=slowest_stage,
        all_stages=all_stages,
        layers=mean_layers,
        forward=layer_forward,
        input_gradient=layer_backward - layer_weight_gradient,
        weight_gradient=layer_weight_gradient,
        send=pp_send,
        first_forward=plain.layers_of_first * layer_forward,
        first_backward=plain.layers_of_first * layer_backward,
        middle_forward=plain.layers_of_middle * layer_forward,
        middle_backward=plain.layers_of_middle * layer_backward,
        last_forward=(plain.layers_of_last + modules) * layer_forward + further.losses_and_modules_forward,
        last_backward=(plain.layers_of_last + modules) * layer_backward
        + further.losses_and_modules
        - further.losses_and_modules_forward,
        last_chunk=layout.last_chunk + modules,
        head_forward=further.losses_and_modules_forward,
        head_input_gradient=further.losses_input_gradient,
        head_weight_gradient=further.losses_weight_gradient,
    )
    sync = part(
        GradientSync,
        dp=layout.replicas,
        pp=pp,
        micro_batches=m,
        all_reduce=dp_all_reduce,
        reduce_scatter=dp_reduce_scatter,
        all_gather=dp_all_gather,
        across=dp_across,
        forward_compute=mean_layers * free_forward,
        backward_compute=mean_layers * free_backward,
        last_backward_compute=mean_layers * free_for_sync,
        wire_factor=dp_wire_factor,
        hidden_share=dp_hidden_share,
    )
    exposed_sync = equation(
        seconds, sync.exposed_gradient + sync.exposed_weight, "gradient and weight traffic that shows"
    )
    updates = equation(
        count, by_schedule(layout.schedule, {"pipedream": m}, others=1), "times that the optimizer runs in a step"
    )
    optimizer = equation(seconds, updates * accumulation.update, "of the optimizer in a step")
    updating = equation(seconds, optimizer + host.exposed_update, "of the optimizer, on the chip and on the host")
    step_time = equation(seconds, pipeline.total + exposed_sync + updating + step_overhead, "one optimizer step")
