"""A fusion profile with typical errors, which tests change."""

from agenticiqa.programs.fusion.profile import FusionProfile

TYPICAL = FusionProfile(
    tool_error=0.6,
    model_error=0.7,
    score_error=0.65,
    model_axis="level",
    model_location=3.0,
    model_center=3.0,
    quality_mean=3.2,
    quality_std=0.8,
    reliability={"tool": 0.8, "model": 0.75},
)
