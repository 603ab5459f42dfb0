"""Data sets of gray images in a folder ``album``, each with the names of its images."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.shards import png, write_tar


def tar_shards(folder: Path) -> list[str]:
    write_tar(folder / "a.tar", {f"{number}.png": png(20 * number) for number in range(2)} | {"0.json": b"{}"})
    return [f"album/a.tar/{number}.png" for number in range(2)]


def table_of_paths(folder: Path) -> list[str]:
    pq.write_table(pa.table({"path": [f"{number}.png" for number in range(5)]}), folder / "paths.parquet")
    return [f"album/{number}.png" for number in range(5)]


def table_of_images(folder: Path) -> list[str]:
    images = [{"bytes": png(20 * number), "path": None} for number in range(5)]
    pq.write_table(pa.table({"label": [0] * 5, "image": images}), folder / "images.parquet", row_group_size=3)
    return [f"album/images.parquet#{number}" for number in range(5)]


def csv_of_paths(folder: Path) -> list[str]:
    (folder / "paths.csv").write_text("image,query\n" + "".join(f"{n}.png,\n" for n in range(5)))
    return [f"album/{number}.png" for number in range(5)]


def json_lines_of_paths(folder: Path) -> list[str]:
    lines = [json.dumps({"image": f"{number}.png", "query": None, "mos": 3}) for number in range(5)]
    (folder / "paths.jsonl").write_text("\n".join(lines))
    return [f"album/{number}.png" for number in range(5)]


def saved_data_set(folder: Path) -> list[str]:
    datasets = pytest.importorskip("datasets")
    images = [{"bytes": png(20 * number), "path": None} for number in range(5)]
    features = datasets.Features({"image": datasets.Image()})
    datasets.Dataset.from_dict({"image": images}, features=features).save_to_disk(folder / "saved")
    return [f"album/saved#{number}" for number in range(5)]
