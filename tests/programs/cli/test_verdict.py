"""The sentence of a card: a rating in everyday words, without arithmetic."""

from pathlib import Path
from typing import Any, get_args

import pytest

from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.card import STRENGTHS, explanation, verdict
from agenticiqa.signatures import vocabulary
from support.fake_server import by_stage, fake_server
from support.scripted_answers import SCRIPT, program_for

Found = list[tuple[str, str]]


def rated(level: str, analysis: dict[str, Found] | None) -> dict[str, Any]:
    """As much of a result as the sentence is made of."""
    rows = analysis and {
        region: [{"type": name, "severity": severity, "explanation": ""} for name, severity in found]
        for region, found in analysis.items()
    }
    return {
        "quality_score": 3.0,
        "quality_level": level,
        "executor_evidence": {"distortion_analysis": {} if analysis == {} else rows},
    }


@pytest.mark.parametrize(
    ("level", "analysis", "sentence"),
    [
        ("Poor", {"Global": [("Compression", "severe")]}, "Poor quality: strong compression artifacts."),
        (
            "Bad",
            {"Global": [("Noise", "moderate"), ("Blurs", "extreme")]},
            "Bad quality: extreme blur and visible noise.",
        ),
        ("Fair", {"sky": [("Noise", "severe")]}, "Fair quality: strong noise in the sky."),
        ("Fair", {"the sky": [("Noise", "severe")]}, "Fair quality: strong noise in the sky."),
        ("Fair", {"Region 1": [("Noise", "severe")]}, "Fair quality: strong noise in Region 1."),
        ("Good", {"Global": [("Noise", "moderate"), ("Blurs", "slight")]}, "Good quality with visible noise."),
        ("Good", {"Global": [("Noise", "slight"), ("Blurs", "none")]}, "Good quality: only slight noise."),
        ("Poor", {"Global": [("Noise", "slight")]}, "Poor quality, though with only slight noise."),
        (
            "Fair",
            {"Global": [("Blurs", "slight"), ("Compression", "slight")]},
            "Fair quality, though with only slight blur and slight compression artifacts.",
        ),
        ("Excellent", {"Global": []}, "Excellent quality: no visible distortion."),
        ("Excellent", {"Global": [("Noise", "none")]}, "Excellent quality: no visible distortion."),
        ("Bad", {}, "Bad quality: no single distortion stands out."),
        ("Good", None, "Good quality."),
        ("Poor", {"Global": [("Sharpness", "moderate"), ("Blurs", "severe")]}, "Poor quality: strong blur."),
        ("Fair", {"Global": [("Sharpness", "moderate")]}, "Fair quality: visible sharpness problems."),
        (
            "Bad",
            {
                "Global": [
                    (name, "severe") for name in ("Noise", "Blurs", "Contrast", "Brightness change", "Compression")
                ]
            },
            "Bad quality: strong noise, strong blur, strong contrast problems and 2 more.",
        ),
    ],
)
def test_a_verdict_has_the_level_and_the_most_severe_distortions(
    level: str, analysis: dict[str, Found] | None, sentence: str
) -> None:
    assert verdict(rated(level, analysis)) == sentence


def test_every_severity_has_a_word() -> None:
    assert {"none", *STRENGTHS} == set(get_args(vocabulary.Severity))


def test_an_answer_without_a_score_has_no_verdict(examples: Path) -> None:
    row = AgenticIQA.offline()(examples / "coffee_jpeg.jpg", "Is it noisy?").to_dict()
    assert verdict(row) == ""
    assert explanation(row) == row["quality_reasoning"]


def test_an_offline_card_explains_without_arithmetic(examples: Path) -> None:
    row = AgenticIQA.offline()(examples / "coffee_jpeg.jpg").to_dict()
    assert "fused from the tool mean" in row["quality_reasoning"]
    assert verdict(row) == "Poor quality: extreme compression artifacts."
    assert explanation(row) == ""


def test_text_of_a_model_and_caveats_are_kept(examples: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        row = program_for(server)(examples / "coffee_jpeg.jpg").to_dict()
    before, _, after = row["quality_reasoning"].partition("Score ")
    assert before
    assert explanation(row).startswith(before.strip())
    assert "expected level" not in explanation(row)
    caveat = "No tool gave a score for Noise."
    assert explanation({**row, "quality_reasoning": f"{row['quality_reasoning']} {caveat}"}).endswith(caveat)
    assert after


def test_the_arithmetic_is_recognized_by_its_field_not_by_its_words() -> None:
    row = {"quality_reasoning": "Soft edges. Any words of arithmetic. Few tools.", "probability_source": "logprobs"}
    assert explanation({**row, "summarizer_result": {"score_sentence": "Any words of arithmetic."}}) == (
        "Soft edges. Few tools."
    )
    assert explanation({**row, "summarizer_result": {"score_sentence": None}}) == row["quality_reasoning"]
