"""JSON for scripts: one object with `tool_version`, `catalog_hash`, `results` and what the answer adds."""

from __future__ import annotations

import json
from collections.abc import Mapping

from costmodel.report.answer import Answer, plain
from costmodel.version import __version__


def render(answer: Answer, catalog_hash: str) -> str:
    """`answer` as one JSON object; numbers that are not finite become null, never NaN or Infinity."""
    whole = {"tool_version": __version__, "catalog_hash": catalog_hash, "results": answer.results(), **answer.extras()}
    return json.dumps(_plain(whole), indent=2, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return plain(value)
