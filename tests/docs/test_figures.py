"""Figures of limits and names of options and keys on the pages are those of the code.

``FIGURES`` has parts of the text of each page, with ``{}`` in place of a figure, and the value in the code. A page that
states another figure fails, and so does one from which the sentence was removed.
"""

import re
from pathlib import Path

import pytest
import yaml

from agenticiqa.configs import Config, StageConfig
from agenticiqa.configs.policy import GatePolicy
from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.eval import intervals
from agenticiqa.eval.calibrate.adapter_fit import ADDS, FOLLOWS, NEARER
from agenticiqa.eval.calibrate.curve_fit import CEILING, MIN_POINTS
from agenticiqa.eval.cli import COMMANDS
from agenticiqa.eval.commands.calibrate_adapter import FEWEST_CONTENTS, FEWEST_LABELS, USUALLY_ENOUGH
from agenticiqa.eval.report import run_differences
from agenticiqa.programs.backends.retries import LONGEST_HINT
from agenticiqa.programs.batch.gate import KINDS
from agenticiqa.programs.batch.stop_rule import FAILURES_IN_A_ROW
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.ranking import FEWEST
from agenticiqa.programs.cli.status import BELOW
from agenticiqa.programs.images.decoding import MAX_PIXELS, MOST_SCANS, MOST_SIDE, SHARE_OF_MOST
from agenticiqa.programs.images.pairs import GRID, LARGEST_PAIR
from agenticiqa.programs.images.registration import SMALLEST_SIDE
from agenticiqa.programs.page.rating import PRACTICE_RANKS, REPEATS
from agenticiqa.programs.scale.plan_shards import BYTES, IMAGES
from agenticiqa.programs.scale.run_shards import TRIES
from agenticiqa.programs.tools.catalog import TOOLS
from agenticiqa.signatures.vocabulary import SEVERITIES
from support.texts import helps

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTION = r"(?<![\w-])--[a-z][a-z-]+"
OF_OTHER_PROGRAMS = {
    "--enable-log-requests",
    "--no-deps",
    "--limit-mm-per-prompt",
    "--mmproj",
    "--kills",
    "--data",
    "--tool",
    "--write",
    "--reasoning-parser",
}
MILLION, MIB = 10**6, 2**20
WORDS = {3: "three", 6: "six", 10: "ten"}
TOOL_TABLE = yaml.safe_load((ROOT / "configs" / "tool_table.yaml").read_text(encoding="utf-8"))["categories"]


def srcc(tool: str, images: str, category: str = "Overall") -> str:
    """Return the SRCC of a tool in the measured table, as the pages write it."""
    rows = TOOL_TABLE[category][tool]
    return f"{rows.get(images, rows.get(f'{images}, held out'))['srcc']:.2f}".lstrip("0")


FIGURES: dict[str, list[tuple[str, object]]] = {
    "benchmarks.md": [
        ("fewer than {} scenes there is no interval", intervals.FEWEST_CONTENTS),
        ("with fewer than {} it is slightly too narrow", intervals.FEW_CONTENTS),
        ("detect a difference of {}", f"{run_differences.SMALLEST_SHOWN:g}".removeprefix("0")),
        ("with a power of {} %", round(100 * run_differences.POWER)),
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
        ("SRCC of {} on CLIVE (held out)", srcc("LEARNED-IQA", "clive")),
        ("NIQE has {} ", srcc("NIQE", "clive")),
        ("BRISQUE {} ", srcc("BRISQUE", "clive")),
        *((" {}", tool) for tool in TOOLS),
    ],
    "scale.md": [
        ("A shard has {} images", IMAGES),
        ("or {} MB, whichever", BYTES // MIB),
        ("fails {}, it is skipped", {2: "twice"}[TRIES]),
    ],
    "adapt.md": [
        ("It chooses {} photos", parse(["rate", "album", "--out", "rate.html"], COMMANDS).images),
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
        ("`max_retries: {}`", StageConfig.model_fields["max_retries"].default),
        ("`timeout: {:.0f}`", StageConfig.model_fields["timeout"].default),
        ("`timeout`, {:.0f} s by default", StageConfig.model_fields["timeout"].default),
        ("`attempts: {}` in all", Config.model_fields["attempts"].default),
        ("up to {:.0f} s, or else", LONGEST_HINT),
        ("after {} failures in a row, plus 2 per worker", FAILURES_IN_A_ROW),
    ],
}


@pytest.mark.parametrize("page", FIGURES)
def test_a_page_has_the_figures_of_the_code(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    expected = [part.format(*(value if isinstance(value, tuple) else (value,))) for part, value in FIGURES[page]]
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_on_a_page_exist(page: Path) -> None:
    known = set(re.findall(OPTION, "\n".join(helps().values()))) | OF_OTHER_PROGRAMS
    assert set(re.findall(OPTION, page.read_text(encoding="utf-8"))) - known == set()
