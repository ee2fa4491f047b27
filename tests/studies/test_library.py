"""`collective` as a library runs it: what is taken where nothing is said, what is refused, and other groups on the same links."""

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.collective import collective
from costmodel.topology.libraries import known_library, library_inputs
from costmodel.topology.machine import parse_machine

CATALOG = Catalog.open()


def ask(operation, size, on, **more):
    return collective(operation, size, on, catalog=CATALOG, **more)


@pytest.mark.parametrize(
    ("on", "library"),
    [
        ("dgx-h100:8", "nccl"),
        ("dgx-h100:512", "nccl"),
        ("aws-p6-b200:32", "nccl"),
        ("meta-roce-24k:1024", "nccl"),
        ("gb200-nvl72:144", "nccl"),
        ("tpu-v5p:4x4x4", "xla"),
        ("mi300x-cluster:64", "none"),
        ("l40s-server:8", "none"),
        ("aws-trn2:16", "none"),
    ],
)
def test_what_runs_is_said_and_can_be_left_out(on, library):
    machine = parse_machine(on, 1, CATALOG)
    assert known_library(machine) == library
    answer, links = ask("all-reduce", "1MiB", on), ask("all-reduce", "1MiB", on, library="none")
    told = " ".join(answer.notes)
    assert (f"As {library} runs it" in told) == (library != "none")
    assert "What the links would allow" in " ".join(links.notes)
    assert (answer.timings[0].time_s > links.timings[0].time_s) == (library != "none")


def test_small_collectives_take_microseconds_more():
    """Measured medians of 8 H100: 10.4 us for an all-gather up to 2 KiB and 15.6 us for an all-reduce (fp16)."""
    assert ask("all-gather", "2KiB", "dgx-h100:8").timings[0].time_s == pytest.approx(10.4e-6, rel=0.1)
    assert ask("all-reduce", "2KiB", "dgx-h100:8").timings[0].time_s == pytest.approx(15.6e-6, rel=0.1)
    assert ask("all-reduce", "2KiB", "dgx-h100:8", library="none").timings[0].time_s < 4e-6


def test_protocols_take_turns_as_the_payload_grows():
    swept = ask("all-reduce", None, "dgx-h100:8", sweep="1KiB:4GiB").timings
    order = list(dict.fromkeys((t.algorithm, t.protocol) for t in swept))
    assert order == [("ring", "ll"), ("ring", "ll128"), ("ring", "simple"), ("nvls", "")]


def test_in_switch_addition_has_a_start_of_its_own():
    nvls = next(t for t in ask("all-reduce", "1GiB", "dgx-h100:8").timings if t.algorithm == "nvls")
    assert 40e-6 < nvls.latency_s < 120e-6
    assert nvls.busbw_bytes_per_s == pytest.approx(465e9, rel=0.03)
    integers = ask("all-reduce", "1GiB", "dgx-h100:8", dtype="int8")
    assert "nvls" not in {t.algorithm for t in integers.timings}
    assert integers.timings[0].busbw_bytes_per_s == pytest.approx(351e9, rel=0.05)


def test_a_tree_starts_later_with_more_nodes():
    few, many = (ask("all-reduce", "64MiB", f"dgx-h100:{n}").timings[0].latency_s for n in (32, 8192))
    assert 5e-6 < few < many < 1.2e-3


def test_frameworks_add_what_their_hosts_take():
    alone, torch, jax = (
        ask("all-reduce", "64KiB", "dgx-h200:8", started_by=by).timings[0] for by in (None, "torch", "JAX")
    )
    assert torch.time_s == pytest.approx(40e-6, rel=0.05)
    assert jax.time_s - alone.time_s == pytest.approx(100e-6)


def test_names_of_the_links_alone_keep_their_meaning():
    """Where the library has none of that name, the links answer; where it has, it does, by its fastest protocol or the one asked."""
    (direct,) = ask("all-gather", "1GiB", "dgx-h100:8", algorithm="direct").timings
    assert direct.protocol == ""
    (tree,) = ask("all-reduce", "1GiB", "dgx-h100:64", algorithm="tree").timings
    assert tree.protocol == "simple"
    (slow,) = ask("all-reduce", "1GiB", "dgx-h100:64", algorithm="tree", protocol="ll").timings
    assert slow.time_s > 5 * tree.time_s
    assert {t.algorithm for t in ask("all-reduce", "1GiB", "dgx-h100:64").comparison} == {
        "hardware",
        "book",
        "pipelined",
        "sharp",
    }


