"""Measure which share of a model's first answers each stage accepts, how long they are, and why others are rejected.

    python tests/real_server/validity.py                              # starts llama.cpp with the tiny, blind model
    python tests/real_server/validity.py --backend vllm.blind --api-base http://127.0.0.1:8000/v1
    python tests/real_server/validity.py --modes json_object off --requests 4 --jsonl requests.jsonl

Each stage is called by itself, as the program calls it, with inputs that do not depend on earlier answers of the
model: the example photos, written regions and distortions, and the evidence of the offline program. One attempt per
request; other settings are the defaults. An answer is valid if the stage accepts it. A model that does not see shows
whether the form of answers holds, and nothing about their content.
"""

import argparse
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import dspy

from agenticiqa import AgenticIQA
from agenticiqa.configs import Config, load_config
from agenticiqa.programs.assess import Stages, composed
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.errors import LAST_ANSWER, Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.protocols import StageResult
from agenticiqa.programs.stages.summarizer import Summarizer
from agenticiqa.programs.stages.tool_runs import applicable_tools
from agenticiqa.signatures.types import GLOBAL, Box, Boxes, Distortions, ExecutorOutput
from support.llama_server import llama_server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODES = ("auto", "json_object", "off")  # values of structured_outputs
RATE = "Rate the quality of this snapshot."  # unlike a rating in plain words, it is planned by the model
TIMEOUT = 600.0  # seconds, as in configs/providers/llamacpp.yaml

# The photos, with their originals for the requests that have a reference, and the things that they show.
PHOTOS: dict[str, tuple[str, list[str]]] = {
    "coffee_jpeg.jpg": ("coffee.webp", ["cup", "table"]),
    "astronaut_blur.png": ("astronaut.webp", ["face", "flag"]),
    "chelsea_noise.png": ("chelsea.webp", ["cat", "left half"]),
    "coffee.webp": ("coffee.webp", ["spoon", "saucer"]),
    "astronaut.webp": ("astronaut.webp", ["helmet", "suit"]),
    "chelsea.webp": ("chelsea.webp", ["eyes", "nose"]),
}
CHOICES = (
    "Which distortion is the strongest?\nA. Blur\nB. Noise\nC. JPEG compression\nD. None",
    "Is the image sharp? A. Yes B. No",
    "How would you describe the brightness?\nA. Too dark\nB. Right\nC. Too bright",
)
EXPLANATIONS = ("Why does the image look bad?", "Describe the noise in the image.", "What is wrong with the colors?")
FOUND: tuple[list[str], ...] = (["Blurs"], ["Compression", "Blurs"], ["Noise"], ["Brightness change", "Contrast"])


@dataclass(frozen=True)
class Outcome:
    """One request: its stage, its mode, whether the answer was accepted, its tokens and seconds, and why it was not."""

    stage: str
    mode: str
    is_valid: bool
    input_tokens: int
    output_tokens: int
    seconds: float
    reason: str = ""
    answer: str = ""


Ask = Callable[[], StageResult]


