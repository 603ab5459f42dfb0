"""The wordings of the self-made questions with options, in two sets.

The offline reader of questions was improved on ``first``. ``second`` was written before the next change, and is used
for measuring. Both ask the same questions. Several wordings of one question are used in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wordings:
    """The texts, with ``{noun}``, ``{tool}``, ``{query}``, ``{thing}``, ``{found}`` and ``{score}`` to be filled in.

    ``words`` has what each kind of ``distort`` is called as an option, and as the subject of a question.
    """

    words: Mapping[str, tuple[str, str]]
    which_step: tuple[str, ...]
    which_change: tuple[str, ...]
    severity: tuple[str, ...]
    whereabouts: tuple[str, ...]
    pair: tuple[str, ...]
    metric: tuple[str, ...]
    metric_fits: tuple[str, ...]
    thing: tuple[str, ...]
    query_with_thing: tuple[str, ...]
    query: tuple[str, ...]
    fault_of_query: tuple[str, ...]
    verdict: tuple[str, ...]


FIRST = Wordings(
    words={
        "gaussian_blur": ("Gaussian blurring", "blurring"),
        "white_noise": ("Random pixel noise", "pixel noise"),
        "jpeg": ("Strong JPEG coding", "JPEG block structure"),
        "low_contrast": ("Washed-out contrast", "loss of contrast"),
        "darken": ("Underexposed tones", "loss of brightness"),
        "oversaturate": ("Garish, oversaturated colors", "oversaturation"),
        "oversharpen": ("Overdone sharpening", "sharpening halos"),
        "motion_blur": ("Motion streaks", "motion streaking"),
        "impulse_noise": ("Salt-and-pepper specks", "speckling with salt-and-pepper dots"),
        "banding": ("Posterized steps between tones", "posterization"),
        "brighten": ("Overexposed tones", "excess of brightness"),
        "color_cast": ("A color tint over everything", "color tinting"),
    },
    which_step=(
        "A single processing step was applied to this photograph. Which one was it?",
        "Of the following, what was this shot put through?",
        "Pick the fault that somebody built into this frame.",
    ),
    which_change=(
        "Next to its original, this copy went through one change. Name it.",
        "What separates this copy from the original that it is shown with?",
    ),
    severity=("Grade the amount of {noun} in this frame.",),
    whereabouts=(
        "The {noun} does not cover the entire frame. Whereabouts is it?",
        "One part of this frame was spoiled by {noun}. Mark it.",
    ),
    pair=("Two versions of a scene are given, the image and its reference. On which is {noun} stronger?",),
    metric=("No pristine original of this frame can be had. Which of these metrics still yields a value for it?",),
    metric_fits=("Is the '{tool}' tool usable where this frame is all there is, with no original?",),
    thing=("What object is explicitly mentioned in the query? The query is: {query}",),
    query_with_thing=("Has {noun} marred the {thing}?",),
    query=("How far has {noun} gone?", "How far has {noun} gone in this picture?"),
    fault_of_query=("Which flaw is brought up by the query? The query is: {query}",),
    verdict=(
        "The analysis found: {found}. The tool used is: LEARNED-IQA (score: {score}). The score ranges from 1 to "
        "5, from bad over poor, fair and good to excellent. Which verdict follows?",
    ),
)
SECOND = Wordings(
    words={
        "gaussian_blur": ("Softness from blur", "blur"),
        "white_noise": ("Grain", "grain"),
        "jpeg": ("JPEG artifacts", "JPEG artifacts"),
        "low_contrast": ("Too little contrast", "lack of contrast"),
        "darken": ("Too dark", "darkness"),
        "oversaturate": ("Colors too strong", "excess of color"),
        "oversharpen": ("Too much sharpening", "oversharpening"),
        "motion_blur": ("Blur from motion", "motion blur"),
        "impulse_noise": ("Impulse noise", "impulse noise"),
        "banding": ("Banding", "banding"),
        "brighten": ("Too bright", "overexposure"),
        "color_cast": ("A color cast", "color cast"),
    },
    which_step=(
        "What happened to this photograph? Pick the option that fits.",
        "Which degradation would you tag this picture with?",
        "This is a damaged copy of a good photograph. What is the damage?",
    ),
    which_change=(
        "The test image was derived from the reference by one operation. Which?",
        "Compare the copy with its source. What was altered?",
    ),
    severity=("How much {noun} do you find in this photograph?", "Which word fits the strength of the {noun} best?"),
    whereabouts=("The {noun} is confined to a part of the picture. Which part?", "Find the section with {noun}."),
    pair=("You see a picture and its reference. Which of them shows more {noun}?",),
    metric=("The source of this photograph is lost, so there is no reference. Which measure can still be computed?",),
    metric_fits=("Could the measure '{tool}' be computed without a reference picture to compare with?",),
    thing=("Name the thing that the question refers to. The question is: {query}",),
    query_with_thing=("Is there any {noun} on the {thing}?",),
    query=("How bad is the {noun}?", "Would you say that {noun} spoils this shot?"),
    fault_of_query=("What kind of damage is named in the question? The question is: {query}",),
    verdict=(
        "What was found: {found}. LEARNED-IQA gave a score of {score} on a scale from 1 to 5, where the levels are "
        "bad, poor, fair, good and excellent. What verdict does it imply?",
    ),
)
WORDINGS: Mapping[str, Wordings] = {"first": FIRST, "second": SECOND}


def in_turn(texts: tuple[str, ...], number: int, **values: str) -> str:
    """Return the text for a number, in rotation, with its fields filled in."""
    return texts[number % len(texts)].format(**values)
