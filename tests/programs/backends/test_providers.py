"""The table of providers, and the example configuration of each."""

import ast
import re
from importlib import resources
from pathlib import Path
from typing import get_args

import pytest

from agenticiqa.configs import Rating, load_config
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.providers import PROVIDERS, Provider


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_has_an_example_that_connects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        if provider.key_env:
            monkeypatch.setenv(provider.key_env, "key")
    config = load_config(f"providers/{name}")
    backend = connect(config.summarizer)
    assert backend is not None
    assert backend.lms[0].model.startswith(name)


# A long name of a model is in words with hyphens; a key has a long run of letters and digits, or a known beginning.
KEY = re.compile(r"sk-|AIza|Bearer|[A-Za-z0-9]{24,}")


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("meta-llama/llama-4-scout-17b-16e-instruct", False),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", False),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("gsk_" + "aB3d" * 13, True),
        ("Zx81" * 8, True),
        ("sk-proj-a1", True),
    ],
)
def test_a_key_differs_from_a_long_name_of_a_model(text: str, is_key: bool) -> None:
    assert bool(KEY.search(text)) == is_key


def test_no_example_contains_a_key() -> None:
    """A setting for a key names an environment variable, and nothing looks like a key of a provider."""
    folder = resources.files("agenticiqa.configs") / "providers"
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name != "__pycache__"}
    assert texts.keys() >= {f"{name}.yaml" for name in PROVIDERS}
    for name, text in texts.items():
        assert not KEY.search(text), name
        assert set(re.findall(r"^\s*(\w*key\w*):", text, re.M)) <= {"api_key_env", "fallback_api_key_env"}, name


def test_every_provider_is_in_the_table_of_the_docs() -> None:
    table = (Path(__file__).parents[3] / "docs/models.md").read_text(encoding="utf-8")
    for name, row in PROVIDERS.items():
        line = next((line for line in table.splitlines() if line.startswith(f"| `{name}.")), "")
        assert line, f"docs/models.md has no row of {name}"
        _, _, address, key, *_ = (cell.strip() for cell in line.split("|"))
        assert key == (f"`{row.key_env}`" if row.key_env else "none"), line
        own = "its own" if row.key_env else f"`{row.address}`" if row.address else "none"
        assert address == own, line


def test_the_comments_of_the_configuration_name_every_provider_and_key() -> None:
    text = resources.files("agenticiqa.configs").joinpath("model_backends.yaml").read_text(encoding="utf-8")
    named = [*PROVIDERS, *(row.key_env for row in PROVIDERS.values() if row.key_env)]
    assert [name for name in named if name not in text] == []


def test_the_comments_of_the_configuration_name_every_rating() -> None:
    text = resources.files("agenticiqa.configs").joinpath("model_backends.yaml").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.strip().startswith("rating:"))
    assert [name for name in get_args(Rating) if name not in line] == []


def test_only_the_table_knows_a_provider_by_name() -> None:
    """``vetting`` has the names of lm15's interfaces, of which one is also the name of a provider."""
    root = Path(__file__).parents[3] / "programs"
    files = [*(root / "backends").rglob("*.py"), root / "batch" / "cost.py", root / "stages" / "ask.py"]
    assert len(files) > 20
    for file in files:
        if file.name not in ("providers.py", "vetting.py"):
            texts = {
                node.value for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Constant)
            }
            assert not texts & PROVIDERS.keys(), file


def test_a_hosted_provider_states_its_rule_for_images() -> None:
    with pytest.raises(TypeError, match="the provider with the key MY_KEY must state image_tokens"):
        Provider("MY_KEY", "https://api.example.org/v1")
