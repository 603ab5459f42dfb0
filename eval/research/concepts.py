"""What the questions ask about: each distortion in the terms of a question, and the images in which it is known.

A concept is shown by some kinds of ``distort`` and certainly absent from others. Questions about exposure, contrast and
color are asked only of photos with ordinary tones, those about blur only of photos that are sharp all over: elsewhere
the answer would not be known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agenticiqa.signatures.categories import BLURS, BRIGHTNESS, COLOR, COMPRESSION, CONTRAST, NOISE, SHARPNESS
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
    "blur": Concept(BLURS, ("gaussian_blur", "defocus", "motion_blur"), ("white_noise", "desaturate"), "sharp"),
    "defocus": Concept(BLURS, ("defocus", "gaussian_blur"), ("white_noise", "darken"), "sharp"),
    "motion_blur": Concept(BLURS, ("motion_blur",), ("white_noise", "color_cast"), "sharp"),
    "noise": Concept(NOISE, ("white_noise", "impulse_noise", "chroma_noise"), ("gaussian_blur", "desaturate")),
    "grain": Concept(NOISE, ("white_noise", "speckle_noise"), ("defocus", "color_cast")),
    "impulse_noise": Concept(NOISE, ("impulse_noise",), ("gaussian_blur", "brighten")),
    "compression": Concept(COMPRESSION, ("jpeg", "webp"), ("white_noise", "desaturate")),
    "blocking": Concept(COMPRESSION, ("jpeg",), ("gaussian_blur", "white_noise")),
    "banding": Concept(COMPRESSION, ("banding",), ("gaussian_blur", "white_noise")),
    "dark": Concept(BRIGHTNESS, ("darken",), ("brighten", "gaussian_blur"), "neutral"),
    "bright": Concept(BRIGHTNESS, ("brighten",), ("darken", "gaussian_blur"), "neutral"),
    "exposure": Concept(BRIGHTNESS, ("darken", "brighten"), ("white_noise", "gaussian_blur"), "neutral"),
    "low_contrast": Concept(CONTRAST, ("low_contrast",), ("high_contrast", "white_noise"), "neutral"),
    "high_contrast": Concept(CONTRAST, ("high_contrast",), ("low_contrast", "jpeg"), "neutral"),
    "faded": Concept(COLOR, ("desaturate",), ("oversaturate", "gaussian_blur"), "neutral"),
    "oversaturated": Concept(COLOR, ("oversaturate",), ("desaturate", "jpeg"), "neutral"),
    "cast": Concept(COLOR, ("color_cast",), ("white_noise", "gaussian_blur"), "neutral"),
    "oversharpened": Concept(SHARPNESS, ("oversharpen",), ("gaussian_blur", "darken"), "sharp"),
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
