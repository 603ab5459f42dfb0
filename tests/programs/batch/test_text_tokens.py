"""How many tokens a text is, beside what a tokenizer says."""

import importlib.util
from pathlib import Path

import pytest

from agenticiqa.programs.batch.text_tokens import text_tokens
from agenticiqa.programs.tools import toolbox
from support.golden_requests import all_signatures

GOLDEN = Path(__file__).parents[1] / "stages" / "golden"  # the prompts of all stages
O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"  # GPT-4o's vocabulary, in the file that tiktoken keeps it in


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("It is", 2), ("compression", 2), ("0.8912", 4), ('{"a": [1]}', 6), ("画质", 2)]
)
def test_words_figures_and_marks_are_counted_as_tokens(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_the_prompts_are_counted_as_a_tokenizer_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    package = importlib.util.find_spec("litellm")
    folder = Path(package.origin or "").parent / "litellm_core_utils" / "tokenizers" if package else Path()
    if not (folder / O200K).is_file():
        pytest.skip("no tokenizer at hand: litellm, which ships one, is not installed")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    encode = pytest.importorskip("tiktoken").get_encoding("o200k_base").encode
    prompts = {path.stem: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.txt")}
    assert len(prompts) >= len(all_signatures())
    counts = {name: (text_tokens(text), len(encode(text))) for name, text in prompts.items()}
    assert {name: both for name, both in counts.items() if abs(both[0] - both[1]) > max(5, 0.07 * both[1])} == {}
    tools = "\n".join(card.line() for card in toolbox().values())
    assert 0.85 < text_tokens(tools) / len(encode(tools)) < 1.05
