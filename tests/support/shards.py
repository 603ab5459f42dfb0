"""Run shards with a program that returns instant results."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs.batch.job import SharedQuestion
from agenticiqa.programs.scale.run_shards import RunOfShards, assess_here, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardRun
from support.instant import instant

QUESTION = SharedQuestion("Rate the perceptual quality of this image.")


def png(gray: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (gray, gray, gray)).save(file, "PNG")
    return file.getvalue()


def write_tar(path: Path, images: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in images.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def run_of(names: Sequence[str], output: str = "scores", images: int = 4, **changes: Any) -> RunOfShards:
    fields = {"question": QUESTION, "settings": {"version": "1"}, "make": instant, **changes}
    run = ShardRun(config=Config(), output=output, workers=2, names=tuple(names), **fields)
    return run_shards(run, assess_here, images)
