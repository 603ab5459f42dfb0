"""The table of degrees that are told."""

from agenticiqa.eval.research.degrees import UNDETERMINED, table


def test_the_table_counts_what_is_true_and_what_is_not_said() -> None:
    rows = [
        (("cast", "slight", True), UNDETERMINED),
        (("cast", "slight", False), UNDETERMINED),
        (("cast", "none", True), "none"),
        (("noise", "extreme", True), "extreme"),
    ]
    assert table(rows)[2:] == [
        "| cast | 1 of 1 | 1 of 2 | - | - | - | 2 |",
        "| noise | - | - | - | - | 1 of 1 | 0 |",
    ]
