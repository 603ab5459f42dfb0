"""The words for distortions: one table, used to normalize the answers of models and to parse questions.

A phrase can have a category of distortion (a model that writes "overexposed" means "Brightness change") and a meaning
in a question ("overexposed" finds fault with the brightness). Many have both. Words that are too vague for a category
("soft", "flat", "clean") only have a meaning; stems that name a category in many forms ("color*") only have a category.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from agenticiqa.signatures.vocabulary import (
    DETECTABLE,
    DISTORTIONS,
    SEVERITIES,
    SEVERITY_WORDS,
    DetectableDistortion,
    Distortion,
    Severity,
    closest,
)

Sense = Literal["fault", "virtue", "more", "neutral"]
Subject = DetectableDistortion | Literal["clarity", "any", "quality", "unmeasured"]
T = TypeVar("T")

LONGEST_NAME = 500  # characters of the words for one distortion or severity; a longer text is not searched for them
CLARITY: tuple[DetectableDistortion, ...] = ("Blurs", "Sharpness")
# The names of too much (UPPER) and too little (LOWER) of a property.
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
    """The subject of a phrase, and its sense: a fault ("blurry"), a virtue ("sharp"), neutral ("focus"), or "more".

    ``kind`` restricts a fault to one kind of its category ("overexposure"). A virtue with a kind is the absence of that
    kind ("colorful": no desaturation). The sense ``"more"`` is a direction without a judgment ("bright").
    """

    subject: Subject
    sense: Sense
    kind: str = ""

    @property
    def categories(self) -> tuple[DetectableDistortion, ...]:
        """The categories that the subject covers; none for the overall quality and for what is not measured."""
        if self.subject == "clarity":
            return CLARITY
        if self.subject == "any":
            return DETECTABLE
        if self.subject == "quality" or self.subject == "unmeasured":
            return ()
        return (self.subject,)

    @property
    def scale(self) -> Subject:
        """The scale that the subject is on: blur and sharpness are on the same one, blur and noise are not."""
        return "clarity" if self.subject in CLARITY else self.subject


@dataclass(frozen=True)
class Words:
    """Phrases, separated by commas (and any blanks), with the same category, if any, and the same meaning, if any.

    "*" stands for any ending, a space for blanks or hyphens; "color" also matches "colour".
    """

    category: Distortion | None
    meaning: Meaning | None
    phrases: str


@dataclass(frozen=True)
class Term:
    """A phrase with a meaning, found in a text at ``[start, end)``."""

    text: str
    start: int
    end: int
    meaning: Meaning


LEXICON: tuple[Words, ...] = (
    Words("Blurs", None, "blurs, unfocused, well focused, bokeh, lens blur, gaussian blur"),
    Words("Blurs", Meaning("Blurs", "fault"), "blur*, fuzzy"),
    Words(None, Meaning("Blurs", "fault"), "fuzzier, fuzziness, smudg*, mushy, soft focus"),
    Words("Blurs", Meaning("Blurs", "fault", "motion blur"), """
        motion blur*, camera shake, shaky, smear*, motion streak*, motion trail*, streak* of motion"""),
    Words(None, Meaning("Blurs", "fault", "motion blur"), """
        camera shook, camera move*, camera motion, moving camera, camera was moved, hand shake, directional blur*"""),
    Words("Blurs", Meaning("Blurs", "fault", "defocus blur"), "defocus*, out of focus"),
    Words(None, Meaning("Blurs", "fault", "defocus blur"), """
        defocus blur*, out of focus blur*, unfocus*, oof, focus blur, lens blur*, gaussian blur*, misfocus*,
        missed focus, missed the focus, focus missed, not in focus, lost focus, focus is off, focus miss, focus
        missed it, focus was off,
        focus off"""),
    Words("Blurs", Meaning("Blurs", "virtue"), "in focus, focused, focussed"),
    Words(None, Meaning("Blurs", "virtue"), "blur free, unblurred"),
    Words("Blurs", Meaning("Blurs", "neutral"), "focus, focusing"),
    Words(None, Meaning("Blurs", "neutral"), "focussing"),
    Words("Blurs", Meaning("clarity", "fault"), "soft edges"),
    Words("Color distortions", None, """
        color distortions, color*, saturat*, skin tone*, reddish, greenish, bluish, yellowish, too red, too
        green, too blue, too yellow, too orange, too warm, too cool, vivid*, vibran*, chroma*"""),
    Words(None, Meaning("Color distortions", "fault"), """
        color distortion*, color change*, color shift*, color diffusion"""),
    Words("Color distortions", Meaning("Color distortions", "fault", "oversaturation"), "oversaturat*, over saturat*"),
    Words(None, Meaning("Color distortions", "fault", "oversaturation"), """
        pop too much, colors are too strong, colors too strong, colors too intense,
        too saturated, garish, gaudy, too colorful, too vivid, too vibrant, saturated too much, too much
        saturation, overly saturated, too much color, overcooked color*"""),
    Words("Color distortions", Meaning("Color distortions", "fault", "desaturation"), """
        desaturat*, undersaturat*, under saturat*, faded"""),
    Words(None, Meaning("Color distortions", "fault", "desaturation"), """
        dull, duller, pale, paler, drab, colorless, washed out color*, muted color*, muted, faded color*,
        drained, dull color*, not enough color, too little color, grayish, greyish, not enough saturation,
        colors washed out, color washed out"""),
    Words("Color distortions", Meaning("Color distortions", "fault", "color cast"), "cast, tint*, discolor*"),
    Words(None, Meaning("Color distortions", "fault", "color cast"), """
        color cast, color casts, color tint*, lean toward* one hue, tinge*, hue shift*, off color*, wrong
        white balance, white balance off, white balance is off, white balance wrong, white balance is wrong"""),
    Words(None, Meaning("Color distortions", "fault", "red cast"), """
        red* tint*, red* cast*, reddish, too red, pink* tint*, magenta tint*, magenta cast*, red* color cast*"""),
    Words(None, Meaning("Color distortions", "fault", "green cast"), """
        green* tint*, green* cast*, greenish, too green, green* color cast*"""),
    Words(None, Meaning("Color distortions", "fault", "blue cast"), """
        blu* tint*, blu* cast*, bluish, too blue, too cool, blue* color cast*, too cold, cyan tint*, cyan
        cast*"""),
    Words(None, Meaning("Color distortions", "fault", "yellow cast"), """
        yellow* tint*, yellow* cast*, yellowish, too warm, too yellow, too orange, orange tint*, orange cast*,
        yellow* color cast*, warm tint*, warm cast*"""),
    Words(None, Meaning("Color distortions", "more", "oversaturation"), "saturated"),
    Words(None, Meaning("Color distortions", "virtue", "desaturation"), """
        vivid, vibrant, colorful, vividness, colorfulness"""),
    Words("Color distortions", Meaning("Color distortions", "neutral"), "hue, hues, white balance"),
    Words(None, Meaning("Color distortions", "neutral"), """
        color, colors, saturation, color saturation, tones, color tone*, color rendition, color reproduction,
        color accuracy"""),
    Words("Compression", None, "compression, over compress*"),
    Words("Compression", Meaning("Compression", "fault"), "compress*, artefact*, artifact*"),
    Words(None, Meaning("Compression", "fault"), """
        compression artefact*, compression artifact*, jpeggy, deep fried, deep fried jpeg, crunch*, coding artifact*,
        coding artefact*, jpeg coding, jpeg encod*,
        lossy coding, jpeg, jpg, jpeg compression, jpeg artifact*, jpeg artefact*, jpeg compression artifact*"""),
    Words(None, Meaning("Compression", "neutral"), "jpeg quality, jpg quality, compression quality"),
    Words("Compression", Meaning("Compression", "fault", "blocking"), """
        block, blocks, blocky, blockiness, blocking, blocking artifact*, block artifact*"""),
    Words(None, Meaning("Compression", "fault", "blocking"), """
        blockier, blocking artefact*, block structure*, jpeg block*, jpeg block structure*"""),
    Words(None, Meaning("Compression", "virtue"), "uncompressed, artifact free, artefact free"),
    Words("Compression", Meaning("Compression", "fault", "coding artifacts"), """
        jpeg2000, jp2k, ringing, mosquito noise, macroblock*"""),
    Words("Compression", Meaning("Compression", "fault", "banding"), "banding, banded, posteri*, banded gradients"),
    Words(None, Meaning("Compression", "fault", "banding"), """
        stepped, stepped gradients, gradient steps, tonal steps, steps between tones, steps between colors,
        color steps, visible steps, color banding, tonal banding, banding
        artifact*"""),
    Words("Noise", None, "nois*, grain*, iso noise, luminance noise"),
    Words("Noise", Meaning("Noise", "fault"), "speckle*, noise"),
    Words(None, Meaning("Noise", "fault"), """
        multiplicative noise, noisy, noisier, graininess, grain, grains, grainy, grainier, gritty, grittier,
        speckly, speckling, image noise, pixel noise, random noise,
        random pixel noise, sensor noise, film grain, iso noise, digital noise, luminance noise, luma noise,
        noisiness, noisey"""),
    Words("Noise", Meaning("Noise", "fault", "white noise"), "white noise, gaussian noise"),
    Words(None, Meaning("Noise", "fault", "white noise"), "additive noise, additive gaussian noise"),
    Words("Noise", Meaning("Noise", "fault", "impulse noise"), "impulse noise, salt and pepper"),
    Words(None, Meaning("Noise", "fault", "impulse noise"), """
        specks, specks of black and white pixels, black and white pixels, white and black pixels,
        salt and pepper noise, salt and pepper speck*, salt and pepper dots, salt and pepper pixels,
        dead pixels, hot pixels, black and white dots, white and black dots, black and
        white specks"""),
    Words(None, Meaning("Noise", "virtue"), "noise free, noiseless, clean, cleaner, cleanest"),
    Words("Noise", Meaning("Noise", "fault", "color noise"), "color noise, chroma noise"),
    Words(None, Meaning("Noise", "fault", "color noise"), "chrominance noise, colored speckle*, color speckle*"),
    Words("Compression", None, "jpeg, jpg"),
    Words("Brightness change", None, """
        brightness change, bright*, dark*, dimly, expos*, highlights, illuminat*, backlit, backlight*,
        clipped, clipping, shadows"""),
    Words("Brightness change", Meaning("Brightness change", "fault"), "mean shift"),
    Words(None, Meaning("Brightness change", "fault"), "brightness change*, brightness distortion*, misexposed"),
    Words("Brightness change", Meaning("Brightness change", "fault", "overexposure"), """
        overexpos*, over expos*, too much light, blown out, glare"""),
    Words(None, Meaning("Brightness change", "fault", "overexposure"), """
        nuked, clipped, clipping, blown whites, too high an exposure,
        too bright, overly bright, excessively bright, blown highlights, clipped highlights, highlight
        clipping, blown, blown out highlights, burnt out, burned out, highlights blown, highlights blown out,
        burnt, highlights clipped, highlights burned out, too light, overly exposed, exposed too much,
        overbright, over bright, too much exposure, clipped whites, bleached, bleached out"""),
    Words("Brightness change", Meaning("Brightness change", "fault", "underexposure"), """
        underexpos*, under expos*, dim, low light"""),
    Words(None, Meaning("Brightness change", "fault", "underexposure"), """
        shadows crushed, blacks crushed, shadows are crushed, blacks are crushed, shadows blocked up,
        dark, darker, darkness, dimmer, dimly lit, underlit, gloomy, murky, too little light, not enough
        light, too dark, lack of light, crushed blacks, crushed shadows, pitch black, blacked out, too dim,
        too black, badly underlit, too little exposure, need* more light"""),
    Words(None, Meaning("Brightness change", "more", "overexposure"), "bright, brighter, brightly lit"),
    Words("Brightness change", Meaning("Brightness change", "virtue", "underexposure"), "enough light, well lit"),
    Words(None, Meaning("Brightness change", "virtue", "underexposure"), "bright enough"),
    Words("Brightness change", Meaning("Brightness change", "virtue"), "well exposed"),
    Words(None, Meaning("Brightness change", "virtue", "overexposure"), """
        highlights preserved, preserved highlights, highlights intact, highlights are preserved,
        highlights well preserved, highlights kept"""),
    Words(None, Meaning("Brightness change", "virtue"), "properly exposed, correctly exposed"),
    Words("Brightness change", Meaning("Brightness change", "neutral"), "lighting, lit, luminance"),
    Words(None, Meaning("Brightness change", "neutral"), """
        brightness, exposure, exposed, the light, illumination, illuminated"""),
    Words("Sharpness", None, "sharp*, clearest, crisp*, detail*, halo*"),
    Words("Sharpness", Meaning("clarity", "fault"), "unclear"),
    Words(None, Meaning("clarity", "fault"), "soft, indistinct"),
    Words("Sharpness", Meaning("clarity", "virtue"), "clear, clearer"),
    Words(None, Meaning("clarity", "virtue"), "sharp, sharper, crisp, crisper, detailed"),
    Words("Sharpness", Meaning("clarity", "neutral"), "clarity, sharpness"),
    Words(None, Meaning("clarity", "neutral"), "clearness, detail, details, definition, crispness"),
    Words("Sharpness", Meaning("Sharpness", "fault", "lack of sharpness"), "unsharp*, lack of sharpness"),
    Words(None, Meaning("Sharpness", "fault", "lack of sharpness"), "low sharpness"),
    Words("Sharpness", Meaning("Sharpness", "fault", "oversharpening"), "oversharp*, over sharp*"),
    Words(None, Meaning("Sharpness", "fault", "oversharpening"), """
        sharpening, white outlines, bright outlines,
        overly sharp*, too sharp, too sharpened, halo, halos, haloes, haloing, sharpened too much, over
        processed edges, sharpening halo*, sharpening artifact*, edge halo*, sharpened too far, sharpened too
        strongly"""),
    Words("Contrast", None, "contrast*"),
    Words(None, Meaning("Contrast", "fault"), "contrast change*, contrast distortion*"),
    Words("Contrast", Meaning("Contrast", "fault", "low contrast"), """
        low contrast, washed out, hazy, haze, foggy, flat tones, dull tones"""),
    Words(None, Meaning("Contrast", "fault", "low contrast"), """
        low in contrast, washed out tones, hazier, flat, flatter, milky, not enough contrast, too little
        contrast, flatness"""),
    Words(None, Meaning("Contrast", "fault", "high contrast"), """
        excessive in contrast,
        contrast too harsh, contrast is too harsh, contrast too hard, contrast is too hard,
        excessive contrast, too much contrast, contrast too strong, contrast is too strong, harsh contrast,
        too contrasty"""),
    Words("Contrast", Meaning("Contrast", "more", "high contrast"), "high contrast"),
    Words(None, Meaning("Contrast", "more", "high contrast"), "high in contrast, strong contrast, contrasty"),
    Words("Contrast", Meaning("Contrast", "neutral"), "contrast, dynamic range"),
    Words("Spatial distortions", None, "spatial distortions"),
    Words("Spatial distortions", Meaning("unmeasured", "fault"), """
        pixelat*, pixellat*, jitter*, quantiz*, quantis*, aliasing, moire, moiré, jagged*, color block*"""),
    Words(None, Meaning("unmeasured", "fault"), """
        vignett*, flare, lens flare, ghosting, chromatic aberration*, lens distortion*, geometric distortion*"""),
    Words(None, Meaning("Compression", "fault", "coding artifacts"), """
        jpeg2000 compression, jpeg 2000 compression, jpeg 2000, ringing artifact*, ringing artefact*"""),
    Words(None, Meaning("any", "fault"), """
        fault, faults, distort*, degrad*, defect*, flaw*, issue, issues, problem, problems, wrong, impair*, damaged,
        spoil*, quality issue, quality issues, quality problem, messed up, quality problems"""),
    Words(None, Meaning("any", "virtue"), "undamaged, undegraded, undistorted, flawless, pristine, distortion free"),
    Words(None, Meaning("quality", "neutral"), "quality"),
)  # fmt: skip


def phrase_pattern(phrase: str) -> str:
    """The regular expression of a phrase in the notation of the lexicon."""
    words = re.split(r"[\s-]+", phrase.strip().replace("color", "colou?r").replace("*", r"\w*"))
    return r"[\s-]+".join(words)


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of the phrases as whole words; longer ones take precedence."""
    ordered = sorted(phrases, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(phrase_pattern, ordered))})(?!\w)", re.I)


