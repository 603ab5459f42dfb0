"""The program as GEPA runs it: batches of questions scored by how they are ranked, and examples for a reflection."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gepa import EvaluationBatch, GEPAAdapter

from agenticiqa.eval.optimize.judging import Judged, TuningQuestion
from agenticiqa.eval.optimize.reflection import Examples
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.harmless import harmless

Candidate = dict[str, str]
JudgeBatch = Callable[[AgenticIQA, Sequence[TuningQuestion], bool], list[Judged]]
Propose = Callable[[str, str, Examples], tuple[str | None, list[str]]]


@dataclass(frozen=True)
class Trajectory:
    """One judged question of a batch, with the feedback on it."""

    judged: Judged
    feedback: str


@dataclass(frozen=True)
class Reflected:
    """What a reflection came to: the predictor, whether there is a new instruction, and why proposals were refused."""

    predictor: str
    proposed: bool
    refused: list[str]


class GepaAdapter(GEPAAdapter[TuningQuestion, Trajectory, Judged]):
    """GEPA's view of the program. A candidate is the instructions by the names of their predictors.

    ``judge`` is given a program, a batch and whether to keep the calls. ``propose`` is given a predictor's name, its
    instruction and examples with feedback; it returns a new instruction or ``None``, and why it refused proposals. With
    ``by_model`` the model's own expectation is ranked, otherwise the fused score. ``reflections`` is kept in GEPA's
    state, so that a resumed run goes on with it.
    """

    def __init__(self, program: AgenticIQA, judge: JudgeBatch, propose: Propose, *, by_model: bool = True) -> None:
        self.program, self.judge, self.propose, self.by_model = program, judge, propose, by_model
        self.reflections: list[Reflected] = []
        self.in_vain = 0  # reflections in a row without an instruction, in this process

    def evaluate(
        self, batch: list[TuningQuestion], candidate: Candidate, capture_traces: bool = False
    ) -> EvaluationBatch[Trajectory, Judged]:
        """Judge a batch. Raises every error but an unusable answer, which ends the run."""
        judged = self.judge(with_instructions(self.program, candidate), batch, capture_traces)
        found = [ranked(one, self.by_model) for one in judged]
        return EvaluationBatch(
            outputs=[replace(one, calls=()) for one in judged],
            scores=batch_scores(judged, found, batch),
            trajectories=[Trajectory(one, feedback(judged, found, batch, index)) for index, one in enumerate(judged)]
            if capture_traces
            else None,
        )

    def choose(
        self,
        state: Any,
        trajectories: list[Any],
        subsample_scores: list[float],
        candidate_idx: int,
        candidate: Candidate,
    ) -> list[str]:
        """GEPA's component selector: of the predictors that answered in this batch the one reflected on least often.

        GEPA's own round robin includes predictors that the questions never reach, and spends budget on them without a
        proposal.
        """
        answered = frozenset[str]().union(*(trajectory.judged.answered for trajectory in trajectories))
        turns = Counter(reflected.predictor for reflected in self.reflections)
        names = [name for name in candidate if name in answered]
        return [min(names, key=lambda name: turns[name])] if names else []

    def make_reflective_dataset(
        self,
        candidate: Candidate,
        eval_batch: EvaluationBatch[Trajectory, Judged],
        components_to_update: list[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """For each predictor its last call about each image, with the feedback; images as ``dspy.Image``."""
        return {
            name: [
                {
                    "Inputs": dict(calls[-1].inputs),
                    "Generated Outputs": dict(calls[-1].outputs),
                    "Feedback": one.feedback,
                }
                for one in eval_batch.trajectories or ()
                if (calls := [call for call in one.judged.calls if call.predictor == name])
            ]
            for name in components_to_update
        }

    def propose_new_texts(
        self,
        candidate: Candidate,
        reflective_dataset: Mapping[str, Examples],
        components_to_update: list[str],
    ) -> Candidate:
        """New instructions; none where every proposal was refused, and GEPA then judges nothing in this step."""
        proposed = {}
        for name in components_to_update:
            text, refused = self.propose(name, candidate[name], reflective_dataset[name])
            self.reflections.append(Reflected(name, text is not None, refused))
            self.in_vain = 0 if text is not None else self.in_vain + 1
            if text is not None:
                proposed[name] = text
        return proposed

    def get_adapter_state(self) -> dict[str, Any]:
        """What GEPA keeps beside its own state."""
        return {"reflections": [asdict(reflected) for reflected in self.reflections]}

    def set_adapter_state(self, state: dict[str, Any]) -> None:
        """What GEPA kept, in a resumed run."""
        self.reflections = [Reflected(**reflected) for reflected in state.get("reflections", ())]


def ranked(judged: Judged, by_model: bool) -> float | None:
    """What is ranked of a result: the model's own expectation, or the fused score where no model rates."""
    return judged.expectation if by_model else judged.fused


def with_instructions(program: AgenticIQA, candidate: Mapping[str, str]) -> AgenticIQA:
    """A copy of the program with these instructions, by the names of their predictors."""
    copy: AgenticIQA = program.deepcopy()
    for name, predictor in copy.named_predictors():
        if name in candidate:
            predictor.signature = predictor.signature.with_instructions(candidate[name])
    return copy


