"""How long FSDP keeps what it gathered: the longer, the less is sent and the more is held."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from costmodel.equations.axes import RESHARD
from costmodel.equations.parallelism.data import FullySharded, ShardedTables
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import cases, decoder, on
from tests.laws.test_parallelism_laws import sent

few = settings(max_examples=settings.default.max_examples // 2)
layers_of = compile_math(FullySharded.system)
tables_of = compile_math(ShardedTables.system)
seconds = st.fractions(0, 10, max_denominator=8)
ROUNDING = 1e-9
KEPT = RESHARD[1:]
"""From the shortest to the longest."""
FORWARD, LOSS, BACKWARD = range(3)


def ways(case, **changes):
    return [case.laid(zero=3, reshard=way)(**changes) for way in KEPT]


@few
@given(cases(least_dp=2, most_cp=2))
def test_what_is_kept_longer_takes_no_longer_and_no_less_memory(case):
    """Stages of one layer apart, of which two are counted where they are prefetched, and chunks with less than one."""
    assume(min(case.laid(zero=3)()["stage_layers"][:1]) >= max(2, case.layout.virtual_stages))
    forward, backward, step = ways(case)
    assert step["step_time"] <= backward["step_time"] * (1 + ROUNDING)
    assert backward["step_time"] <= forward["step_time"] * (1 + ROUNDING)
    assert forward["allocated"] <= backward["allocated"] * (1 + ROUNDING)
    assert backward["allocated"] <= step["allocated"] * (1 + ROUNDING)
    assert forward["legal"] == backward["legal"] == step["legal"] == 1


@few
@given(cases(least_dp=2, most_cp=2))
def test_unless_it_is_said_the_framework_says_it(case):
    """Nothing by default; where a framework keeps stages in a pipeline, to the end of the step, as the word does anywhere."""
    usual = case.laid(zero=3)
    forward, _, step = ways(case)
    assert usual()["step_time"] == forward["step_time"]
    assert usual()["allocated"] == forward["allocated"]
    wanted = step if case.layout.pp > 1 else forward
    kept = usual(fsdp_keeps_stage=1)
    assert kept["step_time"] == wanted["step_time"]
    assert kept["allocated"] == wanted["allocated"]
    for way, found in zip(KEPT, ways(case), strict=True):
        assert case.laid(zero=3, reshard=way)(fsdp_keeps_stage=1)["step_time"] == found["step_time"]


@few
@given(cases(least_dp=2, most_pp=1), st.integers(1, 4))
def test_28_two_to_two_to_three_and_two_again(case, times):
    """DDP 2, ZeRO-1 2, ZeRO-3 3 times as many bytes as weights, a micro-batch; 2 where the backward pass finds them gathered."""
    case = case.on(global_batch=case.layout.dp * case.layout.micro_batch_size * times)
    alike = {
        "gradient_wire_bytes": case()["element_size"],
        "embedding_on_rank": 0,
        "head_on_rank": 0,
        "heaviest_stage": case()["layer_parameters"] * case.workload.model.layers,
    }
    whole = sent(case.laid(zero=0), **alike)["sent_dp"]
    forward, backward, step = (sent(case.laid(zero=3, reshard=way), **alike)["sent_fsdp"] for way in KEPT)
    assert forward == pytest.approx(3 / 2 * times * whole, rel=ROUNDING)
    assert backward == pytest.approx(2 / 2 * times * whole, rel=ROUNDING)
    assert step == pytest.approx(2 / 2 * whole, rel=ROUNDING)


@few
@given(cases(least_dp=2, most_pp=4, most_cp=2))
def test_a_stage_is_held_whole_and_its_gradients_are_not(case):
    """To the backward pass all weights of a stage are there, and the gradients of one layer; to the end of a step both."""
    forward, backward, step = ways(case)
    layer = forward["layer_parameters"]
    for stage, layers in enumerate(forward["stage_layers"]):
        more = (layers - 2) * layer * forward["element_size"]
        assert backward["gathered_weights"][stage] - forward["gathered_weights"][stage] == pytest.approx(more)
        assert step["gathered_weights"][stage] == backward["gathered_weights"][stage]
    assert backward["unsharded_gradients"] == forward["unsharded_gradients"]
    assert max(step["unsharded_gradients"]) == pytest.approx(
        layer * step["gradient_bytes"] * max(step["stage_layers"]) / case.layout.virtual_stages
    )


@given(seconds, seconds, seconds, seconds, st.integers(1, 8), st.fractions(0, 1, max_denominator=8))
def test_micro_batches_that_are_served_share_what_one_waits_for(gather, scatter, forward, backward, m, hidden):
    """Executed micro-batch by micro-batch: the first waits for the gather, the last for the scatter, the others for nothing."""
    plain = {"dp": 8, "weights_sharded": 1, "wire_factor": 1, "hidden_share": hidden, "gather_layer": gather}
    compute = {"forward_compute": forward, "backward_compute": backward, "scatter_layer": scatter}
    found = layers_of(**plain, **compute, backward_gathers=0, served=Fraction(m))
    waits = [gather - hidden * min(gather, forward)] + [Fraction(0)] * (m - 1)
    ends = [Fraction(0)] * (m - 1) + [scatter - hidden * min(scatter, backward)]
    assert m * found["exposed_forward"] == sum(waits)
    assert m * found["exposed_backward"] == sum(ends)


def test_an_embedding_of_its_own_is_gathered_again_behind_a_layer():
    times = {"gather_layer": 3, "scatter_layer": 5, "forward_left": 0, "backward_left": 0}
    plain = {
        "weights_sharded": 1,
        "wire_factor": 1,
        "hidden_share": 1,
        "embedding_size": 2,
        "head_size": 1,
        "served": 1,
    }
    root, apart = (tables_of(**plain, **times, embedding_gathers=gathers) for gathers in (1, 2))
    assert apart["total"] - root["total"] == 2 * 3
    assert apart["exposed"] == root["exposed"] == 2 * (3 + 5) + 3 + 5


def test_hybrid_groups_keep_too():
    """8.03e9 weights on 64 GPUs in groups of 8: half as many gathers on NVLink, as much over the network."""
    case = on("llama-3-8b", "dgx-h100:64", "zero=3 shard=8", 8192, 128)
    forward, backward, step = ways(case)
    alike = {"embedding_on_rank": 0, "head_on_rank": 0, "gradient_wire_bytes": 2}
    bytes_of = [sent(case.laid(reshard=way), **alike) for way in KEPT]
    assert [found["sent_fsdp"] / bytes_of[2]["sent_fsdp"] for found in bytes_of] == pytest.approx([3, 2, 1])
    assert len({found["sent_across"] for found in bytes_of}) == 1
    assert forward["total_fsdp"] > backward["total_fsdp"] > step["total_fsdp"]
    assert forward["total_dp"] == backward["total_dp"] == step["total_dp"] > 0


def test_hosts_are_asked_once_where_weights_are_kept():
    """Weights of a layer come in for the forward pass alone, and once a step where they stay to its end."""
    case = on("llama-3-8b", "dgx-h100:8", "zero=3 recompute=full offload=optimizer+weights", 4096, 32)
    m = case()["micro_batches"]
    forward, backward, step = ways(case)
    fetch, gradient = forward["host_layer_fetch"], forward["host_layer_gradient"]
    assert forward["host_copied_backward"] == pytest.approx(fetch + gradient)
    assert backward["host_copied_backward"] == pytest.approx(gradient)
    assert step["host_copied_forward"] == pytest.approx(fetch / m)
    assert step["host_copied_backward"] == pytest.approx(gradient / m)


def test_gradients_that_each_backward_pass_makes_are_not_there_at_the_loss():
    """One micro-batch: activations and logits, or gradients, never both; with two the sum of the first stays."""
    model = decoder(layers=8, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128, vocabulary=128_256)
    case = on(model, "dgx-h100:8", "zero=3", 8192, 8)
    stay, made = case(), case(gradients_stay=0)
    gradients = stay["stage_gradients"][0]
    for phase in (FORWARD, LOSS, BACKWARD):
        assert stay["memory_use"][0][phase] - made["memory_use"][0][phase] == pytest.approx(gradients)
    assert made["memory_use"][0][3] == stay["memory_use"][0][3]
    assert made["memory_gradients"] == 0 < stay["memory_gradients"]
    assert made["between_steps"] == stay["between_steps"]
    two = replace(case, workload=replace(case.workload, global_batch=16))
    assert two(gradients_stay=0)["allocated"] == two()["allocated"]


def test_tables_apart_leave_the_embedding_and_the_gradient_of_the_head_out_of_the_loss():
    """8,192 tokens, 4 bytes a logit: two of them are gone, 2.1 GB, when the 1.05 GB of the head's gradient come."""
    case = on("llama-3-8b", "dgx-b200:8", "zero=3 recompute=selective", 8192, 8).on(recipe="torchtitan-fsdp2-2025-08")
    apart, root = case(), case(fsdp_tables_apart=0)
    table = 2 * 128_256 * 4096
    assert root["memory_use"][0][LOSS] - apart["memory_use"][0][LOSS] == pytest.approx(2 * table)
    assert root["memory_use"][0][BACKWARD] - apart["memory_use"][0][BACKWARD] == pytest.approx(table)
    assert root["memory_use"][0][FORWARD] == apart["memory_use"][0][FORWARD]
    kept = case.laid(reshard="backward")
    assert kept()["given_up_embedding"][0] == [0] * 4
    few_tokens = case.on(sequence_length=1024)
    left = 2 * (4096 - 1024) * 128_256
    assert few_tokens()["unsharded_head_gradient"][0] == pytest.approx(left)


def test_gradients_that_wait_for_the_end_of_the_step_are_there_at_the_next_loss():
    """8.03e9 weights less embedding and head, 4 bytes each, from the second micro-batch on in every phase but the optimizer's."""
    one, two = (on("llama-3-8b", "dgx-h100:8", "zero=3", 8192, batch) for batch in (8, 16))
    for case, phases in ((one, (BACKWARD,)), (two, (FORWARD, LOSS, BACKWARD))):
        _, backward, step = ways(case)
        waiting = 4 * 32 * step["layer_parameters"]
        for phase in range(4):
            of_layer = backward["unsharded_gradients"][0] if phase == BACKWARD else 0
            more = step["memory_use"][0][phase] - backward["memory_use"][0][phase]
            assert more == pytest.approx(waiting - of_layer if phase in phases else 0)
