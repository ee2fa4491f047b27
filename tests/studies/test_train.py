"""`train`: estimates of given layouts or of the best, whether they fit, what is said of defaults and of broken rules."""

import re
from dataclasses import replace
from math import inf, isnan

import pytest
from hypothesis import given, settings

from costmodel.catalog.entries import Number
from costmodel.errors import InputError
from costmodel.report import Scalar
from costmodel.search.layout import CONTEXTS, parse_layout
from costmodel.search.workload import Workload
from costmodel.studies.estimate import estimate
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, cases, decoder, machine

PROMISED = {
    *("model", "layout", "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s", "mfu", "mfu_causal"),
    *(
        "allocated_bytes",
        "reserved_bytes",
        "device_used_bytes",
        "capacity_bytes",
        "fits",
        "margin_bytes",
        "time",
        "memory",
    ),
}


def quick(models="llama-3-8b", on="dgx-h100:16", **options):
    return train(models, on, **{"sequence_length": 4096, "batch": 64, "catalog": CATALOG} | options)


def said(*arguments, **options):
    with pytest.raises(InputError) as caught:
        quick(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_a_layout_it_is_the_fastest_that_fits():
    best = quick().estimates[0]
    assert best.fits == "yes"
    for layout in ("tp=8", "tp=4 pp=2 mbs=2", "zero=3", "tp=2 zero=3 recompute=selective", "pp=4 v=2"):
        other = quick(layout=layout).estimates[0]
        assert other.fits != "yes" or best.step_time_s <= other.step_time_s


def test_the_layout_printed_gives_the_same_answer():
    first = quick().estimates[0]
    again = quick(layout=str(first.layout)).estimates[0]
    assert again == first


def test_a_layout_may_be_a_record():
    assert quick(layout=parse_layout("tp=8", 16)).estimates == quick(layout="tp=8").estimates


def test_several_models_keep_their_order_and_their_notes():
    answer = train(["llama-3-70b", "7B"], "dgx-h100:512", catalog=CATALOG)
    assert [found.model for found in answer.estimates] == ["llama-3-70b", "7b"]
    assert [record["model"] for record in answer.records()] == ["llama-3-70b", "7b"]
    assert len(answer.notes) == len(answer.results()) == 2
    titles = [table.title for table in answer.tables()]
    assert titles[0] == "Models"
    assert titles.count("Time of a step") == titles.count("Memory of a chip") == 2


@settings(max_examples=settings.default.max_examples // 2)
@given(cases())
def test_an_answer_adds_up(case):
    found = estimate(case.workload, case.layout, CATALOG, 10**12)
    assert sum(found.time.values()) == pytest.approx(found.step_time_s, rel=1e-12)
    assert sum(found.memory.values()) == pytest.approx(found.allocated_bytes, rel=1e-12)
    assert found.step_time_overlapped_s <= found.step_time_s * (1 + 1e-12)
    assert found.step_time_s <= found.step_time_serial_s * (1 + 1e-12)
    tokens = case.workload.step_tokens
    assert (found.steps - 1) * tokens < 10**12 <= found.steps * tokens
    assert found.run_time_s == pytest.approx(found.steps * found.step_time_s, rel=1e-12)
    assert found.chip_time_s == pytest.approx(found.run_time_s * found.chips, rel=1e-12)
    if found.price:
        hours = found.chip_time_s / 3600
        assert found.cost_usd == pytest.approx(hours * found.price.usd_per_chip_hour.value, rel=1e-12)
    else:
        assert isnan(found.cost_usd)


@settings(max_examples=settings.default.max_examples // 4)
@given(cases())
def test_rows_are_flat_and_results_keep_their_promise(case):
    found = estimate(case.workload, case.layout, CATALOG, 10**12)
    result, record = found.result(), found.record()
    assert set(result) >= PROMISED
    assert all(isinstance(value, Scalar | None) for value in record.values())
    for item, seconds in result["time"].items():
        assert record[f"time_{item}_s"] == seconds
    for item, size in result["memory"].items():
        assert record[f"memory_{item}_bytes"] == size
    items = found.items()
    assert sum(row["value"] for row in items if row["kind"] == "time") == pytest.approx(found.step_time_s)
    assert sum(row["value"] for row in items if row["kind"] == "memory") == pytest.approx(found.allocated_bytes)


def with_capacity(size):
    """The same machine with chips of that much memory."""
    where = machine("dgx-h100:8")
    known = where.chip.memory_capacity
    return replace(where, chip=replace(where.chip, memory_capacity=Number(size, "B", known.source, known.confidence)))


def test_it_fits_surely_perhaps_or_not():
    """Surely when all that the device will report fits; not when the tensors and the runtime alone do not."""
    layout = parse_layout("tp=8", 8)

    def fits(size):
        workload = Workload(with_capacity(size), decoder(layers=32), 4096, 8)
        return estimate(workload, layout, CATALOG, 10**9)

    found = fits(1e12)
    context = CATALOG.assumptions("memory-gpu")["context_bytes"].value
    least = found.allocated_bytes + context
    assert found.device_used_bytes > least
    bounds = {
        found.device_used_bytes: "yes",
        found.device_used_bytes - 1: "marginal",
        least: "marginal",
        least - 1: "no",
    }
    assert {size: fits(size).fits for size in bounds} == bounds
    assert fits(found.device_used_bytes).margin_bytes == 0


def test_exit_code_is_one_when_it_surely_does_not_fit():
    assert quick().exit_code == 0
    huge = quick("llama-3.1-405b", layout="tp=8 pp=2 zero=0")
    assert huge.estimates[0].fits == "no"
    assert huge.exit_code == 1
    assert quick(["llama-3-8b", "llama-3.1-405b"]).exit_code == 1


def test_the_largest_that_is_legal_is_shown_where_nothing_fits():
    found = train("llama-3.1-405b", "dgx-h100:8", catalog=CATALOG).estimates[0]
    assert found.fits == "no"
    assert found.layout.recompute == "full"
    assert found.margin_bytes < 0


def test_defaults_are_said():
    notes = train("llama-3-70b", "dgx-h100:512", catalog=CATALOG).notes[0]
    assert "sequences of 8,192 tokens assumed (--seq)" in notes
    assert "a batch of 4,000,000 tokens assumed (--batch)" in notes
    assert "a run of 15,000,000,000,000 tokens assumed (--tokens)" in notes
    assert "batch of 4,000,000 tokens rounded to 512 sequences of 8,192 = 4,194,304 tokens" in notes


def test_nothing_is_assumed_where_everything_is_given():
    assert quick(tokens="1T").notes == ((),)


def test_a_default_sequence_is_no_longer_than_the_model_goes():
    answer = train("gpt3-175b", "dgx-h100:128", catalog=CATALOG)
    assert answer.estimates[0].sequence_length == 2048
    longer = train("gpt3-175b", "dgx-h100:128", sequence_length=4096, catalog=CATALOG)
    assert "gpt3-175b was published for sequences up to 2,048" in longer.notes[0]


def test_tokens_are_rounded_to_what_the_layout_divides_and_counts_are_not():
    rounded = quick(layout="tp=2 pp=4 dp=2 v=2 mbs=2", batch="1M").estimates[0]
    assert rounded.global_batch % (2 * 2 * 4) == 0
    assert abs(rounded.global_batch * 4096 - 10**6) <= 8 * 4096
    assert "dp times the micro-batch size divides the global batch" in said(layout="tp=2 dp=8 mbs=2", batch=250)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"layout": "tp=3", "on": "dgx-h100:24", "batch": 24}, "tp divides the query heads"),
        (
            {"layout": "tp=6", "models": decoder(heads=12, kv_heads=4), "on": "dgx-h100:24", "batch": 24},
            "key-value heads",
        ),
        ({"layout": "pp=4 v=3"}, "pp times v divides the layers, or the layers and two"),
        ({"layout": "mbs=3"}, "dp times the micro-batch size divides the global batch"),
        ({"layout": "tp=2 sp=1", "sequence_length": 4097}, "tp times cp divides the sequence"),
        ({"layout": "pp=2 v=2 schedule=1f1b"}, "others v=1"),
        ({"layout": "pp=2 schedule=dualpipe", "batch": 2}, "the micro-batches fill the pipeline"),
        ({"layout": "schedule=gpipe"}, "schedules other than 1f1b need several stages"),
        ({"layout": "tp=8 pp=2 dp=1 zero=3"}, "zero of 1 or more needs dp or cp of 2 or more"),
    ],
)
def test_a_broken_rule_is_named_with_a_legal_layout_nearby(options, rule):
    message = said(**options)
    assert message.startswith("illegal layout, it breaks the rule")
    assert rule in message
    near = re.search(r'the nearest legal one is "([^"]+)"', message)[1]
    assert quick(**options | {"layout": near}).estimates[0].step_time_s < inf


