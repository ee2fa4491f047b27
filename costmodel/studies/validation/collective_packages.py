"""The measured collectives of aiconfigurator-core, where the extra `deep` has installed it.

A table holds the collectives of one version of NCCL inside one node, in milliseconds. What must be known of it: `message_size` counts
elements, rows can stand up to four times (their median is taken), and the version that a file's rows name can be another than that of
its folder (both are told). Tables of other libraries are named and left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from zlib import crc32

from costmodel.studies.validation.collective_rows import Row
from costmodel.studies.validation.kernel_packages import SOURCE

MACHINES = {
    "a100_sxm": "dgx-a100",
    "h100_sxm": "dgx-h100",
    "h200_sxm": "dgx-h200",
    "b200_sxm": "dgx-b200",
    "b300_sxm": "dgx-b300",
    "gb200": "dgx-gb200",
    "gb300": "dgx-gb300",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
"""Its name of each machine, and the catalog's."""
ELEMENTS = {"half": (2, "fp16"), "int8": (1, "int8")}
"""Bytes of an element, and the catalog's name of the type."""
OPERATIONS = {
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "alltoall": "all-to-all",
}
PARTS = ("fit", "fit", "fit", "fit", "judge", "judge", "", "", "", "")
"""What a row is for, by the checksum of its name: four of ten fit constants, two judge them in the shipped table."""
NOT_DRAWN = ""
OTHER_LIBRARIES = {
    "custom_allreduce": "a framework's own one-shot and two-shot all-reduce, a library of its own, not NCCL",
    "moe_a2a": "a kernel library of its own for tokens of experts, not a collective of NCCL",
    "wideep": "a kernel library of its own for tokens (DeepEP), not a collective of NCCL",
    "trtllm_alltoall": "TensorRT-LLM's own exchange of tokens, a library of its own, not NCCL",
    "oneccl": "nothing is known of oneCCL",
}
ON_PCIE = "cards on PCIe: times vary tenfold with how switches and processors lie, which is not told"


@dataclass(frozen=True, slots=True)
class Measured:
    """One table of the package; `why_not` where it is not predicted."""

    system: str
    path: Path
    why_not: str = ""

    @property
    def name(self) -> str:
        """What tells it apart."""
        *_, framework, version, table = self.path.with_suffix("").parts
        return f"{self.system}/{framework}/{version}/{table}"


def part_of(name: str) -> str:
    """What a row of that name is for: `fit`, `judge`, or not drawn."""
    return PARTS[crc32(name.encode()) % len(PARTS)]


def tables(root: Path) -> Iterator[Measured]:
    """Every table of communication, in order of their names."""
    for path in sorted(root.glob("*/comm/*/*/*.parquet")):
        system, table = path.relative_to(root).parts[0], path.stem
        if table != "nccl_perf":
            known = (why for beginning, why in OTHER_LIBRARIES.items() if table.startswith(beginning))
            yield Measured(system, path, next(known, "a library of its own, not NCCL"))
        else:
            yield Measured(system, path, "" if system in MACHINES else ON_PCIE)


def times_of(path: Path) -> tuple[dict[tuple[str, str, int, int], float], str]:
    """Microseconds by operation, type, ranks and bytes of a table of NCCL, and the library and version that its rows name."""
    from pyarrow import parquet

    *_, folder, _ = path.parts
    times: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
    libraries = set()
    for raw in parquet.read_table(path).to_pylist():
        libraries.add(f"{raw['kernel_source']} {raw.get('version') or folder}")
        if raw["latency"] and raw["latency"] > 0:
            size, dtype = ELEMENTS[raw["nccl_dtype"]]
            key = (OPERATIONS[raw["op_name"]], dtype, int(raw["num_gpus"]), int(raw["message_size"]) * size)
            times[key].append(float(raw["latency"]) * 1e3)
    return {key: median(values) for key, values in sorted(times.items())}, " and ".join(sorted(libraries))


def rows(table: Measured) -> Iterator[Row]:
    """The rows of a table of NCCL, each with the part that the one of its shape has in the shipped table."""
    cluster = MACHINES[table.system]
    times, library = times_of(table.path)
    for (operation, dtype, ranks, size), time in times.items():
        shape = f"{operation}-{dtype}-{ranks}-{size}"
        yield Row(
            id=f"{table.name}/{shape}",
            source=f"{SOURCE}, {table.name.partition('/')[2]}, {library}",
            machine=f"{cluster}:1x{ranks}",
            operation=operation,
            dtype=dtype,
            payload=size,
            time_s=time * 1e-6,
            part=part_of(f"{cluster}-{shape}"),
        )
