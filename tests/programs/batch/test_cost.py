"""The estimated cost of a run equals the requests that the run then sends, and changes with its settings."""

import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agenticiqa.configs import Config, ExecutorConfig, PlannerConfig, Price, StageConfig, SummarizerConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.models import image_tokens
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.cost import Estimate, StageEstimate, estimate, text_tokens
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import OfImage
from agenticiqa.programs.images import UndecodedImage
from agenticiqa.programs.tools import toolbox
from support.distortion_levels import scene
from support.fake_server import Server, by_stage, fake_server, field_of, text_of
from support.golden_requests import all_signatures
from support.loopback import Body, Reply, spoken
from support.scripted_answers import ALL, locate, pairs, plan, select

GOLDEN = Path(__file__).parents[1] / "stages" / "golden"  # the prompts of all stages
O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"  # GPT-4o's vocabulary, in the file that tiktoken keeps it in
RATE = "Rate the perceptual quality of this snapshot."  # unlike the default question, it is planned by the model
OTHER = "What emotion does this photo convey?"
REGION = "Is the car sharp? A. Yes B. No"
PLACE = "Is the left half noisy?"
# The output field of each stage, by which the loopback server tells who asks.
FIELDS = {
    "planner": "plan",
    "localization": "location",
    "distortion_detection": "detection",
    "distortion_analysis": "analysis",
    "tool_selection": "selection",
    "scoring": "assessment",
    "answering": "answer",
}
SEEING = {"planner", "distortion_detection", "distortion_analysis", "scoring"}


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene as a PNG."""
    path = tmp_path_factory.mktemp("images") / "photo.png"
    Image.fromarray(scene()).save(path)
    return path


@pytest.fixture
def pristine(photo: Path) -> Path:
    """Return the scene with one different pixel, because no model scores two identical images."""
    path, pixels = photo.with_name("pristine.png"), scene()
    pixels[0, 0] ^= 1
    Image.fromarray(pixels).save(path)
    return path


def asking(backend: str = "vllm.test", price: Price | None = None, **changes: Any) -> Config:
    """Return a configuration with every stage on one backend."""
    stage = {"backend": backend, "price": price}
    rest = {name: StageConfig(**stage) for name in ("executor", "summarizer", "replan")}
    return Config(planner=PlannerConfig(**stage), **rest).model_copy(update=changes)


SELECTING = asking(executor=ExecutorConfig(backend="vllm.test", select="model"))
COMPUTING_PLANS = asking(planner=PlannerConfig(), replan=StageConfig())


def stages(found: Estimate) -> dict[str, StageEstimate]:
    return {stage.stage: stage for stage in found.stages}


def test_a_program_that_only_computes_asks_nothing(photo: Path) -> None:
    found = estimate(Config(), [Job(photo, RATE)])
    assert (found.stages, found.questions) == ([], 1)
    assert found.total.calls == found.total.input_tokens == 0


@pytest.mark.parametrize(
    ("query", "config", "asked"),
    [
        (RATE, asking(), "planner distortion_detection distortion_analysis scoring"),
        (RATE, SELECTING, "planner distortion_detection distortion_analysis tool_selection scoring"),
        (OTHER, asking(), "planner answering"),
        (REGION, asking(), "planner localization distortion_analysis answering"),
        (PLACE, asking(), "planner distortion_analysis answering"),  # its name places it
        ("How strong is the noise?", asking(), "planner distortion_analysis tool_selection answering"),
        ("Rate the quality with BRISQUE.", SELECTING, "planner distortion_detection distortion_analysis scoring"),
        (RATE, COMPUTING_PLANS, "distortion_detection distortion_analysis scoring"),
    ],
)
def test_the_question_and_the_configuration_decide_which_stages_ask(
    query: str, config: Config, asked: str, photo: Path
) -> None:
    found = estimate(config, [Job(photo, query)])
    assert ([*stages(found)], found.total.calls) == (asked.split(), len(asked.split()))


def test_the_counts_are_sums_over_images_and_questions(photo: Path, pristine: Path) -> None:
    jobs = [Job(photo, RATE), Job(photo, REGION), Job(pristine, RATE)]
    together, apart = estimate(asking(), jobs), [estimate(asking(), [job]) for job in jobs]
    for count in ("calls", "input_tokens", "image_tokens", "output_tokens"):
        assert getattr(together.total, count) == sum(getattr(found.total, count) for found in apart)
    assert (together.images, together.questions) == (2, 3)


def test_a_reference_adds_an_image_to_the_stages_that_see_images(photo: Path, pristine: Path) -> None:
    alone = stages(estimate(asking(), [Job(photo, RATE)]))
    compared = stages(estimate(asking(), [Job(photo, RATE, pristine)]))
    one = image_tokens("vllm.test", Image.open(photo).size)
    added = {name: compared[name].image_tokens - alone[name].image_tokens for name in alone}
    assert {name for name, tokens in added.items() if tokens} == SEEING
    assert {added[name] for name in SEEING} == {one}


def test_regions_are_located_in_one_of_the_two_images(photo: Path, pristine: Path) -> None:
    alone = stages(estimate(asking(), [Job(photo, REGION)]))
    compared = stages(estimate(asking(), [Job(photo, REGION, pristine)]))
    assert alone["localization"].image_tokens == compared["localization"].image_tokens > 0


def test_a_planner_without_images_is_not_charged_for_them(photo: Path) -> None:
    blind = asking(planner=PlannerConfig(backend="vllm.test", sees_images=False))
    found = stages(estimate(blind, [Job(photo, RATE)]))
    assert found["planner"].image_tokens == 0 < found["scoring"].image_tokens
    assert found["planner"].input_tokens < stages(estimate(asking(), [Job(photo, RATE)]))["planner"].input_tokens


def test_a_smaller_largest_side_makes_images_cheaper(photo: Path) -> None:
    whole, small = (estimate(asking(max_side=side), [Job(photo, RATE)]).total for side in (None, 64))
    assert small.image_tokens < whole.image_tokens
    assert small.input_tokens - small.image_tokens == whole.input_tokens - whole.image_tokens


def test_the_cost_is_linear_in_the_price(photo: Path) -> None:
    jobs = [Job(photo, RATE), Job(photo, REGION)]
    for price in (Price(input=2.5, output=10), Price(input=0, output=3)):
        total = estimate(asking(price=price), jobs).total
        assert total.usd == pytest.approx((price.input * total.input_tokens + price.output * total.output_tokens) / 1e6)


def test_without_a_price_there_is_no_cost(photo: Path) -> None:
    config = asking(price=Price(input=1, output=1))
    part = config.model_copy(update={"executor": config.executor.model_copy(update={"price": None})})
    found = estimate(part, [Job(photo, RATE)])
    assert stages(found)["distortion_analysis"].usd is None
    assert found.total.usd is None
    assert stages(found)["scoring"].usd


def test_no_answer_is_longer_than_max_tokens(photo: Path) -> None:
    short = asking(summarizer=SummarizerConfig(backend="vllm.test", max_tokens=7))
    assert stages(estimate(short, [Job(photo, RATE)]))["scoring"].output_tokens == 7


@pytest.mark.parametrize(("backend", "most"), [("openai.gpt-5-mini", 16_000), ("google.gemini-2.5-flash", 16_000)])
def test_hidden_reasoning_has_an_upper_bound(
    backend: str, most: int, photo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = estimate(asking(backend, PRICE), [Job(photo, RATE)]).total
    assert total.most_output_tokens == most * total.calls
    assert total.most_usd == pytest.approx(PRICE.usd(total.input_tokens, most * total.calls))
    command = ["assess", str(photo), "--backend", backend, "--price", "0.15,0.6", "--dry-run"]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "without hidden reasoning. With it, an answer has up to 16,000 output tokens" in said
    assert re.search(r"at most [\d,]+, 0\.0\d+ USD\.$", said, re.M)
    assert main([*command, "--mode", "fast", "--max-tokens", "20000"]) == 0
    assert "up to 20,000 output tokens" in capsys.readouterr().err


def test_the_estimate_of_a_model_that_does_not_reason_is_its_only_figure(
    photo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = estimate(asking("openai.gpt-4o", PRICE), [Job(photo, RATE)]).total
    assert (total.most_output_tokens, total.most_usd) == (total.output_tokens, total.usd)
    assert main(["assess", str(photo), "--backend", "openai.gpt-4o", "--dry-run"]) == 0
    assert "hidden reasoning" not in capsys.readouterr().err


def test_the_rows_are_json_and_end_with_the_total(photo: Path) -> None:
    found = estimate(asking(), [Job(photo, RATE)])
    rows = json.loads(json.dumps(found.rows()))
    assert [row["stage"] for row in rows] == [*(stage.stage for stage in found.stages), "total"]
    assert rows[-1]["calls"] == sum(row["calls"] for row in rows[:-1])


def test_a_question_for_an_unknown_tool_is_reported(photo: Path) -> None:
    found = estimate(asking(), [Job(photo, "Judge it using the FOOIQ metric.")])
    assert (found.questions, len(found.refused), found.stages) == (0, 1, [])


def test_images_that_cannot_be_assessed_cost_nothing_and_are_reported(photo: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nno more")
    impossible = [Job(tmp_path / "gone.png", RATE), Job(broken, RATE), Job(photo, RATE, tmp_path / "gone.png")]
    found = estimate(asking(), [*impossible, Job(photo, RATE)])
    assert found.total == estimate(asking(), [Job(photo, RATE)]).total
    assert ["gone.png" in found.refused[0], "broken.png" in found.refused[1], len(found.refused)] == [True, True, 3]


def test_images_above_the_limit_of_pixels_cost_nothing(photo: Path) -> None:
    config = asking().model_copy(update={"max_pixels": 100})
    found = estimate(config, [Job(photo, RATE), Job(photo.read_bytes(), RATE)])
    assert (found.images, len(found.refused)) == (0, 2)
    assert all("expected 1 to 100 pixels" in line and "set max_pixels to" in line for line in found.refused)


# What a run over HTTP then asks, with typical answers.

FOUND = ("Blurs", "Noise")
EXPLANATION = (
    "The fine texture of the surfaces is smeared and their edges run soft over several pixels, which shows most in the "
    "middle and less at the rim."
)
REASON = (
    "The edges are soft and the fine texture is lost over most of the picture, which agrees with the tool scores of "
    "2.6 to 3.1; some noise is left in the dark parts, and hardly any other distortion shows."
)


def detect(request: Body) -> dict[str, Any]:
    scope = json.loads(field_of(request, "query_scope"))
    return {"distortion_set": [{"region": region, "distortions": [*FOUND]} for region in scope]}


def analyse(request: Body) -> dict[str, Any]:
    seen = {"severity": "moderate", "explanation": EXPLANATION, "uncertain": False}
    return {"distortion_analysis": [{"region": r, "type": d, **seen} for r, d in pairs(request)]}


NARROW = {**ALL, "tool_selection": False, "tool_execution": False}  # what a question about a region takes
CLEAN: Mapping[str, Any] = {
    "plan": plan(),
    "location": locate,
    "detection": detect,
    "analysis": analyse,
    "selection": select,
    "assessment": spoken(
        json.dumps({"assessment": {"quality_level": "Fair", "quality_reasoning": REASON}}),
        {"Fair": {"Fair": -0.4, "Good": -1.5}},
    ),
    "answer": {"final_answer": "A", "quality_reasoning": REASON},
    "decision": {"need_replan": True, "replan_reason": "The region was not measured."},
}


def on(server: Server, config: Config) -> Config:
    """Return the configuration with its models on a server."""
    sections = {name: getattr(config, name) for name in ("planner", "executor", "summarizer", "replan")}
    there = {"api_base": server.url, "max_retries": 0}
    moved = {name: stage.model_copy(update=there) for name, stage in sections.items() if not stage.is_offline}
    return config.model_copy(update=moved)


@pytest.mark.parametrize(
    ("query", "planned"),
    [
        (RATE, plan()),
        (REGION, plan("car", NARROW)),
        (OTHER, {"query_type": "Other"}),
    ],
)
@pytest.mark.parametrize("compared", [False, True])
def test_a_run_without_faults_sends_the_estimated_requests(
    query: str, planned: dict[str, Any], compared: bool, photo: Path, pristine: Path
) -> None:
    job = Job(photo, query, pristine if compared else None)
    answer = {**plan(), **planned, "reference_mode": "Full-Reference" if compared else "No-Reference"}
    if planned.get("query_type") == "Other":
        answer["plan"] = dict.fromkeys(answer["plan"], False)
    if query == REGION:  # its sharpness was named
        answer |= {"distortion_source": "Explicit", "distortions": [{"region": "car", "distortions": ["Sharpness"]}]}
        answer["plan"] = {**answer["plan"], "distortion_detection": False}
    with fake_server(by_stage({**CLEAN, "plan": answer})) as server:
        found = estimate(asking(), [job])
        AgenticIQA.from_config(on(server, asking()))(job.image, job.query, job.reference)
    for name, row in stages(found).items():
        bodies = server.of(FIELDS[name])
        assert len(bodies) == row.calls, name
        sent = sum(text_tokens(text_of(body)) for body in bodies)
        assert row.input_tokens - row.image_tokens == pytest.approx(sent, rel=0.03), name
    assert len(server.requests) == found.total.calls


def test_a_run_in_the_fast_profile_sends_the_estimated_requests(photo: Path) -> None:
    config = asking(mode="fast")
    with fake_server(by_stage(CLEAN)) as server:
        AgenticIQA.from_config(on(server, config))(photo, RATE)
    found = stages(estimate(config, [Job(photo, RATE)]))
    assert [row.calls for row in found.values()] == [len(server.of(FIELDS[name])) for name in found]
    assert server.stages() == ["plan", "assessment"]


def test_a_hosted_provider_gets_the_schema_that_was_counted(photo: Path) -> None:
    with fake_server(by_stage(CLEAN)) as server:
        AgenticIQA.from_config(on(server, asking("openai.gpt-4o")))(photo, RATE)
    hosted, own = (stages(estimate(asking(backend), [Job(photo, RATE)])) for backend in ("openai.gpt-4o", "vllm.test"))
    for name in own:
        (body,) = server.of(FIELDS[name])
        sent = text_tokens(json.dumps(body["response_format"]["json_schema"]["schema"]))
        text = {row.model: row.input_tokens - row.image_tokens for row in (hosted[name], own[name])}
        assert text["openai.gpt-4o"] - text["vllm.test"] == pytest.approx(sent, rel=0.1)


GATEWAYS = ["openai/gpt-4o-mini", "azure/gpt-4o-mini", "ft:gpt-4o-mini-2024-07-18:org::id"]
PRICE = Price(input=0.15, output=0.6)


@pytest.mark.parametrize("spelling", GATEWAYS)
def test_a_model_costs_the_same_by_its_name_at_a_gateway(spelling: str, photo: Path) -> None:
    own, other = (
        estimate(asking(f"openai.{name}", PRICE), [Job(photo, RATE)]).total for name in ("gpt-4o-mini", spelling)
    )
    assert (other.image_tokens, other.usd) == (own.image_tokens, own.usd)
    assert own.image_tokens == 4 * (2833 + 5667)


@pytest.mark.parametrize("spelling", GATEWAYS)
def test_a_limit_in_usd_holds_for_the_name_of_a_model_at_a_gateway(spelling: str, tmp_path: Path) -> None:
    """The server bills an image as the model's maker does, and up to four questions are asked at a time."""
    size = (64, 48)  # pixels; the price of the smallest image is that of a tile
    for number in range(4):
        Image.fromarray(scene()).rotate(90 * number).resize(size).save(tmp_path / f"{number}.png")
    tokens = image_tokens("openai.gpt-4o-mini", size)
    answers = by_stage(CLEAN)

    def billed(body: Body) -> Reply:
        reply = answers(body)
        assert isinstance(reply, str)
        return Reply(reply, usage=(tokens + 1000, 300))

    with fake_server(billed) as server, within(RunLimits(Limits(max_usd=0.0065))) as limits:
        program = AgenticIQA.from_config(on(server, asking(f"openai.{spelling}", PRICE)))
        with pytest.raises(LimitReached):
            assert [*assess_many(program, tmp_path.glob("*.png"))] == []
    assert 0 < limits.own.usd <= 0.0065


def test_token_counts_of_the_prompts_match_a_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_image_at_an_address_that_cannot_be_reached_is_named_and_not_counted(tmp_path: Path) -> None:
    class Remote:
        name = "s3://bucket/a.png"

        def read(self, size: int = -1) -> bytes:
            raise OfImage("could not be read in 3 tries", self.name)

    Image.fromarray(scene()).save(tmp_path / "b.png")
    expected = estimate(Config(), [Job(Remote()), Job(tmp_path / "b.png")])
    assert (expected.images, expected.refused) == (1, ["s3://bucket/a.png: could not be read in 3 tries"])


def test_images_in_memory_are_counted_although_each_is_dropped_after_its_estimate(tmp_path: Path) -> None:
    Image.fromarray(scene()).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    jobs = (Job(UndecodedImage(f"a.tar/{number}.png", content)) for number in range(20))
    assert estimate(Config(), jobs).images == 20
