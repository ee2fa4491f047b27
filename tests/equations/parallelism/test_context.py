"""Context parallelism: volumes worked out by hand, the ring against its execution, the shares of a causal mask counted."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.kernels.attention import Attention
from costmodel.equations.parallelism.context import ContextParallel
from costmodel.search.layout import CONTEXTS
from costmodel.symbolic import compile_math
from costmodel.topology.placements import placements
from tests.equations.model.shapes import one_document
from tests.equations.training.drawn import SWITCHED, TORI, cases, decoder, machine, on
from tests.simulators import context

few = settings(max_examples=settings.default.max_examples // 2)
MIB = 2**20
exchanges = compile_math(ContextParallel.system)
attention = one_document(compile_math(Attention.system))
times = st.fractions(0, 20, max_denominator=8)
RING, CONTIGUOUS, GATHER, ULYSSES, USP = range(5)


def of_70b(layout, where="dgx-h100:8"):
    """One sequence of 8192 tokens of a model with h = 8192 and 8 of 64 heads for keys and values, 16 KiB a token."""
    return on("llama-3-70b", where, f"{layout} dp=1 zero=0", 8192, 1)()


def test_tensor_parallelism_moves_448_mib_a_layer_forward():
    """Two all-reduces of 128 MiB, each 2 x 7/8 of it; with sequence parallelism 4 + 6 halves of one over both passes."""
    hidden = of_70b("tp=8")["hidden_state_bytes"]
    assert hidden == 128 * MIB
    assert 2 * 2 * 7 / 8 * hidden == 448 * MIB
    assert 10 * 7 / 8 * hidden == 1120 * MIB


@pytest.mark.parametrize(("ranks", "mib"), [(8, 28), (4, 24), (2, 16)])
def test_a_ring_passes_keys_and_values_on(ranks, mib):
    """2 x 8 heads x 128 features x 2 bytes of each token that is not the rank's own."""
    found = of_70b(f"cp={ranks}", f"dgx-h100:{ranks}")
    assert (ranks - 1) * found["kv_block"] == mib * MIB
    assert (ranks - 1) / ranks * found["gathered_kv"] == mib * MIB  # a gather receives the same


@pytest.mark.parametrize(("ranks", "mib"), [(8, 31.5), (4, 54), (2, 72), (16, 18.75)])
def test_ulysses_exchanges_heads(ranks, mib):
    """(u - 1)/u of 2 h + 2 h_kv of a rank's tokens; with 16 ranks the 8 key-value heads are copied to 16."""
    found = of_70b(f"cp={ranks} cp_type=ulysses", f"dgx-h100:{ranks}")
    assert (ranks - 1) / ranks * (found["exchanged_in"] + found["exchanged_out"]) == mib * MIB


@pytest.mark.parametrize(("tp", "ranks", "exchanged", "passed"), [(2, 8, 27, 4), (4, 8, 18, 12), (1, 16, 15.75, 2)])
def test_usp_does_both(tp, ranks, exchanged, passed):
    """Groups of 4, 2 and 8 exchange heads, as that many of the 8 are on a rank of tp, which has 1/tp of all heads to move."""
    found = of_70b(f"tp={tp} cp={ranks} cp_type=usp", f"dgx-h100:{tp * ranks}")
    u, r = found["ulysses_ranks"], found["ring_ranks"]
    assert (u, r) == (8 / tp, ranks * tp / 8)
    assert tp * (u - 1) / u * (found["exchanged_in"] + found["exchanged_out"]) == exchanged * MIB
    assert tp * (r - 1) * found["kv_block"] == passed * MIB


