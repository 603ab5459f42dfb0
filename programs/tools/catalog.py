"""The toolbox: every embedded metric's card, and the dict that a program is given.

Which tool is chosen for a distortion is decided by the measured table (``agreement``); of equals the first is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools.calibration import Calibration, usable
from agenticiqa.programs.tools.metrics.damage import blocking_map, blur_map, clipping_map, noise_map
from agenticiqa.programs.tools.metrics.deep_sim import deep_similarity
from agenticiqa.programs.tools.metrics.exposure_error import exposure_error, exposure_error_of
from agenticiqa.programs.tools.metrics.fidelity import ms_ssim, ms_ssim_damage, psnr, psnr_damage, ssim, ssim_damage
from agenticiqa.programs.tools.metrics.fr_fusion import consensus, consensus_damage
from agenticiqa.programs.tools.metrics.gradient import fsim, fsim_damage, gmsd, gmsd_damage, mdsi, mdsi_damage
from agenticiqa.programs.tools.metrics.haarpsi import haarpsi, haarpsi_damage
from agenticiqa.programs.tools.metrics.learned_iqa import SMALLEST as LEARNED_SMALLEST
from agenticiqa.programs.tools.metrics.learned_iqa import learned_damage, learned_quality, learned_quality_of
from agenticiqa.programs.tools.metrics.naturalness import BRISQUE_SMALLEST, NIQE_SMALLEST, brisque, niqe, niqe_map
from agenticiqa.programs.tools.metrics.piqe import SMALLEST as PIQE_SMALLEST
from agenticiqa.programs.tools.metrics.piqe import piqe, piqe_map
from agenticiqa.programs.tools.metrics.ssimulacra2 import ssimulacra2, ssimulacra2_damage
from agenticiqa.programs.tools.metrics.vif import vif, vif_damage
from agenticiqa.programs.tools.srcc_table import measured
from agenticiqa.programs.tools.statistics.measures import measure, take
from agenticiqa.programs.tools.tool import SharedMeasure, Tool, find_tool
from agenticiqa.signatures.types import OVERALL


def _measure(name: str, image: LoadedImage) -> float:
    return measure(image)[name]


FULL_REFERENCE = (
    Tool(
        name="FR-FUSION",
        kind="FR",
        higher_is_better=True,
        raw_range=(1.0, 5.0),
        good_at=(OVERALL,),
        description="The mean verdict of HaarPSI, MDSI and VIF, each brought to 1..5 by a curve of its own.",
        source="own; curves fitted on LIVE r2",
        cost_ms=70,
        measure=consensus,
        map=consensus_damage,
        map_end=1.1,
        smallest=8,
        trained_on=("live_r2",),
    ),
    Tool(
        name="HaarPSI",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(OVERALL, "Blurs", "Noise", "Compression", "Sharpness", "Spatial distortions"),
        description="Similarity of local Haar wavelet coefficients, in luma and colour.",
        source="Reisenhofer et al. 2018, Signal Processing: Image Communication 61",
        cost_ms=7,
        measure=haarpsi,
        map=haarpsi_damage,
        map_end=0.05,
        smallest=8,
    ),
    Tool(
        name="FSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.5, 1.0),
        good_at=(OVERALL, "Contrast"),
        description="Similarity of phase congruency and gradients, the features that the eye picks out first.",
        source="Zhang et al. 2011, IEEE TIP 20(8)",
        cost_ms=34,
        measure=fsim,
        map=fsim_damage,
        map_end=0.45,
        smallest=8,
    ),
    Tool(
        name="MDSI",
        kind="FR",
        higher_is_better=False,
        raw_range=(0.0, 0.8),
        good_at=(),
        description="Spread of the similarity of edges and chromaticity.",
        source="Nafchi et al. 2016, IEEE Access 4",
        cost_ms=5,
        measure=mdsi,
        map=mdsi_damage,
        map_end=0.27,
        smallest=8,
    ),
    Tool(
        name="SSIMULACRA2",
        kind="FR",
        higher_is_better=True,
        raw_range=(-200.0, 100.0),
        good_at=("Compression",),
        description="Structure and edges over six scales in a perceptual colour space, weighted for compression.",
        source="Sneyers 2022, Cloudinary; weights of April 2023",
        cost_ms=33,
        measure=ssimulacra2,
        map=ssimulacra2_damage,
        map_end=110.0,
        smallest=8,
    ),
    Tool(
        name="GMSD",
        kind="FR",
        higher_is_better=False,
        raw_range=(0.0, 0.35),
        good_at=(),
        description="Spread of the gradients' similarity; sees damage that is worse in some places than in others.",
        source="Xue et al. 2014, IEEE TIP 23(2)",
        cost_ms=2,
        measure=gmsd,
        map=gmsd_damage,
        map_end=0.26,
        smallest=8,
    ),
    Tool(
        name="DEEP-SIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="Cosine of a recognition network's features, position by position: what is still recognisable.",
        source="own, after Zhang et al. 2018, CVPR (LPIPS), on EfficientNet-Lite0 and without fitted weights",
        cost_ms=120,
        measure=deep_similarity,
        smallest=LEARNED_SMALLEST,
    ),
    Tool(
        name="VIF",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="The share of the reference's visual information that is left.",
        source="Sheikh and Bovik 2006, IEEE TIP 15(2)",
        cost_ms=56,
        measure=vif,
        map=vif_damage,
        map_end=1.4,
        smallest=65,
    ),
    Tool(
        name="MS-SSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="Structural similarity over five scales.",
        source="Wang et al. 2003, Asilomar",
        cost_ms=9,
        measure=ms_ssim,
        map=ms_ssim_damage,
        map_end=0.34,
        smallest=176,
    ),
    Tool(
        name="SSIM",
        kind="FR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=(),
        description="Structural similarity of local luma patterns.",
        source="Wang et al. 2004, IEEE TIP 13(4)",
        cost_ms=7,
        measure=ssim,
        map=ssim_damage,
        map_end=0.71,
        smallest=11,
    ),
    Tool(
        name="PSNR",
        kind="FR",
        higher_is_better=True,
        raw_range=(10.0, 60.0),
        good_at=("Color distortions", "Brightness change"),
        description="Pixel error in decibels over all three channels; the one embedded metric that every change moves.",
        source="ITU-T J.247; peak 255",
        cost_ms=1,
        measure=psnr,
        map=psnr_damage,
        map_end=0.016,
    ),
)
NO_REFERENCE = (
    Tool(
        name="LEARNED-IQA",
        kind="NR",
        higher_is_better=True,
        raw_range=(1.0, 5.0),
        good_at=(OVERALL,),
        description="People's mean opinion as a linear reading of a recognition network's activations foretells it.",
        source="own, on EfficientNet-Lite0 (Tan and Le 2019, ICML); see quality_model.md",
        cost_ms=60,
        measure=SharedMeasure(learned_quality, learned_quality_of),
        map=learned_damage,
        map_start=1.6,
        map_end=3.2,
        smallest=LEARNED_SMALLEST,
        trained_on=("live_r2", "clive", "biq2021", "avt_ai"),
    ),
    Tool(
        name="NIQE",
        kind="NR",
        higher_is_better=False,
        raw_range=(2.0, 20.0),
        good_at=(OVERALL,),
        description="Distance of local contrast statistics from those of pristine photographs.",
        source="Mittal et al. 2013, IEEE SPL 20(3)",
        cost_ms=20,
        smallest=NIQE_SMALLEST,
        measure=niqe,
        map=niqe_map,
        map_end=15.0,  # more than extreme blur, noise and JPEG reach, since parts of good photos reach 10
    ),
    Tool(
        name="BRISQUE",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=(OVERALL, "Spatial distortions"),
        description="Deviation of local contrast statistics from those of rated images.",
        source="Mittal et al. 2012, IEEE TIP 21(12); trained on LIVE r2",
        trained_on=("live_r2",),
        cost_ms=20,
        smallest=BRISQUE_SMALLEST,
        measure=brisque,
    ),
    Tool(
        name="PIQE",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=(),
        description="Share and strength of blocks that look damaged or noisy.",
        source="Venkatanath et al. 2015, NCC",
        cost_ms=12,
        smallest=PIQE_SMALLEST,
        measure=piqe,
        map=piqe_map,
        map_end=0.77,
    ),
    Tool(
        name="BLUR-EXTENT",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 1.0),
        good_at=("Blurs",),
        description="How little the image changes when it is blurred again.",
        source="Crete et al. 2007, SPIE 6492",
        cost_ms=6,
        measure=SharedMeasure(partial(take, "blur_extent"), partial(_measure, "blur_extent")),
        map=blur_map,
        map_end=0.51,
    ),
    Tool(
        name="EDGE-SHARPNESS",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 1.0),
        good_at=("Sharpness",),
        description="How steep the strongest edges are.",
        source="width of edge profiles, after Marziliano et al. 2002, ICIP",
        cost_ms=6,
        measure=SharedMeasure(partial(take, "edge_sharpness"), partial(_measure, "edge_sharpness")),
    ),
    Tool(
        name="NOISE-SIGMA",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 70.0),
        good_at=("Noise",),
        description="Standard deviation of the noise in grey levels.",
        source="Immerkaer 1996, CVIU 64(2), on the smoothest blocks",
        cost_ms=5,
        measure=SharedMeasure(partial(take, "noise_sigma"), partial(_measure, "noise_sigma")),
        map=noise_map,
        map_end=25.0,
    ),
    Tool(
        name="BLOCKINESS",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 100.0),
        good_at=("Compression",),
        description="Strength of luma steps on the 8 x 8 grid of JPEG.",
        source="Wang et al. 2000, ICIP, as a ratio",
        cost_ms=4,
        measure=SharedMeasure(partial(take, "blockiness"), partial(_measure, "blockiness")),
        map=blocking_map,
        map_end=9.0,
    ),
    Tool(
        name="EXPOSURE-ERROR",
        kind="NR",
        higher_is_better=False,
        raw_range=(0.0, 1.0),
        good_at=("Brightness change",),
        description="Distance of the mean luma from that of well exposed photographs.",
        source="mean luma against 80..160",
        cost_ms=1,
        measure=SharedMeasure(exposure_error, exposure_error_of),
        map=clipping_map,
        map_end=1.0,
    ),
    Tool(
        name="COLORFULNESS",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 150.0),
        good_at=("Color distortions",),
        description="Spread and strength of opponent colours.",
        source="Hasler and Suesstrunk 2003, SPIE 5007",
        cost_ms=1,
        measure=SharedMeasure(partial(take, "colorfulness"), partial(_measure, "colorfulness")),
    ),
    Tool(
        name="RMS-CONTRAST",
        kind="NR",
        higher_is_better=True,
        raw_range=(0.0, 127.5),
        good_at=("Contrast",),
        description="Standard deviation of luma.",
        source="Peli 1990, JOSA A 7(10)",
        cost_ms=1,
        measure=SharedMeasure(partial(take, "rms_contrast"), partial(_measure, "rms_contrast")),
    ),
)

TOOLS: dict[str, Tool] = {card.name: card for card in (*FULL_REFERENCE, *NO_REFERENCE)}


def toolbox(profile: str = "default", pyiqa: Sequence[str] = ()) -> dict[str, Tool]:
    """The tools that a program may use: those with a monotone curve in the calibration profile.

    ``pyiqa`` adds metrics of that package by name, those that are not embedded under that name. Raises ToolError when
    there is no such profile or metric, or no tool with a usable curve.
    """
    tools: dict[str, Tool] = {}
    if pyiqa:  # first, since whoever lists them prefers them
        from agenticiqa.programs.tools.pyiqa import pyiqa_card

        for name in pyiqa:
            if embedded := find_tool(name, TOOLS):  # a question that names one could mean either
                raise ToolError(f"{embedded} is embedded already: take {name!r} out of the pyiqa metrics")
            tools[name] = pyiqa_card(name, profile)
    for name, card in TOOLS.items():
        curve, _ = curve_or_reason(name, profile)
        if curve is not None:
            tools[name] = replace(card, calibration=curve, measured=measured().get(name, {}))
    if not tools:
        raise ToolError(f"calibration profile {profile!r} has no usable curve for any tool")
    return tools


def curve_or_reason(name: str, profile: str) -> tuple[Calibration | None, str]:
    """A tool's curve in a profile, or ``None`` and the reason why there is no usable one."""
    try:
        return usable(name, profile), ""
    except ToolError as error:
        return None, str(error)


def listing(tools: Mapping[str, Tool], profile: str) -> list[dict[str, Any]]:
    """A row for every embedded and added tool: what ``agenticiqa tools`` shows."""
    return [
        {
            "name": name,
            "kind": card.kind,
            "direction": "higher" if card.higher_is_better else "lower",
            "raw_range": list(card.raw_range),
            "cost_ms": card.cost_ms,
            "good_at": list(card.good_at),
            "measured": {name: asdict(found) for name, found in card.strengths().items()},
            "description": card.description,
            "source": card.source,
            "status": "ready" if name in tools else f"not usable: {curve_or_reason(name, profile)[1]}",
            "fitted_on": card.calibration.fitted_on if card.calibration else None,
        }
        for name, card in {**TOOLS, **tools}.items()
    ]
