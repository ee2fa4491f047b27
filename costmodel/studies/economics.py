"""What a training run takes: days, chip-hours, money and energy, as if nothing failed and as it is to be expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Price, Unknown
from costmodel.runtime import call
from costmodel.search.workload import Workload


@dataclass(frozen=True, slots=True)
class Failures:
    """What failures and checkpoints make of a run, by the names of the JSON keys.

    `goodput_low` and `goodput_high` are those of the worst and the best fleets.
    """

    mtbf_s: float
    checkpoint_bytes: float
    checkpoint_write_s: float
    checkpoint_interval_s: float
    goodput: float
    goodput_low: float
    goodput_high: float
    run_time_with_failures_s: float
    chip_time_with_failures_s: float
    cost_with_failures_usd: float
    energy_with_failures_j: float

    def figures(self) -> dict[str, float]:
        """By name."""
        return asdict(self)


def failures(run: Mapping[str, Any]) -> Failures:
    """Those of the quantities of a run that come from failures."""
    return Failures(
        mtbf_s=run["mtbf"],
        checkpoint_bytes=run["checkpoint_bytes"],
        checkpoint_write_s=run["checkpoint_write"],
        checkpoint_interval_s=run["checkpoint_interval"],
        goodput=run["goodput"],
        goodput_low=run["goodput_low"],
        goodput_high=run["goodput_high"],
        run_time_with_failures_s=run["run_time_with_failures"],
        chip_time_with_failures_s=run["chip_time_with_failures"],
        cost_with_failures_usd=run["cost_with_failures"],
        energy_with_failures_j=run["energy_with_failures"],
    )


def economics(
    workload: Workload, values: Mapping[str, Any], catalog: Catalog, train_tokens: int, price: Price | None
) -> Mapping[str, Any]:
    """Every quantity of a run by name, from those of its step; what the catalog does not know makes NaN."""
    from costmodel.generated import economics_math

    return call(economics_math.economics, run_inputs(workload, values, catalog, train_tokens, price))


def run_inputs(
    workload: Workload, values: Mapping[str, Any], catalog: Catalog, train_tokens: int, price: Price | None
) -> dict[str, Any]:
    """What the equations of a run are given, by name."""
    power = workload.machine.chip.power
    unknown = float("nan")
    return {
        **{name: number.value for name, number in catalog.assumptions("energy").items()},
        **{name: number.value for name, number in catalog.assumptions("reliability").items()},
        "domain_chips": workload.machine.cluster.scale_up.size,
        "step_time": values["step_time"],
        "step_tokens": values["step_tokens"],
        "train_tokens": train_tokens,
        "chips": workload.machine.chips,
        "chip_price": unknown if price is None else price.usd_per_chip_hour.value / 3600,
        "chip_power": unknown if isinstance(power, Unknown) else power.value,
        "parameters": values["trained_parameters"],
        "checkpoint_bytes_per_parameter": values["weight_bytes"] + values["optimizer_bytes"],
    }


def list_price(prices: tuple[Price, ...]) -> Price | None:
    """The price that costs are counted at: the first on-demand one of the entry, else the first of any kind."""
    return next((price for price in prices if price.kind == "on-demand"), prices[0] if prices else None)