@dataclass(frozen=True)
class _Match(Generic[T]):
    start: int
    end: int
    value: T


def _patterns(column: Iterable[tuple[T | None, str]]) -> dict[T, re.Pattern[str]]:
    phrases: dict[T, list[str]] = {}
    for value, listed in column:
        if value is not None:
            phrases.setdefault(value, []).extend(listed.split(","))
    return {value: any_of(each) for value, each in phrases.items()}


@cache  # compiled when a text is first read: that takes longer than most imports
def _categories() -> dict[Distortion, re.Pattern[str]]:
    return _patterns((words.category, words.phrases) for words in LEXICON)


@cache
def _meanings() -> dict[Meaning, re.Pattern[str]]:
    return _patterns((words.meaning, words.phrases) for words in LEXICON)


_SEVERITY_OF = {word: severity for severity in SEVERITIES for word in SEVERITY_WORDS[severity]}


def _longest(text: str, patterns: dict[T, re.Pattern[str]]) -> list[_Match[T]]:
    """Every phrase of a text, in order of appearance; of two that overlap, the longer."""
    found = [
        _Match(match.start(), match.end(), value)
        for value, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]
    kept: list[_Match[T]] = []
    for each in sorted(found, key=lambda found: (found.start - found.end, found.start)):
        if all(each.end <= other.start or each.start >= other.end for other in kept):
            kept.append(each)
    return sorted(kept, key=lambda found: found.start)


