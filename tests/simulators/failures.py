"""A run that fails at random and goes on from its last checkpoint, failure by failure."""

from __future__ import annotations

from random import Random


def run(
    work: float, interval: float, blocking: float, restart: float, between_failures: float, seed: int
) -> tuple[float, int]:
    """Seconds until so much work is done and saved, and how many failures it took; a failure may strike a restart too."""
    random = Random(seed)  # noqa: S311  not for secrets
    clock, saved, failures = 0.0, 0.0, 0
    next_failure = random.expovariate(1 / between_failures)

    def survives(seconds: float) -> bool:
        """Spend the time, or fail in it."""
        nonlocal clock, failures, next_failure
        if clock + seconds <= next_failure:
            clock += seconds
            return True
        clock = next_failure
        failures += 1
        next_failure = clock + random.expovariate(1 / between_failures)
        return False

    while saved < work:
        if survives(interval + blocking):
            saved += interval
            continue
        while not survives(restart):
            pass
    return clock, failures
