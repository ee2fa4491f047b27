"""Bytes that a rank sends: figures worked out by hand, and collectives that are counted step by step."""

import pytest

from costmodel.studies.explain import explain
from tests.equations.training.drawn import CATALOG

MIB = 2**20


def sent(quantity, layout, model="llama-3-8b", on="dgx-h100:64", *, length=8192, batch=64, **values):
    asked = {
        "sequence_length": length,
        "batch": batch,
        "layout": layout,
        "values": values,
        "catalog": CATALOG,
        "depth": 0,
    }
    return explain(f"traffic.{quantity}", model, on, **asked).tree.value


def test_gradients_and_weights_of_8_billion_weights_on_64_ranks():
    """2 x 63/64 x 16.06 GB of bf16; the same scattered and gathered; every micro-batch scattered with ZeRO-2."""
    assert sent("sent_dp", "zero=0", gradient_wire_bytes=2) == pytest.approx(31.6e9, rel=1e-3)
    assert sent("sent_dp", "zero=1", gradient_wire_bytes=2) == pytest.approx(31.6e9, rel=1e-3)
    assert sent("sent_dp", "zero=2", batch=256, gradient_wire_bytes=2) == pytest.approx(31.6e9 * 5 / 2, rel=1e-3)
    assert sent("sent_dp", "zero=3") == 0


def test_fsdp_of_8_billion_weights_on_64_ranks():
    """3 x 63/64 x 16.06 GB where every weight is gathered twice; the embedding and the head are gathered once."""
    tables = {"embedding_on_rank": 0, "head_on_rank": 0}
    all_alike = {**tables, "layer_parameters": 8.03e9 / 32}
    assert sent("sent_fsdp", "zero=3", gradient_wire_bytes=2, **all_alike) == pytest.approx(47.4e9, rel=1e-3)
    whole, layers = (sent("sent_fsdp", "zero=3", gradient_wire_bytes=2, **fewer) for fewer in ({}, tables))
    assert whole - layers == pytest.approx(63 / 64 * 4 * (2 * 128_256 * 4096 + 4096))
    assert sent("sent_fsdp", "zero=3", batch=128) == pytest.approx(2 * sent("sent_fsdp", "zero=3"))
    assert sent("sent_fsdp", "zero=2") == 0


def test_shards_in_groups_of_eight_and_eight_groups():
    """HSDP is FSDP of all weights inside a group, and DDP of a shard across the groups: 42.2 GB on NVLink, 3.51 on NICs."""
    tables = {"embedding_on_rank": 0, "head_on_rank": 0, "gradient_wire_bytes": 2}
    inside = sent("sent_fsdp", "zero=3 shard=8", layer_parameters=8.03e9 / 32, **tables)
    assert inside == pytest.approx(42.2e9, abs=0.05e9)
    assert sent("sent_dp", "zero=3 shard=8", gradient_wire_bytes=2) == pytest.approx(3.51e9, rel=1e-3)


@pytest.mark.parametrize(
    ("layout", "mib"),
    [
        ("tp=8 sp=0", 896),
        ("tp=8 sp=1", 1120),
        ("tp=8 sp=1 recompute=full", 1120 + 448),
        ("tp=8 sp=0 recompute=full/2", 896 + 224),
    ],
)
def test_tensor_parallelism_of_a_layer_of_70b(layout, mib):
    """Four all-reduces of 128 MiB among eight: 448 MiB forward, as much backward, and half as much again with SP."""
    assert sent("sent_tp", f"{layout} dp=1", "llama-3-70b", "dgx-h100:8", batch=1) == 80 * mib * MIB


