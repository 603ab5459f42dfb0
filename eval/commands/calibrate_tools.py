"""Fit the tools' curves (to 1..5) to the user's MOS, and write them as a calibration profile."""

import sys
from argparse import Namespace

from agenticiqa.eval.calibrate import fit_report, samples, selection
from agenticiqa.eval.calibrate.selection import Given
from agenticiqa.eval.commands.arguments import CURVES_OUT
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.commands.shared import continuing
from agenticiqa.eval.report.model import print_table
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.calibration import load_profile, write_profile


def run(args: Namespace, given: Given) -> int:
    """Measure, fit, and write the profile and the picture; print refused tools on stderr."""
    out, base_name = args.out or CURVES_OUT, args.base or "default"
    plot = args.plot or out.with_suffix(".png")
    for file in (out, plot):
        if file.exists() and not args.force:
            raise UserError(f"{file} already exists: name another file, or add --force to replace it")
    base = load_profile(base_name)
    chosen = _selection(args, given)
    if chosen.summary:
        print(chosen.summary, file=sys.stderr)
    kept = out.with_suffix(".raw.jsonl")
    with ResultsFile(kept) as results, continuing(kept):
        raw, failures = _measure(chosen, results)
    outcomes = [
        selection.outcome(tool, raw[name], chosen.origin, base.get(name)) for name, tool in chosen.tools().items()
    ]
    print_table(fit_report.table(outcomes))
    for outcome in outcomes:
        if outcome.trained_on:
            print_error(
                f"{outcome.tool.name} was trained on {outcome.trained_on} of these images: on new images it is less "
                "accurate than shown here"
            )
        if not outcome.fit:
            name = outcome.tool.name
            reason = f" ({failures[name]})" if name in failures else ""
            print_error(f"{name}: {outcome.refusal}{reason}")
    fitted = {outcome.tool.name: outcome.fit.curve for outcome in outcomes if outcome.fit}
    if fitted:
        write_profile(out, {**base, **fitted})
    write_atomically(plot, fit_report.picture(outcomes))
    if not fitted:
        print(f"No curve was fitted, so no profile was written. {plot} shows the points.")
        return SOME_FAILED
    taken = len(base.keys() - fitted.keys())
    print(f"{out}: {len(fitted)} curves fitted, {taken} copied from {base_name}. {plot} shows the fit.")
    print(f'To use it, add "calibration: {out}" to a configuration. A later fit reuses the values in {kept}.')
    return OK if len(fitted) == len(outcomes) else SOME_FAILED


def _selection(args: Namespace, given: Given) -> selection.SamplesToMeasure:
    names = args.tool or ()
    if given.labels is None:
        return selection.from_photos(given.photos, tool_names=names, name=args.name)
    if given.photos:
        raise UserError(f"fit curves to labels or to photos, not to both: remove {given.labels} or {given.photos[0]}")
    return selection.from_labels(labels_named(args, given.labels), split=args.split, tool_names=names, name=args.name)


def _measure(
    chosen: selection.SamplesToMeasure, results: ResultsFile
) -> tuple[dict[str, dict[samples.Sample, float]], dict[str, str]]:
    """Return the raw values by tool, and the reasons by tool for failures on some images."""
    raw: dict[str, dict[samples.Sample, float]] = {name: {} for name in chosen.tools()}
    failures: dict[str, list[str]] = {}
    measured = samples.measure(chosen.tools_of, results)
    for sample, values, failed in render.progress(measured, len(chosen.tools_of), "measuring"):
        for name, value in values.items():
            raw[name][sample] = value
        for name, reason in failed.items():
            failures.setdefault(name, []).append(reason)
    return raw, {name: f"{len(reasons)} images failed, first: {reasons[0]}" for name, reasons in failures.items()}
