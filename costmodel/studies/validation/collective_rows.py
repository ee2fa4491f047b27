"""Rows of tables of measured collectives: what each one ran, in the catalog's words, or why that is not known.

Two formats are read. Ours names a machine (`dgx-h100:4x8`) and an operation as the command line does. In the other, columns are
`chip, n_gpus, nodes, op, impl, dtype, bytes, time_us, busbw_GBps`, and systems are named as people name them: "H100 + 8x400G".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError

OURS = ("id", "machine", "operation", "payload_bytes", "time_us")
THEIRS = ("chip", "n_gpus", "nodes", "op", "impl", "bytes", "time_us", "busbw_GBps")
PEAK = 2**34
"""Payload of a row that tells a peak and no payload: the largest of those that are measured, 16 GiB."""

DOMAIN_CLUSTERS = {
    "gb300": "dgx-gb300",
    "gb200": "dgx-gb200",
    "b300": "dgx-b300",
    "b200": "dgx-b200",
    "h200": "dgx-h200",
    "h100": "dgx-h100",
    "h800": "h800-cluster",
    "h20": "h20-cluster",
    "a100": "dgx-a100",
    "a800": "a800-cluster",
    "v100": "dgx-2",
    "mi300x": "mi300x-cluster",
    "mi325x": "mi325x-cluster",
    "mi355x": "mi355x-cluster",
    "rtx pro 6000": "rtx-pro-6000-server",
}
"""What joins chips of each name in one fast domain; longer names first."""
CLOUDS = {
    "p6-b300": "aws-p6-b300",
    "p6-b200": "aws-p6-b200",
    "p5en": "aws-p5en",
    "p5e": "aws-p5e",
    "p5": "aws-p5",
    "p4de": "aws-p4de",
    "p4d": "aws-p4d",
}
"""Machine shapes of a cloud, which tell the network too."""
OPERATIONS = {
    "all_gather": "all-gather",
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "allreduce": "all-reduce",
    "alltoall": "all-to-all",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "send_recv": "send-recv",
    "sendrecv": "send-recv",
    "p2p": "send-recv",
}


class UnspecifiedError(Exception):
    """A row does not say enough to be predicted; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. Seconds, bytes, bytes a second; what is not told is None.

    `family` is the algorithm that ran where that is told, `no_in_switch` that switches did not add; `started_by` the framework whose
    host started each collective by itself. `skipped` is why it cannot be predicted.
    """

    id: str
    source: str
    machine: str = ""
    axes: str | None = None
    operation: str = ""
    family: str = ""
    no_in_switch: bool = False
    started_by: str | None = None
    dtype: str | None = None
    payload: int = 0
    time_s: float | None = None
    busbw_bytes_per_s: float | None = None
    part: str = ""
    skipped: str = ""


def rows_of(table: Path, catalog: Catalog) -> Iterator[Row]:
    """The rows of a table in either format; raises InputError for a file that is neither, or cannot be read."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            header = tuple(reader.fieldnames or ())
            if not knows(header):
                raise InputError(
                    f"{table} is no table of collectives: expected the columns {', '.join(THEIRS)}, or {', '.join(OURS)}"
                )
            read = _ours if set(OURS) <= set(header) else _theirs
            for line, cells in enumerate(reader, 2):
                yield read(cells, f"{table.stem}:{line}", catalog)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table} cannot be read: {error}") from None


