"""Finding entries, laying a user's folder over the shipped one, and the hash of it all; and what lint says of bad files."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from costmodel.catalog.browse import find
from costmodel.catalog.catalog import ENVIRONMENT, Catalog, Shelf, shipped
from costmodel.catalog.lint import lint
from costmodel.errors import CatalogError, InputError
from costmodel.studies.plan import plan

CHIP = """\
name: my-chip
aliases: [mine]
vendor: other
kind: gpu
spec:
  peak:
    bf16: {value: 100, unit: TFLOP/s, source: my own data sheet, confidence: datasheet}
  memory_capacity: {value: 10, unit: GiB, source: my own data sheet, confidence: datasheet}
  memory_bandwidth: {value: 1, unit: TB/s, source: my own data sheet, confidence: datasheet}
  power: {unknown: no meter at hand}
attainable:
  matmul_bf16: {value: 0.9, unit: share, source: my own runs, confidence: measured}
  memory_bandwidth: {value: 0.9, unit: share, source: my own runs, confidence: measured}
  sustained: {value: 1.0, unit: share, source: my own runs, confidence: measured}
  kernel_matmul: {value: 0.9, unit: share, source: my own runs, confidence: measured}
  kernel_memory_bandwidth: {value: 0.8, unit: share, source: my own runs, confidence: measured}
  attention_matmul: {value: 0.5, unit: share, source: my own runs, confidence: measured}
  attention_exponentials: {unknown: not measured}
  training_matmul: {value: 0.8, unit: share, source: my own runs, confidence: measured}
  training_attention: {value: 0.5, unit: share, source: my own runs, confidence: measured}
  launch: {value: 2, unit: us, source: my own runs, confidence: measured}
"""
LINK = """\
name: my-link
kind: other
per: chip
spec:
  bandwidth: {value: 100, unit: GB/s, source: my own runs, confidence: measured}
  latency: {value: 1, unit: us, source: my own runs, confidence: measured}
attainable:
  collective: {value: 1.0, unit: share, source: my own runs, confidence: measured}
"""
CLUSTER = """\
name: my-cluster
chip: my-chip
chips_per_host: 4
host_link: my-link
largest_chips: 64
scale_up: {kind: switch, link: my-link, size: 4}
network:
  - name: fabric
    blocks: 0
    link: my-link
    links_per_host: 4
    oversubscription: {value: 1, unit: ratio, source: my own plan, confidence: guess}
prices:
  - provider: my own
    kind: on-demand
    usd_per_chip_hour: {value: 1, unit: USD/h, source: my own bill, confidence: measured, date: 2026-01-31}
