"""Data parallelism: how much of its traffic shows, against two streams executed piece by piece, and published volumes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.data import FullySharded, GradientSync, ShardedTables
from costmodel.symbolic import compile_math

sharded = compile_math(FullySharded.system)
sync = compile_math(GradientSync.system)
tables = compile_math(ShardedTables.system)
seconds = st.fractions(0, 10, max_denominator=8)
shares = st.fractions(0, 1, max_denominator=8)
ROOT = {"wire_factor": 1, "embedding_gathers": 1, "served": Fraction(1)}
"""Embedding and head in one group, which each micro-batch gathers."""
ZERO = {
    0: {"optimizer_sharded": 0, "gradients_sharded": 0, "weights_sharded": 0},
    1: {"optimizer_sharded": 1, "gradients_sharded": 0, "weights_sharded": 0},
    2: {"optimizer_sharded": 1, "gradients_sharded": 1, "weights_sharded": 0},
    3: {"optimizer_sharded": 1, "gradients_sharded": 1, "weights_sharded": 1},
}


def fsdp(gather, scatter, forward, backward, **changes):
    plain = {
        "dp": 8,
        "weights_sharded": 1,
        "wire_factor": 1,
        "hidden_share": 1,
        "backward_gathers": 1,
        "served": Fraction(1),
    }
    times = {"gather_layer": gather, "scatter_layer": scatter, "forward_compute": forward, "backward_compute": backward}
    return sharded(**plain | times | changes)


def gradients(zero, micro_batches=1, *, forward=Fraction(0), backward=Fraction(0), **changes):
    """All-gather and reduce-scatter of 1 s, all-reduce of 2 s."""
    times = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1, "across": 0}
    compute = {"forward_compute": forward, "backward_compute": backward, "last_backward_compute": backward}
    plain = {"dp": 8, "pp": 1, "virtual_stages": 1, "micro_batches": micro_batches, "wire_factor": 1, "hidden_share": 1}
    return sync(**ZERO[zero] | times | compute | plain | changes)


def streams(computing, communicating):
    """When the last layer is done: layers one after the other, each as soon as its weights have come, which come one after
    the other too."""
    arrived, computed = Fraction(0), Fraction(0)
    for compute, message in zip(computing, communicating, strict=True):
        arrived += message
        computed = max(computed, arrived) + compute
    return computed


@given(seconds, seconds, st.integers(2, 40))
def test_a_long_row_of_layers_hides_what_fits_behind_the_layer_before(gather, compute, layers):
    """Per layer max(compute, gather), the first gather shows: executed and in closed form."""
    executed = streams([compute] * layers, [gather] * layers)
    shown = fsdp(gather, Fraction(0), compute, Fraction(1))["exposed_forward"]
    assert executed == layers * (compute + shown) + min(gather, compute)


@given(seconds, seconds, seconds, seconds, shares)
def test_what_shows_lies_between_nothing_hidden_and_all_that_fits(gather, scatter, forward, backward, hidden):
    found = fsdp(gather, scatter, forward, backward, hidden_share=hidden)
    for way, compute in (("forward", forward), ("backward", backward)):
        whole, shown = found[way], found[f"exposed_{way}"]
        assert max(0, whole - compute) <= shown <= whole
    best, worst = (fsdp(gather, scatter, forward, backward, hidden_share=share) for share in (1, 0))
    assert best["exposed_backward"] == max(0, gather + scatter - backward)
    assert worst["exposed_backward"] == gather + scatter


def test_fsdp_moves_half_as_much_again_as_ddp():
    """Two gathers and a scatter against one all-reduce of the same bytes: 3 (n-1)/n against 2 (n-1)/n."""
    found = fsdp(1, 1, 0, 0)
    assert (found["forward"] + found["backward"]) / gradients(0)["gradient"] == pytest.approx(1.5)


@pytest.mark.parametrize(("zero", "gradient", "weight"), [(0, 2, 0), (1, 1, 1), (2, 4, 1), (3, 0, 0)])
def test_traffic_of_four_micro_batches(zero, gradient, weight):
    """ZeRO-2 keeps no whole gradient and scatters each time; ZeRO-3's traffic is counted with its layers."""
    found = gradients(zero, 4)
    assert (found["gradient"], found["weight"]) == (gradient, weight)
    assert (found["exposed_gradient"], found["exposed_weight"]) == (gradient, weight)


@given(st.integers(0, 2), st.integers(1, 8), seconds, seconds, shares)
def test_gradients_hide_behind_one_backward_pass_each(zero, micro_batches, forward, backward, hidden):
    found = gradients(zero, micro_batches, forward=forward, backward=backward, hidden_share=hidden)
    reductions = micro_batches if zero == 2 else 1
    assert found["gradient"] - found["exposed_gradient"] == hidden * reductions * min(2 if zero == 0 else 1, backward)
    assert found["weight"] - found["exposed_weight"] == hidden * min(1 if zero else 0, forward)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 6), seconds, seconds)
