"""Measure the speed of the embedded metrics, compared with peers, and of whole assessments.

    python tests/benchmarks/tools.py                 everything; about three minutes
    python tests/benchmarks/tools.py metrics         only the table of metrics
    python tests/benchmarks/tools.py assessment      only whole assessments, small, cold and large

Everything runs on one core. A metric and its peers take turns, so that other load affects all of them. Their times are
processor times; the ratio is that of the minima. Assessments have wall time and processor time. Values are compared on
blurred, noisy and compressed gray pictures. For peers that are not installed, the output has the command to install
them; `pip install --no-deps` keeps a peer from replacing numpy.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path
from statistics import median

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - reads the number of threads when it loads
from PIL import Image, ImageFilter  # noqa: E402

Image.MAX_IMAGE_PIXELS = None

sys.path.insert(0, str(Path(__file__).parent))
from peers import PEERS, Metric, Peer  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZE = (512, 384)
MEGAPIXELS = {6: (3000, 2000), 12: (4243, 2828), 24: (6000, 4000), 100: (12247, 8165)}


@dataclass(frozen=True)
class Run:
    """Wall time and processor time in seconds, and peak memory in MB."""

    seconds: float
    processor: float
    peak_mb: float


def main() -> None:
    """Print the requested tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="all", choices=["all", "metrics", "assessment", "repeat"])
    parser.add_argument("--photo", type=Path, default=EXAMPLES / "chelsea.webp", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=15, help="runs of each metric (default: %(default)s)")
    args = parser.parse_args()
    use_one_core()
    if args.what == "repeat":
        assess(args.photo, args.repeats)
        return
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "pillow"))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"Python {sys.version.split()[0]}, {packages}, load of the machine {load:.1f}\n")
    photo = Image.open(args.photo).convert("RGB")
    if args.what != "assessment":
        compare_metrics(photo.resize(SIZE, Image.Resampling.BICUBIC), args.repeats)
    if args.what != "metrics":
        time_assessments(photo)


