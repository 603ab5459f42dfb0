"""What GEPA maximizes: how a model's own expectations rank a batch, and right answers; and feedback on both."""

import math
from collections.abc import Iterator, Sequence

from agenticiqa.eval.optimize.judged import Judged, Question
from agenticiqa.programs.stages.ask import harmless

CLOSE = 0.25  # on the scale of 1 to 5: a smaller error is not criticized
SHOWN = 3  # wrongly ranked neighbors that the feedback names
TIED = 1e-9


def batch_scores(judged: Sequence[Judged], found: Sequence[float | None], questions: Sequence[Question]) -> list[float]:
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


def feedback(judged: Sequence[Judged], found: Sequence[float | None], questions: Sequence[Question], index: int) -> str:
    """What the model that writes instructions is told about one image of a batch; ``found`` is what was ranked."""
    if questions[index].answer is not None:
        return harmless(" ".join([_on_its_answer(judged[index], questions[index]), *_on_its_evidence(judged[index])]))
    if found[index] is None:
        return harmless(f"There was no usable answer: {judged[index].failure or 'no level had a probability'}")
    rated = [i for i, question in enumerate(questions) if question.answer is None]
    values, targets = [found[i] for i in rated], [questions[i].target or 0.0 for i in rated]
    return harmless(" ".join([*_on_its_rank(values, targets, rated.index(index)), *_on_its_evidence(judged[index])]))


def _is_right(judged: Judged, question: Question) -> bool:
    return (judged.final_answer or "").strip().upper() == (question.answer or "").strip().upper()


def _on_its_answer(judged: Judged, question: Question) -> str:
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