@pytest.mark.parametrize(
    ("on", "more", "said"),
    [
        ("mi300x-cluster:8", {"library": "nccl"}, "nothing is measured of nccl"),
        ("dgx-h100:8", {"library": "ncl"}, "did you mean nccl"),
        ("dgx-h100:8", {"library": "xla"}, "nothing is measured of xla"),
        ("tpu-v5p:4x4x4", {"library": "nccl"}, "--library xla"),
        ("dgx-h100:8", {"library": 3}, "text"),
        ("dgx-h100:8", {"started_by": "numpy"}, "torch"),
        ("dgx-h100:8", {"started_by": "torch", "library": "none"}, "here runs none"),
        ("dgx-h100:8", {"library": "nccl", "algorithm": "hierarchical"}, "algorithm"),
        ("dgx-h100:8", {"protocol": "ll129"}, "did you mean ll128"),
        ("dgx-h100:8", {"protocol": "ll", "library": "none"}, "here runs none"),
        ("tpu-v5p:4x4x4", {"protocol": "ll"}, "here runs xla"),
        ("dgx-h100:8", {"beside": "all-gather"}, "OPERATION:SIZE"),
        ("dgx-h100:8", {"beside": "frobnicate:1MiB"}, "operation"),
        ("dgx-h100:8", {"beside": "all-gather:1MiB:9"}, "from 1 to 8"),
        ("dgx-h100:8", {"beside": "barrier:1MiB"}, "no size"),
        ("dgx-h100:8", {"beside": "all-gather:lots"}, "size"),
        ("dgx-h100:8", {"groups_sharing": 0}, "--groups-sharing"),
        ("tpu-v5p:4x4x4", {"beside": "all-gather:1MiB:w"}, "x, y, z"),
    ],
)
def test_what_is_refused(on, more, said):
    with pytest.raises(InputError, match=said):
        ask("all-reduce", "1GiB", on, **more)
    with pytest.raises(InputError):
        collective("all-reduce", None, on, sweep="1KiB:1MiB", beside="all-gather:1MiB", catalog=CATALOG)


def test_two_groups_on_the_same_links_take_twice_the_bandwidth():
    answer = ask("all-gather", "1GiB", "dgx-h100:64", groups_sharing=2)
    one = answer.timings[0]
    shared = answer.shared
    assert shared.together_s == pytest.approx(one.latency_s + 2 * one.bandwidth_s)
    assert shared.loads["nic"][2] == pytest.approx(2 * one.parts["nic"])
    assert shared.alone_s == one.time_s < shared.together_s < shared.in_turn_s == pytest.approx(2 * one.time_s)
    assert ask("all-gather", "1GiB", "dgx-h100:64").shared is None


def test_traffic_in_the_node_and_between_nodes_hardly_meet():
    """A tensor-parallel all-gather beside a data-parallel reduce-scatter along the rails: NICs carry one of the two."""
    answer = ask("reduce-scatter", "1GiB", "dgx-h100:64", group=8, stride=8, beside="all-gather:64MiB:8")
    loads = answer.shared.loads
    assert loads["nic"][1] == 0
    assert loads["nvlink"][0] == 0
    assert answer.shared.together_s < answer.shared.in_turn_s
    assert answer.shared.together_s >= answer.timings[0].time_s


def test_axes_of_a_torus_are_shared_or_not():
    apart, same = (
        ask("all-reduce", "256MiB", "tpu-v5p:4x4x4", axes="x", beside=f"all-reduce:256MiB:{axis}").shared
        for axis in "yx"
    )
    assert apart.together_s == pytest.approx(apart.alone_s)
    assert same.loads["ici"][2] == pytest.approx(2 * apart.loads["ici"][2])


def test_an_overlay_adds_to_every_step_between_nodes():
    plain, slow = (
        ask("all-reduce", "64KiB", "meta-roce-24k:64", overlay=overlay).timings[0].latency_s for overlay in (None, None)
    )
    assert plain == slow
    known = library_inputs(parse_machine("meta-roce-24k:64", 1, CATALOG), "nccl")
    assert known["added_latency"] == 0


def test_messages_by_the_library():
    """8 and 5 us more than the links: what grouped sends of NCCL start with."""
    run, links = (
        {t.algorithm: t for t in ask("send-recv", "1MiB", "dgx-h100:512", library=by).timings}
        for by in ("nccl", "none")
    )
    assert set(run) == set(links) == {"domain", "leaf", "spine", "host"}
    assert run["host"].time_s == links["host"].time_s
    for place in ("domain", "leaf", "spine"):
        assert 5e-6 < run[place].latency_s - links[place].latency_s < 30e-6
    hop, link = (
        {t.algorithm: t for t in ask("send-recv", "1MiB", "tpu-v5e:16x16", library=by).timings}
        for by in ("xla", "none")
    )
    assert hop["farthest"].latency_s > link["farthest"].latency_s
