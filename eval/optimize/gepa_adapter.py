"""The program as GEPA runs it: batches of questions scored by how they are ranked, and examples for a reflection."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gepa import EvaluationBatch, GEPAAdapter

from agenticiqa.eval.optimize.judged import Judged, Question
from agenticiqa.eval.optimize.reflection import Examples
from agenticiqa.eval.optimize.scoring import batch_scores, feedback
from agenticiqa.programs.assess import AgenticIQA

Candidate = dict[str, str]
JudgeBatch = Callable[[AgenticIQA, Sequence[Question], bool], list[Judged]]
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


class GepaAdapter(GEPAAdapter[Question, Trajectory, Judged]):
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
        self, batch: list[Question], candidate: Candidate, capture_traces: bool = False
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
