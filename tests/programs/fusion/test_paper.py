"""The program against the four equations of the paper, and the ways to choose the fusion."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config, FusionConfig
from agenticiqa.eval.cli import main
from agenticiqa.eval.runs import made_by
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.errors import UserError, WrongArgument
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.tools import TOOLS, Tool
from support.distortion_levels import AT_LEVEL, scene
from support.engine import scripted_lm
from support.fake_server import by_stage, fake_server, field_of
from support.files import json_lines
from support.loopback import Body
from support.profiles import TYPICAL
from support.rated_album import Rater, make_album
from support.scripted_answers import ALL, SCRIPT, pairs, plan

RATING, PROPERTY = ("LEARNED-IQA", "NIQE", "BRISQUE", "PIQE"), "BLUR-EXTENT"
DISTORTIONS = 3  # that the model detects in each region
LEVEL_NAMES = ("Bad", "Poor", "Fair", "Good", "Excellent")


def equations(tool_scores: list[float], logs: list[float]) -> float:
    """Return the score of the paper, written again from its text; the last sum is normalized."""
    mean = sum(tool_scores) / len(tool_scores)
    closeness = [math.exp(-((mean - level) ** 2)) for level in range(1, 6)]
    alpha = [each / sum(closeness) for each in closeness]
    p = [math.exp(log) / sum(map(math.exp, logs)) for log in logs]
    joint = [a * share for a, share in zip(alpha, p, strict=True)]
    return sum(each * level for each, level in zip(joint, range(1, 6), strict=True)) / sum(joint)


def fixed(name: str, score: float) -> Tool:
    """Return a tool of that name which gives every image this score."""
    changes: dict[str, Any] = {"measure": lambda *_: score, "curve": lambda raw: raw, "smallest": 1}
    return replace(TOOLS[name], **changes, spread=None, image_kind=None)


class Case:
    """A random question with its model: regions, tool scores, log-probabilities and the tools that it uses."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.regions = draw.choice([["Global"], ["Global"], ["vehicle", "background"]])
        self.logs = [draw.uniform(-6, 0) for _ in range(5)]
        self.scores = {name: draw.uniform(1, 5) for name in (*RATING, PROPERTY)}
        self.tools = draw.sample(RATING, draw.randint(1, 4))
        self.named = draw.random() < 0.4
        self.chosen: dict[str, list[str]] = dict.fromkeys(self.regions, self.tools)
        if not self.named:
            self.chosen = {region: draw.sample(RATING, draw.randint(1, 3)) for region in self.regions}

    def reply(self, request: Body) -> Any:
        """Select one tool per distortion."""
        tools = {region: iter(row) for region, row in self.chosen.items()}
        rows = [{"region": r, "distortion": d, "tool": next(tools[r], PROPERTY)} for r, d in pairs(request)]
        return {"selected_tools": rows}

    def assessed(self, settings: dict[str, Any], *, with_reference: bool = False) -> Assessment:
        """Return the program's result for this case, as a user builds the program from a configuration."""
        if with_reference:
            self.regions, self.named = ["Global"], False

        def detect(request: Body) -> Any:
            names = ["Blurs", "Noise", "Compression"]
            return {
                "distortion_set": [
                    {"region": region, "distortions": names} for region in json.loads(field_of(request, "query_scope"))
                ]
            }

        best = LEVEL_NAMES[max(range(5), key=lambda place: self.logs[place])]
        probs = {str(level): log for level, log in enumerate(self.logs, 1)}
        planned = plan(query_scope=self.regions, required_tool=self.tools if self.named else [])
        lm, _ = scripted_lm(
            by_stage(
                {
                    **SCRIPT,
                    "plan": {**planned, "plan": {**ALL, "tool_selection": not self.named}},
                    "detection": detect,
                    "selection": self.reply,
                    "assessment": {"quality_level": best, "quality_probs": probs, "quality_reasoning": "Seen."},
                }
            )
        )
        program = AgenticIQA.from_config({"max_replan_iterations": 0, **settings})
        assert isinstance(program.executor, Executor)
        program.executor.toolbox = {name: fixed(name, score) for name, score in self.scores.items()}
        query = "Rate the quality."
        if self.named:
            query = f"Rate the quality with {' and '.join(self.tools)}."
        if self.regions != ["Global"]:
            query = f"{query[:-1]} of the vehicle and the background."
        pristine = scene(96, 96)
        image, reference = AT_LEVEL["noise"](2, pristine), pristine if with_reference else None
        with dspy.context(lm=lm):
            return program(image, query, reference)