@given(st.sampled_from((2, 4, 8, 16, 32)), st.sampled_from((1, 2, 4, 8, 32)))
def test_ulysses_moves_less_than_a_ring_beyond_one_plus_h_over_h_kv_ranks(ranks, kv_heads):
    if kv_heads % ranks:
        return  # copies of heads would be moved too
    found = on(decoder(heads=32, kv_heads=kv_heads), f"dgx-h100:{ranks}", f"cp={ranks} zero=0", 1024, 1)()
    ring = (ranks - 1) * found["kv_block"]
    ulysses = (ranks - 1) / ranks * (found["exchanged_in"] + found["exchanged_out"])
    assert (ulysses < ring) == (ranks > 1 + 32 / kv_heads)


@few
@given(st.integers(1, 6))
def test_the_volume_of_ulysses_falls_with_its_ranks_and_that_of_a_ring_does_not(log_ranks):
    def moved(ranks):
        found = on(decoder(heads=64, kv_heads=64), f"dgx-h100:{ranks}", f"cp={ranks} zero=0", 8192, 1)()
        return found["exchanged_in"] + found["exchanged_out"], ranks * found["kv_block"]

    (few_ulysses, few_ring), (many_ulysses, many_ring) = moved(2 ** (log_ranks - 1)), moved(2**log_ranks)
    assert many_ulysses == few_ulysses / 2
    assert many_ring == few_ring


def ring(ranks, kind, first, later, send, gradient, hidden=Fraction(1)):
    whole = first + (ranks - 1) * later
    return whole, exchanges(
        cp=ranks,
        ring_ranks=ranks if kind in (RING, CONTIGUOUS) else 1,
        cp_type=kind,
        send=send if kind in (RING, CONTIGUOUS) and ranks > 1 else Fraction(0),
        send_gradient=gradient if kind in (RING, CONTIGUOUS) and ranks > 1 else Fraction(0),
        all_gather=Fraction(0),
        reduce_scatter=Fraction(0),
        exchange_in=Fraction(0),
        exchange_out=Fraction(0),
        attention_forward=whole,
        attention_backward=whole,
        first_forward=first,
        first_backward=first,
        hidden_share=hidden,
    )


@given(st.integers(2, 9), times, times, times)
def test_what_shows_of_a_balanced_ring_is_what_its_execution_waits(ranks, work, send, gradient):
    works = [[work] * ranks for _ in range(ranks)]
    whole, found = ring(ranks, RING, work, work, send, gradient)
    assert whole + found["exposed_forward"] == context.forward(works, send)
    assert whole + found["exposed_forward"] == context.forward_running_ahead(works, send)
    assert whole + found["exposed_forward"] == work + (ranks - 1) * max(work, send)
    assert whole + found["exposed_backward"] == context.backward(works, send, gradient)


@given(st.integers(2, 9), times, times, times)
def test_so_it_is_where_each_rank_holds_one_piece(ranks, block, send, gradient):
    """Rank r attends to half of its own block, then to r others, then to nothing."""
    works = [
        [block / 2] + [block if step <= rank else Fraction(0) for step in range(1, ranks)] for rank in range(ranks)
    ]
    whole, found = ring(ranks, CONTIGUOUS, block / 2, block, send, gradient)
    assert whole == ranks * block - block / 2
    assert whole + found["exposed_forward"] == context.forward(works, send)
    assert whole + found["exposed_forward"] == context.forward_running_ahead(works, send)
    assert whole + found["exposed_backward"] == context.backward(works, send, gradient)


@given(st.integers(1, 9), st.sampled_from(range(4)), times, times, times, times, st.fractions(0, 1))
def test_what_shows_is_part_of_what_is_exchanged(ranks, kind, first, later, send, gradient, hidden):
    _, found = ring(ranks, kind, first, later, send, gradient, hidden)
    for way in ("forward", "backward"):
        assert 0 <= found[f"exposed_{way}"] <= found[way]
        assert ranks > 1 or found[way] == 0