"""


@pytest.fixture
def folder(tmp_path):
    for kind, name, text in (
        ("chips", "my-chip", CHIP),
        ("links", "my-link", LINK),
        ("clusters", "my-cluster", CLUSTER),
    ):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f"{name}.yaml").write_text(text)
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A small part of the shipped hardware, so that it is not all checked again with every bad file."""
    root = tmp_path_factory.mktemp("few")
    hardware = ("hardware/chips/h100-sxm.yaml", "hardware/links/nvlink4.yaml", "hardware/sources.yaml")
    for name in (*hardware, "models/standard/rule.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped("hardware").parent / name, root / name)
    return root


@pytest.fixture
def problems(few):
    def found(folder):
        return [str(problem) for problem in lint(Catalog(few / "hardware", few / "models", folder)).problems]

    return found


def test_a_users_folder_adds_entries(folder, problems):
    catalog = Catalog.open(folder)
    assert catalog.chip("my-chip").peak["bf16"].value == 100e12
    assert catalog.chip("mine") is catalog.chip("my-chip")
    assert catalog.cluster("MY-CLUSTER").prices[0].usd_per_chip_hour.date == "2026-01-31"
    assert {"my-chip", "h100-sxm"} <= set(catalog.names("chips"))
    assert problems(folder) == []


def test_a_users_folder_overrides_by_name(folder, problems):
    shutil.copy(shipped("hardware") / "links" / "nvlink4.yaml", folder / "links")
    edit(folder / "links" / "nvlink4.yaml", "value: 450, unit: GB/s", "value: 400, unit: GB/s")
    edit(folder / "links" / "nvlink4.yaml", "value: 18, unit: count", "value: 16, unit: count")
    catalog = Catalog.open(folder)
    assert catalog.link("nvlink4").bandwidth.value == 400e9
    assert catalog.link("nvlink-h100").bandwidth.value == 400e9, "the alias of the overriding file"
    assert catalog.names("links").count("nvlink4") == 1
    assert Catalog.open().link("nvlink4").bandwidth.value == 450e9
    assert problems(folder) == []


def test_the_folder_is_taken_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    assert "my-chip" in Catalog.open().names("chips")
    monkeypatch.setenv(ENVIRONMENT, str(folder / "gone"))
    with pytest.raises(InputError, match=ENVIRONMENT):
        Catalog.open()
    with pytest.raises(InputError, match="--catalog"):
        Catalog.open(folder / "gone")
    monkeypatch.setenv(ENVIRONMENT, "")
    assert Catalog.open().extra is None


def test_constants_are_added_and_overridden_one_by_one(folder):
    (folder / "assumptions").mkdir()
    constant = "meaning: m, value: 1.3, unit: ratio, source: my own bill, confidence: measured"
    (folder / "assumptions" / "energy.yaml").write_text(
        f"name: energy\nmeaning: mine\nconstants:\n  site_overhead: {{{constant}}}\n  extra: {{{constant}}}\n"
    )
    mine, shipped_ones = Catalog.open(folder).assumptions("energy"), Catalog.open().assumptions("energy")
    assert mine["site_overhead"].value == mine["extra"].value == 1.3
    assert mine["training_share"] == shipped_ones["training_share"]
    with pytest.raises(InputError, match=r"unknown set of assumptions 'enrgy': did you mean energy\?"):
        Catalog.open().assumptions("enrgy")


def test_the_hash_changes_with_every_file_that_matters(folder):
    before = Catalog.open(folder).hash()
    assert len(before) == 12 and before == Catalog.open(folder).hash()
    assert before != Catalog.open().hash()
    edit(folder / "chips" / "my-chip.yaml", "value: 100", "value: 101")
    after = Catalog.open(folder).hash()
    assert after != before
    (folder / "chips" / "my-chip.yaml").rename(folder / "chips" / "my-chips.yaml")
    assert Catalog.open(folder).hash() not in (before, after)


def test_a_folder_of_anything_is_neither_walked_nor_read_whole(folder):
    (folder / "deep" / "er" / "chips").mkdir(parents=True)
    (folder / "deep" / "er" / "chips" / "lost.yaml").write_text(CHIP)
    os.mkfifo(folder / "chips" / "pipe.yaml")
    before = Catalog.open(folder).hash()
    (folder / "deep" / "er" / "chips" / "lost.yaml").unlink()
    assert Catalog.open(folder).hash() == before
    assert Catalog.open(folder).chip("mine").name == "my-chip"
    with pytest.raises(InputError, match="unknown chip 'pipe'"):
        Catalog.open(folder).chip("pipe")


def test_a_name_reads_one_file(monkeypatch):
    catalog = Catalog.open()
    read = []
    monkeypatch.setattr(
        "costmodel.catalog.catalog.read", lambda path, shown: read.append(path.stem) or _read(path, shown)
    )
    assert catalog.cluster("dgx-h100").name == "dgx-h100" == catalog.cluster("h100").name
    assert read == ["dgx-h100"], "the alias scan reads text only, and an entry is kept"


def test_an_answer_reads_no_file_twice(monkeypatch):
    """Estimates of a hundred layouts asked for the same constants thousands of times."""
    read = []
    monkeypatch.setattr("costmodel.catalog.catalog.read", lambda path, shown: read.append(path) or _read(path, shown))
    plan("llama-3-8b", "dgx-h100:16", sequence_length=4096, batch=64, catalog=Catalog.open())
    assert len(read) == len(set(read)) > 5


def _read(path, shown):
    from costmodel.catalog.reader import read

    return read(path, shown)


@pytest.mark.parametrize(
    "name", ["h100-sxmm", "H100_SXM", "../chips/h100-sxm", "/etc/passwd", "", "a" * 500, "h100\n", "*"]
)
def test_unknown_names_are_answered_with_the_nearest(name):
    if name == "h100\n":
        assert Catalog.open().chip(name).name == "h100-sxm"
        return
    with pytest.raises(InputError, match="unknown chip") as caught:
        Catalog.open().chip(name)
    assert len(str(caught.value)) < 300
    if name.startswith(("h100", "H100")):
        assert "h100-sxm" in str(caught.value)


def test_find_looks_through_all_kinds():
    assert [(kind, entry.name) for kind, entry in find(Catalog.open(), "tpu-v5p")] == [
        ("clusters", "tpu-v5p"),
        ("chips", "tpu-v5p"),
    ]
    with pytest.raises(InputError, match=r"unknown hardware 'nvlink44': did you mean .*nvlink4"):
        find(Catalog.open(), "nvlink44")
    with pytest.raises(InputError, match="unknown kind of entry 'chip'"):
        Catalog.open().names("chip")


def test_aliases_are_found_in_either_form_of_list(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\naliases:\n  - first\n  - second\nkind: x\n")
    (tmp_path / "b.yaml").write_text("name: b\naliases: [third,\n  fourth]\nnote: [fifth]\n")
    (tmp_path / "c.yaml").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "d.yaml")  # reading it would wait for ever
    shelf = Shelf("thing", (tmp_path,))
    assert {alias: path.stem for alias, path in shelf.aliases().items()} == {
        "first": "a",
        "second": "a",
        "third": "b",
        "fourth": "b",
    }
    assert shelf.path("Second").stem == "a"


BAD = {
    "unit left out": ("chips", ", unit: TB/s", "", "chips/my-chip.yaml:9: spec.memory_bandwidth: the key 'unit' is missing"),
    "source left out": ("chips", "source: my own runs, ", "", "chips/my-chip.yaml:12: attainable.matmul_bf16: the key 'source' is missing"),
    "number as text": ("chips", "value: 100", "value: 1e14", "chips/my-chip.yaml:7: spec.peak.bf16.value: expected a number, YAML 1.1 reads '1e14' as text: write 1.0e+14"),
    "out of range": ("chips", "value: 100,", "value: 100000000,", "chips/my-chip.yaml:7: spec.peak.bf16.value: 1e+08 TFLOP/s is out of range"),
    "share over 1": ("chips", "{value: 0.9, unit: share", "{value: 90, unit: share", "chips/my-chip.yaml:12: attainable.matmul_bf16.value: 90 share is out of range, 0.01 to 1 share"),
    "key twice": ("chips", "  sustained:", "  memory_bandwidth: x\n  sustained:", "chips/my-chip.yaml:14: attainable.memory_bandwidth: the key is given twice, first on line 13"),
    "key misspelt": ("chips", "memory_capacity", "memory_capacty", "chips/my-chip.yaml:8: spec.memory_capacty: unknown key: did you mean memory_capacity"),
    "dtype misspelt": ("chips", "bf16:", "b16:", "chips/my-chip.yaml:7: spec.peak.b16: unknown key: did you mean bf16"),
    "no 16-bit peak": ("chips", "bf16:", "fp8:", "chips/my-chip.yaml:6: spec.peak: the peak of bf16 or fp16 is missing"),
    "vendor": ("chips", "vendor: other", "vendor: nvdia", "chips/my-chip.yaml:3: vendor: 'nvdia' is not known: did you mean nvidia?"),
    "name": ("chips", "name: my-chip", "name: my-chop", "chips/my-chip.yaml:1: name: the entry is called 'my-chop' but its file 'my-chip.yaml'"),
    "name with capitals": ("chips", "aliases: [mine]", "aliases: [Mine]", "chips/my-chip.yaml:2: aliases: 'Mine' is not a name"),
    "name as alias": ("chips", "aliases: [mine]", "aliases: [my-chip]", "chips/my-chip.yaml:2: aliases: 'my-chip' is the name itself"),
    "alias of another": ("chips", "aliases: [mine]", "aliases: [h100]", "chips/my-chip.yaml:2: aliases: 'h100' is also an alias of h100-sxm"),
    "name of another": ("chips", "aliases: [mine]", "aliases: [h100-sxm]", "chips/my-chip.yaml:2: aliases: 'h100-sxm' is the name of another entry"),
    "source that leads nowhere": ("chips", "source: my own runs", "source: gpu-bench", "chips/my-chip.yaml:12: attainable.matmul_bf16: the source 'gpu-bench' is not in sources.yaml: did you mean gpu-benches?"),
    "bandwidth in GB/s and not TB/s": ("chips", "value: 1, unit: TB/s", "value: 20, unit: GB/s", "chips/my-chip.yaml:9: spec.memory_bandwidth: the peak is 5e+03 FLOP a byte of memory bandwidth"),
    "fp8 slower": ("chips", "  memory_capacity", "    fp8: {value: 50, unit: TFLOP/s, source: my own guess, confidence: guess}\n  memory_capacity", "chips/my-chip.yaml:8: spec.peak.fp8: fp8 is slower than bf16"),
    "boost below clock": ("chips", "attainable:", "  clock: {value: 2, unit: GHz, source: my own sheet, confidence: datasheet}\n  clock_boost: {value: 1, unit: GHz, source: my own sheet, confidence: datasheet}\nattainable:", "chips/my-chip.yaml:11: spec.clock: clock is larger than clock_boost, 1 GHz"),
    "fp8 without its kernel": ("chips", "  launch:", "  training_matmul_fp8: {value: 0.5, unit: share, source: my own runs, confidence: measured}\n  launch:", "attainable.training_matmul_fp8: training_matmul_fp8 needs kernel_matmul_fp8 beside it"),
    "both directions": ("links", "  latency", "  links_per_chip: {value: 4, unit: count, source: my own sheet, confidence: datasheet}\n  bandwidth_per_link: {value: 12.5, unit: GB/s, source: my own sheet, confidence: datasheet}\n  latency", "links/my-link.yaml:5: spec.bandwidth: 4 links of 12.5 GB/s are 50 GB/s"),
    "no attainable share": ("links", "  collective", "  pair", "links/my-link.yaml:7: attainable: the key 'collective' is missing"),
    "chip that is not there": ("clusters", "chip: my-chip", "chip: my-chap", "clusters/my-cluster.yaml:2: chip: unknown chip 'my-chap': did you mean my-chip?"),
    "link that is not there": ("clusters", "link: my-link, size", "link: nvlink44, size", "clusters/my-cluster.yaml:6: scale_up.link: unknown link 'nvlink44': did you mean nvlink4"),
    "host link that is not there": ("clusters", "host_link: my-link", "host_link: pcie9", "clusters/my-cluster.yaml:4: host_link: unknown link 'pcie9'"),
    "network link that is not there": ("clusters", "    link: my-link", "    link: my-lnk", "clusters/my-cluster.yaml:10: network[0].link: unknown link 'my-lnk': did you mean my-link?"),
    "price without date": ("clusters", ", date: 2026-01-31", "", "clusters/my-cluster.yaml:16: prices[0].usd_per_chip_hour: a price needs the date on which it held"),
    "price of a bad date": ("clusters", "2026-01-31", "yesterday", "clusters/my-cluster.yaml:16: prices[0].usd_per_chip_hour.date: expected a date such as 2026-09-01"),
    "oversubscription below 1": ("clusters", "value: 1, unit: ratio", "value: 0.5, unit: ratio", "clusters/my-cluster.yaml:12: network[0].oversubscription.value: 0.5 ratio is out of range, 1 to 1000"),
    "domain that hosts do not fill": ("clusters", "size: 4", "size: 6", "clusters/my-cluster.yaml:6: scale_up.size: domains of 6 chips and hosts of 4 do not fit each other"),
    "chips that are not whole hosts": ("clusters", "largest_chips: 64", "largest_chips: 65", "clusters/my-cluster.yaml:5: largest_chips: 65 chips are not whole hosts of 4"),
    "torus larger than the cluster": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: always, largest: [4, 4]}", "clusters/my-cluster.yaml:5: largest_chips: the whole torus has 16 chips, not 64"),
    "wrap rule": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: exactly16, largest: [8, 8]}", "scale_up.wrap_rule: 'exactly16' is not known: did you mean exactly-16"),
    "shape": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: always, largest: [8, 8], shapes: [4x4x4]}", "scale_up.shapes: '4x4x4' is not a shape of 2 axes such as 4x4"),
    "shape larger than the torus": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: always, largest: [8, 8], shapes: [8x16]}", "scale_up.shapes: 8x16 has more chips than the whole torus"),
    "slice prefix": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: always, largest: [8, 8], slice_prefixes: [v9]}", "scale_up.slice_prefixes: 'v9' must also be an alias"),
    "key of a switch in a torus": ("clusters", "{kind: switch, link: my-link, size: 4}", "{kind: torus, link: my-link, wrap_rule: always, largest: [8, 8], size: 4}", "scale_up.size: unknown key"),
    "level that placements know": ("clusters", "  - name: ", "  - name: domain # ", "clusters/my-cluster.yaml:8: network[0].name: domain means something else in a placement"),
    "inner level without limit": ("clusters", "prices:", "  - {name: core, blocks: 0, link: my-link, links_per_host: 4, oversubscription: {unknown: lost}}\nprices:", "clusters/my-cluster.yaml:9: network[0].blocks: only the outermost level has no limit of blocks"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "old", "new", "message"), BAD.values(), ids=BAD)