def stages(**executor: Any) -> dict[str, Any]:
    """Return a configuration with DSPy's model in every stage."""
    names = ("planner", "executor", "summarizer", "replan")
    found: dict[str, Any] = {name: {"backend": "dspy"} for name in names}
    found["executor"].update(executor)
    return found


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (20, 80, 140))])
def test_the_program_computes_the_four_equations(first: int) -> None:
    """200 cases: the tools are named or selected by the model; the fusion is the default, or ``paper``."""
    for seed in range(first, first + (60 if first else 20)):
        case = Case(seed)
        settings = stages(select="model") | ({"fusion": "paper"} if seed % 2 else {})
        result = case.assessed(settings)
        if case.named:
            wanted = [case.scores[name] for _ in case.regions for name in case.tools]
        else:
            wanted = [case.scores[name] for region in case.regions for name in case.chosen[region]]
        if seed % 2 and not case.named:  # the paper counts tools of a single property, too
            wanted += [case.scores[PROPERTY] for region in case.regions if len(case.chosen[region]) < DISTORTIONS]
        assert sorted(result.executor_evidence.overall_scores) == sorted(wanted)
        assert result.executor_evidence.overall_mean == pytest.approx(sum(wanted) / len(wanted), abs=1e-12)
        assert result.quality_score == pytest.approx(equations(wanted, case.logs), abs=1e-9)


def test_paper_takes_the_plain_mean_where_the_program_chooses_the_tools() -> None:
    """By default these have weights by their errors."""
    case = Case(0)
    case.scores = {"HaarPSI": 2.0, "DEEP-SIM": 4.0}
    for settings, mean in (({}, 0.9 * 2 + 0.1 * 4), ({"fusion": "paper"}, 3.0)):
        result = case.assessed(stages() | settings, with_reference=True)
        assert result.executor_evidence.overall_tools == ("DEEP-SIM", "HaarPSI"), "chosen by the program"
        assert result.executor_evidence.overall_mean == pytest.approx(mean, abs=0.1 if mean != 3 else 1e-12)
        assert result.quality_score == pytest.approx(
            equations([result.executor_evidence.overall_mean or 0], case.logs), abs=1e-9
        )


@pytest.mark.parametrize("chosen", [[], ["NIQE"]], ids=["alone", "beside NIQE"])
def test_a_selected_tool_of_a_single_property_counts_in_the_paper_or_has_a_note(chosen: list[str]) -> None:
    """Equation 1 is over every executed tool. By default, another tool replaces it, and the result says so."""
    case = Case(0)
    case.regions, case.named, case.chosen = ["Global"], False, {"Global": chosen}
    case.scores = {"LEARNED-IQA": 2.0, "NIQE": 3.0, PROPERTY: 4.0}
    of_paper = case.assessed(stages(select="model") | {"fusion": "paper"})
    wanted = [case.scores[name] for name in (*chosen, PROPERTY)]
    assert sorted(of_paper.executor_evidence.overall_scores) == sorted(wanted)
    assert of_paper.quality_score == pytest.approx(equations(wanted, case.logs), abs=1e-9)
    note = f"{PROPERTY} gave 4. It measures only blurs, so it is not part of the score."
    assert note not in of_paper.executor_evidence.notes

    by_default = case.assessed(stages(select="model"))
    assert by_default.executor_evidence.overall_tools == (*(chosen or ["LEARNED-IQA"]),)
    assert note in by_default.executor_evidence.notes


def test_where_the_selected_tool_fails_the_tools_of_the_program_give_the_score() -> None:
    case = Case(0)
    case.regions, case.named, case.chosen = ["Global"], False, {"Global": ["NIQE"]}
    case.scores = {"LEARNED-IQA": 2.0, "NIQE": math.nan, PROPERTY: 4.0}
    result = case.assessed(stages(select="model"))
    assert [call.tool for call in result.executor_evidence.tool_log if call.error] == ["NIQE"]
    assert (result.executor_evidence.overall_tools, result.executor_evidence.overall_mean) == (("LEARNED-IQA",), 2.0)


