"""The table of distortion categories: names, words, kinds, measurements and explanations of each.

The whole program uses a category that is added here: the planner, the detector, the answers and the lists. What is
derived from the table is in ``vocabulary`` (names and severities) and ``lexicon`` (recognition of words).
"""

from dataclasses import dataclass
from typing import Literal

from agenticiqa.signatures import OVERALL as OVERALL

Sense = Literal["fault", "virtue", "more", "neutral"]
Curve = tuple[tuple[float, float], ...]  # points of a rising value and a severity, 0 (none) to 4 (extreme)

BLURS = "Blurs"
COLOR = "Color distortions"
COMPRESSION = "Compression"
NOISE = "Noise"
BRIGHTNESS = "Brightness change"
SHARPNESS = "Sharpness"
CONTRAST = "Contrast"
SPATIAL = "Spatial distortions"

# Kinds with code of their own in ``programs``, which refers to their rows by these names.
DEFOCUS_OR_MOTION = "defocus or motion blur"
OVERSATURATION = "oversaturation"
DESATURATION = "desaturation"
COLOR_CAST = "color cast"
YELLOW_CAST = "yellow cast"
JPEG_BLOCKING = "JPEG blocking"
GAUSSIAN_NOISE = "Gaussian noise"
IMPULSE_NOISE = "impulse noise"
COLOR_NOISE = "color noise"
OVEREXPOSURE = "overexposure"
UNDEREXPOSURE = "underexposure"
LACK_OF_SHARPNESS = "lack of sharpness"
OVERSHARPENING = "oversharpening"
LOW_CONTRAST = "low contrast"
HIGH_CONTRAST = "high contrast"


@dataclass(frozen=True)
class Words:
    """Phrases for a category, separated by commas (and any blanks), with one meaning in a question.

    ``sense`` is their sense in a question: a fault ("blurry"), a virtue ("sharp"), neither ("focus", "neutral"), or a
    direction that is not good or bad ("bright", "more"); "" for words that only name the category. ``kind`` restricts
    the sense to one kind of the category ("overexposure"). In a model's answer, one of the ``phrases`` names the
    category; the ``vague`` ones ("soft", "clean") have a meaning in questions only. ``subject`` is their subject if it
    is not this category alone (see ``lexicon.Meaning``). A phrase may be in the rows of one meaning only.

    ``read_as`` names the outputs of the network that reads questions (``programs/offline/answers``) for this meaning.
    ``hue`` is the direction of a color cast on CIELAB's a* (red) and b* (yellow).

    "*" stands for any ending, a space for blanks or hyphens; "color" also matches "colour".
    """

    sense: Sense | Literal[""]
    phrases: str = ""
    vague: str = ""
    kind: str = ""
    subject: str = ""
    read_as: tuple[str, ...] = ()
    hue: tuple[float, float] | None = None


