"""AVT-AI: 135 images by five generators from 27 prompts, and 11 photos that match the prompts.

``quality.csv``, ratings of image quality on 1..5, higher is better; ``images/prompts.csv`` has the prompts::

    image_key,rating,std,prompt          ID,prompts,category
    craiyon/p03,2.24,0.8306,p03          p03,A blue bird and a brown bear,Drawbench

The image of ``craiyon/p03`` is ``images/craiyon/p03.png``. The folder of ``quality.csv`` is ``quality_evaluation``, at
other commits ``evaluation_quality_appeal``. Ratings of appeal are not read. A prompt is a scene. The generator
``own`` marks the photos.
"""

from collections.abc import Iterator
from pathlib import Path

from agenticiqa.eval.tasks.tables import csv_rows
from agenticiqa.eval.tasks.task import Rated, Task

PLACES = ("quality_evaluation/quality.csv", "evaluation_quality_appeal/quality.csv")


def _read(folder: Path) -> Iterator[Rated]:
    prompts = {row["ID"]: row["prompts"].strip() for row in csv_rows(folder / "images/prompts.csv")}
    labels = next((folder / place for place in PLACES if (folder / place).is_file()), None)
    if labels is None:
        raise FileNotFoundError(f"found neither {' nor '.join(PLACES)}")
    for row in csv_rows(labels):
        yield Rated(
            image=f"images/{row['image_key']}.png",
            score=float(row["rating"]),
            content=prompts[row["prompt"]],
            std=float(row["std"]),
            generator=row["image_key"].split("/")[0],
        )


AVT_AI = Task(
    name="avt-ai",
    title="AVT-AI, generated images and photos",
    kind="AI-generated",
    source="github.com/Telecommunication-Telemedia-Assessment/avt_ai_images",
    folder="avt_ai_images",
    files=("images/prompts.csv",),
    column="rating",
    scale=(1, 5),
    lower_is_better=False,
    count=146,
    read=_read,
    known=("craiyon/p03.png", 2.24),
    sha256=dict.fromkeys(PLACES, "cef3cbecab1ce31934584717094d3542a8fd42ca753712755647cb6e9435e314"),
)
