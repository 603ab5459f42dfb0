"""What a server accepts and refuses: the probe, schemas, log-probabilities, formats, keys, images and the context."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import dspy
import pytest
from annotated_types import Len
from PIL import Image
from pydantic import BaseModel

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.ask import CheckedPredict, Reply
from agenticiqa.signatures.answers.tokens import tokens_of
from support.llama_server import CONTEXT, MODEL, ONE_REQUEST, SHARP, LlamaServer

pytestmark = pytest.mark.real_server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PHOTO = EXAMPLES / "coffee_jpeg.jpg"


Mineral = Literal["quartz", "feldspar", "mica"]
MINERALS = get_args(Mineral)


class Guess(BaseModel):
    """One of three words that the model would not choose by itself."""

    word: Mineral


class NameMineral(dspy.Signature):
    """Name the color of the image."""

    image: dspy.Image = dspy.InputField()
    guess: Guess = dspy.OutputField()


class Numbers(BaseModel):
    """More numbers than fit into a small context."""

    numbers: Annotated[list[int], Len(200, 200)]


class CountUp(dspy.Signature):
    """Count from 1 to 200."""

    numbers: Numbers = dspy.OutputField()


def stage(server: LlamaServer, **keys: Any) -> StageConfig:
    return StageConfig(backend=MODEL, api_base=server.url, **keys)


def name_mineral(server: LlamaServer, **keys: Any) -> Reply[Guess]:
    """Ask one small question, with an answer of a few tokens."""
    backend = connect(stage(server, **keys), cache=False)
    ask: CheckedPredict[Guess] = CheckedPredict(
        NameMineral, stage="test", backend=backend, attempts=1, reads_tokens=True
    )
    return ask({"image": load(Image.new("RGB", (32, 32), "grey"))})


def test_the_probe_reports_the_features_the_context_and_a_rating(server: LlamaServer, run: Any) -> None:
    ran = run("backends", "--backend", MODEL, "--api-base", server.url, "--probe", "--json")
    assert ran.status == 0
    (row,) = json.loads(ran.out)["backends"]
    assert (row["structured_outputs"], row["logprobs"], row["formats"]) == ("JSON schema", 20, ["jpeg", "png"])
    probe = row["probe"]
    assert probe["is_usable"]
    assert probe["logprobs"]
    assert probe["input_tokens"] > 0
    assert probe["output_tokens"] > 0
    assert probe["context"]["size"] == CONTEXT
    rating = probe["rating"]
    assert rating["is_valid"], rating
    assert min(rating["input_tokens"], rating["output_tokens"], rating["seconds"]) > 0
    assert 0 < rating["mass"] <= 1


def test_the_grammar_of_a_schema_holds_and_tokens_come_with_log_probabilities(server: LlamaServer) -> None:
    with recorded_usage() as usage:
        reply = name_mineral(server)
    assert reply.answer.word in MINERALS
    assert tokens_of(reply.logprobs)
    (features,) = usage.capabilities().values()
    assert (features["structured_outputs"], features["logprobs"]) == (["json_schema"], 20)
    assert usage.stages["test"].calls == 1


@pytest.mark.parametrize("provider", ["llamacpp", "openai"])
def test_a_webp_file_is_sent_in_a_format_that_the_server_decodes(
    provider: str, server: LlamaServer, run: Any, configure: Any, tmp_path: Path
) -> None:
    """The server refuses WebP. Its provider's row says so; of a server with OpenAI's interface its error does."""
    asked = configure(server, backend=f"{provider}.smollm2", attempts=1, **ONE_REQUEST)
    rows = tmp_path / "rows.jsonl"
    ran = run("assess", EXAMPLES / "chelsea.webp", "--query", SHARP, "--config", asked, "--jsonl", rows)
    assert "Failed to load image" not in ran.err
    assert json.loads(rows.read_text())["usage_by_stage"]["answering"]["output_tokens"] > 0


def test_a_key_that_is_missing_wrong_or_right(start: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = start(key="sk-right")
    asked = ("backends", "--backend", MODEL, "--api-base", guarded.url, "--probe")
    missing = run(*asked)
    assert missing.status == 1
    assert "Invalid API Key" in missing.err
    monkeypatch.setenv("THEIR_KEY", "sk-wrong")
    wrong = run(*asked, "--api-key-env", "THEIR_KEY")
    assert wrong.status == 1
    assert "Invalid API Key" in wrong.err
    assert "sk-wrong" not in wrong.out + wrong.err
    monkeypatch.setenv("THEIR_KEY", "sk-right")
    assert name_mineral(guarded, api_key_env="THEIR_KEY").answer.word in MINERALS


def test_a_server_without_image_support(start: Any, run: Any, tmp_path: Path) -> None:
    blind = start(sees_images=False)
    model = ("--backend", MODEL, "--api-base", blind.url)
    probe = run("backends", *model, "--probe")
    assert probe.status == 1
    assert "image input is not supported" in probe.err
    assert "mmproj" in probe.err
    rows = tmp_path / "rows.jsonl"
    assessed = run("assess", PHOTO, "--mode", "fast", *model, "--jsonl", rows)
    assert assessed.status == 1
    assert "image input is not supported" in assessed.err
    assert not rows.exists() or not rows.read_text()


def test_a_full_context_is_named_with_its_size_and_the_option_of_the_server(start: Any, run: Any) -> None:
    """Slots divide the context: two of them have 256 tokens each."""
    small = start(context=512, slots=2)
    prompt_too_long = run("assess", PHOTO, "--mode", "fast", "--backend", MODEL, "--api-base", small.url)
    assert prompt_too_long.status == 1
    assert "context" in prompt_too_long.err
    assert "256" in prompt_too_long.err
    assert "-c" in prompt_too_long.err
    assert "max_tokens" not in prompt_too_long.err

    counting: CheckedPredict[Numbers] = CheckedPredict(
        CountUp, stage="test", backend=connect(stage(small), cache=False), attempts=3
    )
    with recorded_usage() as usage, pytest.raises(dspy.ContextWindowExceededError) as cut_off:
        counting({})
    assert "cut off" in str(cut_off.value)
    assert "256" in str(cut_off.value)
    assert "-c" in str(cut_off.value)
    assert usage.stages["test"].calls == 1, "a longer prompt cannot fit"