def use_one_core() -> None:
    """Bind this process and its children to one core, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def compare_metrics(photo: Image.Image, repeats: int) -> None:
    """Print a row for each metric and peer: minimum and median milliseconds, their ratio, difference of values."""
    from agenticiqa.programs.tools import TOOLS

    reference = np.asarray(photo.convert("L").convert("RGB"))
    versions = distorted(reference)
    print(
        f"{'metric':15} {'ours ms':>15}   {'peer':20} {'peer ms':>15} {'ratio':>6} {'difference':>11} {'tolerance':>9}"
    )
    for name, card in TOOLS.items():
        ours = card.measure if card.kind == "FR" else alone(card.measure)
        peers, problems = made([peer for peer in PEERS if peer.metric == name])
        mine, *theirs = times([ours, *(metric for _, metric in peers)], versions[0], reference, repeats)
        if not theirs:
            print(f"{name:15} {shown(mine)}")
        for (peer, metric), taken in zip(peers, theirs, strict=True):
            difference = max(abs(ours(image, reference) - metric(image, reference)) for image in versions)
            ratio = f"{min(mine) / min(taken):6.2f}"
            if peer.tolerance is None:
                verdict = f"{'-':>11} {'-':>9}  not the same: {peer.note}"
            else:
                verdict = f"{difference:11.2e} {peer.tolerance:9.0e}"
                verdict += "" if difference <= peer.tolerance else f"  differs{': ' * bool(peer.note)}{peer.note}"
            print(f"{name:15} {shown(mine)}   {peer.name:20} {shown(taken)} {ratio} {verdict}")
        for problem in problems:
            print(f"{'':15} {'':15}   {problem}")
    print()


def alone(measure: Callable[[np.ndarray], float]) -> Metric:
    """Return a no-reference metric that accepts and ignores a reference."""
    return lambda image, reference: measure(image)


def distorted(reference: np.ndarray) -> list[np.ndarray]:
    """Return a blurred, a noisy and a compressed version of a gray picture."""
    picture = Image.fromarray(reference[..., 0])
    noise = np.random.default_rng(0).normal(0, 10, reference.shape[:2])
    file = BytesIO()
    picture.save(file, "JPEG", quality=20)
    planes = [
        np.asarray(picture.filter(ImageFilter.GaussianBlur(1.5))),
        np.clip(np.rint(reference[..., 0] + noise), 0, 255).astype(np.uint8),
        np.asarray(Image.open(file)),
    ]
    return [np.repeat(plane[..., None], 3, axis=2) for plane in planes]


def made(peers: Sequence[Peer]) -> tuple[list[tuple[Peer, Metric]], list[str]]:
    """Return the peers that run here, and a line for each of the others."""
    running, problems = [], []
    picture = np.random.default_rng(0).integers(0, 256, (256, 256, 1), dtype=np.uint8).repeat(3, axis=2)
    for peer in peers:
        try:
            metric = peer.make()
            metric(picture, picture[::-1])
            running.append((peer, metric))
        except ImportError as error:
            problems.append(f"{peer.name:20} not installed: pip install {peer.install}  ({error})")
        except Exception as error:  # any fault of another package becomes a line of the table
            problems.append(f"{peer.name:20} fails: {type(error).__name__}: {error}")
    return running, problems


def times(metrics: Sequence[Metric], image: np.ndarray, reference: np.ndarray, repeats: int) -> list[list[float]]:
    """Return milliseconds of processor time for each run of each metric; metrics take turns."""
    taken: list[list[float]] = [[] for _ in metrics]
    for metric in metrics:
        metric(image, reference)
    for _ in range(repeats):
        for metric, found in zip(metrics, taken, strict=True):
            started = time.process_time()
            metric(image, reference)
            found.append((time.process_time() - started) * 1000)
    return taken


def shown(taken: Sequence[float]) -> str:
    """Return minimum and median as text."""
    return f"{min(taken):7.2f} {median(taken):7.2f}"


def time_assessments(photo: Image.Image) -> None:
    """Time the offline program on a small photo, warm and from the shell, and on photos of 6 to 100 megapixels."""
    print(f"{'offline assessment':34} {'min s':>8} {'median s':>9} {'processor s':>12} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.jpg"
        photo.resize(SIZE, Image.Resampling.BICUBIC).save(small, quality=92)
        print(row("512 x 384, warm", assessed_apart(small, 15)))
        command = [str(Path(sysconfig.get_path("scripts")) / "agenticiqa"), "assess", str(small)]
        if not Path(command[0]).exists():
            command[:1] = [sys.executable, "-m", "agenticiqa.eval.cli"]
        print(row("512 x 384, from the shell", [run_apart(command)[0] for _ in range(5)]))
        for size, (width, height) in MEGAPIXELS.items():
            large = Path(folder) / f"{size}.jpg"
            enlarged(photo, width, height).save(large, quality=95)
            runs = assessed_apart(large, 3)
            decoder = min(decoding(large) for _ in range(3))
            print(f"{row(f'{size} megapixels, {width} x {height}', runs)}   decoder {decoder:5.3f}")


def decoding(image: Path) -> float:
    """Return the processor seconds of Pillow's decoder, a lower limit for an assessment."""
    started = time.process_time()
    with Image.open(image) as opened:
        opened.load()
    return time.process_time() - started


def row(what: str, runs: Sequence[Run]) -> str:
    """Return a line for some runs."""
    seconds, processor = [run.seconds for run in runs], min(run.processor for run in runs)
    peak = max(run.peak_mb for run in runs)
    return f"{what:34} {min(seconds):8.3f} {median(seconds):9.3f} {processor:12.3f} {peak:8.0f}"


def enlarged(photo: Image.Image, width: int, height: int) -> Image.Image:
    """Return the photo in another size with some noise, as no camera gives an image as smooth as an enlargement."""
    pixels = np.asarray(photo.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    pixels += np.random.default_rng(0).integers(-4, 5, pixels.shape, dtype=np.int16)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def assessed_apart(image: Path, repeats: int) -> list[Run]:
    """Return runs of an image in a new process; the peak memory is that of all runs."""
    whole, output = run_apart([sys.executable, __file__, "repeat", "--photo", str(image), "--repeats", str(repeats)])
    return [Run(seconds, processor, whole.peak_mb) for seconds, processor in json.loads(output)]


def run_apart(command: Sequence[str]) -> tuple[Run, str]:
    """Run a command; return its cost and output."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    seconds = time.perf_counter() - started
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), output


def assess(image: Path, repeats: int) -> None:
    """Assess one image repeatedly; print wall time and processor time as JSON."""
    from agenticiqa.programs.assess import AgenticIQA

    program = AgenticIQA.offline()
    program(Image.open(EXAMPLES / "coffee.webp").convert("RGB").resize(SIZE))  # completes the setup
    taken = []
    for _ in range(repeats):
        started = time.perf_counter(), time.process_time()
        program(str(image))
        taken.append((time.perf_counter() - started[0], time.process_time() - started[1]))
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
