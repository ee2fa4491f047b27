"""`collective`: the contract for scripts, what people read, and questions that cannot be answered."""

import csv
import io
import json

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report import Format, write
from costmodel.studies.collective import collective
from costmodel.studies.operations import OPERATIONS, operation_named
from costmodel.studies.timings import Routing

CATALOG = Catalog.open()
KEYS = {
    "algorithm",
    "size_bytes",
    "time_s",
    "latency_s",
    "bandwidth_s",
    "algbw_bytes_per_s",
    "busbw_bytes_per_s",
    "bound",
}
ROUTING = Routing(4096, 7168, 256, 8)


def ask(operation, size, on, **more):
    return collective(operation, size, on, catalog=CATALOG, **more)


def question(operation):
    """Size and routing of an operation."""
    if operation in {"dispatch", "combine"}:
        return {"size": None, "routing": ROUTING}
    return {"size": None if operation == "barrier" else "1MiB"}


def told(answer, form, capsys, **options):
    write(answer, form, **options)
    return capsys.readouterr().out


@pytest.mark.parametrize("on", ["dgx-h100:64", "tpu-v5p:4x4x4", "mi300x-cluster:64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_on_switches_tori_and_meshes(operation, on):
    answer = ask(operation, on=on, **question(operation))
    times = [timing.time_s for timing in answer.timings]
    assert times == sorted(times)
    assert times
    for timing, result in zip(answer.timings, answer.results(), strict=True):
        assert set(result) >= KEYS
        assert timing.time_s == pytest.approx(timing.latency_s + timing.bandwidth_s)
        assert timing.latency_s >= 0
        assert timing.bandwidth_s >= 0
        assert timing.bound
        assert max(timing.parts.values(), default=0) <= timing.bandwidth_s * (1 + 1e-9)
    assert answer.exit_code == 0


def test_rates_are_those_of_nccl_tests():
    ring, *_ = ask("all-reduce", "1GiB", "dgx-h100:8", algorithm="ring", library="none").timings
    assert ring.algbw_bytes_per_s == pytest.approx(2**30 / ring.time_s)
    assert ring.busbw_bytes_per_s == pytest.approx(ring.algbw_bytes_per_s * 2 * 7 / 8)
    assert ring.busbw_bytes_per_s == pytest.approx(0.82 * 450e9, rel=0.01)
    gather, *_ = ask("all-gather", "1GiB", "dgx-h100:8", algorithm="ring", library="none").timings
    assert gather.busbw_bytes_per_s == pytest.approx(gather.algbw_bytes_per_s * 7 / 8)


def test_names_are_understood_as_others_write_them():
    for text in ("allreduce", "all_reduce", "All-Reduce", "ALLREDUCE"):
        assert operation_named(text) == "all-reduce"
    assert operation_named("sendrecv") == "send-recv"


def test_a_group_is_cheaper_than_all():
    whole, eight = (ask("all-reduce", "1GiB", "dgx-h100:512", group=group) for group in (None, 8))
    assert eight.timings[0].time_s < whole.timings[0].time_s
    assert {timing.ranks for timing in eight.timings} == {8}
    assert {timing.ranks for timing in whole.timings} == {512}


def test_a_stride_spreads_a_group_over_nodes():
    together, apart = (ask("all-gather", "1GiB", "dgx-h100:64", group=8, stride=stride) for stride in (1, 8))
    assert together.timings[0].bound == "nvlink"
    assert apart.timings[0].bound == "nic"


def test_one_rank_has_nothing_to_do():
    answer = ask("all-reduce", "1GiB", "dgx-h100:8", group=1)
    assert [timing.time_s for timing in answer.timings] == [0]
    assert answer.results()[0]["algbw_bytes_per_s"] is None


def test_one_algorithm_alone_even_one_for_comparison():
    assert [t.algorithm for t in ask("all-reduce", "1GiB", "dgx-h100:64", algorithm="tree").timings] == ["tree"]
    assert [t.algorithm for t in ask("all-gather", "1GiB", "tpu-v5p:8x8x8", algorithm="book").timings] == ["book"]


def test_bounds_and_conventions_stand_apart():
    answer = ask("all-reduce", "1GiB", "dgx-h100:64")
    names = {timing.algorithm for timing in answer.comparison}
    assert {"pipelined", "sharp", "book"} <= names
    assert not names & {timing.algorithm for timing in answer.timings}
    assert {result["algorithm"] for result in answer.extras()["comparison"]} == names


def test_integers_are_not_added_by_switches():
    floats, integers = (
        {t.algorithm for t in ask("all-reduce", "1GiB", "dgx-h100:8", dtype=dtype).timings}
        for dtype in ("bf16", "int8")
    )
    assert floats - integers == {"nvls"}


def test_a_sweep_doubles_and_gives_the_fastest_of_each():
    answer = ask("all-reduce", None, "dgx-h100:16", sweep="1KiB:1MiB")
    assert [timing.size_bytes for timing in answer.timings] == [2**k for k in range(10, 21)]
    alone = ask("all-reduce", "64KiB", "dgx-h100:16").timings[0]
    assert next(t for t in answer.timings if t.size_bytes == 2**16) == alone


def test_places_of_a_message():
    def places(on, **more):
        return {t.algorithm: t for t in ask("send-recv", "1MiB", on, **more).timings}

    assert set(places("dgx-h100:8")) == {"domain", "host"}
    assert set(places("dgx-h100:512")) == {"domain", "leaf", "spine", "host"}
    assert set(places("tpu-v5p:8x8x8", slices=2)) == {"neighbour", "farthest", "dcn", "host"}
    far, near = places("dgx-h100:512")["spine"], places("dgx-h100:512")["leaf"]
    assert far.latency_s > near.latency_s
    assert far.bandwidth_s == near.bandwidth_s
    assert list(places("dgx-h100:512", between="rail")) == ["leaf"]
    assert list(places("dgx-h100:512", between="nvlink")) == ["domain"]


def test_tokens_are_routed():
    answer = ask("dispatch", None, "dgx-h100:64", routing=ROUTING, dtype="fp8")
    assert {timing.size_bytes for timing in answer.timings} == {4096 * 8 * 7168}
    assert answer.timings[0].algorithm == "per-node"
    limited = ask("dispatch", None, "dgx-h100:64", dtype="fp8", routing=Routing(4096, 7168, 256, 8, node_limit=4))
    assert limited.timings[0].time_s < answer.timings[0].time_s


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (("all-reduc", "1GiB", "dgx-h100:8"), {}, "did you mean all-reduce"),
        (("all-reduce", "1Gb", "dgx-h100:8"), {}, "bits or bytes"),
        (("all-reduce", "-1GiB", "dgx-h100:8"), {}, "negative"),
        (("all-reduce", 0, "dgx-h100:8"), {}, "whole number of bytes"),
        (("all-reduce", float("nan"), "dgx-h100:8"), {}, "whole number of bytes"),
        (("all-reduce", None, "dgx-h100:8"), {}, "--sweep"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"sweep": "1KiB:1MiB"}, "give one of the two"),
        (("all-reduce", None, "dgx-h100:8"), {"sweep": "1MiB"}, "1KiB:16GiB"),
        (("all-reduce", None, "dgx-h100:8"), {"sweep": "1MiB:1KiB"}, "1KiB:1MiB"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"group": 9}, "from 1 to 8"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"axes": "x"}, "--group"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"algorithm": "rings"}, "did you mean ring"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"dtype": "bf61"}, "bf16"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"dtype": ""}, "unknown dtype ''"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"between": "leaf"}, "--group"),
        (("all-reduce", "1GiB", "dgx-h100:8"), {"routing": ROUTING}, "dispatch and combine"),
        (("send-recv", "1GiB", "dgx-h100:8"), {"between": "spine"}, "domain, host"),
        (("barrier", "1GiB", "dgx-h100:8"), {}, "no size"),
        (("dispatch", None, "dgx-h100:8"), {}, "--experts"),
        (("dispatch", "1GiB", "dgx-h100:8"), {"routing": ROUTING}, "no size"),
        (("dispatch", None, "dgx-h100:24"), {"routing": ROUTING}, "--group 16"),
        (("dispatch", None, "dgx-h100:8"), {"routing": Routing(-1, 7168, 256, 8)}, "--tokens"),
        (("dispatch", None, "dgx-h100:8"), {"routing": Routing(10**30, 7168, 256, 8)}, "--tokens 1.* too large"),
        (("dispatch", None, "dgx-h100:8"), {"routing": Routing(1, 7168, 2**63 - 1, 8)}, "--group 7"),
        (("dispatch", None, "dgx-h100:8"), {"routing": Routing(1, 7168, 256, 300)}, "256 experts"),
        (("dispatch", None, "dgx-h100:8"), {"routing": Routing(1, 7168, 256, 8, 2)}, "1 to 1 fast domains"),
        (("all-gather", "1GiB", "tpu-v5p:8x8x8"), {"axes": "w"}, "name each of x, y, z"),
    ],
)
def test_what_cannot_be_answered_is_said_with_what_can(arguments, more, said):
    with pytest.raises(InputError, match=said):
        ask(*arguments, **more)


