"""DSPy's own model on a local server: it is asked with a schema and for log-probabilities, and GEPA tunes prompts."""

import json
import re
from pathlib import Path

import dspy
import pytest

from agenticiqa import AgenticIQA
from support.llama_server import LlamaServer
from support.snippets import snippets

pytestmark = pytest.mark.real_server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def test_a_dspy_lm_is_asked_with_all_features_of_its_server(server: LlamaServer) -> None:
    program = AgenticIQA.from_config({"summarizer": {"backend": "dspy"}, "attempts": 1})  # the model only rates
    with dspy.context(lm=dspy.LM("openai/smollm2", api_base=server.url, api_key="none", cache=False)):
        result = program(EXAMPLES / "chelsea.webp")  # llama.cpp refuses WebP
    assert 1 <= result.quality_score <= 5
    assert result.rejected_answers == {}
    assert 0 < result.probability_mass <= 1, "log-probabilities are requested and read"
    (features,) = result.capabilities.values()
    assert (features["structured_outputs"], features["logprobs"]) == (["json_schema"], 20)


@pytest.mark.slow  # five minutes and more, with four ratings of all stages and two reflections
def test_the_lines_of_readme_tune_and_save(
    server: LlamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README's block for GEPA, with the model of the server, fewer examples, fewer ratings and short reflections."""
    (block,) = (each for each in snippets(ROOT / "README.md") if each.kind == "python" and "dspy.GEPA(" in each.text)
    model = f'dspy.LM("openai/smollm2", api_base="{server.url}", api_key="none", cache=False'
    lines = block.text
    for shown, here in (
        (r'\(lm=dspy\.LM\("[^"]+"\)', f"(lm={model})"),
        (r'reflection_lm=dspy\.LM\("[^"]+"\)', f"reflection_lm={model}, max_tokens=200)"),
        (r"max_metric_calls=\d+", "max_metric_calls=4"),
        (r"examples\[:10\], valset=examples\[10:\]", "examples[:1], valset=examples[1:2]"),
        (r'"examples/labels\.csv"', repr(str(EXAMPLES / "labels.csv"))),
    ):
        lines, found = re.subn(shown, here, lines)
        assert found == 1, f"README's lines have changed, so adapt this test to them: {shown}"
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "README.md", "exec"), {})
    assert "summarizer.score.ask.predict" in json.loads((tmp_path / "tuned.json").read_text())
