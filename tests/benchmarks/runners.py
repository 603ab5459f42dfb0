"""Assess the same photos with each runner, offline and with a scripted model, and compare all rows exactly.

::

    python tests/benchmarks/runners.py FOLDER [--images 500] [--kinds offline model] [--runners "Ray, 2 workers" ...]

The command ``agenticiqa assess`` assesses copies of the first photos of the folder, at most ``--side`` (192) pixels
wide and high. The model is a loopback server with answers that depend on the photo. Each runner gets a line with its
number of rows, and how many differ from those of one process. Times are not compared.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]

from PIL import Image
from shard_kills import TRIES, two_nodes

from agenticiqa.programs.images import find_images
from agenticiqa.programs.scale.table import shard_rows
from support.fake_server import fake_server
from support.rated_album import Rater, rating_configuration

ALONE = "one process"
RUNNERS: dict[str, list[str]] = {
    ALONE: ["--workers", "1"],
    "2 processes or threads": ["--workers", "2"],
    **{f"Ray, {n} workers": ["--engine", "ray", "--workers", str(n)] for n in (1, 2, 4)},
    "Ray, two nodes": ["--engine", "ray"],
}
KINDS = ("offline", "model")
TIMES = ("ms", "seconds", "timings_ms")
COMMAND = [sys.executable, "-c", "import sys; from agenticiqa.eval.cli import main; sys.exit(main())"]


def untimed(value: Any) -> Any:
    """Return a row without its times."""
    if isinstance(value, dict):
        return {name: untimed(each) for name, each in value.items() if name not in TIMES}
    return [untimed(each) for each in value] if isinstance(value, list) else value


def assessed(album: Path, output: Path, shard_images: int, words: Sequence[str]) -> dict[str, str]:
    """Return the row of each photo, as written by the command."""
    command = [*COMMAND, "assess", str(album), "--parquet", str(output), "--no-cache"]
    command += ["--shard-images", str(shard_images), *words]
    for _ in range(TRIES):  # as in ``patiently``; the same command continues
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            break
    return {row["image"]: json.dumps(untimed(row), sort_keys=True) for row in shard_rows(output)}


def copies(folder: Path, images: int, side: int, into: Path) -> list[str]:
    """Write small PNG copies of photos and return their names."""
    into.mkdir()
    for number, path in enumerate(find_images([folder])[:images]):
        with Image.open(path) as photo:
            photo.draft("RGB", (side, side))
            small = photo.convert("RGB")
            small.thumbnail((side, side))
            small.save(into / f"{number:04}.png")
    return sorted(path.name for path in into.iterdir())


def compare(
    folder: Path, images: int, side: int, names: Sequence[str], kinds: Sequence[str] = KINDS, shard_images: int = 25
) -> int:
    """Print a line for each runner, without and with a model; return how many rows differ."""
    wrong = 0
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        album = Path(place) / "album"
        made = copies(folder, images, side, album)
        qualities = {name: 1 + 4 * number / len(made) for number, name in enumerate(made)}
        server = stack.enter_context(fake_server(Rater(album, qualities)))
        config = str(rating_configuration(Path(place), server.url))
        for kind in kinds:
            more, expected = ["--config", config] if kind == "model" else [], dict[str, str]()
            for name in dict.fromkeys((ALONE, *names)):
                began, output = time.perf_counter(), Path(place) / f"{kind} {name}"
                with ExitStack() as cluster:
                    if "nodes" in name:
                        cluster.enter_context(two_nodes())
                    found = assessed(album, output, shard_images, [*more, *RUNNERS[name]])
                expected = expected or found
                missing = len(expected.keys() - found.keys())
                different = sum(expected.get(image) != row for image, row in found.items())
                wrong += missing + different
                took = time.perf_counter() - began
                print(
                    f"{kind:7}  {name:22}  {len(found)} rows, {missing} missing, {different} differ  {took:.0f} s",
                    flush=True,
                )
    return wrong


def main() -> int:
    """Run the comparison; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--side", type=int, default=192)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=[*RUNNERS])
    args = parser.parse_args()
    return int(bool(compare(args.folder, args.images, args.side, args.runners, args.kinds)))


if __name__ == "__main__":
    sys.exit(main())
