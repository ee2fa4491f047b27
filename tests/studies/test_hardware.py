"""hardware list, hardware show, catalog check."""

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report.csv import render as csv
from costmodel.report.tables import render
from costmodel.studies.hardware import check_catalog, list_hardware, show_hardware


def test_list_tells_every_entry_with_its_headline_numbers():
    answer = list_hardware()
    rows = {(row["kind"], row["name"]): row for row in answer.results()}
    dgx = rows["cluster", "dgx-h100"]
    assert "h100" in dgx["aliases"] and dgx["domain_chips"] == 8
    assert dgx["network_bytes_per_s"] == 50e9 and dgx["peak_bf16_flop_per_s"] == pytest.approx(989.4e12)
    assert dgx["price_usd_per_chip_hour"] > 1 and dgx["price_date"].startswith("2026")
    assert rows["cluster", "tpu-v5p"]["domain_shape"] == "16x20x28"
    assert rows["chip", "tpu-8t"]["peak_bf16_flop_per_s"] is None
    assert rows["link", "nvlink4"]["bandwidth_bytes_per_s"] == 450e9
    assert len(rows) == sum(len(Catalog.open().names(kind)) for kind in ("clusters", "chips", "links"))
    assert answer.exit_code == 0


def test_list_fits_eighty_columns():
    text = render(list_hardware())
    assert max(map(len, text.splitlines())) <= 80
    assert "rtx-pro-6000-server  8" in text, "no name is broken over lines"
    assert "tpu-v5p:8x16x16" in text and "v5p-4096" in text


def test_list_of_one_kind():
    assert {row["kind"] for row in list_hardware("links").results()} == {"link"}
    assert [table.title for table in list_hardware("chips").tables()] == ["Chips"]
    with pytest.raises(InputError, match=r"unknown kind of hardware 'chip': did you mean chips\?"):
        list_hardware("chip")


def test_show_tells_each_number_with_unit_source_text_and_confidence():
    (result,) = show_hardware("h100-sxm").results()
    fact = result["facts"]["spec.peak.bf16"]
    assert fact["value"] == 989.4e12 and fact["unit"] == "FLOP/s" and fact["stated"] == "989.4 TFLOP/s"
    assert fact["confidence"] == "quoted" and "stas00/ml-engineering" in fact["source_text"]
    text = render(show_hardware("h100-sxm"))
    assert "989.4 TFLOP/s" in text and "[1]" in text and "stas00/ml-engineering" in text and "Also called h100" in text
    assert max(map(len, text.splitlines())) <= 80


def test_show_tells_why_something_is_unknown():
    (result,) = show_hardware("tpu-8i").results()
    assert result["facts"]["spec.peak.bf16"] == {"unknown": result["facts"]["spec.peak.bf16"]["unknown"]}
    assert "spec.power: Google does not publish it" in render(show_hardware("tpu-8i"))


def test_show_finds_a_cluster_and_its_chip_under_one_name():
    cluster, chip = show_hardware("tpu-v5p").results()
    assert (cluster["kind"], chip["kind"]) == ("cluster", "chip")
    assert cluster["fields"]["scale_up.job_limit"] == "16x16x24"
    with pytest.raises(InputError, match=r"unknown hardware 'dgx-h10': did you mean dgx-h100"):
        show_hardware("dgx-h10")


def test_columns_carry_units():
    (row,) = show_hardware("dgx-h100").records()
    assert row["host_power_w"] == 10200 and row["prices_coreweave_on_demand_usd_per_chip_hour"] == 6.155
    (row,) = show_hardware("nvlink4").records()
    assert row["bandwidth_bytes_per_s"] == 450e9 and row["latency_s"] == 6e-7 and row["attainable_collective"] == 0.82
    long = show_hardware("nvlink4").long_records()
    assert [line["field"] for line in long][:2] == ["spec.bandwidth", "spec.latency"]
    assert csv(long).count("\n") == len(long) + 1


def test_check_of_the_shipped_catalog():
    answer = check_catalog()
    assert answer.exit_code == 0 and answer.results() == [] and answer.extras()["files"] > 250
    assert "nothing is wrong" in render(answer)


def test_check_of_a_users_folder(tmp_path):
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "mine.yaml").write_text("name: mine\nvendor: nvidia\n")
    answer = check_catalog(tmp_path)
    assert answer.exit_code == 1
    (problem,) = answer.results()
    assert problem == {
        "file": str(tmp_path / "chips" / "mine.yaml"),
        "line": 1,
        "field": "",
        "problem": "the key 'kind' is missing",
    }
    assert answer.records() == answer.long_records() == answer.results()
    text = render(answer)
    assert "1 problem" in text and "mine.yaml:1: the key 'kind' is missing" in " ".join(text.split())
    with pytest.raises(InputError, match="is not a folder"):
        check_catalog(tmp_path / "gone")
