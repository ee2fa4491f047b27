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
from pathlib import Path

from costmodel.studies.validation.collective_packages import part_of, times_of

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


def main(folder: Path) -> None:
    """Write the table."""
    rows = []
    for where, (cluster, version) in SYSTEMS.items():
        times, _ = times_of(folder / "aiconfigurator_core" / "systems" / "data" / where / "nccl_perf.parquet")
        for (operation, dtype, ranks, size), time in times.items():
            name = f"{cluster}-{operation}-{dtype}-{ranks}-{size}"
            if part := part_of(name):
                machine = f"{cluster}:1x{ranks}"
                rows.append([name, part, machine, operation, dtype, size, round(time, 3), version])
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        header = ["id", "part", "machine", "operation", "dtype", "payload_bytes", "time_us", "nccl_version", "source"]
        writer.writerow(header)
        writer.writerows([*row, "aiconfigurator-core 0.12.0"] for row in rows)
    print(f"{TABLE}: {len(rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
