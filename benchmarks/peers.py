"""Compare the embedded metrics with peers, other packages that compute the same: processor time and values.

    python benchmarks/peers.py [--photo FILE] [--repeats 15]

Everything runs on one core. A metric and its peers take turns, so that other load affects all of them; the ratio is
that of the minima. Values are compared on blurred, noisy and compressed gray pictures, which have the same luma in all
packages. For peers that are not installed, the output has the command to install them; `pip install --no-deps` keeps a
peer from replacing numpy.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - reads the number of threads when it loads
from PIL import Image, ImageFilter  # noqa: E402

Metric = Callable[[np.ndarray, np.ndarray], float]
EXAMPLES = Path(__file__).parents[1] / "examples"
SIZE = (512, 384)


@dataclass(frozen=True)
class Peer:
    """The version of a metric in another package.

    ``make`` imports the package and returns a function of an image and its reference, both uint8 RGB; no-reference
    peers ignore the reference. ``tolerance`` limits the difference from our value; it is ``None`` if the peer is known
    to compute something else. ``note`` describes the difference.
    """

    metric: str
    name: str
    install: str
    make: Callable[[], Metric]
    tolerance: float | None
    note: str = ""


def _first_channel(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(image[..., 0])


def _skimage_blur() -> Metric:
    from skimage.measure import blur_effect

    return lambda image, reference: float(blur_effect(image, channel_axis=2))


def _skimage_psnr() -> Metric:
    from skimage.metrics import peak_signal_noise_ratio

    return lambda image, reference: float(peak_signal_noise_ratio(reference, image, data_range=255))


def _skimage_ssim() -> Metric:
    from skimage.metrics import structural_similarity

    def ssim(image: np.ndarray, reference: np.ndarray) -> float:
        return float(
            structural_similarity(
                _first_channel(reference),
                _first_channel(image),
                gaussian_weights=True,
                sigma=1.5,
                use_sample_covariance=False,
                data_range=255,
            )
        )

    return ssim


def _brisque() -> Metric:
    from brisque import BRISQUE

    assess = BRISQUE(url=False)
    return lambda image, reference: float(assess.score(image))


def _cv2_brisque() -> Metric:
    import cv2

    cv2.setNumThreads(1)
    features = cv2.quality.QualityBRISQUE_computeFeatures
    return lambda image, reference: float(features(image)[0, 0])


def _pypiqe() -> Metric:
    from pypiqe import piqe

    return lambda image, reference: float(piqe(np.ascontiguousarray(image[..., ::-1]))[0])


def _cv2(name: str) -> Metric:
    import cv2

    cv2.setNumThreads(1)
    compute = getattr(cv2.quality, f"Quality{name}_compute")
    return lambda image, reference: float(compute(_first_channel(reference), _first_channel(image))[0][0])


def _cv2_psnr() -> Metric:
    import cv2

    cv2.setNumThreads(1)
    return lambda image, reference: float(cv2.PSNR(reference, image))


def _blazediff(metric: str) -> Metric:
    from blazediff_ssim import compare_rgba

    def compare(image: np.ndarray, reference: np.ndarray) -> float:
        height, width = image.shape[:2]
        first, second = (np.dstack([each, np.full((height, width), 255, np.uint8)]) for each in (reference, image))
        return float(compare_rgba(first.tobytes(), second.tobytes(), width, height, metric=metric).score)

    return compare


def _piq(name: str) -> Metric:
    import piq
    import torch

    torch.set_num_threads(1)
    metric = getattr(piq, name)

    def compare(image: np.ndarray, reference: np.ndarray) -> float:
        tensors = [torch.from_numpy(each.transpose(2, 0, 1)[None] / 255.0).float() for each in (image, reference)]
        with torch.no_grad():
            return float(metric(*tensors, data_range=1.0))

    return compare


SKIMAGE, CV2, BLAZEDIFF, PIQ = (
    "scikit-image",
    "opencv-contrib-python-headless",
    "blazediff-ssim",
    "piq torch torchvision",
)

PEERS = (
    Peer(
        "BRISQUE", "brisque", '"numpy<2.4" brisque', _brisque, None, "another model, and halving without antialiasing"
    ),
    Peer("BRISQUE", "cv2 features", CV2, _cv2_brisque, None, "features only: the wheel has no model"),
    Peer("PIQE", "pypiqe", "--no-deps pypiqe", _pypiqe, 0.002),
    Peer("BLUR-EXTENT", "skimage blur_effect", SKIMAGE, _skimage_blur, 1e-6),
    Peer("PSNR", "skimage", SKIMAGE, _skimage_psnr, 1e-9),
    Peer("PSNR", "cv2.PSNR", CV2, _cv2_psnr, 1e-9),
    Peer("SSIM", "skimage", SKIMAGE, _skimage_ssim, 1e-6),
    Peer("SSIM", "cv2.quality", CV2, partial(_cv2, "SSIM"), 1e-2, "pools over the borders, too"),
    Peer(
        "SSIM",
        "blazediff-ssim",
        BLAZEDIFF,
        partial(_blazediff, "ssim"),
        None,
        "halves the image first, as it is larger than 256 pixels",
    ),
    Peer("MS-SSIM", "blazediff-ssim", BLAZEDIFF, partial(_blazediff, "msssim"), 5e-3),
    Peer("GMSD", "cv2.quality", CV2, partial(_cv2, "GMSD"), 1e-3),
    Peer("PSNR", "piq", PIQ, partial(_piq, "psnr"), 1e-3),
    Peer("SSIM", "piq", PIQ, partial(_piq, "ssim"), None, "halves the image first, as it is larger than 256 pixels"),
    Peer("MS-SSIM", "piq", PIQ, partial(_piq, "multi_scale_ssim"), 2e-3),
    Peer("GMSD", "piq", PIQ, partial(_piq, "gmsd"), 1e-3),
    Peer("FSIM", "piq", PIQ, partial(_piq, "fsim"), 5e-3),
    Peer("VIF", "piq vif_p", PIQ, partial(_piq, "vif_p"), None, "in the pixel domain, ours in the wavelet domain"),
    Peer("HaarPSI", "piq", PIQ, partial(_piq, "haarpsi"), 1e-3),
    Peer("MDSI", "piq", PIQ, partial(_piq, "mdsi"), 1e-3),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--photo", type=Path, default=EXAMPLES / "chelsea.webp", help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=15, help="runs of each metric (default: %(default)s)")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compare_metrics(Image.open(args.photo).convert("RGB").resize(SIZE, Image.Resampling.BICUBIC), args.repeats)


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
                if difference > peer.tolerance:
                    verdict += f"  differs ({peer.note or 'no reason known'})"
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


if __name__ == "__main__":
    main()
