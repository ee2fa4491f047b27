"""What a layout is, and what it makes of a model on one rank: tokens, weights, layers of a stage."""

from costmodel.equations.axes import CONTEXT, MICRO_BATCH, RESHARD, SCHEDULE, SEQUENCE, SHARDING, STAGE
from costmodel.equations.parallelism.balance import Balance
from costmodel.equations.parallelism.expert_grid import ExpertGrid
from costmodel.equations.parallelism.multi_token_weights import ModuleWeights
from costmodel.equations.parallelism.schedules import FOLDED, SCHEDULES, TWO_WAY, by_schedule
from costmodel.symbolic import (
    Chapter,
    bytes_,
    ceil_divide,
    choice,
    choose,
    count,
    equation,
    given,
    largest,
    part,
    rows,
    select,
    smallest,
    worst,
)


class Layout(Chapter):
    """Degrees of parallelism, micro-batch, schedule, sharding, and the model on a rank under them."""

    grid = part(ExpertGrid, shared=True)
    tp, cp, pp, dp, ep, etp = grid.tp, grid.cp, grid.pp, grid.dp, grid.ep, grid.etp
    micro_batch_size = given(count, "sequences of a micro-batch", MICRO_BATCH, owner="layout")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    group_size = given(count, "micro-batches that go through a chunk together; 0: pp", SCHEDULE, owner="layout")
    messages_block = given(
        count, "1 where messages hold up the ranks that exchange them, 0 where they overlap", SCHEDULE, owner="layout"
    )
    optimizer_sharded = given(count, "1 when data-parallel ranks share the optimizer states", SHARDING, owner="layout")
    gradients_sharded = given(count, "1 when they share the gradients", SHARDING, owner="layout")
    weights_sharded = given(count, "1 when they share the weights", SHARDING, owner="layout")
    shard_group = given(
        count,
        "neighbouring ranks that share what is shared, copied to other such groups; 0: all",
        SHARDING,
        owner="layout",
    )
    reshard = choice(RESHARD, "after what FSDP gives up the weights that it gathered", SHARDING)
    sequence_parallel = choice(SEQUENCE.labels, "Megatron sequence parallelism", SEQUENCE)
    cp_type = choice(CONTEXT.labels, "how context-parallel ranks attend to all tokens", CONTEXT)

    global_batch = given(count, "sequences of a step", owner="workload")
    sequence_length = given(count, "tokens of a sequence (T)", owner="workload")
    element_size = given(bytes_, "an element of activations and weights in compute", owner="workload")
    model = grid
    layers, hidden_size, vocabulary = model.layers, model.hidden_size, model.vocabulary
    tied_embeddings, embedding_norm = model.tied_embeddings, model.embedding_norm
    vocabulary_multiple = given(count, "the padded vocabulary is a multiple of this times tp", owner="assumption")

    # The batch
    tokens = equation(count, micro_batch_size * sequence_length / cp, "tokens of a micro-batch on a rank")
    micro_batches = equation(count, global_batch / (dp * micro_batch_size), "micro-batches of a pipeline in a step (m)")
    replicas = equation(count, dp * cp, "ranks that hold the same weights: data- and context-parallel")
    kv_heads_on_rank = equation(
        count,
        largest(model.key_value_heads / tp, 1),
        "key-value heads of a tensor-parallel rank; copies where they are too few",
    )
    ulysses_ranks = equation(
        count,
        choose(
            cp_type,
            {
                "ring": 1,
                "ring-contiguous": 1,
                "all-gather": 1,
                "ulysses": cp,
                "usp": smallest(cp, kv_heads_on_rank),
            },
        ),
        "neighbouring context-parallel ranks that exchange heads (u); with usp as many as need no copies of keys",
        source="Fang and Zhao 2024, arXiv 2405.07719",
    )
    ring_ranks = equation(
        count,
        choose(
            cp_type,
            {
                "ring": cp,
                "ring-contiguous": cp,
                "all-gather": 1,
                "ulysses": 1,
                "usp": cp / ulysses_ranks,
            },
        ),
        "groups of them in a ring (r)",
    )
    sequence_split = equation(
        count,
        choose(sequence_parallel, {"off": 1, "on": tp}),
        "ranks that share what lies between the products",
        source="Korthikanti et al. 2022, section 4.2.2",
    )
    hidden_state_bytes = equation(
        bytes_, tokens * hidden_size * element_size, "the hidden states of a micro-batch on a rank"
    )

    # Where the stages are
    weight_copies = equation(
        count,
        by_schedule(schedule, {TWO_WAY: 2}, others=1),
        "stages whose weights a rank holds: one of either way, where micro-batches enter at both ends",
        source="Li and Hoefler 2021, table 2; deepseek-ai/DualPipe",
    )
    folded = equation(
        count, by_schedule(schedule, {FOLDED: 1}, others=0), "1 where the pipeline comes back to its first rank"
    )
    two_way = equation(count, weight_copies - 1, "1 where micro-batches enter at both ends")
    ends_meet = equation(
        count, select(pp > 1, largest(folded, two_way), 1), "1 where embedding and head are on one rank"
    )

    balance = part(Balance, shared=True)
    stage_layers = equation(
        count,
        rows(
            STAGE,
            {"first": balance.layers_of_first, "middle": balance.layers_of_middle, "last": balance.layers_of_last},
        ),
        "layers that a micro-batch meets on each kind of rank; one rank alone is the first",
    )
    has_embedding = equation(
        count,
        rows(STAGE, {"first": 1, "middle": 0, "last": select(pp > 1, weight_copies - 1, 0)}),
        "1 where the embedding is",
    )
    has_head = equation(
        count,
        rows(STAGE, {"first": ends_meet, "middle": 0, "last": select(pp > 1, 1 - folded, 0)}),
        "1 where head and loss are",
    )

    # The weights of a rank
    padded_vocabulary = equation(
        count,
        ceil_divide(vocabulary, vocabulary_multiple * tp) * vocabulary_multiple * tp,
        "rows of the embedding, padded to split evenly",
        source="Megatron-LM: make_vocab_size_divisible_by",
    )
    vocabulary_on_rank = equation(count, padded_vocabulary / tp, "columns of the head on a rank")
    dense_layer_on_rank = equation(
        count,
        model.layer_split_parameters / tp + model.layer_whole_parameters,
        "weights of a dense layer on a rank; norms and biases are held by every rank",
    )
    mixture_layer_on_rank = equation(
        count,
        model.mixture_split_parameters / tp + model.mixture_whole_parameters,
        "weights of a layer of experts on a rank, routed experts apart",
    )
    layer_parameters = equation(
        count,
        (1 - grid.expert_share) * dense_layer_on_rank + grid.expert_share * mixture_layer_on_rank,
        "weights of the average layer on a rank, routed experts apart",
    )
    layer_experts = equation(
        count, grid.expert_share * grid.routed_on_rank, "weights of routed experts of the average layer on a rank"
    )
    embedding_on_rank = equation(
        count,
        vocabulary_on_rank * hidden_size + model.position_parameters + model.embedding_norm_parameters,
        "weights of the embedding on a rank",
    )
    head_on_rank = equation(
        count,
        model.final_norm_parameters
        + select(tied_embeddings * select(pp > 1, 0, 1) > 0, 0, vocabulary_on_rank * hidden_size),
        "weights of head and final norm on a rank; a tied head on another stage is a copy",
    )
    shared_table = equation(
        count,
        select(pp > 1, has_embedding * has_head * tied_embeddings * vocabulary_on_rank * hidden_size, 0),
        "weights that embedding and head share where a pipeline brings both to one rank",
    )
    ends_expert_layers = equation(
        count,
        (
            ceil_divide(largest(balance.entry_layers - model.first_expert_layer, 0), model.expert_every)
            + balance.exit_layers / model.expert_every
        )
        / 2,
        "layers with experts of the average of first and last stage, which two-way pipelines bring to one rank",
    )
    modules = part(
        ModuleWeights,
        shared=True,
        tp=tp,
        dense_layer=dense_layer_on_rank,
        mixture_layer=mixture_layer_on_rank,
        ends_meet=ends_meet,
        embedding_on_rank=embedding_on_rank,
        vocabulary_on_rank=vocabulary_on_rank,
    )
    stage_modules = equation(
        count, has_head * modules.multi_token_modules, "modules that predict further tokens, where the head is"
    )
    stage_expert_layers = equation(
        count,
        select(
            model.experts > 0,
            rows(
                STAGE,
                {
                    "first": select(
                        pp > 1,
                        select(
                            two_way > 0,
                            ends_expert_layers,
                            ceil_divide(largest(stage_layers - model.first_expert_layer, 0), model.expert_every),
                        ),
                        model.expert_layers,
                    ),
                    "middle": stage_layers / model.expert_every,
                    "last": select(two_way > 0, ends_expert_layers, stage_layers / model.expert_every),
                },
            ),
            0,
        ),
        "of these layers, those with experts; dense ones come first",
    )
    stage_parameters = equation(
        count,
        weight_copies
        * ((stage_layers - stage_expert_layers) * dense_layer_on_rank + stage_expert_layers * mixture_layer_on_rank)
        + has_embedding * embedding_on_rank
        + has_head * (head_on_rank + modules.modules_on_rank)
        - shared_table,
        "weights on a rank of each kind of stage, routed experts apart",
    )
    stage_experts = equation(
        count,
        select(model.experts > 0, (weight_copies * stage_expert_layers + stage_modules) * grid.routed_on_rank, 0),
        "weights of routed experts on a rank of each kind of stage",
    )
    heaviest_stage = equation(
        count, worst(stage_parameters, STAGE), "weights on a rank of the heaviest stage, routed experts apart"
    )
    heaviest_experts = equation(
        count,
        select(model.experts > 0, worst(stage_experts, STAGE), 0),
        "weights of routed experts on a rank of the stage with most",
    )
    dense_size = equation(
        count, stage_parameters / heaviest_stage, "weights of a stage over those of the heaviest, routed experts apart"
    )
    most_expert_layers = equation(
        count, worst(stage_expert_layers, STAGE), "layers with experts of the stage with most"
    )
    expert_size = equation(
        count,
        select(most_expert_layers > 0, stage_expert_layers / most_expert_layers, 0),
        "weights of routed experts of a stage over those of the stage with most",
    )
    sharing_ranks = equation(
        count,
        select(shard_group > 0, smallest(shard_group, replicas), replicas),
        "ranks that share what is shared: all that hold the same weights, or a group of them (HSDP)",
        source="Zhao et al. 2023, arXiv 2304.11277, section 3.2.2: hybrid sharding",
    )
    expert_sharing_ranks = equation(
        count,
        grid.expert_replicas * sharing_ranks / replicas,
        "the same of routed experts, which are held by as many groups as all else",
        source="Megatron-core: --num-distributed-optimizer-instances divides the copies of experts too",
    )
    weight_shards = equation(
        count, select(weights_sharded > 0, sharing_ranks, 1), "parts that weights are cut into, routed experts apart"
    )
    gradient_shards = equation(count, select(gradients_sharded > 0, sharing_ranks, 1), "the same of gradients")
    optimizer_shards = equation(count, select(optimizer_sharded > 0, sharing_ranks, 1), "the same of optimizer states")
    expert_weight_shards = equation(
        count, select(weights_sharded > 0, expert_sharing_ranks, 1), "parts that weights of routed experts are cut into"
    )
    expert_gradient_shards = equation(
        count, select(gradients_sharded > 0, expert_sharing_ranks, 1), "the same of their gradients"
    )
    expert_optimizer_shards = equation(
        count, select(optimizer_sharded > 0, expert_sharing_ranks, 1), "the same of their optimizer states"
    )
