"""The toolbox: every embedded metric's card, and the dict that a program is given.

The order is the order of preference: of the tools that are good at a distortion the first is chosen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.plan_rules import find_tool
from agenticiqa.programs.tools.blockwise import SMALLEST as PIQE_SMALLEST
from agenticiqa.programs.tools.blockwise import piqe
from agenticiqa.programs.tools.calibration import Calibration, usable
from agenticiqa.programs.tools.card import ToolCard
from agenticiqa.programs.tools.exposure import exposure_error
from agenticiqa.programs.tools.fidelity import ms_ssim, psnr, ssim
from agenticiqa.programs.tools.gradient import fsim, gmsd
from agenticiqa.programs.tools.haar import haarpsi
from agenticiqa.programs.tools.information import vif
from agenticiqa.programs.tools.naturalness import BRISQUE_SMALLEST, NIQE_SMALLEST, brisque, niqe
from agenticiqa.programs.tools.spatial import blockiness, blur_extent, edge_sharpness, noise_sigma
from agenticiqa.programs.tools.tonal import colorfulness, rms_contrast
from agenticiqa.signatures.types import OVERALL

FULL_REFERENCE = (
    ToolCard(
        name="HaarPSI",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(OVERALL, "Blurs", "Noise", "Compression", "Sharpness", "Spatial distortions"),
        description="Similarity of local Haar wavelet coefficients, in luma and colour.",
        source="Reisenhofer et al. 2018, Signal Processing: Image Communication 61",
        cost_ms=50,
        measure=haarpsi,
        smallest=8,
    ),
    ToolCard(
        name="FSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.5, 1.0),
        good_at=(OVERALL, "Contrast"),
        description="Similarity of phase congruency and gradients, the features that the eye picks out first.",
        source="Zhang et al. 2011, IEEE TIP 20(8)",
        cost_ms=130,
        measure=fsim,
        smallest=8,
    ),
    ToolCard(
        name="GMSD",
        kind="FR",
        higher_is_better=False,
        raw_range=(0.0, 0.35),
        good_at=(),
        description="Spread of the gradients' similarity; sees damage that is worse in some places than in others.",
        source="Xue et al. 2014, IEEE TIP 23(2)",
        cost_ms=16,
        measure=gmsd,
        smallest=8,
    ),
    ToolCard(
        name="VIF",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="The share of the reference's visual information that is left.",
        source="Sheikh and Bovik 2006, IEEE TIP 15(2)",
        cost_ms=165,
        measure=vif,
        smallest=65,
    ),
    ToolCard(
        name="MS-SSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="Structural similarity over five scales.",
        source="Wang et al. 2003, Asilomar",
        cost_ms=55,
        measure=ms_ssim,
        smallest=176,
    ),
    ToolCard(
        name="SSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="Structural similarity of local luma patterns.",
        source="Wang et al. 2004, IEEE TIP 13(4)",
        cost_ms=35,
        measure=ssim,
        smallest=11,
    ),
    ToolCard(
        name="PSNR",
        kind="FR",
        higher_is_better=True,
        raw_range=(10.0, 60.0),
        good_at=("Color distortions", "Brightness change"),
        description="Pixel error in decibels over all three channels; the one embedded metric that every change moves.",
        source="ITU-T J.247; peak 255",
        cost_ms=1,
        measure=psnr,
    ),
)
NO_REFERENCE = (
    ToolCard(
        name="NIQE",
        kind="NR",
        higher_is_better=False,
        raw_range=(2.0, 20.0),
        good_at=(OVERALL,),
        description="Distance of local contrast statistics from those of pristine photographs.",
        source="Mittal et al. 2013, IEEE SPL 20(3)",
        cost_ms=25,
        smallest=NIQE_SMALLEST,
        measure=niqe,
    ),
    ToolCard(
        name="BRISQUE",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=(OVERALL, "Spatial distortions"),
        description="Deviation of local contrast statistics from those of rated images.",
        source="Mittal et al. 2012, IEEE TIP 21(12); trained on LIVE r2",
        cost_ms=29,
        smallest=BRISQUE_SMALLEST,
        measure=brisque,
    ),
    ToolCard(
        name="PIQE",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=(),
        description="Share and strength of blocks that look damaged or noisy.",
        source="Venkatanath et al. 2015, NCC",
        cost_ms=26,
        smallest=PIQE_SMALLEST,
        measure=piqe,
    ),
    ToolCard(
        name="BLUR-EXTENT",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 1.0),
        good_at=("Blurs",),
        description="How little the image changes when it is blurred again.",
        source="Crete et al. 2007, SPIE 6492",
        cost_ms=15,
        measure=blur_extent,
    ),
    ToolCard(
        name="EDGE-SHARPNESS",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=("Sharpness",),
        description="How steep the strongest edges are.",
        source="width of edge profiles, after Marziliano et al. 2002, ICIP",
        cost_ms=15,
        measure=edge_sharpness,
    ),
    ToolCard(
        name="NOISE-SIGMA",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 70.0),
        good_at=("Noise",),
        description="Standard deviation of the noise in grey levels.",
        source="Immerkaer 1996, CVIU 64(2), on the smoothest blocks",
        cost_ms=10,
        measure=noise_sigma,
    ),
    ToolCard(
        name="BLOCKINESS",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=("Compression",),
        description="Strength of luma steps on the 8 x 8 grid of JPEG.",
        source="Wang et al. 2000, ICIP, as a ratio",
        cost_ms=5,
        measure=blockiness,
    ),
    ToolCard(
        name="EXPOSURE-ERROR",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 1.0),
        good_at=("Brightness change",),
        description="Distance of the mean luma from that of well exposed photographs.",
        source="mean luma against 80..160",
        cost_ms=3,
        measure=exposure_error,
    ),
    ToolCard(
        name="COLORFULNESS",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 150.0),
        good_at=("Color distortions",),
        description="Spread and strength of opponent colours.",
        source="Hasler and Suesstrunk 2003, SPIE 5007",
        cost_ms=5,
        measure=colorfulness,
    ),
    ToolCard(
        name="RMS-CONTRAST",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 127.5),
        good_at=("Contrast",),
        description="Standard deviation of luma.",
        source="Peli 1990, JOSA A 7(10)",
        cost_ms=2,
        measure=rms_contrast,
    ),
)

CARDS: dict[str, ToolCard] = {card.name: card for card in (*FULL_REFERENCE, *NO_REFERENCE)}


def toolbox(profile: str = "default", pyiqa: Sequence[str] = ()) -> dict[str, ToolCard]:
    """The tools that a program may use: those with a monotone curve in the calibration profile.

    ``pyiqa`` adds metrics of that package by name, those that are not embedded under that name. Raises ToolError when
    there is no such profile or metric, or no tool with a usable curve.
    """
    tools: dict[str, ToolCard] = {}
    if pyiqa:  # first, since whoever lists them prefers them
        from agenticiqa.programs.tools.pyiqa_cards import pyiqa_card

        for name in pyiqa:
            if embedded := find_tool(name, CARDS):  # a question that names one could mean either
                raise ToolError(f"{embedded} is embedded already: take {name!r} out of the pyiqa metrics")
            tools[name] = pyiqa_card(name, profile)
    for name, card in CARDS.items():
        curve, _ = curve_or_reason(name, profile)
        if curve is not None:
            tools[name] = replace(card, calibration=curve)
    if not tools:
        raise ToolError(f"calibration profile {profile!r} has no usable curve for any tool")
    return tools


def curve_or_reason(name: str, profile: str) -> tuple[Calibration | None, str]:
    """A tool's curve in a profile, or ``None`` and the reason why there is no usable one."""
    try:
        return usable(name, profile), ""
    except ToolError as error:
        return None, str(error)


def listing(tools: Mapping[str, ToolCard], profile: str) -> list[dict[str, Any]]:
    """A row for every embedded and added tool: what ``agenticiqa tools`` shows."""
    return [
        {
            "name": name,
            "kind": card.kind,
            "direction": "higher" if card.higher_is_better else "lower",
            "raw_range": list(card.raw_range),
            "cost_ms": card.cost_ms,
            "good_at": list(card.good_at),
            "description": card.description,
            "source": card.source,
            "status": "ready" if name in tools else f"not usable: {curve_or_reason(name, profile)[1]}",
            "fitted_on": card.calibration.fitted_on if card.calibration else None,
        }
        for name, card in {**CARDS, **tools}.items()
    ]
