"""What any training step obeys, whatever the machine, the model and the layout.

Laws have numbers, so that a failure can be spoken of; 1 to 23 are of collectives. Those of a step that need several steps or parts
of it are in `test_parallelism_laws`, which lists where each of 24 to 40 is.
"""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalog.counts import parameter_counts
from costmodel.equations.training_on_switches import OnSwitches
from costmodel.equations.training_on_torus import OnTorus
from costmodel.errors import InputError
from costmodel.search.layout import parse_layout
from costmodel.search.recomputation import RECOMPUTE
from costmodel.studies.estimate import COMMUNICATION, MEMORY_ITEMS, TIME_ITEMS
from costmodel.symbolic import bytes_per_second, flop_per_second, per_second, seconds
from tests.equations.training.drawn import SWITCHED, TORI, Case, cases, decoder, machine, on

few = settings(max_examples=settings.default.max_examples // 2)
TIMES = tuple(TIME_ITEMS)
SIZES = tuple(f"memory_{item}" for item in MEMORY_ITEMS)
STATES = ("stage_weights", "stage_gradients", "stage_optimizer")
ROUNDING = 1e-12


STALLED = 0.12
"""Interleaved pipelines that wait for messages are known to this share: their form is approximate."""


def at_most(small, large, slack=ROUNDING):
    return small <= large + slack * abs(large)


def no_slower(faster, slower):
    """Whether one step takes at most the time of another, as exactly as its pipeline is known."""
    stalled = max(found["pipeline_stall"] for found in (faster, slower)) > 0
    return at_most(faster["step_time"], slower["step_time"], STALLED if stalled else ROUNDING)


@few
@given(cases(most_cp=4))
def test_a_drawn_case_is_legal_and_finite(case):
    found = case()
    assert [name for name in found if name.startswith("rule_") and found[name] != 1] == []
    assert 0 < found["step_time"] < float("inf")
    assert 0 < found["allocated"] < found["reserved"] < found["device_used"] < float("inf")


@few
@given(cases(most_cp=4))
def test_40_items_of_time_add_up_to_the_step(case):
    found = case()
    items = [found[f"time_{item}"] for item in TIMES]
    assert min(items) >= 0
    assert sum(items) == pytest.approx(found["step_time"], rel=ROUNDING)


@few
@given(cases(most_cp=4))
def test_40_items_of_memory_add_up_to_what_is_allocated(case):
    found = case()
    items = [found[size] for size in SIZES]
    assert min(items) >= 0
    assert sum(items) == pytest.approx(found["allocated"], rel=ROUNDING)
    assert max(items) <= found["allocated"]


@pytest.mark.parametrize("on", ["dgx-h100:1", "tpu-v5e:1x1"])
@given(data=st.data())
@few
def test_24_a_chip_alone_communicates_nothing(on, data):
    found = data.draw(cases(machines=(on,)))()
    assert [found[f"time_{item}"] for item in (*COMMUNICATION, "bubble")] == [0] * 7
    assert [found[f"total_{item}"] for item in COMMUNICATION] == [0] * 6


@few
@given(cases(most_cp=4))
def test_25_degrees_multiply_out_to_the_chips(case):
    layout = case.layout
    assert layout.tp * layout.cp * layout.pp * layout.dp == layout.chips == case.workload.machine.chips
    with pytest.raises(InputError, match=f"not the {layout.chips} chips"):
        parse_layout(f"tp={layout.tp} cp={layout.cp} pp={layout.pp} dp={layout.dp + 1}", layout.chips)


@few
@given(st.data())
def test_26_model_flops_do_not_depend_on_the_layout(data):
    case = data.draw(cases(least_dp=2, most_cp=4))
    plain = {"cp": 1, "cp_type": "ring", "virtual_stages": 1, "schedule": "1f1b", "recompute": "full", "zero": 3}
    other = case.laid(tp=1, pp=1, dp=case.layout.chips, **plain)
    assert other()["model_flops"] == case()["model_flops"]


@few
@given(cases(most_cp=4))
def test_27_weights_of_all_ranks_are_those_of_the_model_and_its_copies(case):
    """Each of tp ranks holds its share and a copy of the norms; a tied head on a stage of its own is a copy too."""
    found, layout, model = case(), case.layout, case.workload.model
    counts = parameter_counts(model)
    stages = [1, layout.pp - 2, 1] if layout.pp > 1 else [1, 0, 0]
    held = layout.tp * sum(n * size for n, size in zip(stages, found["stage_parameters"], strict=True))
    copied = (layout.tp - 1) * (model.layers * counts["layer_whole_parameters"] + counts["final_norm_parameters"])
    padding = (found["padded_vocabulary"] - model.vocabulary) * model.hidden_size
    heads = 2 if not model.tied_embeddings or layout.pp > 1 else 1
    tied_copy = model.vocabulary * model.hidden_size if model.tied_embeddings and layout.pp > 1 else 0
    assert held == pytest.approx(counts["parameters"] + copied + heads * padding + tied_copy, rel=ROUNDING)


@few
@given(cases(least_dp=2))
def test_28_zero_shares_more_states_at_each_stage(case):
    levels = [case.laid(zero=zero)() for zero in range(4)]
    for less, more in pairwise(levels):
        for state in STATES:
            assert all(map(at_most, more[state], less[state]))
    states = [sum(level[state][0] for state in STATES) for level in levels]
    assert states[0] > states[1] > states[2] > states[3]
    assert states[3] * case.layout.dp == pytest.approx(states[0], rel=ROUNDING)


@few
@given(cases(least_dp=2, most_pp=1, most_tp=1))
def test_28_peak_falls_with_zero_where_states_outweigh_what_is_gathered(case):
    """Each stage of ZeRO holds something of a layer or two that the one before does not: deep models gain."""
    deep = case.of(layers=64, vocabulary=1000).laid(recompute="full", micro_batch_size=1).on(sequence_length=64)
    peaks = [deep.laid(zero=zero)()["allocated"] for zero in range(4)]
    assert peaks[0] > peaks[1] > peaks[2] > peaks[3]


@few
@given(cases(machines=("dgx-h100:8", "tpu-v5e:4x4"), most_pp=1))
def test_29_zero_on_one_data_parallel_rank_is_refused_and_changes_nothing(case):
    one = case.laid(tp=case.layout.chips, dp=1, zero=0)
    none, sharded = one(), one.laid(zero=1)()
    assert sharded["rule_sharding"] == 0
    assert sharded["step_time"] == none["step_time"]
    assert sharded["allocated"] == none["allocated"]


@few
@given(cases(least_tp=2))
def test_31_sequence_parallelism_keeps_fewer_activations(case):
    off, on = case.laid(sequence_parallel=False)(), case.laid(sequence_parallel=True)()
    assert on["kept_layer"] < off["kept_layer"]
    assert on["allocated"] <= off["allocated"]
    assert [on[state] for state in STATES] == [off[state] for state in STATES]


@few
@given(cases(least_pp=2), st.integers(2, 16))
def test_33_the_bubble_share_shrinks_as_micro_batches_grow(case, times):
    """Where a rank has one chunk. With several, a head on the last one holds the others up once a group of micro-batches, and a
    rank without it may never wait: there only the time of a micro-batch shrinks.
    """
    more = case.on(global_batch=case.workload.global_batch * times)
    few_batches, many = case(), more()
    if case.layout.virtual_stages == 1:
        if few_batches["micro_batches"] > case.layout.pp or not few_batches["spare_slots"]:
            assert many["time_bubble"] == pytest.approx(few_batches["time_bubble"], rel=ROUNDING)
        assert many["time_bubble"] / many["step_time"] < few_batches["time_bubble"] / few_batches["step_time"]
    assert many["step_time"] <= times * few_batches["step_time"]


@few
@given(cases(most_pp=1))
def test_33_one_stage_has_no_bubble_and_no_messages(case):
    found = case()
    assert found["time_bubble"] == found["time_pp"] == 0


@few
@given(cases(least_pp=2))
def test_33_chunks_divide_the_bubble(case):
    """With the same stages, v chunks fill and drain in 1/v of the time."""
    chunked = case.of(layers=12 * case.layout.pp)
    plain = chunked.laid(virtual_stages=1, schedule="1f1b")()["time_bubble"]
    for chunks in (2, 3, 4):
        found = chunked.laid(virtual_stages=chunks, schedule="interleaved")()
        assert found["time_bubble"] == pytest.approx(plain / chunks, rel=ROUNDING)


@few
@given(cases(most_cp=4))
def test_34_the_step_lies_between_perfect_overlap_and_none(case):
    low, step, high = (case(overlap)["step_time"] for overlap in ("perfect", "modelled", "none"))
    assert at_most(low, step)
    assert at_most(step, high)


@few
@given(cases(most_cp=4))
def test_34_what_shows_of_communication_is_part_of_it(case):
    found = case()
    for item in COMMUNICATION[:3]:
        assert at_most(found[f"time_{item}"], found[f"total_{item}"])
    for item in COMMUNICATION:
        assert found[f"total_{item}"] >= 0


@few
@given(cases(most_cp=4))
def test_no_step_beats_the_peak_of_its_chips(case):
    found = case()
    assert found["hfu"] < 1
    assert at_most(found["mfu_causal"], found["hfu"])
    assert at_most(found["mfu_causal"], found["mfu"])


@few
@given(cases(most_cp=4))
def test_39_recomputation_saves_activations_and_never_time(case):
    """Modes in order of what they run again, as far as they have one: attention keeps more than light in a fused kernel.

    Side by side, light keeps one hidden state of a layer; selective still keeps two, its input and the last of every second product.
    """
    if case.workload.model.parallel_block:
        case = case.of(parallel_block=False, norms_per_layer=2)
    found = {mode: case.laid(recompute=mode)() for mode in RECOMPUTE}
    chains = ("none norms light selective full", "none mlp-product light", "none attention full")
    for chain in chains:
        for less, more in pairwise(found[mode] for mode in chain.split()):
            assert at_most(more["kept_layer"], less["kept_layer"])
            assert no_slower(less, more)
            assert more["model_flops"] == less["model_flops"]
            assert at_most(less["hardware_flops"], more["hardware_flops"])
    for mode in RECOMPUTE[1:]:
        half = case.laid(recompute=f"{mode}/2")()
        for quantity in ("kept_layer", "recomputed_compute", "hardware_flops", "repeated_tp", "repeated_cp"):
            mean = (found["none"][quantity] + found[mode][quantity]) / 2
            assert half[quantity] == pytest.approx(mean, rel=1e-9)
        assert no_slower(found["none"], half) and no_slower(half, found[mode])
        assert found[mode]["kept_layer"] < found["none"]["kept_layer"]
        assert found[mode]["recomputed_compute"] > 0
        assert at_most(found[mode]["allocated"], found["none"]["allocated"])
    assert found["none"]["hardware_flops"] < found["selective"]["hardware_flops"] < found["full"]["hardware_flops"]


def test_recomputation_never_saves_time_where_one_layer_hides_fsdp_traffic_of_the_head():
    """A compute that is used once cannot hide more than itself: a stage of one layer, and a head larger than it."""
    shallow = on(decoder(layers=1, hidden_size=512, ffn_size=512, heads=1, kv_heads=1), "dgx-h100:24", "zero=3", 64, 24)
    assert no_slower(shallow(), shallow.laid(recompute="full")())


@few
@given(cases(least_dp=2))
def test_35_doubling_the_micro_batch_halves_their_number_and_keeps_the_work(case):
    layout = case.layout
    even = case.on(global_batch=2 * case.workload.global_batch)
    small, large = even(), even.laid(micro_batch_size=2 * layout.micro_batch_size)()
    assert large["micro_batches"] * 2 == small["micro_batches"]
    assert large["model_flops"] == small["model_flops"]
    assert large["step_tokens"] == small["step_tokens"]


@few
@given(cases(most_pp=1))
def test_39_memory_of_one_stage_is_linear_in_the_layers(case):
    sizes = [case.of(layers=layers)()["allocated"] for layers in (4, 8, 12)]
    assert sizes[2] - sizes[1] == pytest.approx(sizes[1] - sizes[0], rel=1e-9)


@few
@given(cases(machines=("dgx-a100:64", "tpu-v5p:4x4x4"), least_pp=4))
def test_39_a_middle_stage_depends_on_layers_over_stages_alone(case):
    """Twice the layers on each stage: twice the weights of a middle stage, and of its activations."""
    plain = case.laid(virtual_stages=1, schedule="1f1b")
    one, two = (plain.of(layers=n * case.layout.pp)() for n in (2, 4))
    for quantity in STATES:
        assert two[quantity][1] == pytest.approx(2 * one[quantity][1], rel=ROUNDING)
    assert two["stage_activations"][1] == pytest.approx(
        [2 * size for size in one["stage_activations"][1]], rel=ROUNDING
    )


@few
@given(cases(machines=("tpu-v5p:4x4x4",), most_tp=4, most_pp=1, least_tp=2))
def test_36_equal_axes_of_a_torus_are_alike(case):
    tp = case.layout.tp
    rest = f"dp{4 // tp}" if tp < 4 else ""
    mixed = ".".join(filter(None, (f"tp{tp}", rest)))
    placements = [f"x:{mixed}/y:dp4/z:dp4", f"x:dp4/y:{mixed}/z:dp4", f"x:dp4/y:dp4/z:{mixed}"]
    times = [case.laid(placement=placement)()["step_time"] for placement in placements]
    assert times == pytest.approx([times[0]] * 3, rel=ROUNDING)


def inputs_by_unit(case: Case) -> dict[str, str]:
    chapter = OnTorus if case.workload.machine.is_torus else OnSwitches
    given = case.inputs
    units = {e.name: e.unit for e in chapter.system.inputs(["step_time"])}
    rates = (bytes_per_second, flop_per_second, per_second)
    return {
        name: "seconds" if unit == seconds else "rate"
        for name, unit in units.items()
        if name in given and unit in (seconds, *rates)
    }


@few
@given(cases(), st.sampled_from((2, 4, 1024)))
def test_a_machine_twice_as_fast_in_everything_takes_half_the_time(case, k):
    """Powers of two, so that no rounding differs."""
    given = case.inputs
    faster = {n: given[n] / k if kind == "seconds" else given[n] * k for n, kind in inputs_by_unit(case).items()}
    before, after = case(), case(**faster)
    for item in TIMES:
        assert after[f"time_{item}"] * k == pytest.approx(before[f"time_{item}"], rel=ROUNDING)
    assert after["allocated"] == before["allocated"]


@few
@given(cases(), st.data())
def test_no_part_of_a_machine_slows_the_step_by_being_faster(case, data):
    kinds = inputs_by_unit(case)
    name = data.draw(st.sampled_from(sorted(kinds)))
    k = data.draw(st.sampled_from((1.01, 2.0, 100.0)))
    value = case.inputs[name]
    better = value / k if kinds[name] == "seconds" else value * k
    assert no_slower(case(**{name: better}), case())


@few
@given(cases(), st.sampled_from(("memory_share", "matmul_share", "attention_share")))
def test_no_share_of_the_chip_slows_the_step_by_growing(case, share):
    assert no_slower(case(**{share: 1.0}), case())


@few
@given(cases())
def test_more_hidden_communication_never_costs(case):
    given = case.inputs
    for share in ("tp_hidden_share", "cp_hidden_share", "fsdp_hidden_share", "dp_hidden_share"):
        times = [case(**{share: hidden})["step_time"] for hidden in (0.0, given[share], 1.0)]
        assert at_most(times[2], times[1])
        assert at_most(times[1], times[0])


@few
@given(cases(most_cp=4))
def test_a_longer_sequence_takes_longer_and_more_memory(case):
    longer = case.on(sequence_length=2 * case.workload.sequence_length)
    assert longer()["step_time"] > case()["step_time"]
    assert longer()["kept_layer"] > case()["kept_layer"]
    assert longer()["allocated"] >= case()["allocated"]


@pytest.mark.parametrize("on", [*SWITCHED, *TORI])
def test_every_machine_of_the_laws_can_be_had(on):
    assert machine(on).chips > 1
