"""Write the folder of a finished run, as ``evaluate`` does, with small pictures and synthetic scores."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from agenticiqa.eval import report

KINDS = ("Blurs", "Noise", "Compression")


def made_row(image: Path, number: int, score: float | None, mos: float) -> dict[str, Any]:
    """Return a row of an image with one finding, one tool and level probabilities around its score."""
    kind = KINDS[number % len(KINDS)]
    finding = {"type": kind, "severity": "severe", "explanation": f"It is measured as {number}."}
    call = {"tool": "NIQE", "region": "Global", "distortion": "Overall", "raw": 1.0, "calibrated": score, "ms": 1.0}
    at = 3.0 if score is None else score
    weights = np.exp(-((np.arange(1, 6) - at) ** 2))
    return {
        "image": str(image),
        "image_sha256": hashlib.sha256(image.read_bytes()).hexdigest(),
        "reference": None,
        "name": image.name,
        "content": f"scene {number % 7}",
        "mos": mos,
        "distortion": kind.lower(),
        "level": str(number % 2 + 9),
        "quality_score": score,
        "quality_level": None if score is None else "Fair",
        "score_interval": None if score is None else {"80": [max(1, score - 0.5), min(5, score + 0.5)]},
        "quality_probs": {str(level): float(w) for level, w in enumerate(weights / weights.sum(), 1)},
        "quality_reasoning": f"{kind} of {image.name}",
        "final_answer": "Unable to determine" if score is None else score,
        "probability_source": "learned",
        "executor_evidence": {"distortion_analysis": {"Global": [finding]}, "tool_log": [{**call, "error": None}]},
        "timings_ms": {"planner": 1.0, "executor": 20.0 + number},
        "rejected_answers": {},
        "iteration_count": 0,
        "usage_by_stage": {},
    }


def write_run(folder: Path, rows: list[dict[str, Any]], backend: str = "offline") -> Path:
    """Return the three files of a run that a report reads."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    figures = report.summarize(rows) | {"data": "labels.csv", "split": None, "backend": backend}
    (folder / "report.json").write_text(json.dumps(figures))
    config = {stage: {"backend": backend} for stage in ("planner", "executor", "summarizer", "replan")}
    made = {"version": "0.1.0", "config": config, "split": "dev", "query": "Rate the perceptual quality of this image."}
    (folder / "run.json").write_text(json.dumps(made))
    return folder


def pictures(folder: Path, names: list[str]) -> list[Path]:
    """Return small noisy pictures, all different."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name in names:
        plain = random.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(plain).resize((96, 72)).save(folder / name)
    return [folder / name for name in names]