CLOSE = 0.25  # on the scale of 1 to 5: a smaller error is not criticized
SHOWN = 3  # wrongly ranked neighbors that the feedback names
TIED = 1e-9


def batch_scores(
    judged: Sequence[Judged], found: Sequence[float | None], questions: Sequence[TuningQuestion]
) -> list[float]:
    """The score of each question of a batch, in [0, 1]: of a rating by its rank among the ratings, else 1 if right."""
    rated = [i for i, question in enumerate(questions) if question.answer is None]
    ranks = rank_scores([found[i] for i in rated], [questions[i].target or 0.0 for i in rated])
    by_rank = dict(zip(rated, ranks, strict=True))
    return [by_rank[i] if i in by_rank else float(_is_right(judged[i], questions[i])) for i in range(len(questions))]


def rank_scores(found: Sequence[float | None], targets: Sequence[float]) -> list[float]:
    """For each image of a batch the share of the others that it is ranked rightly against, in [0, 1].

    ``found`` and ``targets`` are on 1 to 5. Only others with another target count; a tie of what was found is worth a
    half. A missing value is wrong in each of its pairs, so that no answer is never better than a wrong one. The mean
    over the batch therefore rises with every pair that is put right, as the pairwise accuracy and SRCC do. The share
    of 1/n^2 of each score is the closeness, ``1 - |found - target| / 4``: less than the half of one pair, it decides
    only between equal rankings.
    """
    closeness_share = 1 / len(found) ** 2 if found else 0.0

    def score(i: int) -> float:
        own = found[i]
        if own is None:
            return 0.0
        others = [j for j in range(len(targets)) if targets[j] != targets[i]]
        right = [_right(own, found[j], targets[i], targets[j]) for j in others]
        share = math.fsum(right) / len(right) if right else 0.5
        return (1 - closeness_share) * share + closeness_share * (1 - abs(own - targets[i]) / 4)

    return [score(i) for i in range(len(found))]


def _right(own: float, other: float | None, target: float, other_target: float) -> float:
    """1 for a pair in the right order, a half for a tie, and else 0."""
    if other is None:
        return 0.0
    if abs(own - other) < TIED:
        return 0.5
    return float((own > other) == (target > other_target))


def feedback(
    judged: Sequence[Judged], found: Sequence[float | None], questions: Sequence[TuningQuestion], index: int
) -> str:
    """What the model that writes instructions is told about one image of a batch; ``found`` is what was ranked."""
    if questions[index].answer is not None:
        return harmless(" ".join([_on_its_answer(judged[index], questions[index]), *_on_its_evidence(judged[index])]))
    if found[index] is None:
        return harmless(f"There was no usable answer: {judged[index].failure or 'no level had a probability'}")
    rated = [i for i, question in enumerate(questions) if question.answer is None]
    values, targets = [found[i] for i in rated], [questions[i].target or 0.0 for i in rated]
    return harmless(" ".join([*_on_its_rank(values, targets, rated.index(index)), *_on_its_evidence(judged[index])]))


def _is_right(judged: Judged, question: TuningQuestion) -> bool:
    return (judged.final_answer or "").strip().upper() == (question.answer or "").strip().upper()


def _on_its_answer(judged: Judged, question: TuningQuestion) -> str:
    if judged.final_answer is None:
        return f"There was no usable answer, {question.answer} was right: {judged.failure}"
    if _is_right(judged, question):
        return f"The answer {question.answer} was right."
    return f"The answer was {judged.final_answer}, but {question.answer} is right. Its reason was: {judged.reasoning}"


def _on_its_rank(found: Sequence[float | None], targets: Sequence[float], index: int) -> Iterator[str]:
    own, target = found[index], targets[index]
    assert own is not None
    error = own - target
    verdict = "close" if abs(error) < CLOSE else f"{abs(error):.1f} too {'kind' if error > 0 else 'harsh'}"
    yield f"On the scale of 1 to 5 observers rate it {target:.1f} and the answer expects {own:.1f}: {verdict}."
    others = [(other, targets[j]) for j, other in enumerate(found) if other is not None and targets[j] != target]
    wrong = [(other, rated) for other, rated in others if _right(own, other, target, rated) < 1]
    if others:
        yield f"It is ranked rightly against {len(others) - len(wrong)} of {len(others)} other images."
    for other, rated in wrong[:SHOWN]:
        how = "the same as" if abs(own - other) < TIED else "below" if own < other else "above"
        yield f"It was put {how} an image that observers rate {rated:.1f} (its answer: {other:.1f})."


def _on_its_evidence(judged: Judged) -> Iterator[str]:
    evidence = judged.evidence
    if evidence is not None:
        if evidence.overall_mean is not None:
            yield f"The tools' mean was {evidence.overall_mean:.1f}."
        analyzed = [
            f"{row.type} in {region} ({row.severity})"
            for region, rows in (evidence.distortion_analysis or {}).items()
            for row in rows
        ]
        if analyzed:
            yield f"The analysis said: {', '.join(analyzed)}."
        for stage, why in evidence.failures.items():
            yield f"{stage} gave no result: {why}."
    rejected = [f"{stage}: {reason}" for stage, reasons in judged.rejected_answers.items() for reason in reasons]
    if rejected:
        yield f"Rejected attempts: {'; '.join(rejected)}."
