"""What rates that people print say of a step: FLOPs over time by their way of counting, utilisation of hardware over that of the model."""

from costmodel.symbolic import (
    Chapter,
    choice,
    choose,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    seconds,
    smallest,
)

FLOPS_COUNTED = ("full", "causal", "hardware")
"""Attention in full or causal, nothing recomputed; or in full with everything recomputed, as Megatron-LM counts."""


class PrintedRate(Chapter):
    """A rate of FLOPs a chip, and the step that it was measured on."""

    flops_counted = choice(FLOPS_COUNTED, "which FLOPs the rate counts", owner="workload")
    printed_rate = given(flop_per_second, "FLOP a second and chip, as printed")
    chips = given(count, "chips", owner="cluster")
    step_tokens = given(count, "tokens of a step")
    training_flops = given(flop, "of a token, attention in full, nothing recomputed")
    training_flops_causal = given(flop, "of a token, attention causal, nothing recomputed")
    megatron_flops = given(flop, "of a step, as Megatron-LM counts")

    counted = equation(
        flop,
        choose(
            flops_counted,
            {
                "full": step_tokens * training_flops,
                "causal": step_tokens * training_flops_causal,
                "hardware": megatron_flops,
            },
        ),
        "of a step, in that way",
    )
    printed_step_time = equation(seconds, counted / (printed_rate * chips), "the step that the rate tells of")


class PrintedUtilisation(Chapter):
    """Utilisation with and without recomputation."""

    hfu_over_mfu = given(count, "utilisation of the hardware over that of the model, as printed")

    rerun_share = equation(
        count,
        smallest(1, largest(0, 3 * (hfu_over_mfu - 1))),
        "share of the forward pass that is run again: a forward pass is a third of the work of a step",
        source="Korthikanti et al. 2022, appendix A",
    )
