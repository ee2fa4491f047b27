"""Memory traffic of a layer of experts: sorting rows by expert and back, and the activation inside the experts."""

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, seconds, select


class ExpertTraffic(Chapter):
    """The traffic of the routed experts of the average layer, on one rank, for one micro-batch."""

    experts = given(count, "routed experts of a layer (E), 0 when the model is dense", owner="model")
    expert_share = given(count, "share of layers with experts")
    rows_on_rank = given(count, "rows that the experts of the busiest rank multiply")
    routed_tokens = given(count, "tokens that a rank sends to experts")
    etp = given(count, "ranks that share the features of an expert")
    expert_width = given(count, "features that a routed expert reads and writes")
    expert_ffn_size = given(count, "features inside a routed expert", owner="model")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    row_bytes = given(bytes_, "a feature of a row, each way: sorted to its expert and back", owner="assumption")
    sorted_token_bytes = given(bytes_, "a feature of a token, each way: read once, summed once", owner="assumption")
    activation_bytes_forward = given(bytes_, "a feature of a row inside an expert, forward: the activation")
    activation_bytes_backward = given(bytes_, "the same, backward")
    expert_traffic_factor = given(count, "measured traffic over that of perfectly fused kernels", owner="assumption")

    expert_path_factor = given(
        count,
        "time of sorting, casts and exchanges of experts over that of separate kernels; 1 where they are separate",
        owner="assumption",
    )

    rate = equation(
        bytes_per_second,
        memory_share * memory_bandwidth / (expert_traffic_factor * expert_path_factor),
        "of fused bytes",
    )
    sorting = equation(
        seconds,
        (rows_on_rank / etp * row_bytes + routed_tokens * sorted_token_bytes) * expert_width / rate,
        "rows to their experts and back in a layer of experts, each way",
    )
    features = equation(
        count, rows_on_rank * expert_ffn_size / etp, "features of all rows inside the experts of a rank"
    )
    activation = equation(
        seconds,
        select(experts > 0, expert_share * features * activation_bytes_forward / rate, 0),
        "the activation of routed experts in the average layer, forward",
    )
    activation_backward = equation(
        seconds,
        select(experts > 0, expert_share * features * activation_bytes_backward / rate, 0),
        "the same, backward",
    )
    forward = equation(
        seconds,
        select(experts > 0, expert_share * sorting + activation, 0),
        "of the average layer, forward",
        source="Megatron-core's permutation and activation kernels, counted",
    )
    backward = equation(
        seconds, select(experts > 0, expert_share * sorting + activation_backward, 0), "of the average layer, backward"
    )
