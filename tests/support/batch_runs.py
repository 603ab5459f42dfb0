"""Run ``assess`` with and without ``--batch`` against one provider, and read the results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agenticiqa.configs import STAGES
from agenticiqa.programs.cli.main import main
from support.fake_server import Answer, by_stage
from support.full_run import SCRIPT
from support.loopback import Body, Reply
from support.scripted_answers import analyse, detect, plan

KEY_VARIABLE = "KEY_OF_THE_TEST"
ROW = ("image", "final_answer", "quality_score", "quality_level", "quality_reasoning", "plan", "summarizer_result")
ROW = (*ROW, "rejected_answers", "replan_history", "iteration_count", "score_interval")


def always(name: str, answers: list[Any]) -> Any:
    """Return the answer by the attempt number in the request, so that equal requests get equal answers."""

    def answer(request: Body) -> Any:
        text = json.dumps(request)
        again = text.count("Your last answer was rejected") + text.count("why_not_sufficient")
        found = answers[min(again, len(answers) - 1)]
        return found(request) if callable(found) else found

    return answer


def script(**changes: Any) -> Any:
    """Return answers that depend only on the request: a rejected analysis, and the answers of the full run."""
    bad = Reply("I would call it severe.")
    answers: dict[str, Answer | list[Any]] = {
        **SCRIPT,
        "plan": plan(),
        "detection": detect,
        "analysis": always("analysis", [bad, analyse("slight")]),
        "decision": {"need_replan": False, "replan_reason": ""},
        **changes,
    }
    return by_stage(answers)


def configuration(folder: Path, url: str, backend: str = "openai.m", **changes: Any) -> Path:
    """Return a configuration in which every stage asks this server, with a price."""
    stage = {"backend": backend, "api_base": url, "api_key_env": KEY_VARIABLE, "price": {"input": 1.0, "output": 2.0}}
    path = folder / "asking.yaml"
    path.write_text(yaml.safe_dump({name: {**stage, **changes} for name in STAGES}))
    return path


def assess(images: Path, config: Path, out: Path, *more: str) -> int:
    """Run the command."""
    return main(["assess", str(images), "--config", str(config), "--jsonl", str(out), "-q", *more])


def rows(out: Path) -> dict[str, Mapping[str, Any]]:
    """Return the last result of each image, by name, without times."""
    read = [json.loads(line) for line in out.read_text().splitlines()]
    return {Path(row["image"]).name: {key: row.get(key) for key in ROW} for row in read}


def usage(out: Path) -> dict[str, int]:
    """Return the usage summed over all rows."""
    read = [json.loads(line) for line in out.read_text().splitlines()]
    stages = [stage for row in read for stage in row["usage_by_stage"].values()]
    return {key: sum(stage[key] for stage in stages) for key in ("calls", "cached", "input_tokens", "output_tokens")}
