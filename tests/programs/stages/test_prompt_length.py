"""The length of the prompts of a rating, by stage: every image pays for longer prompts."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.batch.cost import text_tokens
from support.fake_server import by_stage, fake_server, field_of, stage_of, text_of
from support.loopback import Body
from support.scripted_answers import SCRIPT, program_for

# Tokens as ``cost`` counts them, within 7 % of GPT-4o's tokenizer.
MOST_ENFORCED, MOST_IN_WORDS, MOST_OF_A_STAGE = 2900, 3600, 900
STAGES = {"plan", "detection", "selection", "analysis", "assessment"}


def two(request: Body) -> dict[str, Any]:
    """Return two distortions in every region of the request."""
    scope = json.loads(field_of(request, "query_scope"))
    return {"distortion_set": [{"region": region, "distortions": ["Blurs", "Noise"]} for region in scope]}


def sent(photo: Path, form: str) -> dict[str, int]:
    """Return the tokens of each stage's text, with the schema that hosted models bill, in a rating of five requests."""
    section = {"structured_outputs": form, "backend": "openai.test"}
    with fake_server(by_stage({**SCRIPT, "detection": two})) as server:
        program_for(server, planner=section, executor=section, summarizer=section)(photo, "Rate this snapshot.")
    tokens: dict[str, int] = {}
    for body in server.requests:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        shown = text_tokens(text_of(body)) + (text_tokens(json.dumps(schema)) if schema else 0)
        tokens[stage_of(body)] = tokens.get(stage_of(body), 0) + shown
    assert tokens.keys() == STAGES
    return tokens


@pytest.mark.parametrize(("form", "most"), [("json_schema", MOST_ENFORCED), ("off", MOST_IN_WORDS)])
def test_a_rating_of_five_calls_stays_within_its_token_budget(photo: Path, form: str, most: int) -> None:
    tokens = sent(photo, form)
    assert sum(tokens.values()) <= most, tokens
    assert max(tokens.values()) <= MOST_OF_A_STAGE, tokens
