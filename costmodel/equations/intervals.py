"""Between which bounds four of five measured values lie, by the factors of the class that a prediction is of."""

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, seconds


class TimeInterval(Chapter):
    """The middle 80 % of what was measured where such a time was predicted."""

    time = given(seconds, "predicted")
    low = given(count, "tenth percentile of measured over predicted in the class", owner="assumption")
    high = given(count, "ninetieth percentile of measured over predicted in the class", owner="assumption")

    p10 = equation(seconds, time * low, "one in ten is faster")
    p90 = equation(seconds, time * high, "one in ten is slower")


class SizeInterval(Chapter):
    """The same of a quantity of memory."""

    size = given(bytes_, "predicted")
    low = given(count, "tenth percentile of measured over predicted in the class", owner="assumption")
    high = given(count, "ninetieth percentile of measured over predicted in the class", owner="assumption")

    p10 = equation(bytes_, size * low, "one in ten takes less")
    p90 = equation(bytes_, size * high, "one in ten takes more")


class RateInterval(Chapter):
    """The same of a rate, which falls as the time grows that the factors are of."""

    rate = given(bytes_per_second, "predicted")
    low = given(count, "tenth percentile of measured over predicted time in the class", owner="assumption")
    high = given(count, "ninetieth percentile of measured over predicted time in the class", owner="assumption")

    p10 = equation(bytes_per_second, rate / high, "one in ten is lower")
    p90 = equation(bytes_per_second, rate / low, "one in ten is higher")
