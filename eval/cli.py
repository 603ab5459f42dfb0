"""The commands of ``agenticiqa``: those of the program, and those that measure and tune it."""

from collections.abc import Sequence

from agenticiqa.eval.commands import arguments
from agenticiqa.programs.cli import commands
from agenticiqa.programs.cli.commands import Command
from agenticiqa.programs.cli.main import main as run_one

COMMANDS: dict[str, Command] = {
    **commands.COMMANDS,
    "evaluate": Command(
        "measure the agreement with labeled images",
        arguments.add_evaluate_arguments,
        "agenticiqa.eval.commands.evaluate",
    ),
    "compare": Command(
        "rank images, or compare runs of evaluate",
        arguments.add_compare_arguments,
        "agenticiqa.eval.commands.compare",
    ),
    "report": Command(
        "write a page, or tables, of runs of evaluate",
        arguments.add_report_arguments,
        "agenticiqa.eval.commands.report",
    ),
    "datasets": Command(
        "list the data sets that evaluate knows; check a copy",
        arguments.add_datasets_arguments,
        "agenticiqa.eval.commands.datasets",
    ),
    "calibrate": Command(
        "fit the fusion, or the tools' curves, to your images",
        arguments.add_calibrate_arguments,
        "agenticiqa.eval.commands.calibrate",
    ),
    "optimize": Command(
        "tune the prompts on labeled images",
        arguments.add_optimize_arguments,
        "agenticiqa.eval.commands.optimize",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, as ``agenticiqa.programs.cli.main`` does."""
    return run_one(argv, COMMANDS)
