"""All faults by name, family by family."""

from collections.abc import Sequence
from dataclasses import replace

from support.faulty import (
    bodies,
    chunked,
    connections,
    contents,
    endless,
    fields,
    heads,
    interim,
    lengths,
    levels,
    load,
    logprobs,
    no_answer,
    rate_limits,
    statuses,
)
from support.faulty.exchange import Profile

FAMILIES: dict[str, Sequence[Profile]] = {
    "connection": connections.ROWS,
    "interim": interim.ROWS,
    "length": lengths.ROWS,
    "head": heads.ROWS,
    "chunked": chunked.ROWS,
    "endless": endless.ROWS,
    "status": statuses.ROWS,
    "limit": rate_limits.ROWS,
    "no-answer": no_answer.ROWS,
    "body": bodies.ROWS,
    "field": fields.ROWS,
    "content": contents.ROWS,
    "level": levels.ROWS,
    "logprob": logprobs.ROWS,
    "load": load.ROWS,
}
HEALTHY = Profile("healthy", "no fault", lambda ex: None, when=lambda ex: False, expect="judged", family="healthy")
PROFILES = {row.name: replace(row, family=family) for family, rows in FAMILIES.items() for row in rows}
