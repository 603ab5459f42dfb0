"""Figures of limits and names of options and keys on the pages are those of the code.

``FIGURES`` has parts of the text of each page, with ``{}`` in place of a figure, and the value in the code. A page that
states another figure fails, and so does one from which the sentence was removed.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import shtab
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agenticiqa.configs import STAGES, Config, load_config
from agenticiqa.configs.options import SMALLEST_SENT, Effect, ModelKeys
from agenticiqa.configs.policy import GatePolicy
from agenticiqa.configs.schema import FusionConfig, LevelsConfig, PlannerConfig, Price, StageConfig, SummarizerConfig
from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.eval import improvement, intervals
from agenticiqa.eval.calibrate.adapter_fit import ADDS, FOLLOWS, NEARER
from agenticiqa.eval.cli import COMMANDS
from agenticiqa.eval.commands.calibrate_adapter import FEWEST_CONTENTS, FEWEST_LABELS, USUALLY_ENOUGH
from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize import TuningSettings
from agenticiqa.eval.optimize.items import ENOUGH_COMPARED
from agenticiqa.eval.optimize.objectives import MISSING_ERROR
from agenticiqa.eval.optimize.search import AGAIN, GAINLESS, GIVE_UP, LOOK
from agenticiqa.eval.questions.agenticiqa_eval import AGENTICIQA_EVAL
from agenticiqa.eval.report import run_differences
from agenticiqa.eval.research.curve_fit import CEILING, MIN_POINTS
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.programs.backends.capabilities import FEWER_LOGPROBS, REFUSED
from agenticiqa.programs.backends.connect import FEWEST_REASONING_TOKENS
from agenticiqa.programs.backends.cores import WORKERS
from agenticiqa.programs.backends.failures import LONGEST_HINT
from agenticiqa.programs.backends.image_tokens import LLAMA_CPP, QWEN
from agenticiqa.programs.backends.in_flight import LOADING_SECONDS
from agenticiqa.programs.backends.provider_batches.driver import MOST_TRIES
from agenticiqa.programs.backends.provider_batches.openai_files import OpenAIFiles
from agenticiqa.programs.backends.providers import PROVIDERS, SLOW, TIMEOUT, Provider
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.fit_fusion import RELIABLE_FROM
from agenticiqa.programs.batch.gate import KINDS
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.stop_rule import FAILURES_IN_A_ROW
from agenticiqa.programs.cli.arguments import RateOptions
from agenticiqa.programs.cli.ranking import FEWEST
from agenticiqa.programs.cli.status import BELOW, OK, UNSCORED
from agenticiqa.programs.fusion.fit import (
    AT_CHANCE,
    FEWEST_IMAGES,
    SHARED_ERROR,
    SHARED_ERROR_OF_GENERATED,
    TYPICAL_MODEL,
    TYPICAL_STD,
    UNRELATED_ANSWERS,
)
from agenticiqa.programs.fusion.formula import OFFLINE_ETA, OFFLINE_MODEL_ERROR, SMOOTHED
from agenticiqa.programs.fusion.interval import FAR, FAR_FOR_FITTED
from agenticiqa.programs.fusion.tool_mean import LEAST_GAIN
from agenticiqa.programs.images.decoding import MAX_PIXELS, MOST_SCANS, MOST_SIDE, SHARE_OF_MOST
from agenticiqa.programs.images.pairs import GRID, LARGEST_PAIR
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.images.registration import SMALLEST_SIDE
from agenticiqa.programs.offline.answers.asked import LEAST
from agenticiqa.programs.page.rating import PRACTICE_RANKS, REPEATS
from agenticiqa.programs.questions import options
from agenticiqa.programs.result_row import AssessedRow
from agenticiqa.programs.scale.plan_shards import BYTES, IMAGES
from agenticiqa.programs.scale.run_shards import TRIES
from agenticiqa.programs.tools.catalog import TOOLS
from agenticiqa.programs.tools.features.patch_features import SIDE as PATCH_SIDE
from agenticiqa.programs.tools.outside_training import SMALL_PHOTO
from agenticiqa.signatures.answers.tokens import LEAST_MASS, LEAST_MASS_IN_SCHEMA
from agenticiqa.signatures.types import ProbabilitySource, QueryType
from agenticiqa.signatures.vocabulary import SEVERITIES
from support.recorded import RECORD
from support.snippets import snippets
from support.texts import helps

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTION = r"(?<![\w-])--[a-z][a-z-]+"
SLOW_SERVERS = tuple(name for name, row in PROVIDERS.items() if row.timeout == SLOW)
ONE_AT_A_TIME = tuple(name for name, row in PROVIDERS.items() if row.at_a_time == 1)
OF_OTHER_PROGRAMS = {
    "--context-length",
    "--max-model-len",
    "--enable-log-requests",
    "--no-deps",
    "--limit-mm-per-prompt",
    "--mmproj",
    "--kills",
    "--data",
    "--tool",
    "--write",
    "--reasoning-parser",
    "--set",
}
MILLION, MIB = 10**6, 2**20
WORDS = {3: "three", 4: "four", 6: "six", 10: "ten"}
TOOL_TABLE = yaml.safe_load((ROOT / "configs" / "tool_table.yaml").read_text(encoding="utf-8"))["categories"]


def srcc(tool: str, images: str, category: str = "Overall") -> str:
    """Return the SRCC of a tool in the measured table, as the pages write it."""
    rows = TOOL_TABLE[category][tool]
    return f"{rows.get(images, rows.get(f'{images}, held out'))['srcc']:.2f}".lstrip("0")


def as_written(value: float) -> str:
    """Return a number below 1 as pages write it: ".75"."""
    return f"{value:g}".removeprefix("0")


CARD = (ROOT / "programs" / "tools" / "metrics" / "quality_model.md").read_text(encoding="utf-8")
ALL_SETS = r"other images of all sets \(5 folds\)"
NIQE_ON_CLIVE = ".48"
HELD_OUT = {  # parts of rows by what the model was trained and tested on
    (ALL_SETS, "clive"): "550 of 1,162 | {} |",
    ("all sets but clive", "clive"): f"| {{}} | {NIQE_ON_CLIVE} |",
    (ALL_SETS, "live_r2"): "72 of 779 | {} |",
    ("all sets but live_r2", "live_r2"): "| {} |",
    ("all sets but biq2021", "biq2021"): "1,400 of 12,000 | | {} |",
}


def held_out(trained: str, tested: str) -> str:
    """Return the SRCC with its interval in a row of the model card, as pages write it: ".818 [.783, .848]"."""
    row = re.search(rf"^\| {trained} \| {tested} \| \d+ \| ([^|]+) \|", CARD, re.M)
    return re.sub(r"\b0\.", ".", row[1]) if row else "no such row"


FIGURES: dict[str, list[tuple[str, object]]] = {
    "../README.md": [
        ("It measures with uncertainty.** {} metrics", len(TOOLS)),
        ("| metrics | {} (with pyiqa", len(TOOLS)),
        *((part, held_out(*row)) for row, part in HELD_OUT.items() if "clive" in row),
    ],
    "benchmarks.md": [
        ("fewer than {} scenes there is no interval", intervals.FEWEST_CONTENTS),
        ("detect a difference of {}", as_written(run_differences.SMALLEST_SHOWN)),
        ("with a power of {} %", round(100 * run_differences.POWER)),
    ],
    "methods.md": [
        ("less probable than {}", as_written(LEAST.intent)),
        ("the distortion less than {}", as_written(LEAST.distortion)),
        ("lowers the error of the mean by {} % or more", round(100 * LEAST_GAIN)),
        ("With {} or more labels", WORDS[FEWEST_IMAGES]),
        ("a typical shared error of {} is", as_written(SHARED_ERROR)),
        ("or {} for AI-generated images", as_written(SHARED_ERROR_OF_GENERATED)),
        ("shrunk toward {}", as_written(TYPICAL_MODEL)),
        ("patches of {0} x {0} pixels", PATCH_SIDE),
    ],
    "offline-accuracy.md": [
        *((part, held_out(*row)) for row, part in HELD_OUT.items()),
        ("CLIVE, photos | 550 of {:,}", TASKS["clive"].count),
        ("BIQ2021, photos | 8,799 of {:,}", TASKS["biq2021"].count),
        ("LIVE r2, distorted photos | 72 of {:,}", TASKS["live-r2"].count),
        ("AGIQA-3K, AI-generated | 1,493 of {:,}", TASKS["agiqa3k"].count),
        ("a longer side below {} pixels", SMALL_PHOTO),
    ],
    "questions.md": [
        ("{} options, by letter", f"{options.FEWEST} to {options.MOST}"),
        ("need at least {} pictures", intervals.FEWEST_CONTENTS),
        ("have not published its {:,} questions", AGENTICIQA_EVAL.count),
    ],
    "albums.md": [
        ("a terminal shows {} images or more as a ranking", WORDS[FEWEST]),
        ("Images of up to {} million pixels", MAX_PIXELS // MILLION),
        ("(WebP: {} million", round(MAX_PIXELS * SHARE_OF_MOST["WEBP"]) // MILLION),
        ("Files above {} MiB", MOST_BYTES // MIB),
        ("(TIFF, BMP and PNM: {})", MOST_PLAIN_BYTES // MIB),
        ("sides above {} pixels", f"{MOST_SIDE:,}"),
        ("JPEGs of over {} scans", MOST_SCANS),
        ("A pair above {} million pixels is compared at reduced size", LARGEST_PAIR // MILLION),
    ],
    "gate.md": [
        ("this severity ({})", ", ".join(f"`{word}`" for word in SEVERITIES[1:])),
        ("It is {} if some are refused", BELOW),
        *((" `{}`", kind) for kind in KINDS),
        *(("`{}", key) for key in GatePolicy.model_fields),
    ],
    "metrics.md": [
        ("The {} embedded metrics", len(TOOLS)),
        ("multiples of {} pixels", GRID),
        ("a side below {} pixels are not aligned", SMALLEST_SIDE),
        *(("SRCC of {} with the MOS of LIVE r2", srcc(tool, "live_r2")) for tool in ("HaarPSI", "FR-FUSION", "MDSI")),
        *(("SRCC of {} each with", srcc(tool, "live_r2", "Compression")) for tool in ("VIF", "FR-FUSION", "HaarPSI")),
        ("SRCC of {} on 550 held-out photos of CLIVE", held_out(ALL_SETS, "clive").split()[0]),
        ("where NIQE has {} ", NIQE_ON_CLIVE),
        *((" {}", tool) for tool in TOOLS),
    ],
    "scale.md": [
        ("A shard has {} images", IMAGES),
        ("or {} MB, whichever", BYTES // MIB),
        ("fails {}, it is skipped", {2: "twice"}[TRIES]),
    ],
    "adapt.md": [
        ("It chooses {} photos", RateOptions(album="album", out=Path("rate.html")).images),
        ("{} photos at the beginning are for practice", WORDS[len(PRACTICE_RANKS)].capitalize()),
        ("{} photos come twice", WORDS[REPEATS].capitalize()),
        ("At least {} labels", FEWEST_LABELS),
        ("labels of {} scenes", FEWEST_CONTENTS),
        ("with {} labels of AI-generated images, or with {} of photos", tuple(re.findall(r"\d+", USUALLY_ENOUGH))),
        ("follow these labels ({} % confidence)", f"{100 * FOLLOWS:g}"),
        ("add information to the shipped scores ({} %)", f"{100 * ADDS:g}"),
        ("have a smaller error ({} %)", f"{100 * NEARER:g}"),
        ("measured fewer than {} images", MIN_POINTS),
        ("an undistorted image has to get {:.0f}", CEILING),
    ],
    "errors.md": [
        ("It is {} if a model gave no usable answer", UNSCORED),
        ("is an answer, and ends with {}", OK),
        ("any image without a score ends with {}", UNSCORED),
        ("`max_retries: {}`", StageConfig.model_fields["max_retries"].default),
        ("`timeout` ({:.0f} s; {:.0f} s with `{}`, `{}` and `{}`)", (TIMEOUT, SLOW, *SLOW_SERVERS)),
        ("for up to {} seconds", LOADING_SECONDS),
        ("`attempts: {}` in all", Config.model_fields["attempts"].default),
        ("up to {:.0f} s, or else", LONGEST_HINT),
        ("after {} + 2 x workers images in a row", FAILURES_IN_A_ROW),
    ],
    "models.md": [
        *(("| `{}.<model>` | ", name) for name in PROVIDERS),
        *(("`{}`", row.address) for row in PROVIDERS.values() if row.address and row.key_env is None),
        *(("| `{}` | ", row.key_env) for row in PROVIDERS.values() if row.key_env),
        ("no temperature and {:,} tokens", FEWEST_REASONING_TOKENS),
        ("with status {}, {} or {}", tuple(sorted(REFUSED))),
        ("of {} log-probabilities per token, it requests {}, then none", (Provider().logprobs, FEWER_LOGPROBS)),
        ("temperature {:.0f}, `top_p` {}", (StageConfig().temperature, PlannerConfig().top_p)),
        ("{:.0f} seconds, or {:.0f} with these three", (TIMEOUT, SLOW)),
        ("With `{}`, `{}` and `{}` it is 1", ONE_AT_A_TIME),
        ("{:,} tokens, or {} for the final answer", (StageConfig().max_tokens, SummarizerConfig().max_tokens)),
        ("limits new plans to {} by default", Config().max_replan_iterations),
        ("at most {} times in all (`attempts`)", Config().attempts),
        *(("`{}`", source) for source in get_args(ProbabilitySource)),
        ("{} for its level, {:.3g} for each other level", (SMOOTHED, (1 - SMOOTHED) / 4)),
        ("| `free text` | all; the server enforced no schema | {} |", f"{LEAST_MASS:g}".lstrip("0")),
        ("(llama.cpp) | {} |", f"{LEAST_MASS_IN_SCHEMA:g}".lstrip("0")),
        ("fit its [fusion profile](fusion.md#fit-a-profile) to {} photos", RELIABLE_FROM),
        ("in progress, by default {}", WORKERS),
        ("patches of {}, at most {:,}; llama.cpp and LM Studio {:,}", (QWEN.side, QWEN.budget, LLAMA_CPP.budget)),
    ],
    "batches.md": [
        ("at most {:,} requests and {} MB", (OpenAIFiles.most_requests, OpenAIFiles.most_bytes // MILLION)),
        ("each request at most {} times", MOST_TRIES),
    ],
    "fusion.md": [
        ("A profile needs {} or more of your images", RELIABLE_FROM),
        ("fewer than {} images are refused", FEWEST_IMAGES),
        ("a correlation of {} with the MOS, give or take {}", (f"{TYPICAL_MODEL:g}"[1:], f"{TYPICAL_STD:g}"[1:])),
        ("one model in {} at chance level", {5: "five"}[round(1 / AT_CHANCE)]),
        ("one answer in {} has nothing to do", {20: "twenty"}[round(1 / UNRELATED_ANSWERS)]),
        ("differ by {} level or more", {1: "one"}[int(FAR)]),
        ("at least {} times the usual difference", FAR_FOR_FITTED),
    ],
    "prompts.md": [
        *(("| `{}`", stage) for stage in get_args(Stage)),
        ("{:.0f} % of the scenes are used to tune", 100 * (1 - TuningSettings().held_out)),
        ("`--budget {}`", TuningSettings().budget),
        ("is measured on {} images", LOOK),
        ("is measured on {} more images", AGAIN),
        ("after {} proposals in a row without a gain", GAINLESS),
        ("instruction {} times in a row", GIVE_UP),
        ("up to {} in total", ENOUGH_COMPARED),
        ("at least {:g} %", 100 * improvement.REQUIRED),
        ("an error of {:.0f} levels", MISSING_ERROR),
        ("at least {} scenes are needed", improvement.FEWEST_SCENES),
    ],
    "configuration.md": [
        ("for your shell: {}", " or ".join(", ".join(shtab.SUPPORTED_SHELLS).rsplit(", ", 1))),
        ("WebP: {} of this", SHARE_OF_MOST["WEBP"]),
        ("null: {:.0f}, or {:.0f} for # {}, {} and {}", (TIMEOUT, SLOW, *SLOW_SERVERS)),
        ("pixels, at least {}, or null", SMALLEST_SENT),
        ("model_error is then {:.0f}, and eta is {:.0f}", (OFFLINE_MODEL_ERROR, OFFLINE_ETA)),
        *((" {}: ", name) for name in sorted(set(get_args(get_type_hints(ModelKeys)["mode"])))),
    ],
    "python.md": [
        ("{} to {} texts", (options.FEWEST, options.MOST)),
        ("uses {} threads", WORKERS),
        *((" `{}`", kind.value) for kind in QueryType),
        *(
            ("`{}`", relation)
            for relation in get_args(ReferenceCheck.model_fields["relation"].annotation)
            if relation != "unknown"
        ),
    ],
}


@pytest.mark.parametrize("page", FIGURES)
def test_a_page_has_the_figures_of_the_code(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    expected = [part.format(*(value if isinstance(value, tuple) else (value,))) for part, value in FIGURES[page]]
    assert [part for part in expected if part not in text] == []


def test_the_table_of_the_methods_has_every_study_that_the_page_names() -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    studies = {file.stem for file in (ROOT / "eval" / "research").glob("*.py")}
    rows = set(re.findall(r"`(\w+)", "\n".join(re.findall(r"^\| (`[a-z_]+[` ].*?) \|", text, re.M))))
    assert rows - studies == set()
    assert set(re.findall(r"`(\w+)`", text)) & studies - rows == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_on_a_page_exist(page: Path) -> None:
    known = set(re.findall(OPTION, "\n".join(helps().values()))) | OF_OTHER_PROGRAMS
    assert set(re.findall(OPTION, page.read_text(encoding="utf-8"))) - known == set()


SECTIONS: dict[str, type[StageConfig]] = {
    **{name: type(getattr(Config(), name)) for name in STAGES},
    "levels": LevelsConfig,
}


SHIPPED, PAGE = ROOT / "configs" / "model_backends.yaml", ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- the shipped file -->\n```yaml\n", "```\n<!-- end of the shipped file -->\n"
KEY = re.compile(r"^(?:# )?(?P<indent> *)(?:# )?(?P<key>[a-z_]+):(?: (?P<value>\S+))?(?: +# (?P<comment>.+))?$", re.M)


@dataclass(frozen=True)
class Row:
    """A key of the shipped configuration with its value, and from its comment the possible values and the meaning."""

    value: str
    values: str
    meaning: str


def rows_of_the_shipped_file() -> dict[tuple[str, str], Row]:
    """Return the row of each key, also of those that are commented out, by section ("" at the top) and key."""
    text = re.sub("\n {28}# ", " ", SHIPPED.read_text(encoding="utf-8"))  # comments over several lines
    rows: dict[tuple[str, str], Row] = {}
    section = ""
    for found in KEY.finditer(text):
        section = section if found["indent"] else found["key"]
        place = (section if found["indent"] else "", found["key"])
        assert place not in rows, f"{place} stands twice"
        values, _, meaning = (found["comment"] or "").partition(". ")
        rows[place] = Row((found["value"] or "{}").strip('"'), values, meaning)
    return rows


def as_yaml(value: object) -> str:
    """Return a default as the shipped file writes it."""
    if isinstance(value, BaseModel):
        return "{}"
    return value if isinstance(value, str) else json.dumps(value)


def words_of(annotation: Any) -> set[str]:
    """Return the values that a type lists, and "null" for one that may be missing."""
    if get_origin(annotation) is Literal:
        return {value for value in get_args(annotation) if isinstance(value, str)}
    if annotation is type(None):
        return {"null"}
    return set().union(*map(words_of, get_args(annotation)))


def range_of(field: FieldInfo) -> str:
    """Return the bounds of a key as its comment writes them; "" if every number is possible, or each above 0."""
    bounds = {
        name: getattr(part, name) for part in field.metadata for name in ("ge", "gt", "le") if hasattr(part, name)
    }
    match bounds:
        case {"ge": low, "le": high}:
            return f"{low:g} to {high:,g}"
        case {"gt": low, "le": high}:
            return f"above {low}, up to {high}"
        case {"ge": low} if low > 1:
            return f"at least {low}"
    return ""


FLAGS = {option.name: {*option.flags} for option in COMMANDS["assess"].options if option.key}


def check_row(key: str, field: FieldInfo, row: Row) -> None:
    """Compare the comment of a key, its values and its meaning, with its type, its bounds and its option."""
    assert row.meaning, f"{key} has no meaning"
    assert words_of(field.annotation) <= set(re.findall(r"[\w-]+", row.values)), key
    assert (bool in (field.annotation, *get_args(field.annotation))) == ("true or false" in row.values), key
    assert range_of(field) in row.values, key
    assert re.findall(r"\b\d+", row.values) == re.findall(r"\d+", range_of(field)), key
    assert set(re.findall(r"--[\w-]+", row.meaning)) == FLAGS.get(key, set()), key


def test_every_key_stands_in_the_shipped_configuration_with_its_values_default_and_option() -> None:
    rows = rows_of_the_shipped_file()
    models: list[tuple[str, type[BaseModel]]] = [("", Config), ("", StageConfig), ("fusion", FusionConfig)]
    fields = {(place, key): field for place, model in models for key, field in model.model_fields.items()}
    fields |= {("price", key): field for key, field in Price.model_fields.items()}
    for section, model in SECTIONS.items():
        own = model.model_fields.keys() - StageConfig.model_fields.keys()
        fields |= {(section, key): model.model_fields[key] for key in own}
    for (place, key), field in fields.items():
        assert (place, key) in rows, f"{place}: {key} has no row"
        check_row(key, field, rows[place, key])
        is_required = field.default is PydanticUndefined
        assert is_required == ("required" in rows[place, key].values), key
        assert is_required or rows[place, key].value == as_yaml(field.default), key
    for section, model in SECTIONS.items():
        also = [key for place, key in rows.keys() - fields.keys() if place == section]
        defaults = {key: as_yaml(model.model_fields[key].default) for key in StageConfig.model_fields}
        differing = {key: default for key, default in defaults.items() if default != rows["", key].value}
        assert {key: rows[section, key].value for key in also} == differing, section
    assert {place for place, _ in rows} == {"", "fusion", "price", *SECTIONS}
    assert {key for place, key in rows if not place} == Config.model_fields.keys() | StageConfig.model_fields.keys()


@pytest.mark.recorded
def test_the_page_about_configurations_shows_the_shipped_file(recording: bool) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    shown, end, after = rest.partition(END)
    file = SHIPPED.read_text(encoding="utf-8")
    if recording:
        PAGE.write_text(f"{before}{BEGIN}{file}{END}{after}", encoding="utf-8")
        shown = file
    assert end
    assert shown == file, RECORD


def test_the_page_about_resume_names_every_key_that_may_change() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^These keys may change, .*?\. ", text, re.M | re.S)
    keys = set().union(*(model.keys_with(Effect.NONE) for model in (Config, *SECTIONS.values(), FusionConfig)))
    assert set(re.findall(r"`(\w+)`", named)) == keys


def test_the_table_of_results_has_every_key_of_a_result_and_of_its_reference_check() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.+?) \|", text, re.M)
    shown = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert [*AssessedRow.model_fields.keys() - set(shown)] == []
    assert [*ReferenceCheck.model_fields.keys() - set(shown)] == []


WORDS_OF_STAGES = {
    "planner": "plan",
    "localization": "location",
    "distortion_detection": "detection",
    "distortion_analysis": "analysis",
    "tool_selection": "selection",
    "scoring": "score",
    "answering": "answer",
}


def test_the_calls_of_each_question_are_those_of_the_estimate() -> None:
    """Check the table of calls; the selection runs beside the analysis, so it adds nothing to the sequence."""
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| (\d): (.+?) \| (\d) \| (\d) \|$", text, re.M)
    assert len(rows) == 7
    photo = ROOT / "examples" / "coffee_jpeg.jpg"
    config = Config().with_backend("openai.gpt-4o")
    for question, calls, stages, in_sequence, fast in rows:
        needed = [stage.stage for stage in estimate(config, [Job(photo, question)]).stages]
        assert stages.split(", ") == [WORDS_OF_STAGES[stage] for stage in needed], question
        assert (int(calls), int(in_sequence)) == (len(needed), len(needed) - ("tool_selection" in needed)), question
        assert len(estimate(config.model_copy(update={"mode": "fast"}), [Job(photo, question)]).stages) == int(fast)


def test_the_first_configuration_on_its_page_is_the_shipped_one() -> None:
    (shown, *_) = [block.text for block in snippets(PAGE) if block.kind == "yaml"]
    assert load_config(yaml.safe_load(shown)) == load_config("providers/hybrid")