def test_chunks_reduce_while_others_are_computed(p, v, buckets, reduction, backward):
    """One stream, bucket after bucket, each as soon as its gradient is there: chunk j is done p passes before chunk j - 1."""
    chunk, one_pass = reduction / v, backward / v
    done = -p * v * one_pass
    for passes_left in reversed(range(0, p * v, p)):
        for bucket in range(1, buckets + 1):
            ready = -(passes_left + 1 - Fraction(bucket, buckets)) * one_pass
            done = max(done, ready) + chunk / buckets
    found = gradients(1, backward=backward, pp=p, virtual_stages=v, reduce_scatter=reduction)
    late = done - found["exposed_gradient"]
    assert 0 <= late <= min(chunk, one_pass) / buckets


@given(st.integers(1, 8), st.integers(1, 4), seconds, seconds)
def test_weights_are_gathered_as_gradients_are_reduced(p, v, traffic, compute):
    """The same run backwards."""
    chunks = {"pp": p, "virtual_stages": v, "reduce_scatter": traffic, "all_gather": traffic}
    found = gradients(1, forward=compute, backward=compute, **chunks)
    assert found["exposed_weight"] == found["exposed_gradient"]


def test_zero_2_has_one_pass_of_a_chunk_for_each_of_its_reductions():
    one, more = (gradients(2, 8, backward=Fraction(1, 2), pp=4, virtual_stages=v)["exposed_gradient"] for v in (1, 4))
    assert one == more == 4


@given(seconds, seconds, seconds, seconds, shares)
def test_tables_of_fsdp_show_but_for_what_the_head_hides(gather, scatter, forward, backward, hidden):
    sizes = {"embedding_size": 2, "head_size": 3, "hidden_share": hidden}
    times = {"gather_layer": gather, "scatter_layer": scatter, "forward_left": forward, "backward_left": backward}
    found = tables(weights_sharded=1, **ROOT, **sizes, **times)
    assert found["total"] == 5 * (gather + scatter)
    assert found["total"] - found["exposed"] == hidden * (min(3 * gather, forward) + min(3 * scatter, backward))
    assert tables(weights_sharded=0, **ROOT, **sizes, **times)["total"] == 0


@given(seconds, seconds, st.integers(1, 20))
def test_where_gathers_are_slower_than_layers_all_compute_hides_traffic_once(gather, compute, layers):
    """Embedding, layers and a head like a layer, forward, executed: layers whose own traffic fills them hide nothing of the head's."""
    if gather < compute:
        gather, compute = compute, gather
    sizes = {"embedding_size": 1, "head_size": 1, "weights_sharded": 1, "hidden_share": 1, **ROOT}
    left = {"forward_left": max(0, compute - gather), "backward_left": 0}
    shown = tables(gather_layer=gather, scatter_layer=0, **sizes, **left)["exposed"]
    layer = fsdp(gather, Fraction(0), compute, Fraction(1))["exposed_forward"]
    executed_forward = streams([Fraction(0)] + [compute] * layers + [Fraction(0)], [gather] * (layers + 2))
    assert layers * (compute + layer) + shown == executed_forward


def test_a_wire_factor_stretches_all_of_it():
    plain, stretched = gradients(1), gradients(1, wire_factor=3)
    assert (stretched["gradient"], stretched["weight"]) == (3 * plain["gradient"], 3 * plain["weight"])
    assert fsdp(1, 1, 0, 0, wire_factor=3)["backward"] == 6


def executed(reduction, backward, p, v, buckets=400):
    """What shows of one stage's reduction: chunks finish p passes apart, and a bucket leaves as soon as it is full."""
    sent = Fraction(0)
    for chunk in range(v):
        start = (chunk + 1) * p * backward / v - backward / v
        for bucket in range(1, buckets + 1):
            ready = start + Fraction(bucket, buckets) * backward / v
            sent = max(sent, ready) + reduction / (v * buckets)
    return sent - p * backward


@given(
    st.fractions(0, 40, max_denominator=4), st.fractions(1, 4, max_denominator=4), st.integers(1, 6), st.integers(1, 4)
)
def test_reductions_of_chunks_are_executed_behind_the_chunks_that_follow(reduction, backward, p, v):
    """In the limit of small buckets; the last of them always shows."""
    found = gradients(0, p, backward=backward, pp=p, virtual_stages=v, all_reduce=reduction)
    shown = executed(reduction, backward, p, v)
    assert found["exposed_gradient"] <= shown <= found["exposed_gradient"] + (reduction + backward) / 400


@pytest.mark.parametrize(("zero", "micro_batches", "total"), [(0, 4, 2), (1, 4, 4), (2, 4, 7), (3, 4, 3)])
def test_groups_that_share_sum_their_shares_once_a_step(zero, micro_batches, total):
    """3 s for the sum across groups beside the reductions; those of FSDP are counted with its layers."""
    assert gradients(zero, micro_batches, across=3)["gradient"] == total