@pytest.mark.parametrize(
    ("model", "on", "layout", "options"),
    [
        ("gpt-3-175b", "tpu-v7:4x4x8", "tp=2 pp=2 schedule=dualpipev mbs=4", {"sequence_length": 131072}),
        ("qwen2.5-32b", "tpu-v7:4x4x8", "tp=2 cp_type=ulysses schedule=zb-v mbs=3", {"sequence_length": 32768}),
        (
            "7B",
            "tpu-v5p:8x8x8",
            "tp=2 pp=2 cp=8 cp_type=usp schedule=v-min mbs=4",
            {"sequence_length": 32768, "batch": "1M"},
        ),
    ],
)
def test_the_nearest_legal_layout_is_legal_with_the_batch_that_it_gets(model, on, layout, options):
    options = {"batch": None} | options
    near = re.search(r'the nearest legal one is "([^"]+)"', said(model, on, layout=layout, **options))[1]
    assert quick(model, on, layout=near, **options).estimates[0].step_time_s < inf


def test_experts_that_do_not_divide_the_ranks_of_a_slice_are_told_as_a_broken_rule():
    options = {"models": "mixtral-8x7b", "on": "tpu-v4:2x2x4"}
    for placement in ("", " placement=tp:xyz,dp:xyz,pp:z"):
        message = said(**options, layout=f"tp=2 pp=4 dp=2 ep=8{placement}")
        assert "breaks the rule that ep times etp divides tp times cp times dp" in message
        near = re.search(r'the nearest legal one is "([^"]+)"', message)[1]
        assert quick(**options, layout=near).estimates[0].step_time_s < inf


