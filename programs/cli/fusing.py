"""``--fuse``: which fusion's score the rows of a results file show after a run."""

from collections.abc import Mapping
from pathlib import Path

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.fit_fusion import AutoFused, fuse_auto, fuse_row, profile_digest
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import RunPlan, offsets_of_latest
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images.files import printable_path

SUFFIX = ".fusion.yaml"


def fusion_of_program(program: AgenticIQA) -> ScoreFusion | None:
    """The fusion of a program's Summarizer; ``None`` for a Summarizer that has none."""
    fusion = getattr(program.summarizer, "fusion", None)
    return fusion if isinstance(fusion, ScoreFusion) else None


def show_fitted(results: ResultsFile, jobs: list[Job], plan: RunPlan, summary: Summary) -> str:
    """Fit a profile to the rows of a finished run, rewrite them with its score, and say in one line what was done.

    The profile is written beside the file. Rows that no longer count, and those of other runs, stay as they are. Raises
    OSError when the file cannot be rewritten.
    """
    default = fusion_of_program(plan.program)
    if default is None or not plan.program.questions:
        return "fusion: nothing to fit, as no model gives a score"
    if default.profile is not None and default.profile.backend:
        return "fusion: the configuration's profile is used, and none is fitted"
    if summary.not_judged:
        return f"fusion: not fitted, as {summary.not_judged} images were not judged"
    rows = results.read()
    offsets = offsets_of_latest(jobs, results, plan.settings)
    fused = fuse_auto([rows[offset] for offset in offsets], default)
    _rewrite(results, rows, dict(zip(offsets, fused.rows, strict=True)))
    if fused.profile is None:
        return f"fusion: {fused.message}"
    path = results.path.with_name(f"{results.path.name}{SUFFIX}")
    summary.fusion = {"images": fused.profile.images, "profile": profile_digest(fused.profile), "file": path.name}
    return f"fusion: {fused.message}{_written(path, fused)}"


def show_default(results: ResultsFile, jobs: list[Job], plan: RunPlan) -> str | None:
    """Give rows that show the score of an earlier fit the default's again; one line, or ``None`` if there are none.

    Raises OSError when the file cannot be rewritten.
    """
    default = fusion_of_program(plan.program)
    if default is None or not any(_shows_fitted(row) for _, row in results.outlines()):
        return None
    rows = results.read()
    fitted = [offset for offset in offsets_of_latest(jobs, results, plan.settings) if _shows_fitted(rows[offset])]
    _rewrite(results, rows, {offset: fuse_row(rows[offset], None, default) for offset in fitted})
    return f"fusion: {len(fitted)} rows show the default's score again; --fuse auto shows the fitted one"


def _shows_fitted(row: Row) -> bool:
    return (row.get("fusion") or {}).get("shown") == "fitted"


def _rewrite(results: ResultsFile, rows: Mapping[int, Row], changed: Mapping[int, Row]) -> None:
    if any(row != rows[offset] for offset, row in changed.items()):
        results.rewrite(changed.get(offset, row) for offset, row in rows.items())


def _written(path: Path, fused: AutoFused) -> str:
    assert fused.profile is not None
    try:
        write_fusion_profile(path, fused.profile)
    except OSError as error:
        print_error(f"{printable_path(path)}: the profile cannot be written ({error.strerror})")
        return ""
    return f"; the profile is in {printable_path(path)}"
