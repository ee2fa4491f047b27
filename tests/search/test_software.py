"""The software of a training: words, and the laws of what they cost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.search.software import Software
from tests.equations.training.drawn import CATALOG, cases, decoder, mixture, on

few = settings(max_examples=settings.default.max_examples // 2)
GPUS = ("dgx-h100:8", "dgx-a100:64", "gb200-nvl72:144")


def under(case, **words):
    return case.on(software=Software(**words))()


@few
@given(
    cases(machines=GPUS),
    st.sampled_from(
        (
            ({"attention": "fused"}, {"attention": "flash-2"}),
            ({"launches": "graphs"}, {"launches": "compiled"}),
            ({"launches": "compiled"}, {"launches": "eager"}),
            ({"overlap": ("tp", "dp")}, {"overlap": ("dp",)}),
            ({"overlap": ("dp",)}, {"overlap": ()}),
            ({"reduction": "bf16"}, {"reduction": "fp32"}),
            ({"attention": "unfused"}, {"attention": "unfused", "dropout": True}),
        )
    ),
)
def test_better_code_is_never_slower(case, words):
    better, worse = (under(case, **each) for each in words)
    assert better["step_time"] <= worse["step_time"] * (1 + 1e-12)


@few
@given(cases(machines=GPUS), st.sampled_from(("fused", "unfused")), st.sampled_from(("eager", "graphs")))
def test_items_add_up_to_the_step(case, attention, launches):
    found = under(case, attention=attention, launches=launches)
    items = [value for name, value in found.items() if name.startswith("time_")]
    assert sum(items) == pytest.approx(found["step_time"], rel=1e-9)
    assert found["time_host"] >= 0


def test_scores_are_kept_where_attention_is_not_fused():
    """2 bytes of 2048 x 2048 scores of 16 heads in each of 4 layers; with dropout the mask and what is left of them, 5 in all."""
    case = on(decoder(), "dgx-a100:1", "mbs=1", 2048, 1)
    fused, unfused = (under(case, attention=kind) for kind in ("fused", "unfused"))
    assert unfused["whole_layer"] - fused["whole_layer"] == pytest.approx(2 * 2048 * 2048 * 16)
    masked, unfused = (under(case, attention=kind, dropout=True) for kind in ("fused", "unfused"))
    assert unfused["whole_layer"] - masked["whole_layer"] == pytest.approx(5 * 2048 * 2048 * 16)
    assert masked["whole_layer"] > fused["whole_layer"]


def test_the_host_shows_where_kernels_are_short():
    """A layer of 1 token takes as long as its 16 launches forward and 32 backward, 10 us each."""
    case = on(decoder(), "dgx-h100:1", "mbs=1", 1, 1)
    found = under(case)
    assert found["host_forward"] == pytest.approx(160e-6)
    assert found["forward_compute"] == pytest.approx(160e-6, rel=0.02)
    assert found["backward_compute"] == pytest.approx(320e-6, rel=0.02)
    long = under(on(decoder(), "dgx-h100:1", "mbs=1", 65536, 1))
    assert long["time_host"] < 1e-3 * long["step_time"]


def test_fused_kernels_of_experts_take_a_share_of_sorting_and_casts_and_of_exchanges_down_to_the_wire():
    case = on(mixture(experts=64), "dgx-h100:8", "ep=8", 4096, 8)
    plain, fused = (under(case, experts=kind) for kind in ("plain", "fused"))
    share = fused["expert_path_factor"]
    assert share == CATALOG.assumptions("software")["expert_path_factor_fused"].value < 1
    assert fused["routed_forward"] == pytest.approx(share * plain["routed_forward"])
    for way in ("there", "back"):
        least = fused[f"tokens_{way}_wire"]
        assert fused[f"experts_{way}"] == pytest.approx(max(share * plain[f"experts_{way}"], least))
        assert least < plain[f"experts_{way}"]
    assert plain["host_forward"] - fused["host_forward"] == pytest.approx(8 * 2 * 22e-6)


def test_an_older_attention_kernel_is_slower_where_a_newer_one_exists():
    ratios = {}
    for where in ("dgx-h100:8", "dgx-a100:8"):
        case = on("llama-3-8b", where, "mbs=1", 8192, 8)
        fused, older = (under(case, attention=kind)["time_attention"] for kind in ("fused", "flash-2"))
        ratios[where] = older / fused
    assert ratios["dgx-a100:8"] == 1
    assert 1.8 < ratios["dgx-h100:8"] < 3


def test_what_a_recipe_keeps_stands_where_attention_is_not_named():
    case = on("gpt3-175b", "dgx-a100:64", "tp=8 pp=8", 2048, 64).on(recipe="deepspeed-zero1-fp16", dtype="fp16")
    assert case.inputs["score_bytes"] == 5
    assert (
        replace(case.workload, software=Software("fused")).software.inputs(
            case.workload.machine.chip, CATALOG.assumptions("software"), True
        )["score_bytes"]
        == 0
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"attention": "unfusd"}, "unknown attention 'unfusd': did you mean unfused"),
        ({"launches": "cuda-graphs"}, "unknown way to launch kernels 'cuda-graphs': did you mean graphs"),
        ({"overlap": ("pp",)}, "unknown overlap 'pp': choose from dp, none, tp"),
        ({"experts": "new"}, "unknown kernels of experts 'new'"),
        ({"reduction": "fp16"}, "unknown precision of a reduction 'fp16'"),
    ],
)
def test_unknown_words(words, said):
    with pytest.raises(InputError, match=said):
        Software(**words)


def test_it_says_what_it_is():
    chip = CATALOG.chip("h100-sxm")
    assert Software().said(chip).startswith("code: fused attention (--attention), eager launches (--launch), gradients")
    assert "graphs launches" in Software().said(CATALOG.chip("tpu-v5p"))
    assert "nothing overlapped" in Software(overlap=()).said(chip)
