"""DDP's buckets under a layout: who has them, what shows of them, and scaling that stays near linear because of them."""

import pytest

from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG

MIB = 2**20


def quick(layout="zero=0", on="dgx-a100:64", model="gpt2-xl", **options):
    usual = {"sequence_length": 1024, "batch": 1024, "layout": layout, "catalog": CATALOG}
    return train(model, on, **usual | options).estimates[0]


def test_only_whole_gradients_of_several_ranks_are_reduced_in_buckets():
    assert quick("zero=1").buckets is None
    assert quick("zero=3").buckets is None
    assert quick("tp=1 zero=0", "dgx-a100:1", batch=8).buckets is None
    assert quick().result()["gradient_buckets"]["bucket_bytes"] == 25 * MIB


def test_buckets_hold_all_gradients():
    found = quick().buckets
    gradients = 4 * 1.56e9
    assert found.buckets == pytest.approx(1 + gradients / (25 * MIB), abs=20)
    assert 0 < found.best_exposed_s <= found.exposed_s * (1 + 1e-9)
    assert found.exposed_s < found.reduced_s


def test_reducing_every_micro_batch_shows_as_often():
    found = quick("zero=0 mbs=4")
    assert found.buckets.exposed_without_no_sync_s == pytest.approx(4 * found.buckets.exposed_s)


def test_scaling_stays_near_linear_to_256_gpus_where_reductions_hide():
    """As the authors of DDP saw on 256 GPUs: a fixed batch a GPU, buckets reduced behind the backward pass."""
    rate = {
        chips: quick("zero=0 mbs=8 recompute=full", f"dgx-a100:{chips}", batch=8 * chips).tokens_per_s / chips
        for chips in (8, 32, 256)
    }
    assert rate[8] >= rate[32] >= rate[256] >= 0.9 * rate[8]
    far = quick("zero=0 mbs=8 recompute=full", "dgx-a100:256", batch=8 * 256)
    serial = far.step_time_s - far.time["dp"] + far.buckets.reduced_s
    assert far.buckets.exposed_s < 0.05 * far.buckets.reduced_s
    assert serial > far.step_time_s


def test_it_is_said_beside_the_time_of_a_step():
    answer = train("gpt2-xl", "dgx-a100:64", sequence_length=1024, batch=1024, layout="zero=0", catalog=CATALOG)
    notes = next(table for table in answer.tables() if table.title == "Time of a step").notes
    assert any("buckets of 25.0 MiB" in note and "shows least" in note for note in notes)
