"""The search with a simulated rater, over several seeds: its results, its cost, and its robustness to chance."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.eval.optimize.items import TuningQuestion
from agenticiqa.eval.optimize.objectives import value
from agenticiqa.eval.optimize.search import GAINLESS, GIVE_UP, Proposal, Search, Searched, added_sentences
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.programs.backends.limits import LimitReached
from support.simulated_judge import COPY_TOOLS, HELPFUL, SEED, assessed_by, photos

ALL = " | ".join([SEED, *HELPFUL])
SIZE = 112


class Bench:
    """A search over simulated photos with a fixed order of proposals; it counts what is measured."""

    def __init__(
        self,
        *proposals: str | None,
        seed: int = 5,
        budget: int = 400,
        starts: int = 1,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self.given, self.proposals, self.measured = photos(SIZE, seed), list(proposals), 0
        self.asked = [TuningQuestion(Path("a.png"), "", str(i), target=float(y)) for i, y in enumerate(self.given.mos)]
        settings = TuningSettings(budget=budget, starts=starts)
        self.search = Search(self.measure, self.value, self.propose, SIZE, settings, may_go_on)

    def measure(self, texts: Mapping[str, str], places: Sequence[int]) -> list[Any]:
        self.measured += len(places)
        return assessed_by(texts["s"], self.given, places)

    def value(self, assessed: Sequence[Any], places: Sequence[int]) -> float:
        return value("scoring", assessed, [self.asked[place] for place in places])

    def propose(self, texts: Mapping[str, str], *shown: Any) -> Proposal:
        text = self.proposals.pop(0) if self.proposals else None
        return Proposal({"s": text} if text else None, "s", () if text else ("it was empty",))

    def run(self) -> Searched:
        return self.search.run({"s": SEED})


def test_useful_proposals_are_accepted_and_those_that_follow_the_tools_or_add_nothing_are_not() -> None:
    bench = Bench(f"{SEED} | {COPY_TOOLS[0]}", f"{SEED} | Be careful.", ALL)
    found = bench.run()
    assert found.best == {"s": ALL}
    assert found.steps[2].taken
    assert not found.steps[0].taken, "a parrot"
    assert "gain confirmed on other questions" in found.steps[2].why
    assert found.spent == bench.measured <= 400


def test_a_proposal_that_is_lucky_at_the_first_look_is_measured_again_and_left() -> None:
    """Of many useless wordings some look better on ten photos by chance; hardly any replaces the original."""
    idle = [f"{SEED} | Wording number {number}." for number in range(12)]
    looked = again = taken = 0
    for seed in range(6):
        found = Bench(*idle, seed=seed, budget=500).run()
        looked += len([step for step in found.steps if (step.looked or 0) > 0])
        again += len([step for step in found.steps if step.again is not None])
        taken += len([step for step in found.steps if step.taken])
    assert again >= 15
    assert taken < 0.7 * again


def test_the_budget_is_never_exceeded_and_a_larger_one_begins_as_the_smaller_did() -> None:
    proposals = [f"{SEED} | Wording {n}." if n % 3 else f"{ALL} {n}" for n in range(12)]
    small, large = (Bench(*proposals, budget=budget).run() for budget in (150, 400))
    assert small.spent <= 150
    assert small.ended == "the budget was spent"
    finished = [step for step in small.steps if "budget" not in step.why]
    assert [step.texts for step in finished] == [step.texts for step in large.steps[: len(finished)]]
    assert [step.looked for step in finished] == [step.looked for step in large.steps[: len(finished)]]


def test_the_search_ends_early_without_gains_or_instructions() -> None:
    bench = Bench(*[f"{SEED} | Wording {n}." for n in range(40)], budget=4000)
    bench.search.value = lambda assessed, places: 0.0
    found = bench.run()
    assert len(found.steps) == GAINLESS
    assert "brought no gain" in found.ended
    assert not found.tuned
    found = Bench(budget=4000).run()
    assert found.refused == ["it was empty"] * GIVE_UP
    assert "no usable instruction" in found.ended
    assert found.used == SIZE, "the original is measured on the others, for the fusion"


def test_the_best_of_several_starts_is_continued() -> None:
    bench = Bench(f"{SEED} | {COPY_TOOLS[0]}", f"{SEED} | Be careful.", ALL, starts=3)
    found = bench.run()
    starts = found.steps[:3]
    assert [step.parent for step in starts] == [0, 0, 0]
    (ahead,) = [step for step in starts if step.again is not None]
    assert ahead.looked == max(step.looked or 0 for step in starts)


def test_after_reflections_without_an_instruction_rejected_sentences_are_added_to_the_best() -> None:
    """Two useful sentences compete in the first round. The writer gives nothing more, and the rejected one is added."""
    sentences = list(HELPFUL)[:2]
    bench = Bench(*[f"{SEED} | {sentence}" for sentence in sentences], starts=2, budget=2000)
    bench.search.measure_ = lambda texts, places: [sum(one in texts["s"] for one in sentences)] * len(places)
    bench.search.value = lambda assessed, places: sum(assessed) / len(assessed)
    found = bench.run()
    assert found.best["s"] == f"{SEED} | {sentences[0]}\n| {sentences[1]}"
    assert [(step.parent, step.taken) for step in found.steps] == [(0, True), (0, False), (1, True)]
    assert found.refused == ["it was empty"] * (GIVE_UP + 1)
    assert "none is left to merge" in found.ended


def test_the_questions_of_the_search_are_named_without_those_measured_afterwards() -> None:
    bench = Bench(ALL, budget=200)
    found = bench.run()
    assert found.seen == sorted(bench.search.first)
    assert set(found.best_places) - set(found.seen), "the rest of the budget was spent on others"


def test_a_limit_in_money_ends_it_with_the_best_so_far() -> None:
    bench = Bench(ALL, f"{SEED} | Be careful.")
    measure, calls = bench.measure, []

    def limited(texts: Mapping[str, str], places: Sequence[int]) -> list[Any]:
        calls.append(texts)
        if texts["s"] not in (SEED, ALL):
            raise LimitReached("the limit of 1 USD is reached")
        return measure(texts, places)

    bench.search.measure_ = limited
    found = bench.run()
    assert found.best == {"s": ALL}
    assert found.ended == "the limit of 1 USD is reached"
    bench = Bench(ALL, may_go_on=lambda: False)
    assert (
        bench.run().ended == "the calls and cost that remain within the limits are reserved for the held-out comparison"
    )
    assert bench.measured == 0


def test_added_text_is_reported_in_sentences() -> None:
    assert (
        added_sentences("Rate it. Be kind.", "Rate it. Weigh blur. Be kind. Look twice.") == "Weigh blur. Look twice."
    )
