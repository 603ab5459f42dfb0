"""The same file has the same score in Python and on the command line, before and after anything is known of the model.

``pytest tests/programs/test_same_digits.py -s`` prints the scores.
"""

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from PIL import Image
from PIL.ImageFilter import GaussianBlur

from agenticiqa.configs import STAGES, Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends import capabilities
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.cli.main import main
from support.distortion_levels import scene
from support.fake_server import Server, fake_server, images_of, stage_of
from support.loopback import Body, Reply, error_reply, spoken
from support.scripted_answers import ASSESSMENT, SCRIPT

pytestmark = pytest.mark.slow

IMAGES = 8
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return 8 real photos if available, else 8 scenes, each more blurred than the one before."""
    folder = tmp_path_factory.mktemp("photos")
    real = sorted((ROOT.parent / "shared" / "data" / "live_r2" / "images").glob("*.webp"))
    for place in range(IMAGES):
        if len(real) >= IMAGES:
            shutil.copy(real[place * len(real) // IMAGES], folder / f"{place:02}.webp")
        else:
            Image.fromarray(scene()).filter(GaussianBlur(0.5 * place)).save(folder / f"{place:02}.png")
    return sorted(folder.iterdir())


def answer(body: Body) -> Reply | str:
    """Give each image its own level, another one for another form of request, and other tokens than text."""
    asked = str((body.get("response_format", {}).get("type"), body.get("top_logprobs"))).encode()
    seen = int(hashlib.sha256(images_of(body)[0][1] + asked).hexdigest(), 16) if images_of(body) else 0
    if stage_of(body) != "assessment":
        given = SCRIPT[stage_of(body)]
        given = given(body) if callable(given) else given
        return json.dumps({stage_of(body): given})
    levels = ("Bad", "Poor", "Fair", "Good", "Excellent")
    level = levels[seen % 5]
    logs = {str(number): -0.4 if name == level else -2.5 for number, name in enumerate(levels, 1)}
    written = json.dumps({"assessment": {**ASSESSMENT, "quality_level": level, "quality_probs": logs}})
    shares = {"Bad": -3.0, "Poor": -3.3, "Fair": -3.1, "Good": -3.4, "Excellent": -3.2, level: -0.3 - seen % 97 / 400}
    return spoken(written, {level: shares}) if body.get("logprobs") else Reply(written)


Script = Callable[[Body], Reply | str]


def refusing(*names: str) -> Script:
    """A server that refuses requests with one of these forms of JSON, or with log-probabilities."""

    def script(body: Body) -> Reply | str:
        has = {body.get("response_format", {}).get("type"), "logprobs" if body.get("logprobs") else None} & {*names}
        return error_reply(400, {"error": {"message": f"no {has.pop()} here"}}) if has else answer(body)

    return script


class Row(NamedTuple):
    """The figures of a result: the score, and those of the model."""

    score: float
    source: str
    mass: float | None
    probabilities: dict[str, float]
    reasoning: str
    capabilities: dict[str, Any]
    answered_by: dict[str, list[str]]


def row_of(row: dict[str, Any]) -> Row:
    probabilities = row["quality_score"], row["probability_source"], row["probability_mass"], row["quality_probs"]
    return Row(*probabilities, row["quality_reasoning"], row["capabilities"], row["answered_by"])


Scores = dict[str, Row]


def in_python(config: Config, photos: list[Path]) -> Scores:
    program = AgenticIQA.from_config(config)
    return {path.name: row_of(program(path).to_dict()) for path in photos}


def in_an_event_loop(config: Config, photos: list[Path]) -> Scores:
    async def assessed() -> list[Any]:
        program = AgenticIQA.from_config(config)
        return list(await asyncio.gather(*map(program.acall, photos)))

    results = asyncio.run(assessed())
    return {path.name: row_of(result.to_dict()) for path, result in zip(photos, results, strict=True)}


def in_threads(config: Config, photos: list[Path]) -> Scores:
    program = AgenticIQA.from_config(config)
    return {Path(job.name).name: row_of(result.to_dict()) for job, result in assess_many(program, photos, workers=4)}


def on_the_command_line(config: Config, photos: list[Path]) -> Scores:
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "mine.yaml"), Path(folder, "out.jsonl")
        file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)))
        assert main(["assess", *map(str, photos), "--config", str(file), "--jsonl", str(out)]) == 0
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    return {Path(row["image"]).name: row_of(row) for row in rows}


def config_for(server: Server) -> Config:
    stage = {"backend": "vllm.test", "api_base": server.url, "max_retries": 0, "timeout": 20.0}
    return Config.model_validate({**dict.fromkeys(STAGES, stage), "cache": False})


def scores_by_run(
    ways: Sequence[Callable[[Config, list[Path]], Scores]],
    photos: list[Path],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Scores]:
    """Return the scores of each way twice: without known features of the model, then with those found."""
    runs: dict[str, Scores] = {}
    with fake_server(script) as server:
        for way in ways:
            monkeypatch.setattr(capabilities, "_known", {})  # as another process
            before = len(server.requests)
            runs[f"{way.__name__}, cold"] = way(config_for(server), photos)
            asked, before = len(server.requests) - before, len(server.requests)
            runs[f"{way.__name__}, warm"] = way(config_for(server), photos)
            refused = script is not answer
            assert (len(server.requests) - before < asked) is refused, "what was refused is not asked for again"
    return runs


def test_eight_images_have_the_same_digits_in_python_and_on_the_command_line_cold_and_warm(
    photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = scores_by_run((in_python, on_the_command_line), photos, refusing("json_schema"), monkeypatch)
    first = runs["in_python, cold"]
    assert len(first) == IMAGES
    assert len({row.score for row in first.values()}) > IMAGES // 2
    assert {row.source for row in first.values()} == {"logprobs"}
    for name in first:
        print(name, *(f"{run}: {rows[name].score!r}" for run, rows in runs.items()), sep="  ")
    for run, rows in runs.items():
        assert rows == first, run
    print(f"{len(runs)} runs, {len(first)} rows each: all equal in {', '.join(Row._fields)}")


@pytest.mark.parametrize(
    ("script", "form", "source"),
    [
        (answer, "json_schema", "logprobs"),
        (refusing("json_schema"), "json_object", "logprobs"),
        (refusing("logprobs"), "json_schema", "quality_probs"),
        (refusing("json_schema", "json_object", "logprobs"), "off", "quality_probs"),
    ],
    ids=["takes all", "refuses schemas", "refuses log-probabilities", "refuses all"],
)
def test_results_do_not_depend_on_the_order_of_callers(
    photos: list[Path], script: Script, form: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = (in_python, in_an_event_loop, in_threads, on_the_command_line)
    runs = scores_by_run(ways, photos[:2], script, monkeypatch)
    first = runs["in_python, cold"]
    for run, rows in runs.items():
        assert rows == first, run
    assert {row.source for row in first.values()} == {source}
    for row in first.values():
        assert row.capabilities["vllm/test"]["structured_outputs"] == [form]
