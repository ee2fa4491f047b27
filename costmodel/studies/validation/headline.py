"""Which rows count: rules written down before the errors were looked at, the first that a row falls under is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from costmodel.studies.validation.runs import PublishedRun

OUTSIDE = re.compile(r"gemma|gpt-oss|qwen3-next|deepseek-v4|llama-?4|nemotron-3")
"""Models whose blocks are not those of the equations: other attention, or layers that alternate."""


class HeadlineRule(NamedTuple):
    """A row for which `holds` is left out of the statistics, as `words` says."""

    words: str
    holds: Callable[[PublishedRun], bool]


def _trait(word: str) -> Callable[[PublishedRun], bool]:
    return lambda run: word in run.traits


def _multiplies_out(run: PublishedRun) -> bool:
    degrees = (run.tp or 1) * (run.pp or 1) * run.cp
    if run.chips is None or run.dp is None:
        return True
    return degrees * run.dp == run.chips


HEADLINE = (
    HeadlineRule("the micro-batch is not stated", lambda run: run.micro_batch is None),
    HeadlineRule(
        "the step time follows only from FLOPs of an unstated convention",
        lambda run: run.step_time_s is None and run.throughput_step_time_s is None and run.flops_counted == "unknown",
    ),
    HeadlineRule("fine-tuning", _trait("fine-tuning")),
    HeadlineRule("attention or blocks outside the list", lambda run: OUTSIDE.search(run.model) is not None),
    HeadlineRule("tokens are dropped", _trait("token-drop")),
    HeadlineRule("a log that contradicts itself", _trait("contradicts-itself")),
    HeadlineRule("called misconfigured by its source", _trait("misconfigured")),
    HeadlineRule(
        "the layout does not multiply out", lambda run: "layout-mismatch" in run.traits or not _multiplies_out(run)
    ),
    HeadlineRule("the batch was presumed", _trait("batch-presumed")),
    HeadlineRule("ZeRO-3 of 2021", lambda run: "old-zero-3" in run.traits and run.zero == "3"),
)


def left_out(run: PublishedRun) -> str:
    """Why a row does not count; empty where it does."""
    return next((rule.words for rule in HEADLINE if rule.holds(run)), "")


MEMORY_HEADLINE = (
    HeadlineRule("the micro-batch is not stated", lambda run: run.micro_batch is None),
    HeadlineRule("fine-tuning", _trait("fine-tuning")),
    HeadlineRule("attention or blocks outside the list", lambda run: OUTSIDE.search(run.model) is not None),
    HeadlineRule("a log that contradicts itself", _trait("contradicts-itself")),
    HeadlineRule(
        "the layout does not multiply out", lambda run: "layout-mismatch" in run.traits or not _multiplies_out(run)
    ),
)
"""The same for readings of memory."""


def memory_left_out(run: PublishedRun) -> str:
    """Why a reading of memory does not count; empty where it does."""
    return next((rule.words for rule in MEMORY_HEADLINE if rule.holds(run)), "")
