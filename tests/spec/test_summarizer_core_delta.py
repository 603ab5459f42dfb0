"""The scenarios of the document summarizer-core-delta."""

import json
import logging
import math
from pathlib import Path

import pytest

from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.graph import summarizer_node
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.signatures.types import QueryType, SummarizerOutput
from support.fake_server import field_of, images_of, stage_of, text_of
from support.nodes import WHY, WORST, evidence, plan, scripted, sections, state
from support.specification import ANSWER, ASSESSMENT, LOG_PROBS

SAID = {"assessment": ASSESSMENT, "answer": ANSWER}
TOTAL = sum(math.exp(log) for log in LOG_PROBS.values())
P = {int(level): math.exp(log) / TOTAL for level, log in LOG_PROBS.items()}


def without_probs(reasoning: str) -> dict[str, str]:
    return {"quality_reasoning": reasoning}


def test_use_probability_distribution_prompt_for_scoring_queries(photo: Path) -> None:
    """The request for a rating has scores, their mean to two decimals, analysis, image and the meaning of levels."""
    config, engine = scripted(SAID)
    summarizer_node(state(photo, "Rate the quality", plan("IQA"), evidence(score=2.6)), config)
    (body,) = engine.bodies
    shown = field_of(body, "evidence")
    assert "Tool scores (1-5 scale, higher is better)" in shown
    assert "mean:\n2.60" in shown
    assert sections(body)["Distortion analysis"]["Global"][0]["severity"] == "moderate"
    assert [data for _, data in images_of(body)] == [photo.read_bytes()]
    message = " ".join(text_of(body).split())
    for level, name, meaning in [
        (5, "Excellent", "no visible distortion"),
        (4, "Good", "minor"),
        (3, "Fair", "moderate"),
        (2, "Poor", "severe"),
        (1, "Bad", "extreme"),
    ]:
        defined = message.partition(f"{level}, {name}:")[2]
        assert meaning in defined[:40]
    assert 'for EACH level, under "1" to "5", the probability' in message
    assert all(f'"{level}": number' in message for level in range(1, 6))
    assert message.index("quality_probs") < message.index("quality_reasoning")


def test_summarizer_core_delta_apply_score_fusion_in_scoring_mode(photo: Path) -> None:
    """Answer and score are the same number, the weighted mean of the levels; the reasoning has the computation."""
    config, _ = scripted(SAID)
    result = summarizer_node(state(photo, found=evidence(score=2.6)), config)["summarizer_result"]
    joint = {c: math.exp(-((2.6 - c) ** 2)) * p for c, p in P.items()}
    expected = sum(share * c for c, share in joint.items()) / sum(joint.values())
    assert math.isclose(result.final_answer, expected)
    assert result.quality_score == result.final_answer
    for part in (f"{expected:.2f}", "tool mean 2.60", f"{sum(p * c for c, p in P.items()):.2f}", "log-probabilities"):
        assert part in result.quality_reasoning


