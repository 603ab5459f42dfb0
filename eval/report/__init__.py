"""Compute the figures of runs from their rows, and report them as tables and sentences in every format."""

from agenticiqa.eval.report.rating_tables import rating_report
from agenticiqa.eval.report.ratings import summarize

__all__ = ["rating_report", "summarize"]
