"""`collective` over networks that are not clean: the table, the times, knobs of the catalog, and refusals."""

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.lint import lint
from costmodel.errors import InputError
from costmodel.studies.collective import collective
from costmodel.studies.hardware import show_hardware
from costmodel.studies.train import train

CATALOG = Catalog.open()
ROCE = "meta-roce-24k:1024"
LINK = """
name: roce-400g
kind: ethernet
per: nic
spec:
  bandwidth: {value: 400, unit: Gbit/s, source: made up, confidence: guess}
  latency: {value: 2, unit: us, source: made up, confidence: guess}
attainable:
  collective: {value: 0.9, unit: share, source: made up, confidence: guess}
"""
KNOBS = """
overlay:
  framing: roce-v2
  encapsulation: [vxlan, ipsec]
  mtu: {value: 1500, unit: B, source: made up, confidence: guess}
  packet_rate: {value: 10000000, unit: 1/s, source: made up, confidence: guess}
  fast_path_latency: {value: 3, unit: us, source: made up, confidence: guess}
"""


def ask(on=ROCE, catalog=CATALOG, **more):
    return collective("all-reduce", "1GiB", on, algorithm="ring", catalog=catalog, **more)


def with_link(folder, text):
    (folder / "links").mkdir(exist_ok=True)
    (folder / "links" / "roce-400g.yaml").write_text(text)
    return Catalog.open(folder)


def test_the_wire_binds_and_ring_bandwidth_falls_with_it():
    clean, behind = ask(library="none"), ask(overlay="vxlan,ipsec", mtu=1500, library="none")
    found = behind.overlays[0].result()
    assert found["goodput_factor"] == 1024 / (1024 + 44 + 38 + 50 + 54)
    assert found["bound"] == "wire"
    slower = found["goodput_factor"] / (4096 / 4178)
    assert behind.timings[0].bandwidth_s == pytest.approx(clean.timings[0].bandwidth_s / slower)
    assert behind.timings[0].latency_s == clean.timings[0].latency_s
    assert clean.overlays == () and clean.extras()["overlays"] == []


def test_the_table_says_factor_and_what_binds():
    table = ask(overlay="vxlan,ipsec", mtu=1500).tables()[1]
    assert table.title == "One roce-400g through vxlan ipsec over roce-v2, MTU 1,500 B"
    assert table.rows[0] == ("wire", "42.3 GB/s", "84.6%")
    assert "Goodput factor 0.846" in table.notes[0] and "binds: wire" in table.notes[0]


def test_the_fast_domain_is_left_alone():
    inside = {"group": 8}
    assert ask(**inside).timings[0].time_s == ask(**inside, overlay="vxlan", mtu=1500).timings[0].time_s


def test_usual_frames_change_nothing():
    assert ask(overlay="none").timings == ask().timings
    assert collective("all-reduce", "1GiB", "tpu-v5p:4x4x4", slices=2, overlay="none").overlays[0].framing == "tcp"


def test_knobs_of_a_link_reach_every_answer(tmp_path):
    clean, knobs = with_link(tmp_path, LINK), ask(catalog=with_link(tmp_path, LINK + KNOBS))
    assert lint(Catalog.open(tmp_path)).problems == ()
    found = knobs.overlays[0].result()
    assert found["bound"] == "packet rate"
    assert found["attained_bytes_per_s"] == 10.24e9
    assert found["step_latency_s"] == pytest.approx(5e-6)
    assert [row[0] for row in knobs.tables()[1].rows] == ["wire", "packet rate"]
    (tmp_path / "links" / "roce-400g.yaml").write_text(LINK)
    clean = Catalog.open(tmp_path)
    assert knobs.timings[0].time_s > 3 * ask(catalog=clean).timings[0].time_s
    asked = {"layout": "tp=8 zero=1", "batch": 256, "sequence_length": 4096}
    fast = train("llama-3-8b", "meta-roce-24k:128", catalog=clean, **asked).estimates[0]
    slow = train("llama-3-8b", "meta-roce-24k:128", catalog=with_link(tmp_path, LINK + KNOBS), **asked).estimates[0]
    assert slow.step_time_s > fast.step_time_s


def test_what_is_asked_for_takes_the_place_of_the_entry(tmp_path):
    catalog = with_link(tmp_path, LINK + KNOBS)
    found = ask(catalog=catalog, overlay="none", mtu=4200).overlays[0].result()
    assert found["encapsulation"] == [] and found["payload_bytes"] == 4096
    assert found["by_packets_bytes_per_s"] == 40.96e9


def test_an_entry_shows_its_overlay(tmp_path):
    rows = show_hardware("roce-400g", with_link(tmp_path, LINK + KNOBS)).long_records()
    assert {"overlay.mtu", "overlay.packet_rate"} <= {row["field"] for row in rows}


@pytest.mark.parametrize(("bad", "field"), [("[vxlann]", "encapsulation"), ("roce", "framing")])
def test_lint_names_what_nothing_is_called(tmp_path, bad, field):
    catalog = with_link(tmp_path, f"{LINK}overlay:\n  {field}: {bad}\n")
    assert [problem.field for problem in lint(catalog).problems] == [f"overlay.{field}"]


@pytest.mark.parametrize(
    ("on", "more", "message"),
    [
        (ROCE, {"overlay": "vxlam"}, "unknown overlay 'vxlam': did you mean vxlan"),
        (ROCE, {"overlay": "tcp,roce-v2"}, "one transport at most"),
        (ROCE, {"overlay": "none,vxlan"}, "contradicts itself"),
        (ROCE, {"mtu": 100}, "from 256 to 65536"),
        (ROCE, {"overlay": "tcp,vxlan,ipsec,wireguard,gre,nvgre", "mtu": 256}, "leaves no room"),
        ("dgx-h100:1024", {"overlay": "vxlan"}, "InfiniBand, which carries no vxlan"),
        ("dgx-h100:8", {"overlay": "vxlan"}, "uses no network"),
        ("aws-p5:64", {"overlay": "vxlan"}, "name it, such as `tcp`"),
    ],
)
def test_refusals(on, more, message):
    with pytest.raises(InputError, match=message):
        ask(on, **more)