@dataclass(frozen=True)
class Subtype:
    """One kind of a category, with its name in findings and the sentence that explains it.

    ``alone`` is the sentence without a reference, ``beside`` with one. Names in braces are measurements of the image,
    those in ``was[...]`` of the reference (``tools.features.by_name``, and a few that ``programs/offline`` adds).

    If one measurement determines the severity, it is the ``measure``: ``curve`` maps its value to a severity, and
    ``change`` maps its increase over the reference. Code in ``programs/offline`` measures the other kinds, unless only
    the networks show them (``by_network_alone``). If ``is_trained``, the detector's networks have an output for the
    kind. ``kinds`` are those of ``eval.research.distort`` that create it.

    Raises ValueError for a curve whose values do not rise, or whose severities fall or are not in 0..4.
    """

    name: str
    alone: str
    beside: str
    measure: str = ""
    curve: Curve = ()
    change: Curve = ()
    is_trained: bool = True
    by_network_alone: bool = False
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the curves."""
        for name, curve in (("curve", self.curve), ("change", self.change)):
            values, severities = [value for value, _ in curve], [severity for _, severity in curve]
            is_rising = values == sorted(set(values)) and severities == sorted(severities)
            if not is_rising or not all(0 <= severity <= 4 for severity in severities):
                raise ValueError(
                    f"the kind '{self.name}': {name} needs values that rise, and severities in 0..4 that do not fall"
                )


@dataclass(frozen=True)
class Category:
    """One category of distortion.

    ``everyday`` is a photographer's name for it. ``signs`` is for the prompt of a model that detects it; a sign that
    could belong to two categories is listed in only one. ``other_kinds`` are those of ``eval.research.distort`` that
    create it, but none of its subtypes.
    ``too_much`` and ``too_little`` name both ends of a property, as in ``words`` and ``subtypes``. If not
    ``is_detectable``, only questions and tools name it, and images are not searched for it.
    ``narrowed_by`` are parts of words. A question about damage of any kind, such as "Which artifacts are there?", is
    about this category only if it has one of them.

    ``head`` is the detector's network for this category in an image without a reference; without it, only measurements
    are used. ``unused_outputs`` are subtypes that the networks know and the table no longer has, until the networks are
    trained again. The rest are constants of the offline assessment:
    ``network_share``: the share of the severity that comes from the networks. On photos outside the training set the
    networks alone were best for blur and compression, and a combination for the others.
    ``loss``: levels of MOS per step of severity (fitted: see ``offline.measured.mos_estimate``).
    ``least_confidence``: log odds from which a region is local damage (see ``offline.measured.local_damage``).
    ``usual``: the 90th percentile of the combined severity of pristine photos outside the training set, if above 0.5;
    unusual tones can be intended, so "none" ends here. The value for color is from the first 43 photos. All 89 give
    1.24, with 1.6 % fewer false alarms, but then color casts and faded colors are detected less often.
    """

    name: str
    everyday: str
    words: tuple[Words, ...]
    signs: str = ""
    other_kinds: tuple[str, ...] = ()
    subtypes: tuple[Subtype, ...] = ()
    too_much: str = ""
    too_little: str = ""
    is_detectable: bool = True
    narrowed_by: str = ""
    head: Literal["texture", "tone", ""] = ""
    unused_outputs: tuple[str, ...] = ()
    network_share: float = 0.0
    loss: float = 0.7
    least_confidence: float = 0.0
    usual: float = 0.5

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of ``eval.research.distort`` that create it."""
        return (*(kind for subtype in self.subtypes for kind in subtype.kinds), *self.other_kinds)


