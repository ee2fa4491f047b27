"""Modules by the names of Megatron-core, and its two methods: bytes worked out by hand, work, traffic, and laws over sets of modules."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.search.recomputation import MODULES, RECOMPUTE, WITHIN, WORDS, recomputation
from tests.equations.training.drawn import cases, decoder, mixture, on
from tests.laws.test_training_laws import at_most, few, no_slower


def per_token(model, layout, sequence_length=2048, **changes):
    found = on(model, "dgx-h100:8", layout, sequence_length, 64)(**changes)
    return found["kept_layer"] / found["tokens"]


def dropped(model, layout, modules, **changes):
    """Bytes of a token that the average layer no longer keeps."""
    none = per_token(model, f"{layout} recompute=none", **changes)
    return none - per_token(model, f"{layout} recompute={modules}", **changes)


@pytest.mark.parametrize(
    ("model", "layout", "modules", "expected"),
    [
        # Llama 3 8B: h 4096, f 14336, 32 heads; the feed-forward keeps gate, up and their product
        ("llama-3-8b", "", "mlp", 6 * 14336),
        ("llama-3-8b", "tp=8 sp=1", "mlp", 6 * 14336 / 8),
        ("llama-3-8b", "", "core_attn+mlp", 4 * 32 + 6 * 14336),
        ("llama-3-8b", "", "layernorm+mlp", 4 * 4096 + 6 * 14336),
        # the activation of a dense feed-forward is within it
        ("llama-3-8b", "", "moe_act+mlp", 6 * 14336),
        ("llama-3-8b", "", "mlp/4", 6 * 14336 / 4),
        ("gpt3-175b", "", "mlp", 16 * 12288),
        # DeepSeek-V3: 128 heads of 192 features in keys and queries and 128 in values come up from latents
        ("deepseek-v3", "", "mla_up_proj", 2 * 128 * (192 + 192 + 128)),
        ("deepseek-v3", "tp=8 sp=1", "mla_up_proj", 2 * 16 * (192 + 192 + 128)),
        ("deepseek-v3", "", "mla_up_proj+core_attn", 2 * 128 * 512 + 4 * 128),
        # 58 layers of 61 have one shared expert of 2048 features, the others a feed-forward of 18432
        ("deepseek-v3", "", "shared_experts", 6 * 2048 * 58 / 61),
        ("deepseek-v3", "tp=8 sp=1", "shared_experts", 6 * 2048 * 58 / 61 / 8),
        ("deepseek-v3", "", "mlp", 6 * 18432 * 3 / 61),
    ],
)
def test_bytes_that_a_module_no_longer_keeps_of_a_token(model, layout, modules, expected):
    assert dropped(model, layout, modules) == pytest.approx(expected, rel=1e-9)


def test_a_layer_of_experts_keeps_its_input_alone():
    """Eight rows of a token go to experts: rows, gate, up and product, router, and the shared expert; and all of it goes."""
    found = on("deepseek-v3", "dgx-h100:8", "recompute=moe", 2048, 64)()
    rows = found["rows_on_rank"] / found["tokens"]
    copies, router = (
        on("deepseek-v3", "dgx-h100:8", "", 2048, 64).inputs[n] for n in ("fused_row_copies", "router_bytes")
    )
    routed = rows * 2 * (copies * 7168 + 3 * 2048) + router * 256
    assert dropped("deepseek-v3", "", "moe") == pytest.approx(58 / 61 * (routed + 6 * 2048), rel=1e-9)
    products = dropped("deepseek-v3", "", "moe_act")
    assert products == pytest.approx((3 * 18432 + 58 * 2048 + 58 * rows * 2048) * 2 / 61, rel=1e-9)
    apart = dropped("deepseek-v3", "", "mlp+moe_act")
    assert apart == pytest.approx(dropped("deepseek-v3", "", "mlp") + products - 3 / 61 * 2 * 18432, rel=1e-9)


def test_modules_of_feed_forward_and_attention_are_not_run_again_together():
    """The backward pass of a layer is done with its feed-forward when it comes to its attention."""
    case = on("deepseek-v3", "dgx-h100:8", "", 2048, 64)
    both, up, mlp = (case.laid(recompute=modules)() for modules in ("mla_up_proj+moe", "mla_up_proj", "moe"))
    assert both["recomputed_layer"] == pytest.approx(max(up["recomputed_layer"], mlp["recomputed_layer"]), rel=1e-9)
    light = case.laid(recompute="light")()
    assert light["recomputed_layer"] == light["whole_layer"] - light["kept_layer"]


def test_a_feed_forward_run_again_repeats_its_products_and_its_gather():
    """Two of three products of 14336 features, and one of the two blocks that tensor-parallel ranks share."""
    case = on("llama-3-8b", "dgx-h100:8", "tp=8 sp=1 mbs=4", 4096, 64)
    none, again, full = (case.laid(recompute=mode)() for mode in ("none", "mlp", "full"))
    tokens = none["step_tokens"]
    assert again["hardware_flops"] - none["hardware_flops"] == pytest.approx(
        tokens * 32 * 2 * 3 * 4096 * 14336, rel=1e-9
    )
    assert again["repeated_tp"] == 1 / 2 == full["repeated_tp"] / 2
    assert again["repeated_cp"] == 0
    more = (again["total_tp"] - none["total_tp"]) / (full["total_tp"] - none["total_tp"])
    assert more == pytest.approx(1 / 2, rel=1e-9)
    assert again["recomputed_compute"] < again["forward_compute"]


def test_a_layer_of_experts_run_again_repeats_its_exchanges_and_shared_experts_theirs():
    case = on("deepseek-v3", "dgx-h100:64", "tp=2 ep=32 dp=32", 4096, 64)
    none, moe, shared = (case.laid(recompute=mode)() for mode in ("none", "moe", "shared_experts"))
    assert (moe["repeated_ep"], shared["repeated_ep"]) == (1, 0)
    assert moe["repeated_tp"] == shared["repeated_tp"] == pytest.approx(58 / 61 / 2, rel=1e-9)
    exchanged = none["layer_passes"] * none["ep_forward"]
    assert moe["total_ep"] - none["total_ep"] == pytest.approx(exchanged, rel=1e-9)
    assert shared["total_ep"] == none["total_ep"]
    tokens, per_expert = none["step_tokens"], 3 * 7168 * 2048
    work = {"shared": 2 * 58 * per_expert, "moe": 2 * 58 * (9 * per_expert + 256 * 7168)}
    for found, rerun in ((shared, work["shared"]), (moe, work["moe"])):
        assert found["hardware_flops"] - none["hardware_flops"] == pytest.approx(tokens * rerun, rel=1e-9)


def test_the_way_up_from_latents_is_run_again_as_two_products():
    case = on("deepseek-v3", "dgx-h100:8", "", 4096, 64)
    none, again = (case.laid(recompute=mode)() for mode in ("none", "mla_up_proj"))
    up = 1536 * 128 * 192 + 512 * 128 * (128 + 128)
    rerun = again["hardware_flops"] - none["hardware_flops"]
    assert rerun == pytest.approx(none["step_tokens"] * 61 * 2 * up, rel=1e-9)
    assert 0 < again["recomputed_compute"] < none["attention_forward"] + none["matmul_forward"]


@pytest.mark.parametrize(
    ("model", "layout", "modules", "legal"),
    [
        ("llama-3-8b", "", "mla_up_proj", 0),
        ("llama-3-8b", "", "moe", 0),
        ("llama-3-8b", "", "shared_experts", 0),
        ("llama-3-8b", "", "core_attn+layernorm+moe_act+mlp", 1),
        ("mixtral-8x7b", "", "moe", 1),
        ("mixtral-8x7b", "", "mlp", 0),
        ("mixtral-8x7b", "", "shared_experts", 0),
        ("deepseek-v3", "ep=8", "mla_up_proj+mlp+shared_experts+moe_act", 1),
        ("deepseek-v3", "ep=8 ep_overlap=shared", "shared_experts", 0),
        ("deepseek-v3", "ep=8 ep_overlap=shared", "moe", 1),
    ],
)
def test_what_is_run_again_has_to_be_there(model, layout, modules, legal):
    found = on(model, "dgx-h100:8", f"{layout} recompute={modules}", 4096, 64)()
    assert (found["rule_recompute"], found["legal"]) == (legal, legal)


def sets(whole):
    """Sets of modules that a model of this kind has, none within another."""
    return st.sets(st.sampled_from(whole)).filter(lambda s: not any({a, b} <= s for a, b in WITHIN))


def word(modules):
    return str(recomputation("+".join(modules) or "none"))


@few
@given(cases(most_cp=4), sets(("core_attn", "layernorm", "moe_act", "mlp")), st.data())
def test_more_modules_keep_no_more_and_take_no_less_time(case, modules, data):
    fewer = data.draw(st.sets(st.sampled_from(sorted(modules)))) if modules else set()
    none, less, more, full = (case.laid(recompute=mode)() for mode in ("none", word(fewer), word(modules), "full"))
    for one, other in ((none, less), (less, more)):
        assert at_most(other["kept_layer"], one["kept_layer"])
        assert at_most(other["allocated"], one["allocated"])
        assert no_slower(one, other)
        assert at_most(one["hardware_flops"], other["hardware_flops"])
    assert at_most(full["kept_layer"], more["kept_layer"])
    assert at_most(more["hardware_flops"], full["hardware_flops"])
    for what in ("repeated_tp", "repeated_cp"):
        assert more[what] <= full[what]


EXPERTS = ("core_attn", "layernorm", "moe_act", "mlp", "moe", "shared_experts")


@few
@given(
    sets(EXPERTS), st.data(), st.sampled_from(("tp=1 ep=8", "tp=2 sp=1 ep=4", "pp=2 ep=2 v=2", "pp=4 schedule=zb-h1"))
)
def test_more_modules_of_experts_keep_no_more_and_take_no_less_time(modules, data, layout):
    model = mixture(shared=1, first_layer=2, layers=8)
    case = on(model, "dgx-h100:8", f"{layout} mbs=2", 1024, 64)
    fewer = data.draw(st.sets(st.sampled_from(sorted(modules)))) if modules else set()
    less, more = (case.laid(recompute=word(some))() for some in (fewer, modules))
    assert less["legal"] == more["legal"] == 1
    assert at_most(more["kept_layer"], less["kept_layer"])
    assert at_most(more["allocated"], less["allocated"])
    assert no_slower(less, more)
    assert at_most(less["hardware_flops"], more["hardware_flops"])
    assert less["repeated_ep"] <= more["repeated_ep"]


def test_modules_add_up():
    """What modules that share nothing drop and run again is the sum over them."""
    case = on("deepseek-v3", "dgx-h100:8", "tp=2 ep=8 dp=4", 4096, 64)
    none = case.laid(recompute="none")()
    apart = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe")
    alone = [case.laid(recompute=word([module]))() for module in apart]
    together = case.laid(recompute=word(apart))()
    for what in ("kept_layer", "recomputed_compute", "hardware_flops", "repeated_tp", "repeated_ep", "repeated_cp"):
        sums = sum(found[what] - none[what] for found in alone)
        assert together[what] - none[what] == pytest.approx(sums, rel=1e-9)


def test_words_are_sets_of_modules_and_sets_print_as_words():
    for said, modules in WORDS.items():
        if modules:
            assert str(recomputation("+".join(reversed(modules)))) == said
    assert word(MODULES[3:5]) == "mla_up_proj+mlp"
    assert str(recomputation("full-uniform-1")) == "full"
    assert [str(recomputation(said)) for said in RECOMPUTE] == list(RECOMPUTE)


# Whole layers by a method


@few
@given(cases(), st.integers(1, 5))
def test_uniform_keeps_less_the_more_layers_it_takes_and_runs_the_same_again(case, few_layers):
    full = case.laid(recompute="full")()
    found = [case.laid(recompute=f"full-uniform-{n}")() for n in (few_layers, 2 * few_layers)]
    for one in found:
        assert one["step_time"] == full["step_time"]
        assert one["hardware_flops"] == full["hardware_flops"]
    one, two = found
    assert at_most(two["kept_layer"], one["kept_layer"])
    assert at_most(one["kept_layer"], full["kept_layer"])
    assert at_most(one["recomputed_layer"], two["recomputed_layer"])
    assert at_most(full["recomputed_layer"], one["recomputed_layer"])


@few
@given(cases(), st.integers(1, 6))
def test_blocks_lie_between_none_and_full(case, layers):
    none, full, less, more = (
        case.laid(recompute=mode)() for mode in ("none", "full", f"full-block-{layers}", f"full-block-{layers + 1}")
    )
    for one, other in ((none, less), (less, more), (more, full)):
        assert at_most(other["kept_layer"], one["kept_layer"])
        assert at_most(one["hardware_flops"], other["hardware_flops"])
        assert at_most(one["step_time"], other["step_time"])
    chunk = max(less["stage_layers"]) / case.layout.virtual_stages
    if layers >= chunk:
        assert less["allocated"] == pytest.approx(full["allocated"], rel=1e-9)
        assert less["step_time"] == pytest.approx(full["step_time"], rel=1e-9)


def test_inputs_and_layers_of_stages_by_method():
    """24 layers on 4 stages of 2 chunks: 3 layers a chunk; uniform 2 keeps two inputs of it, block 1 runs one layer of it again."""
    model = decoder(layers=24)
    case = on(model, "dgx-h100:8", "pp=4 v=2 mbs=1", 1024, 64)
    none, uniform, block = (case.laid(recompute=mode)() for mode in ("none", "full-uniform-2", "full-block-1"))
    whole, kept_input = none["whole_layer"], none["layer_input"]
    assert uniform["stage_inputs"] == [4, 4, 4]
    assert block["stage_rerun"] == [2, 2, 2]
    for found, of_stage in ((uniform, 4 * kept_input), (block, 2 * kept_input + 4 * whole)):
        for stage in range(3):
            kept = found["stage_activations"][stage][0] / found["in_flight"][stage]
            assert kept == pytest.approx(of_stage, rel=1e-9)
        assert found["kept_layer"] == pytest.approx(of_stage / 6, rel=1e-9)
    assert uniform["recomputed_layer"] == 2 * whole - kept_input
    assert block["recomputed_layer"] == whole - kept_input
    share = (block["hardware_flops"] - none["hardware_flops"]) / (uniform["hardware_flops"] - none["hardware_flops"])
    assert share == pytest.approx(1 / 3, rel=1e-9)


def test_unequal_stages_run_the_same_number_of_layers_again():
    """22 layers, 4 at either end: the first 4 of every stage run again, so the ends keep inputs alone."""
    case = on(decoder(layers=22), "dgx-h100:8", "pp=4 first=4 last=4 recompute=full-block-4", 1024, 64)
    found = case()
    assert found["stage_layers"] == [4, 7, 4]
    assert found["stage_rerun"] == [4, 4, 4]
    kept = [found["stage_activations"][stage][0] / found["in_flight"][stage] for stage in range(3)]
    assert kept[0] == pytest.approx(4 * found["layer_input"], rel=1e-9)
    assert kept[1] == pytest.approx(4 * found["layer_input"] + 3 * found["whole_layer"], rel=1e-9)


@pytest.mark.parametrize("layers", [4, 16, 36, 100])
def test_the_square_root_of_the_layers_is_best_for_uniform(layers):
    """L / N inputs i and N whole layers w are fewest at N = sqrt(L i / w), where they take 2 sqrt(L i w) (Chen et al. 2016)."""
    case = on(decoder(layers=layers), "dgx-h100:8", "", 1024, 64)
    found = {n: case.laid(recompute=f"full-uniform-{n}")() for n in range(1, layers + 1)}
    whole, kept_input = found[1]["whole_layer"], found[1]["layer_input"]
    sizes = {n: one["stage_activations"][0][2] + one["recomputed_layer"] for n, one in found.items()}
    assert sizes == {n: ceil(layers / n) * kept_input + n * whole - kept_input for n in found}
    bound = 2 * (layers * kept_input * whole) ** 0.5
    assert bound - kept_input <= min(sizes.values()) <= bound + whole
    best = (layers * kept_input / whole) ** 0.5
    assert best / 2 <= min(sizes, key=sizes.get) <= 2 * best + 1


def test_all_modules_leave_the_projections_to_full():
    """What is kept beside them: inputs of norms, queries, keys, values and the output; what full runs again besides: projections."""
    case = on("llama-3-8b", "dgx-h100:8", "", 2048, 64)
    every, full = (case.laid(recompute=mode)() for mode in ("core_attn+layernorm+mlp", "full"))
    assert every["kept_layer"] / every["tokens"] == 4 * 4096 + 4 * 4096 + 4 * 1024
    projections = 32 * 2 * 4096 * (2 * 4096 + 2 * 1024)
    rest = full["hardware_flops"] - every["hardware_flops"]
    assert rest == pytest.approx(every["step_tokens"] * projections, rel=1e-9)
