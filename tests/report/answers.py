"""A small answer to report, complete in every form."""

from dataclasses import dataclass, field

from costmodel.report import Record, Table


@dataclass(frozen=True)
class Said:
    """An answer that says what it was given."""

    rows: tuple[Record, ...] = ({"name": "ring", "time_s": 0.0123, "bytes": 1 << 30, "fits": True, "note": None},)
    items: tuple[Record, ...] = ({"name": "ring", "item": "latency", "time_s": 1e-6},)
    more: dict[str, object] = field(default_factory=lambda: {"searched": 3})
    shown: tuple[Table, ...] = (
        Table("Collectives", ("algorithm", "time"), (("ring", "12.3 ms"), ("tree", "450 us")), ("One way.",)),
    )
    exit_code: int = 0

    def records(self):
        return self.rows

    def long_records(self):
        return self.items

    def results(self):
        return [dict(row) for row in self.rows]

    def extras(self):
        return self.more

    def tables(self):
        return self.shown