def terms_in(text: str) -> list[Term]:
    """The phrases of a text that have a meaning, in order; of two that overlap, the longer.

    >>> [(term.text, term.meaning.kind) for term in terms_in("Too dark, or motion blur?")]
    [('dark', 'underexposure'), ('motion blur', 'motion blur')]
    """
    found = _longest(text, _meanings())
    return [Term(text[each.start : each.end], each.start, each.end, each.value) for each in found]


def distortions_in(text: str) -> list[tuple[str, Distortion]]:
    """The phrases of a text that have a category, with it, in order; of two that overlap, the longer.

    >>> distortions_in("Motion blur or a grainy sky?")
    [('Motion blur', 'Blurs'), ('grainy', 'Noise')]
    """
    return [(text[each.start : each.end], each.value) for each in _longest(text, _categories())]


def fold_distortion(word: str) -> Distortion | None:
    """The category of a word, or ``None``: ``"Brightness change"`` for ``"overexposed"``."""
    named = distortions_in(word)
    return named[0][1] if named else None


def fold_severity(word: str) -> Severity | None:
    """The severity for a word, or ``None``: ``"severe"`` for ``"heavy"``."""
    return _SEVERITY_OF.get(" ".join(word.lower().split()))


_DENIED = re.compile(r"\b(?:no|not|non|without|free|none|absent|absence)\b", re.IGNORECASE)


def folded_distortion(value: Any) -> Any:
    """The category that a text names; what names none, or denies one, is unchanged."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or value in DISTORTIONS:
        return value
    named = distortions_in(value)
    if not named:
        return closest(value, DISTORTIONS) or value
    phrase, category = named[0]
    return value if _DENIED.search(value.replace(phrase, "", 1)) else category


def folded_severity(value: Any) -> Any:
    """The severity that a text names; what names none is unchanged."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        return value
    return fold_severity(value) or closest(value, SEVERITIES) or value
