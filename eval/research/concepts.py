"""What the questions ask about: each distortion in the terms of a question, and the images in which it is known.

A concept is shown by some kinds of ``distort`` and certainly absent from others. Questions about exposure, contrast and
color are asked only of photos with ordinary tones, those about blur only of photos that are sharp all over: elsewhere
the answer would not be known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agenticiqa.signatures.vocabulary import Distortion


@dataclass(frozen=True)
class Concept:
    """One distortion as questions name it.

    ``shown_by`` are the kinds of ``distort`` that show it, ``absent_in`` other visible distortions that do not.
    ``needs`` is what a photo must be ("sharp", "neutral", or "" for any), so that the pristine photo is without it.
    ``category`` is the category that an answer in words must name.
    """

    category: Distortion
    shown_by: tuple[str, ...]
    absent_in: tuple[str, ...]
    needs: str = ""


CONCEPTS: Mapping[str, Concept] = {
    "blur": Concept("Blurs", ("gaussian_blur", "defocus", "motion_blur"), ("white_noise", "desaturate"), "sharp"),
    "defocus": Concept("Blurs", ("defocus", "gaussian_blur"), ("white_noise", "darken"), "sharp"),
    "motion_blur": Concept("Blurs", ("motion_blur",), ("white_noise", "color_cast"), "sharp"),
    "noise": Concept("Noise", ("white_noise", "impulse_noise", "chroma_noise"), ("gaussian_blur", "desaturate")),
    "grain": Concept("Noise", ("white_noise", "speckle_noise"), ("defocus", "color_cast")),
    "impulse_noise": Concept("Noise", ("impulse_noise",), ("gaussian_blur", "brighten")),
    "compression": Concept("Compression", ("jpeg", "webp"), ("white_noise", "desaturate")),
    "blocking": Concept("Compression", ("jpeg",), ("gaussian_blur", "white_noise")),
    "banding": Concept("Compression", ("banding",), ("gaussian_blur", "white_noise")),
    "dark": Concept("Brightness change", ("darken",), ("brighten", "gaussian_blur"), "neutral"),
    "bright": Concept("Brightness change", ("brighten",), ("darken", "gaussian_blur"), "neutral"),
    "exposure": Concept("Brightness change", ("darken", "brighten"), ("white_noise", "gaussian_blur"), "neutral"),
    "low_contrast": Concept("Contrast", ("low_contrast",), ("high_contrast", "white_noise"), "neutral"),
    "high_contrast": Concept("Contrast", ("high_contrast",), ("low_contrast", "jpeg"), "neutral"),
    "faded": Concept("Color distortions", ("desaturate",), ("oversaturate", "gaussian_blur"), "neutral"),
    "oversaturated": Concept("Color distortions", ("oversaturate",), ("desaturate", "jpeg"), "neutral"),
    "cast": Concept("Color distortions", ("color_cast",), ("white_noise", "gaussian_blur"), "neutral"),
    "oversharpened": Concept("Sharpness", ("oversharpen",), ("gaussian_blur", "darken"), "sharp"),
}
MAIN = (
    "blur",
    "noise",
    "compression",
    "dark",
    "bright",
    "faded",
    "oversaturated",
    "cast",
    "low_contrast",
    "oversharpened",
)
"""The concepts that a question about the main distortion is asked of: one kind of each is certainly what is worst."""