def test_lint_names_file_line_and_field(folder, problems, kind, old, new, message):
    (path,) = (folder / kind).glob("*.yaml")
    edit(path, old, new)
    found = problems(folder)
    assert any(message in problem for problem in found), found
    assert all("\n" not in problem for problem in found)


def test_a_users_entry_called_like_a_shipped_alias_is_at_fault(folder, problems):
    (folder / "chips" / "my-chip.yaml").rename(folder / "chips" / "h100.yaml")
    edit(folder / "chips" / "h100.yaml", "name: my-chip", "name: h100")
    edit(folder / "clusters" / "my-cluster.yaml", "chip: my-chip", "chip: h100")
    (found,) = problems(folder)
    assert found.removeprefix(str(folder)) == (
        "/chips/h100.yaml:1: name: 'h100' is an alias of h100-sxm: call the entry otherwise"
    )


@pytest.mark.parametrize(("file", "asked"), [("My-Chip", "My-Chip"), ("My-Chip", "my-chip"), ("my_chip", "my_chip")])
def test_a_file_that_no_entry_can_be_called_after(folder, problems, file, asked):
    (folder / "chips" / "my-chip.yaml").rename(folder / "chips" / f"{file}.yaml")
    said = rf"chips/{file}\.yaml: the name of a file is lower case letters, digits, hyphens and dots"
    for look_up in (Catalog.open(folder).chip, lambda name: find(Catalog.open(folder), name)):
        with pytest.raises(CatalogError, match=said):
            look_up(asked)
    assert any(re.search(said, problem) for problem in problems(folder))