def test_the_error_of_a_plain_mean_has_the_plain_weights() -> None:
    case = next(case for case in map(Case, range(99)) if case.named and len(case.tools) > 1)
    evidence = case.assessed(stages()).executor_evidence
    spreads = [call.spread for call in evidence.tool_log if call.weight]
    assert len(set(spreads)) > 1
    squares = [spread**2 for spread in spreads if spread]
    assert evidence.overall_spread == pytest.approx(math.sqrt(sum(squares) / len(squares)))


def test_the_fusion_is_an_argument_a_key_and_an_option(tmp_path: Path) -> None:
    lm, _ = scripted_lm(["{}"])
    plain = ScoreFusion().settings
    assert AgenticIQA(lm=lm).summarizer.fusion.settings == {**plain, "plain_mean": False}
    for given in ("paper", ScoreFusion()):
        program = AgenticIQA(lm=lm, fusion=given)
        assert (program.summarizer.fusion.settings, program.executor.plain_mean) == (plain, "always")
        assert program.summarizer.score.fusion is program.summarizer.fusion
    own = ScoreFusion(2.0)
    assert AgenticIQA(lm=lm, fusion=own).summarizer.fusion is own
    write_fusion_profile(tmp_path / "profile.yaml", TYPICAL)
    fitted = AgenticIQA(lm=lm, fusion=tmp_path / "profile.yaml")
    assert (fitted.summarizer.fusion.profile, fitted.executor.plain_mean) == (TYPICAL, "chosen")
    with pytest.raises(UserError, match="no such file"):
        AgenticIQA(lm=lm, fusion="missing.yaml")
    with pytest.raises(WrongArgument, match="plain_mean='always'"):
        AgenticIQA(executor=fitted.executor, lm=lm, fusion="paper")
    with pytest.raises(WrongArgument, match="the summarizer is given"):
        AgenticIQA(summarizer=program.summarizer, lm=lm, fusion="paper")
    for config in (Config(fusion="paper"), Config(fusion=FusionConfig(eta=1, model_error=0, mean="plain"))):
        made = AgenticIQA.from_config(config.with_backend("dspy"))
        assert (made.summarizer.fusion.settings, made.executor.plain_mean) == (plain, "always")


def test_another_fusion_is_another_run() -> None:
    found = []
    for config in (Config(), Config(fusion="paper"), Config(fusion={"eta": 1, "model_error": 0})):
        asking = config.with_backend("vllm.test", "http://127.0.0.1:9/v1")
        found.append(run_settings(AgenticIQA.from_config(asking), asking)["config"]["fusion"])
    documented = {"eta": 1, "model_error": 0, "mean": "plain", "profile": None}
    assert documented.items() <= found[1].items()
    assert len({json.dumps(each) for each in found}) == 3
    lm, _ = scripted_lm(["{}"])
    programs = [AgenticIQA(lm=lm), AgenticIQA(lm=lm, fusion="paper"), AgenticIQA(lm=lm)]
    programs[2].summarizer.score.strict = True
    assert len({json.dumps(made_by(program, "", {})) for program in programs}) == 3


@pytest.mark.slow
def test_a_large_folder_without_a_profile_ends_with_a_note_and_its_rows_suffice_for_a_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos, scores, profile = tmp_path / "photos", tmp_path / "my scores.jsonl", tmp_path / "profile.yaml"
    qualities = make_album(photos, 50)
    command = f"agenticiqa calibrate fusion '{scores}'"
    note = f"the fusion is not fitted to vllm.test: `{command}` needs no labels"
    with fake_server(Rater(photos, qualities)) as server:
        model = ["--backend", "vllm.test", "--api-base", server.url]
        assert main(["assess", str(photos), *model, "--mode", "fast", "--jsonl", str(scores)]) == 0
        assert capsys.readouterr().err.splitlines().count(note) == 1
        few = [str(photos / name) for name in sorted(qualities)[:49]]
        by_hand = ([str(photos), "--fusion", "paper"], few)
        for number, names in enumerate(by_hand):
            out = str(tmp_path / f"{number}.jsonl")
            assert main(["assess", *names, *model, "--mode", "fast", "--jsonl", out]) == 0
            assert "not fitted" not in capsys.readouterr().err
    requests = len(server.requests)
    assert main(["calibrate", "fusion", str(scores), "--out", str(profile)]) == 0, "the server has stopped"
    assert "fitted to 50 images, without MOS" in capsys.readouterr().out
    assert len(server.requests) == requests
    assert {row["fusion"]["third_tools"].keys() >= {"NIQE"} for row in json_lines(scores)} == {True}
