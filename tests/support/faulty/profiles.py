"""All faults by name, in families: each fault that docs/errors.md explains, and each that was fixed."""

from collections.abc import Sequence
from dataclasses import replace

from support.faulty import answers, load, refusals, transport
from support.faulty.exchange import Profile

FAMILIES: dict[str, Sequence[Profile]] = {
    "connection": transport.CONNECTION,
    "interim": transport.INTERIM,
    "length": transport.LENGTH,
    "head": transport.HEAD,
    "chunked": transport.CHUNKS,
    "endless": transport.ENDLESS,
    "status": refusals.STATUS,
    "limit": refusals.LIMIT,
    "no-answer": refusals.NO_ANSWER,
    "body": answers.BODY,
    "field": answers.FIELD,
    "content": answers.CONTENT,
    "level": answers.LEVEL,
    "logprob": answers.LOGPROB,
    "load": load.LOAD,
}
HEALTHY = Profile("healthy", "no fault", lambda ex: None, when=lambda ex: False, expect="assessed", family="healthy")
PROFILES = {HEALTHY.name: HEALTHY} | {
    row.name: replace(row, family=family) for family, rows in FAMILIES.items() for row in rows
}
