"""YAML as it is refused: each trap with its file, line and field."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.facts import fact
from costmodel.catalog.reader import DEEPEST, LARGEST_FILE, Mapping, Scalar, parse, read
from costmodel.errors import CatalogError


def block(text):
    return parse(text.encode(), "my/chip.yaml")


def refusal(text, take=lambda _: None):
    with pytest.raises(CatalogError) as caught:
        take(block(text))
    return caught.value


HOSTILE = {
    "key twice": (b"a: 1\nb: 2\na: 3\n", "my/chip.yaml:3: a: the key is given twice, first on line 1"),
    "key twice, deep": (
        b"s:\n  p:\n    x: 1\n    x: 2\n",
        "my/chip.yaml:4: s.p.x: the key is given twice, first on line 3",
    ),
    "key twice in one line": (b"a: {b: 1, b: 2}", "my/chip.yaml:1: a.b: the key is given twice, first on line 1"),
    "anchor": (b"a: &x 1\n", "my/chip.yaml:1: anchors and aliases (&, *) are not used here: x"),
    "alias": (b"a: 1\nb: *x\n", "my/chip.yaml:2: anchors and aliases (&, *) are not used here: x"),
    "tag": (b"a: !!python/object/apply:os.system [ls]\n", "my/chip.yaml:1: tags (!) are not used here: tag:yaml.org"),
    "tag on a scalar": (b"a: !!float 1\n", "my/chip.yaml:1: tags (!) are not used here"),
    "second document": (b"a: 1\n---\nb: 2\n", "my/chip.yaml:2: a file holds one document"),
    "list at the top": (b"- a\n- b\n", "my/chip.yaml:1: expected `key: value` lines"),
    "text at the top": (b"hello", "my/chip.yaml:1: expected `key: value` lines"),
    "empty": (b"", "my/chip.yaml:1: expected `key: value` lines"),
    "only a comment": (b"# nothing\n", "my/chip.yaml:1: expected `key: value` lines"),
    "list as key": (b"? [a, b]\n: 1\n", "my/chip.yaml:1: a key must be a word"),
    "not closed": (b"a: [1, 2\n", "my/chip.yaml:2: not valid YAML"),
    "bad indent": (b"a: 1\n b: 2\n", "my/chip.yaml:2: not valid YAML"),
    "tab": (b"a:\n\tb: 1\n", "my/chip.yaml:2: not valid YAML"),
    "not UTF-8": (b"a: 1\nb: \xff\xfe\n", "my/chip.yaml:2: the file is not UTF-8 text"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "my/chip.yaml:1: the file is not UTF-8 text"),
    "control character": (b"a: \x00\n", "my/chip.yaml: not valid YAML"),
    "nested flow": (b"a: " + b"[" * 100_000, "my/chip.yaml"),
    "nested maps": (b"a: " + b"{a: " * 500, "my/chip.yaml:1: nested deeper than 12 levels"),
    "nested lists": (b"- " * 5000, "my/chip.yaml:1: nested deeper than 12 levels"),
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_refused_in_one_sentence(content, message):
    with pytest.raises(CatalogError) as caught:
        parse(content, "my/chip.yaml")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_bomb_of_aliases_costs_nothing():
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 30))
    assert "anchors and aliases" in str(refusal(f"l0: &l0 [lol]\n{levels}\n"))


def test_nesting_is_read_down_to_its_limit():
    inside = "{a: " * (DEEPEST - 1) + "1" + "}" * (DEEPEST - 1)
    assert "a" in block(f"a: {inside}")
    with pytest.raises(CatalogError, match="nested deeper"):
        block(f"a: {{a: {inside}}}")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    with suppress(CatalogError):
        assert list(parse(content, "f")) is not None


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CatalogError, match=r"gone\.yaml: there is no such file"):
        read(tmp_path / "gone.yaml")
    with pytest.raises(CatalogError, match="not a regular file"):
        read(tmp_path)
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (LARGEST_FILE + 1))
    with pytest.raises(CatalogError, match="larger than 256 KiB"):
        read(huge)


def test_a_byte_order_mark_is_skipped():
    assert parse(b"\xef\xbb\xbfname: x\n", "f").text("name") == "x"


NOT_NUMBERS = {
    "989.4e12": "YAML 1.1 reads '989.4e12' as text: write 989.4e+12",
    "1e-6": "YAML 1.1 reads '1e-6' as text: write 1.0e-6",
    "1e6": "YAML 1.1 reads '1e6' as text: write 1.0e+6",
    "'989'": "'989' is text: write it without quotes",
    '"1.5"': "'1.5' is text: write it without quotes",
    ".nan": "expected a finite number",
    ".inf": "expected a finite number",
    "-.inf": "expected a finite number",
    "1.0e+999": "1.0e+999 is not finite",
    "": "it is empty; what is not known is written {unknown: reason}",
    "null": "it is empty",
    "010": "expected a number such as 989.4 or 1.0e-6, not '010'",
    "1:30": "expected a number such as",
    "1_000": "expected a number such as",
    "0x10": "expected a number such as",
    "yes": "expected a number such as",
    "1 GB": "expected a number such as",
    "[1]": "expected a number",
    "9" * 60: "expected a number such as",
}


@pytest.mark.parametrize(("written", "message"), NOT_NUMBERS.items())
def test_what_is_not_a_number(written, message):
    error = refusal(f"x: 1\nvalue: {written}\n", lambda b: b.number("value"))
    assert str(error).startswith("my/chip.yaml:2: value: ")
    assert message in str(error)


@pytest.mark.parametrize(
    ("written", "value"),
    [("989.4", 989.4), ("-3", -3.0), ("1.0e-6", 1e-6), ("5.", 5.0), ("+2.5E+3", 2500.0), ("0", 0.0)],
)
def test_what_is_a_number(written, value):
    assert block(f"value: {written}").number("value") == value


def test_other_values_say_what_they_must_be():
    assert "did you mean bandwidth?" in str(refusal("bandwith: 1", lambda b: b.keys_are(("bandwidth",))))
    assert "the key 'unit' is missing" in str(refusal("value: 1", lambda b: b.keys_are(("value", "unit"))))
    assert "YAML does not read no as text" in str(refusal("name: no", lambda b: b.text("name")))
    assert "YAML does not read 405 as text" in str(refusal("name: 405", lambda b: b.text("name")))
    assert "expected text, it is empty" in str(refusal("name: ''", lambda b: b.text("name")))
    assert "expected true or false" in str(refusal("tied: yes", lambda b: b.boolean("tied")))
    assert "expected a whole number" in str(refusal("n: 1.5", lambda b: b.integer("n")))
    assert "-1 is out of range, 1 to 64" in str(refusal("n: -1", lambda b: b.integer("n", 1, 64)))
    assert "expected a list" in str(refusal("n: 1", lambda b: b.texts("n")))
    assert "'a' is listed twice" in str(refusal("n: [a, b, a]", lambda b: b.texts("n")))
    assert "expected a date" in str(refusal("date: 2026-13-01", lambda b: b.date("date")))
    assert "did you mean torus?" in str(refusal("kind: tours", lambda b: b.choice("kind", ("torus", "mesh"))))
    assert "item 2 must be" in str(refusal("p:\n  - a: 1\n  - b\n", lambda b: b.blocks("p")))
    assert [inner.field for inner in block("p: [{a: 1}, {a: 2}]").blocks("p")] == ["p[0]", "p[1]"]
    assert block("d: 2026-09\n").date("d") == "2026-09"
    assert block("t: true\n").boolean("t") is True


def one_fact(text, quantity="bytes per second", low=1e10, high=1e14):
    return fact(block(f"spec:\n  bandwidth: {text}\n").block("spec"), "bandwidth", quantity, low, high)


def test_a_fact_is_a_number_in_si_that_knows_its_place():
    number = one_fact("{value: 3.35, unit: TB/s, source: sheet, confidence: datasheet, date: 2026-01, note: HBM3}")
    assert number.value == 3.35e12
    assert (number.unit, number.stated, number.source, number.date, number.note) == (
        "B/s",
        "3.35 TB/s",
        "sheet",
        "2026-01",
        "HBM3",
    )
    assert number.where == "my/chip.yaml:2: spec.bandwidth"


def test_an_unknown_fact_tells_its_reason_when_it_is_needed():
    unknown = one_fact("{unknown: not published}")
    with pytest.raises(Exception, match=re.escape("my/chip.yaml:2: spec.bandwidth is unknown (not published)")):
        _ = unknown.value


BAD_FACTS = {
    "{value: 3, source: s, confidence: measured}": "spec.bandwidth: the key 'unit' is missing",
    "{value: 3, unit: TB/s, confidence: measured}": "spec.bandwidth: the key 'source' is missing",
    "{value: 3, unit: TB/s, source: s}": "spec.bandwidth: the key 'confidence' is missing",
    "{unit: TB/s, source: s, confidence: measured}": "spec.bandwidth: the key 'value' is missing",
    "{value: 3, unit: TB/s, source: s, confidence: measurd}": "spec.bandwidth.confidence: 'measurd' is not known: did you mean measured?",
    "{value: 3, unit: TB/s, source: s, confidence: measured, nte: x}": "spec.bandwidth.nte: unknown key: did you mean note?",
    "{value: 3, unit: Gb/s, source: s, confidence: measured}": "spec.bandwidth.unit: unknown unit 'Gb/s': it does not say bits or bytes",
    "{value: 3, unit: GBps, source: s, confidence: measured}": "spec.bandwidth.unit: unknown unit 'GBps': write GB/s",
    "{value: 3, unit: GiB, source: s, confidence: measured}": "spec.bandwidth.unit: 'GiB' is a unit of bytes; expected bytes per second",
    "{value: 3, unit: GB/s, source: s, confidence: measured}": "spec.bandwidth.value: 3 GB/s is out of range, 1e+10 to 1e+14 B/s",
    "{value: -3, unit: TB/s, source: s, confidence: measured}": "spec.bandwidth.value: -3 TB/s is out of range",
    "{value: 9000, unit: TB/s, source: s, confidence: measured}": "spec.bandwidth.value: 9000 TB/s is out of range",
    "{value: '3', unit: TB/s, source: s, confidence: measured}": "spec.bandwidth.value: expected a number, '3' is text",
    "3350": "spec.bandwidth: expected `key: value` lines",
    "{unknown: }": "spec.bandwidth.unknown: expected text, it is empty",
    "{unknown: lost, value: 3}": "spec.bandwidth.value: unknown key",
}


@pytest.mark.parametrize(("written", "message"), BAD_FACTS.items())
def test_a_fact_that_cannot_be_trusted_is_refused(written, message):
    with pytest.raises(CatalogError) as caught:
        one_fact(written)
    assert str(caught.value).startswith(f"my/chip.yaml:2: {message}")
    assert (caught.value.file, caught.value.line) == ("my/chip.yaml", 2)


def test_nodes_know_their_lines():
    node = block("a: 1\n\nb:\n  c: x\n")
    assert (node.line("a"), node.line("b"), node.block("b").line("c")) == (1, 3, 4)
    assert isinstance(node._node, Mapping) and node._node.items["a"] == Scalar("1", True, 1)
