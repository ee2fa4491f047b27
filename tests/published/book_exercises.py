"""Sums that "How To Scale Your Model" has its readers do and that the model itself does not need: chips, units, arrays."""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    per_second,
    seconds,
)


class SplitSum(Chapter):
    """[B, D] times [D, F] with D split over two chips that exchange their partial sums."""

    b = given(bytes_, "one element")
    C = given(flop_per_second, "peak of one chip")
    W = given(bytes_per_second, "the link between them, one way")

    least_features = equation(
        count, C * b / (W * FLOP), "features summed over from which on the peak binds, not the link"
    )


class Stages(Chapter):
    """Data streamed through host link, chip link, memory and matrix units: the slowest stage decides."""

    host = given(seconds, "over the hosts' links")
    link = given(seconds, "over the links between chips")
    memory = given(seconds, "through the memory")
    compute = given(seconds, "on the matrix units")

    shortest = equation(seconds, largest(host, link, memory, compute), "all stages at once")


class MatrixUnits(Chapter):
    """Peak of a chip from its matrix units, each with rows x columns multipliers."""

    units = given(count, "matrix units of the chip")
    rows_of_unit = given(count, "rows of multipliers")
    columns_of_unit = given(count, "columns of multipliers")
    clock = given(per_second, "clock")

    per_cycle = equation(flop, 2 * rows_of_unit * columns_of_unit * FLOP, "a unit's operations in a cycle")
    peak = equation(flop_per_second, units * per_cycle * clock, "of the chip")


class VectorUnits(Chapter):
    """Peak of a chip from its vector lanes; `per_lane` is 2 where a multiplication and an addition count as two."""

    units = given(count, "cores or multiprocessors")
    lanes = given(count, "lanes of each")
    per_lane = given(flop, "operations of a lane in a cycle")
    clock = given(per_second, "clock")

    all_lanes = equation(count, units * lanes, "lanes of the chip")
    peak = equation(flop_per_second, all_lanes * per_lane * clock, "of the chip")


class UnitRate(Chapter):
    """What a chip's peak comes to for each of its units in a cycle."""

    C = given(flop_per_second, "peak")
    units = given(count, "units")
    clock = given(per_second, "clock")

    per_cycle = equation(flop, C / (units * clock), "a unit's operations in a cycle")


class ManyChips(Chapter):
    """Some chips together, perfectly split."""

    chips = given(count, "chips")
    chips_per_host = given(count, "chips of a host")
    cores_per_chip = given(count, "cores of a chip")
    C = given(flop_per_second, "peak of a chip")
    W = given(bytes_per_second, "memory bandwidth of a chip")
    memory = given(bytes_, "memory of a chip")
    work = given(flop, "operations to do")
    held = given(bytes_, "bytes to hold, and to read once")
    utilisation = given(count, "share of the peak that is reached")

    hosts = equation(count, chips / chips_per_host, "hosts")
    cores = equation(count, chips * cores_per_chip, "cores")
    peak = equation(flop_per_second, chips * C, "of all chips")
    all_memory = equation(bytes_, chips * memory, "of all chips")
    sweep = equation(seconds, held / (chips * W), "to read once what is held")
    run = equation(seconds, work / (peak * utilisation), "to do the work")
    fewest_chips = equation(count, ceil_divide(held, memory), "chips that can hold it")


class ShardedArray(Chapter):
    """An array split over some devices and repeated over the others."""

    elements = given(count, "elements of the whole array")
    b = given(bytes_, "one element")
    shards = given(count, "devices that share it")
    devices = given(count, "devices in all")

    per_device = equation(bytes_, elements * b / shards, "on one device")
    copies = equation(count, devices / shards, "of the array")
    total = equation(bytes_, elements * b * copies, "on all devices")
