"""Run the lines of README that tune the prompts with ``dspy.GEPA``, against any OpenAI-compatible server.

::

    space = run_readme_tuning(server.url, tmp_path, monkeypatch)
    (tmp_path / "tuned.json").exists(), space["program"]
"""

from pathlib import Path
from typing import Any

import pytest

from support.snippets import snippets

ROOT = Path(__file__).resolve().parents[2]
BUDGET = "max_metric_calls=60"


def run_readme_tuning(
    address: str, folder: Path, monkeypatch: pytest.MonkeyPatch, budget: int | None = None
) -> dict[str, Any]:
    """Execute the block in ``folder`` and return its names; the environment leads its models to ``address``.

    With ``budget``, GEPA makes fewer calls than in README, for a slow server; the rest is unchanged.
    """
    (block,) = [each for each in snippets(ROOT / "README.md") if "dspy.GEPA(" in each.text]
    assert BUDGET in block.text
    text = block.text if budget is None else block.text.replace(BUDGET, f"max_metric_calls={budget}")
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    space: dict[str, Any] = {}
    exec(compile(text, block.name, "exec"), space)
    return space
