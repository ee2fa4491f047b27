"""Communication inside a layer behind the pieces of what needs it: rings, pieces, and two micro-batches whose experts exchange in turn.

The streams are ideal: a kernel that is cut runs as fast in pieces, and what communicates takes nothing from what computes. What a
framework attains of this is a share that runs are fitted to (`--overlap tp`).
"""

from costmodel.equations.axes import MATMUL, PART
from costmodel.symbolic import Chapter, count, equation, given, largest, part, row, seconds


class RingExchange(Chapter):
    """A product on shards that go round a ring, before it (gathered) or after it (scattered): the first or last shard is its own."""

    n = given(count, "ranks of the ring")
    piece = given(seconds, "the product on one shard")
    hop = given(seconds, "one shard to the next rank")

    whole = equation(seconds, largest(n * piece, (n - 1) * hop + piece), "product and exchange")
    exposed = equation(
        seconds,
        (n - 1) * largest(0, hop - piece),
        "of this, what is not the product",
        source="executed shard by shard",
    )


class InPieces(Chapter):
    """A collective and the product that waits for it, or the other way round, both cut into as many pieces."""

    pieces = given(count, "pieces")
    communicated = given(seconds, "one piece of the collective")
    computed = given(seconds, "one piece of the product")

    whole = equation(
        seconds,
        communicated + computed + (pieces - 1) * largest(communicated, computed),
        "product and collective",
    )
    exposed = equation(
        seconds,
        communicated + (pieces - 1) * largest(0, communicated - computed),
        "of this, what is not the product: one piece of the collective, and what is longer than the pieces it hides behind",
        source="executed piece by piece",
    )


class ExpertPair(Chapter):
    """A layer of one micro-batch forward beside a layer of another backward: what experts exchange hides behind the other's work.

    On the communication stream the order is combine backward, dispatch forward, dispatch backward, combine forward; on the other
    attention forward, experts backward, their weights' gradients, experts forward, attention backward.
    """

    attention_forward = given(seconds, "attention and all else outside the experts, forward")
    dispatch_forward = given(seconds, "tokens to experts")
    experts_forward = given(seconds, "experts, forward")
    combine_forward = given(seconds, "results to tokens")
    combine_backward = given(seconds, "gradients of results to experts")
    experts_backward = given(seconds, "experts, gradients of their inputs")
    experts_weights = given(seconds, "experts, gradients of their weights")
    dispatch_backward = given(seconds, "gradients of tokens back")
    attention_backward = given(
        seconds, "attention and all else outside the experts, backward, gradients of weights included"
    )

    period = equation(
        seconds,
        largest(combine_backward, attention_forward)
        + largest(
            largest(experts_backward + experts_weights, dispatch_forward) + experts_forward,
            largest(experts_backward, dispatch_forward) + dispatch_backward,
        )
        + largest(combine_forward, attention_backward),
        "both layers, all phases in this order",
        source="NVIDIA/Megatron-LM, core/models/common/model_chunk_schedule_plan.py, executed",
    )


class LayerOverlap(Chapter):
    """Sequence-parallel traffic of a dense layer and micro-batch, as Megatron-LM overlaps it and as it does not.

    With `tp_comm_overlap` the products that open a block take gathered shards in a ring, those that end it are scattered in pieces,
    backward both take a ring or hide in bulk: the input's gather under the product for the input's gradient, the scatter of that
    gradient under the product for the weights'. Without it, only what hides in bulk does.
    """

    tp = given(count, "tensor-parallel ranks")
    tp_all_gather = given(seconds, "of the hidden states of a micro-batch")
    tp_reduce_scatter = given(seconds, "the same, summed")
    taken = given(seconds, "a product of a layer", PART, MATMUL)
    tp_overlap_pieces = given(count, "pieces that a product is cut into before its scatter", owner="assumption")
    mean_layers = given(count, "layers of the average stage")
    micro_batches = given(count, "micro-batches of a step")

    hop = equation(seconds, tp_all_gather / (tp - 1), "one shard to the next rank")
    scattered_piece = equation(seconds, tp_reduce_scatter / tp_overlap_pieces, "one piece of a scatter")
    qkv = part(RingExchange, n=tp, hop=hop, piece=row(row(taken, PART, "forward"), MATMUL, "qkv") / tp)
    ffn_in = part(RingExchange, n=tp, hop=hop, piece=row(row(taken, PART, "forward"), MATMUL, "ffn_in") / tp)
    attention_output = part(
        InPieces,
        pieces=tp_overlap_pieces,
        communicated=scattered_piece,
        computed=row(row(taken, PART, "forward"), MATMUL, "attention_output") / tp_overlap_pieces,
    )
    ffn_out = part(
        InPieces,
        pieces=tp_overlap_pieces,
        communicated=scattered_piece,
        computed=row(row(taken, PART, "forward"), MATMUL, "ffn_out") / tp_overlap_pieces,
    )
    to_attention_output = part(
        RingExchange, n=tp, hop=hop, piece=row(row(taken, PART, "input_gradient"), MATMUL, "attention_output") / tp
    )
    to_ffn_out = part(
        RingExchange, n=tp, hop=hop, piece=row(row(taken, PART, "input_gradient"), MATMUL, "ffn_out") / tp
    )

    bulk = equation(
        seconds,
        largest(0, tp_all_gather - row(row(taken, PART, "input_gradient"), MATMUL, "qkv"))
        + largest(0, tp_reduce_scatter - row(row(taken, PART, "weight_gradient"), MATMUL, "qkv"))
        + largest(0, tp_all_gather - row(row(taken, PART, "input_gradient"), MATMUL, "ffn_in"))
        + largest(0, tp_reduce_scatter - row(row(taken, PART, "weight_gradient"), MATMUL, "ffn_in")),
        "of inputs gathered again and of scattered gradients, what is longer than the product beside it",
    )
    all_forward = equation(seconds, 2 * (tp_all_gather + tp_reduce_scatter), "traffic of a layer, forward")
    all_backward = equation(seconds, 4 * tp_all_gather + 2 * tp_reduce_scatter, "traffic of a layer, backward")
    plain_backward = equation(
        seconds, 2 * tp_all_gather + bulk, "what shows backward without tp_comm_overlap; forward all of it does"
    )
    overlapped_forward = equation(
        seconds,
        qkv.exposed + attention_output.exposed + ffn_in.exposed + ffn_out.exposed,
        "what shows forward with tp_comm_overlap",
    )
    overlapped_backward = equation(
        seconds, to_attention_output.exposed + to_ffn_out.exposed + bulk, "what shows backward with tp_comm_overlap"
    )
    layers_of_step = equation(count, mean_layers * micro_batches, "layers that a rank runs in a step")
    all_of_step = equation(seconds, layers_of_step * (all_forward + all_backward), "traffic of a step")
    plain_of_step = equation(
        seconds, layers_of_step * (all_forward + plain_backward), "what shows of a step without tp_comm_overlap"
    )
    overlapped_of_step = equation(
        seconds,
        layers_of_step * (overlapped_forward + overlapped_backward),
        "what shows of a step with tp_comm_overlap",
    )
