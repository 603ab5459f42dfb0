"""Fit a fusion profile to the rows of a run, and write the fitted scores into the rows.

::

    to_row = rows_with_fit_inputs(program)
    rows = [row for _, row in assess_many(program, album, 4, to_row) if not isinstance(row, Exception)]
    fit, message = fit_auto(rows)
    fused = [fuse_row(row, fit, program.summarizer.fusion) for row in rows]
    fused[0]["fusion"]["score_default"], fused[0]["quality_score"]

The result does not depend on the order of the rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any, NamedTuple, TypeAlias

from agenticiqa.programs.batch.results_file import FROM_REJECTED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.fit import FEWEST_IMAGES, FusionRow, fit_profile
from agenticiqa.programs.fusion.formula import ScoreFusion, level_name
from agenticiqa.programs.fusion.interval import FusedScore, backend_shown, fused_score
from agenticiqa.programs.fusion.profile import PRIOR, FusionProfile
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.stages.summarizer import on_stated_scale
from agenticiqa.programs.tools import TOOLS
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput, QueryType

Row: TypeAlias = dict[str, Any]

FEWEST_FOR_AUTO = 50  # rated images that a run needs to fit a profile to itself
INPUTS = ("model", "prompts", "curves", "third_tools", "tuned")  # the keys that ``fit_inputs`` writes
ESTIMATES = {"agreement": "from agreement", "three_way": "three-way", "labels": "from MOS"}  # in a profile
OTHER_KIND = "of a different image kind (photo or AI-generated) than most rows"
ANOTHER = "with a different model, prompts or tools than most rows"


class Subject(NamedTuple):
    """The model and tools that a profile was fitted to: the model's backend, digests of prompts and curves, the tools.

    ``tuned`` is the digest of the scorer's prompt if it was tuned, else empty.
    """

    model: str
    prompts: str
    tools: tuple[str, ...]
    curves: str
    tuned: str = ""


@dataclass(frozen=True)
class FusionFit:
    """A fitted profile, its subject, and how many rows were not used, by reason."""

    profile: FusionProfile
    subject: Subject
    not_used: Counter[str] = field(default_factory=Counter)


def fit_rows(
    rows: Iterable[Row], labels: Mapping[str, float] | None = None, *, fitted_on: date | None = None
) -> FusionFit:
    """Fit a profile to the usable rows of ``assess --jsonl`` or ``evaluate`` (see ``unusable``).

    A profile is fitted to one model, its prompts, and one set of tools. The combination with the most rows is used;
    other rows are left out. An image counts once; if it has several rows, the row with the alphabetically first
    question is used. ``labels`` has MOS on 1..5, higher is better, by the SHA-256 of the image. ``fitted_on`` is the
    date in the profile. Raises UserError if fewer than 10 rows can be used.
    """
    by_subject: dict[Subject, dict[str, tuple[Any, FusionRow]]] = {}
    not_used: Counter[str] = Counter()
    for row in rows:
        if reason := unusable(row):
            not_used[reason] += 1
            continue
        known = by_subject.setdefault(subject_of(row), {})
        image, one = digest([row["image_sha256"], row.get("reference_sha256")]), fusion_row(row, labels)
        candidate = (row["query"], sorted(one.probabilities.items()), one.tool_score), one
        known[image] = min(known.get(image, candidate), candidate, key=lambda each: each[0])
    subject = max(by_subject, key=lambda each: (len(by_subject[each]), each), default=None)
    used = by_subject[subject] if subject else {}
    if subject is None or len(used) < FEWEST_IMAGES:
        without = f" ({not_used_text(not_used)})" if not_used else ""
        raise UserError(
            f"a fusion profile needs at least {FEWEST_IMAGES} images that a model rated, found {len(used)}{without}"
        )
    if others := sum(map(len, by_subject.values())) - len(used):
        not_used[ANOTHER] = others
    profile = fit_profile(
        [one for _, (_, one) in sorted(used.items(), key=lambda each: each[0])],
        PRIOR,
        backend=subject.model,
        prompts=subject.prompts,
        toolset=subject.tools,
        version=version("agenticiqa"),
        fitted_on=fitted_on,
    )
    if others := len(used) - profile.images:
        not_used[OTHER_KIND] = others
    about = {"curves": subject.curves, "tuned": subject.tuned}
    return FusionFit(profile.model_copy(update=about), subject, not_used)


def unusable(row: Row) -> str | None:
    """Return why a row cannot be used for a fit, as the end of "12 rows ..."; ``None`` for a usable row."""
    if "error" in row:
        return "that failed"
    if row.get("query_type") != QueryType.SCORING:
        return "that are not ratings"
    if is_unscored(row) or not row.get("quality_probs") or row.get("probability_source") in FROM_REJECTED:
        return "without usable probabilities"
    if not (row.get("answered_by") or {}).get("scoring"):
        return "that no model rated"
    if not row.get("image_sha256"):
        return "without the hash of the image"
    if ((row.get("executor_evidence") or {}).get("quality_scores") or {}).keys() != {GLOBAL}:
        return "without a single tool score for the whole image"
    return None


def subject_of(row: Row) -> Subject:
    """Return the subject of a usable row; rows of earlier versions have neither prompts nor curves."""
    inputs = row.get("fusion") or {}
    model = inputs.get("model") or backend_shown(row["answered_by"]["scoring"][-1])
    tools, tuned = _evidence(row).overall_tools, inputs.get("tuned", "")
    return Subject(model, inputs.get("prompts", ""), tools, inputs.get("curves", ""), tuned)


def fusion_row(row: Row, labels: Mapping[str, float] | None = None) -> FusionRow:
    """Return the input of a fit for a usable row, with values of third tools such that higher is better."""
    inputs, mean = row.get("fusion") or {}, _evidence(row).overall_mean
    assert mean is not None
    return FusionRow(
        tool_score=mean,
        probabilities=_probabilities(row),
        tool_error=_evidence(row).overall_spread,
        others={
            name: value if TOOLS[name].higher_is_better else -value
            for name, value in (inputs.get("third_tools") or {}).items()
            if name in TOOLS
        },
        label=(labels or {}).get(row["image_sha256"]),
        image_kind=_evidence(row).image_kind,
    )


def fit_auto(rows: Iterable[Row], fewest: int = FEWEST_FOR_AUTO) -> tuple[FusionFit | None, str]:
    """Fit a profile to the ratings of a run, for ``fuse_row``.

    Args:
        rows: The rows of the run, with ``fusion`` (see ``rows_with_fit_inputs``).
        fewest: The least number of usable images for a fit.

    Returns:
        The fit, or ``None`` with too few usable images (``fuse_row`` then shows the default score), and a one-line
        message about it.
    """
    try:
        fit = fit_rows(rows)
        if fit.profile.images < fewest:
            raise UserError(f"{fit.subject.model} rated {fit.profile.images} images, but a fit needs {fewest}")
    except UserError as error:
        return None, f"fusion: no profile was fitted, so the default score is shown: {error}"
    return fit, f"fusion: {fitted_text(fit)}; the fitted score is shown"


def fuse_row(row: Row, fit: FusionFit | None, default: ScoreFusion) -> Row:
    """Return a row that shows the score of a fit, or the default score without a fit.

    A rating by a model gets, in its key ``fusion``, ``score_default``, ``score_fitted`` (``None`` if the fit is for
    another model, other prompts or other tools), ``shown`` ("default" or "fitted"), ``profile`` (a digest of the
    profile), and ``sentence`` (the part of ``quality_reasoning`` about the shown score).

    Args:
        row: A row with ``fusion`` (see ``rows_with_fit_inputs``).
        fit: The fit, or ``None``.
        default: The fusion that the row's score was computed with.

    Returns:
        A copy with ``quality_score``, ``final_answer``, ``quality_level``, ``quality_reasoning`` and
        ``summarizer_result`` for the shown score. Other rows, and rows with a score that ``default`` did not fuse, are
        returned unchanged.
    """
    if unusable(row) or "fusion" not in row:
        return row
    evidence, p, source = _evidence(row), _probabilities(row), row["probability_source"]
    before = fused_score(default, evidence, p, source)
    sentence = row["fusion"].get("sentence", before.how)
    if sentence not in row["quality_reasoning"]:
        return row
    after = None
    if fit and subject_of(row) == fit.subject:
        after = fused_score(default.with_profile(fit.profile), evidence, p, source)
    shown = after or before
    reasoning = row["quality_reasoning"].replace(sentence, shown.how)
    inputs = {name: value for name, value in row["fusion"].items() if name in INPUTS}
    about = {
        "score_default": before.score,
        "score_fitted": after.score if after else None,
        "shown": "fitted" if after else "default",
        "profile": profile_digest(fit.profile) if after and fit else None,
        "sentence": shown.how,
    }
    final = on_stated_scale(shown.score, row["query"])
    changed = {"final_answer": final, **_scores(shown), "quality_reasoning": reasoning}
    return {
        **row,
        **changed,
        "quality_level": level_name(shown.score),
        "summarizer_result": {**row["summarizer_result"], **changed},
        "fusion": {**inputs, **about},
    }


def profile_digest(profile: FusionProfile) -> str:
    """Return 16 hex digits that identify the content of a profile."""
    return digest(profile.model_dump(mode="json"))


def fitted_text(fit: FusionFit) -> str:
    """Describe the fit: the model, the number of images, and the reliabilities found."""
    found, labels = fit.profile.reliability, fit.profile.labels
    using = f", {labels} of them with MOS" if labels else ", without MOS"
    estimates = [f"{names} {found[key]:.2f}" for key, names in ESTIMATES.items() if key in found]
    how = f" ({', '.join(estimates)})" if estimates else ""
    without = f" (not used: {not_used_text(fit.not_used)})" if fit.not_used else ""
    return (
        f"a fusion profile for {fit.subject.model} and {', '.join(fit.subject.tools)} was fitted to "
        f"{fit.profile.images} images{using}{without}. Reliability: model {found['model']:.2f}{how}, "
        f"tools {found['tool']:.2f}"
    )


def not_used_text(not_used: Mapping[str, int]) -> str:
    """Return the number of rows left out for each reason, the most frequent reason first."""
    by_count = sorted(not_used.items(), key=lambda each: (-each[1], each))
    return ", ".join(f"{count} {reason}" for reason, count in by_count)


def _evidence(row: Row) -> ExecutorOutput:
    return ExecutorOutput.model_validate(row["executor_evidence"])


def _probabilities(row: Row) -> dict[int, float]:
    return {int(level): share for level, share in row["quality_probs"].items()}


def _scores(fused: FusedScore) -> Row:
    """Return the keys of a row and of its ``summarizer_result`` that depend on the fused score."""
    return {
        "quality_score": fused.score,
        "score_interval": {share: [*ends] for share, ends in fused.interval.items()},
        "score_without_model": fused.without_model,
        "disagreement": fused.disagreement,
    }
