"""Stages whose ends are said, for every schedule, in a whole step: layers, memory in flight and time against the simulator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.balance import Balance
from costmodel.equations.parallelism.schedules import CHUNKED, FOLDED, SCHEDULES, TWO_WAY
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import decoder, on
from tests.simulators import pipeline
from tests.simulators.pipeline_cases import program

WIDE = {"hidden_size": 4096, "ffn_size": 14336, "heads": 32, "kv_heads": 8, "head_size": 128}
EXECUTED = [s for s in SCHEDULES if s not in {"zb-2p", "pipedream", "pipedream-2bw"}]
MEETING = (*FOLDED, *TWO_WAY)
balance = compile_math(
    Balance.system, ["layers_of_first", "layers_of_middle", "layers_of_last", "first_chunk", "last_chunk", "even_share"]
)


def stepping(schedule, layers, words):
    """Eight ranks of a pipeline, thirty-two micro-batches; no message shows."""
    chunks = " v=2" if schedule in CHUNKED else ""
    model = decoder(layers=layers, vocabulary=128256, **WIDE)
    case = on(model, "dgx-h100:64", f"tp=8 pp=8 dp=1 schedule={schedule}{chunks} {words}", 4096, 32)
    return case(send_exposed_share=0)


def executed(schedule, found, first, between, last):
    """The step without messages, of stages with so many layers and the head on the last one."""
    chunks = 2 if schedule in CHUNKED else 1
    of = program(schedule, 8, 32, chunks)
    line = [first, *[between] * (of.stages // chunks - 2), last] * chunks
    layers = [n / chunks for n in line]
    late, head_late = found["layer_weight_gradient"], found["loss_weight_gradient"]
    each = [[n * t for n in layers] for t in (found["layer_forward"], found["layer_backward"] - late, late)]
    head = (found["loss_forward"], found["loss_compute"] - found["loss_forward"] - head_late, head_late)
    for times, more in zip(each, head, strict=True):
        times[-1] += more
    return pipeline.run(of, *each[:2], weight=each[2]).makespan


OFF = {
    "zb-h1": (0.0001, 0),
    "zb-1p": (0.0001, 0),
    "zb-h2": (0.006, 0),
    "interleaved-zb": (0.004, 0),
    "zb-v": (0, 0.032),
    "v-half": (0.012, 0.035),
    "v-min": (0.006, 0.105),
    "dualpipe": (0, 0.05),
    "dualpipev": (0, 0.057),
    "chimera": (0, 0.086),
}
"""By what share of a step the form is low and high, at most; nothing of others. Where ranks hold both ends it is high with the head
on top of a full stage, and within 2 % (chimera 3 %) with fewer layers there.
"""


@pytest.mark.parametrize("schedule", EXECUTED)
@pytest.mark.parametrize(("less", "fewer"), [(0, 2), (2, 2), (0, 0)])
def test_time_of_a_split_is_that_of_the_schedule_executed(schedule, less, fewer):
    """Ends as people say them: fewer layers in the last stage, where the head is, in both, or in none."""
    between = 4
    first, last = between - less, between - fewer
    stages = 16 if schedule in FOLDED else 8
    found = stepping(schedule, (stages - 2) * between + first + last, f"first={first} last={last}")
    assert found["legal"] == 1
    formed = found["pipeline_busy"] + found["pipeline_bubble"]
    error = formed / executed(schedule, found, first, between, last) - 1
    low, high = OFF.get(schedule, (0, 0))
    assert -low - 1e-9 <= error <= high + 1e-9
    if schedule in MEETING and fewer:
        assert error <= (0.031 if schedule == "chimera" else 0.016)


@given(
    st.sampled_from([(1, 0, 0), (2, 0, 0), (3, 0, 0), (2, 1, 0), (1, 0, 1)]),
    st.integers(2, 9),
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_ranks_have_all_layers_between_them(kind, p, between, first, last):
    """In a line, folded and two-way; a two-way rank has each stage for half of the micro-batches."""
    v, folded, two_way = kind
    stages, chunks = (2 * p, 1) if folded else (p, v)
    said = {"first_layers": first * chunks, "last_layers": last * chunks}
    layers = sum(said.values()) + (stages - 2) * between * chunks
    found = balance(layers=layers, pp=p, virtual_stages=v, folded=folded, two_way=two_way, **said)
    ranks = found["layers_of_first"] + (p - 2) * found["layers_of_middle"] + found["layers_of_last"]
    assert ranks == layers
    assert found["even_share"] == (between * chunks if stages > 2 else 0)
    if folded:
        assert (found["layers_of_first"], found["layers_of_last"]) == (first + last, 2 * between)
    if two_way:
        assert found["layers_of_first"] == found["layers_of_last"] == (first + last) / 2
    if not (folded or two_way):
        assert (found["first_chunk"], found["last_chunk"]) == (first, last)


def held(schedule, first, last):
    """Layers that the first device holds at its fullest moment, executed; the stages between have one each."""
    of = program(schedule, 8, 32)
    layers = [first, *[1] * (of.stages - 2), last]
    now = most = 0
    for slot in of.orders[0]:
        now += sum(layers[stage] for what, stage, _ in slot if what == pipeline.FORWARD)
        most = max(most, now)
        now -= sum(layers[stage] for what, stage, _ in slot if what in {pipeline.BACKWARD, pipeline.WEIGHT})
    return most


@pytest.mark.parametrize("schedule", MEETING)
@pytest.mark.parametrize(("first", "last"), [(4, 1), (2, 2), (3, 2), (1, 3)])
def test_of_the_last_stage_one_micro_batch_is_held(schedule, first, last):
    """DualPipe's first rank holds p of stage 0 and one of stage p - 1; searched orders and zb-v hold one more at most."""
    between = 2
    stages = 16 if schedule in FOLDED else 8
    found = stepping(schedule, (stages - 2) * between + first + last, f"first={first} last={last}")
    excess = found["layers_in_flight"][0] - held(schedule, first, last)
    near = 0 if schedule in {"dualpipe", "dualpipev", "chimera"} else max(first, last)
    assert abs(excess) <= near
    if schedule in TWO_WAY:
        assert found["layers_in_flight"][2] == found["layers_in_flight"][0]


def test_deepseek_v3_as_it_was_trained():
    """Four layers in the first stage, three of them dense, one in the last: DualPipe's ranks at the ends hold both, twice over."""
    case = on("deepseek-v3", "h800-cluster:2048", "ep=64 pp=16 schedule=dualpipe first=4 last=1", 4096, 15360)
    found = case()
    assert found["legal"] == 1
    assert found["stage_layers"] == [2.5, 4, 2.5]
    assert found["stage_expert_layers"] == [1, 4, 1]  # one of stage 0 and one of stage 15, over two
    assert found["micro_batches"] == 120
    assert found["layers_in_flight"] == [16 * 4 + 1, 17 * 4, 16 * 4 + 1]
    alone = on("deepseek-v3", "h800-cluster:2048", "ep=64 pp=16 schedule=zb-h1 first=4 last=1", 4096, 15360)()
    counts = (1, 14, 1)
    for name in ("stage_parameters", "stage_experts"):
        both, once = (sum(n * x for n, x in zip(counts, of[name], strict=True)) for of in (found, alone))
        assert both == pytest.approx(2 * once, rel=1e-12)
