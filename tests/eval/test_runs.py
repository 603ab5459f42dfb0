"""The description of a run: a resumed run never mixes two configurations."""

import json
from pathlib import Path

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of


class Sharp(dspy.Module):
    """A program of one predictor."""

    def __init__(self, instruction: str = "Is it sharp?") -> None:
        super().__init__()
        self.ask = dspy.Predict(dspy.Signature("image -> answer", instruction))


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("image,mos\n")
    return path


def test_the_same_run_can_continue_and_its_description_is_json(tmp_path: Path, labels: Path) -> None:
    made = made_with(Sharp(), Config(), sha256_of(labels), {"split": None})
    for _ in range(2):
        pin(tmp_path / "run", made)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["run.json"]
    assert json.loads((tmp_path / "run" / "run.json").read_text()) == made


@pytest.mark.parametrize(
    ("config", "instruction", "more", "message"),
    [
        (Config().with_backend("openai.gpt-4o"), "Is it sharp?", {"split": None}, "config.planner.backend"),
        (Config(max_replan_iterations=0), "Is it sharp?", {"split": None}, "config.max_replan_iterations 2, not 0"),
        (Config(), "Is it blurred?", {"split": None}, "prompts"),
        (Config(), "Is it sharp?", {"split": "dev"}, 'split null, not "dev"'),
        (Config(), "Is it sharp?", {"split": None, "limit": 3}, "limit null, not 3"),
    ],
)
def test_another_run_is_refused_in_one_line(
    tmp_path: Path, labels: Path, config: Config, instruction: str, more: dict[str, object], message: str
) -> None:
    pin(tmp_path / "run", made_with(Sharp(), Config(), sha256_of(labels), {"split": None}))
    with pytest.raises(UserError) as caught:
        pin(tmp_path / "run", made_with(Sharp(instruction), config, sha256_of(labels), more))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_address_of_a_model_is_not_saved_and_does_not_matter(tmp_path: Path, labels: Path) -> None:
    for address in ("http://10.0.0.1:8000/v1", "http://10.0.0.2:9000/v1"):
        config = Config().with_backend("vllm.some-model", address)
        pin(tmp_path / "run", made_with(Sharp(), config, sha256_of(labels), {}))
    assert "10.0.0" not in (tmp_path / "run" / "run.json").read_text()


def test_results_without_a_readable_description_are_refused(tmp_path: Path, labels: Path) -> None:
    made = made_with(Sharp(), Config(), sha256_of(labels), {})
    (tmp_path / "results.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"results but no run\.json"):
        pin(tmp_path, made)
    assert not (tmp_path / "run.json").exists()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        pin(tmp_path, made)
