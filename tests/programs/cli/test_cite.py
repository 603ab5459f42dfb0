"""``agenticiqa cite``: the entries have the facts of CITATION.cff, and README shows them."""

from pathlib import Path

import pytest
import yaml

from agenticiqa.eval.cli import main
from support.snippets import snippets

ROOT = Path(__file__).parents[3]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_entries_have_the_facts_of_the_citation_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite"]) == 0
    paper, program = capsys.readouterr().out.split("\n\n")
    (reference,) = CITATION["references"]
    authors = " and ".join("{family-names}, {given-names}".format_map(author) for author in reference["authors"])
    number = reference["identifiers"][0]["value"].removeprefix("arXiv:")
    for fact in (authors, reference["title"].partition(": ")[2], number, str(reference["year"]), reference["url"]):
        assert f"{fact}}}" in paper
    for fact in (CITATION["authors"][0]["name"], CITATION["version"], CITATION["license"]):
        assert f"{fact}}}" in program


def test_readme_has_the_entries_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite"]) == 0
    (block,) = (each for each in snippets(ROOT / "README.md") if each.kind == "bibtex")
    assert block.text.strip() == capsys.readouterr().out.strip()