def test_fallback_when_vlm_doesnt_provide_quality_probs(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without probabilities the request is repeated, then the level in the reasoning gets the largest weight."""
    config, engine = scripted({"assessment": [without_probs("Soft."), ASSESSMENT]})
    assert summarizer_node(state(photo), config)["summarizer_result"].probability_source == "quality_probs"
    correction = field_of(engine.bodies[1], "correction")
    assert "quality_probs" in correction
    assert "Return ONLY valid JSON" in correction
    assert not [record for record in caplog.records if "no quality_probs" in record.getMessage()]

    config, engine = scripted({"assessment": without_probs("It is of poor quality.")})
    result = summarizer_node(state(photo, found=evidence()), config)["summarizer_result"]
    assert len(engine.requests) == 3
    assert result.quality_probs == pytest.approx({"2": 0.7} | dict.fromkeys("1345", 0.075))
    assert result.probability_source == "reasoning"
    assert math.isclose(
        result.final_answer, ScoreFusion().fuse([2.6], {2: 0.7, 1: 0.075, 3: 0.075, 4: 0.075, 5: 0.075})
    )
    assert any("no quality_probs" in r.getMessage() for r in caplog.records if r.levelno == logging.WARNING)


def test_handle_mcq_queries_with_categorical_options(photo: Path) -> None:
    """With options, even quality levels, the answering prompt is used, and the result has a letter and no score."""
    query = "How would you rate the quality? A) Excellent B) Good C) Fair"
    config, engine = scripted({**SAID, "answer": {**ANSWER, "final_answer": "C) Fair"}})
    result = summarizer_node(state(photo, query, plan("IQA"), evidence()), config)["summarizer_result"]
    assert [stage_of(body) for body in engine.bodies] == ["answer"]
    assert field_of(engine.bodies[0], "options") == "A. Excellent\nB. Good\nC. Fair"
    assert (result.final_answer, result.quality_score) == ("C", None)


@pytest.mark.parametrize(
    "query",
    [
        "Rate the perceptual quality of this image",
        "What is the quality score?",
        "Assess the image quality",
        "Score its quality, please.",
        "Evaluate the technical quality of the photo",
    ],
)
def test_detect_pure_scoring_query(photo: Path, query: str) -> None:
    """A question with rate, score, assess or evaluate and quality, without options, gets a number."""
    assert detect_query_type(query) is QueryType.SCORING
    config, _ = scripted(SAID)
    assert isinstance(summarizer_node(state(photo, query), config)["summarizer_result"].final_answer, float)
    assert detect_query_type(f"{query}\nA) High\nB) Low") is QueryType.MCQ


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Is quality: A) Excellent B) Good C) Fair?", "B"),
        ("Choose from: A) High quality B) Low quality", "B"),
        ("Rate the quality: A. High B. Low C. Neither", "B"),
        ("Is it sharp or not, choose from: sharp, not sharp", "B"),
        ("Is it sharp or not, choose from: sharp, not sharp. Answer with the letter.", "B"),
    ],
)
def test_detect_mcq_query(photo: Path, query: str, answer: str) -> None:
    """Lettered options or a choice among named things get the letter of one; its text is kept."""
    assert detect_query_type(query) is QueryType.MCQ
    config, _ = scripted({**SAID, "answer": {**ANSWER, "final_answer": "b"}})
    result = summarizer_node(state(photo, query), config)["summarizer_result"]
    assert result.final_answer == answer
    unlettered = query.endswith(": sharp, not sharp")
    assert result.quality_reasoning.startswith("B is 'not sharp'. ") == unlettered


@pytest.mark.parametrize(
    "query",
    ["Why is it blurry?", "Explain the noise.", "Describe the colours.", "What distortions can be seen?", WHY],
)
def test_detect_explanation_query(photo: Path, query: str) -> None:
    """Questions with why, explain, describe or what get words."""
    assert detect_query_type(query) is detect_query_type(query, "Other") is QueryType.EXPLANATION
    config, _ = scripted({**SAID, "answer": {**ANSWER, "final_answer": "Camera shake."}})
    result = summarizer_node(state(photo, query), config)["summarizer_result"]
    assert (result.final_answer, result.quality_score) == ("Camera shake.", None)


@pytest.mark.parametrize("tool", [1.0, 2.6, 5.0])
@pytest.mark.parametrize("sure", ["1", "3", "5"])
def test_return_continuous_numerical_score(photo: Path, tool: float, sure: str) -> None:
    """A score is a float from 1 to 5, equal in both fields, and its reasoning names the tools and the model."""
    probs = {level: 0.0 if level == sure else -30.0 for level in LOG_PROBS}
    config, _ = scripted({"assessment": {**ASSESSMENT, "quality_level": int(sure), "quality_probs": probs}})
    result = summarizer_node(state(photo, found=evidence(score=tool)), config)["summarizer_result"]
    assert isinstance(result.final_answer, float)
    assert result.quality_score == result.final_answer
    assert 1 <= result.final_answer <= 5
    for part in (f"tool mean {tool:.2f}", f"expected level of {float(sure):.2f}", ASSESSMENT["quality_reasoning"]):
        assert part in result.quality_reasoning


@pytest.mark.parametrize("said", ["C", "c", "(C)", "C. Compression", "compression"])
def test_return_categorical_letter_for_mcq(photo: Path, said: str) -> None:
    """For any spelling of the choice, the answer is the capital letter, without a score."""
    config, _ = scripted({"answer": {**ANSWER, "final_answer": said}})
    result = summarizer_node(state(photo, WORST, found=evidence()), config)["summarizer_result"]
    assert (result.final_answer, result.quality_score) == ("C", None)
    message = json.loads(result.model_dump_json())
    assert (message["final_answer"], message["quality_score"]) == ("C", None)
    assert SummarizerOutput.model_validate(message) == result


def test_extract_probabilities_from_quality_probs_dict(photo: Path) -> None:
    """The softmax of the log-probabilities, with the sum one, is fused."""
    config, _ = scripted(SAID)
    result = summarizer_node(state(photo, found=evidence()), config)["summarizer_result"]
    assert result.quality_probs == pytest.approx({str(level): p for level, p in P.items()})
    assert math.isclose(sum(result.quality_probs.values()), 1)
    assert result.probability_source == "quality_probs"
    assert math.isclose(result.final_answer, ScoreFusion().fuse([2.6], P))
    assert ScoreFusion().extract_vlm_probabilities({"quality_probs": LOG_PROBS}) == pytest.approx(P)


@pytest.mark.parametrize(
    ("reasoning", "level"), [("Fair quality", 3), ("The quality is good.", 4), ("Level 1, nothing to see.", 1)]
)
def test_fallback_to_classification_extraction(
    photo: Path, reasoning: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The level in the reasoning gets 0.7, each other one 0.075, with a warning that the fusion is approximate."""
    smoothed = {c: 0.7 if c == level else 0.075 for c in range(1, 6)}
    config, _ = scripted({"assessment": without_probs(reasoning)})
    result = summarizer_node(state(photo, found=evidence()), config)["summarizer_result"]
    assert result.quality_probs == pytest.approx({str(c): p for c, p in smoothed.items()})
    assert any("approximate" in r.getMessage() for r in caplog.records if r.levelno == logging.WARNING)
    assert ScoreFusion().extract_vlm_probabilities(reasoning) == pytest.approx(smoothed)


def test_fallback_to_uniform_distribution(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without probabilities or a level, each level gets 0.2, with a warning that only the tool scores count."""
    config, _ = scripted({"assessment": without_probs("Somewhat soft edges.")})
    result = summarizer_node(state(photo, found=evidence()), config)["summarizer_result"]
    assert result.quality_probs == dict.fromkeys("12345", 0.2)
    assert result.probability_source == "uniform"
    assert math.isclose(result.final_answer, ScoreFusion().fuse([2.6], dict.fromkeys(range(1, 6), 0.2)))
    assert any("tool scores only" in r.getMessage() for r in caplog.records if r.levelno == logging.WARNING)
    assert list(summarizer_node(state(photo), config)) == ["error"]
