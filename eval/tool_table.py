"""How well each embedded metric agrees with observers, as a Markdown table.

    python -m agenticiqa.eval.tool_table LABELS.csv [--split dev]

Full-reference metrics are left out where the labels name no references.
"""

import argparse
import sys
from collections.abc import Sequence

from agenticiqa.eval.bootstrap import Estimate, estimate, estimate_fitted
from agenticiqa.eval.calibrate import raw_value
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.programs.errors import AgenticIQAError, ToolError
from agenticiqa.programs.tools import CARDS, ToolCard


def agreement(card: ToolCard, items: Sequence[Labelled]) -> tuple[Estimate, Estimate, int]:
    """SRCC and fitted PLCC (positive: agrees) with 95 % intervals over contents, and how many images it refused."""
    values, mos, contents = [], [], []
    for item in items:
        try:
            raw = raw_value(card, item)
        except ToolError:
            continue
        values.append(raw if card.higher_is_better else -raw)
        mos.append(item.mos)
        contents.append(item.content)
    refused = len(items) - len(values)
    return estimate(srcc, values, mos, contents), estimate_fitted(values, mos, contents), refused


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image, mos and, for FR tools, reference")
    parser.add_argument("--split", help="only the rows of this split")
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels, args.split)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    print("| metric | n | refused | SRCC [95 %] | PLCC fitted [95 %] |")
    print("| --- | --- | --- | --- | --- |")
    for name, card in CARDS.items():
        if card.kind == "NR" or all(item.reference for item in items):
            rank, linear, refused = agreement(card, items)
            print(f"| {name} | {rank.n} | {refused} | {_cell(rank)} | {_cell(linear)} |", flush=True)
    return 0


def _cell(figure: Estimate) -> str:
    if figure.value is None:
        return f"- ({figure.note})"
    interval = "" if figure.low is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:.3f}{interval}"


if __name__ == "__main__":
    sys.exit(main())
