"""The words of questions and options that speak of something measurable, and what each of them says."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

Sense = Literal["fault", "virtue", "more", "neutral"]
Subject = DetectableDistortion | Literal["clarity", "any", "quality", "unmeasured"]

CLARITY: tuple[DetectableDistortion, ...] = ("Blurs", "Sharpness")
# The kinds on the two sides of the undisturbed picture, by what can be too much or too little.
UPPER: dict[Subject, str] = {
    "Brightness change": "overexposure",
    "Color distortions": "oversaturation",
    "Contrast": "high contrast",
    "Sharpness": "oversharpening",
    "clarity": "oversharpening",
}
LOWER: dict[Subject, str] = {
    "Brightness change": "underexposure",
    "Color distortions": "desaturation",
    "Contrast": "low contrast",
    "Sharpness": "lack of sharpness",
}


@dataclass(frozen=True)
class Meaning:
    """What a term speaks of, and whether it finds fault with it ("blurry"), praises it ("sharp") or just names it.

    ``kind`` narrows a fault to one kind of its category ("overexposure"); a virtue with a kind is the absence of that
    kind ("colourful": no desaturation). The sense ``"more"`` is a direction without a judgement ("bright").
    """

    subject: Subject
    sense: Sense
    kind: str = ""

    @property
    def categories(self) -> tuple[DetectableDistortion, ...]:
        """The categories whose measurements decide; none for the overall quality and for what is not measured."""
        if self.subject == "clarity":
            return CLARITY
        if self.subject == "any":
            return DETECTABLE
        if self.subject == "quality" or self.subject == "unmeasured":
            return ()
        return (self.subject,)

    @property
    def scale(self) -> Subject:
        """One name for all that can be put on the same scale: blur and sharpness can, blur and noise cannot."""
        return "clarity" if self.subject in CLARITY else self.subject


@dataclass(frozen=True)
class Term:
    """A term found in a text at ``[start, end)``."""

    text: str
    start: int
    end: int
    meaning: Meaning


# "*" stands for any ending, a space for blanks or hyphens; "colour" is also found as "color".
LEXICON: dict[Meaning, str] = {
    Meaning("Blurs", "fault"): "blur*, fuzzy",
    Meaning("Blurs", "fault", "motion blur"): "motion blur*, camera shake, shaky, smear*",
    Meaning("Blurs", "fault", "defocus blur"): (
        "defocus*, defocus blur*, out of focus, out of focus blur*, unfocus*, focus blur, lens blur*, gaussian blur*"
    ),
    Meaning("Blurs", "virtue"): "in focus, focused, focussed, blur free",
    Meaning("Blurs", "neutral"): "focus, focusing, focussing",
    Meaning("clarity", "fault"): "unclear, soft, soft edges, indistinct",
    Meaning("clarity", "virtue"): "sharp, sharper, clear, clearer, crisp, crisper, detailed",
    Meaning("clarity", "neutral"): "clarity, clearness, detail, details, definition, sharpness, crispness",
    Meaning("Sharpness", "fault", "lack of sharpness"): "unsharp*, low sharpness",
    Meaning(
        "Sharpness", "fault", "oversharpening"
    ): "oversharp*, over sharp*, overly sharp*, too sharp, too sharpened, halo, halos, haloes, haloing",
    Meaning(
        "Noise", "fault"
    ): "speckle*, multiplicative noise, noise, noisy, noisier, graininess, grain, grains, grainy, grainier",
    Meaning("Noise", "fault", "white noise"): "white noise, gaussian noise, additive noise, additive gaussian noise",
    Meaning("Noise", "fault", "impulse noise"): "impulse noise, salt and pepper, salt and pepper noise",
    Meaning("Noise", "virtue"): "noise free, noiseless, clean",
    Meaning("Compression", "fault"): "compress*, artefact*, artifact*, compression artefact*, compression artifact*",
    Meaning("Compression", "fault", "blocking"): (
        "jpeg, jpg, jpeg compression, jpeg artifact*, jpeg artefact*, jpeg compression artifact*, block, blocks, "
        "blocky, blockier, blockiness, blocking, blocking artifact*, blocking artefact*, block artifact*"
    ),
    Meaning("Compression", "virtue"): "uncompressed, artifact free, artefact free",
    Meaning("Brightness change", "fault"): "brightness change*, brightness distortion*, mean shift, misexposed",
    Meaning("Brightness change", "fault", "overexposure"): (
        "overexpos*, over expos*, too bright, overly bright, excessively bright, too much light, blown out, "
        "blown highlights, clipped highlights, glare"
    ),
    Meaning("Brightness change", "fault", "underexposure"): (
        "underexpos*, under expos*, dark, darker, darkness, dim, dimmer, dimly lit, low light, underlit, gloomy, "
        "murky, too little light"
    ),
    Meaning("Brightness change", "more", "overexposure"): "bright, brighter, brightly lit",
    Meaning("Brightness change", "virtue", "underexposure"): "enough light, well lit, bright enough",
    Meaning("Brightness change", "virtue"): "well exposed, properly exposed, correctly exposed",
    Meaning("Brightness change", "neutral"): (
        "brightness, exposure, exposed, lighting, lit, the light, illumination, illuminated, luminance"
    ),
    Meaning("Color distortions", "fault"): "colour distortion*, colour change*, colour shift*, colour diffusion",
    Meaning("Color distortions", "fault", "oversaturation"): "oversaturat*, over saturat*, too saturated, garish",
    Meaning("Color distortions", "fault", "desaturation"): (
        "desaturat*, undersaturat*, under saturat*, faded, dull, duller, pale, paler, drab, colourless, "
        "washed out colour*, colours washed out, colour washed out"
    ),
    Meaning("Color distortions", "fault", "color cast"): "cast, colour cast, colour casts, tint*, discolour*",
    Meaning("Color distortions", "more", "oversaturation"): "saturated",
    Meaning("Color distortions", "virtue", "desaturation"): "vivid, vibrant, colourful, vividness, colourfulness",
    Meaning("Color distortions", "neutral"): (
        "colour, colours, saturation, colour saturation, hue, hues, white balance, tones, colour tone*, "
        "colour rendition, colour reproduction, colour accuracy"
    ),
    Meaning("Contrast", "fault"): "contrast change*, contrast distortion*",
    Meaning("Contrast", "fault", "low contrast"): (
        "low contrast, low in contrast, washed out, washed out tones, hazy, hazier, haze, foggy, flat, flat tones"
    ),
    Meaning(
        "Contrast", "fault", "high contrast"
    ): "excessive contrast, too much contrast, harsh contrast, too contrasty",
    Meaning("Contrast", "more", "high contrast"): "high contrast, high in contrast, strong contrast, contrasty",
    Meaning("Contrast", "neutral"): "contrast, dynamic range",
    Meaning("unmeasured", "fault"): (
        "pixelat*, pixellat*, jitter*, quantiz*, quantis*, aliasing, moire, moiré, jagged*, colour block*, vignett*, "
        "flare, lens flare, ghosting, chromatic aberration*, lens distortion*, geometric distortion*, jpeg2000, "
        "jpeg 2000, jp2k, jpeg2000 compression, jpeg 2000 compression, ringing, ringing artifact*, mosquito noise, "
        "banding, colour banding, posteri*, colour noise, chroma noise, chrominance noise"
    ),
    Meaning("any", "fault"): (
        "distort*, degrad*, defect*, flaw*, issue, issues, problem, problems, wrong, impair*, damaged, "
        "quality issue, quality issues, quality problem, quality problems"
    ),
    Meaning("any", "virtue"): "undistorted, flawless, pristine, distortion free",
    Meaning("quality", "neutral"): "quality",
}


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def phrase_pattern(phrase: str) -> str:
    """The regular expression of a phrase in the notation of the lexicon."""
    words = re.split(r"[ -]+", phrase.strip().replace("colour", "colou?r").replace("*", r"\w*"))
    return r"[\s-]+".join(words)


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of the phrases as whole words, the longer ones first."""
    ordered = sorted(phrases, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(phrase_pattern, ordered))})(?!\w)", re.I)


_PATTERNS = {meaning: any_of(phrases.split(",")) for meaning, phrases in LEXICON.items()}


def terms_in(text: str) -> list[Term]:
    """The terms of a text, in order; where two overlap, the longer.

    >>> [(term.text, term.meaning.kind) for term in terms_in("Too dark, or motion blur?")]
    [('dark', 'underexposure'), ('motion blur', 'motion blur')]
    """
    found = [
        Term(match[0], match.start(), match.end(), meaning)
        for meaning, pattern in _PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    kept: list[Term] = []
    for term in sorted(found, key=lambda term: (term.start - term.end, term.start)):
        if all(term.end <= other.start or term.start >= other.end for other in kept):
            kept.append(term)
    return sorted(kept, key=lambda term: term.start)
