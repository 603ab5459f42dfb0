"""Read the stage, the fields and the images of the program's chat requests. Standard library only."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]


def stage_of(request: Body) -> str:
    """Return the stage of a request: the output field that it asks for, or ``plan`` for the planner's."""
    asked = output_field_of(request)
    return "plan" if asked == "planner_output" else asked


def output_field_of(request: Body) -> str:
    """Return the output field that a request asks for."""
    asked = re.findall(r"order of fields: `(\w+)`", text_of(request["messages"][-1]))
    return asked[-1] if asked else "unknown"


def text_of(message_or_request: Mapping[str, Any]) -> str:
    """Return all text of a message, or of every message of a request."""
    if "messages" in message_or_request:
        return "\n".join(text_of(message) for message in message_or_request["messages"])
    content = message_or_request["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def images_of(request: Body) -> list[tuple[str, bytes]]:
    """Return the images of a request, in order: mime type and bytes."""
    found = []
    for message in request["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                head, _, data = part["image_url"]["url"].partition(";base64,")
                found.append((head.removeprefix("data:"), base64.b64decode(data)))
    return found


def field_of(request: Body, name: str) -> str:
    """Return the text given for one input field of the last message."""
    assert has_field(request, name), f"the request has no field {name}"
    found = re.search(
        rf"\[\[ ## {name} ## \]\]\n(.*?)(?=\n\n\[\[ ## |\n\nRespond with)", text_of(request["messages"][-1]), re.S
    )
    assert found
    return found[1]


def has_field(request: Body, name: str) -> bool:
    """Return whether one input field is given in the last message."""
    return f"[[ ## {name} ## ]]\n" in text_of(request["messages"][-1])


def pairs(request: Body) -> list[tuple[str, str]]:
    """Return the (region, distortion) pairs in the request."""
    asked = json.loads(field_of(request, "distortion_set"))
    return [(region, name) for region, names in asked.items() for name in names]
