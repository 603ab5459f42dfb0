"""``agenticiqa tools``: list the metrics."""

import json
from argparse import ArgumentParser, Namespace

from agenticiqa.configs import load_config
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import OK
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.catalog import listing

HELP = "list the metrics: kind, direction, range, what each is best at"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa tools``."""
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument("--config", metavar="C", help="configuration file with a calibration or pyiqa metrics")


def run(args: Namespace) -> int:
    """Print the tools; the exit status is 0."""
    config = load_config(args.config)
    rows = listing(toolbox(config.calibration, config.pyiqa), config.calibration)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        render.print_tools(rows)
    return OK