def knows(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns holds measured collectives."""
    return set(OURS) <= set(columns) or set(THEIRS) <= set(columns)


def _ours(cells: Mapping[str, str | None], where: str, catalog: Catalog) -> Row:
    """A row of a table of this project."""
    del catalog
    name, source = _text(cells, "id") or where, _text(cells, "source")
    try:
        return _told(cells)
    except UnspecifiedError as missing:
        return Row(id=name, source=source, skipped=str(missing))


def _told(cells: Mapping[str, str | None]) -> Row:
    return Row(
        id=_text(cells, "id"),
        source=_text(cells, "source"),
        machine=_text(cells, "machine"),
        axes=_text(cells, "axes") or None,
        operation=_text(cells, "operation"),
        family=_text(cells, "algorithm"),
        no_in_switch=_text(cells, "in_switch") == "no",
        started_by=_text(cells, "started_by") or None,
        dtype=_text(cells, "dtype") or None,
        payload=int(_number(cells, "payload_bytes") or PEAK),
        time_s=_seconds(cells),
        busbw_bytes_per_s=_rate(cells, "busbw_gb_per_s"),
        part=_text(cells, "part"),
        skipped=_text(cells, "not_predicted"),
    )


def _theirs(cells: Mapping[str, str | None], where: str, catalog: Catalog) -> Row:
    """A row in the other format."""
    chip, source = _text(cells, "chip"), _text(cells, "source")
    row = Row(id=f"{where} {chip} {_text(cells, 'op')} {_text(cells, 'impl')}", source=source)
    try:
        row = replace(row, time_s=_seconds(cells), busbw_bytes_per_s=_rate(cells, "busbw_GBps"))
        return _specified(cells, row, catalog)
    except (UnspecifiedError, InputError) as missing:
        return replace(row, skipped=str(missing))


def _specified(cells: Mapping[str, str | None], row: Row, catalog: Catalog) -> Row:
    if row.time_s is None and row.busbw_bytes_per_s is None:
        raise UnspecifiedError("neither a time nor a bus bandwidth is told")
    chip, implementation = _text(cells, "chip").lower(), _text(cells, "impl").lower()
    text, count = _text(cells, "op").lower().replace("-", "_"), _whole(cells, "n_gpus")
    if text.startswith("moe_") or "deepep" in implementation:
        raise UnspecifiedError("a kernel library of its own for tokens (DeepEP), not a collective of NCCL")
    if text not in OPERATIONS:
        raise UnspecifiedError(f"{_text(cells, 'op')!r} is no operation that is modelled")
    if count is None:
        raise UnspecifiedError("how many ranks took part is not told")
    operation, ranks = OPERATIONS[text], count
    payload = _number(cells, "bytes")
    if payload is None and row.time_s is not None:
        raise UnspecifiedError("the payload is not told")
    nodes = _whole(cells, "nodes")
    tpu = re.search(r"tpu[ -]?(v\w+) (\d+(?:x\d+)+)", chip)
    if "sharp" in chip and re.search(r"\d+x\d+g", chip):
        raise UnspecifiedError("switches of the network that add (SHARP) are not modelled as a library runs them")
    if tpu is not None:
        machine, axes = _slice(tpu[1], tpu[2], ranks, catalog)
    else:
        machine, axes = _switched(chip, ranks, nodes, catalog), None
    _check_implementation(implementation, operation, payload)
    no_in_switch = bool(
        re.search(r"no sharp|nvls off|\bring\b", implementation)
        or ("peak" in implementation and "sharp" not in chip + implementation)
    )
    return replace(
        row,
        machine=machine,
        axes=axes,
        operation=operation,
        family=_family(implementation),
        no_in_switch=no_in_switch,
        started_by=_host(implementation),
        dtype={"int8": "int8"}.get(_text(cells, "dtype").lower()),
        payload=int(payload) if payload else PEAK,
    )


def _check_implementation(implementation: str, operation: str, payload: float | None) -> None:
    if "oneccl" in implementation:
        raise UnspecifiedError("nothing is known of oneCCL")
    if re.search(r"vllm|trtllm|sglang|custom", implementation) and operation == "all-reduce":
        raise UnspecifiedError(
            "a framework's own all-reduce, which runs in place of NCCL's up to a size that is not told"
        )
    if "ratio" in implementation:
        raise UnspecifiedError("a share of an unknown bandwidth")
    if (
        payload is None
        and "p2p" not in implementation
        and "peak" not in implementation
        and "ib_write" not in implementation
    ):
        raise UnspecifiedError("the payload is not told")
    if "ib_write" in implementation:
        raise UnspecifiedError("a test of the link, not a collective")


def _host(implementation: str) -> str | None:
    """The framework that started each collective by itself; times of kernels as profilers tell them hold no such thing."""
    if "via torch" in implementation or "eager" in implementation:
        return "torch"
    return "jax" if "jax/nccl" in implementation else None


def _family(implementation: str) -> str:
    """The algorithm that ran, where it is told; a curve called NVLSTree is what NCCL takes when it may take that."""
    if (
        re.search(r"(?<!\()\bring\b(?! of)", implementation)
        and "default" not in implementation
        and "xla" not in implementation
    ):
        return "ring"
    return ""


def _switched(chip: str, ranks: int, nodes: int | None, catalog: Catalog) -> str:
    """The machine of GPUs that a person's name of it means."""
    if "pairwise" in chip:
        raise UnspecifiedError("cards bridged in pairs: which pairs share what is not told")
    if re.search(r"\bl40s?\b|\bb60\b|\ba40\b|pcie", chip) and "rtx pro" not in chip:
        raise UnspecifiedError(
            "cards on PCIe: times vary tenfold with how switches and processors lie, which is not told"
        )
    cloud = next((cluster for name, cluster in CLOUDS.items() if re.search(rf"\b{name}\b", chip)), None)
    known = next((cluster for name, cluster in DOMAIN_CLUSTERS.items() if re.search(rf"\b{name}", chip)), None)
    name = cloud or known
    if name is None:
        raise UnspecifiedError(f"{chip!r} is no system that the catalog knows")
    cluster = catalog.cluster(name)
    size = cluster.scale_up.size
    if ranks <= size and (nodes in (None, 1) or size > cluster.chips_per_host):
        return f"{name}:1x{ranks}"
    nodes = nodes or -(-ranks // size)
    nics = re.search(r"(\d+)x(\d+)g", chip)
    if cloud is None and nics is None:
        raise UnspecifiedError("the network between the nodes is not told")
    if nics is not None and cluster.network:
        told = int(nics[1]) * int(nics[2]) * 1e9 / 8
        level = cluster.network[0]
        known_rate = level.links_per_host * catalog.link(level.link).bandwidth.value
        if abs(told / known_rate - 1) > 0.05:
            raise UnspecifiedError(f"{nics[0]} a node is not the network that {name} has")
    if ranks % nodes:
        raise UnspecifiedError(f"{ranks} ranks do not spread evenly over {nodes} nodes")
    return f"{name}:{nodes}x{ranks // nodes}"


def _slice(generation: str, shape: str, ranks: int, catalog: Catalog) -> tuple[str, str | None]:
    """A TPU slice and the axes that the ranks fill."""
    name = f"tpu-{generation}"
    catalog.cluster(name)
    lengths = [int(length) for length in shape.split("x")]
    axes = [axis for axis, length in zip("xyz", lengths, strict=False) if length == ranks]
    whole = 1
    for length in lengths:
        whole *= length
    if axes:
        return f"{name}:{shape}", axes[-1]
    if whole == ranks:
        return f"{name}:{shape}", None
    raise UnspecifiedError(f"{ranks} ranks are no whole axis of {shape}")


def _text(cells: Mapping[str, str | None], key: str) -> str:
    return (cells.get(key) or "").strip()


def _number(cells: Mapping[str, str | None], key: str) -> float | None:
    text = _text(cells, key)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2**63:
        raise UnspecifiedError(f"{key} is {text[:30]!r}, not a number above 0")
    return value


def _whole(cells: Mapping[str, str | None], key: str) -> int | None:
    value = _number(cells, key)
    if value is not None and value != int(value):
        raise UnspecifiedError(f"{key} is {_text(cells, key)[:30]!r}, not a whole number")
    return None if value is None else int(value)


def _seconds(cells: Mapping[str, str | None]) -> float | None:
    time = _number(cells, "time_us")
    return None if time is None else time * 1e-6


def _rate(cells: Mapping[str, str | None], key: str) -> float | None:
    rate = _number(cells, key)
    return None if rate is None else rate * 1e9