@pytest.mark.parametrize(
    ("layout", "mib"),
    [
        ("cp=8", 28 + 28 + 32),
        ("cp=8 cp_type=all-gather", 28 + 28 + 28),
        ("cp=8 cp_type=ulysses", 2 * 31.5),
        ("cp=1", 0),
    ],
)
def test_context_parallelism_of_a_layer_of_70b(layout, mib):
    """A ring passes 7 blocks of 4 MiB, twice, and 8 of gradients; a gather moves as much; Ulysses the same both ways."""
    chips = 8 if "cp=8" in layout else 1
    where = f"dgx-h100:{chips}"
    assert sent("sent_cp", f"{layout} dp=1 zero=0", "llama-3-70b", where, batch=1) == 80 * mib * MIB


def test_messages_of_a_pipeline():
    """2 micro-batches of 8 x 8,192 x 8,192 x 2 bytes / 8 ranks, forward and backward, over two chunks."""
    layout = "tp=8 pp=4 dp=2 v=2 mbs=8 schedule=interleaved"
    per_message = 8 * 8192 * 8192 * 2 / 8
    assert sent("message", layout, "llama-3-70b") == per_message
    assert sent("sent_pp", layout, "llama-3-70b") == 2 * 4 * 2 * per_message
    assert sent("sent_pp", layout.replace("sp=1", "") + " sp=0", "llama-3-70b") == 8 * 2 * 4 * 2 * per_message


def test_tokens_of_experts():
    """4096 tokens of 7168 features to 8 experts on 64 ranks: 231.2 MB there in 8 bits, 462.4 each other way, 58 layers."""
    layout = "tp=1 pp=1 dp=1024 ep=64"
    there_and_back = sent(
        "ep_forward", layout, "deepseek-v3", "h800-cluster:1024", length=4096, batch=1024, dispatched_token=7168
    )
    assert there_and_back == pytest.approx(231.2e6 + 462.4e6, rel=1e-3)
    whole = sent("sent_ep", layout, "deepseek-v3", "h800-cluster:1024", length=4096, batch=1024, dispatched_token=7168)
    assert whole == pytest.approx(58 * (231.2e6 + 3 * 462.4e6), rel=1e-3)
    assert sent("sent_ep", "zero=1") == 0


def test_rows_of_experts_whose_features_are_shared():
    """1,024 tokens of 4,096 features to 8 experts, of which etp=2 ranks gather each other's rows and scatter the results."""
    apart, shared = (
        sent("ep_forward", f"tp=4 ep=8 {etp} zero=1", "qwen3-235b-a22b", length=4096, batch=512)
        for etp in ("", "etp=2")
    )
    assert apart == 1024 * 8 * 7 / 8 * 2 * 4096 * 2
    assert shared - apart == 2 * 1024 * 8 * 4096 * 2


def test_gradients_of_experts_are_reduced_among_their_own_copies():
    """Of Mixtral on 64 ranks: with ep 8 an eighth of the experts among 8 copies, all else among 64."""
    few, most = (
        sent("sent_dp", f"ep={ep} zero=0", "mixtral-8x7b", length=4096, gradient_wire_bytes=2) for ep in (8, 1)
    )
    experts = 32 * 8 * 3 * 4096 * 14336
    assert most == pytest.approx(2 * 63 / 64 * 46.7e9 * 2, rel=1e-2)
    assert most - few == pytest.approx(2 * 2 * (63 / 64 * experts - 7 / 8 * experts / 8))


def test_modules_that_are_run_again_send_again():
    """A layer of experts its rows, there and back; a feed-forward one block of two; attention alone its keys and values."""
    experts = "tp=2 pp=1 dp=512 ep=64"
    none, again = (
        sent("sent_ep", f"{experts} recompute={mode}", "deepseek-v3", "h800-cluster:1024", length=4096, batch=512)
        for mode in ("none", "moe")
    )
    forward = sent("ep_forward", experts, "deepseek-v3", "h800-cluster:1024", length=4096, batch=512)
    assert again - none == pytest.approx(58 * forward, rel=1e-9)
    none, mlp, full = (sent("sent_tp", f"tp=4 recompute={mode}") for mode in ("none", "mlp", "full"))
    assert mlp - none == pytest.approx((full - none) / 2, rel=1e-9)
