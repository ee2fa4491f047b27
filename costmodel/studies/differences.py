"""In what two layouts of a step differ, in words."""

from __future__ import annotations

from collections.abc import Sequence

from costmodel.report import human
from costmodel.studies.estimate import TIME_ITEMS, Estimate


def why(best: Sequence[Estimate]) -> str:
    """In what the best beats the next that splits the model otherwise, and what it pays for that."""

    def split(found: Estimate) -> tuple[int, int, int]:
        return found.layout.tp, found.layout.cp, found.layout.pp

    first = best[0]
    other = next((b for b in best[1:] if split(b) != split(first)), best[1])
    changes = {item: other.time[item] - first.time[item] for item in TIME_ITEMS}
    told = sorted(
        (item for item in changes if abs(changes[item]) > 0.005 * first.step_time_s), key=lambda i: -abs(changes[i])
    )
    gains = [f"{human.seconds(changes[i])} less of {TIME_ITEMS[i]}" for i in told if changes[i] > 0]
    losses = [f"{human.seconds(-changes[i])} more of {TIME_ITEMS[i]}" for i in told if changes[i] < 0]
    context = f" cp={other.layout.cp}" if max(other.layout.cp, first.layout.cp) > 1 else ""
    versus = f"against tp={other.layout.tp}{context} pp={other.layout.pp} v={other.layout.virtual_stages} recompute={other.layout.recompute}"
    if not told:
        return f"{versus} the best differs by less than half a percent in every item"
    return f"{versus} the best has " + ", ".join(gains + losses)
