"""What each stage holds in each phase: it adds up, the fullest is the peak, and options move what they should."""

import pytest
from hypothesis import given, settings

from costmodel.errors import InputError
from costmodel.studies.stages import PHASES, stage_memory
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, cases

few = settings(max_examples=settings.default.max_examples // 4)
ASKED = {"batch": 128, "sequence_length": 4096, "catalog": CATALOG}


@few
@given(cases(most_cp=2))
def test_items_add_up_in_every_phase_and_the_fullest_is_the_peak(case):
    values = case()
    found = stage_memory(values)
    assert len(found) == min(case.layout.pp, 3) - (case.layout.pp > 2 and values["stage_layers"][1] == 0)
    for stage in found:
        for phase, items in zip(PHASES, stage.phases, strict=True):
            assert sum(items.values()) + values["workspace_bytes"] == pytest.approx(stage.allocated[phase])
            assert min(items.values()) >= 0
    assert max(stage.allocated[stage.fullest] for stage in found) == values["allocated"]


def answer(layout, model="llama-3-8b", on="dgx-h100:16", **more):
    return train(model, on, layout=layout, **ASKED | more)


def test_the_table_names_stage_and_moment():
    found = answer("tp=2 pp=4 recompute=full", stages=True)
    table = next(table for table in found.tables() if table.title == "Memory by stage and phase")
    assert [row[0].split(":")[0] for row in table.rows if not row[0].startswith(" ")] == ["first", "middle", "last"]
    estimate = found.estimates[0]
    assert f"{estimate.worst_stage} stage" in table.notes[0]
    assert all(table.title != "Memory by stage and phase" for table in answer("tp=2 pp=4").tables())


def test_scripts_get_every_stage():
    stages = answer("tp=2 pp=4").results()[0]["stages"]
    assert [stage["stage"] for stage in stages] == ["first", "middle", "last"]
    first, last = stages[0]["phases"], stages[-1]["phases"]
    assert last["loss"]["logits_bytes"] > 0 == first["loss"]["logits_bytes"]
    assert first["optimizer"]["activations_bytes"] == 0 < first["forward"]["activations_bytes"]


def test_a_loss_in_chunks_takes_less_memory_and_no_other_item():
    """Eight pieces: an eighth of six bytes a logit; what the final norm reads and writes stays."""
    whole, chunked = (answer("zero=1 recompute=full", loss_chunks=chunks).estimates[0] for chunks in (1, 8))
    before, after = (found.stages[0].phases[PHASES.index("loss")] for found in (whole, chunked))
    norm = 2 * 4096 * 4096 * 2
    assert before["logits_bytes"] - norm == pytest.approx(8 * (after["logits_bytes"] - norm))
    assert {**before, "logits_bytes": 0} == {**after, "logits_bytes": 0}
    assert {name for name in whole.time if whole.time[name] != chunked.time[name]} == {"loss"}
    assert (
        whole.time["loss"] < chunked.time["loss"] < 1.5 * whole.time["loss"]
    )  # launches, the head read again, sums of its gradient
    later = chunked.time["loss"] - whole.time["loss"]
    assert chunked.step_time_s - whole.step_time_s == pytest.approx(later)


def test_documents_that_are_packed_take_less_attention():
    """Pairs fall with the length of the documents: 512 tokens of 4,096 leave an eighth, and the whole blocks of 128 on the diagonal,
    63.5 pairs a token more, beside 256 in place of 2,048. Memory stays."""
    whole, packed = (answer("zero=1", document_length=tokens).estimates[0] for tokens in (None, 512))
    assert packed.time["attention"] == pytest.approx(whole.time["attention"] * (256 + 63.5) / (2048 + 63.5), rel=0.03)
    assert packed.time["matmul"] == whole.time["matmul"]
    assert packed.allocated_bytes == whole.allocated_bytes
    assert answer("zero=1", document_length=4096).estimates[0].step_time_s == whole.step_time_s
    assert packed.mfu < whole.mfu


def test_documents_and_chunks_are_checked():
    with pytest.raises(InputError, match="more than a sequence of 4,096 tokens holds"):
        answer("zero=1", document_length=8192)
    with pytest.raises(InputError, match="--loss-chunks 5000 is out of range"):
        answer("zero=1", loss_chunks=5000)
    assert any("documents of 512 tokens" in note for note in answer("zero=1", document_length=512).notes[0])


def test_fsdp_keeps_a_stage_gathered_in_the_pipelines_of_torchtitan():
    """Two bytes a weight of the stage, four a gradient, where another recipe gathers two layers and scatters each."""
    sizes = [
        answer("tp=2 pp=4 zero=3", recipe=recipe)
        .estimates[0]
        .stages[0]
        .phases[PHASES.index("backward")]["gathered_bytes"]
        for recipe in ("torchtitan-fsdp2", "llm-foundry")
    ]
    layer, table = 218_112_000 / 2, 128_256 * 4096 / 2
    assert sizes[0] == pytest.approx(8 * layer * (2 + 4) + 2 * table, rel=1e-3)
    assert sizes[1] == pytest.approx(layer * (2 * 2 + 4) + 2 * table, rel=1e-3)
