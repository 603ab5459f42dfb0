"""The arguments of the commands that start without DSPy: ``measure`` and ``gate``."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from agenticiqa.programs.cli.arguments import add_adapter_argument, add_raw_csv, add_tables, complete_files

MEASURE_EXAMPLES = """\
examples:
  agenticiqa measure ssim photo.jpg --reference original.png     one number
  agenticiqa measure ssim psnr haarpsi out/ --reference ref/     a table: folders are matched by relative path
  agenticiqa measure niqe "shots/*.jpg" --csv -                  CSV on stdout; --csv FILE writes it
  agenticiqa measure --list                                      every metric: kind, direction, range, source

Values are on the metric's own scale, of the 8-bit RGB pixels, upright and over white.
exit status: 0 all measured, 1 some failed (named on stderr), 2 usage, or nothing could be measured
"""
GATE_EXAMPLES = """\
examples:
  agenticiqa gate uploads/                          by the shipped policy (configs/gate.yaml)
  agenticiqa gate uploads/ --policy mine.yaml --json
  agenticiqa gate uploads/ --csv verdicts.csv --html sheet.html

  # mine.yaml: what is left out is not looked at
  min_short_side: 800
  min_effective_side: 1000     # of the longer side: an enlarged copy has more pixels than detail
  min_jpeg_quality: 60         # of its past, also of a PNG
  min_score: 3                 # this and the next two judge the photo as assess does, which takes longer
  distortions: {blur: severe, noise: moderate}
  refuse_kinds: [page, graphic]

reasons: undecodable, small, large, aspect, upscaled, compressed, score, kind, or the name of a distortion
exit status: 0 all accepted, 4 some refused, 1 some not found or skipped, 2 usage
"""


def add_gate_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa gate``."""
    parser.epilog, parser.formatter_class = GATE_EXAMPLES, RawDescriptionHelpFormatter
    images = parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files, folders, or - for stdin")
    policy = parser.add_argument("--policy", metavar="FILE", help="YAML with what a photo must have")
    add_adapter_argument(parser.add_argument)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object: counts by reason, and each image")
    rows = output.add_argument(
        "--jsonl",
        metavar="FILE",
        help="write one JSON line for each image, which replaces an earlier file; - prints them",
    )
    add_tables(parser.add_argument, "the verdicts with their reasons")
    parser.add_argument("--workers", metavar="N", type=int, help="images in parallel (default: one per processor core)")
    for argument in (images, policy, rows):
        complete_files(argument)


def add_measure_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa measure``."""
    parser.epilog, parser.formatter_class = MEASURE_EXAMPLES, RawDescriptionHelpFormatter
    words = parser.add_argument(
        "words",
        nargs="*",
        metavar="METRIC ... IMAGE",
        help="metrics in any case, or pyiqa:NAME, then image files, folders or - (stdin)",
    )
    reference = parser.add_argument("--reference", metavar="R", help="the pristine original, or a folder of originals")
    output = parser.add_mutually_exclusive_group()
    table = output.add_argument("--csv", metavar="FILE", help="write CSV into FILE; - prints it")
    output.add_argument("--json", action="store_true", help="print a JSON list")
    add_raw_csv(parser.add_argument)
    parser.add_argument("--workers", metavar="N", type=int, help="images in parallel (default: one per processor core)")
    parser.add_argument("--list", action="store_true", help="list the metrics: kind, direction, range, source")
    for argument in (words, reference, table):
        complete_files(argument)
