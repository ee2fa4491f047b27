"""Executions worked out by calculon for a while, as JSON: run by `beside_calculon.py` in a process that can import calculon.

Takes a request as JSON on standard input. The points are those of calculon's own search (`llm-optimal-execution`, commit caa4b11), counted
as its dry run counts them and drawn at random from all, each at most once; `plain` leaves out the options of overlap and of offload.
"""

from __future__ import annotations

import importlib
import json
import logging
import random
import sys
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

MOST_A_SECOND = 5000
"""More executions than a process can work out in a second: how many are drawn."""
FIXED = {"datatype": "float16", "fused_activation": True, "attention_type": "multihead", "training": True}

Options = dict[str, Sequence[object]]


def options(model: Any, app: Any, networks: range, *, chips: int, batch: int, plain: bool) -> Iterator[Options]:
    """What can be chosen independently, for each choice of what the rest depends on."""
    free = (False,) if plain else (True, False)
    for tp in model.get_all_tensor_parallelisms(chips, app.hidden, app.attn_heads):
        for pp in model.get_all_pipeline_parallelisms(chips, tp, app.num_blocks):
            dp = chips // tp // pp
            sequences = batch // dp * dp
            if not sequences:
                continue
            for recompute in ("full", "attn_only", "none"):
                for traffic in ("ar", "p2p_rs_ag", "rs_ag"):
                    redo = (True, False) if model.can_redo_ag(traffic, recompute) else (False,)
                    yield {
                        "num_procs": (chips,),
                        "tensor_par": (tp,),
                        "pipeline_par": (pp,),
                        "data_par": (dp,),
                        "batch_size": (sequences,),
                        "activation_recompute": (recompute,),
                        "tensor_par_comm_type": (traffic,),
                        "seq_par_ag_redo": redo,
                        "pipeline_interleaving": tuple(model.get_valid_pipeline_interleavings(app.num_blocks, pp)),
                        "microbatch_size": tuple(model.get_valid_microbatch_sizes(app.seq_size, tp, dp, sequences, pp)),
                        "optimizer_sharding": (True, False) if dp > 1 else (False,),
                        "data_par_overlap": free if dp > 1 else (False,),
                        "tensor_par_overlap": ("none", "ring", "pipe") if tp > 1 and not plain else ("none",),
                        "weight_offload": free,
                        "activations_offload": (False,) if recompute == "full" else free,
                        "optimizer_offload": free,
                        "tensor_par_net": networks if tp > 1 else (0,),
                        "pipeline_par_net": networks if pp > 1 else (0,),
                        "data_par_net": networks if dp > 1 else (0,),
                    }


def chosen(those: Options, index: int) -> dict[str, object]:
    """One point of the product of options."""
    point: dict[str, object] = dict(FIXED)
    for name, values in those.items():
        index, at = divmod(index, len(values))
        point[name] = values[at]
    return point


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    checkout = Path(request["checkout"])
    sys.path.insert(0, str(checkout))
    calculon = importlib.import_module("calculon")
    model = importlib.import_module("calculon.llm").Llm
    app = model.Application(json.loads((checkout / request["model"]).read_text("utf-8")))
    system = calculon.System(json.loads((checkout / request["system"]).read_text("utf-8")))

    def work_out(point: dict[str, object]) -> dict[str, Any] | None:
        """Its step time and memory, by the steps of calculon's search; None when calculon rejects it."""
        one = model(app, logging.Logger("sub"))  # noqa: LOG001  as its own search does
        try:
            one.compile(system, model.Execution.from_json(point))
            one.run(system)
        except model.Error:
            return None
        stats = one.get_stats_json(False)
        return {"execution": point, "step_s": stats["total_time"], "bytes": stats["proc_mem_tier1_cap_req"]}

    networks = range(system.num_networks)
    space = list(options(model, app, networks, chips=request["chips"], batch=request["batch"], plain=request["plain"]))
    ends = list(accumulate(prod(map(len, those.values())) for those in space))
    drawn = min(ends[-1], int(request["seconds"] * MOST_A_SECOND * request["processes"]))
    order = random.Random(0).sample(range(ends[-1]), drawn)[request["process"] :: request["processes"]]  # noqa: S311
    done, found = 0, []
    start, used = perf_counter(), process_time()
    for index in order:
        if perf_counter() - start > request["seconds"]:
            break
        item = bisect(ends, index)
        answer = work_out(chosen(space[item], index - (ends[item - 1] if item else 0)))
        done += 1
        if answer is not None:
            found.append(answer)
    wall, processor = perf_counter() - start, process_time() - used
    asked = [work_out(FIXED | point) for point in request["asked"]]
    found.sort(key=lambda answer: float(answer["step_s"]))
    told = {"points": ends[-1], "done": done, "legal": len(found), "wall_s": wall, "processor_s": processor}
    json.dump(told | {"best": found[:1000], "asked": asked}, sys.stdout)


if __name__ == "__main__":
    main()
