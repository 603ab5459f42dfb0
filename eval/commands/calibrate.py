"""``agenticiqa calibrate``: fit the tools' curves to 1..5 on the user's opinion scores, and write them as a profile."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from agenticiqa.eval.calibrate import fit_report, samples, selection
from agenticiqa.eval.commands.console import print_table
from agenticiqa.eval.datasets import MOS_RANGE_HELP
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.completing import complete_files
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.calibration import load_profile, write_profile

OUT = Path("calibration.yaml")

EXAMPLES = """\
Every tool measures on its own scale; a curve per tool maps it to 1..5. The shipped curves were fitted on public sets.
Fit them to opinion scores of your own images:

  agenticiqa calibrate mine/labels.csv --out mine.yaml
      all tools that apply: full-reference ones where references are given, else no-reference ones
  agenticiqa calibrate mine/labels.csv --tool SSIM GMSD --mos-range 1 10 --out mine.yaml --force
      two tools, on scores from 1 to 10, replacing an earlier mine.yaml
  agenticiqa calibrate mine/labels.csv --split train --name "my set" --base other.yaml
      some of the rows; the name of the data in the profile; where the curves of all other tools come from
  agenticiqa calibrate photos/ --tool NOISE-SIGMA
      tools for one distortion need no scores: pristine photos are distorted step by step

labels.csv has the columns image and mos (higher is better) and optionally reference and split. Measured values are
kept beside the output as they come, in a file that ends in .raw.jsonl: after Ctrl-C the same command continues, and
another fit of the same images is quick. A tool is refused, and keeps its curve of --base, if it could measure fewer
than 20 images or does not follow the scores in its own direction. A full-reference curve gives an undistorted image 5
and extreme distortions at most about 2, which may shift the middle of the curve away from the points: look at the
picture. Then name the profile in a configuration (agenticiqa assess --config):

  calibration: mine.yaml

exit status: 0 every tool was fitted, 1 some were refused (named on stderr), 2 usage
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa calibrate``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    data = parser.add_argument(
        "data", nargs="+", type=Path, metavar="LABELS.csv", help="opinion scores; or pristine photos, or their folders"
    )
    complete_files(data)
    parser.add_argument("--tool", nargs="+", metavar="NAME", help='the tools to fit ("agenticiqa tools" lists them)')
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    parser.add_argument("--name", metavar="N", help="name of the data in the profile (default: the folder's name)")
    parser.add_argument("--base", metavar="P", default="default", help="the profile of all other curves (%(default)s)")
    parser.add_argument("--out", metavar="FILE", type=Path, default=OUT, help="the profile to write (%(default)s)")
    parser.add_argument("--plot", metavar="PNG", type=Path, help="the picture of the fit (default: beside the profile)")
    parser.add_argument("--force", action="store_true", help="replace an existing profile and picture")


def run(args: Namespace) -> int:
    """Measure, fit, and write the profile and the picture; refused tools are named on stderr."""
    plot = args.plot or args.out.with_suffix(".png")
    for file in (args.out, plot):
        if file.exists() and not args.force:
            raise UserError(f"{file} exists already: name another file, or replace it with --force")
    base = load_profile(args.base)
    chosen = _selection(args)
    if chosen.summary:
        print(chosen.summary, file=sys.stderr)
    kept = args.out.with_suffix(".raw.jsonl")
    with ResultsFile(kept) as results:
        try:
            raw, failures = _measure(chosen, results)
        except KeyboardInterrupt:
            print(f"agenticiqa: the same command continues from what is kept in {kept}", file=sys.stderr)
            raise
    outcomes = [
        selection.outcome(tool, raw[name], chosen.origin, base.get(name)) for name, tool in chosen.tools().items()
    ]
    print_table(fit_report.table(outcomes))
    for outcome in outcomes:
        if not outcome.fit:
            name = outcome.tool.name
            reason = f" ({failures[name]})" if name in failures else ""
            print(f"agenticiqa: {name}: {outcome.refusal}{reason}", file=sys.stderr)
    fitted = {outcome.tool.name: outcome.fit.curve for outcome in outcomes if outcome.fit}
    if fitted:
        write_profile(args.out, {**base, **fitted})
    write_atomically(plot, fit_report.picture(outcomes))
    if not fitted:
        print(f"No curve was fitted, so no profile was written. The points are drawn in {plot}.")
        return SOME_FAILED
    taken = len(base.keys() - fitted.keys())
    print(f"{args.out}: {len(fitted)} curves fitted, {taken} taken over from {args.base}. The fit is drawn in {plot}.")
    print(f'To use it, put "calibration: {args.out}" into a configuration. {kept} makes another fit quick.')
    return OK if len(fitted) == len(outcomes) else SOME_FAILED


def _selection(args: Namespace) -> selection.Selection:
    names = args.tool or ()
    if args.data[0].suffix.lower() != ".csv":
        return selection.from_photos(args.data, tool_names=names, name=args.name)
    if len(args.data) > 1:
        raise UserError(f"expected one labels file, got {len(args.data)}: join them into one")
    return selection.from_labels(
        args.data[0], split=args.split, tool_names=names, mos_range=args.mos_range, name=args.name
    )


def _measure(
    chosen: selection.Selection, results: ResultsFile
) -> tuple[dict[str, dict[samples.Sample, float]], dict[str, str]]:
    """The raw values by tool, and by tool that failed on some images why."""
    raw: dict[str, dict[samples.Sample, float]] = {name: {} for name in chosen.tools()}
    failures: dict[str, list[str]] = {}
    measured = samples.measure(chosen.tools_of, results)
    for sample, values, failed in render.progress(measured, len(chosen.tools_of), "measuring"):
        for name, value in values.items():
            raw[name][sample] = value
        for name, reason in failed.items():
            failures.setdefault(name, []).append(reason)
    return raw, {name: f"{len(reasons)} images failed, first: {reasons[0]}" for name, reasons in failures.items()}
