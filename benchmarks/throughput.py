"""Measure how fast the program sends requests to a model, compared with the plain ``openai`` client.

    python benchmarks/throughput.py [--images 2000] [--in-flight 64] [--delay 1.0] [--megabytes 1.5]

A server on loopback, in another process, answers after ``--delay`` seconds. The program assesses real files with
``assess_many``, each with one question that only a model can answer. This includes reading, hashing, decoding, planning
by rules, DSPy, its cache on disk and the check of the answer. The client reads the same files and sends the same
messages. The files are small JPEG pictures filled up with comments, so decoding, which the client does not do, takes no
time. The output has the rate as a share of the ideal one (in flight / delay), processor time per request, its ratio to
that of the client, and the memory growth of the program after a warm-up.
"""

import argparse
import asyncio
import ctypes
import gc
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FILES = 256  # distinct files; more images are made by other questions about them
QUESTION = "Does this picture feel cheerful, mood {}? A. Yes B. No"
ANSWER = {"answer": {"final_answer": "A", "quality_reasoning": "It is full of light."}}
SERVER = "--serve"


class Answering(asyncio.Protocol):
    """An HTTP/1.1 server with keep-alive that reads a whole request and answers after the delay."""

    def __init__(self, delay: float, answer: bytes) -> None:
        self.delay, self.body, self.head, self.left = delay, answer, b"", -1

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.left < 0:
            self.head += data
            head, found, rest = self.head.partition(b"\r\n\r\n")
            if not found:
                return
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.left, self.head = int(length.partition(b":")[2]) - len(rest), b""
        else:
            self.left -= len(data)
        if self.left == 0:
            self.left = -1
            asyncio.get_running_loop().call_later(self.delay, self.answer)

    def answer(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(self.body)
        )
        self.transport.write(self.body)


