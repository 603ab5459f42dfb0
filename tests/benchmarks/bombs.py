"""Measure time and memory for small files that decode to very many pixels.

    python tests/benchmarks/bombs.py [--only webp png_pair ...] [--folder KEPT]

`agenticiqa assess` runs in a new process for each file. The output has pixels, bytes, seconds of wall time and of
processor time (one core), the peak of the resident memory in MB, and the score with its notes or the error message.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 13_000  # pixels: 169 megapixels
Image.MAX_IMAGE_PIXELS = None


def drawn(side: int = SIDE, step: int = 8, mode: str = "RGB") -> Image.Image:
    """Return a few blobs, scaled up: they compress well but have several colors."""
    small = np.random.default_rng(1).integers(40, 216, (step, step, 3), np.uint8)
    return Image.fromarray(small).convert(mode).resize((side, side), Image.Resampling.NEAREST)


def photo(side: int) -> Image.Image:
    """Return the example photo, scaled up."""
    file = Path(__file__).parents[2] / "examples" / "coffee.webp"
    with Image.open(file) as opened:
        return opened.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)


def saved(image: Image.Image, file: Path, **how: object) -> Path:
    image.save(file, **how)  # type: ignore[arg-type]
    return file


def deep(file: Path) -> Path:
    """Write a gray image of 16 bits."""
    values = np.asarray(drawn(mode="L")).astype(np.uint16) * 257
    return saved(Image.fromarray(values), file)


def frames(file: Path, count: int, side: int) -> Path:
    first, *others = [Image.new("P", (side, side), number % 7) for number in range(count)]
    first.putpalette([value for number in range(256) for value in (number, 30 * number % 256, 90)])
    return saved(first, file, save_all=True, append_images=others, optimize=False)


def pages(file: Path, count: int) -> Path:
    first, *others = [Image.new("L", (64, 64), number % 250) for number in range(count)]
    return saved(first, file, save_all=True, append_images=others)


def pair(folder: Path, ending: str, make: Callable[[], Image.Image], **how: object) -> list[Path]:
    """Write an image with a square that its reference does not have."""
    image = make()
    reference = saved(image, folder / f"reference.{ending}", **how)
    third, half = image.width // 3, image.width // 2
    image.paste((200, 30, 30), (third, third, half, half))
    return [saved(image, folder / f"image.{ending}", **how), reference]


CASES: dict[str, Callable[[Path], list[Path]]] = {
    "webp_flat_126": lambda at: [saved(Image.new("RGB", (11_225, 11_225), "gray"), at / "flat.webp")],
    "webp_drawn_169": lambda at: [saved(drawn(), at / "drawn.webp", method=0)],
    "png_flat_169": lambda at: [saved(Image.new("RGB", (SIDE, SIDE), "gray"), at / "flat.png")],
    "png_drawn_169": lambda at: [saved(drawn(), at / "drawn.png")],
    "png_alpha_169": lambda at: [saved(drawn(mode="RGBA"), at / "alpha.png")],
    "png_16_bit_169": lambda at: [deep(at / "deep.png")],
    "png_pair_169": lambda at: pair(at, "png", drawn),
    "jpeg_pair_9": lambda at: pair(at, "jpg", lambda: photo(3_000), quality=90),
    "jpeg_pair_25": lambda at: pair(at, "jpg", lambda: photo(5_000), quality=90),
    "jpeg_photo_169": lambda at: [saved(photo(SIDE), at / "photo.jpg", quality=85)],
    "jpeg_progressive_169": lambda at: [saved(photo(SIDE), at / "steps.jpg", quality=85, progressive=True)],
    "jpeg_photo_200": lambda at: [saved(photo(14_142), at / "large.jpg", quality=85)],
    "jpeg_pair_169": lambda at: pair(at, "jpg", lambda: photo(SIDE), quality=90),
    "tiff_169": lambda at: [saved(drawn(), at / "drawn.tif", compression="tiff_lzw")],
    "tiff_pages": lambda at: [pages(at / "pages.tif", 3_000)],
    "gif_169": lambda at: [saved(Image.new("P", (SIDE, SIDE), 3), at / "flat.gif")],
    "gif_frames": lambda at: [frames(at / "frames.gif", 3_000, 600)],
    "webp_frames": lambda at: [saved(drawn(2_000), at / "frames.webp", save_all=True, append_images=[
        drawn(2_000, step) for step in range(2, 62)])],
}  # fmt: skip


def assessed(files: list[Path]) -> tuple[float, float, float, str]:
    """Return seconds of wall time and of processor time, megabytes, and the outcome in words."""
    reference = ["--reference", str(files[1])] if len(files) > 1 else []
    command = [sys.executable, "-m", "agenticiqa", "assess", str(files[0]), *reference, "--json", "-q"]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    with process:
        assert process.stdout
        assert process.stderr
        out, shown = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    try:
        found = json.loads(out)
        words = (
            out.decode()[:300]
            if "quality_score" not in found
            else f"{found['quality_score']:.2f} {' '.join(found['executor_evidence']['notes'])}"
        )
    except ValueError:
        words = f"status {process.returncode}: {shown.decode()[-300:].strip()}"
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, words


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--folder", type=Path, help="folder to keep the files in (default: a temporary one)")
    args = parser.parse_args()
    print("| file | megapixels | kB | s | s of processor | peak MB | |\n| --- |" + " ---: |" * 5 + " --- |")
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.only:
            folder = (args.folder or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            made = sorted(folder.iterdir()) or CASES[name](folder)
            size = Image.open(io.BytesIO(made[0].read_bytes())).size
            seconds, worked, megabytes, words = assessed(made)
            kilobytes = sum(file.stat().st_size for file in made) / 1000
            numbers = (size[0] * size[1] / 1e6, kilobytes, seconds, worked, megabytes)
            print(f"| {name} | {' | '.join(f'{number:.0f}' for number in numbers)} | {words} |", flush=True)


if __name__ == "__main__":
    main()
