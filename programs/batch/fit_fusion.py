"""Fit a fusion profile to the rows of a run.

::

    to_row = rows_with_fit_inputs(program)
    rows = [row for _, row in assess_many(program, album, 4, to_row) if not isinstance(row, Exception)]
    write_fusion_profile(Path("profile.yaml"), fit_rows(rows).profile)

The result does not depend on the order of the rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any, NamedTuple, TypeAlias

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.fit import FEWEST_IMAGES, FusionRow, fit_profile, usual_kind
from agenticiqa.programs.fusion.interval import backend_shown
from agenticiqa.programs.fusion.profile import FusionProfile
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.result import is_unscored
from agenticiqa.programs.tools import TOOLS
from agenticiqa.signatures.types import FROM_REJECTED, GLOBAL, ExecutorOutput, QueryType

Row: TypeAlias = dict[str, Any]

RELIABLE_FROM = 50  # rated images; with fewer, a fit depends strongly on typical models
ESTIMATES = {"agreement": "from agreement", "three_way": "three-way", "labels": "from MOS"}  # words in a profile
OTHER_KIND = "of a different image kind (photo or AI-generated) than most rows"
ANOTHER = "with a different model, scoring prompt or tools than most rows"


class Subject(NamedTuple):
    """The model, the scoring prompt and the tools that a profile is fitted to.

    ``prompt`` and ``curves`` are digests, of the prompt and of the tools' curves. ``tuned`` is whether it was tuned.
    """

    model: str
    prompt: str
    tuned: bool
    tools: tuple[str, ...]
    curves: str


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

    A profile is fitted to one model, its scoring prompt, and one set of tools. The combination with the most rows is
    used; other rows are left out. An image counts once; if it has several rows, the row with the alphabetically first
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
        known[image] = min(known.get(image, candidate), candidate, key=lambda entry: entry[0])
    subject = max(by_subject, key=lambda key: (len(by_subject[key]), key), default=None)
    used = by_subject[subject] if subject else {}
    fit_to = [one for _, (_, one) in sorted(used.items(), key=lambda entry: entry[0])]
    of_kind = sum(one.image_kind == usual_kind(fit_to) for one in fit_to)
    if others := len(used) - of_kind:
        not_used[OTHER_KIND] = others
    if subject is None or of_kind < FEWEST_IMAGES:
        without = f" ({not_used_text(not_used)})" if not_used else ""
        raise UserError(
            f"a fusion profile needs at least {FEWEST_IMAGES} images that a model rated, found {of_kind}{without}"
        )
    if others := sum(map(len, by_subject.values())) - len(used):
        not_used[ANOTHER] = others
    about = {
        "backend": subject.model,
        "prompt": subject.prompt,
        "tuned": subject.tuned,
        "curves": subject.curves,
        "version": version("agenticiqa"),
        "fitted_on": fitted_on,
    }
    profile = fit_profile(fit_to, toolset=subject.tools).model_copy(update=about)
    return FusionFit(profile, subject, not_used)


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
    """Return the subject of a usable row; a row of ``Assessment.to_dict`` alone has neither prompt nor curves."""
    inputs = row.get("fusion") or {}
    model = inputs.get("model") or backend_shown(row["answered_by"]["scoring"][-1])
    prompt, tuned = inputs.get("prompt", ""), inputs.get("tuned", False)
    return Subject(model, prompt, tuned, _evidence(row).overall_tools, inputs.get("curves", ""))


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


def fitted_text(fit: FusionFit) -> str:
    """Describe the fit: the model, the number of images, and the reliabilities found."""
    reliability, labels = fit.profile.reliability, fit.profile.labels
    using = f", {labels} of them with MOS" if labels else ", without MOS"
    estimates = [f"{names} {reliability[key]:.2f}" for key, names in ESTIMATES.items() if key in reliability]
    how = f" ({', '.join(estimates)})" if estimates else ""
    without = f" (not used: {not_used_text(fit.not_used)})" if fit.not_used else ""
    return (
        f"a fusion profile for {fit.subject.model} and {', '.join(fit.subject.tools)} was fitted to "
        f"{fit.profile.images} images{using}{without}. Reliability: model {reliability['model']:.2f}{how}, "
        f"tools {reliability['tool']:.2f}"
    )


def not_used_text(not_used: Mapping[str, int]) -> str:
    """Return the number of rows left out for each reason, the most frequent reason first."""
    by_count = sorted(not_used.items(), key=lambda item: (-item[1], item))
    return ", ".join(f"{count} {reason}" for reason, count in by_count)


def _evidence(row: Row) -> ExecutorOutput:
    return ExecutorOutput.model_validate(row["executor_evidence"])


def _probabilities(row: Row) -> dict[int, float]:
    return {int(level): share for level, share in row["quality_probs"].items()}