CATEGORIES: tuple[Category, ...] = (
    Category(
        BLURS,
        "blur",
        words=(
            Words("", phrases="blurs, unfocused, well focused, bokeh, lens blur, gaussian blur"),
            Words("fault", read_as=("blur",), phrases="blur*, fuzzy", vague="""
                fuzzier, fuzziness, smudg*, mushy, soft focus"""),
            Words("fault", kind="motion blur", read_as=("motion_blur",), phrases="""
                motion blur*, camera shake, shaky, smear*, motion streak*, motion trail*, streak* of motion""",
                vague="""
                camera shook, camera move*, camera motion, moving camera, camera was moved, hand shake, directional
                blur*"""),
            Words("fault", kind="defocus blur", read_as=("defocus",), phrases="defocus*, out of focus", vague="""
                defocus blur*, out of focus blur*, unfocus*, oof, focus blur, lens blur*, gaussian blur*, misfocus*,
                missed focus, missed the focus, focus missed, not in focus, lost focus, focus is off, focus miss,
                focus missed it, focus was off, focus off"""),
            Words("virtue", phrases="in focus, focused, focussed", vague="blur free, unblurred"),
            Words("neutral", phrases="focus, focusing", vague="focussing"),
            Words("fault", subject="clarity", phrases="soft edges"),
        ),
        signs="out of focus, motion blur, soft edges, lost detail",
        subtypes=(
            Subtype(
                DEFOCUS_OR_MOTION,
                "Edges are about {edge_width:.1f} pixels wide (usually 1.3 to 2.1), and blurring the image again would "
                "leave {blur_extent:.0%} of its gradients (usually 20% to 42%).",
                "Edges are {edge_width:.2f} times as wide as in the reference, and blurring the image again would "
                "leave {blur_extent:.0%} of its gradients (reference: {was[blur_extent]:.0%}).",
                kinds=("gaussian_blur", "motion_blur", "defocus", "low_resolution"),
            ),
        ),
        head="texture",
        network_share=1.0,
        loss=0.41,
        least_confidence=0.0,
    ),
    Category(
        COLOR,
        "color distortion",
        words=(
            Words("", phrases="""
                color distortions, color*, saturat*, skin tone*, reddish, greenish, bluish, yellowish, too red, too
                green, too blue, too yellow, too orange, too warm, too cool, vivid*, vibran*, chroma*"""),
            Words("fault", vague="color distortion*, color change*, color shift*, color diffusion"),
            Words("fault", kind=OVERSATURATION, read_as=("oversaturated",), phrases="oversaturat*, over saturat*",
                vague="""
                pop too much, colors are too strong, colors too strong, colors too intense, too saturated, garish,
                gaudy, too colorful, too vivid, too vibrant, saturated too much, too much saturation, overly
                saturated, too much color, overcooked color*"""),
            Words("fault", kind=DESATURATION, read_as=("faded",), phrases="""
                desaturat*, undersaturat*, under saturat*, faded""",
                vague="""
                dull, duller, pale, paler, drab, colorless, washed out color*, muted color*, muted, faded color*,
                drained, dull color*, not enough color, too little color, grayish, greyish, not enough saturation,
                colors washed out, color washed out"""),
            Words("fault", kind=COLOR_CAST, read_as=("cast",), phrases="cast, tint*, discolor*", vague="""
                color cast, color casts, color tint*, lean toward* one hue, tinge*, hue shift*, off color*, wrong
                white balance, white balance off, white balance is off, white balance wrong, white balance is wrong"""),
            Words("fault", kind="red cast", hue=(1.0, 0.0), vague="""
                red* tint*, red* cast*, reddish, too red, pink* tint*, magenta tint*, magenta cast*, red* color
                cast*"""),
            Words("fault", kind="green cast", hue=(-1.0, 0.0), vague="""
                green* tint*, green* cast*, greenish, too green, green* color cast*"""),
            Words("fault", kind="blue cast", hue=(0.0, -1.0), vague="""
                blu* tint*, blu* cast*, bluish, too blue, too cool, blue* color cast*, too cold, cyan tint*, cyan
                cast*"""),
            Words("fault", kind=YELLOW_CAST, hue=(0.0, 1.0), vague="""
                yellow* tint*, yellow* cast*, yellowish, too warm, too yellow, too orange, orange tint*, orange cast*,
                yellow* color cast*, warm tint*, warm cast*"""),
            Words("more", kind=OVERSATURATION, vague="saturated"),
            Words("virtue", kind=DESATURATION, vague="vivid, vibrant, colorful, vividness, colorfulness"),
            Words("neutral", phrases="hue, hues, white balance", vague="""
                color, colors, saturation, color saturation, tones, color tone*, color rendition, color reproduction,
                color accuracy"""),
        ),
        signs="color cast, oversaturated or faded colors",
        subtypes=(
            Subtype(
                DESATURATION,
                "Colors vary {per_contrast:.2f} times as much as brightness (usually over 0.25; a gray picture may be "
                "intended).",
                "The colorfulness is {colorfulness:.0f} on Hasler and Süsstrunk's scale (reference: "
                "{was[colorfulness]:.0f}).",
                kinds=("desaturate",),
            ),
            Subtype(
                OVERSATURATION,
                "The colorfulness is {colorfulness:.0f} on Hasler and Süsstrunk's scale (usually below 95).",
                "The colorfulness is {colorfulness:.0f} on Hasler and Süsstrunk's scale (reference: "
                "{was[colorfulness]:.0f}).",
                measure="colorfulness",
                curve=((95, 0), (120, 0.9), (145, 2.0), (180, 4)),
                kinds=("oversaturate",),
            ),
            Subtype(
                COLOR_CAST,
                "Neutral colors are {color_cast:.0f} CIELAB units away from gray (usually below 20).",
                "The mean color is shifted by {shift:.0f} CIELAB units from the reference.",
                measure="color_cast",
                curve=((27, 0), (33, 0.6), (40, 1.5), (52, 2.7), (70, 4)),
                kinds=("color_cast",),
            ),
        ),
        too_much=OVERSATURATION,
        too_little=DESATURATION,
        head="tone",
        network_share=0.67,
        loss=0.24,
        least_confidence=1.25,
        usual=0.89,
    ),
    Category(
        COMPRESSION,
        "compression artifacts",
        words=(
            Words("", phrases="compression, over compress*, jpeg, jpg"),
            Words("fault", read_as=("compression",), phrases="compress*, artefact*, artifact*", vague="""
                compression artefact*, compression artifact*, jpeggy, deep fried, deep fried jpeg, crunch*, coding
                artifact*, coding artefact*, jpeg coding, jpeg encod*, lossy coding, jpeg, jpg, jpeg compression, jpeg
                artifact*, jpeg artefact*, jpeg compression artifact*"""),
            Words("neutral", vague="jpeg quality, jpg quality, compression quality"),
            Words("fault", kind="blocking", read_as=("blocking",), phrases="""
                block, blocks, blocky, blockiness, blocking, blocking artifact*, block artifact*""", vague="""
                blockier, blocking artefact*, block structure*, jpeg block*, jpeg block structure*"""),
            Words("virtue", vague="uncompressed, artifact free, artefact free"),
            Words("fault", kind="coding artifacts", phrases="jpeg2000, jp2k, ringing, mosquito noise, macroblock*",
                vague="""
                jpeg2000 compression, jpeg 2000 compression, jpeg 2000, ringing artifact*, ringing artefact*"""),
            Words("fault", kind="banding", read_as=("banding",), phrases="""
                banding, banded, posteri*, banded gradients""",
                vague="""
                stepped, stepped gradients, gradient steps, tonal steps, steps between tones, steps between colors,
                color steps, visible steps, color banding, tonal banding, banding artifact*"""),
        ),
        signs="blocking, ringing, banding",
        narrowed_by="compress, jpeg, jpg, webp, coding, codec, block, band, ring, posteri, mosquito",
        subtypes=(
            Subtype(
                JPEG_BLOCKING,
                "Steps along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (usually 1.0 to 1.8).",
                "Steps along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (reference: "
                "{was[blockiness]:.1f}).",
                measure="blockiness",
                curve=((1, 0), (1.4, 0.25), (1.9, 0.6), (2.4, 1.2), (3.0, 2.0), (3.8, 2.8), (5, 3.5), (7, 4)),
                kinds=("jpeg",),
            ),
            Subtype(
                "coding artifacts",
                "{lost_detail:.0%} of the finest detail is lost in a pattern that is typical of compression; steps "
                "along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (usually 1.0 to 1.8).",
                "{lost_detail:.0%} of the finest detail is lost (reference: {was[lost_detail]:.0%}); steps "
                "along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (reference: "
                "{was[blockiness]:.1f}).",
                by_network_alone=True,
                kinds=("jpeg2000", "webp", "fast_fading"),
            ),
            Subtype(
                "banding",
                "Smooth areas have few distinct values, and {lost_detail:.0%} of the finest detail is lost.",
                "Smooth areas have few distinct values, and {lost_detail:.0%} of the finest detail is lost "
                "(reference: {was[lost_detail]:.0%}).",
                by_network_alone=True,
                kinds=("banding",),
            ),
        ),
        head="texture",
        network_share=1.0,
        loss=0.38,
        least_confidence=1.25,
    ),
    Category(
        NOISE,
        "noise",
        words=(
            Words("", phrases="nois*, grain*, iso noise, luminance noise"),
            Words("fault", read_as=("noise", "grain"), phrases="""
                speckle*, noise, denoise artifact*, denoising artifact*""",
                vague="""
                multiplicative noise, noisy, noisier, graininess, grain, grains, grainy, grainier, gritty, grittier,
                speckly, speckling, image noise, pixel noise, random noise, random pixel noise, sensor noise, film
                grain, iso noise, digital noise, luminance noise, luma noise, noisiness, noisey"""),
            Words("fault", kind="white noise", phrases="white noise, gaussian noise", vague="""
                additive noise, additive gaussian noise"""),
            Words("fault", kind=IMPULSE_NOISE, read_as=("impulse_noise",), phrases="impulse noise, salt and pepper",
                vague="""
                specks, specks of black and white pixels, black and white pixels, white and black pixels, salt and
                pepper noise, salt and pepper speck*, salt and pepper dots, salt and pepper pixels, dead pixels, hot
                pixels, black and white dots, white and black dots, black and white specks"""),
            Words("virtue", vague="noise free, noiseless, clean, cleaner, cleanest"),
            Words("fault", kind=COLOR_NOISE, phrases="color noise, chroma noise, color component noise", vague="""
                chrominance noise, colored speckle*, color speckle*"""),
        ),
        signs="grain, speckles, dots, color noise",
        subtypes=(
            Subtype(
                GAUSSIAN_NOISE,
                "The smoothest parts fluctuate by {noise_sigma:.1f} of 255 gray levels (standard deviation, usually "
                "below 2.4).",
                "The smoothest parts fluctuate by {noise_sigma:.1f} of 255 gray levels (standard deviation; reference: "
                "{was[noise_sigma]:.1f}).",
                measure="noise_sigma",
                curve=((2.4, 0), (4, 0.7), (7, 1.5), (12, 2.3), (20, 3.1), (40, 3.7), (80, 4)),
                kinds=("white_noise", "speckle_noise"),
            ),
            Subtype(
                IMPULSE_NOISE,
                "{isolated_pixels:.2%} of the pixels differ strongly from all their neighbors (usually below 0.3%).",
                "{isolated_pixels:.2%} of the pixels differ strongly from all their neighbors (reference: "
                "{was[isolated_pixels]:.2%}).",
                measure="isolated_pixels",
                curve=((0.003, 0), (0.007, 0.8), (0.015, 1.7), (0.03, 2.6), (0.055, 3.4), (0.08, 4)),
                change=((0.001, 0), (0.004, 0.8), (0.012, 1.6), (0.03, 2.5), (0.055, 3.4), (0.08, 4)),
                kinds=("impulse_noise",),
            ),
            Subtype(
                COLOR_NOISE,
                "Colors of the smoothest parts fluctuate by {color_noise:.1f} of 255 levels (usually below 2).",
                "Colors of the smoothest parts fluctuate by {color_noise:.1f} of 255 levels (reference: "
                "{was[color_noise]:.1f}).",
                measure="color_noise",
                curve=((2.4, 0), (4, 0.7), (7, 1.5), (12, 2.3), (20, 3.1), (40, 3.7), (80, 4)),
                kinds=("chroma_noise",),
            ),
        ),
        head="texture",
        network_share=0.75,
        loss=0.66,
        least_confidence=0.75,
    ),
    Category(
        BRIGHTNESS,
        "exposure problems",
        words=(
            Words("", phrases="""
                brightness change, bright*, dark*, dimly, expos*, highlights, illuminat*, backlit, backlight*,
                clipped, clipping, shadows"""),
            Words("fault", read_as=("exposure",), phrases="mean shift", vague="""
                brightness change*, brightness distortion*, misexposed"""),
            Words("fault", kind=OVEREXPOSURE, read_as=("bright",), phrases="""
                overexpos*, over expos*, too much light, blown out, glare""",
                vague="""
                nuked, clipped, clipping, blown whites, too high an exposure, too bright, overly bright, excessively
                bright, blown highlights, clipped highlights, highlight clipping, blown, blown out highlights, burnt
                out, burned out, highlights blown, highlights blown out, burnt, highlights clipped, highlights burned
                out, too light, overly exposed, exposed too much, overbright, over bright, too much exposure, clipped
                whites, bleached, bleached out"""),
            Words("fault", kind=UNDEREXPOSURE, read_as=("dark",), phrases="underexpos*, under expos*, dim, low light",
                vague="""
                shadows crushed, blacks crushed, shadows are crushed, blacks are crushed, shadows blocked up, dark,
                darker, darkness, dimmer, dimly lit, underlit, gloomy, murky, too little light, not enough light, too
                dark, lack of light, crushed blacks, crushed shadows, pitch black, blacked out, too dim, too black,
                badly underlit, too little exposure, need* more light"""),
            Words("more", kind=OVEREXPOSURE, vague="bright, brighter, lighter, brightly lit"),
            Words("virtue", kind=UNDEREXPOSURE, phrases="enough light, well lit", vague="bright enough"),
            Words("virtue", phrases="well exposed", vague="properly exposed, correctly exposed"),
            Words("virtue", kind=OVEREXPOSURE, vague="""
                highlights preserved, preserved highlights, highlights intact, highlights are preserved, highlights
                well preserved, highlights kept"""),
            Words("neutral", phrases="lighting, lit, luminance", vague="""
                brightness, exposure, exposed, the light, illumination, illuminated"""),
        ),
        signs="overexposed, underexposed",
        subtypes=(
            Subtype(
                UNDEREXPOSURE,
                "The mean brightness is {mean_luma:.0f} of 255 (usually 75 to 165), and the brightest parts reach "
                "{highlight_level:.0f} (usually over 180).",
                "The mean brightness is {mean_luma:.0f} of 255 (reference: {was[mean_luma]:.0f}).",
                kinds=("darken",),
            ),
            Subtype(
                OVEREXPOSURE,
                "The mean brightness is {mean_luma:.0f} of 255 (usually 75 to 165), and {clipped_bright:.0%} of the "
                "image is pure white (usually below 5%).",
                "The mean brightness is {mean_luma:.0f} of 255 (reference: {was[mean_luma]:.0f}).",
                kinds=("brighten",),
            ),
        ),
        too_much=OVEREXPOSURE,
        too_little=UNDEREXPOSURE,
        head="tone",
        network_share=0.67,
        loss=0.27,
        least_confidence=1.25,
    ),
    Category(
        SHARPNESS,
        "sharpness problems",
        words=(
            Words("", phrases="sharp*, clearest, crisp*, detail*, halo*"),
            Words("fault", subject="clarity", phrases="unclear", vague="soft, softer, indistinct"),
            Words("virtue", subject="clarity", phrases="clear, clearer", vague="""
                sharp, sharper, crisp, crisper, detailed"""),
            Words("neutral", subject="clarity", phrases="clarity, sharpness", vague="""
                clearness, detail, details, definition, crispness"""),
            Words("fault", kind=LACK_OF_SHARPNESS, phrases="unsharp*, lack of sharpness", vague="low sharpness"),
            Words("fault", kind=OVERSHARPENING, read_as=("oversharpened",), phrases="oversharp*, over sharp*", vague="""
                sharpening, white outlines, bright outlines, overly sharp*, too sharp, too sharpened, halo, halos,
                haloes, haloing, sharpened too much, over processed edges, sharpening halo*, sharpening artifact*,
                edge halo*, sharpened too far, sharpened too strongly"""),
        ),
        signs="oversharpened edges, halos (edges that are too soft are Blurs)",
        subtypes=(
            Subtype(
                LACK_OF_SHARPNESS,
                "The steepest step of an edge is {edge_sharpness:.0%} of its height (usually 48% to 78%).",
                "Edges are {edge_ratio:.2f} times as steep as in the reference.",
                is_trained=False,
            ),
            Subtype(
                OVERSHARPENING,
                "The steepest step of an edge is {edge_sharpness:.0%} of its height (usually 48% to 78%), and halos "
                "beside it have {overshoot:.0%} of its height.",
                "Edges are {edge_ratio:.2f} times as steep as in the reference.",
                kinds=("oversharpen",),
            ),
        ),
        too_much=OVERSHARPENING,
        too_little=LACK_OF_SHARPNESS,
        head="texture",
        network_share=0.67,
        loss=0.49,
        least_confidence=1.25,
    ),
    Category(
        CONTRAST,
        "contrast problems",
        words=(
            Words("", phrases="contrast*"),
            Words("fault", vague="contrast change*, contrast distortion*"),
            Words("fault", kind=LOW_CONTRAST, read_as=("low_contrast",), phrases="""
                low contrast, washed out, hazy, haze, foggy, flat tones, dull tones""", vague="""
                low in contrast, washed out tones, hazier, flat, flatter, milky, not enough contrast, too little
                contrast, flatness"""),
            Words("fault", kind=HIGH_CONTRAST, read_as=("high_contrast",), vague="""
                excessive in contrast, contrast too harsh, contrast is too harsh, contrast too hard, contrast is too
                hard, excessive contrast, too much contrast, contrast too strong, contrast is too strong, harsh
                contrast, too contrasty"""),
            Words("more", kind=HIGH_CONTRAST, phrases="high contrast", vague="""
                high in contrast, strong contrast, contrasty"""),
            Words("neutral", phrases="contrast, dynamic range"),
        ),
        signs="hazy, washed out, or too harsh",
        subtypes=(
            Subtype(
                LOW_CONTRAST,
                "The tones from the darkest to the brightest parts span {tonal_range:.0%} of the range that their "
                "brightness allows (usually over 62%).",
                "Brightness varies by {rms_contrast:.0f} of 255 gray levels (standard deviation; reference: "
                "{was[rms_contrast]:.0f}).",
                kinds=("low_contrast",),
            ),
            Subtype(
                HIGH_CONTRAST,
                "Brightness varies by {rms_contrast:.0f} of 255 gray levels (standard deviation, usually below 84).",
                "Brightness varies by {rms_contrast:.0f} of 255 gray levels (standard deviation; reference: "
                "{was[rms_contrast]:.0f}).",
                measure="rms_contrast",
                curve=((84, 0), (95, 1), (110, 2.2), (125, 3.2)),
                kinds=("high_contrast",),
            ),
        ),
        too_much=HIGH_CONTRAST,
        too_little=LOW_CONTRAST,
        head="tone",
        network_share=0.67,
        loss=0.17,
        least_confidence=1.5,
    ),
    Category(
        SPATIAL,
        "spatial distortions",
        words=(
            Words("", phrases="spatial distortions"),
            Words("fault", subject="unmeasured", phrases="""
                pixelat*, pixellat*, jitter*, quantiz*, quantis*, aliasing, moire, moiré, jagged*, color block*, non
                eccentricity patch*""",
                vague="""
                vignett*, flare, lens flare, ghosting, chromatic aberration*, lens distortion*, geometric
                distortion*"""),
        ),
        other_kinds=("pixelate",),
        is_detectable=False,
    ),
)  # fmt: skip

OTHER_WORDS: tuple[Words, ...] = (
    Words("fault", subject="any", vague="""
        fault, faults, distort*, degrad*, defect*, flaw*, issue, issues, problem, problems, wrong, impair*, damaged,
        spoil*, quality issue, quality issues, quality problem, messed up, quality problems"""),
    Words("virtue", subject="any", vague="undamaged, undegraded, undistorted, pristine, distortion free"),
    Words("neutral", subject="quality", vague="quality"),
)  # fmt: skip