@pytest.mark.parametrize("schedule", ["zb-v", "v-half", "v-min"])
def test_what_waits_for_gradients_of_weights_is_no_more_than_what_is_in_flight(schedule):
    """A heavy last chunk of a folded pipeline has few micro-batches in flight: what is run again of them is no more than all."""
    most, least = (
        quick(layout=f"pp=4 schedule={schedule} first=1 last=25 recompute={again}").estimates[0].memory["activations"]
        for again in ("none", "full")
    )
    assert least <= most


@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_hint_keeps_the_context_parallelism_that_a_search_would_not_try(kind):
    asked, kept = f"tp=2 cp=8 cp_type={kind} mbs=3", f"tp=2 cp=8 cp_type={kind} pp=1 dp=1 v=1 mbs="
    assert kept in said(layout=asked, models="llama-3-70b")


def test_a_group_is_for_interleaving_alone():
    assert "group is for interleaved and interleaved-zb" in said(layout="pp=2 group=4")


def test_where_no_layout_is_legal_it_is_said():
    prime = decoder(layers=7, heads=7, kv_heads=7)
    assert "most break the rule that" in said(prime, batch=1)
    assert "no layout of this model is legal on this machine with 1 sequence" in said(prime, batch=1, layout="tp=16")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"layout": "tp=8 dp=4"}, "not the 16 chips"),
        ({"layout": "nonsense"}, "is not key=value"),
        ({"layout": parse_layout("tp=8", 8)}, "the layout takes 8 chips, the machine has 16"),
        ({"layout": "tp=8 placement=tp-xx"}, "placement"),
        ({"layout": "tp=8 placement=megatorn"}, "did you mean megatron?"),
        ({"layout": "tp=8 placement=domain:tp4.dp2/network:dp2"}, "placement"),
        ({"sequence_length": 0}, "sequence length"),
        ({"sequence_length": "inf"}, "sequence length"),
        ({"sequence_length": 2**25}, "longer than"),
        ({"batch": "1K"}, "less than one sequence"),
        ({"batch": -4}, "batch"),
        ({"tokens": "lots"}, "tokens"),
        ({"dtype": "mxfp8"}, "training precision of h100-sxm 'mxfp8'"),
        (
            {"dtype": "bf16", "on": "dgx-2:16", "layout": "tp=8"},
            "training precision of v100-sxm2 'bf16': did you mean fp16",
        ),
        (
            {"dtype": "fp16", "on": "tpu-v7:4x4x4", "layout": "tp=4"},
            "training precision of tpu-v7 'fp16': did you mean bf16",
        ),
        ({"dtype": "int8"}, "unknown training precision 'int8'"),
        ({"models": "nemotron-h-56b"}, "mamba2 layers"),
        ({"models": "lama-3-8b"}, "llama-3-8b"),
        ({"models": []}, "model"),
        ({"on": "dgx-h200x:8"}, "dgx-h200"),
        ({"on": "dgx-h100:0"}, "dgx-h100"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(options, expected):
    assert expected in said(**options)


def test_a_torus_takes_a_placement_that_is_written_out():
    layout = "tp=4 dp=16 zero=3 placement=x:tp2.dp2/y:tp2.dp2/z:dp4"
    found = train("llama-3-8b", "tpu-v5p:4x4x4", layout=layout, batch=64, catalog=CATALOG).estimates[0]
    assert found.layout.placement == "x:tp2.dp2/y:tp2.dp2/z:dp4"
    assert found.fits == "yes"


@pytest.mark.parametrize(
    ("name", "placement"),
    [("megatron", "tp-dp-pp"), ("torchtitan", "tp-dp-pp"), ("llama3", "tp-pp-dp"), ("jax", "tp-dp-pp")],
)
def test_a_placement_by_name_is_printed_as_the_order_that_it_is(name, placement):
    named = quick(layout=f"tp=4 pp=2 placement={name}").estimates[0]
    assert named.layout.placement == placement
    assert quick(layout=f"tp=4 pp=2 placement={placement}").estimates[0] == named


def test_on_a_torus_a_placement_by_name_is_printed_by_axis():
    found = quick(on="tpu-v5p:4x4x4", layout="tp=2 zero=3 placement=jax-split").estimates[0]
    assert found.layout.placement == "x:tp2.dp2/y:dp4/z:dp4"
    assert "none that are left make tp=2; write placement=jax-split" in said(
        on="tpu-v5p:4x4x4", layout="tp=2 zero=3 placement=jax"
    )


def test_axes_where_they_are_said_to_lie_are_split_by_the_degrees():
    """One split has these degrees; of several the fastest is taken."""
    found = quick(on="tpu-v5p:4x4x8", layout="tp=2 zero=3 placement=tp:x,fsdp:xyz").estimates[0]
    assert found.layout.placement == "x:tp2.dp2/y:dp4/z:dp8"
    several = quick(on="tpu-v5p:4x4x8", layout="tp=4 zero=3 placement=tp:xy,fsdp:xyz").estimates[0]
    each = [
        f"tp=4 zero=3 placement={text}"
        for text in ("x:tp4/y:dp4/z:dp8", "x:tp2.dp2/y:tp2.dp2/z:dp8", "x:dp4/y:tp4/z:dp8")
    ]
    assert several.step_time_s == min(quick(on="tpu-v5p:4x4x8", layout=text).estimates[0].step_time_s for text in each)
    assert "the nearest degrees: tp=4 dp=32" in said(on="tpu-v5p:4x4x8", layout="tp=2 placement=tp:x,fsdp:yz")
    assert "such as placement=tp:x,fsdp:yz" in said(on="tpu-v5p:4x4x8", layout="tp=4 placement=tp:x fsdp:yz")


@pytest.mark.parametrize("on", ["dgx-h100:16", "tpu-v5p:4x4x4", "tpu-v5p:4x4x8"])
def test_the_best_placement_is_at_least_as_fast_as_every_name(on):
    best = quick(on=on, layout="tp=4 pp=2 placement=best")
    assert best.faster == (None,)
    again = quick(on=on, layout=str(best.estimates[0].layout))
    assert again.estimates[0].layout == best.estimates[0].layout
    assert again.estimates[0].time == best.estimates[0].time
    for name in ("megatron", "torchtitan", "llama3", "jax-split"):
        other = quick(on=on, layout=f"tp=4 pp=2 placement={name}").estimates[0]
        assert other.step_time_s >= best.estimates[0].step_time_s * (1 - 1e-9)


def test_a_slice_gets_the_best_placement_when_none_is_named():
    shape = decoder(heads=6, kv_heads=6, ffn_size=3072)
    words = "tp=6 zero=3 sp=0"
    unsaid, best = (
        quick(shape, "tpu-v5p:4x4x12", layout=layout, sequence_length=1020, batch=192).estimates[0]
        for layout in (words, f"{words} placement=best")
    )
    assert (unsaid.layout, unsaid.step_time_s) == (best.layout, best.step_time_s)
    assert "tp3" in unsaid.layout.placement and "tp2" in unsaid.layout.placement


def test_a_slower_placement_is_told():
    """Data parallelism inside a node and tensor parallelism over the network: nobody does, and it is said why."""
    answer = quick(layout="tp=8 placement=dp-tp-pp")
    (found,), (faster,) = answer.estimates, answer.faster
    best = quick(layout="tp=8 placement=best").estimates[0]
    assert (faster.layout, faster.step_time_s) == (best.layout, best.step_time_s)
    longer = 100 * (found.step_time_s / best.step_time_s - 1)
    assert longer > 10
    assert any(f"takes {longer:.1f}% longer than with the best of the same degrees" in note for note in answer.notes[0])
    assert answer.results()[0]["faster_placement"] == {
        "layout": str(best.layout),
        "step_time_s": best.step_time_s,
    }
    assert quick(layout="tp=8").results()[0]["faster_placement"] is None
    assert quick().faster == (None,)


def test_slices_are_joined_by_a_slower_network():
    one = quick("llama-3-8b", "tpu-v5e:16x16", layout="zero=0 mbs=1", batch=256).estimates[0]
    two = quick("llama-3-8b", "tpu-v5e:16x16", slices=2, layout="zero=0 mbs=1", batch=512).estimates[0]
    assert two.on == "tpu-v5e:16x16 x 2 slices"
    assert two.chips == 2 * one.chips
    assert two.communication["dp"] > one.communication["dp"]
    assert two.time["matmul"] == one.time["matmul"]


def test_a_twisted_slice_is_exact_for_all_chips_and_a_bound_for_fewer():
    """FSDP over all chips gains what it had lost to an even division; along an axis that no longer closes it takes longer."""
    for layout, gains in (("zero=3", True), ("tp=4 zero=3 placement=tp:x,fsdp:yz", False)):
        plain, twisted = (
            quick(on=f"tpu-v5p:4x4x8{ending}", layout=layout, batch=128, sequence_length=1024)
            for ending in ("", "_twisted")
        )
        times = [answer.estimates[0].step_time_s for answer in (plain, twisted)]
        assert (times[1] < times[0]) is gains
        assert any("twisted torus" in note for note in twisted.notes[0])
