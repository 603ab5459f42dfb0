"""Questions in words that no rule knows are read by the classifier and asked again in plain words."""

import pytest

from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language.answers import IMAGE, answer_from_evidence
from agenticiqa.programs.offline.language.intents import INTENTS, Intent, intent_of
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.plain_question import OVERRULED, in_plain_words, overrules
from agenticiqa.programs.offline.language.word_patterns import BUCKETS, LONGEST, hashed_ngrams, word_pattern
from agenticiqa.signatures.types import UNABLE, ExecutorOutput
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion


def answer(question: str, category: DetectableDistortion | None, kind: str = "") -> str:
    damage, none = Finding(3.5, kind, ""), Finding(0.0, "", "")
    image = MeasuredImage({name: damage if name == category else none for name in DETECTABLE}, 2.0 if category else 4.8)
    look = {IMAGE: image}.get
    return answer_from_evidence(question, {}, look, ExecutorOutput()).final_answer


@pytest.mark.parametrize(
    ("question", "there", "absent"),
    [
        ("Would an honest critic grumble about grain here?", "Yes", "No"),
        ("Could I hand this file over to the client as wholly spared from grain?", "No", "Yes"),
    ],
)
def test_unknown_wordings_of_yes_and_no(question: str, there: str, absent: str) -> None:
    assert answer(question, "Noise", "Gaussian noise").startswith(there)
    assert answer(question, None).startswith(absent)


@pytest.mark.parametrize(
    "question",
    [
        "Does the lighting create a dramatic mood?",
        "Was the grain added on purpose?",
        "Is the woman's face blurred?",
        "Tell me a joke about Blimfark.",
    ],
)
def test_what_no_measurement_tells_stays_undetermined(question: str) -> None:
    assert answer(question, "Noise", "Gaussian noise") == UNABLE


def test_names_are_replaced_and_what_is_said_of_them_stays() -> None:
    one, other = word_pattern("Isn't the left half blurry?"), word_pattern("Isn't the right side noisy?")
    assert one == other == "xxbegin is not the xxplace xxplace xxfault xxask xxend"
    assert word_pattern("Is it sharp?") != word_pattern("Is it blurry?")


def test_ngrams_are_bounded_and_the_same_each_time() -> None:
    ngrams = hashed_ngrams("Is it noisy? " * LONGEST, "Is it noisy?" * LONGEST)
    assert ngrams == hashed_ngrams("Is it noisy? " * LONGEST, "Is it noisy?" * LONGEST)
    assert all(0 <= bucket < BUCKETS for bucket in ngrams)
    assert 0 <= intent_of("", "").probability <= 1


def test_only_a_clear_question_is_asked_again() -> None:
    def plain(text: str, probability: float = 0.9, regions: tuple[str, ...] = ()) -> str:
        return in_plain_words(text, text, Intent("no", probability), regions)

    assert plain("Has it been spared from grain?") == "Is it free of noise?"
    assert plain("Has it been spared from grain?", regions=("the sky",)) == "Is the sky free of noise?"
    assert plain("Has it been spared from grain?", 0.5) == ""
    assert plain("Has it been spared from grain and blur?") == ""
    assert plain("Has it been spared?") == ""
    found = {intent_of(text, text).name for text in ("Is it noisy?", "Is it free of noise?")}
    assert found == {"yes", "no"} <= set(INTENTS)


def test_a_question_for_a_part_is_not_answered_yes_or_no() -> None:
    question = (
        "I want to cut it down the middle and keep the half without noise. Should I keep the left one or the right?"
    )
    sure = intent_of(question, question)
    assert sure.name == "half-clean"
    assert overrules(sure, "presence") == (sure.probability >= OVERRULED)
    assert overrules(Intent("half-clean", OVERRULED), "presence")
    assert not overrules(sure, "where")
    assert not overrules(Intent("yes", 1.0), "presence")


@pytest.mark.slow
def test_a_trained_classifier_reads_wordings_of_another_set() -> None:
    pytest.importorskip("sklearn")
    from agenticiqa.eval.questions.reading_study import plain_wordings
    from agenticiqa.eval.train.train_intents import intent_label, train
    from agenticiqa.programs.offline.language.intents import likeliest
    from agenticiqa.programs.offline.language.reader import read_question

    weights = train([row for split in ("fresh", "trade") for row in plain_wordings(split)])

    def intent(text: str) -> Intent:
        return likeliest(weights, hashed_ngrams(text, read_question(text, {}).text))

    asked = [row for row in plain_wordings("heldout") if not row.is_template]
    right = sum(intent(row.text).name == intent_label(row) for row in asked)
    assert right / len(asked) > 0.7  # by chance less than .3, always "yes" or "no"
