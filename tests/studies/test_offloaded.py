"""What `plan` and `train` say of layouts whose hosts keep something, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest

from costmodel.errors import InputError
from costmodel.search.candidates import OFFLOADS_TO, candidates
from costmodel.search.evaluate import evaluate
from costmodel.search.grid import search
from costmodel.search.workload import Workload
from costmodel.studies.plan import plan
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, decoder, machine

SMALL = {"batch": 32, "sequence_length": 4096, "catalog": CATALOG}


def test_a_search_without_hosts_finds_what_one_with_them_finds_for_nothing_kept():
    workload = Workload(machine("dgx-h100:8"), decoder(layers=8), 2048, 16)
    tried = replace(candidates(8, 16, 2048), micro_batches=(1, 2))
    alone = search(workload, CATALOG, tried)
    hosted = search(workload, CATALOG, replace(tried, offloads=("none", "optimizer")))
    for name in ("step_time", "device_used", "legal"):
        found = np.broadcast_to(getattr(hosted, name), hosted.step_time.shape)
        kept = np.broadcast_to(getattr(alone, name), alone.step_time.shape)[..., 0, :]
        assert np.allclose(kept, found[..., 0, :], rtol=1e-12)


def test_the_grid_has_the_time_and_memory_of_each_layout():
    workload = Workload(machine("dgx-h100:8"), decoder(layers=8), 2048, 16)
    grid = search(workload, CATALOG, replace(candidates(8, 16, 2048), micro_batches=(1,), offloads=OFFLOADS_TO["nvme"]))
    rng = np.random.default_rng(1)
    places = np.argwhere(grid.legal)
    for index in places[rng.choice(len(places), 40, replace=False)]:
        values = evaluate(workload, grid.settled(tuple(index)), CATALOG)
        assert values["step_time"] == pytest.approx(grid.step_time[tuple(index)])
        assert values["device_used"] == pytest.approx(grid.device_used[tuple(index)])
        assert values["host_left"] == pytest.approx(grid.host_left[tuple(index)])


def test_plan_fits_with_hosts_what_does_not_fit_without():
    without = plan("llama-3-70b", "dgx-h100:8", **SMALL)
    assert without.exit_code == 1
    assert all(found.layout.offload == "none" for found in without.best)
    found = plan("llama-3-70b", "dgx-h100:8", offload="host", **SMALL)
    assert found.exit_code == 0
    best = found.best[0]
    assert best.layout.offload != "none"
    assert best.host.used_bytes <= best.host.capacity_bytes
    again = train("llama-3-70b", "dgx-h100:8", layout=str(best.layout), **SMALL).estimates[0]
    assert again.step_time_s == pytest.approx(best.step_time_s)


def test_hosts_are_among_the_changes_that_make_a_layout_fit():
    found = train("llama-3-70b", "dgx-h100:8", layout="tp=8 recompute=full", **SMALL)
    told = found.results()[0]["changes_to_fit"]
    assert told and all(change["change"].startswith("offload=optimizer") for change in told)
    assert train("llama-3-70b", "dgx-h100:8", layout=told[0]["layout"], **SMALL).exit_code == 0


def test_a_host_without_room_is_a_no():
    found = train(
        "llama-3.1-405b", "dgx-h100:8", layout="zero=3 recompute=full offload=optimizer+weights+activations", **SMALL
    )
    estimate = found.estimates[0]
    assert estimate.host.left_bytes < 0
    assert (estimate.fits, found.exit_code) == ("no", 1)
    assert any("it is short by" in note for table in found.tables() for note in table.notes)


def test_what_is_not_known_of_a_host_is_named():
    with pytest.raises(
        InputError, match="offload=optimizer needs the memory and the bandwidth of the memory of a host"
    ):
        train("llama-3-8b", "aws-p5:8", layout="offload=optimizer", **SMALL)
    with pytest.raises(InputError, match="bandwidth of a drive"):
        plan("llama-3-8b", "gh200-cluster:8", offload="nvme", **SMALL)
    with pytest.raises(InputError, match="did you mean host"):
        plan("llama-3-8b", "dgx-h100:8", offload="hosts", **SMALL)
    assert train("llama-3-8b", "aws-p5:8", **SMALL).results()[0]["host_capacity_bytes"] is None


def test_a_coherent_link_shows_less():
    """NVLink-C2C moves 450 GB/s one way where PCIe 5 moves 63: copies of activations hide."""
    layout = "zero=3 recompute=none offload=activations"
    slow, fast = (
        train("llama-3-8b", on, layout=layout, **SMALL).estimates[0] for on in ("dgx-h100:8", "gh200-cluster:8")
    )
    assert fast.time["offload"] < slow.time["offload"] / 3
    assert slow.host.needed_bytes_per_s > 63e9


def test_figures_of_hosts_are_in_json_and_csv():
    found = train("llama-3-8b", "dgx-h100:8", layout="zero=2 offload=optimizer", **SMALL)
    result, record = found.results()[0], found.records()[0]
    assert result["host_used_bytes"] > 0 and result["host_capacity_bytes"] == 2e12
    assert result["time"]["offload"] == record["time_offload_s"] > 0
    assert record["offload"] == "optimizer"
