"""What a layer, an embedding and a head can be, each worked out by hand: work of the products, bytes kept, weights, FLOPs.

Layers have 1024 features, 16 heads of 64 and a feed-forward of 4096; a micro-batch is 1024 tokens of two bytes a feature.
"""

import pytest

from costmodel.catalog.entries import LatentAttention
from costmodel.equations.axes import MATMUL, PART
from tests.equations.training.drawn import decoder, on

H, F, T = 1024, 4096, 1024
FORWARD = PART.labels.index("forward")


def quantities(layout="", **sizes):
    return on(decoder(**sizes), "dgx-h100:8", layout, T, 8)()


def work(found):
    """FLOPs of the forward products of a rank, by name, of those that there are."""
    each = zip(MATMUL.labels, found["product_work"][FORWARD], found["present"], strict=True)
    return {name: product * present for name, product, present in each}


@pytest.mark.parametrize(("kv_heads", "kv"), [(16, 1024), (4, 256), (1, 64)])
def test_multi_head_grouped_and_multi_query_attention(kv_heads, kv):
    found = quantities(kv_heads=kv_heads)
    assert work(found)["qkv"] == 2 * T * H * (H + 2 * kv)
    statistics = 4 * 16
    assert found["kept_inside"] == T * (2 * (2 * H + 2 * kv) + 2 * 3 * F + statistics)
    assert found["attention_matrices"] == 2 * H * H + 2 * H * kv
    assert found["attention_layer_flops"] == 2 * (2 * H * H + 2 * H * kv)
    assert found["core_causal_pairs"] == T * T / 2  # scores and values are of all heads, however few have keys


def test_latent_attention():
    """Queries of 48 and keys of 48 + 16 features come up from 256 and 128; values have 32."""
    latent = LatentAttention(query_rank=256, kv_rank=128, rope_head_size=16, plain_head_size=48, value_head_size=32)
    found = quantities(latent_attention=latent)
    products = work(found)
    assert products["qkv"] == 0
    assert products["latents"] == 2 * T * H * (256 + 128 + 16)
    assert products["query_up"] == 2 * T * 256 * 16 * 64
    assert products["key_value_up"] == 2 * T * 128 * 16 * (48 + 32)
    assert products["attention_output"] == 2 * T * 16 * 32 * H
    assert found["kept_latents"] == T * 2 * (256 + 128 + 16) * 2
    assert found["attention_flops_causal"] == 4 * 2 * (16 * 64 + 16 * 32) * T / 2  # four layers, half of the pairs


@pytest.mark.parametrize(("gated", "wide"), [(True, 2), (False, 1)])
def test_gated_and_plain_feed_forward(gated, wide):
    found = quantities(gated_ffn=gated)
    products = work(found)
    assert (products["ffn_in"], products["ffn_out"]) == (2 * T * H * wide * F, 2 * T * F * H)
    assert found["kept_inside"] == T * (2 * 4 * H + 2 * (wide + 1) * F + 4 * 16)
    assert found["ffn_layer_flops"] == 2 * (wide + 1) * H * F
    assert found["activation_bytes_forward"] == (6 if gated else 4)


def test_tied_embeddings():
    """One table on one stage; a copy of it for the head on another. The work is the same."""
    own, tied = quantities(vocabulary=1024), quantities(vocabulary=1024, tied_embeddings=True)
    assert own["stage_parameters"][0] - tied["stage_parameters"][0] == 1024 * H
    assert own["loss_compute"] == tied["loss_compute"] and own["model_flops"] == tied["model_flops"]
    staged = [quantities("pp=2", vocabulary=1024, tied_embeddings=flag) for flag in (False, True)]
    assert staged[0]["stage_parameters"] == staged[1]["stage_parameters"]


@pytest.mark.parametrize(("vocabulary", "tp", "on_rank"), [(1000, 1, 1024), (1000, 4, 256), (1025, 4, 384)])
def test_a_vocabulary_is_padded_to_multiples_of_128_a_rank_and_split(vocabulary, tp, on_rank):
    found = quantities(f"tp={tp} sp=0", vocabulary=vocabulary)
    assert found["vocabulary_on_rank"] == on_rank
    assert found["head_work"][FORWARD] == 2 * T * H * on_rank
    norm = H
    assert found["head_on_rank"] == on_rank * H + norm and found["embedding_on_rank"] == on_rank * H
    hidden = 2 * H * 2  # what the last norm reads and writes
    assert found["stage_logits"][0][1] == T * (on_rank * found["loss_bytes"] + hidden)
    assert found["head_flops"] == 2 * vocabulary * H  # model FLOPs know no padding


def test_every_second_layer_with_experts():
    """Llama 4 Maverick: dense layers of 16384, and 128 experts of 8192 with a shared one in every second layer."""
    found = on("llama-4-maverick", "tpu-v5p:4x4x8", "tp=4 etp=4 dp=32 zero=3", 8192, 128)()
    assert found["expert_layers"] == 24 and found["expert_share"] == 1 / 2
    assert found["mean_ffn_size"] == 16384 / 2 + 8192 / 2
    assert found["layer_experts"] == 128 * 3 * 5120 * 8192 / 4 / 2
    dense, shared, routed = 3 * 5120 * 16384, 3 * 5120 * 8192, 3 * 5120 * 8192
    attention = 5120 * (2 * 40 + 2 * 8) * 128
    router = 5120 * 128
    active = 48 * attention + 24 * (dense + shared + routed + router) + 202048 * 5120
    assert found["matmul_flops"] == 2 * active
