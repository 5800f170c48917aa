"""A release has one version and one date, wherever they are written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import sparq_sim

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def cited(field: str) -> str:
    (found,) = re.findall(rf"^{field}: (.*)$", CITATION, re.MULTILINE)
    return str(found)


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    assert sparq_sim.__version__ == PROJECT["version"] == cited("version")


def test_the_changelog_opens_with_what_is_unreleased_then_with_the_release_that_is_cited() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings[:2] == ["[Unreleased]", f"[{cited('version')}] - {cited('date-released')}"]


def test_the_licence_and_the_authors_are_the_same_wherever_they_are_written() -> None:
    (author,) = PROJECT["authors"]
    assert cited("license") == PROJECT["license"]
    assert f"- name: {author['name']}" in CITATION
    assert author["name"] in (ROOT / "LICENSE").read_text(encoding="utf-8")