def test_a_folder_without_entries_is_refused(tmp_path):
    expected = "holds no entries; expected clusters/NAME.yaml, chips/NAME.yaml, "
    with pytest.raises(InputError, match=expected):
        Catalog.open(tmp_path)
    (tmp_path / "hardware" / "chips").mkdir(parents=True)
    (tmp_path / "hardware" / "chips" / "mine.yaml").write_text(CHIP)
    with pytest.raises(InputError, match=f"{expected}.*; 'hardware/chips/mine.yaml' is none of these"):
        Catalog.open(tmp_path)
    (tmp_path / "sources.yaml").write_text("mine: my own bench\n")
    assert Catalog.open(tmp_path).sources["mine"] == "my own bench"


def test_lint_reports_all_files_and_goes_on(folder, problems):
    (folder / "chips" / "broken.yaml").write_text("name: [")
    (folder / "chips" / "late.yml").write_text(CHIP)
    (folder / "my-chip.yaml").write_text(CHIP)
    (folder / "hardware" / "chips").mkdir(parents=True)
    (folder / "hardware" / "chips" / "deep.yaml").write_text(CHIP)
    (folder / "assumptions").mkdir()
    (folder / "assumptions" / "mine.yaml").write_text(
        "name: mine\nmeaning: m\nconstants:\n  x: {value: 1, unit: s, source: s, confidence: guess}\n"
    )
    (folder / "sources.yaml").write_text("mine: [a]\n")
    found = problems(folder)
    assert len(found) == 6
    for place in (
        "hardware/chips/deep.yaml: nothing reads this file",
        "broken.yaml:2: not valid YAML",
        "late.yml: nothing reads this file",
        "/my-chip.yaml: nothing reads this file",
        "mine.yaml:4: constants.x: the key 'meaning' is missing",
        "sources.yaml:1: mine: expected text",
    ):
        assert any(place in problem for problem in found), place


def test_an_entry_is_refused_as_lint_says(folder):
    edit(folder / "chips" / "my-chip.yaml", "value: 100,", "value: '100',")
    with pytest.raises(CatalogError) as caught:
        Catalog.open(folder).chip("my-chip")
    assert (caught.value.line, caught.value.field) == (7, "spec.peak.bf16.value")
    assert caught.value.file.endswith("chips/my-chip.yaml")


def test_looking_up_an_entry_is_light():
    """The `collective` command has 0.2 s: neither numpy nor sympy may come along."""
    program = "import sys; from costmodel.catalog.catalog import Catalog; Catalog.open().cluster('dgx-h100'); print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=shipped("hardware").parent
    ).stdout.split()
    assert {"yaml"} <= set(modules) and not {"numpy", "sympy", "importlib.metadata"} & set(modules)
