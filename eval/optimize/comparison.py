"""The held-out comparison before and after tuning, and whether the tuned instructions are kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agenticiqa.eval.intervals import Interval, Measure, difference_interval, error_interval, interval
from agenticiqa.eval.metrics import mean_absolute_error, srcc
from agenticiqa.eval.optimize.judging import Judged, TuningQuestion

MODEL, FUSED = "model", "fused"
VALUES: dict[str, Callable[[Judged], float | None]] = {
    MODEL: lambda judged: judged.expectation,
    FUSED: lambda judged: judged.fused,
}
MEASURES: dict[str, tuple[Measure, Callable[..., Interval]]] = {
    "srcc": (srcc, interval),
    "mean_absolute_error": (mean_absolute_error, error_interval),
}


def compare(
    questions: Sequence[TuningQuestion], before: Sequence[Judged], after: Sequence[Judged], *, by_model: bool = True
) -> dict[str, Any]:
    """Before and after, of the model's own expectation (``model``, left out where no model rates) and ``fused``.

    Each on the images that have the value both times: SRCC and mean absolute error (on 1 to 5), and the change, after
    minus before, with 95 % intervals over contents, paired for the change. ``decided_by`` names the one that
    decides, ``kept`` says whether the tuned instructions are to be kept, and ``why``. Plain JSON types.
    """
    decisive = MODEL if by_model else FUSED
    figures: dict[str, Any] = {"images": len(questions), "contents": len({q.content for q in questions})}
    for name in (MODEL, FUSED) if by_model else (FUSED,):
        figures[name] = _compared(questions, list(map(VALUES[name], before)), list(map(VALUES[name], after)))
    kept, why = _verdict(figures[decisive])
    return {**figures, "decided_by": decisive, "kept": kept, "why": why}


def _compared(
    questions: Sequence[TuningQuestion], before: Sequence[float | None], after: Sequence[float | None]
) -> dict[str, Any]:
    rows = [(x, y, q) for x, y, q in zip(before, after, questions, strict=True) if x is not None and y is not None]
    old, new = [x for x, _, _ in rows], [y for _, y, _ in rows]
    target, contents = [q.target or 0.0 for *_, q in rows], [q.content for *_, q in rows]
    return {
        "n": len(rows),
        "missing": {"before": sum(x is None for x in before), "after": sum(y is None for y in after)},
        **{
            name: {
                "before": asdict(of(measure, old, target, contents)),
                "after": asdict(of(measure, new, target, contents)),
                "change": asdict(difference_interval(measure, new, old, target, contents)),
            }
            for name, (measure, of) in MEASURES.items()
        },
    }


def _verdict(figures: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether to keep what was tuned: unless the SRCC fell, or more images than before have no value."""
    old, new, change = (figures["srcc"][key]["value"] for key in ("before", "after", "change"))
    missing = figures["missing"]
    if missing["after"] > missing["before"]:
        return False, f"{missing['after']} images have no value, {missing['before']} before"
    if old is not None and new is None:
        return False, f"the SRCC is undefined: {figures['srcc']['after']['note']}"
    if change is None:
        return True, "the held-out images do not decide: the SRCC is undefined"
    if change < 0:
        return False, f"the SRCC fell by {-change:.3f}"
    low = figures["srcc"]["change"]["low"]
    return (
        True,
        "the SRCC rose" if low is not None and low > 0 else "the SRCC did not fall, though it may not have risen",
    )
