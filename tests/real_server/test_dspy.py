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
    program = AgenticIQA(
        lm=dspy.LM("openai/smollm2", api_base=server.url, api_key="none", cache=False), max_replan_iterations=0
    )
    result = program(EXAMPLES / "chelsea.webp")  # llama.cpp refuses WebP
    assert 1 <= result.quality_score <= 5
    assert result.probability_mass is not None, "log-probabilities are requested and read"
    (features,) = result.capabilities.values()
    assert (features["structured_outputs"], features["logprobs"]) == (["json_schema"], 20)


def test_the_lines_of_readme_tune_and_save(
    server: LlamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README's block for GEPA, with the model of the server, fewer examples and fewer ratings."""
    (block,) = (each for each in snippets(ROOT / "README.md") if each.kind == "python" and "dspy.GEPA(" in each.text)
    local = f'dspy.LM("openai/smollm2", api_base="{server.url}", api_key="none")'
    lines, models = re.subn(r'dspy\.LM\("openai/[^"]+"[^)]*\)', lambda _: local, block.text)
    assert models == 2
    lines, calls = re.subn(r"max_metric_calls=\d+", "max_metric_calls=4", lines)
    lines, parts = re.subn(r"trainset=(\w+)\[:10\], valset=\1\[10:\]", r"trainset=\1[:1], valset=\1[1:2]", lines)
    assert (calls, parts) == (1, 1), "README's lines have changed: adapt this test"
    lines = lines.replace('"examples/', f'"{EXAMPLES}/')
    monkeypatch.chdir(tmp_path)
    exec(compile("from agenticiqa import AgenticIQA\n" + lines, "README.md", "exec"), {})
    saved = json.loads((tmp_path / "tuned.json").read_text())
    assert "summarizer.score.ask.predict" in saved
