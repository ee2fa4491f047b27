"""The weights that modules which predict further tokens add to the rank that holds the head."""

from costmodel.equations.model.parameters import Parameters
from costmodel.symbolic import Chapter, count, equation, given, part, select


class ModuleWeights(Chapter):
    """D modules beside the head, each a projection, three norms and a decoder layer; and the embedding that they look up.

    Megatron-core puts all of them on the last stage, which then holds a copy of an untied embedding too, unless the pipeline
    brings both ends to one rank (DualPipe and the folded schedules). A tied head is the embedding already.
    """

    model = part(Parameters, shared=True)
    multi_token_modules = given(count, "modules that predict further tokens and are trained (D)", owner="workload")
    tp = given(count, "tensor-parallel ranks")
    dense_layer = given(count, "weights of a dense layer on a rank")
    mixture_layer = given(count, "weights of a layer of experts on a rank, routed experts apart")
    ends_meet = given(count, "1 where embedding and head are on one rank")
    embedding_on_rank = given(count, "weights of the embedding on a rank")
    vocabulary_on_rank = given(count, "columns of the head on a rank")

    joining_on_rank = equation(
        count,
        model.joining_matrix / tp + model.joining_norms,
        "projection and norms of a module on a rank: the projection is split by columns",
        source="Megatron-core: MultiTokenPredictionLayer",
    )
    module_on_rank = equation(
        count,
        joining_on_rank + select(model.experts > 0, mixture_layer, dense_layer),
        "weights of a module on a rank, routed experts apart; its layer has experts where the model has any",
    )
    copied_embedding = equation(
        count,
        select(
            multi_token_modules > 0,
            (1 - ends_meet) * (embedding_on_rank - model.tied_embeddings * vocabulary_on_rank * model.hidden_size),
            0,
        ),
        "weights of the embedding that the stage with the head holds once more for its modules",
        source="Megatron-core: the embedding is copied to the stage of the modules, its gradients summed with the first stage's",
    )
    beside_head = equation(
        count,
        multi_token_modules * joining_on_rank + copied_embedding,
        "weights that are gathered with the head: projections and norms of the modules, the copy of the embedding",
    )
    modules_on_rank = equation(
        count,
        multi_token_modules * module_on_rank + copied_embedding,
        "weights that the modules add to the rank with the head, routed experts apart",
    )
