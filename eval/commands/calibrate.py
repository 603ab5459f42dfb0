"""``agenticiqa calibrate``: fit what the scores are made with to your images, and write it as a profile.

Without a model the tools' curves are fitted (``calibrate_tools``), with one, or to the rows of a finished run, the
fusion (``calibrate_fusion``).
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from agenticiqa.eval.calibrate.given import sorted_by_kind
from agenticiqa.eval.commands import calibrate_fusion, calibrate_tools
from agenticiqa.eval.commands.label_options import OF_LABELS, add_label_arguments
from agenticiqa.programs.cli.completing import complete_files
from agenticiqa.programs.cli.options import add_backend_arguments, add_dry_run_argument, add_workers_argument
from agenticiqa.programs.errors import UserError

EXAMPLES = """\
Two things can be fitted. With --backend or --config, or to the rows of a finished run (.jsonl), it is the fusion; else
it is the tools' curves.

THE FUSION: how far a model is to be trusted beside the tools, and where its levels lie. No labels are needed: it is
found out from how the model, the tools and further tools agree over the images (50 and more; with fewer a prior
decides).

  agenticiqa calibrate --backend openai.gpt-4o photos/ --out profile.yaml
      the model rates each photo, after the cost was told; --dry-run only tells it; --max-usd, --max-calls stop before
  agenticiqa calibrate scores.jsonl --out profile.yaml
      from the rows of "assess --jsonl" or "evaluate", at no cost
  agenticiqa calibrate --config mine.yaml mine/labels.csv --out profile.yaml
      with opinion scores; also "scores.jsonl mine/labels.csv"; the rows of "evaluate" have them (--no-labels: without)

Ratings are kept beside the profile, in a file that ends in .rows.jsonl: after Ctrl-C or a limit the same command
continues. A profile is of one model, its prompts and the tools. Name it in a configuration:

  fusion: profile.yaml

THE TOOLS' CURVES: every tool measures on its own scale; a curve per tool maps it to 1..5. The shipped curves were
fitted on public sets. Fit them to opinion scores of your own images:

  agenticiqa calibrate mine/labels.csv --out mine.yaml
      all tools that apply: full-reference ones where references are given, else no-reference ones
  agenticiqa calibrate mine/labels.csv --tool SSIM GMSD --mos-range 1 10 --out mine.yaml --force
      two tools, on scores from 1 to 10, replacing an earlier mine.yaml
  agenticiqa calibrate mine/labels.csv --split train --name "my set" --base other.yaml
      some of the rows; the name of the data in the profile; where the curves of all other tools come from
  agenticiqa calibrate photos/ --tool NOISE-SIGMA
      tools for one distortion need no scores: pristine photos are distorted step by step

Measured values are kept beside the output as they come, in a file that ends in .raw.jsonl: after Ctrl-C the same
command continues, and another fit of the same images is quick. A tool is refused, and keeps its curve of --base, if it
could measure fewer than 20 images or does not follow the scores in its own direction. A full-reference curve gives an
undistorted image 5 and extreme distortions at most about 2, which may shift the middle of the curve away from the
points: look at the picture. Then name the profile in a configuration:

  calibration: mine.yaml

Labels are what "agenticiqa evaluate" takes: labels.csv (columns image and mos, higher is better, and optionally
reference and split), a .tsv, .jsonl or .parquet table, a folder with such a table or of save_to_disk,
hub:OWNER/NAME@REVISION, or a data set by its name:

  agenticiqa calibrate kadid10k --root /data --out mine.yaml

exit status: 0 all was fitted, 1 some tools were refused, or some images not rated (named on stderr), 2 usage
"""

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
    "no_labels": "--no-labels",
}


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa calibrate``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    data = parser.add_argument(
        "data",
        nargs="+",
        type=Path,
        metavar="DATA",
        help="photos or their folders; labels with opinion scores; rows of a finished run (.jsonl)",
    )
    complete_files(data)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help=f"the profile to write ({calibrate_fusion.OUT} for the fusion, {calibrate_tools.OUT} for curves)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing profile and picture")
    add_label_arguments(parser)
    curves = parser.add_argument_group("the tools' curves")
    curves.add_argument("--tool", nargs="+", metavar="NAME", help='the tools to fit ("agenticiqa tools" lists them)')
    curves.add_argument("--name", metavar="N", help="name of the data in the profile (default: the folder's name)")
    curves.add_argument("--base", metavar="P", help="the profile of all other curves (default)")
    curves.add_argument("--plot", metavar="PNG", type=Path, help="the picture of the fit (default: beside the profile)")
    fusion = parser.add_argument_group("the fusion")
    fusion.add_argument(
        "--no-labels", action="store_true", help="do not use the opinion scores in the rows of evaluate"
    )
    add_workers_argument(parser)
    add_dry_run_argument(parser)
    add_backend_arguments(parser)


def run(args: Namespace) -> int:
    """Fit the fusion or the tools' curves, whichever the arguments are about."""
    given = sorted_by_kind(args.data)
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
