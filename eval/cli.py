"""The commands of ``agenticiqa``: those of the program, and those that measure and tune it."""

from collections.abc import Sequence

from agenticiqa.programs.cli import commands
from agenticiqa.programs.cli.commands import Command
from agenticiqa.programs.cli.main import main as run_one

COMMANDS: dict[str, Command] = {
    **commands.COMMANDS,
    "evaluate": Command("measure the agreement with labeled images", "agenticiqa.eval.commands.evaluate"),
    "compare": Command("rank images, or compare runs of evaluate", "agenticiqa.eval.commands.compare"),
    "report": Command("write a page, or tables, of runs of evaluate", "agenticiqa.eval.commands.report"),
    "datasets": Command("list the data sets that evaluate knows; check a copy", "agenticiqa.eval.commands.datasets"),
    "calibrate": Command("fit the fusion, or the tools' curves, to your images", "agenticiqa.eval.commands.calibrate"),
    "optimize": Command("tune the prompts on labeled images (GEPA)", "agenticiqa.eval.commands.optimize"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, as ``agenticiqa.programs.cli.main`` does."""
    return run_one(argv, COMMANDS)
