"""Layouts in the words of calculon and back, and calculon asked in processes of its own: for `beside_calculon.py`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costmodel.errors import InputError
from costmodel.search.layout import Layout

IN_CALCULON = ("models/gpt3-175B.json", "examples/models/gpt3-175B.json")
"""Where its releases keep the model."""
SYSTEM = "systems/a100_80g.json"
RECOMPUTE = {"full": "full", "attn_only": "attention", "none": "none"}
"""Its word and ours."""

Point = dict[str, Any]


def as_execution(layout: Layout, overlap: Sequence[str], chips: int, sequences: int) -> Point | None:
    """A layout of ours in calculon's words; None where it has none for it."""
    words = {mine: its for its, mine in RECOMPUTE.items()}
    if (
        layout.recompute not in words
        or layout.schedule not in {"1f1b", "interleaved"}
        or layout.zero > 1
        or layout.shard
    ):
        return None
    kept = set(layout.offload.split("+")) - {"none"}
    redone = layout.sequence_parallel and layout.recompute != "full"
    return {
        "num_procs": chips,
        "tensor_par": layout.tp,
        "pipeline_par": layout.pp,
        "data_par": layout.dp,
        "tensor_par_net": int(layout.tp > 8),
        "pipeline_par_net": 1,
        "data_par_net": 1,
        "batch_size": sequences,
        "microbatch_size": layout.micro_batch_size,
        "activation_recompute": words[layout.recompute],
        "pipeline_interleaving": layout.virtual_stages,
        "optimizer_sharding": bool(layout.zero) and layout.dp > 1,
        "tensor_par_comm_type": "rs_ag" if layout.sequence_parallel else "ar",
        "tensor_par_overlap": "ring" if "tp" in overlap and layout.tp > 1 else "none",
        "seq_par_ag_redo": redone,
        "data_par_overlap": "dp" in overlap and layout.dp > 1,
        "weight_offload": "weights" in kept,
        "activations_offload": "activations" in kept,
        "optimizer_offload": "optimizer" in kept,
    }


def as_layout(point: Point) -> str:
    """An execution of calculon's in our words, less what `--overlap` says."""
    v = point["pipeline_interleaving"]
    kept = [part for part in ("optimizer", "weight", "activations") if point[f"{part}_offload"]]
    offload = f" offload={'+'.join(kept).replace('weight', 'weights')}" if kept else ""
    return (
        f"tp={point['tensor_par']} pp={point['pipeline_par']} dp={point['data_par']} v={v} mbs={point['microbatch_size']}"
        f" zero={int(point['optimizer_sharding'])} sp={int(point['tensor_par_comm_type'] == 'rs_ag')}"
        f" recompute={RECOMPUTE[point['activation_recompute']]} schedule={'interleaved' if v > 1 else '1f1b'}{offload}"
    )


def theirs(
    checkout: Path, python: str, seconds: float, points: list[Point], *, chips: int, sequences: int, plain: bool
) -> Point:
    """What calculon works out in that time on all processors, put together."""
    count = os.cpu_count() or 1
    request = {
        "checkout": str(checkout),
        "model": next(name for name in IN_CALCULON if (checkout / name).exists()),
        "system": SYSTEM,
        "chips": chips,
        "batch": sequences,
        "plain": plain,
        "seconds": seconds,
        "processes": count,
    }
    command = [python, str(Path(__file__).with_name("calculon_executions.py"))]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(count)]  # noqa: S603
    for process, one in enumerate(running):
        assert one.stdin is not None  # noqa: S101
        one.stdin.write(json.dumps(request | {"process": process, "asked": points if process == 0 else []}))
        one.stdin.close()
        one.stdin = None
    outputs = [one.communicate() for one in running]
    for one, (_, errors) in zip(running, outputs, strict=True):
        if one.returncode:
            said = (errors.strip() or "it said nothing").splitlines()[-1]
            raise InputError(
                f"calculon did not run: {said}; --python names an interpreter with numpy, pandas and psutil"
            )
    parts: list[Point] = [json.loads(output) for output, _ in outputs]
    found = sorted((answer for part in parts for answer in part["best"]), key=lambda answer: answer["step_s"])
    return {
        "points": parts[0]["points"],
        "done": sum(part["done"] for part in parts),
        "legal": sum(part["legal"] for part in parts),
        "wall_s": max(part["wall_s"] for part in parts),
        "processor_s": sum(part["processor_s"] for part in parts),
        "best": list({as_layout(answer["execution"]): answer for answer in reversed(found)}.items())[::-1],
        "asked": parts[0]["asked"],
    }
