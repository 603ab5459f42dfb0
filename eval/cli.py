"""List all commands of ``agenticiqa``: those of the program, and those that evaluate and tune it."""

from collections.abc import Sequence

from agenticiqa.eval.commands import arguments
from agenticiqa.programs.cli import commands
from agenticiqa.programs.cli.commands import Command
from agenticiqa.programs.cli.main import main as run_one

COMMANDS: dict[str, Command] = {
    "assess": commands.COMMANDS["assess"],
    "compare": Command(
        "rank images, or compare results of `evaluate`",
        arguments.CompareOptions,
        "agenticiqa.eval.commands.compare",
        arguments.COMPARE_EXAMPLES,
    ),
    **commands.COMMANDS,
    "evaluate": Command(
        "measure how well scores agree with the MOS of labeled images",
        arguments.EvaluateOptions,
        "agenticiqa.eval.commands.evaluate",
        arguments.EVALUATE_EXAMPLES,
    ),
    "report": Command(
        "write a page or tables from results of `evaluate`",
        arguments.ReportOptions,
        "agenticiqa.eval.commands.report",
        arguments.REPORT_EXAMPLES,
    ),
    "datasets": Command(
        "list the supported public data sets, or check your copy",
        arguments.DatasetsOptions,
        "agenticiqa.eval.commands.datasets",
        arguments.DATASETS_EXAMPLES,
    ),
    "calibrate": Command("fit the scores to your own images and labels", examples=arguments.CALIBRATE_EXAMPLES),
    "calibrate adapter": Command(
        "correct the offline score with your own labels",
        arguments.CalibrateAdapterOptions,
        "agenticiqa.eval.commands.calibrate_adapter",
        arguments.CALIBRATE_ADAPTER_EXAMPLES,
    ),
    "calibrate fusion": Command(
        "set the weight of a model relative to the tools",
        arguments.CalibrateFusionOptions,
        "agenticiqa.eval.commands.calibrate_fusion",
        arguments.CALIBRATE_FUSION_EXAMPLES,
    ),
    "optimize": Command(
        "tune the prompts on labeled images",
        arguments.OptimizeOptions,
        "agenticiqa.eval.commands.optimize",
        arguments.OPTIMIZE_EXAMPLES,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, as ``agenticiqa.programs.cli.main`` does."""
    return run_one(argv, COMMANDS)
