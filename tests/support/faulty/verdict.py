"""Classify a trial of a fault as good, poor or a defect, with reasons."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from support.faulty.exchange import Profile
from support.faulty.trial import KEY, Ran, Trial

Row = Mapping[str, Any]
State = Literal["right", "degraded", "unscored", "wrong"]

MANY_REQUESTS, TOO_MANY_REQUESTS = 3.0, 6.0  # times those of the healthy run
MOST_OUTPUT = 100_000  # characters
MORE_MEMORY = 200  # MB above the healthy run of 4 workers
PER_WORKER = 5  # MB for each of more workers
OFF = 0.02  # of a probability, and of a score
LONG = 45.0  # seconds for a run that no fault makes endless

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MARK = re.compile(r"img-[0-9a-f]{8}")
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Baseline:
    """The healthy run of the same photos: its rows by image, requests, USD and memory in MB."""

    rows: Mapping[str, Row]
    requests: int
    usd: float
    rss: float


@dataclass
class Verdict:
    """The ``defects`` and ``blemishes`` of a trial, in words; ``counts`` are the rows of the first run by state."""

    defects: list[str] = field(default_factory=list)
    blemishes: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def word(self) -> str:
        return "defect" if self.defects else "poor" if self.blemishes else "good"

    @property
    def reason(self) -> str:
        return "; ".join([*self.defects, *self.blemishes])


def judge(trial: Trial, profile: Profile, healthy: Baseline) -> Verdict:
    """Return the verdict on a trial, compared with the healthy run of the same photos."""
    verdict = Verdict()
    states = {row["image"]: state_of(row, healthy.rows[row["image"]]) for row in trial.rows}
    missing = len(healthy.rows) - len(states)
    verdict.counts = Counter(states.values())
    detectable = profile.expect != "undetectable"
    if missing:
        verdict.counts["missing"] = missing
    _check_rows(verdict, trial, missing, detectable)
    _check_resume(verdict, trial, healthy, detectable)
    for name, run in (("", trial.first), ("resume: ", trial.again)):
        if run:
            _check_run(verdict, name, run, profile)
    _check_costs(verdict, trial, profile, healthy)
    unjudged = len(healthy.rows) - verdict.counts["right"]
    if profile.expect == "assessed" and unjudged:
        verdict.blemishes.append(f"{unjudged} of {len(healthy.rows)} answers thrown away or not got")
    return verdict


def state_of(row: Row, good: Row) -> State:
    """Return the state of a row compared with the healthy row; a ``degraded`` row differs and reports a problem."""
    (own,) = set(_MARK.findall(good["quality_reasoning"]))
    if set(_MARK.findall(str(row))) - {own}:
        return "wrong"
    if not isinstance(row.get("quality_score"), int | float):
        return "unscored"
    if _same(row, good):
        return "right"
    evidence = row["executor_evidence"]
    shown = row["rejected_answers"] or evidence["failures"] or evidence["notes"]
    return "degraded" if shown or row["probability_source"] not in ("logprobs", "quality_probs") else "wrong"


def _same(row: Row, good: Row) -> bool:
    probs, others = row["quality_probs"] or {}, good["quality_probs"]
    return (
        abs(row["quality_score"] - good["quality_score"]) <= OFF
        and all(abs(probs.get(level, 0) - share) <= OFF for level, share in others.items())
        and _found(row) == _found(good)
    )


def _found(row: Row) -> list[Any]:
    """Return the findings of the stages before the score, without explanations."""
    evidence = row["executor_evidence"]
    analyses = {
        region: [(item["type"], item["severity"]) for item in items]
        for region, items in (evidence["distortion_analysis"] or {}).items()
    }
    return [evidence["distortion_set"], analyses, evidence["selected_tools"]]


def _check_rows(verdict: Verdict, trial: Trial, missing: int, detectable: bool) -> None:
    if detectable and (wrong := verdict.counts["wrong"]):
        foreign = sum(len(set(_MARK.findall(str(row)))) > 1 for row in trial.rows)
        verdict.defects.append(f"{wrong} wrong rows" + (f", {foreign} about another image" if foreign else ""))
    unscored = verdict.counts["unscored"]
    if trial.first.status == 0 and (missing or unscored):
        verdict.defects.append(f"exit status 0 with {unscored} unscored and {missing} missing")


def _check_resume(verdict: Verdict, trial: Trial, healthy: Baseline, detectable: bool) -> None:
    if trial.again is None:
        return
    after = Counter(state_of(row, healthy.rows[row["image"]]) for row in trial.healed)
    missing = len(healthy.rows) - len(trial.healed)
    left = {state: after[state] for state in (*(["wrong"] if detectable else []), "unscored") if after[state]}
    if missing:
        left["missing"] = missing
    if left:
        verdict.defects.append("not healed by --resume: " + ", ".join(f"{n} {state}" for state, n in left.items()))
    if trial.again.status != 0 and not trial.again.ended:
        verdict.defects.append(f"resume: exit status {trial.again.status}")
    if after["degraded"]:
        verdict.blemishes.append(f"{after['degraded']} degraded rows kept by --resume")


def _check_run(verdict: Verdict, name: str, run: Ran, profile: Profile) -> None:
    text = run.out + run.err
    if TRACEBACK in text:
        last = [line for line in run.err.splitlines() if re.match(r"[\w.]+(Error|Exception|Warning|Interrupt)\b", line)]
        verdict.defects.append(f"{name}traceback ({last[-1][:80] if last else 'no error line'})")
    if run.ended == "time":
        left = "killed after Ctrl-C" if run.ctrl_c is None else f"Ctrl-C left after {run.ctrl_c} s"
        verdict.defects.append(f"{name}did not end in {run.seconds:.0f} s ({left})")
    elif run.ended:
        verdict.defects.append(f"{name}took {run.rss} MB in {run.seconds:.0f} s")
    elif run.status not in (0, 1, 2, 3):
        verdict.defects.append(f"{name}exit status {run.status}")
    if run.output > MOST_OUTPUT:
        verdict.defects.append(f"{name}{run.output:,} characters of output")
    if found := _CONTROL.search(text):
        verdict.defects.append(f"{name}control character {found[0]!r} in the output")
    if KEY in text or KEY[: len(KEY) // 2] in text:
        verdict.defects.append(f"{name}the key in the output")
    if not run.ended and not profile.slow and run.seconds > LONG:
        verdict.blemishes.append(f"{name}{run.seconds:.0f} s")


def _check_costs(verdict: Verdict, trial: Trial, profile: Profile, healthy: Baseline) -> None:
    if trial.leaks:
        verdict.defects.append(f"the key in {', '.join(trial.leaks)}")
    share = len(trial.seen) / healthy.requests
    if share > TOO_MANY_REQUESTS:
        verdict.defects.append(f"{len(trial.seen)} requests, {share:.1f} times the healthy run's")
    elif share > MANY_REQUESTS:
        verdict.blemishes.append(f"{len(trial.seen)} requests, {share:.1f} times the healthy run's")
    if trial.limit is not None and trial.usd > trial.limit * 1.005:
        verdict.defects.append(f"limit of {trial.limit:.4f} USD, {trial.usd:.4f} spent")
    more = MORE_MEMORY + PER_WORKER * (profile.workers or 0)
    if not trial.first.ended and trial.first.rss > healthy.rss + more:
        verdict.blemishes.append(f"{trial.first.rss} MB, healthy {healthy.rss}")
