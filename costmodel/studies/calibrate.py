"""`calibrate`: constants of a chip and its links fitted to a user's own measurements, and written as an overlay of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.errors import InputError
from costmodel.report import Record, Table, human
from costmodel.studies.calibration import collectives, nccl_tests, overlay, products, steps
from costmodel.studies.calibration.cases import Kind
from costmodel.studies.calibration.constants import Place
from costmodel.studies.calibration.fitted import UNSEEN, Fitted, Moved, fitted
from costmodel.studies.validation.rows import LARGEST_TABLE, read_table
from costmodel.topology.machine import Machine, parse_machine

SETTINGS = "calibration"
UNDERSTOOD = (
    "output of nccl-tests (all_reduce_perf and its like), a CSV of matrix products (columns m, n, k, dtype and a time with its unit, "
    "such as time_us), or a CSV of step times (the columns of tables/published/training.csv)"
)
SAID = {collectives.NAME: "collectives", products.NAME: "matrix products", steps.NAME: "training steps"}


@dataclass(frozen=True, slots=True)
class CalibrateAnswer:
    """What was fitted, kind by kind, and the files of the overlay; none where none was asked for or nothing moved."""

    on: str
    fits: tuple[Fitted, ...]
    written: tuple[Path, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0: that the catalog was right is an answer too."""
        return 0

    def records(self) -> Sequence[Record]:
        """One row a kind, with its errors."""
        return [self._errors(one) for one in self.fits]

    def long_records(self) -> Sequence[Record]:
        """One row a constant."""
        return [{"kind": one.kind.name, **_constant(moved)} for one in self.fits for moved in one.constants]

    def results(self) -> Sequence[Mapping[str, object]]:
        """One object a kind, with its constants."""
        return [
            {
                **self._errors(one),
                "files": list(one.kind.files),
                "constants": [_constant(moved) for moved in one.constants],
                "notes": list(one.notes),
            }
            for one in self.fits
        ]

    def extras(self) -> Mapping[str, object]:
        """The files that were written, and what to know."""
        return {"written": [str(path) for path in self.written], "notes": list(self.notes)}

    def tables(self) -> Sequence[Table]:
        """Errors, then constants, then what to know."""
        rows = [
            (SAID[one.kind.name], len(one.kind.cases), said, human.percent(errors.median), human.percent(errors.p90))
            for one in self.fits
            for said, errors in (
                ("the catalog", one.before),
                ("what the others fit", one.after),
                ("the overlay", one.on_the_same),
            )
        ]
        notes = (
            "error: predicted over measured, less one, without sign",
            "what the others fit: each measurement predicted by a fit without it and its repeats; expect as much elsewhere",
        )
        headers = ("measured", "n", "predicted by", "median", "90th\npercentile")
        found = [Table(f"Error of predictions: {self.on}", headers, rows, notes), *map(_constants_table, self.fits)]
        return [*found, Table("", notes=self.notes)] if self.notes else found

    def _errors(self, one: Fitted) -> Record:
        ends = (("before", one.before), ("after", one.after), ("overlay", one.on_the_same))
        return {
            "on": self.on,
            "kind": one.kind.name,
            "n": len(one.kind.cases),
            "groups": one.groups,
            "folds": one.folds,
            **{f"{name}_median_abs_error": errors.median for name, errors in ends},
            **{f"{name}_p90_abs_error": errors.p90 for name, errors in ends},
            "moved": one.moved,
        }


