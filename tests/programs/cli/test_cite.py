"""``agenticiqa cite``: the entries have the facts of CITATION.cff."""

from pathlib import Path

import pytest
import yaml

from agenticiqa.eval.cli import main

CITATION = yaml.safe_load((Path(__file__).parents[3] / "CITATION.cff").read_text())


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