def test_json_csv_and_table(capsys):
    answer = ask("all-reduce", "1GiB", "dgx-h100:64")
    object_ = json.loads(told(answer, Format("json"), capsys))
    assert [result["algorithm"] for result in object_["results"]] == [t.algorithm for t in answer.timings]
    rows = list(csv.DictReader(io.StringIO(told(answer, Format("csv"), capsys))))
    assert [float(row["time_s"]) for row in rows] == [t.time_s for t in answer.timings]
    items = list(csv.DictReader(io.StringIO(told(answer, Format("csv"), capsys, long=True))))
    assert {item["item"] for item in items} >= {"latency", "nvlink", "nic"}
    table = told(answer, Format("table"), capsys)
    assert "all-reduce of 1.00 GiB on dgx-h100:64" in table
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize(("shape", "gain"), [("4x4x8", 1.745), ("4x8x8", 1.391), ("8x8x16", 1.722)])
def test_an_exchange_on_a_twisted_slice(shape, gain):
    plain, twisted = (ask("all-to-all", "1GiB", f"tpu-v4:{shape}{ending}") for ending in ("", "_twisted"))
    assert plain.twist_gain is None
    assert twisted.twist_gain == pytest.approx(gain, abs=5e-4)
    slow, fast = plain.timings[0], twisted.timings[0]
    assert slow.bandwidth_s / fast.bandwidth_s == pytest.approx(twisted.twist_gain, rel=1e-9)
    assert fast.latency_s < slow.latency_s
    assert any(f"{twisted.twist_gain:.4g} times less than on the plain torus" in note for note in twisted.notes)
    assert twisted.extras()["twist_gain"] == twisted.twist_gain


