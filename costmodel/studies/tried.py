"""What a search is asked to try besides what it tries anyway. Each raises InputError, with the nearest choice, for anything else."""

from __future__ import annotations

from costmodel.errors import InputError
from costmodel.search.candidates import OFFLOADS_TO, RESHARDS_TO
from costmodel.search.host import check_host
from costmodel.search.layout import OFFLOADS, OVERLAPS
from costmodel.studies.question import Question
from costmodel.topology.machine import Machine


def reshards(latest: str | None) -> tuple[str, ...]:
    """What is tried of how long FSDP keeps gathered weights, beside what the recipe has."""
    if latest is None:
        return ()
    if latest not in RESHARDS_TO:
        raise InputError.unknown("moment to reshard at", latest, RESHARDS_TO)
    return RESHARDS_TO[latest]


def expert_overlap(question: Question, label: str) -> str:
    """What exchanges of experts hide behind."""
    model = question.workload.model
    if label not in OVERLAPS:
        raise InputError.unknown("overlap of experts", label, OVERLAPS)
    if model.experts is None:
        raise InputError(f"--ep-overlap is for experts, and {model.name} has none; leave it out")
    return label


def offloads(machine: Machine, where: str | None) -> tuple[str, ...]:
    """What hosts may keep."""
    if where is None:
        return OFFLOADS[:1]
    if where not in OFFLOADS_TO:
        raise InputError.unknown("place to offload to", where, OFFLOADS_TO)
    for offload in OFFLOADS_TO[where]:
        check_host(machine, offload)
    return OFFLOADS_TO[where]
