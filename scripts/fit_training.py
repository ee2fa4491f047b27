"""Fit what matrix products sustain in training, one share a class of chips: `python scripts/fit_training.py [--write]`.

The share multiplies what the kernels of a chip attain (kernel_matmul and attention_matmul of its file). Every other constant stays
as it is. Rows are the headline rows of `costmodel validate training`; a quarter of them, by a hash of the row's id, is held back.
Printed are the errors on the rows of the fit, on those held back, and on sources that the fit did not see at all.
With --write the shares go into hardware/chips.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.errors import InputError
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.studies.validation import training
from costmodel.studies.validation.headline import left_out
from costmodel.studies.validation.held_back import held_back as is_held_back
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.prepared import Preparing
from costmodel.studies.validation.rows import published
from costmodel.studies.validation.runs import Unread, read_runs
from costmodel.studies.validation.statistics import Summary, summary

CHIPS = Path(__file__).resolve().parent.parent / "hardware" / "chips"
CLASSES = {
    "a100": ("a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "a800-sxm"),
    "h100": ("h100-sxm", "h200-sxm", "h800-sxm", "gh200", "gh200-144gb"),
    "h100 at 500 W": ("h100-sxm-500w",),
    "b200": ("b200-sxm", "gb200"),
    "b300": ("b300-sxm", "gb300"),
    "tpu": ("tpu-v2", "tpu-v3", "tpu-v4", "tpu-v4i", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", "tpu-8i", "tpu-8t"),
}
"""Chips with a share of their own; the first have rows of their own, parts of the same kind follow them."""
KERNELS = {
    "training_matmul": "kernel_matmul",
    "training_matmul_fp8": "kernel_matmul_fp8",
    "training_matmul_fp4": "kernel_matmul_fp4",
    "training_attention": "attention_matmul",
    "training_attention_older_kernel": "attention_matmul_older_kernel",
}
"""What is written, and the share inside the kernel that it stands on."""
OLDER_KERNEL = 1.25
"""By how much the older attention kernel falls further behind in training than on its own."""
SHARES = ("matmul_share", "half_share", "attention_share")
SCALE = 0.06
"""Errors beyond it count by their size and not by its square, so that outliers do not rule."""
FULL_WEIGHT = 30
"""Rows of a source beyond which more of them weigh less."""
DOUBT = 0.1
"""Of the share that is expected beforehand, as a share of it."""
TRIED = [n / 100 for n in range(40, 141)]
"""Shares that are tried."""
STEPS = [0.025 * n for n in range(-16, 17)]
"""Logarithms of the factors on the present share at which steps are evaluated; they are so smooth in it that all else is interpolated."""


@dataclass(frozen=True)
class Case:
    """A row that is predicted: the logarithm of predicted over measured at every step of the share."""

    id: str
    source: str
    kind: str
    chip: str
    logarithms: tuple[float, ...]

    def logarithm(self, step: float) -> float:
        """Of predicted over measured, with the shares exp(step) times as large."""
        place = (step - STEPS[0]) / (STEPS[1] - STEPS[0])
        low = min(max(int(place), 0), len(self.logarithms) - 2)
        return self.logarithms[low] + (place - low) * (self.logarithms[low + 1] - self.logarithms[low])

    def error(self, share: float, now: float) -> float:
        """Predicted over measured less one, with another share than the present one."""
        return math.expm1(self.logarithm(math.log(share / now)))


def main(arguments: Sequence[str]) -> int:
    """Print the errors, write the shares if asked to, and give 0; 2 for an argument that is none."""
    if set(arguments) - {"--write"}:
        print(__doc__, file=sys.stderr)
        return 2
    catalog = Catalog.open()
    found = cases(catalog)
    fitting = [case for case in found if not held_back(case)]
    held = [case for case in found if held_back(case)]
    shares = fit(fitting, catalog)
    for kind, share in shares.items():
        print(
            f"{kind}: {share:.2f} (expected {expected(kind, catalog):.2f}) from {sum(c.kind == kind for c in fitting)} rows"
        )
    told = [errors("fitted", fitting, shares, catalog), errors("held back", held, shares, catalog)]
    told.append(statistics("sources that the fit did not see", unseen(found, catalog)))
    for one in told:
        print(
            f"{one.group}: n {one.n}, median {one.median_abs_error:.1%}, p90 {one.p90_abs_error:.1%}, bias {one.bias:+.1%}"
        )
    if "--write" in arguments:
        for kind, share in shares.items():
            for name in CLASSES[kind]:
                write(catalog.chip(name), share, measured=any(case.chip == name for case in fitting))
    return 0


def held_back(case: Case) -> bool:
    """Whether the fit does not look at a row."""
    return is_held_back(case.id)


def cases(catalog: Catalog) -> list[Case]:
    """The headline rows of chips that belong to a class."""
    preparing = Preparing(catalog, None)
    kinds = {chip: kind for kind, chips in CLASSES.items() for chip in chips}
    found = []
    for run in read_runs(published("training")):
        if isinstance(run, Unread) or left_out(run):
            continue
        try:
            one = preparing.prepare(run)
        except InputError:
            continue
        measured = run.step_time_s or run.throughput_step_time_s or training.time_from_flops(run, one.values)
        kind = kinds.get(one.workload.machine.chip.name)
        if measured and kind:
            given = inputs(one.workload, one.layout, preparing.catalog)
            times = at_steps(math_module(one.workload).evaluate, given)
            chip = one.workload.machine.chip.name
            found.append(Case(run.id, run.source, kind, chip, tuple(math.log(time / measured) for time in times)))
    return found


def at_steps(evaluate: Callable[..., Mapping[str, Any]], given: Mapping[str, float]) -> list[float]:
    """The step time with every step of the share."""
    return [
        call(evaluate, {**given, **{name: given[name] * math.exp(step) for name in SHARES}})["step_time"]
        for step in STEPS
    ]


def fit(found: Sequence[Case], catalog: Catalog) -> dict[str, float]:
    """The share of each class."""
    weights = Counter(case.source for case in found)
    return {kind: fit_one([case for case in found if case.kind == kind], weights, kind, catalog) for kind in CLASSES}


def fit_one(found: Sequence[Case], rows: Mapping[str, int], kind: str, catalog: Catalog) -> float:
    """The share with the smallest loss: pseudo-Huber in the logarithm, and a pull to what is expected beforehand."""
    now, before = present(kind, catalog), expected(kind, catalog)

    def loss(share: float) -> float:
        pull = (math.log(share / before) / DOUBT) ** 2 / 2
        step = math.log(share / now)
        return pull + sum(
            min(1.0, FULL_WEIGHT / rows[case.source]) * (math.hypot(1, case.logarithm(step) / SCALE) - 1)
            for case in found
        )

    return min(TRIED, key=loss)


def present(kind: str, catalog: Catalog) -> float:
    """The share that the files of the class hold now."""
    attainable = catalog.chip(CLASSES[kind][0]).attainable
    return attainable["training_matmul"].value / attainable["kernel_matmul"].value


def expected(kind: str, catalog: Catalog) -> float:
    """What long runs of large products keep of the best rate that was measured, over the share inside the kernel."""
    known = catalog.chip(CLASSES[kind][0]).attainable
    return known["sustained"].value * known["matmul_bf16"].value / known["kernel_matmul"].value


def unseen(found: Sequence[Case], catalog: Catalog) -> list[tuple[Case, float]]:
    """Every row with its error under shares fitted without its source."""
    told = []
    for source in sorted({case.source for case in found}):
        shares = fit([case for case in found if case.source != source], catalog)
        told += [
            (case, case.error(shares[case.kind], present(case.kind, catalog)))
            for case in found
            if case.source == source
        ]
    return told


def errors(group: str, found: Sequence[Case], shares: Mapping[str, float], catalog: Catalog) -> Summary:
    """The errors of rows under these shares."""
    return statistics(group, [(c, c.error(shares[c.kind], present(c.kind, catalog))) for c in found])


def statistics(group: str, told: Iterable[tuple[Case, float]]) -> Summary:
    """Median, 90th percentile and bias."""
    return summary(
        "training", group, [Outcome("training", case.id, training.QUANTITY, 1.0, 1 + error) for case, error in told]
    )


def write(chip: Chip, share: float, *, measured: bool) -> None:
    """Put the share into the file of a chip, with the arithmetic as a note; `measured` where rows are of this very chip."""
    path = CHIPS / f"{chip.name}.yaml"
    text = path.read_text("utf-8")
    for name, kernel in KERNELS.items():
        if name not in chip.attainable:
            continue
        inside = chip.attainable[kernel]
        if not isinstance(inside, Number):
            raise InputError(f"{chip.name}: {kernel} is not known")
        older = name == "training_attention_older_kernel"
        value = inside.value * share / (OLDER_KERNEL if older else 1)
        if name == "training_matmul" and not measured:
            value = min(value, chip.attainable["matmul_bf16"].value)
        confidence = "fitted" if measured and inside.confidence != "guess" else "near"
        note = f"{inside.value:g} in the kernel x {share:.2f} in training" + (f" / {OLDER_KERNEL:g}" if older else "")
        entry = (
            f"  {name}: {{value: {value:.3g}, unit: share, source: training-fit, confidence: {confidence},\n"
            f'      note: "{note}"}}\n'
        )
        text = re.sub(rf"  {name}: {{[^}}]*}}\n", entry, text)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
