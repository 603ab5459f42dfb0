"""``--fuse``: choose the fusion for the scores in a results file after a run."""

from collections.abc import Mapping
from functools import partial

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.fit_fusion import fit_auto, fuse_row, profile_digest
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import RunPlan, offsets_of_latest
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli.output_paths import written
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images.files import printable_path

SUFFIX = ".fusion.yaml"


def fusion_of_program(program: AgenticIQA) -> ScoreFusion | None:
    """Return the fusion of a program's Summarizer; ``None`` if it has none."""
    fusion = getattr(program.summarizer, "fusion", None)
    return fusion if isinstance(fusion, ScoreFusion) else None


def why_not_fitted(program: AgenticIQA, not_assessed: int) -> str | None:
    """Return the reason, in one line, why ``--fuse auto`` fits no profile to a run; ``None`` if it fits one."""
    default = fusion_of_program(program)
    if default is None or not program.questions:
        return "fusion: nothing to fit, because no model gives a score"
    if default.profile is not None and default.profile.backend:
        return "fusion: nothing was fitted, because the configuration names a profile, which is used"
    return f"fusion: nothing was fitted, because {not_assessed} images were not assessed" if not_assessed else None


def show(fuse: str, results: ResultsFile, jobs: list[Job], plan: RunPlan, summary: Summary) -> str | None:
    """Write the scores of the fusion that ``--fuse`` names; return a line about the outcome."""
    default = fusion_of_program(plan.program)
    try:
        if fuse == "auto" and (why := why_not_fitted(plan.program, summary.not_assessed)):
            return why
        if default is None:
            return None
        if fuse == "auto":
            return _show_fitted(results, jobs, plan, summary, default)
        return _show_default(results, jobs, plan, default)
    except OSError as error:
        return f"fusion: {printable_path(results.path)} cannot be rewritten ({error.strerror}); it was not changed"


def _show_fitted(results: ResultsFile, jobs: list[Job], plan: RunPlan, summary: Summary, default: ScoreFusion) -> str:
    """Fit a profile to the rows of a finished run, rewrite their scores, and return one line about it.

    The profile is written beside the file. Outdated rows and rows of other runs are not changed. Raises OSError if the
    file cannot be rewritten.
    """
    rows = results.read()
    offsets = offsets_of_latest(jobs, results, plan.settings)
    fit, message = fit_auto(rows[offset] for offset in offsets)
    _rewrite(results, rows, {offset: fuse_row(rows[offset], fit, default) for offset in offsets})
    if fit is None:
        return message
    path = results.path.with_name(f"{results.path.name}{SUFFIX}")
    summary.fusion = {"images": fit.profile.images, "profile": profile_digest(fit.profile), "file": path.name}
    if not written(path, partial(write_fusion_profile, path, fit.profile)):
        return message
    return f"{message}; the profile was written to {printable_path(path)}"


def _show_default(results: ResultsFile, jobs: list[Job], plan: RunPlan, default: ScoreFusion) -> str | None:
    """Restore the default scores after an earlier fit; return one line, or ``None`` if no row had a fitted score.

    Raises OSError when the file cannot be rewritten.
    """
    if not any(_shows_fitted(row) for _, row in results.outlines()):
        return None
    rows = results.read()
    fitted = [offset for offset in offsets_of_latest(jobs, results, plan.settings) if _shows_fitted(rows[offset])]
    _rewrite(results, rows, {offset: fuse_row(rows[offset], None, default) for offset in fitted})
    return (
        f"fusion: without --fuse auto, {len(fitted)} rows were changed back to the default score; add --fuse auto to "
        "get the fitted score"
    )


def _shows_fitted(row: Row) -> bool:
    return (row.get("fusion") or {}).get("shown") == "fitted"


def _rewrite(results: ResultsFile, rows: Mapping[int, Row], changed: Mapping[int, Row]) -> None:
    if any(row != rows[offset] for offset, row in changed.items()):
        results.rewrite(changed.get(offset, row) for offset, row in rows.items())
