"""What free text of published tables is taken to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.studies.validation import words


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            words.RECOMPUTE,
            {
                "": "",
                "unstated here": "",
                "none set in recipe function (base recipe not traced)": "",
                "none (unstated; memory implies none)": "none",
                "none ([])": "none",
                "full (activation checkpointing)": "full",
                "yes (rematerialization)": "full",
                "other: full offload[decoder_layer_input]": "full",
                "selective (every other layer)": "full/2",
                "selective (per-op SAC)": "selective",
                "selective (op)": "selective",
                "selective": "selective-default",
                "selective (config default)": "selective-default",
                "selective (attention core)": "attention",
                'selective ["layernorm", "moe_act"]': words.NAMED,
                'selective ["moe_act"]': words.NAMED,
                "selective []": "none",
                "selective (maxtext minimal: matmul outputs kept)": "light",
                "selective (RMSNorm, MLA up-projections)": "layernorm+mla_up_proj",
                "other: custom offload[decoder_layer_input]": "full",
                "other: custom device[decoder_layer_input,context,query_proj,key_proj,value_proj]": "selective",
            },
        ),
        (
            words.SHARDING,
            {
                "": "",
                "fsdp/hsdp": "",
                "ddp + distributed optimizer (unstated; FSDP=0)": "1",
                "none (dp=1, no distributed optimizer)": "0",
                "ddp, gradient all-reduce not overlapped": "0",
                "zero1": "1",
                "fsdp-shard_grad_op(zero2) group=all; mp_mode=DEFAULT": "2",
                "fsdp: optimizer and gradients sharded, parameters not resharded after forward (zero2-like)": "2",
                "fsdp2 full shard": "3",
                "hsdp (shard in node, replicate across)": "3",
                "fsdp over ICI (16) x dcn data parallel 2": "3",
            },
        ),
        (
            words.PRECISION,
            {
                "": "",
                "mixed": "",
                "bf16-amp(fp32 master, bf16 compute)": "bf16",
                "bf16 (unstated; MFU matches 989 peak)": "bf16",
                "fp16 mixed": "fp16",
                "fp16/bf16 mixed (unstated here)": "16-bit",
                "fp8 dynamic tensorwise, fp8 all-gather": "fp8",
                "fp8 rowwise": "fp8-rowwise",
                "fp8 finer granularity: mxfp8 1x32/32x32 (see page note)": "mxfp8",
                "nvfp4 (layers 27-31 bf16)": "nvfp4",
            },
        ),
        (
            words.ATTENTION,
            {
                "naive (fused scale-mask-softmax where constraints hold)": "naive",
                "cudnn flash TE (config)": "fused",
                "unstated (TE/cuDNN fused presumed)": "fused",
                "unstated": "",
            },
        ),
        (words.SEQUENCE_PARALLEL, {"true (presumed)": "on", "false": "off", "": ""}),
        (
            words.SCHEDULE,
            {
                "schedule 1F1B-I": "interleaved",
                "AsyncTP; 1F1B": "1f1b",
                "schedule ZB-2p": "zb-2p",
                "DualPipe": "dualpipe",
                "x": "",
            },
        ),
        (
            words.FLOPS,
            {
                "model FLOPs, MaxText calculator of that date: 6*N + full (non-causal) attention": "full",
                "MaxText TFLOPs/s/chip, causal-halved attention (post PR 1988)": "causal",
                "HARDWARE FLOPs incl. full recompute (paper eq. 3)": "hardware",
                "HARDWARE FLOPs incl. full recompute (as Apr 2021 table; formula not restated there)": "unknown",
                "TFLOPS/GPU, convention unstated": "unknown",
            },
        ),
    ],
    ids=["recompute", "sharding", "precision", "attention", "sequence parallel", "schedule", "flops"],
)
def test_what_is_said(rules, said):
    assert {text: words.word("field", rules, text) for text in said} == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selective ["layernorm", "moe_act"]', "light"),
        ('selective ["moe_act", "layernorm"]', "light"),
        ('selective ["moe_act"]', "mlp-product"),
        ('selective ["mla_up_proj"]', "mla_up_proj"),
        ("selective (mla_up_proj, mlp)", "mla_up_proj+mlp"),
        ("selective (moe, layernorm)", "layernorm+moe"),
        ("selective (mlp, core_attn)", "core_attn+mlp"),
        ("selective (core_attn)", "attention"),
        ("selective (RMSNorm, MLA up-projections)", "layernorm+mla_up_proj"),
        ("selective (attention core)", "attention"),
        ("full", "full"),
        ("", ""),
    ],
)
def test_modules_that_are_named_are_what_is_run_again(text, said):
    assert words.recompute(text) == said


def test_modules_within_each_other_are_not_read():
    with pytest.raises(InputError, match="moe_act is a part of moe"):
        words.recompute('selective ["moe", "moe_act"]')


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (words.RECOMPUTE, "other: custom"),
        (words.RECOMPUTE, "sometimes"),
        (words.PRECISION, "bf16 or fp8 (not pinned)"),
        (words.SHARDING, "tree"),
    ],
)
def test_what_nobody_can_tell_is_not_guessed(rules, text):
    with pytest.raises(InputError, match="is not understood"):
        words.word("field", rules, text)


@given(st.text(max_size=200))
def test_any_text_is_a_word_or_a_reason(text):
    for rules in (words.RECOMPUTE, words.SHARDING, words.PRECISION, words.ATTENTION, words.SCHEDULE, words.FLOPS):
        try:
            assert isinstance(words.word("field", rules, text), str)
        except InputError as error:
            assert "is not understood" in str(error)
    assert words.network(text, 8).slices >= 1


@pytest.mark.parametrize(
    ("text", "per_node", "rate"),
    [
        ("roce-1600gbps-per-node", 8, 25),
        ("ib-hdr-8x200 (Selene)", 8, 25),
        ("ib 8x400gbps per node (report), nvlink 400GB/s", 8, 50),
        ("rdma-400gbps-per-gpu", 8, 50),
        ("omni-path, 4 links per node (Jean Zay)", 4, 12.5),
        ("omni-path, 4 links per node (Jean Zay)", 8, 6.25),
        ("roce-2tbps per node (as printed: 2Tb/s RoCE)", 8, 31.25),
        ("roce 4x100gbps per node", 8, 6.25),
        ("gcp a3-mega tcpxo", 8, 25),
        ("gcp-a3 tcpx (not stated)", 8, 12.5),
        ("400gbps per node (as printed)", 8, 6.25),
        ("unstated", 8, None),
        ("single-node", 8, None),
        ("nvl72+IB(unstated)", 4, None),
        ("ici 3D torus 4x8x8", 4, None),
    ],
)
def test_rates_of_networks(text, per_node, rate):
    assert words.network(text, per_node).chip_gbytes_per_s == rate


def test_slices():
    assert words.network("ici (8 slice(s) of v5e-256; DCN data parallel across slices)", 4).slices == 8
    assert words.network("ici 3D torus 4x8x8", 4).slice_named == "4x8x8"


def test_traits():
    found = words.traits(
        {"framework": "Megatron-LM 2022", "sharding": "ddp, gradient all-reduce not overlapped", "notes": ""}
    )
    assert found == {"before-2023", "dp-not-overlapped"}
    assert "fine-tuning" in words.traits({"notes": "LoRA; packed"})
    assert "ep-overlap" not in words.traits({"overlap": "no EP overlap; alltoall dispatcher, CUDA graphs off"})
    assert "cuda-graphs" not in words.traits({"overlap": "dispatcher hybridep; cuda graphs none"})
