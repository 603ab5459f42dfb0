"""Write tiny question benchmarks in the layouts of their archives."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from support import archives

QBENCH_ROWS: list[dict[str, Any]] = [
    {"question": "Is this image blurry?", "candidates": ["Yes", "No"], "correct_ans": "No", "type": 0, "concern": 0},
    {"question": "How is the lighting?", "candidates": ["High", "Low", "Fair"], "correct_ans": "High", "type": 2,
     "concern": 1},
    {"question": "What harms the sign?", "candidates": ["Noise", "Blur", "Glare", "Haze"], "correct_ans": "Blur",
     "type": 1, "concern": 2},
    {"question": "How rich are the colors of the door?", "candidates": ["Rich", "Poor", "Medium"],
     "correct_ans": "Poor", "type": 2, "concern": 3},
    {"question": "Is the wall noisy?", "candidates": ["Yes", "No"], "correct_ans": "Yes", "type": 0, "concern": 2},
]  # fmt: skip


def qbench(root: Path, *, rows: Sequence[Mapping[str, Any]] = QBENCH_ROWS, split: str = "dev") -> Path:
    folder = root / "LLVisionQA-QBench"
    made = [{"img_path": f"0000{number}.png", **row} for number, row in enumerate(rows)]
    archives.images(folder / "images", [row["img_path"] for row in made])
    (folder / f"llvisionqa_{split}.json").write_text(json.dumps(made))
    return folder


def hub(root: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write Parquet with images; the first differs by row, the others are the same picture."""
    folder = root / name
    archives.images(folder / "source", ["a.png"])
    image = {"bytes": (folder / "source/a.png").read_bytes(), "path": "a.png"}
    (folder / "data").mkdir()
    table = pyarrow.Table.from_pylist([{"image": image, **row} for row in rows])
    pyarrow.parquet.write_table(table, folder / "data/dev-00000-of-00001.parquet")
    return folder


def agenticiqa_eval(root: Path) -> Path:
    """Write one question of each track; the tool question has two options, the summarizer question a reference."""
    folder = root / "AgenticIQA-Eval"
    archives.images(folder / "images", ["1.png", "2.png", "2_ref.png"])
    graded = {"A": "None", "B": "Mild", "C": "Moderate", "D": "Severe"}
    rows = [
        {"question": "What object is explicitly mentioned in the query? The query is: Is the boat clear?",
         "options": {"A": "None", "B": "Boat"}, "answer": "B", "task_type": "planner"},
        {"question": "How severe is the distortion?", "options": graded, "answer": "B",
         "task_type": "executor_distortion"},
        {"question": "Is the 'NIMA' tool appropriate for sharpness?", "options": ["Yes", "No"], "answer": "No",
         "task_type": "executor_tool"},
    ]  # fmt: skip
    alone = [row | {"reference_mode": "NR", "image_path": "images/1.png", "reference_path": None} for row in rows]
    compared = {"question": "Which level?", "options": ["Good", "Poor"], "answer": "A", "task_type": "summarizer"}
    compared |= {"reference_mode": "FR", "image_path": "images/2.png", "reference_path": "images/2_ref.png"}
    (folder / "nr.json").write_text(json.dumps(alone))
    (folder / "fr.jsonl").write_text(json.dumps(compared) + "\n")
    return folder
