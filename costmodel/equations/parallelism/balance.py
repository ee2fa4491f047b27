"""How many layers each stage of a pipeline has, and each of its chunks."""

from costmodel.equations.axes import SCHEDULE
from costmodel.symbolic import Chapter, ceil_divide, count, divides, either, equation, given, largest, select


class Balance(Chapter):
    """How many layers each kind of stage has: as said, or as even as they can be.

    A count of layers that the chunks do not divide, but two more would, gives up one layer at each end, where embedding and head
    take its place.
    """

    layers = given(count, "layers (L)", owner="model")
    pp = given(count, "pipeline stages")
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    first_layers = given(count, "layers of the first stage; 0: as balance has it", SCHEDULE, owner="layout")
    last_layers = given(count, "layers of the last stage; 0: as balance has it", SCHEDULE, owner="layout")
    folded = given(count, "1 where the pipeline comes back to its first rank")
    two_way = given(count, "1 where micro-batches enter at both ends")

    chunks = equation(count, pp * virtual_stages, "chunks of layers in the pipeline")
    ends_said = equation(count, first_layers + last_layers, "layers of the ends that are said")
    spare_slots = equation(
        count,
        select(either(divides(chunks, layers), ends_said > 0), 0, 2),
        "slots of the pipeline that hold the embedding and the head in place of a layer",
        source="Megatron-LM: account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split",
    )
    stages_left = equation(
        count,
        pp * (1 + folded) - select(first_layers > 0, 1, 0) - select(last_layers > 0, 1, 0),
        "stages that share the other layers; a folded pipeline has two a rank",
        source="Megatron-LM: --decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers",
    )
    chunks_said = equation(
        count, virtual_stages / (1 + folded), "chunks of a stage; a folded pipeline has two stages a rank, of one chunk"
    )
    even_share = equation(
        count, (layers - ends_said) / largest(1, stages_left), "layers of each other stage where ends are said"
    )
    full_stage_layers = equation(
        count,
        select(
            ends_said > 0,
            (1 + folded) * even_share,
            ceil_divide(layers + spare_slots, chunks) * virtual_stages,
        ),
        "layers of a middle rank",
    )
    # What a stage at an end of the pipeline has; folded, the first rank has both, and two-way, both ranks at the ends have.
    entry_layers = equation(
        count,
        select(
            ends_said > 0,
            select(first_layers > 0, first_layers, even_share),
            full_stage_layers / (1 + folded) - spare_slots / 2,
        ),
        "layers of the first stage",
    )
    exit_layers = equation(
        count,
        select(
            ends_said > 0,
            select(last_layers > 0, last_layers, even_share),
            full_stage_layers / (1 + folded) - spare_slots / 2,
        ),
        "layers of the last stage",
    )
    layers_of_first = equation(
        count,
        select(
            pp > 1,
            select(two_way > 0, (entry_layers + exit_layers) / 2, entry_layers + folded * exit_layers),
            layers,
        ),
        "layers that a micro-batch meets on the first rank, on average where it takes either way; one rank alone is the first",
    )
    layers_of_middle = equation(count, select(pp > 2, full_stage_layers, 0), "layers of each rank between")
    layers_of_last = equation(
        count,
        select(
            pp > 1,
            select(
                two_way > 0,
                (entry_layers + exit_layers) / 2,
                select(folded > 0, full_stage_layers, exit_layers),
            ),
            0,
        ),
        "layers of the last rank",
    )
    # Where ranks have several chunks, ends that are said are cut evenly; a spare slot is in the first or the last chunk of all.
    chunk_of_middle = equation(count, layers_of_middle / virtual_stages, "layers of a chunk of a rank between")
    chunk_of_first = equation(
        count,
        select(ends_said > 0, layers_of_first, full_stage_layers) / virtual_stages,
        "layers of a chunk of the first rank, the first of all apart",
    )
    first_chunk = equation(
        count, layers_of_first - (virtual_stages - 1) * chunk_of_first, "layers of the first chunk of all"
    )
    chunk_of_last = equation(
        count,
        select(ends_said > 0, layers_of_last, full_stage_layers) / virtual_stages,
        "layers of a chunk of the last rank, the last of all apart",
    )
    last_chunk = equation(
        count, layers_of_last - (virtual_stages - 1) * chunk_of_last, "layers of the last chunk of all"
    )
