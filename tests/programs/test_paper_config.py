"""The shipped configuration ``paper``: the paper's protocol with any model, and its settings alone."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import dspy
import pytest
from PIL import Image
from pydantic import ValidationError

from agenticiqa.configs import Config, load_config
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import load
from agenticiqa.programs.offline.stages import RulePlanner
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.summarizer import ChosenLetter
from agenticiqa.signatures.types import PlannerOutput
from support.distortion_levels import AT_LEVEL, scene
from support.engine import scripted_backend
from support.fake_server import Server, by_stage, fake_server, text_of
from support.files import json_lines
from support.loopback import Body, Reply, spoken
from support.scripted_answers import ALL, ASSESSMENT, NONE, RATE, SCRIPT, pairs, plan

CHOICE = {"final_answer": "C", "quality_reasoning": "Soft edges everywhere."}
LOGS = {"A": -5.07, "B": -1.87, "C": -0.37, "D": -2.07, "E": -4.07}  # probabilities that sum to 1
TOOLS = {"Blurs": "GMSD", "Noise": "SSIM"}


def assess(request: Body) -> Reply:
    """Choose a letter with its log-probabilities if they are requested, else write probabilities."""
    if request.get("logprobs"):
        return spoken(json.dumps({"assessment": CHOICE}), {"C": LOGS})
    return Reply(json.dumps({"assessment": ASSESSMENT}))


def detect(request: Body) -> Any:
    return {"distortion_set": [{"region": "Global", "distortions": list(TOOLS)}]}


def select(request: Body) -> Any:
    return {"selected_tools": [{"region": r, "distortion": d, "tool": TOOLS[d]} for r, d in pairs(request)]}


def select_niqe(request: Body) -> Any:
    return {"selected_tools": [{"region": r, "distortion": d, "tool": "NIQE"} for r, d in pairs(request)]}


ANSWERS = {**SCRIPT, "detection": detect, "selection": select, "assessment": assess}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a noisy image and its reference."""
    for name, pixels in (("noisy.png", AT_LEVEL["noise"](2, scene())), ("pristine.png", scene())):
        Image.fromarray(pixels).save(tmp_path / name)
    return tmp_path / "noisy.png", tmp_path / "pristine.png"


def own_model(server: Server) -> dspy.LM:
    return dspy.LM("openai/given", api_base=server.url, api_key="none", cache=False, num_retries=0)


def schema_of(server: Server, stage: str, field: str) -> dict[str, Any]:
    """Return the properties that the request of a stage asks for in its output field."""
    form = server.of(stage)[0]["response_format"]["json_schema"]["schema"]
    properties: dict[str, Any] = form["properties"][field]["properties"]
    return properties


def test_the_models_plan_tools_and_letters_give_the_score_of_equations_1_to_4(pair: tuple[Path, Path]) -> None:
    image, reference = pair
    with fake_server(by_stage(ANSWERS)) as server, dspy.context(lm=own_model(server)):
        result = AgenticIQA.from_config("paper")(image, reference=reference)
    assert sorted(server.stages()) == ["analysis", "assessment", "detection", "plan", "selection"]
    assert set(schema_of(server, "plan", "planner_output")) == set(PlannerOutput.model_fields)
    assert schema_of(server, "assessment", "assessment")["final_answer"]["enum"] == [*LOGS]
    assert [body["temperature"] for body in server.requests] == [0] * 5
    assert [body.get("top_p") for body in server.requests] == [0.1, *[None] * 4]
    assert [body["max_completion_tokens"] for body in server.requests] == [2048] * 4 + [512]

    scores = {call.tool: call.calibrated for call in result.executor_evidence.tool_log}
    assert set(scores) == {"GMSD", "SSIM"}, "and no tool for comparison"
    assert result.plan.reference_mode == "No-Reference", "what the model wrote, although it is wrong"
    shares = [math.exp(LOGS[letter]) for letter in "EDCBA"]
    assert [*(result.quality_probs or {}).values()] == pytest.approx([share / sum(shares) for share in shares])
    mean = sum(score or 0 for score in scores.values()) / 2
    joint = [math.exp(-((mean - level) ** 2)) * share for level, share in enumerate(shares, 1)]
    equations = sum(level * each for level, each in enumerate(joint, 1)) / sum(joint)
    assert result.quality_score == pytest.approx(equations, abs=1e-9)
    assert result.probability_source == "logprobs"


def test_a_server_without_log_probabilities_is_asked_for_quality_probs(pair: tuple[Path, Path]) -> None:
    silent = {**ANSWERS, "assessment": ASSESSMENT}
    with fake_server(by_stage(silent)) as server, dspy.context(lm=own_model(server)):
        result = AgenticIQA.from_config("paper")(pair[0])
    asked = server.of("assessment")
    assert ["quality_probs" in text_of(body) for body in asked] == [False, True]
    assert result.probability_source == "quality_probs"


FORMS: list[dict[str, Any]] = [
    {"final_answer": "B"},
    {"final_answer": "b"},
    {"final_answer": "B. Good"},
    {"final_answer": "Good"},
    {"quality_level": "B"},
    {"quality_level": None, "final_answer": "B"},
    {"final_answer": "B", "score": 4},
]


