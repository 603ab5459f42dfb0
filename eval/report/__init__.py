"""The figures of a run from its rows: as JSON, as tables and in sentences."""

from agenticiqa.eval.report.sentences import sentences
from agenticiqa.eval.report.summary import summarize
from agenticiqa.eval.report.table import breakdown, further, headline, terminal
from agenticiqa.eval.report.writing import write

__all__ = ["breakdown", "further", "headline", "sentences", "summarize", "terminal", "write"]