def shared(tokens, ranks, kind, window=None):
    return attention(
        sequences=1,
        sequence_length=Fraction(tokens),
        window=window or tokens,
        attention_heads=1,
        head_size=128,
        half_peak=1e15,
        half_share=0.5,
        misalignment_slope=0,
        short_vector_factor=1,
        attention_kernel=0,
        attention_block=1,
        attention_head_multiple=1,
        score_traffic_forward=6,
        score_traffic_backward=11,
        score_dropout_traffic=0,
        attention_share=0.5,
        exponential_rate=4e12,
        attention_backward_factor=1.5,
        launch_gap=1e-6,
        element_size=2,
        memory_bandwidth=3e12,
        memory_share=0.9,
        cp=ranks,
        ring_ranks=ranks if kind in (RING, CONTIGUOUS) else 1,
        cp_type=kind,
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_every_rank_and_step_of_a_zigzag_has_the_same_pairs(ranks):
    tokens = 2 * ranks * 3
    counted = context.pairs(context.zigzag(ranks, tokens), tokens)
    found = shared(tokens, ranks, RING)
    assert {pairs for by_step in counted for pairs in by_step} == {found["first_pairs"]}
    assert {sum(by_step) for by_step in counted} == {found["rank_pairs"]}
    assert found["kernels"] == ranks


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 30))
def test_the_last_rank_has_most_where_each_holds_one_piece(ranks, piece, window):
    tokens = ranks * piece
    counted = context.pairs(context.contiguous(ranks, tokens), window)
    found = shared(tokens, ranks, CONTIGUOUS, window)
    assert max(sum(by_step) for by_step in counted) == sum(counted[-1]) == found["rank_pairs"]
    assert counted[-1][0] == found["first_pairs"]
    if window >= tokens:  # 2 - 1/n times the mean
        assert found["rank_pairs"] == found["causal_pairs"] / ranks * (2 - Fraction(1, ranks))


@few
@given(cases(most_cp=8, least_cp=2, most_tp=4, most_pp=4))
def test_tokens_are_shared_and_so_is_what_is_kept_of_them(case):
    layout = case.layout
    found = case()
    alone = case.laid(cp=1, cp_type=CONTEXTS[0], dp=layout.dp * layout.cp, placement="tp-dp-pp")()
    assert found["legal"] == 1
    assert found["tokens"] * layout.cp == alone["tokens"]
    assert found["step_tokens"] == case.workload.global_batch * case.workload.sequence_length
    copies = found["copied_keys"] * {"attention": 0, "selective": 1, "full": 0}.get(layout.recompute, 2)
    assert (found["kept_layer"] - copies) * layout.cp == pytest.approx(alone["kept_layer"], rel=1e-12)
    assert found["stage_weights"] == alone["stage_weights"]  # ZeRO shares over both groups together
    assert found["stage_optimizer"] == alone["stage_optimizer"]
    assert found["time_optimizer"] == alone["time_optimizer"]


@few
@given(cases(), st.sampled_from(CONTEXTS))
def test_one_rank_is_the_same_by_every_way(case, kind):
    plain, other = case(), case.laid(cp_type=kind)()
    assert plain["time_cp"] == plain["total_cp"] == 0
    differing = {name for name in plain if plain[name] != other[name]}
    assert differing <= {"cp_type", "legal", "rule_context_type", "rule_context_length"}


@few
@given(cases(most_cp=8, least_cp=2, most_tp=4, most_pp=4))
def test_balance_never_costs_and_a_sharp_ring_is_no_slower_than_all_its_messages(case):
    ways = {kind: case.laid(cp_type=kind)() for kind in CONTEXTS}
    ways = {kind: found for kind, found in ways.items() if found["legal"]}
    assert ways["ring"]["time_attention"] <= ways["ring-contiguous"]["time_attention"] * (1 + 1e-12)
    for found in ways.values():
        assert 0 <= found["time_cp"] <= found["total_cp"] * (1 + 1e-12)
    assert ways["ring"]["total_cp"] == ways["ring-contiguous"]["total_cp"]


