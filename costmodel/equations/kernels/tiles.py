"""The tiles that a matrix product is cut into, and how many ways its sum is split."""

from costmodel.symbolic import Axis, Chapter, count, equation, rows

TILE = Axis(
    "tile",
    (
        *("128x256", "256x128", "256x256", "128x128", "64x256", "256x64", "64x128", "128x64", "64x64"),
        *("32x256", "256x32", "32x128", "128x32", "32x64", "64x32"),
        *("16x256", "256x16", "16x128", "128x16", "16x64", "64x16"),
    ),
)
"""Rows and columns of the result that one unit computes at a time: shapes that GPU libraries ship, both ways round.

Of equally fast tiles the first is told, so that the usual ones come first.
"""

SPLIT = Axis("split", ("1", "2", "4", "8", "16", "32"))
"""Ways in which the sum over K is split among units, whose partial results are added up afterwards (split-K)."""

ROW_TILE = Axis("row_tile", ("128", "64", "32", "16"))
"""Rows that the tokens of an expert are padded to in a grouped product."""

KERNEL_AXES = (TILE, SPLIT, ROW_TILE)
"""Those inside a kernel, which one answer runs over."""


class Tiles(Chapter):
    """The sizes that the labels of the axes say."""

    tile_rows = equation(
        count,
        rows(TILE, {label: int(label.split("x")[0]) for label in TILE.labels}),
        "rows of the result in a tile",
    )
    tile_columns = equation(
        count,
        rows(TILE, {label: int(label.split("x")[1]) for label in TILE.labels}),
        "columns of the result in a tile",
    )
    ways = equation(count, rows(SPLIT, {label: int(label) for label in SPLIT.labels}), "ways in which K is split")
