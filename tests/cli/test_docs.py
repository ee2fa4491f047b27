"""Pages of the documentation: links lead somewhere, and every page can be reached."""

import re

import pytest

from tests.cli.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def links(page):
    return [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


def test_every_page_is_linked():
    linked = {(page.parent / link).resolve() for page in PAGES for link in links(page)}
    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in linked and page.name != "README.md"] == []