def calibrate(
    files: Sequence[str | Path],
    *,
    on: str | None = None,
    chip: str | None = None,
    output: Path | None = None,
    force: bool = False,
    operation: str | None = None,
    models: Path | None = None,
    today: date | None = None,
    catalog: Catalog | Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> CalibrateAnswer:
    """Fit a few constants of a chip and its links to measurements, judge them on what is left out, and write an overlay.

    Args:
        files: what was measured: output of nccl-tests, CSVs of matrix products, CSVs of step times; each is known by what it holds.
        on: the machine that was measured, such as `dgx-h100:64`; a log that lists its ranks is of so many chips of that cluster.
        chip: the chip, where only matrix products were measured.
        output: a folder for the overlay, which --catalog loads; nothing is written without one.
        force: write over files that are there.
        operation: what ran in logs of nccl-tests that do not say it.
        models: a CSV of the shapes of models that the catalog does not have, for step times.
        today: the date in the overlay; the day it is.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.
        progress: called with the number of parts that are done.

    Raises InputError, with file and line, for a file that cannot be read or that is none of these.

    """
    opened = Catalog.of(catalog)
    if not files:
        raise InputError(f"no file was given: {UNDERSTOOD}")
    if (on is None) == (chip is None):
        raise InputError("say what was measured: --on CLUSTER:SIZE, or --chip NAME for matrix products alone")
    machine = parse_machine(on, 1, opened) if on is not None else None
    of = machine.chip if machine is not None else opened.chip(chip or "")
    wanted = _operation(operation)
    kinds = _kinds(_sorted([Path(file) for file in files]), machine, of, wanted, models, opened)
    places = [place for kind in kinds for constant in kind.constants for place in constant.members]
    if output is not None:
        overlay.refuse_existing(output, overlay.entries_of(places), opened, force=force)
    settings, values, found, done = opened.assumptions(SETTINGS), dict[Place, float](), [], 0
    for kind in kinds:
        start = done

        def tell(count: int, start: int = start) -> None:
            progress(start + count)

        found.append(fitted(kind, settings, values, tell))
        values |= found[-1].values
        done += found[-1].folds
    written, notes = _write(output, found, today or date.today(), opened)  # noqa: DTZ011 - the day where the user is
    return CalibrateAnswer(on or of.name, tuple(found), tuple(written), tuple(notes))


def _operation(operation: str | None) -> str:
    from costmodel.studies.operations import operation_named

    known = tuple(dict.fromkeys(nccl_tests.OPERATIONS.values()))
    name = operation_named(operation) if operation is not None else ""
    if name and name not in known:
        raise InputError.unknown("operation of nccl-tests", name, known)
    return name


def _sorted(paths: Sequence[Path]) -> Mapping[str, list[tuple[str, Path]]]:
    """The files by kind, by what they hold; raises InputError for one that is of none."""
    found: dict[str, list[tuple[str, Path]]] = {}
    for path in paths:
        found.setdefault(_kind_of(path), []).append((str(path), path))
    return found


def _kind_of(path: Path) -> str:
    if nccl_tests.knows(_text(path)):
        return collectives.NAME
    try:
        columns, _ = read_table(path)
    except InputError as error:
        if path.suffix.lower() == ".csv":
            raise
        raise InputError(f"{str(path)[:200]!r} is none of what can be calibrated on: {UNDERSTOOD} ({error})") from None
    for name, knows in ((steps.NAME, steps.knows), (products.NAME, products.knows)):
        if knows(columns):
            return name
    raise InputError(
        f"{str(path)[:200]}:1: the columns {', '.join(columns)[:200]} are those of nothing that can be calibrated on: {UNDERSTOOD}"
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise InputError(f"{str(path)[:200]!r} is larger than {LARGEST_TABLE // 2**20} MiB")
        return path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {str(path)[:200]!r}: {error.strerror}") from None
    except ValueError as error:  # a null byte in the name
        raise InputError(f"cannot read {str(path)[:200]!r}: {error}") from None


def _kinds(
    files: Mapping[str, list[tuple[str, Path]]],
    machine: Machine | None,
    chip: Chip,
    operation: str,
    models: Path | None,
    catalog: Catalog,
) -> list[Kind]:
    """Collectives first, whose links a step then takes as they were fitted."""
    found = []
    if logs := files.get(collectives.NAME):
        texts = [(name, _text(path)) for name, path in logs]
        found.append(collectives.kind(texts, _needed(machine, logs[0][0]), operation, catalog))
    elif operation:
        raise InputError("--operation is for output of nccl-tests, and there is none among the files")
    if tables := files.get(products.NAME):
        found.append(products.kind(tables, chip, catalog))
    if tables := files.get(steps.NAME):
        cluster = _needed(machine, tables[0][0]).cluster
        found.append(steps.kind(tables, cluster, models, collectives.NAME in files, catalog))
    return found


def _needed(machine: Machine | None, file: str) -> Machine:
    if machine is None:
        raise InputError(f"{file[:200]} was measured on a machine: give --on CLUSTER:SIZE in place of --chip")
    return machine


def _write(
    output: Path | None, found: Sequence[Fitted], today: date, catalog: Catalog
) -> tuple[list[Path], Iterable[str]]:
    moved = [one for one in found if one.moved]
    if output is None:
        return [], ["nothing is written: give -o FOLDER for an overlay that --catalog loads"] if moved else []
    if not moved:
        return [], ["nothing moved, and no overlay is written: the catalog stands"]
    values, sources, numbers, blocks = dict[Place, float](), dict[Place, str](), dict[Place, Number](), {}
    for one in moved:
        values |= one.values
        sources |= dict.fromkeys(one.values, f"calibrated on {_names(one.kind.files)}, {today.isoformat()}")
        numbers |= {
            place: number for constant in one.kind.constants for place, (number, *_) in constant.members.items()
        }
        for (chip, kernel), held in (one.kind.blocks or {}).items():
            blocks[chip, kernel] = held
            numbers |= {Place("kernels", chip, ("kernels", kernel, name)): number for name, number in held.items()}
    written = overlay.write(output, values, numbers, sources, blocks, catalog)
    return written, [f"the overlay is in {output}: give --catalog {output} to any command"]


def _names(files: Sequence[str]) -> str:
    """The names of files as a source tells them, printable and not too long."""
    names = [_printable(Path(file).name) for file in files]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80]


def _constants_table(one: Fitted) -> Table:
    """The constants that the measurements depend on, and the names of the others."""
    rows = [
        (
            f"{moved.constant.name}, {moved.constant.of}",
            _shown(moved, moved.before),
            _shown(moved, moved.after) if not moved.why else "=",
            f"{_shown(moved, moved.low)} .. {_shown(moved, moved.high)}" if not moved.why else "",
            moved.why,
        )
        for moved in one.constants
        if moved.why != UNSEEN
    ]
    unseen = [f"{moved.constant.name}, {moved.constant.of}" for moved in one.constants if moved.why == UNSEEN]
    said = [f"unchanged, since {UNSEEN}: {'; '.join(unseen)}"] if unseen else []
    headers = ("constant", "before", "after", "over the parts left out", "unchanged, since")
    return Table(f"Constants: {SAID[one.kind.name]}", headers, rows, [*said, *one.notes])


def _constant(moved: Moved) -> Record:
    return {
        "constant": moved.constant.name,
        "of": moved.constant.of,
        "numbers": " ".join(".".join((place.entry, *place.path)) for place in moved.constant.members),
        "unit": moved.constant.first.unit,
        "before": moved.before,
        "after": moved.after,
        "low": moved.low,
        "high": moved.high,
        "unchanged_because": moved.why or None,
    }


def _shown(moved: Moved, value: float) -> str:
    shown = {"s": human.seconds, "B/s": human.rate}.get(moved.constant.first.unit, human.number)
    return shown(value)
