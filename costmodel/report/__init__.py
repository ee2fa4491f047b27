"""How answers are told: tables, markdown, CSV and JSON, on standard output or in a file."""

from costmodel.report.answer import Answer, Record, Scalar, Table
from costmodel.report.breakdown import Breakdown
from costmodel.report.write import Format, write

__all__ = ["Answer", "Breakdown", "Format", "Record", "Scalar", "Table", "write"]
