"""The measured part of tables/published/collectives/in_node.csv, drawn from a wheel of aiconfigurator-core 0.12.0.

    pip download --no-deps aiconfigurator-core==0.12.0; pip install pyarrow
    python scripts/sample_collectives.py FOLDER_OF_THE_UNPACKED_WHEEL

Of every chip the table of its newest NCCL. A file's `message_size` counts elements; repeats are taken by their median, latencies that
are not positive are left out. A row is drawn by the checksum of its name, modulo ten: 0 to 3 fit constants, 4 and 5 judge them,
the others are not carried.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from zlib import crc32

TABLE = Path(__file__).resolve().parent.parent / "tables" / "published" / "collectives" / "in_node.csv"
SYSTEMS = {
    "a100_sxm/comm/nccl/2.27.3": ("dgx-a100", "2.27.3"),
    "h100_sxm/comm/nccl/2.29.2": ("dgx-h100", "2.29.2"),
    "h200_sxm/comm/nccl/2.29.2": ("dgx-h200", "2.29.2"),
    "b200_sxm/comm/nccl/2.29.2": ("dgx-b200", "2.29.2"),
    "b300_sxm/comm/nccl/2.29.2": ("dgx-b300", "2.29.2"),
    "gb200/comm/nccl/2.29.2": ("dgx-gb200", "2.29.2"),
    "gb300/comm/nccl/2.29.2": ("dgx-gb300", "2.29.2"),
    "rtx_pro_6000_server/comm/nccl/2.29.2": ("rtx-pro-6000-server", "2.29.2"),
}
"""Cards on PCIe that hang on several processors are left out (L40S): how they lie there is not said, and times differ tenfold."""
ELEMENTS = {"half": (2, "fp16"), "int8": (1, "int8")}
OPERATIONS = {
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "alltoall": "all-to-all",
}
PARTS = ("fit", "fit", "fit", "fit", "judge", "judge", "", "", "", "")


def part_of(name: str) -> str:
    """What a row is for: `fit`, `judge`, or not drawn."""
    return PARTS[crc32(name.encode()) % len(PARTS)]


def main(folder: Path) -> None:
    """Write the table."""
    from pyarrow import parquet

    rows = []
    for where, (cluster, version) in SYSTEMS.items():
        found = parquet.read_table(folder / "aiconfigurator_core" / "systems" / "data" / where / "nccl_perf.parquet")
        times: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
        for row in found.to_pylist():
            size, dtype = ELEMENTS[row["nccl_dtype"]]
            key = (OPERATIONS[row["op_name"]], dtype, int(row["num_gpus"]), int(row["message_size"]) * size)
            if float(row["latency"]) > 0:
                times[key].append(float(row["latency"]) * 1e3)
        for (operation, dtype, ranks, size), values in sorted(times.items()):
            name = f"{cluster}-{operation}-{dtype}-{ranks}-{size}"
            if part := part_of(name):
                machine = f"{cluster}:1x{ranks}"
                rows.append([name, part, machine, operation, dtype, size, round(median(values), 3), version])
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        header = ["id", "part", "machine", "operation", "dtype", "payload_bytes", "time_us", "nccl_version", "source"]
        writer.writerow(header)
        writer.writerows([*row, "aiconfigurator-core 0.12.0"] for row in rows)
    print(f"{TABLE}: {len(rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
