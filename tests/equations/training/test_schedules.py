"""Every pipeline schedule in a whole step: the stages it really has executed op by op, its memory, its copies of the weights."""

import pytest

from costmodel.equations.parallelism.schedules import FOLDED, SCHEDULES, TWO_WAY
from tests.equations.training.drawn import decoder, on
from tests.simulators import pipeline
from tests.simulators.pipeline_cases import SEARCHED, program

MODEL = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
SILENT = {"send_exposed_share": 0, "vocabulary": 0}
"""No message shows, and the head is hardly any work: all stages are nearly alike."""


def stepping(schedule, model=MODEL, tail=""):
    """Eight stages, thirty-two micro-batches."""
    chunks = " v=2" if schedule in {"interleaved", "breadth-first", "interleaved-zb"} else ""
    return on(model, "dgx-h100:64", f"tp=8 pp=8 dp=1 schedule={schedule}{chunks}{tail}", 4096, 32)


@pytest.mark.parametrize("schedule", [s for s in SCHEDULES if s not in {"1f1b", "zb-2p", "pipedream", "pipedream-2bw"}])
def test_compute_and_bubble_are_those_of_the_schedule_executed(schedule):
    case = stepping(schedule)
    found = case(**SILENT)
    assert found["legal"] == 1
    of = program(schedule, 8, 32, case.layout.virtual_stages)
    share = found["layers"] / 8 / of.chunks
    forward, weights = share * found["layer_forward"], share * found["layer_weight_gradient"]
    inputs = share * found["layer_backward"] - weights
    each = [[time] * of.stages for time in (forward, inputs, weights)]
    formed = found["pipeline_busy"] + found["pipeline_bubble"]
    if schedule in (*FOLDED, *TWO_WAY):
        formed -= 32 * found["head_share"] * found["last_work"]
    else:
        late = found["loss_weight_gradient"]
        head = (found["loss_forward"], found["loss_compute"] - found["loss_forward"] - late, late)
        for times, more in zip(each, head, strict=True):
            times[-1] += more
    executed = pipeline.run(of, *each[:2], weight=each[2]).makespan
    near = 0.1 if schedule in SEARCHED else 1e-3 if schedule in TWO_WAY else 1e-9
    assert formed == pytest.approx(executed, rel=near)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_items_add_up_to_the_step(schedule):
    found = stepping(schedule)()
    items = [value for name, value in found.items() if name.startswith("time_")]
    assert sum(items) == pytest.approx(found["step_time"], rel=1e-9)
    assert min(items) >= 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ranks_hold_all_layers_and_tables_once_a_copy(schedule):
    case = stepping(schedule)
    found = case()
    copies = 2 if schedule in TWO_WAY else 1
    ranks = [n * layers for n, layers in zip((1, 6, 1), found["stage_layers"], strict=True)]
    assert sum(ranks) == 32
    assert sum(found["has_embedding"]) == sum(found["has_head"]) == copies
    assert (found["has_embedding"][0], found["has_head"][0]) == (1, int(schedule in FOLDED or copies > 1))


def test_tied_tables_are_one_where_the_ends_meet():
    tied, apart = (stepping("zb-v", decoder(layers=32, tied_embeddings=tied))() for tied in (True, False))
    table = apart["vocabulary_on_rank"] * apart["hidden_size"]
    assert apart["stage_parameters"][0] - tied["stage_parameters"][0] == table
    line = stepping("1f1b", decoder(layers=32, tied_embeddings=True))()
    assert line["stage_parameters"][-1] == stepping("1f1b", decoder(layers=32))()["stage_parameters"][-1]


@pytest.mark.parametrize(("schedule", "times"), [("dualpipe", 2), ("chimera", 2), ("pipedream-2bw", 2), ("zb-h1", 1)])
def test_copies_and_versions_of_weights_are_held(schedule, times):
    layers = decoder(layers=32, vocabulary=1)  # hardly any table
    held, plain = (stepping(s, layers)()["memory_parameters"] for s in (schedule, "1f1b"))
    assert held == pytest.approx(times * plain, rel=0.03)


def test_schedules_that_save_memory_do():
    """In micro-batches: 9 of DualPipe, 8 of 1F1B's first stage, 5 of V-Half, 4 of V-Min."""
    held = {s: stepping(s)()["in_flight"][0] for s in ("gpipe", "dualpipe", "1f1b", "zb-v", "v-half", "v-min")}
    assert held == {"gpipe": 32, "dualpipe": 9, "1f1b": 8, "zb-v": 8, "v-half": 5, "v-min": 4}


def test_pipedream_runs_its_optimizer_at_every_micro_batch():
    assert stepping("pipedream")()["time_optimizer"] == 32 * stepping("1f1b")()["time_optimizer"]


def test_zero_bubble_schedules_idle_less():
    idle = {s: stepping(s)()["time_bubble"] for s in ("1f1b", "zb-h1", "zb-v", "pipedream-2bw")}
    assert idle["1f1b"] > idle["zb-h1"] > idle["zb-v"] > idle["pipedream-2bw"] == 0
