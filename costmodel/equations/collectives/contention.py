"""Collectives that run at the same time over links that they share: their bytes add on each link, and the fullest decides.

Groups of the same axis are no such case: that all of them run at once is what every form of a machine counts already.
"""

from costmodel.symbolic import Chapter, count, equation, given, largest, seconds, select

ADDED = "seconds of load on each link add; counted link by link"
STREAMED = (
    "both keep all their links busy; one that waits for its own levels in turn leaves gaps that the other can fill"
)


class SharedLinks(Chapter):
    """Some groups with the same collective, and one other collective beside them, all starting at once."""

    groups = given(count, "groups that run the collective on the same links at the same time")
    same_fast_links = given(
        count, "1 when both collectives use the same links of the domain; 0 on different torus axes"
    )
    one_latency = given(seconds, "of a group's collective, for a payload of nothing")
    one_fast = given(seconds, "it takes on a rank's links of its domain, or on a link of the torus")
    one_nics = given(seconds, "it takes on a rank's share of the NICs, or of the network between slices")
    one_uplinks = given(seconds, "it takes on a rank's share of its unit's uplinks")
    one_time = given(seconds, "it takes alone")
    other_latency = given(seconds, "of the collective beside, for a payload of nothing; all 0 where there is none")
    other_fast = given(seconds, "the one beside takes on a rank's links of its domain, or on a link of the torus")
    other_nics = given(seconds, "the one beside takes on a rank's share of the NICs, or of the network between slices")
    other_uplinks = given(seconds, "the one beside takes on a rank's share of its unit's uplinks")
    other_time = given(seconds, "the one beside takes alone")

    fast = equation(
        seconds,
        select(same_fast_links > 0, groups * one_fast + other_fast, largest(groups * one_fast, other_fast)),
        "on a rank's links of its domain, or on the fullest link of the torus",
        source=ADDED,
    )
    nics = equation(seconds, groups * one_nics + other_nics, "on a rank's share of the NICs", source=ADDED)
    uplinks = equation(seconds, groups * one_uplinks + other_uplinks, "on its share of the uplinks", source=ADDED)
    together = equation(
        seconds,
        largest(one_latency, other_latency)
        + largest(fast, nics, uplinks, one_time - one_latency, other_time - other_latency),
        "until all are done",
        source=ADDED,
        approximate=STREAMED,
    )
    in_turn = equation(seconds, groups * one_time + other_time, "one after the other")
    slower = equation(count, together / one_time, "than alone")