def main() -> int:
    """Ask, and print a table for each mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="llamacpp.smollm2", help="the model, as for `agenticiqa assess`")
    parser.add_argument("--api-base", help="the address of its server; by default one is started")
    parser.add_argument("--api-key-env", help="the environment variable of the server's key")
    parser.add_argument("--config", help="a configuration, such as paper; by default the shipped one")
    parser.add_argument("--requests", type=int, default=12, help="requests per stage and mode, at most 12")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="values of structured_outputs")
    parser.add_argument("--stages", nargs="+", help="the stages to ask, by default all")
    parser.add_argument("--jsonl", type=Path, help="a file for the outcome of each request, with the rejected answer")
    args = parser.parse_args()
    for logger in ("agenticiqa", "dspy"):  # rejected answers are expected, and are in --jsonl
        logging.getLogger(logger).setLevel(logging.ERROR)
    with ExitStack() as stack:
        address = args.api_base
        if address is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            address = stack.enter_context(llama_server(folder, context=8192)).url
        for mode in args.modes:
            stages = composed(configured(args.config, args.backend, address, args.api_key_env, mode))
            outcomes = []
            for outcome in measured(stages, mode, args.requests, args.stages):
                outcomes.append(outcome)
                if args.jsonl:
                    with args.jsonl.open("a", encoding="utf-8") as rows:
                        rows.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
            print("\n".join(table(mode, outcomes)), flush=True)
    return 0


def configured(config: str | None, backend: str, address: str, key_env: str | None, mode: str) -> Config:
    """Return the configuration with one model for all stages, one attempt, and no cache."""
    changes = {"timeout": TIMEOUT, "structured_outputs": mode}
    once = load_config(config).model_copy(update={"attempts": 1, "cache": False, "strict": True})
    asking = once.with_backend(backend, address, key_env)
    return asking.model_copy(update={name: s.model_copy(update=changes) for name, s in asking.sections.items()})


def measured(stages: Stages, mode: str, count: int, wanted: Sequence[str] | None) -> Iterator[Outcome]:
    """Send ``count`` requests of each wanted stage, and yield their outcomes."""
    for stage, requests in requests_by_stage(stages).items():
        if wanted and stage not in wanted:
            continue
        for ask in islice(requests, count):
            outcome = outcome_of(stage, mode, ask)
            print(f"{mode} {stage}: {outcome.reason or 'valid'}"[:160], file=sys.stderr, flush=True)
            yield outcome


def outcome_of(stage: str, mode: str, ask: Ask) -> Outcome:
    """Send one request and return its outcome."""
    rejected: dict[str, Sequence[str]] = {}
    with recorded_usage() as usage:
        try:
            rejected = dict(ask().rejected_answers)
        except Unanswered as gave_up:
            rejected = dict(gave_up.rejected_answers)
        except dspy.LMError as error:  # a context that is too small, a time-out
            rejected = {stage: [f"no answer: {error}"]}
    spent = usage.stages[stage]
    reason, _, answer = "; ".join(reason for reasons in rejected.values() for reason in reasons).partition(LAST_ANSWER)
    return Outcome(stage, mode, not rejected, spent.input_tokens, spent.output_tokens, spent.seconds, reason, answer)


def requests_by_stage(stages: Stages) -> dict[str, Iterator[Ask]]:
    """Return up to 12 requests of each stage, by its name in results."""
    executor, summarizer = stages.executor, stages.summarizer
    assert isinstance(executor, Executor)
    assert isinstance(summarizer, Summarizer)
    assert executor.locate is not None
    return {
        "planner": plans(stages),
        "localization": (
            partial(executor.locate, image=image, regions=regions)
            for regions_of in (lambda things: things[:1], lambda things: things)
            for image, regions in ((photo(name), regions_of(PHOTOS[name][1])) for name in PHOTOS)
        ),
        "distortion_detection": (
            partial(executor.detect, image=image, query=RATE, regions=regions, boxes=boxes, reference=reference)
            for image, regions, boxes, reference in scenes()
        ),
        "distortion_analysis": (
            partial(executor.analyze, image=image, query=RATE, distortion_set=found, boxes=boxes, reference=reference)
            for (image, _, boxes, reference), found in zip(scenes(), pairs(), strict=True)
        ),
        "tool_selection": (
            partial(executor.select, distortion_set=found, tools=applicable_tools(executor.toolbox, image, reference))
            for (image, _, _, reference), found in zip(scenes(), pairs(), strict=True)
        ),
        "answering": answers(summarizer),
        "scoring": (
            partial(
                summarizer.score,
                image=photo(name),
                query=RATE,
                evidence=evidence(name, RATE, with_reference),
                reference=photo(PHOTOS[name][0]) if with_reference else None,
            )
            for with_reference in (False, True)
            for name in PHOTOS
        ),
    }


def plans(stages: Stages) -> Iterator[Ask]:
    """Yield twelve requests for a plan: four ratings (one with a reference), four choices, four about regions."""
    names = [*PHOTOS]
    questions = [(RATE, names[0]), ("Please score this snapshot.", names[1]), (RATE, names[2])]
    questions += [(query, name) for query, name in zip(CHOICES, names, strict=False)]
    questions += [("Is the photo noisy? A. Yes B. No", names[3])]
    for name, query in zip(names, ("Rate the quality of the {}.", "Is the {} blurry? A. Yes B. No") * 2, strict=False):
        questions.append((query.format(PHOTOS[name][1][0]), name))
    for query, name in questions:
        yield partial(stages.planner, image=photo(name), query=query, reference=None, feedback="")
    yield partial(stages.planner, image=photo(names[0]), query=RATE, reference=photo("coffee.webp"), feedback="")


def scenes() -> Iterator[tuple[LoadedImage, list[str], Boxes, LoadedImage | None]]:
    """Yield twelve images with regions, boxes and a reference: the whole image, without and with one; two regions."""
    for number, name in enumerate(PHOTOS):
        yield photo(name), [GLOBAL], {}, photo(PHOTOS[name][0]) if number < 2 else None
    for name in PHOTOS:
        image, regions = photo(name), PHOTOS[name][1]
        yield image, regions, dict(zip(regions, halves(image), strict=True)), None


def halves(image: LoadedImage) -> tuple[Box, Box]:
    """Return the boxes of the left and the right half."""
    width, height = image.size
    return (0, 0, width // 2, height), (width // 2, 0, width, height)


def pairs() -> Iterator[Distortions]:
    """Yield twelve sets of one to four pairs of region and distortion, for the images of ``scenes``."""
    for number, (_, regions, _, _) in enumerate(scenes()):
        yield {region: FOUND[(number + place) % len(FOUND)] for place, region in enumerate(regions)}  # type: ignore[misc]


def answers(summarizer: Summarizer) -> Iterator[Ask]:
    """Yield twelve requests for an answer: six with options, three about yes and no, three in words."""
    queries = [*CHOICES, *CHOICES, *(f"Is the {PHOTOS[name][1][0]} blurry? A. Yes B. No" for name in islice(PHOTOS, 3))]
    queries += EXPLANATIONS
    names = [*PHOTOS, *PHOTOS]
    for query, name in zip(queries, names, strict=True):
        yield partial(
            summarizer.answer,
            image=photo(name),
            query=query,
            evidence=evidence(name, query, False),
            options=parse_options(query),
            reference=None,
        )


@cache
def photo(name: str) -> LoadedImage:
    """Return an example photo, loaded once."""
    return load(EXAMPLES / name)


@cache
def evidence(name: str, query: str, with_reference: bool) -> ExecutorOutput:
    """Return the evidence that the offline program collects for a question about a photo."""
    reference = EXAMPLES / PHOTOS[name][0] if with_reference else None
    found: Any = AgenticIQA.offline()(EXAMPLES / name, query, reference=reference).executor_evidence
    return ExecutorOutput.model_validate(found) if isinstance(found, dict) else found


def table(mode: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a Markdown table: a row for each stage, and the reasons of its rejected answers."""
    yield f"\nstructured_outputs: {mode}\n"
    yield "| stage | valid of asked | prompt tokens | answer tokens | seconds | why others were rejected |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for stage in dict.fromkeys(outcome.stage for outcome in outcomes):
        rows = [outcome for outcome in outcomes if outcome.stage == stage]
        reasons = Counter(shortened(row.reason) for row in rows if not row.is_valid)
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        read, written, seconds = (
            sum(getattr(row, name) for row in rows) / len(rows) for name in ("input_tokens", "output_tokens", "seconds")
        )
        valid = sum(row.is_valid for row in rows)
        yield f"| {stage} | {valid} of {len(rows)} | {read:.0f} | {written:.0f} | {seconds:.1f} | {told} |"


def shortened(reason: str, most: int = 90) -> str:
    """Return the beginning of a reason, as the cell of a table."""
    line = " ".join(reason.replace("|", "/").split())
    return line if len(line) <= most else f"{line[:most]}..."


if __name__ == "__main__":
    sys.exit(main())
