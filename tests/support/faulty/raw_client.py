"""A raw socket client, which shows the exact bytes that a server sends, and its requests."""

import base64
import json
import socket
import struct
import time
import zlib
from dataclasses import dataclass
from typing import Any, Literal

Body = dict[str, Any]
End = Literal["open", "closed", "reset"]

TEXT = """\
[[ ## query_scope ## ]]
["Global"]

[[ ## regions ## ]]
["Global"]

[[ ## distortion_set ## ]]
{"Global": ["Noise"]}

[[ ## available_tools ## ]]
NIQE natural scenes
BRISQUE the same

Respond with a JSON object in the following order of fields: `"""
STAGES = ("assessment", "plan", "location", "detection", "analysis", "selection", "answer", "decision")
MOST = 400_000  # bytes that are read
LONGEST = 3.0  # seconds


@dataclass(frozen=True)
class Received:
    """All received bytes, whether the connection was still open after them, and the ``seconds`` until then."""

    data: bytes
    end: End
    seconds: float

    @property
    def body(self) -> Any:
        """Return the body as JSON. Raises ValueError for other bodies."""
        return json.loads(self.data.partition(b"\r\n\r\n")[2])

    @property
    def said(self) -> Any:
        """Return the object in the content of the first choice."""
        return json.loads(self.body["choices"][0]["message"]["content"])


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 5)

    def ask(self, body: Body, idle: float = 0.2, key: str = "sk-test-0123456789abcdef") -> Received:
        """Send a request, and read until nothing arrives for ``idle`` seconds."""
        raw, began = json.dumps(body).encode(), time.perf_counter()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        data, end, first = b"", "open", True
        try:
            self.socket.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
            while len(data) < MOST and time.perf_counter() - began < LONGEST:
                self.socket.settimeout(1.0 if first and idle < 1 else idle)
                piece = self.socket.recv(1 << 16)
                if not piece:
                    end = "closed"
                    break
                data, first = data + piece, False
        except TimeoutError:
            pass
        except OSError:
            end = "reset"
        return Received(data, end, time.perf_counter() - began)  # type: ignore[arg-type]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def asked(stage: str = "assessment", image: int = 0) -> Body:
    """Return a request as the program makes it: the question of a stage about an image."""
    picture = base64.b64encode(png(image)).decode()
    content = [
        {"type": "text", "text": f"{TEXT}{stage}`."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
    ]
    return {
        "model": "m",
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": content}],
        "logprobs": True,
        "top_logprobs": 5,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {}}},
    }


def png(number: int) -> bytes:
    """Return an image of one pixel."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = bytes([0, number % 256, number // 256, 7])
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(row)) + part(b"IEND", b"")