@few
@given(st.sampled_from((*SWITCHED, *TORI)), st.randoms(use_true_random=False))
def test_gradients_are_summed_over_both_groups_as_over_one(on_machine, random):
    """A placement with cp beside dp exchanges gradients as one with dp in the place of both."""
    table = placements(machine(on_machine), limits={"tp": 8, "pp": 8, "cp": 16})
    row = random.randrange(len(table))
    degrees = {axis: int(table.columns[axis][row]) for axis in ("tp", "cp", "dp", "pp")}
    split = table.placement(row)
    parts = []
    for name, factors in split.parts:
        together: dict[str, int] = {}
        for axis, size in factors:
            merged = "dp" if axis == "cp" else axis
            together[merged] = together.get(merged, 1) * size
        parts.append((name, tuple(together.items())))
    joined = replace(split, parts=tuple(parts))
    words = f"tp={degrees['tp']} pp={degrees['pp']}"
    model = decoder(layers=8, heads=64, kv_heads=64)
    apart = on(model, on_machine, f"{words} cp={degrees['cp']} placement={split}", 4096, 4096)()
    as_one = on(model, on_machine, f"{words} placement={joined}", 4096, 4096)()
    for quantity in (
        "weights_of_layer_all_gather",
        "gradients_of_layer_reduce_scatter",
        "gradients_of_stage_all_reduce",
    ):
        assert apart[quantity] == pytest.approx(as_one[quantity], rel=1e-12)


@pytest.mark.parametrize(
    ("where", "both", "heads", "blocks"),
    [
        ("dgx-h100:64", "domain:cp8/network:cp2.dp4", "domain:cp8/network:dp8", "domain:dp8/network:cp2.dp4"),
        ("tpu-v5p:4x4x4", "x:cp4/y:cp4.dp1/z:dp4", "x:cp4/y:cp2.dp2/z:dp4", "x:dp4/y:dp2.cp2/z:dp4"),
        ("tpu-v5p:8x4x4", "x:cp8/y:cp2.dp2/z:dp4", "x:cp8/y:dp4/z:dp4", "x:dp8/y:cp2.dp2/z:dp4"),
    ],
)
def test_the_inner_ranks_exchange_heads_and_their_groups_form_the_ring(where, both, heads, blocks):
    """Each exchange takes what it takes where it is the only one, of the same tokens on a rank."""
    model = decoder(heads=32, kv_heads=8, layers=8)
    usp = on(model, where, f"cp=16 cp_type=usp placement={both}", 16384, 64)()
    ulysses = on(model, where, f"cp=8 cp_type=ulysses placement={heads}", 8192, 64)()
    ring = on(model, where, f"cp=2 cp_type=ring placement={blocks}", 2048, 64)()
    assert (usp["ulysses_ranks"], usp["ring_ranks"]) == (8, 2)
    assert usp["tokens"] == ulysses["tokens"] == ring["tokens"]
    for exchange in ("heads_in_all_to_all", "heads_out_all_to_all"):
        assert 0 < usp[exchange] == pytest.approx(ulysses[exchange], rel=1e-12)
    for exchange in ("kv_block_send_recv", "kv_gradient_block_send_recv"):
        assert 0 < usp[exchange] == pytest.approx(ring[exchange], rel=1e-12)
    assert usp["time_cp"] > 0 and usp["rule_context_type"] == usp["rule_context_heads"] == 1


def test_ranks_that_40_heads_can_be_exchanged_among():
    """8 key-value heads: split over up to 8 ranks, or five copies of each over 40; asked of verl as issue 1226."""
    model = decoder(heads=40, kv_heads=8, head_size=128)

    def found(ranks):
        return on(model, "dgx-h100:120", f"cp={ranks} cp_type=ulysses zero=0", 65_520, 60)()

    assert [ranks for ranks in range(2, 41) if 120 % ranks == 0 and found(ranks)["legal"]] == [2, 4, 8, 40]
    assert found(40)["exchanged_kv_heads"] / 8 == 5