def completion(content: str, logprobs: list[dict[str, object]] | None) -> bytes:
    """Return an answer of an OpenAI-compatible server, with log-probabilities of its tokens if given."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    if logprobs is not None:
        choice["logprobs"] = {"content": logprobs}
    usage = {"prompt_tokens": 1000, "completion_tokens": 30, "total_tokens": 1030}
    kind = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps({**kind, "choices": [choice], "usage": usage}).encode()


async def serve(delay: float, answer: bytes) -> None:
    """Print the port and serve without end."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(delay, answer), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def server(delay: float, answer: tuple[str, list[dict[str, object]] | None]) -> Iterator[str]:
    """Run a server that gives this answer (text and log-probabilities) to every request, and yield its address."""
    command = [sys.executable, __file__, SERVER, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(completion(*answer).decode())
        process.stdin.close()
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


def picture(number: int, size: int) -> bytes:
    """Return a JPEG file of ``size`` bytes: a picture of 64 x 64 and comments."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (64, 64), (number % 256, number // 256, 90)).save(file, "JPEG")
    data = file.getvalue()
    comments = b""
    while len(data) + len(comments) < size:
        length = min(65_000, max(1, size - len(data) - len(comments) - 4))
        comments += b"\xff\xfe" + (length + 2).to_bytes(2, "big") + os.urandom(length)
    return data[:2] + comments + data[2:]


def megabytes() -> float:
    """Return the memory of this process, after returning free memory to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no /proc/self/status here: memory is measured on Linux only")


def program_run(
    address: str, files: list[Path], images: int, in_flight: int, warm_up: int
) -> tuple[float, float, float, float]:
    """Run the program on images; return seconds, processor seconds, and growth and peak of memory in MB."""
    from agenticiqa.configs import Config, StageConfig
    from agenticiqa.programs.assess import AgenticIQA
    from agenticiqa.programs.batch.assess_many import assess_many
    from agenticiqa.programs.batch.job import Job
    from agenticiqa.programs.result import Assessment

    model = StageConfig(backend="vllm.m", api_base=address, max_retries=0)
    program = AgenticIQA.from_config(Config(summarizer=model))
    jobs = [Job(files[n % len(files)], QUESTION.format(n // len(files))) for n in range(images)]
    first = [Job(files[n % len(files)], QUESTION.format(f"unknown, {n // len(files)}")) for n in range(warm_up)]

    def assess(some: list[Job]) -> None:
        for job, outcome in assess_many(program, some, in_flight, Assessment.to_dict):
            if isinstance(outcome, Exception):
                raise outcome
            assert outcome["final_answer"] == "A", (job, outcome)

    assess(first)
    before, began, cpu = megabytes(), time.perf_counter(), time.process_time()
    assess(jobs)
    taken = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return *taken, megabytes() - before, peak


def client_run(address: str, files: list[Path], images: int, in_flight: int, warm_up: int) -> tuple[float, float]:
    """Send the same requests with the openai client; return seconds and processor seconds."""
    import openai

    client = openai.OpenAI(base_url=address, api_key="none", max_retries=0)
    system, text, schema = asked_by_the_program(address, files[0])

    def ask(number: int) -> None:
        data = b64encode(files[number % len(files)].read_bytes()).decode()
        image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
        user = [{"type": "text", "text": text}, image, {"type": "text", "text": QUESTION.format(number // len(files))}]
        messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        reply = client.chat.completions.create(
            model="m", messages=messages, temperature=0, max_tokens=512, response_format=schema
        )
        assert json.loads(reply.choices[0].message.content or "") == ANSWER

    with ThreadPoolExecutor(in_flight) as pool:
        list(pool.map(ask, range(warm_up)))
    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(in_flight) as pool:
        for done in [pool.submit(ask, number) for number in range(images)]:
            done.result()
    return time.perf_counter() - began, time.process_time() - cpu


def asked_by_the_program(address: str, file: Path) -> tuple[str, str, Any]:
    """Return the system prompt, user text and response format of the program's own request."""
    from dspy import lm15

    from agenticiqa.configs import Config, StageConfig
    from agenticiqa.programs.assess import AgenticIQA
    from agenticiqa.programs.backends.providers import TokenLimit
    from agenticiqa.programs.backends.wire import ChatServer, Post

    seen: list[lm15.Request] = []

    class Listening(ChatServer):
        def complete(self, request: lm15.Request, token_limit: TokenLimit, post: Post | None = None) -> lm15.Response:
            seen.append(request)
            return super().complete(request, token_limit, post)

    program = AgenticIQA.from_config(Config(summarizer=StageConfig(backend="vllm.m", api_base=address), cache=False))
    wire = program.summarizer.answer.ask.backend.lms[0].engine.wire
    wire.__class__ = Listening
    program(file, QUESTION.format("none"))
    request = seen[-1]  # requests to probe the server come first
    texts = [part.text for part in request.messages[-1].parts if isinstance(part, lm15.TextPart)]
    form = dict(request.config.response_format or {})
    kind = form.pop("type")
    return str(request.system), "\n".join(texts), {"type": kind, "json_schema": form}


def report(name: str, images: int, ideal: float, seconds: float, cpu: float) -> None:
    rate = images / seconds
    print(f"{name:16} {rate:6.1f} /s   {rate / ideal:6.1%} of ideal   {cpu / images * 1000:6.1f} ms of CPU per request")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--megabytes", type=float, default=1.5)
    # Until the allocator has the memory for all requests in flight.
    parser.add_argument("--warm-up", type=int, default=512, metavar="IMAGES")
    args = parser.parse_args()
    ideal = args.in_flight / args.delay
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with tempfile.TemporaryDirectory() as folder, server(args.delay, (json.dumps(ANSWER), None)) as address:
        os.environ["DSPY_CACHEDIR"] = f"{folder}/cache"
        files = [Path(folder) / f"{number}.jpg" for number in range(min(FILES, args.images))]
        for number, file in enumerate(files):
            file.write_bytes(picture(number, int(args.megabytes * 1e6)))
        print(f"{args.images} images of {args.megabytes} MB, {args.in_flight} in flight, answers after {args.delay} s")
        common = (address, files, args.images, args.in_flight, args.warm_up)
        theirs = run_apart(client_run, common)
        report("openai client", args.images, ideal, *theirs)
        seconds, cpu, growth, peak = run_apart(program_run, common)
        report("agenticiqa", args.images, ideal, seconds, cpu)
        print(f"ratio of CPU {cpu / theirs[1]:.2f}; memory grew by {growth:.0f} MB, peak {peak:.0f} MB")


def run_apart(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Run a function in a new process, so that program and client do not share caches or memory."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


if __name__ == "__main__":
    if SERVER in sys.argv:
        asyncio.run(serve(float(sys.argv[-1]), sys.stdin.buffer.read()))
    else:
        main()
