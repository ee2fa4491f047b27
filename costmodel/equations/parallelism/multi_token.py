"""Multi-token prediction: what D modules that predict further tokens add to a micro-batch on the stage with the head.

A module (DeepSeek-V3, GLM-4.5, Megatron-core's `--mtp-num-layers`) takes the hidden state of a token and the embedding of the
next one through a norm each, joins them by a projection from 2 H to H, and runs one whole decoder layer, a norm of its own and the
model's head, with a loss of its own over the vocabulary. So each one costs, on the rank that has the head:

    weights      layer + 2 H^2 / tp + 3 norms, routed experts / (ep etp); once for all D a copy of an untied embedding
    time         layer, as the average one of the model, its exchanges of tp, cp, ep and FSDP included; projection; head and loss
    activations  layer, and 4 H a token (inputs of both norms, input of the projection), of the micro-batches in the last chunk
    logits       what the loss keeps of them: the modules' losses come first, their backward passes last
    FLOP         2 (layer + 2 H^2 + H V) and the scores of one layer forward, and three times that in training

The layer has no formula of its own here: the D layers count among those of the stage with the head, the D losses beside the model's.

Left out: the sum of the copied embedding's gradients with the first stage's (as that of a tied embedding is), tokens shifted
between context-parallel ranks, looking up the embedding.
"""

from costmodel.equations.axes import PART
from costmodel.equations.kernels.layer import LayerCompute
from costmodel.equations.kernels.matmul import WeightMatmuls
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.symbolic import (
    Chapter,
    bytes_,
    choose,
    count,
    equation,
    given,
    part,
    row,
    seconds,
    select,
    smallest,
    total,
)


class MultiToken(Chapter):
    """Head, losses, and what the modules run beside their layers, of a micro-batch on the stage with the head.

    Tensor-parallel ranks hold columns of the projection. Its result is gathered; with sequence parallelism so are its two inputs,
    forward and once more for the gradient of the weights, and their own gradients are scattered.
    """

    layer = part(LayerCompute, shared=True)
    layout = part(Layout, shared=True)
    again = part(Recomputation, shared=True)
    tp, modules = layout.tp, layout.multi_token_modules
    tp_all_gather = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_reduce_scatter = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_all_reduce = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_hidden_share = given(
        count, "share of tensor-parallel communication that hides behind compute", owner="assumption"
    )
    joined_bytes = given(
        bytes_, "of two states put side by side, a hidden feature, each way: both read and written", owner="assumption"
    )

    projection = part(
        WeightMatmuls,
        tokens=layout.tokens,
        features_in=2 * layout.hidden_size,
        features_out=layout.hidden_size / tp,
        groups=1,
        operand_size=layer.operand_bytes,
        peak=layer.peak,
        matmul_share=layer.matmul_share * layer.product_share,
    )
    joining_product_forward = equation(
        seconds, row(projection.time, PART, "forward"), "projection of two hidden states to one, forward"
    )
    joining_product_backward = equation(
        seconds,
        total(projection.time, PART) - joining_product_forward,
        "the same, backward",
        approximate="at the precision of the training, its casts left out",
    )
    hidden_features = equation(
        count,
        layout.tokens * layout.hidden_size / layout.sequence_split,
        "of a micro-batch between the products of a rank",
    )
    joining_norms_forward = equation(
        seconds,
        hidden_features * (3 * layer.norm_bytes_forward + joined_bytes) / layer.between_rate,
        "three norms, and two states put side by side, forward",
    )
    joining_norms_backward = equation(
        seconds,
        hidden_features * (3 * layer.norm_bytes_backward + joined_bytes) / layer.between_rate,
        "the same, backward",
    )
    joining_traffic_forward = equation(
        seconds,
        select(tp > 1, choose(layout.sequence_parallel, {"off": tp_all_gather, "on": 3 * tp_all_gather}), 0),
        "of the projection among tensor-parallel ranks, forward",
        source="Megatron-core: MultiTokenPredictionLayer, ColumnParallelLinear",
    )
    joining_traffic_backward = equation(
        seconds,
        select(
            tp > 1,
            choose(
                layout.sequence_parallel,
                {"off": 2 * tp_all_reduce, "on": 3 * tp_all_gather + 2 * tp_reduce_scatter},
            ),
            0,
        ),
        "the same, backward",
    )
    joining_exposed_forward = equation(
        seconds,
        joining_traffic_forward - tp_hidden_share * smallest(joining_traffic_forward, joining_product_forward),
        "what shows of it, forward",
    )
    joining_exposed_backward = equation(
        seconds,
        joining_traffic_backward - tp_hidden_share * smallest(joining_traffic_backward, joining_product_backward),
        "what shows of it, backward",
    )
    joining_products = equation(
        seconds, joining_product_forward + joining_product_backward, "projection of a module, both ways"
    )
    joining_elementwise = equation(
        seconds, joining_norms_forward + joining_norms_backward, "norms of a module beside its layer, both ways"
    )
    joining_rerun = equation(
        seconds, again.repeated_layer * (joining_product_forward + joining_norms_forward), "of these, run again"
    )
    joining_exposed = equation(
        seconds,
        (1 + again.repeated_layer) * joining_exposed_forward + joining_exposed_backward,
        "traffic of the projection that shows, both ways",
    )
    joining_traffic = equation(
        seconds,
        (1 + again.repeated_layer) * joining_traffic_forward + joining_traffic_backward,
        "traffic of the projection, hidden or not, both ways",
    )

    losses_compute = equation(
        seconds,
        (1 + modules) * layer.loss_compute,
        "head and losses, forward and backward: of the next token, and of one further token a module",
    )
    losses_and_modules_forward = equation(
        seconds,
        (1 + modules) * layer.loss_forward
        + modules * (joining_product_forward + joining_norms_forward + joining_exposed_forward),
        "beside the layers of the stage with the head and of its modules, forward",
    )
    losses_and_modules = equation(
        seconds,
        losses_compute + modules * (joining_products + joining_elementwise + joining_rerun + joining_exposed),
        "the same both ways, before FSDP",
    )
    losses_weight_gradient = equation(
        seconds,
        (1 + modules) * layer.loss_weight_gradient + modules * row(projection.time, PART, "weight_gradient"),
        "of this, gradients of the weights of heads and projections",
    )
    losses_input_gradient = equation(
        seconds,
        losses_and_modules - losses_and_modules_forward - losses_weight_gradient,
        "the rest of their backward passes, which the stages before wait for",
    )
