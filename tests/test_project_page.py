"""What stands about the project: a dated changelog, a citation, versions of Python that are tested, and a warning."""

import re
import tomllib
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

import nceref
from tools import released_ids

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEADING = re.compile(r"## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)")


def releases(text):
    """Version and date of each heading of a changelog, the newest first; what is not released comes before."""
    headings = re.findall(r"^## .*$", text, re.MULTILINE)
    headings = headings[1:] if headings[0] == "## Unreleased" else headings
    dated = [HEADING.fullmatch(heading) for heading in headings]
    if not all(dated):
        msg = f"a heading must be '## VERSION - YYYY-MM-DD', got {headings}"
        raise ValueError(msg)
    return [(tuple(map(int, each[1].split("."))), date.fromisoformat(each[2])) for each in dated]


def in_order(released):
    return all(newer[0] > older[0] and newer[1] >= older[1] for newer, older in pairwise(released))


def test_the_changelog_has_the_version_and_its_date():
    released = releases((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert released
    assert in_order(released)
    assert ".".join(map(str, released[0][0])) == nceref.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == nceref.__version__
    assert re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)[1] == released[0][1].isoformat()
    assert '- name: "the nceref developers"\n' in citation
    assert PROJECT["authors"] == [{"name": "the nceref developers"}]
    # Every release has written down its ids.
    names = re.findall(r'^ "(\S+)": \{$', released_ids.LIST.read_text(encoding="utf-8"), re.MULTILINE)
    assert [".".join(map(str, version)) for version, _ in released] == names[::-1]


@pytest.mark.parametrize("heading", ["## 0.2.0", "## 0.2.0 - 1.1.2027", "## 0.2 - 2027-01-01", "## 0.2.0 (2027-01-01)"])
def test_a_heading_without_a_date_is_refused(heading):
    with pytest.raises(ValueError, match="must be '## VERSION - YYYY-MM-DD'"):
        releases(f"## Unreleased\n\n{heading}\n")


def test_a_release_that_stands_in_the_wrong_place_is_seen():
    assert in_order(releases("## 0.10.0 - 2027-01-01\n## 0.9.0 - 2026-12-01"))
    assert not in_order(releases("## 0.9.0 - 2027-01-01\n## 0.10.0 - 2026-12-01"))
    assert not in_order(releases("## 0.10.0 - 2026-01-01\n## 0.9.0 - 2026-12-01"))


def test_addresses_of_the_project_are_whole():
    assert all(address.startswith("https://") for address in PROJECT.get("urls", {}).values())


@pytest.mark.parametrize("page", ["README.md", "docs/verify.md", "docs/security.md"])
def test_pages_warn_that_a_target_is_executed(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert re.search(r"execute[sd]\W[^.]*with (all|your) rights", text)
    assert "do not trust, or use `--isolate`" in text


def test_the_help_of_verify_warns_that_a_target_is_executed(run):
    _, text, _ = run("verify", "--help")
    words = " ".join(text.split())
    assert "TARGET is executed with your rights" in words
    assert "check no program that you do not trust, or use --isolate" in words
