"""What a tiled product needs inside: stages of operands, what the cache must give, in which order its tiles should go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costmodel.catalog.entries import Chip, Number
from costmodel.generated import kernels_math
from costmodel.report import Table, human
from costmodel.runtime import call


def main_loop(
    chip: Chip, given: Mapping[str, float], values: Mapping[str, Any], shape: Mapping[str, int]
) -> Table | None:
    """A table for the best tile of a product; None where the catalog does not know the fast memory of the chip's units."""
    memory, cache = chip.details.get("fast_memory_per_unit"), chip.details.get("l2_bandwidth")
    if not isinstance(memory, Number):
        return None
    asked = {
        **given,
        "M": shape["rows"],
        "N": shape["columns"],
        "K": shape["features"],
        "tile_rows": values["best_rows"],
        "tile_columns": values["best_columns"],
        "stage_features": given["step_features"],
        "unit_memory": memory.value,
    }
    found = call(kernels_math.main_loop, asked)
    rows = [
        ("stages of operands needed", f"{found['stages_needed']:.0f}, to cover the latency of memory"),
        ("that fit", f"{found['stages_fitting']:.0f}, {human.percent(found['fast_memory_share'])} of fast memory"),
        ("left for the epilogue", human.size(found["epilogue_room"])),
        ("filling, each tile anew", f"{human.percent(found['fill_share'])} of the main loop"),
        ("epilogue not hidden", f"{human.percent(found['epilogue_share'])} of a tile's time"),
        ("cache must give at the peak", human.rate(found["alone_demand"])),
        ("with multicast 2x1, 2x2", f"{human.rate(found['pair_demand'])}, {human.rate(found['four_demand'])}"),
        ("cache gives", human.rate(cache.value if isinstance(cache, Number) else None)),
        ("memory traffic, tiles in rows", human.size(found["in_rows_traffic"])),
        (f"in groups of {found['whole_group']:.0f} rows", human.size(found["grouped_traffic"])),
        (
            "bank conflicts of a column",
            f"{found['plain_rows_ways']:g}-way plain, {found['swizzled_rows_ways']:g}-way swizzled",
        ),
    ]
    return Table("Inside the best tile's kernel", ("", ""), rows)
