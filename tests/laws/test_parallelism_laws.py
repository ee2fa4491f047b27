"""Laws of parallelism that compare steps with one another, each under the conditions that its text states.

Where each law is: 24 to 29, 33 to 36, 39 and 40 in `test_training_laws` too. 30 is in `test_sharing_laws` too. 37, that one expert which all tokens take is a dense layer, is in
`test_expert_laws`. 38, of kernels, is in `tests/equations/kernels`. Units, of 40, are in
`tests/equations/test_every_chapter`; forms against execution are in `tests/equations/parallelism`.
"""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.parallelism.buckets import EqualBuckets
from costmodel.equations.parallelism.traffic import Traffic
from costmodel.runtime import call
from costmodel.studies.traffic import traffic_inputs
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import Case, cases, divisors
from tests.laws.test_training_laws import ROUNDING, STATES, at_most

few = settings(max_examples=settings.default.max_examples // 2)
traffic = compile_math(Traffic.system)
buckets = compile_math(EqualBuckets.system)
seconds = st.fractions(Fraction(1, 100), 10, max_denominator=100)


def sent(case: Case, **changes):
    """Bytes that a rank sends in a step, some inputs changed."""
    return call(traffic, traffic_inputs(case.inputs, case()) | changes)


@few
@given(cases(most_cp=4))
def test_24_ranks_alone_along_an_axis_send_nothing_for_it(case):
    found, layout = sent(case), case.layout
    degrees = {"tp": layout.tp, "cp": layout.cp, "pp": layout.pp}
    for axis, degree in degrees.items():
        assert (found[f"sent_{axis}"] == 0) == (degree == 1)
    assert (found["sent_dp"] + found["sent_fsdp"] == 0) == (layout.dp * layout.cp == 1)
    assert min(found["sent_dp"], found["sent_fsdp"]) == 0


@few
@given(cases(least_dp=2, most_pp=1), st.integers(1, 4))
def test_28_zero_3_sends_half_as_much_again_as_ddp(case, times):
    """Where gradients travel in as many bytes as weights, every micro-batch reduces, and no table stays gathered."""
    case = case.on(global_batch=case.layout.dp * case.layout.micro_batch_size * times)
    alike = {
        "gradient_wire_bytes": case()["element_size"],
        "embedding_on_rank": 0,
        "head_on_rank": 0,
        "heaviest_stage": case()["layer_parameters"] * case.workload.model.layers,
    }
    whole, one, two, three = (sent(case.laid(zero=zero), **alike) for zero in range(4))
    assert three["sent_fsdp"] == pytest.approx(1.5 * times * whole["sent_dp"], rel=ROUNDING)
    assert one["sent_dp"] == pytest.approx(whole["sent_dp"], rel=ROUNDING)
    assert two["sent_dp"] == pytest.approx((1 + times) / 2 * whole["sent_dp"], rel=ROUNDING)


@few
@given(cases(machines=("dgx-h100:8", "tpu-v5e:4x4"), most_pp=1), st.integers(0, 3))
def test_29_zero_on_one_data_parallel_rank_sends_nothing(case, zero):
    found = sent(case.laid(tp=case.layout.chips, dp=1, zero=zero))
    assert found["sent_dp"] == found["sent_fsdp"] == 0


@few
@given(cases(least_dp=2, most_cp=2), st.integers(1, 3), st.data())
def test_30_groups_that_share_are_fsdp_with_one_group_and_send_an_nth_of_the_gradients_across(case, zero, data):
    """A group moves (S - 1)/S of what it shares, whatever the others do; its ranks sum an S-th of the gradients with them."""
    replicas = case.layout.dp * case.layout.cp
    size = data.draw(st.sampled_from([n for n in divisors(replicas, replicas) if n > 1]))
    whole, one, some = (sent(case.laid(zero=zero, shard=group)) for group in (0, replicas, size))
    assert one["sent_across"] == whole["sent_across"] == 0
    assert (one["sent_fsdp"], one["sent_dp"]) == (whole["sent_fsdp"], whole["sent_dp"])
    inside = (size - 1) / size / ((replicas - 1) / replicas)
    assert some["sent_fsdp"] == pytest.approx(inside * whole["sent_fsdp"], rel=1e-9)
    assert some["sent_dp"] - some["sent_across"] == pytest.approx(inside * whole["sent_dp"], rel=1e-9)
    summed = sent(case.laid(zero=0))["sent_dp"] / ((replicas - 1) / replicas) * (1 - size / replicas) / size
    assert some["sent_across"] == pytest.approx(summed, rel=1e-9, abs=1e-6)


@few
@given(cases(least_tp=2))
def test_31_sequence_parallelism_sends_the_same_forward_and_half_as_much_again_backward(case):
    """An all-reduce is a scatter and a gather; backward the inputs of both blocks are gathered once more."""
    off, on = (sent(case.laid(sequence_parallel=mode)) for mode in (False, True))
    assert on["tp_forward"] == off["tp_forward"] == off["tp_backward"]
    assert on["tp_backward"] == pytest.approx(1.5 * off["tp_backward"], rel=ROUNDING)


@few
@given(cases(machines=("dgx-h100:24", "dgx-a100:64", "tpu-v5p:4x4x4"), least_cp=4, most_cp=8, most_tp=1))
def test_32_the_volume_of_ulysses_falls_with_its_ranks_and_that_of_a_ring_tends_to_a_constant(case):
    """Of one sequence among 4, 8, ... ranks, where every rank has a key-value head of its own."""
    cp = case.layout.cp
    if cp < 4:
        return
    heads = 64 * cp
    case = case.of(heads=heads, kv_heads=heads, head_size=64).laid(micro_batch_size=1)
    ring, ulysses = (
        [sent(case.laid(cp=n, dp=case.layout.dp * cp // n, cp_type=kind))["cp_forward"] for n in (cp // 2, cp)]
        for kind in ("ring", "ulysses")
    )
    assert ulysses[1] == pytest.approx(ulysses[0] * (cp - 1) / cp / (cp // 2 - 1) * (cp // 2) / 2, rel=1e-9)
    assert ring[1] == pytest.approx(ring[0] * (cp - 1) / cp / (cp // 2 - 1) * (cp // 2), rel=1e-9)


@few
@given(cases(least_pp=2))
def test_33_the_bubble_of_equal_stages_is_p_minus_1_of_m(case):
    """Of plain 1F1B, whatever messages and head add to it; v chunks divide it."""
    found = case.laid(virtual_stages=1, schedule="1f1b")()
    assert found["pipeline_gaps"] == pytest.approx(case.layout.pp - 1, rel=1e-9)


@few
@given(cases(least_pp=2))
def test_33_zero_bubble_schedules_idle_no_more_than_1f1b(case):
    """Where they are legal: two chunks a stage and enough micro-batches for zb-v. Messages hide alike, but for their own."""
    case = case.of(layers=4 * case.layout.pp).on(
        global_batch=2 * case.layout.pp * case.layout.dp * case.layout.micro_batch_size
    )
    plain = case.laid(virtual_stages=1, schedule="1f1b")()
    split, folded = case.laid(virtual_stages=1, schedule="zb-h1")(), case.laid(virtual_stages=2, schedule="zb-v")()
    assert at_most(split["time_bubble"], plain["time_bubble"])
    assert at_most(folded["pipeline_gaps"], split["pipeline_gaps"], 1e-9)
    assert split["pipeline_gaps"] <= plain["pipeline_gaps"]


@given(st.integers(1, 1000), seconds, seconds, seconds, st.integers(1, 40))
def test_34_one_bucket_hides_nothing_and_none_hides_more_than_the_shorter(size, start, rate, backward, count):
    given = {"gradient_bytes": Fraction(size), "backward_compute": backward, "start": start, "rate": rate}
    one, several = (buckets(buckets=Fraction(n), **given) for n in (1, count))
    assert one["exposed"] == one["reduction"]
    whole, step = count * several["reduction"], backward + several["exposed"]
    assert max(backward, whole) <= step <= backward + whole
    assert several["exposed"] >= 0


@few
@given(cases(machines=("dgx-h100:8", "mi300x-cluster:8")))
def test_36_axes_inside_one_domain_can_be_numbered_in_any_order(case):
    """All links of a domain are alike."""
    times = [case.laid(placement="-".join(order))()["step_time"] for order in permutations(("tp", "dp", "pp"))]
    assert times == pytest.approx([times[0]] * 6, rel=ROUNDING)


@few
@given(cases(least_tp=2, most_cp=4))
def test_39_more_tensor_parallel_ranks_hold_no_more(case):
    """Twice the ranks, half the replicas, as many micro-batches; states not shared, and a vocabulary that both pad alike."""
    layout = case.laid(zero=0).layout
    whole = case.of(vocabulary=128 * 16 * 8).laid(zero=0)
    fewer = whole.laid(
        tp=layout.tp // 2, dp=2 * layout.dp, sequence_parallel=layout.sequence_parallel and layout.tp > 2
    ).on(global_batch=2 * case.workload.global_batch)
    if layout.tp % 2:
        return
    half, all_ranks = fewer(), whole()
    for quantity in (*STATES, "stage_logits"):
        for less, more in zip(all_ranks[quantity], half[quantity], strict=True):
            pairs = zip(less, more, strict=True) if isinstance(less, list) else [(less, more)]
            assert all(at_most(*pair) for pair in pairs)
    assert at_most(all_ranks["kept_layer"], half["kept_layer"])
    assert at_most(all_ranks["allocated"], half["allocated"])


@few
@given(cases(least_cp=4, most_cp=8, most_tp=4))
def test_39_more_context_parallel_ranks_hold_no_more(case):
    """Twice the ranks, half the replicas: states are shared over both alike. From two ranks on, as one has no buffers of a ring."""
    cp = case.layout.cp
    if cp < 4 or cp % 2:
        return
    fewer = case.laid(cp=cp // 2, dp=2 * case.layout.dp).on(global_batch=2 * case.workload.global_batch)
    less, more = case(), fewer()
    for state in STATES:
        assert less[state] == pytest.approx(more[state], rel=ROUNDING)
    assert at_most(less["kept_layer"], more["kept_layer"])
    assert at_most(less["allocated"], more["allocated"])


@few
@given(cases(most_cp=4))
def test_40_the_fullest_moment_holds_at_least_every_part_of_it(case):
    found = case()
    for quantity in ("stage_weights", "stage_gradients", "stage_optimizer"):
        assert max(found[quantity]) <= found["allocated"]
    for quantity in ("stage_activations", "stage_logits"):
        assert max(map(max, found[quantity])) <= found["allocated"]
