"""``agenticiqa tools``: list the metrics."""

import json
from argparse import Namespace

from agenticiqa.configs import load_config
from agenticiqa.programs.cli import tables
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.catalog import listing


def run(args: Namespace) -> int:
    """Print the tools; the exit status is 0."""
    config = load_config(args.config)
    rows = listing(toolbox(config.calibration, config.pyiqa, config.adapter), config.calibration)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        tables.print_tools(rows)
    return OK
