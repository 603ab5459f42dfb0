"""Define peers: other packages that compute the same as an embedded metric.

The function ``make`` of a peer imports its package and returns a function of two uint8 RGB images; the second is the
reference, which no-reference peers ignore. ``tolerance`` limits the difference from our value on gray images, which
have the same luma in all packages. It is ``None`` if the peer is known to compute something else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Peer:
    """The version of a metric in another package; ``note`` describes the difference."""

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
    Peer("SSIM", "skimage", SKIMAGE, _skimage_ssim, 1e-2, "pools over the borders, too"),
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
    Peer("SSIM", "piq", PIQ, partial(_piq, "ssim"), 2e-3),
    Peer("MS-SSIM", "piq", PIQ, partial(_piq, "multi_scale_ssim"), 2e-3),
    Peer("GMSD", "piq", PIQ, partial(_piq, "gmsd"), 1e-3),
    Peer("FSIM", "piq", PIQ, partial(_piq, "fsim"), 5e-3),
    Peer("VIF", "piq vif_p", PIQ, partial(_piq, "vif_p"), None, "in the pixel domain, ours in the wavelet domain"),
    Peer("HaarPSI", "piq", PIQ, partial(_piq, "haarpsi"), 1e-3),
    Peer("MDSI", "piq", PIQ, partial(_piq, "mdsi"), 1e-3),
)