@pytest.mark.parametrize("operation", ["all-gather", "reduce-scatter", "all-reduce"])
def test_on_a_twisted_slice_all_chips_gather_at_the_best_rate(operation):
    """Six links carry what the plain torus carries at best, which an even division does not reach there."""
    plain, twisted = (ask(operation, "1GiB", f"tpu-v5p:4x4x8{ending}", library="none") for ending in ("", "_twisted"))
    best = next(row for row in plain.comparison if row.algorithm == "best-split")
    assert twisted.timings[0].time_s == pytest.approx(best.time_s, rel=1e-12)
    assert twisted.timings[0].time_s < plain.timings[0].time_s
    assert twisted.twist_gain is None


def test_short_axes_of_a_twisted_slice_are_open():
    """Along x four chips are a path: a link instead of two; along z, which closes, nothing changes."""
    for axes, slower in (("x", 2), ("z", 1)):
        plain, twisted = (
            ask("all-gather", "1GiB", f"tpu-v5p:4x4x8{ending}", axes=axes, library="none").timings[0]
            for ending in ("", "_twisted")
        )
        assert twisted.bandwidth_s == pytest.approx(slower * plain.bandwidth_s, rel=1e-12)
    part = ask("all-to-all", "1GiB", "tpu-v5p:4x4x8_twisted", axes="xz")
    assert part.twist_gain is None
    assert any("need at most the time given" in note for note in part.notes)


def test_experts_on_a_twisted_slice_gain_as_well():
    plain, twisted = (
        ask("dispatch", None, f"tpu-v5p:4x4x8{ending}", routing=ROUTING).timings[0] for ending in ("", "_twisted")
    )
    assert plain.bandwidth_s / twisted.bandwidth_s == pytest.approx(1.745, abs=5e-4)
