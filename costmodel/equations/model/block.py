"""How attention and feed-forward of a decoder layer are put together: one after the other, or side by side."""

from costmodel.symbolic import Chapter, bytes_, count, equation, given, select


class Block(Chapter):
    """What a layer has of norms and sums, by how its two halves are put together.

    One after the other, each half has a norm before it and a sum after it. Side by side both read the same hidden states, through one
    norm (GPT-J, PaLM) or through one each (GPT-NeoX, Falcon's later architecture), and are added to them in one sum.
    """

    parallel_block = given(count, "1 where attention and feed-forward are side by side, else 0", owner="model")
    norms_per_layer = given(count, "norms of a layer", owner="model")
    norm_bytes_forward = given(bytes_, "of one norm, a hidden feature: read and written", owner="assumption")
    norm_bytes_backward = given(bytes_, "the same, backward", owner="assumption")
    sum_bytes = given(bytes_, "of the sum after a half, each way: two read and one written", owner="assumption")
    parallel_sum_bytes = given(
        bytes_, "of the sum after both halves side by side, each way: three read and one written", owner="assumption"
    )

    norms_run = equation(
        count,
        select(parallel_block > 0, norms_per_layer, 2),
        "norms of a layer as traffic and memory count them",
        approximate="two where the halves follow one another: norms after them are left out",
    )
    kept_states = equation(
        count,
        select(parallel_block > 0, 1 + norms_per_layer, 4),
        "hidden states kept for the backward pass: what norms read, once where it is the same, and what the halves read",
        source="Korthikanti et al. 2022, section 4.1; Chowdhery et al. 2022, arXiv 2204.02311, section 2, for halves side by side",
    )
    sums = equation(
        bytes_,
        select(parallel_block > 0, parallel_sum_bytes, 2 * sum_bytes),
        "sums of a layer, a hidden feature, each way",
    )
    state_bytes_forward = equation(
        bytes_,
        norms_run * norm_bytes_forward + sums,
        "traffic of a hidden feature, forward: norms, and the sums after the halves",
        approximate="side by side, the two results are summed among as many ranks as share what lies between the products",
    )
    state_bytes_backward = equation(
        bytes_,
        norms_run * norm_bytes_backward + sums,
        "the same, backward: norms, and the sum of the gradients of both halves and of the residual",
    )
    kernels_fewer = equation(
        count,
        select(parallel_block > 0, 3 - norms_per_layer, 0),
        "kernels that a layer has fewer, forward: one sum, and a norm where both halves share it",
    )
