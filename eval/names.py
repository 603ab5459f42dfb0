"""Names that users write on the command line, shared by the parsers and the code that they start."""

from typing import Literal, get_args

GROUPS = ("distortion", "level", "generator", "split")  # columns of labels that figures are broken down by
Part = Literal["planner", "detection", "analysis", "replan", "regions"]  # parts of the program that --ablate leaves out
PARTS: tuple[Part, ...] = get_args(Part)
TABLE_FORMS = ("markdown", "latex", "csv")
SCORER_FORMS = "the name of an embedded metric (agenticiqa tools), pyiqa:METRIC, or module:function"
MOS_RANGE_HELP = (
    "the scores that mean 1 and 5 (default: of 0..1, 1..5 and 0..100 the first that holds them all, if they fill a "
    "quarter of it)"
)
TUNED_STAGES = ("scoring", "answering", "planning", "detection", "all")
OPTIMIZERS = ("reflect", "gepa", "mipro", "simba", "bootstrap")
