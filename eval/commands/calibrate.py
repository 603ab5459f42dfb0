"""``agenticiqa calibrate``: fit what the scores are made with to your images, and write it as a profile.

Without a model the tools' curves are fitted (``calibrate_tools``), with one, or to the rows of a finished run, the
fusion (``calibrate_fusion``), with ``--adapt`` an adapter of the learned scorer (``calibrate_adapter``).
"""

from argparse import Namespace

from agenticiqa.eval.calibrate.selection import sorted_by_kind
from agenticiqa.eval.commands import calibrate_adapter, calibrate_fusion, calibrate_tools
from agenticiqa.eval.commands.label_options import OF_LABELS
from agenticiqa.programs.errors import UserError

OF_TOOLS = {"tool": "--tool", "name": "--name", "base": "--base", "plot": "--plot"}
OF_FUSION = {
    "api_base": "--api-base",
    "profile": "--profile",
    "max_side": "--max-side",
    "no_cache": "--no-cache",
    "max_calls": "--max-calls",
    "max_usd": "--max-usd",
    "workers": "--workers",
    "dry_run": "--dry-run",
    "batch": "--batch",
    "image_urls": "--image-urls",
    "no_labels": "--no-labels",
}


def run(args: Namespace) -> int:
    """Fit the fusion or the tools' curves, whichever the arguments are about."""
    given = sorted_by_kind(args.data)
    if args.adapt:
        of_others = {**OF_TOOLS, **OF_FUSION, "backend": "--backend", "config": "--config", "adapter": "--adapter"}
        foreign = [option for name, option in of_others.items() if name != "workers" and getattr(args, name)]
        if foreign or given.rows or given.photos:
            what = foreign[0] if foreign else f"{(given.rows + given.photos)[0]}, which is no table of labels,"
            raise UserError(f"--adapt fits the learned scorer to one table of labels: leave out {what}".rstrip(","))
        return calibrate_adapter.run(args, given.labels)
    fits_fusion = bool(given.rows) or args.backend is not None or args.config is not None
    foreign = [option for name, option in (OF_TOOLS if fits_fusion else OF_FUSION).items() if getattr(args, name)]
    if foreign and fits_fusion:
        raise UserError(f"{foreign[0]} is about the tools' curves, and --backend, --config and .jsonl about the fusion")
    if foreign:
        raise UserError(f"{foreign[0]} is about the fusion: name the model with --backend or --config")
    of_rows = {"mos_range"} if given.rows else set()
    unused = [name for name in OF_LABELS if getattr(args, name) is not None and name not in of_rows]
    if unused and not given.labels:
        raise UserError(f"--{unused[0].replace('_', '-')} is about labels, and none are named")
    return calibrate_fusion.run(args, given) if fits_fusion else calibrate_tools.run(args, given)
