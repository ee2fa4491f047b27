"""`costmodel catalog`: whether the catalog, with a folder of your own, holds together."""

from __future__ import annotations

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import examples, new_app
from costmodel.report import Answer

app = new_app("catalog", "The files behind hardware and models.")


@app.command(epilog=examples("catalog check", "catalog check --catalog my-hardware"))
@answering
def check(catalog: Catalog) -> Answer:
    """Lint every file of the catalog and of your own folder.

    Exits with 1 when something is wrong.
    """
    from costmodel.studies.hardware import check_catalog

    return check_catalog(catalog=catalog)
