"""The arguments of ``agenticiqa measure``."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from agenticiqa.programs.cli.arguments import complete_files

EXAMPLES = """\
examples:
  agenticiqa measure ssim photo.jpg --reference original.png     one number
  agenticiqa measure ssim psnr haarpsi out/ --reference ref/     a table: folders are matched by relative path
  agenticiqa measure niqe "shots/*.jpg" --csv -                  CSV on stdout; --csv FILE writes it
  agenticiqa measure --list                                      every metric: kind, direction, range, source

Values are on the metric's own scale, of the 8-bit RGB pixels, upright and over white.
exit status: 0 all measured, 1 some failed (named on stderr), 2 usage, or nothing could be measured
"""


def add_measure_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa measure``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    words = parser.add_argument(
        "words",
        nargs="*",
        metavar="METRIC ... IMAGE",
        help="metrics in any case, then image files, folders or - (stdin)",
    )
    reference = parser.add_argument("--reference", metavar="R", help="the pristine original, or a folder of originals")
    output = parser.add_mutually_exclusive_group()
    table = output.add_argument("--csv", metavar="FILE", help="write CSV into FILE; - prints it")
    output.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--workers", metavar="N", type=int, help="images in parallel (default: one per processor core)")
    parser.add_argument("--list", action="store_true", help="list the metrics: kind, direction, range, source")
    for argument in (words, reference, table):
        complete_files(argument)
