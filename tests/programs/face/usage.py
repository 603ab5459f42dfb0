"""How a user's typed code uses the package; test_face.py has mypy check it against an installed wheel.

Nothing here runs. ``assert_type`` fails where a type is Any.
"""

from pathlib import Path
from typing import Literal, assert_type

import dspy
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import agenticiqa
from agenticiqa import AgenticIQA, Assessment, Config, Job, ScoreFusion, assess_many
from agenticiqa.eval import Evaluation, LabeledImage, evaluate, read_labels
from agenticiqa.eval.optimize import Tuned, TuningSettings, examples_of, freeze, metric, optimize
from agenticiqa.metrics import measure, niqe, ssim
from agenticiqa.programs.images import LoadedImage


async def use(program: AgenticIQA) -> None:
    assert_type(agenticiqa.__version__, str)
    assert_type(AgenticIQA.offline(), AgenticIQA)
    assert_type(AgenticIQA.from_config("mine.yaml"), AgenticIQA)
    result = program("photo.jpg", "Is it sharp?", reference=Path("pristine.png"), resize_reference=True)
    assert_type(result, Assessment)
    assert_type(await program.acall(b"bytes", query=None), Assessment)
    assert_type(result.quality_score, float | None)
    assert_type(result.final_answer, float | str)
    assert_type(result.image, LoadedImage)
    assert_type(result.timings_ms, dict[str, float])
    for job, outcome in assess_many(program, ["a.png", Job("b.png", "Is it noisy?")], workers=2):
        assert_type(job, Job)
        if isinstance(outcome, Assessment):
            assert_type(outcome, Assessment)
    for job, _ in assess_many(program, Path("album")):
        assert_type(job, Job)
    agenticiqa.draw_assessment(result, "map.png")
    graph = agenticiqa.build_graph(program, max_replan_iterations=3)
    graph.invoke({"query": "Is it sharp?", "image_path": "photo.jpg"})
    agenticiqa.build_graph("mine.yaml")  # type: ignore[arg-type]
    program("photo.jpg", question="Is it sharp?")  # type: ignore[call-arg]
    agenticiqa.AgenticIQa  # type: ignore[attr-defined]  # noqa: B018
    assert_type(agenticiqa.Config().in_mode(), Config)
    assert_type(ScoreFusion(eta=2.0), ScoreFusion)
    assert_type(result.score_interval, dict[Literal["80", "95"], tuple[float, float]] | None)
    labels = read_labels("labels.csv")
    assert_type(labels, list[LabeledImage])
    assert_type(evaluate(AgenticIQA(lm=dspy.LM("openai/gpt-4o")), labels), Evaluation)
    assert_type(optimize(program, labels, TuningSettings(budget=40), reflection=dspy.LM("openai/gpt-4o")), Tuned)
    assert_type(optimize(freeze(program), labels, TuningSettings(optimizer=dspy.BootstrapFewShot(metric))), Tuned)
    assert_type(len(examples_of(labels)), int)
    agenticiqa.add_tool(program, "MINE", lambda image: float(image.mean()), curve=lambda value: value / 255 * 4 + 1)


def measured(pixels: NDArray[np.uint8]) -> None:
    round(ssim("a.png", Path("b.png")), 4)
    assert_type(niqe(Image.new("RGB", (64, 64))), float)
    assert_type(measure("ssim", b"bytes", pixels), float)
    assert_type(ssim(["a.png", "b.png"], "c.png"), NDArray[np.float64])
    assert_type(measure("niqe", ("a.png", pixels)), NDArray[np.float64])
    assert_type(niqe(pixels), float | NDArray[np.float64])
