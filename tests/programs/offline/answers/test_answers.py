"""Offline answers: a table of questions with expected answers, and properties of all answers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.offline.answers.answer import answer_from_evidence
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion
from agenticiqa.programs.offline.answers.measured_image import IMAGE, REFERENCE, Look, MeasuredImage
from agenticiqa.programs.offline.measured.findings import GRAY, Finding
from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.signatures.types import UNABLE, DistortionAnalysis, ExecutorOutput, ToolCall
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

TABLE = yaml.safe_load(Path(__file__).with_name("answer_cases.yaml").read_text())
CASES = [(group, case) for group, cases in TABLE.items() for case in cases]
CHOICES = [case for _, case in CASES if parse_options(case["query"])]
KINDS: dict[DetectableDistortion, tuple[str, ...]] = {
    "Blurs": ("defocus or motion blur", "motion blur", ""),
    "Color distortions": ("oversaturation", "desaturation", "color cast"),
    "Compression": ("JPEG blocking",),
    "Noise": ("Gaussian noise", "impulse noise"),
    "Brightness change": ("underexposure", "overexposure", ""),
    "Sharpness": ("lack of sharpness", "oversharpening"),
    "Contrast": ("low contrast", "high contrast"),
}
NOTHING = Finding(0.0, "", "")


def findings_of(found: Mapping[str, tuple[float, str]]) -> dict[DetectableDistortion, Finding]:
    measured = {name: found.get(name, (0.0, "")) for name in DETECTABLE}
    return {
        name: Finding(severity=severity, subtype=kind, explanation=f"It measures {severity:.2f}.")
        for name, (severity, kind) in measured.items()
    }


def evidence_of(regions: list[str]) -> ExecutorOutput:
    row = DistortionAnalysis(type="Blurs", severity="none", explanation="measured")
    return ExecutorOutput(distortion_analysis={region: [row] for region in regions} or None)


def answer_of(query: str, options: Mapping[str, str], look: Look, evidence: ExecutorOutput) -> Answered:
    return answer_from_evidence(UserQuestion(query, options, evidence), look)


def answered(case: Mapping[str, Any]) -> Answered:
    """Answer a case of the table; all its regions are found and have the measurements of the image."""
    found, regions = case["found"], case.get("regions", [])
    compared = case.get("reference", False)
    level = case.get("level", 5 - max((severity for severity, _ in found.values()), default=0.0))
    image = MeasuredImage(findings_of(found), level, compared)
    pristine = MeasuredImage(findings_of(case.get("in_reference", {})), 4.0)

    def look(name: str) -> MeasuredImage | None:
        if name == REFERENCE:
            return pristine if compared else None
        return image if name == IMAGE or name in regions else None

    options = case.get("options", parse_options(case["query"]))
    return answer_of(case["query"], options, look, evidence_of(regions))


def yes_or_no(query: str, **found: tuple[float, str]) -> str:
    return answered({"query": query, "found": found}).final_answer.partition(",")[0]


any_findings = st.fixed_dictionaries(
    {name: st.tuples(st.floats(0, 4), st.sampled_from(kinds)) for name, kinds in KINDS.items()}
)


@pytest.mark.parametrize(("group", "case"), CASES, ids=[f"{group}-{case['query'][:60]}" for group, case in CASES])
def test_the_answer_follows_from_the_measurements(group: str, case: dict[str, Any]) -> None:
    result = answered(case)
    if parse_options(case["query"]) or case["answer"] == UNABLE:
        assert result.final_answer == case["answer"], result.reasoning
    else:
        assert re.match(case["answer"], result.final_answer), result


@given(case=st.sampled_from(CHOICES), found=any_findings, level=st.floats(1, 5), reference=st.booleans())
def test_the_answer_to_a_choice_is_an_offered_letter_or_none(
    case: dict[str, Any], found: dict[str, tuple[float, str]], level: float, reference: bool
) -> None:
    result = answered({**case, "found": found, "level": level, "reference": reference})
    assert result.final_answer in (*parse_options(case["query"]), UNABLE)
    assert result.reasoning


@given(case=st.sampled_from(CHOICES), found=any_findings, level=st.floats(1, 5))
def test_the_order_of_the_options_does_not_change_the_answer(
    case: dict[str, Any], found: dict[str, tuple[float, str]], level: float
) -> None:
    # Other orders may matter: if words do not show which of two degrees is higher, their positions do.
    options = parse_options(case["query"])
    backwards = dict(zip(options, reversed(options.values()), strict=True))
    # This introduction marks them as the only options, because the question itself may list some.
    case = {**case, "query": question_part(case["query"]), "found": found, "level": level}
    before, after = (answered({**case, "options": given}).final_answer for given in (options, backwards))
    # The network reads the options in order, so one near the limit may be unanswered in the other order.
    chosen = {options.get(before, UNABLE), backwards.get(after, UNABLE)} - {UNABLE}
    assert len(chosen) <= 1


@given(found=any_findings, level=st.floats(1, 5), reference=st.booleans())
@pytest.mark.parametrize(
    "query",
    [
        "What is the man holding? A. Umbrella B. Camera",
        "Is this photo beautiful? A. Yes B. No",
        "Does the blur make the mood calmer? A. Yes B. No",
        "Which object is the blurriest? A. The dog B. The car",
        "How is the composition? A. Good B. Average C. Poor",
        "Is the lighting dramatic?",
        "What color is the sky?",
        "Was this picture taken by a professional?",
        "Describe what the people are doing.",
    ],
)
def test_questions_that_no_measurement_answers_stay_open(
    query: str, found: dict[str, tuple[float, str]], level: float, reference: bool
) -> None:
    result = answered({"query": query, "found": found, "level": level, "reference": reference})
    assert result.final_answer == UNABLE
    assert "--backend" in result.reasoning


@given(lower=st.floats(0, 4), upper=st.floats(0, 4))
def test_more_noise_never_makes_a_noisy_picture_clean(lower: float, upper: float) -> None:
    lower, upper = sorted((lower, upper))
    for query in ("Is it noisy?", "Is there any noise?", "Is it very noisy?"):
        assert yes_or_no(query, Noise=(4.0, "")) == "Yes"
        if yes_or_no(query, Noise=(lower, "")) == "Yes":
            assert yes_or_no(query, Noise=(upper, "")) == "Yes"


@given(found=any_findings, level=st.floats(1, 5))
@pytest.mark.parametrize(
    ("claim", "denial"),
    [
        ("Is the image noisy?", "Is the image not noisy?"),
        ("Is there any noise?", "Is it free of noise?"),
        ("Is the picture sharp?", "Is the picture not sharp?"),
        ("Is it underexposed?", "Is it not underexposed?"),
        ("Is the quality good?", "Is the quality not good?"),
    ],
)
def test_a_claim_and_its_denial_are_never_both_true(
    claim: str, denial: str, found: dict[str, tuple[float, str]], level: float
) -> None:
    given = {"found": found, "level": level}
    answers = [answered({"query": query, **given}).final_answer.partition(",")[0] for query in (claim, denial)]
    assert sorted(answers) in (["No", "Yes"], [UNABLE, UNABLE])


def test_a_negative_question_is_answered_like_the_positive_one() -> None:
    for severity in (0.2, 2.4):
        assert yes_or_no("Isn't it noisy?", Noise=(severity, "")) == yes_or_no("Is it noisy?", Noise=(severity, ""))


def test_a_region_that_is_not_found_is_not_answered_from_the_whole_image() -> None:
    case = {"query": "Is the vehicle blurry? A. Yes B. No", "found": {"Blurs": (2.0, "")}}
    assert answered({**case, "regions": ["vehicle"]}).final_answer == "A"
    evidence = ExecutorOutput(boxes={"vehicle": None})
    result = answer_of("Is the vehicle blurry?", {}, {IMAGE: halves("left")}.get, evidence)
    assert result.final_answer == UNABLE
    assert "vehicle" in result.reasoning


def test_the_reasoning_has_severity_measurement_and_tool_scores() -> None:
    evidence = ExecutorOutput(quality_scores={"Global": {"Noise": ("BRISQUE", 2.6)}})
    found = findings_of({"Noise": (2.0, "Gaussian noise")})
    result = answer_of("Is it noisy?", {}, lambda name: MeasuredImage(found, 3.0), evidence)
    assert result.final_answer == "Yes, moderate Gaussian noise"
    for part in ("moderate", "It measures 2.00", "BRISQUE", "2.60"):
        assert part in result.reasoning


def test_the_value_of_a_named_metric_has_its_own_unit() -> None:
    call = ToolCall(tool="PSNR", region="Global", distortion="Overall", raw=31.4159, unit="dB", calibrated=3.1, ms=1)
    result = answer_of("What is the psnr?", {}, lambda name: None, ExecutorOutput(tool_log=[call]))
    assert result.final_answer == "PSNR 31.42 dB (3.10 of 5)"


def test_a_comparison_without_a_reference_requests_one() -> None:
    result = answered({"query": "Is it worse than the original?", "found": {"Noise": (3.0, "")}})
    assert result.final_answer == UNABLE
    assert "--reference" in result.reasoning


def test_a_tie_names_the_options_that_fit_equally_well() -> None:
    case = {"query": "What is the worst? A. Noise B. Blur C. Haze", "found": {"Noise": (3.0, ""), "Blurs": (3.0, "")}}
    result = answered(case)
    assert result.final_answer == UNABLE
    assert "A" in result.reasoning
    assert "B" in result.reasoning


def test_without_measurements_there_is_no_answer() -> None:
    for _, case in CASES:
        options = parse_options(case["query"])
        result = answer_of(case["query"], options, lambda name: None, ExecutorOutput())
        assert result.final_answer == UNABLE


def test_an_option_that_expresses_doubt_is_ignored() -> None:
    case = {"query": "Is it noisy? A. Yes B. No C. Cannot tell", "found": {"Noise": (3.0, "")}}
    assert answered(case).final_answer == "A"


def test_the_reason_quotes_the_chosen_option() -> None:
    case = {"query": "How noisy is it? Choose from: not at all, slightly, strongly", "found": {"Noise": (3.0, "")}}
    assert answered(case).reasoning.startswith("Of the options, C (strongly) is the nearest")


def test_too_much_is_compared_like_more() -> None:
    case = {"query": "Relative to the original, does it show too much contrast?", "reference": True}
    assert answered(case | {"found": {"Contrast": (3.0, "high contrast")}}).final_answer.startswith("Yes")
    assert answered(case | {"found": {"Contrast": (3.0, "low contrast")}}).final_answer.startswith("No")


@pytest.mark.parametrize("query", ["What is wrong with it?", "What is the main distortion?", "Diagnose the defect."])
def test_a_slight_finding_is_no_answer_if_colors_may_be_wrong(query: str) -> None:
    """Without a reference, the colors may be wrong although no measurement shows it."""
    slight, color = Finding(0.8, "white noise", ""), Finding(0.7, "desaturation", "")
    gray = Finding(0.0, GRAY, "")

    def answer(noise: Finding = NOTHING, colors: Finding = NOTHING) -> str:
        found = {name: {"Noise": noise, "Color distortions": colors}.get(name, NOTHING) for name in DETECTABLE}
        look = {IMAGE: MeasuredImage(found, 4.0, unsure=frozenset({"desaturation"}))}.get
        return answer_of(query, {}, look, ExecutorOutput()).final_answer

    assert answer(slight) == UNABLE
    assert answer(slight, gray) == UNABLE
    assert "it is unknown whether a gray picture is intended" in answer(colors=gray)
    assert answer(colors=color).startswith("Color distortions")
    assert answer(replace(slight, severity=2.0)).startswith("Noise")


@pytest.mark.parametrize(
    ("query", "blurry", "noisy", "both"),
    [
        ("Is it blurry but not noisy?", "Yes", "No", "No"),
        ("Is it noisy, yet sharp?", "No", "Yes", "No"),
        ("Is it blurry without noise?", "Yes", "No", "No"),
        ("Is it free of noise but blurry?", "Yes", "No", "No"),
        ("Is the photo sharp and free of noise?", "No", "No", "No"),
        ("Is the photo both blurry and noisy?", "No", "No", "Yes"),
        ("Is it neither blurry nor noisy?", "No", "No", "No"),
    ],
)
def test_each_of_several_claims_counts(query: str, blurry: str, noisy: str, both: str) -> None:
    assert yes_or_no(query, Blurs=(3.0, "")) == blurry
    assert yes_or_no(query, Noise=(3.0, "")) == noisy
    assert yes_or_no(query, Blurs=(3.0, ""), Noise=(3.0, "")) == both


def test_a_photo_of_poor_quality_is_a_bad_photo() -> None:
    assert answered({"query": "Is it a bad photo?", "found": {}, "level": 2.0}).final_answer.startswith("Yes")
    assert answered({"query": "Is it not a bad photo?", "found": {}, "level": 3.0}).final_answer.startswith("Yes")


def test_a_degree_of_color_is_not_chosen_without_a_reference() -> None:
    options = {"A": "not faded", "B": "faded"}
    found = dict.fromkeys(DETECTABLE, NOTHING)
    for unsure, letter in ((frozenset({"desaturation"}), UNABLE), (frozenset[str](), "A")):
        look = {IMAGE: MeasuredImage(found, 4.0, unsure=unsure)}.get
        assert answer_of("The colors are:", options, look, ExecutorOutput()).final_answer == letter


def halves(name: str) -> MeasuredImage:
    severity = 3.0 if "left" in name else 0.0
    return MeasuredImage({each: Finding(severity, "", "") for each in DETECTABLE}, 3.0)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Which half is sharper, left or right?", "The right half"),
        ("Which half is noisier?", "The left half"),
        ("Which half is less noisy?", "The right half"),
        ("Which half is cleaner, left or right?", "The right half"),
        ("Where is the noise?", "The left side"),
        ("Is the left half noisier than the right half?", "Yes, the left half"),
        ("Is the right half noisier than the left half?", "No, the left half"),
        ("Is the right half sharper than the left half? A. No B. Yes", "B"),
        ("Is the right half not as sharp as the left half?", UNABLE),
        ("Compared to the right half, is the left half noisier?", "Yes, the left half"),
        ("Compared to the right half, is the left half not as clean?", UNABLE),
        ("Is there less noise in the right half than in the left half?", "Yes, the right half"),
        ("Isn't the left half noisier than the right half?", "Yes, the left half"),
        ("Are the colors more weak in the left half than in the right half?", UNABLE),
        ("Is the left half of the road noisier than the right half?", UNABLE),
        ("How much noisier is the left half than the right half?", UNABLE),
        ("Is the left half noisier than the edges?", UNABLE),
        ("Is the left half noisier than normal?", "Yes, severe noise"),
        ("Is only the left half noisy?", "Yes, severe noise"),
        ("Is only the left half noisy? A. No B. Yes", "B"),
        ("Is only the right half noisy?", "No, no visible noise"),
        ("Which half is cleaner?", "The right half"),
        ("Which half is the sharpest?", "The right half"),
        ("Which half is sharper? A. Left B. Right", "B"),
        ("Is the left half noisier and darker than the right half?", UNABLE),
        ("One part of this frame was spoiled by pixel noise. Mark it. A. Left half B. Lower right quarter", "A"),
        ("Which is the sharpest? A. Left half B. Lower right quarter", "B"),
        ("Are the left half and the right half blurry? A. Yes B. No", UNABLE),
    ],
)
def test_which_part(query: str, answer: str) -> None:
    evidence = evidence_of([side for side in ("left half", "right half") if side in query and "Which" not in query])
    assert answer_of(query, parse_options(query), halves, evidence).final_answer.startswith(answer)


def test_a_distortion_of_the_whole_image_is_not_only_in_a_part() -> None:
    def answer(query: str, region: str) -> str:
        everywhere = MeasuredImage({each: Finding(3.0, "", "") for each in DETECTABLE}, 3.0)
        look = {IMAGE: everywhere, region: everywhere, "right half": everywhere}.get
        return answer_of(query, {}, look, evidence_of([region])).final_answer

    assert answer("Is only the left half noisy?", "left half") == "No, also the right half"
    assert answer("Is only the background noisy?", "background") == UNABLE
    assert answer("Is there only noise in the left half?", "left half") == "Yes, severe noise"


@pytest.mark.parametrize(
    ("more", "less", "category", "kind"),
    [
        ("noisier", "less noisy", "Noise", ""),
        ("grainier", "cleaner", "Noise", ""),
        ("more blurry", "less blurry", "Blurs", ""),
        ("less sharp", "sharper", "Blurs", ""),
        ("softer", "in better focus", "Blurs", ""),
        ("less detailed", "clearer", "Blurs", ""),
        ("darker", "less dark", "Brightness change", "underexposure"),
        ("less bright", "brighter", "Brightness change", "underexposure"),
        ("brighter", "less bright", "Brightness change", "overexposure"),
        ("more overexposed", "better exposed", "Brightness change", "overexposure"),
        ("more compressed", "less compressed", "Compression", "JPEG blocking"),
        ("blockier", "less blocky", "Compression", "JPEG blocking"),
        ("hazier", "less washed out", "Contrast", "low contrast"),
        ("lower in contrast", "more contrasty", "Contrast", "low contrast"),
        ("less saturated", "more colorful", "Color distortions", "desaturation"),
        ("more oversaturated", "less saturated", "Color distortions", "oversaturation"),
        ("more tinted", "less tinted", "Color distortions", "color cast"),
        ("more oversharpened", "less oversharpened", "Sharpness", "oversharpening"),
        ("worse", "better", "Noise", ""),
        ("lower in quality", "of better quality", "Noise", ""),
    ],
)
def test_halves_are_compared_by_each_distortion(more: str, less: str, category: str, kind: str) -> None:
    def look(name: str) -> MeasuredImage:
        found = Finding(3.0, kind, "") if "top" in name else NOTHING
        return MeasuredImage({each: found if each == category else NOTHING for each in DETECTABLE}, 3.0)

    def answer(query: str) -> str:
        return answer_of(query, parse_options(query), look, ExecutorOutput()).final_answer

    for words, half, other in ((more, "top", "bottom"), (less, "bottom", "top")):
        assert answer(f"Is the {half} half {words} than the {other} half?") == f"Yes, the {half} half"
        assert answer(f"Is the {other} part {words} than the {half} part?") == f"No, the {half} half"
        assert answer(f"Which half is {words}, top or bottom?") == f"The {half} half"


@pytest.mark.parametrize(
    ("least", "answer"), [(1.0, "In the whole image; no part is worse than the others"), (0.4, UNABLE)]
)
def test_everywhere_means_that_every_part_shows_the_distortion(least: float, answer: str) -> None:
    def look(name: str) -> MeasuredImage:
        severity = least + 0.3 if "left" in name else least
        return MeasuredImage({each: Finding(severity, "", "") for each in DETECTABLE}, 3.0)

    assert answer_of("Which half is noisier?", {}, look, ExecutorOutput()).final_answer == answer


@pytest.mark.parametrize("query", ["Is it noisy? " * 5000, "the sky of the sea of " * 5000 + "is noisy?", "a " * 60000])
def test_a_very_long_question_is_parsed_quickly(query: str) -> None:
    started = perf_counter()
    answered({"query": query, "found": {}})
    assert perf_counter() - started < 10
