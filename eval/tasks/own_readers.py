"""Read the label files of data sets that need more than a table: names on disk, two tables, a check of their own.

``catalog`` describes the archives. Each function reads one as ``readers`` does.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agenticiqa.eval.tasks.readers import Cells, csv_rows, mat_rows, sheet_rows, text_rows

LIVE_R2_FOLDERS = {"jp2k": 227, "jpeg": 233, "wn": 174, "gblur": 174, "fastfading": 174}  # images in each
LIVE_MD_PARTS = {"Part 1": "blurjpeg", "Part 2": "blurnoise"}  # the folder of the images
LIVE_MD_DAMAGE = re.compile(r"_(blur|jpeg|noise)(\d)")
CSIQ_NAMES = {  # folder and word in the file names, by dst_type
    "noise": ("awgn", "AWGN"),
    "blur": ("blur", "BLUR"),
    "contrast": ("contrast", "contrast"),
    "fnoise": ("fnoise", "fnoise"),
    "jpeg": ("jpeg", "JPEG"),
    "jpeg 2000": ("jpeg2000", "jpeg2000"),
}
CLIVE_TRAINING = 7  # images that trained the raters
AVT_AI_PLACES = ("quality_evaluation/quality.csv", "evaluation_quality_appeal/quality.csv")  # at different commits


def live_r2_rows(folder: Path, files: Sequence[str], variables: Sequence[str]) -> Iterator[Cells]:
    """Yield the variables with the kind and the number of each image: they are in the order of the folders."""
    images = [(kind, number) for kind, count in LIVE_R2_FOLDERS.items() for number in range(1, count + 1)]
    for (kind, number), cells in zip(images, mat_rows(folder, files, variables), strict=True):
        yield {**cells, "kind": kind, "number": number}


def live_md_rows(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
    """Yield the scores of both parts with reference, distortions, and the sum of the strengths in the image's name."""
    for part, images in LIVE_MD_PARTS.items():
        of_part = [file for file in files if file.startswith(part)]
        references = [row["refimgs"] for row in mat_rows(folder, of_part, ("refimgs",))]
        for cells in mat_rows(folder, of_part, ("distimgs", "ref4dist", "DMOSscores")):
            image, reference = cells["distimgs"], references[int(cells["ref4dist"]) - 1]
            damage = dict(LIVE_MD_DAMAGE.findall(image))
            if not damage or not image.startswith(f"{reference.removesuffix('.bmp')}_"):
                raise ValueError(f"{image} is not a distorted copy of {reference}")
            strength = sum(map(int, damage.values()))
            place = {"images": f"{part}/{images}", "reference": reference}
            yield {**cells, **place, "kind": "+".join(damage), "strength": strength}


def csiq_rows(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
    """Yield the rows of the sheet with the folder and the word that stand for the distortion in paths."""
    columns = ("image", "dst_type", "dst_lev", "dmos_std", "dmos")
    for cells in sheet_rows(folder, files, columns, "all_by_image"):
        kind, word = CSIQ_NAMES[cells["dst_type"]]
        yield {**cells, "kind": kind, "word": word, "strength": int(cells["dst_lev"])}


def tid_rows(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
    """Yield the lines with the scene and the names of both files on disk, which may differ from the list in case."""
    distorted, references = (_by_lower_case(folder / name) for name in ("distorted_images", "reference_images"))
    for cells in text_rows(folder, files, ("MOS", "listed", "std")):
        listed = cells["listed"].lower()
        scene = listed.split("_")[0]
        image = distorted.get(listed, cells["listed"])
        reference = references.get(f"{scene}.bmp", f"{scene.upper()}.BMP")
        yield {**cells, "image": image, "reference": reference, "scene": scene.upper()}


def pipal_rows(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
    """Yield the lines of all files in the folder of labels, with the folder of each image."""
    folders = {file.name: file.parent.name for file in folder.glob("Distortion_[1-4]/*.bmp")}
    for labels in sorted(file for name in files for file in (folder / name).glob("*.txt")):
        for cells in text_rows(labels.parent, [labels.name], ("name", "Elo"), ","):
            yield {**cells, "folder": folders.get(cells["name"], "Distortion_1")}


def clive_rows(folder: Path, files: Sequence[str]) -> list[Cells]:
    """Return the rows without the images that trained the raters. Raises ValueError if these are not the first."""
    rows = mat_rows(folder, files, ("AllImages_release", "AllMOS_release", "AllStdDev_release"))
    training = [row["AllImages_release"] for row in rows[:CLIVE_TRAINING]]
    if not all(name.startswith("t") for name in training):
        raise ValueError(f"expected t1 to t{CLIVE_TRAINING} as the first images, found {', '.join(training)}")
    return rows[CLIVE_TRAINING:]


def koniq10k_rows(folder: Path, files: Sequence[str]) -> list[Cells]:
    """Return the rows. Raises ValueError if the scores do not follow the mean of the votes."""
    rows = list(csv_rows(folder, files))
    scores = [float(row["MOS"]) for row in rows]
    votes = [sum(number * float(row[f"c{number}"]) for number in range(1, 6)) for row in rows]
    if np.corrcoef(votes, scores)[0, 1] < 0.5:
        raise ValueError("MOS does not follow the mean of the votes c1 to c5")
    return rows


def avt_ai_rows(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
    """Yield the ratings, from either place, with the text of the prompt."""
    texts = {row["ID"]: row["prompts"].strip() for row in csv_rows(folder, files)}
    labels = next((place for place in AVT_AI_PLACES if (folder / place).is_file()), None)
    if labels is None:
        raise FileNotFoundError(f"found neither {' nor '.join(AVT_AI_PLACES)}")
    for row in csv_rows(folder, [labels]):
        yield {**row, "text": texts[row["prompt"]]}


def _by_lower_case(folder: Path) -> dict[str, str]:
    """Return the names of a folder's files by lower-case name; empty if the folder does not exist."""
    return {file.name.lower(): file.name for file in folder.iterdir()} if folder.is_dir() else {}