@pytest.mark.parametrize("chosen", FORMS, ids=json.dumps)
def test_a_letter_is_read_in_the_forms_of_models(chosen: dict[str, Any], pair: tuple[Path, Path]) -> None:
    """ "B" is Good and not the beginning of Bad."""
    word = next(str(value) for value in chosen.values() if value).partition(".")[0]
    tokens = {word: {word: -0.1, "D": -3.0}}
    said = spoken(json.dumps({"assessment": {**chosen, "quality_reasoning": "Seen."}}), tokens)
    answers = {**ANSWERS, "selection": select_niqe, "assessment": said}
    with fake_server(by_stage(answers)) as server, dspy.context(lm=own_model(server)):
        result = AgenticIQA.from_config("paper")(pair[0])
    assert max(result.quality_probs or {}, key=lambda level: (result.quality_probs or {})[level]) == "4"
    assert result.rejected_answers == {}


def test_a_letter_may_stand_under_the_keys_of_other_forms() -> None:
    for key, said in {"rating": "B", "answer": 4, "quality_level": "Good"}.items():
        assert ChosenLetter.model_validate({key: said, "quality_reasoning": "Seen."}).final_answer == "B"


@pytest.mark.parametrize(
    "other", [{"final_answer": "A", "score": 1.0}, {"final_answer": "A", "quality_level": "Bad"}, {"final_answer": "F"}]
)
def test_a_letter_that_contradicts_the_answer_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChosenLetter.model_validate({**other, "quality_reasoning": "Seen."})


def planner(answer: Any, **options: Any) -> Planner:
    backend, _ = scripted_backend(by_stage({"plan": answer}))
    return Planner(toolbox(), backend=backend, rules="check", **options)


def test_rules_that_check_keep_the_plan_and_log_what_they_would_set(caplog: pytest.LogCaptureFixture) -> None:
    image = load(Image.fromarray(scene()))
    written = plan("face", flags={**NONE, "tool_execution": True}, required_tool=["NIQE"])
    with caplog.at_level(logging.INFO):
        planned = planner(written)(image=image, query=RATE, reference=None, feedback="")
    made = planned.plan
    assert (made.query_scope, made.tools, made.plan.model_dump()) == (["face"], ["NIQE"], written["plan"])
    assert "the rules would have set required_tool to None, plan to" in caplog.text


def test_a_plan_that_stays_wrong_is_refused_and_not_corrected() -> None:
    """Without a plan of the model, the rules plan if the configuration says so."""
    asked: dict[str, Any] = {"image": load(Image.fromarray(scene())), "query": RATE, "reference": None, "feedback": ""}
    wrong = {
        "it must be one of: LEARNED-IQA, NIQE": plan(required_tool=["NIQUE"]),
        "no tool is named and tool_selection is false": plan(flags={**NONE, "tool_execution": True}),
        "'face', which is not in query_scope": plan(distortions=[{"region": "face", "distortions": ["Blurs"]}]),
    }
    for why, answer in wrong.items():
        with pytest.raises(Unanswered, match=why):
            planner(answer)(**asked)
        assert planner(answer, fallback=RulePlanner(toolbox()))(**asked).plan.plan.model_dump() == ALL


@pytest.mark.parametrize("missing", ["reference_mode", "plan"])
def test_a_plan_without_one_of_the_seven_keys_is_refused(missing: str) -> None:
    image = load(Image.fromarray(scene()))
    short = {key: value for key, value in plan().items() if key != missing}
    with pytest.raises(Unanswered, match=missing):
        planner(short)(image=image, query=RATE, reference=None, feedback="")


def test_the_flag_may_have_the_name_of_the_paper() -> None:
    image = load(Image.fromarray(scene()))
    flags = {("tool_execute" if name == "tool_execution" else name): True for name in ALL}
    made = planner(plan(flags=flags))(image=image, query=RATE, reference=None, feedback="")
    assert made.plan.plan.tool_execution


@pytest.mark.slow
def test_in_a_shell_the_model_is_named_and_both_runs_stand_in_one_table(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, _ = pair
    assert main(["assess", str(image), "--config", "paper"]) == 2
    assert "name a model, such as --backend openai.gpt-4o" in capsys.readouterr().err
    labels = tmp_path / "labels.csv"
    labels.write_text("image,mos\n" + "".join(f"{path.name},{mos}\n" for path, mos in zip(pair, (2, 4), strict=True)))
    with fake_server(by_stage({**ANSWERS, "selection": select_niqe})) as server:
        asked = ["--backend", "vllm.test", "--api-base", server.url]
        assert main(["evaluate", str(labels), "--config", "paper", *asked, "--out", str(tmp_path / "paper")]) == 0
        assert main(["evaluate", str(labels), *asked, "--out", str(tmp_path / "default")]) == 0
    assert main(["compare", str(tmp_path / "paper"), str(tmp_path / "default"), "--markdown", "-"]) == 0
    assert "paper - default" in capsys.readouterr().out
    rows = json_lines(tmp_path / "paper" / "results.jsonl")
    assert [row["probability_source"] for row in rows if "probability_source" in row] == ["logprobs"] * 2


def test_each_setting_is_a_key_of_its_own() -> None:
    found = load_config("paper")
    assert (found.planner.rules, found.executor.select, found.summarizer.rating) == ("check", "model", "letter")
    assert (found.fusion.mean, found.tool_curves, found.max_replan_iterations) == ("plain", "table5", 2)
    usual = Config()
    assert (usual.planner.rules, usual.executor.select, usual.summarizer.rating) == ("fill", "table", "level")
