"""``agenticiqa calibrate``: fit the tools' curves, the fusion or an adapter to the user's images, and save the result.

Without a model it fits the tools' curves (``calibrate_tools``). With a model, or for the rows of a finished run, it
fits the fusion (``calibrate_fusion``). ``--adapt`` fits an adapter of the learned scorer (``calibrate_adapter``).
"""

from argparse import Namespace

from agenticiqa.configs.options import Options
from agenticiqa.eval.calibrate.given import sorted_by_kind
from agenticiqa.eval.commands import calibrate_adapter, calibrate_fusion, calibrate_tools
from agenticiqa.eval.commands.arguments import CURVES, FUSION, LABELS
from agenticiqa.programs.cli.arguments import BATCHED, DRY_RUN, MODELS, WORKERS_OPTION
from agenticiqa.programs.cli.options import given as options_given
from agenticiqa.programs.errors import UserError

OF_FUSION: Options = (*FUSION, WORKERS_OPTION, DRY_RUN, BATCHED, MODELS)


def run(args: Namespace) -> int:
    """Fit the fusion, the tools' curves or an adapter, as the arguments say."""
    given = sorted_by_kind(args.data)
    if args.adapt:
        unsuitable = options_given(args, (*CURVES, *OF_FUSION), but=["--workers"])
        if unsuitable or given.rows or given.photos:
            what = unsuitable[0] if unsuitable else f"{(given.rows + given.photos)[0]}, which is not a table of labels"
            raise UserError(f"--adapt takes one table of labels and no other data: remove {what}")
        return calibrate_adapter.run(args, given.labels)
    fits_fusion = bool(given.rows) or args.backend is not None or args.config is not None
    unsuitable = options_given(args, CURVES if fits_fusion else OF_FUSION)
    if unsuitable and fits_fusion:
        raise UserError(
            f"{unsuitable[0]} is for tool curves, but a model or saved results fit the fusion: remove {unsuitable[0]}"
        )
    if unsuitable:
        raise UserError(
            f"{unsuitable[0]} is for a fusion profile; remove it, or name a model with --backend or --config"
        )
    unused = options_given(args, LABELS, but=["--mos-range"] if given.rows else [])
    if unused and not given.labels:
        raise UserError(f"{unused[0]} is for labels; remove it, or name a table of labels or a data set")
    if fits_fusion:
        return calibrate_fusion.run(args, given)
    if not args.tool or given.labels is None or given.photos:
        raise UserError(
            "name what to fit: labels with --adapt (the offline score) or with --tool NAME (the curve of a tool), or "
            "photos with --backend or --config (a fusion profile)"
        )
    return calibrate_tools.run(args, given.labels)
