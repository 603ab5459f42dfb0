"""A study says on stderr what it does, how long it takes, and each of its longer steps."""

import argparse

import pytest

from agenticiqa.eval.research.command import begin_step, parser_of, run_command
from agenticiqa.programs.errors import UserError


def test_a_study_says_what_it_does_and_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    def run(args: argparse.Namespace) -> None:
        begin_step("clive: features")
        raise UserError("no such file")

    assert run_command(parser_of("Measure intervals.\n\nMore.", "an hour on two cores"), run, []) == 2
    first, step, error = capsys.readouterr().err.splitlines()
    assert first.endswith(" s  Measure intervals. It takes an hour on two cores.")
    assert step.endswith(" s  clive: features")
    assert error == "no such file"
