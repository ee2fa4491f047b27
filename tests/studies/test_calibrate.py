"""Calibration, from files to an overlay that another command loads."""

import datetime as dt
import re
from statistics import median

import pytest

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.catalog.lint import lint
from costmodel.errors import InputError
from costmodel.report import Format
from costmodel.report.write import render
from costmodel.studies import calibrate as module
from costmodel.studies.calibrate import calibrate
from costmodel.studies.calibration import overlay
from costmodel.studies.collective import collective
from costmodel.studies.validate import validate
from tests.studies.calibration import synthetic

DAY = dt.date(2026, 3, 14)
NVLINK, NDR, H100 = "links/nvlink4.yaml", "links/infiniband-ndr.yaml", "chips/h100-sxm.yaml"
STEP_FACTORS = {"training_matmul": 0.85, "training_attention": 0.85}


def moved(answer):
    return {one.constant.name: one.after / one.before for fit in answer.fits for one in fit.constants if not one.why}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Logs of a machine whose links are slower than the catalog says, by known factors."""
    folder = tmp_path_factory.mktemp("logs")
    synthetic.scaled(folder / "true", NVLINK, {r"(?:ll|ll128|simple)_share": 0.8, r"(?:ll|ll128|simple)_start": 1.4})
    true = synthetic.scaled(folder / "true", NDR, {r"\w+_nic_share": 0.7})
    files = []
    for on, chips in (("dgx-h100:1x8", 8), ("dgx-h100:4x8", 32)):
        files.append(folder / f"all_reduce_perf-{chips}.txt")
        files[-1].write_text(synthetic.nccl_log("all-reduce", on, true, chips=chips, seed=chips))
    return files


def test_links_are_recovered_and_the_overlay_predicts_what_was_measured(logs, tmp_path):
    answer = calibrate(logs, on="dgx-h100:32", output=tmp_path / "mine", today=DAY)
    (fit,) = answer.fits
    found = {f"{one.constant.name} {one.constant.of}": one.after / one.before for one in fit.constants if not one.why}
    assert found["share of rings nvlink4, fast domain"] == pytest.approx(0.8, rel=0.01)
    assert found["start nvlink4, fast domain"] == pytest.approx(1.4, rel=0.03)
    assert found["share infiniband-ndr, network"] == pytest.approx(0.7, rel=0.01)
    assert fit.before.median > 0.1
    assert fit.after.median < 0.01
    written = Catalog.open(tmp_path / "mine")
    assert lint(written).problems == ()
    number = written.link("nvlink4").library.constants["simple_share"]
    assert (number.source, number.confidence) == (
        "calibrated on all_reduce_perf-8.txt, all_reduce_perf-32.txt, 2026-03-14",
        "fitted",
    )
    assert number.note == f"{Catalog.open().link('nvlink4').library.constants['simple_share'].stated} before"
    errors = []
    for log, on in zip(logs, ("dgx-h100:1x8", "dgx-h100:4x8"), strict=True):
        for line in log.read_text().splitlines():
            if re.match(r"\s+\d", line):
                size, time = int(line.split()[0]), float(line.split()[5]) * 1e-6
                predicted = collective("all-reduce", size, on, catalog=written).timings[0].time_s
                errors.append(abs(predicted / time - 1))
    assert median(errors) == pytest.approx(fit.on_the_same.median, rel=1e-9, abs=1e-12)
    untouched = (shipped("hardware") / NVLINK).read_text()
    assert (
        untouched.split("library:")[0]
        == (tmp_path / "mine" / NVLINK).read_text().split("library:")[0].split("\n", 1)[1]
    )


def test_sums_in_the_switches_are_recovered(tmp_path):
    """Most all-reduces of a node and of two are added in the switches: their share is that of the link, not of its library."""
    true = synthetic.scaled(tmp_path / "true", NVLINK, {"in_network": 0.85})
    log = tmp_path / "all_reduce_perf.txt"
    log.write_text(synthetic.nccl_log("all-reduce", "dgx-h100:1x8", true, chips=8, low=2**20, high=2**33))
    answer = calibrate([log], on="dgx-h100:8", output=tmp_path / "mine")
    assert moved(answer)["share of sums in the switches"] == pytest.approx(0.85, rel=0.02)
    assert answer.fits[0].after.median < 0.02
    written = Catalog.open(tmp_path / "mine")
    assert lint(written).problems == ()
    assert written.link("nvlink4").attainable["in_network"].value == pytest.approx(0.85 * 0.68, rel=0.02)


def test_noise_about_the_catalog_leaves_it_where_it_is(tmp_path):
    log = tmp_path / "all_reduce_perf.txt"
    for seed in range(3):
        log.write_text(synthetic.nccl_log("all-reduce", "dgx-h100:1x8", Catalog.open(), chips=8, noise=0.05, seed=seed))
        answer = calibrate([log], on="dgx-h100:8")
        assert all(abs(factor - 1) < 0.06 for factor in moved(answer).values()), (seed, moved(answer))
        assert answer.fits[0].after.median <= answer.fits[0].before.median * 1.1


def test_two_measurements_move_nothing(tmp_path):
    true = synthetic.scaled(tmp_path / "true", NVLINK, {r"(?:ll|ll128|simple)_share": 0.5})
    log = tmp_path / "all_gather_perf.txt"
    log.write_text(synthetic.nccl_log("all-gather", "dgx-h100:1x8", true, chips=8, low=2**28, high=2**29))
    answer = calibrate([log], on="dgx-h100:8", output=tmp_path / "mine")
    assert moved(answer) == {}
    assert not (tmp_path / "mine").exists()
    assert answer.notes == ("nothing moved, and no overlay is written: the catalog stands",)


def test_repeats_of_one_size_cannot_judge_themselves(tmp_path):
    true = synthetic.scaled(tmp_path / "true", NVLINK, {r"(?:ll|ll128|simple)_share": 0.5})
    log = tmp_path / "all_gather_perf.txt"
    log.write_text(5 * synthetic.nccl_log("all-gather", "dgx-h100:1x8", true, chips=8, low=2**28, high=2**28))
    (fit,) = calibrate([log], on="dgx-h100:8").fits
    assert (fit.groups, fit.after.median, fit.moved) == (1, None, False)
    assert "repeats of one" in " ".join(fit.notes)


def test_products_are_recovered_and_validate_agrees_with_the_error_that_is_told(tmp_path):
    true = synthetic.scaled(
        tmp_path / "true", "kernels/h100-sxm.yaml", {"peak_share": 0.9, "start": 2.0, "memory_share": 0.8}
    )
    table = tmp_path / "products.csv"
    table.write_text(synthetic.products("h100-sxm", true))
    answer = calibrate([table], chip="h100", output=tmp_path / "mine")
    assert moved(answer) == pytest.approx(
        {"share of peak": 0.9, "start": 2.0, "share of memory bandwidth": 0.8}, rel=0.01
    )
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    judged = tmp_path / "kernels.csv"
    header = "kind,chip,precision,groups,rows,columns,features,weight_copies,time_us\n"
    judged.write_text(header + "".join(f"matmul,h100-sxm,bf16,1,{m},{n},{k},1,{time}\n" for m, n, k, _, time in rows))
    (told,) = validate("kernels", table=judged, catalog=Catalog.open(tmp_path / "mine")).summaries("kernels")
    assert told.median_abs_error == pytest.approx(answer.fits[0].on_the_same.median, abs=1e-9)
    assert lint(Catalog.open(tmp_path / "mine")).problems == ()


@pytest.mark.parametrize("chip", ["gh200", "mi300x"])
def test_a_chip_without_measured_kernels_gets_a_file_of_them(chip, tmp_path):
    table = tmp_path / "products.csv"
    table.write_text(synthetic.products(chip, Catalog.open()))
    slower = [line.split(",") for line in table.read_text().splitlines()]
    table.write_text(
        "\n".join([",".join(slower[0])] + [",".join([*line[:4], str(1.3 * float(line[4]))]) for line in slower[1:]])
    )
    answer = calibrate([table], chip=chip, output=tmp_path / "mine")
    assert answer.fits[0].after.median < answer.fits[0].before.median
    written = Catalog.open(tmp_path / "mine")
    assert lint(written).problems == ()
    assert "matmul-bf16" in written.kernels(chip).kernels
    assert written.kernels(chip).kernels_of == Catalog.open().kernels(chip).kernels_of


def test_steps_are_recovered_and_validate_agrees_with_the_error_that_is_told(tmp_path):
    true = synthetic.scaled(tmp_path / "true", H100, STEP_FACTORS)
    table = synthetic.steps(synthetic.RUNS, true, tmp_path)
    answer = calibrate([table], on="dgx-h100:64", output=tmp_path / "mine")
    assert moved(answer)["share of peak in training"] == pytest.approx(0.85, rel=0.01)
    assert answer.fits[0].before.median > 0.05
    assert answer.fits[0].after.median < 0.01
    (told,) = validate("training", table=table, all_rows=True, catalog=Catalog.open(tmp_path / "mine")).summaries(
        "training"
    )
    assert told.median_abs_error == pytest.approx(answer.fits[0].on_the_same.median, abs=1e-9)


def test_a_share_that_reaches_its_end_asks_whether_this_is_the_machine(tmp_path):
    table = tmp_path / "fast.csv"
    rows = synthetic.products("h100-sxm", Catalog.open()).splitlines()
    cells = [line.split(",") for line in rows[1:]]
    table.write_text("\n".join([rows[0], *(",".join([*line[:4], str(float(line[4]) / 2)]) for line in cells)]))
    (fit,) = calibrate([table], chip="h100").fits
    assert any("is this the machine that was measured?" in note for note in fit.notes)


def test_the_entries_of_a_users_own_folder_come_along(logs, tmp_path):
    own = tmp_path / "own" / "clusters"
    own.mkdir(parents=True)
    text = (shipped("hardware") / "clusters/dgx-h100.yaml").read_text()
    (own / "our-h100.yaml").write_text(
        re.sub(r"aliases: .*", "aliases: []", text.replace("name: dgx-h100", "name: our-h100", 1))
    )
    calibrate(logs[:1], on="our-h100:8", output=tmp_path / "mine", catalog=Catalog.open(tmp_path / "own"))
    written = Catalog.open(tmp_path / "mine")
    assert written.cluster("our-h100").name == "our-h100"
    assert lint(written).problems == ()


def test_nothing_is_written_over_unless_it_is_asked_for(logs, tmp_path):
    folder = tmp_path / "mine"
    (folder / "links").mkdir(parents=True)
    mine = folder / NVLINK
    mine.write_text("name: nvlink4\n# mine\n")
    with pytest.raises(InputError, match=r"links/nvlink4\.yaml' is there already: give --force"):
        calibrate(logs[:1], on="dgx-h100:8", output=folder)
    assert mine.read_text() == "name: nvlink4\n# mine\n"
    calibrate(logs[:1], on="dgx-h100:8", output=folder, force=True)
    assert "calibrated on" in mine.read_text()


def test_an_interrupt_loses_nothing(logs, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    calibrate(logs[:1], on="dgx-h100:8", output=folder, today=DAY)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def interrupted(*_):
        raise KeyboardInterrupt

    for place, name in ((module, "fitted"), (overlay, "to_file")):
        monkeypatch.setattr(place, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            calibrate(logs[:1], on="dgx-h100:8", output=folder, force=True)
        monkeypatch.undo()
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_an_entry_in_any_style_keeps_its_comments():
    text = "name: x\nspec:  # of the sheet\n  a:\n    value: 1\n    unit: s  # seconds\n  # between\n  b: {value: 2,\n    unit: s}\n"
    new = overlay.edited(text, {("spec", "a"): "{value: 3}", ("spec", "b"): "{value: 4}"})
    assert new == "name: x\nspec:  # of the sheet\n  a:\n    {value: 3}  # seconds\n  # between\n  b: {value: 4}\n"


@pytest.mark.parametrize(
    ("value", "text"), [(0.00001234, "0.00001234"), (450e9, "450000000000"), (2.0, "2"), (0.1 + 0.2, "0.3")]
)
def test_numbers_are_written_as_yaml_reads_them(value, text):
    assert overlay.plain(value) == text


BAD = {
    "m,n,k,dtype,time_us\n1,2,3,bf16,fast\n": r"bad\.csv:2: time_us is 'fast'",
    "m,n,k,dtype,time_us\n1,2,3,bf16,1\n1,2,3,bf61,1\n": r"bad\.csv:3: .*did you mean bf16",
    "m,n,k,dtype,time_us\n1,2,0.5,bf16,1\n": r"bad\.csv:2: K is 0\.5, not a whole number",
    "m,n,k,dtype,time_us\n1,2,bf16,1\n": r"bad\.csv:2: 4 cells, but the table has 5 columns",
    "m,n,k,dtype,time_us\n": r"bad\.csv has no row",
    "m,n,k,dtype,time\n1,2,3,bf16,1\n": r"bad\.csv:1: the columns m, n, k, dtype, time are those of nothing",
    "m,n,k,chip,time_us\n1,2,3,a100,1\n": r"bad\.csv:2: the row is of a100-sxm-80gb, and h100-sxm is calibrated",
    "a,b\n1,2\n": r"bad\.csv:1: the columns a, b",
    "": "is empty",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_cannot_be_read_is_named_with_its_line(text, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=BAD[text]) as raised:
        calibrate([tmp_path / "bad.csv"], chip="h100")
    assert "\n" not in str(raised.value)


def test_what_is_missing_is_asked_for(logs, tmp_path):
    with pytest.raises(InputError, match="--on CLUSTER:SIZE, or --chip"):
        calibrate(logs)
    with pytest.raises(InputError, match="give --on CLUSTER:SIZE in place of --chip"):
        calibrate(logs, chip="h100")
    with pytest.raises(InputError, match="no file was given"):
        calibrate([], chip="h100")
    with pytest.raises(InputError, match="No such file"):
        calibrate([tmp_path / "none.txt"], chip="h100")
    with pytest.raises(InputError, match=r"the output lists 32 ranks: .*ask for at most rtx-5090-workstation:4"):
        calibrate(logs[1:], on="rtx-5090-workstation:2")


@pytest.mark.parametrize("form", [Format.TABLE, Format.CSV, Format.JSON, Format.MARKDOWN])
def test_the_answer_in_every_format(logs, form):
    text = render(calibrate(logs[:1], on="dgx-h100:8"), form)
    assert "nvlink4" in text or form is Format.CSV
