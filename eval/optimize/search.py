"""Search for a better instruction: propose, measure on a few questions, and confirm on fresh ones before accepting.

A dozen questions are enough to reject most bad proposals, but too few to distinguish a better one from a lucky one. A
promising proposal is therefore measured again, beside the current best, on as many questions that had no part in the
choice. It replaces the best only if it is better on all of these questions together. A stricter rule, such as a gain
on the fresh questions alone, would reject too many useful proposals. The budget only decides when the search ends, so
a search with a larger budget begins like one with a smaller budget.

If reflections give no instruction, the sentences of rejected proposals are added to the best one: a dozen questions
also reject useful proposals.

After Agrawal et al., "GEPA: Reflective Prompt
Evolution Can Outperform Reinforcement Learning", 2025 (arXiv 2507.19457), which accepts after the first measurement.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.programs.backends.limits import LimitReached

FIRST, LOOK, AGAIN = 30, 10, 12  # questions: for the original, for a first measurement, and for the second
SHOWN = 12  # number of answers in one reflection
GAINLESS = 15  # proposals in a row without a gain end the search
GIVE_UP = 5  # reflections in a row without a usable instruction, before rejected ones are merged with the best
KEPT_BACK = 0.1  # share of the budget reserved to measure the best on further questions for the fusion

KEPT_MONEY = "the calls and cost that remain within the limits are reserved for the held-out comparison"

Texts = Mapping[str, str]  # instructions by the names of their predictors
Measure = Callable[[Texts, Sequence[int]], list[Any]]
Value = Callable[[Sequence[Any], Sequence[int]], float]


@dataclass(frozen=True)
class Proposal:
    """The result of a reflection: new instructions or ``None``, the predictor, and why proposals were refused."""

    texts: dict[str, str] | None
    predictor: str = ""
    refused: tuple[str, ...] = ()


@dataclass
class Step:
    """One proposal: its origin, and its gain in the units of the value.

    ``looked`` is its gain on the first questions, ``again`` the gain on fresh ones, ``None`` if not measured. ``why``
    is the reason for accepting or rejecting it, ``spent`` the number of assessments used so far.
    """

    number: int
    parent: int
    texts: dict[str, str]
    predictor: str
    looked: float | None = None
    again: float | None = None
    taken: bool = False
    why: str = ""
    spent: int = 0
    added: str = ""  # the sentences that the previous text did not have


@dataclass
class Searched:
    """The outcome of a search: ``best`` instructions, every proposal in order, and why the search ``ended``.

    ``demos`` has worked examples by predictor. ``spent`` counts assessments, ``used`` their questions. ``tried`` counts
    the instructions that an optimizer of DSPy tried; ``steps`` then has only its outcome. The questions at ``seen`` had
    a part in proposals or in choosing between them. Those at ``original_places`` were measured with the original
    instructions, those at ``best_places`` with the best ones.
    """

    best: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    demos: dict[str, list[Any]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    spent: int = 0
    used: int = 0
    ended: str = ""
    tried: int = 0
    seen: list[int] = field(default_factory=list)
    original_places: list[int] = field(default_factory=list)
    best_places: list[int] = field(default_factory=list)

    @property
    def proposals(self) -> int:
        """Return how many instructions were measured."""
        return max(len(self.steps), self.tried)

    @property
    def tuned(self) -> bool:
        """Return whether a proposal was accepted."""
        return any(step.taken for step in self.steps)


Propose = Callable[[Texts, Sequence[int], Sequence[Any], Sequence[Step]], Proposal]


class BudgetSpent(Exception):
    """Raised when the next measurement would exceed the budget."""


class Search:
    """One search over ``size`` questions, named by their indices. ``run`` may be called once.

    ``may_go_on`` is called before each proposal: false ends the search to save money for the comparison.
    """

    def __init__(
        self,
        measure: Measure,
        value: Value,
        propose: Propose,
        size: int,
        settings: TuningSettings,
        may_go_on: Callable[[], bool],
    ) -> None:
        self.measure_, self.value, self.propose, self.size = measure, value, propose, size
        self.budget, self.starts, self.may_go_on = settings.budget, settings.starts, may_go_on
        self.random = random.Random(settings.seed)
        self.first = first_places(self.random, size)
        self.known: dict[str, dict[int, Any]] = {}
        self.spent = 0

    def run(self, original: Texts) -> Searched:
        """Search, and measure the best on as many questions as the remaining budget allows."""
        searched = Searched(dict(original))
        try:
            searched.ended = self._climb(searched)
        except BudgetSpent:
            searched.ended = "the budget was spent" if self.may_go_on() else KEPT_MONEY
        except LimitReached as limit:
            searched.ended = str(limit)
        searched.seen = self._used()
        try:
            self._spend_rest(searched.best)
        except LimitReached as limit:
            searched.ended = str(limit)
        searched.spent, searched.used = self.spent, len(self._used())
        searched.original_places, searched.best_places = sorted(self._of(original)), sorted(self._of(searched.best))
        return searched

    def _climb(self, searched: Searched) -> str:
        """Add steps to ``searched`` until proposals no longer help, and return why the search ended.

        Raises BudgetSpent and LimitReached.
        """
        if not self.may_go_on():
            raise BudgetSpent
        self.measured(searched.best, self.first, keep=0)
        number = gainless = unusable = 0
        while self.may_go_on():
            taken, proposals = self._generation(searched, number, 1 if searched.steps else self.starts, self._reflected)
            unusable = 0 if proposals else unusable + 1
            if unusable >= GIVE_UP:
                taken, proposals = self._generation(searched, number, 1, self._merged)
                if not proposals:
                    return f"{GIVE_UP} reflections in a row gave no usable instruction, and none is left to merge"
            if taken:
                searched.best, number = taken.texts, taken.number
            gainless = 0 if taken else gainless + proposals
            if gainless >= GAINLESS:
                return f"{GAINLESS} proposals in a row brought no gain"
        return KEPT_MONEY

    def _spend_rest(self, best: Texts) -> None:
        """Measure the best on other questions, as many as the budget allows. Raises LimitReached."""
        others = [place for place in range(self.size) if place not in self.first]
        self.random.shuffle(others)
        left = [place for place in [*self.first, *others] if place not in self._of(best)]
        if self.may_go_on():
            self.measured(best, left[: max(self.budget - self.spent, 0)], keep=0)

    def _generation(
        self, searched: Searched, number: int, count: int, propose: Callable[[Searched], Proposal]
    ) -> tuple[Step | None, int]:
        """Try one proposal, or the best of several, after step ``number``, which made the best instructions so far.

        Returns the step taken, if any, and the number of proposals.
        """
        best = searched.best
        looked_at = self.random.sample(sorted(self._of(best)), min(LOOK, max(3, len(self._of(best)) // 2)))
        steps: list[Step] = []
        for _ in range(count):
            proposal = propose(searched)
            searched.refused += proposal.refused
            if proposal.texts is None or search_key(proposal.texts) in self.known:
                continue
            added = added_sentences(best.get(proposal.predictor, ""), proposal.texts.get(proposal.predictor, ""))
            about = (proposal.texts, proposal.predictor)
            step = Step(len(searched.steps) + 1, number, *about, spent=self.spent, added=added)
            step.why = "not measured: the budget was spent"
            searched.steps.append(step)
            step.looked = self.gain(step.texts, best, looked_at)
            step.why, step.spent = "no gain in the first measurement", self.spent
            steps.append(step)
        ahead = max((step for step in steps if (step.looked or 0) > 0), key=lambda step: step.looked or 0, default=None)
        for step in steps:
            if ahead and step is not ahead and (step.looked or 0) > 0:
                step.why = "another proposal of the same round had a larger gain"
        if ahead:
            self._look_again(ahead, best, looked_at)
        return (ahead if ahead and ahead.taken else None), len(steps)

    def _reflected(self, searched: Searched) -> Proposal:
        """Return what the reflection model proposes after some answers of the best instructions."""
        known = self._of(searched.best)
        places = self.random.sample(sorted(known), min(3 * SHOWN, len(known)))
        return self.propose(searched.best, places, [known[place] for place in places], searched.steps)

    def _merged(self, searched: Searched) -> Proposal:
        """Return the best instructions with the sentences of a rejected step, that of the largest first gain first."""
        rejected = [step for step in searched.steps if step.looked is not None and not step.taken and step.added]
        for step in sorted(rejected, key=lambda step: -(step.looked or 0.0)):
            text = searched.best[step.predictor]
            merged = {**searched.best, step.predictor: f"{text}\n{step.added}"}
            if added_sentences(text, step.added) and search_key(merged) not in self.known:
                return Proposal(merged, step.predictor)
        return Proposal(None)

    def _look_again(self, step: Step, best: Texts, looked_at: Sequence[int]) -> None:
        known = [place for place in sorted(self._of(best)) if place not in looked_at]
        fresh = [place for place in range(self.size) if place not in self._of(best)]
        self.random.shuffle(known)
        self.random.shuffle(fresh)
        places = (known + fresh)[:AGAIN]
        step.why = "not measured again: the budget was spent"
        step.again = self.gain(step.texts, best, places) if places else 0.0
        step.taken = self.gain(step.texts, best, [*looked_at, *places]) > 0
        step.why = "gain confirmed on other questions" if step.taken else "gain not confirmed on other questions"
        step.spent = self.spent

    def _used(self) -> list[int]:
        return sorted({place for known in self.known.values() for place in known})

    def _of(self, texts: Texts) -> dict[int, Any]:
        return self.known.setdefault(search_key(texts), {})

    def measured(self, texts: Texts, places: Sequence[int], keep: float = KEPT_BACK) -> list[Any]:
        """Return the answers under these instructions. Raises BudgetSpent if it would leave less than ``keep``."""
        known = self._of(texts)
        new = [place for place in places if place not in known]
        if new and self.spent + len(new) > self.budget * (1 - keep):
            raise BudgetSpent
        if new:
            known.update(zip(new, self.measure_(texts, new), strict=True))
            self.spent += len(new)
        return [known[place] for place in places]

    def gain(self, new: Texts, old: Texts, places: Sequence[int]) -> float:
        """Return by how much ``new`` is better on these questions."""
        return self.value(self.measured(new, places), places) - self.value(self.measured(old, places), places)


def first_places(rng: random.Random, size: int) -> list[int]:
    """Return the questions on which the original is measured and the fusion is fitted: the generator's first choice.

    All optimizers get the same ones, so the figures before tuning are equal.
    """
    return rng.sample(range(size), min(FIRST, size))


def search_key(texts: Texts) -> str:
    """Return a key that identifies instructions in ``Search.known``."""
    return "\0".join(f"{name}\0{texts[name]}" for name in sorted(texts))


def added_sentences(before: str, after: str) -> str:
    """Return the sentences of a text that another does not have."""
    known = set(_sentences(before))
    return " ".join(sentence for sentence in _sentences(after) if sentence not in known)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?:;])\s+", " ".join(text.split()))
