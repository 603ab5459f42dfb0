"""``agenticiqa mcp``: the SDK's client calls the tools of a server over stdio, or of one in this process."""

import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT
from subprocess import PIPE, Popen
from threading import Event
from time import sleep
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult
from PIL import Image

from agenticiqa import AgenticIQA
from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.cli import mcp_server
from agenticiqa.programs.cli.arguments import McpOptions
from agenticiqa.programs.cli.mcp_server import WIDTH, Service, server_of, service_of
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.status import USAGE
from agenticiqa.programs.tools.measuring import measure
from support.fake_server import by_stage, fake_server
from support.files import json_lines
from support.images import album_of_squares
from support.loopback import Body, Reply
from support.scripted_answers import SCRIPT

MOST = 12  # images of one call
SECONDS = 60.0  # more than any call takes
NAMES = ["assess_image", "worst_images", "compare_images", "measure_metric"]


@dataclass
class Calls:
    """A connected client of a server, and the folder of the images."""

    portal: BlockingPortal
    client: Client
    folder: Path

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        return self.portal.call(self.client.call_tool, tool, arguments)

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result, which its text repeats."""
        called = self.call(tool, **arguments)
        assert not called.is_error, called.content
        assert json.loads(called.content[0].text) == called.structured_content
        return called.structured_content

    def error(self, tool: str, **arguments: Any) -> str:
        called = self.call(tool, **arguments)
        assert called.is_error
        return called.content[0].text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two roots with images and links, and an image beside them that no client may read."""
    folder = tmp_path_factory.mktemp("mcp")
    for name, images in (("photos", 2), ("photos/many", MOST), ("photos/more", 1), ("scans", 1)):
        album_of_squares(folder / name, images)
    more = folder / "photos" / "more"
    with Image.open(more / "00.png") as square:
        square.convert("L").save(more / "gray.png")
        square.save(folder / "secret.png")
    (more / "Out.png").symlink_to(folder / "secret.png")
    (more / "scan.png").symlink_to(folder / "scans" / "00.png")
    (more / "circle.png").symlink_to(more / "circle.png")
    return folder


@pytest.fixture(scope="module")
def calls(folder: Path) -> Iterator[Calls]:
    """A server process over stdio, with a log in log.jsonl. Nothing but messages may be on its stdout."""
    roots = ["--root", str(folder / "photos"), "--root", str(folder / "scans")]
    options = ["--workers", "1", "--max-images", str(MOST), "--log", str(folder / "log.jsonl")]
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "agenticiqa", "mcp", *roots, *options], env={**os.environ}
    )
    noise: list[Exception] = []

    async def keep(message: object) -> None:
        noise.extend([message] if isinstance(message, Exception) else [])

    client = Client(command, message_handler=keep)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Calls(portal, client, folder)
    assert not noise


def in_this_process(folder: Path, *options: str) -> tuple[Service, Client]:
    """Return the tools for these options, and a client that is not connected yet."""
    _, args = parse(["mcp", "--root", str(folder), *options], COMMANDS)
    assert isinstance(args, McpOptions)
    service = service_of(args)
    return service, Client(server_of(service))


def test_the_tools_are_listed_with_typed_arguments(calls: Calls) -> None:
    tools = {tool.name: tool for tool in calls.portal.call(calls.client.list_tools).tools}
    assert [*tools] == NAMES
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
    arguments = {name: tool.input_schema for name, tool in tools.items()}
    assert not any(schema["additionalProperties"] for schema in arguments.values())
    assert [schema.get("required", []) for schema in arguments.values()] == [
        ["image"],
        [],
        ["images"],
        ["metric", "image"],
    ]
    assert "NIQE (NR, lower is better)" in arguments["measure_metric"]["properties"]["metric"]["description"]
    about = calls.client.instructions
    assert f"Nothing is sent. Readable folders: {calls.folder / 'photos'}, {calls.folder / 'scans'}." in about


def test_a_result_is_that_of_the_program(calls: Calls) -> None:
    path = calls.folder / "photos" / "00.png"
    expected = json.loads(json.dumps(AgenticIQA.offline()(path, "Is it noisy?").to_dict()))
    result = calls.result("assess_image", image="00.png", question="Is it noisy?")
    for row in (expected, result):
        row["timings_ms"] = row["executor_evidence"]["tool_log"] = None  # measured times
    assert result == expected
    compared = calls.result("assess_image", image=str(path), reference=str(calls.folder / "scans" / "00.png"))
    assert (compared["image"], compared["reference"]) == (str(path), str(calls.folder / "scans" / "00.png"))


def test_the_worst_images_of_a_folder_come_with_progress(calls: Calls) -> None:
    shown: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        shown.append((done, total))

    async def worst() -> CallToolResult:
        return await calls.client.call_tool("worst_images", {"folder": "more", "count": 2}, progress_callback=progress)

    result = calls.portal.call(worst).structured_content
    assert shown == [(1, 3), (2, 3), (3, 3)]
    scores = [image["quality_score"] for image in result["images"]]
    assert len(scores) == 2
    assert scores == sorted(scores)
    assert (result["assessed"], result["failed"], result["not_assessed"], result["stopped"]) == (3, [], 0, None)
    assert result["skipped"] == {"link to a place outside of the roots": 1, "broken link": 1}


def test_images_are_compared_as_by_the_command(calls: Calls) -> None:
    result = calls.result("compare_images", images=["more/00.png", "more/gray.png"], reference="more/00.png")
    best, other = result["images"]
    assert (best["rank"], Path(best["image"]).name, other["rank"]) == (1, "00.png", 2)
    assert (best["metrics"]["SSIM"]["raw"], best["bytes"]) == (1, Path(best["image"]).stat().st_size)
    assert other["metrics"]["SSIM"]["raw"] < 1


def test_a_metric_is_measured(calls: Calls) -> None:
    image, reference = (str(calls.folder / "photos" / "more" / name) for name in ("gray.png", "00.png"))
    result = calls.result("measure_metric", metric="ssim", image="more/gray.png", reference="more/00.png")
    assert result == {"image": image, "reference": reference, "SSIM": measure("ssim", image, reference)}


OUTSIDE = "this server reads only files below"
WRONG = {
    "an absolute path": ("assess_image", {"image": "{folder}/secret.png"}, OUTSIDE),
    "a path that is not there": ("assess_image", {"image": "/nowhere/at/all.png"}, OUTSIDE),
    "a path upwards": ("assess_image", {"image": "../secret.png"}, OUTSIDE),
    "a link": ("assess_image", {"image": "more/Out.png"}, OUTSIDE),
    "a link in another case": ("assess_image", {"image": "more/out.png"}, OUTSIDE),
    "a reference": ("assess_image", {"image": "00.png", "reference": "../secret.png"}, OUTSIDE),
    "a compared image": ("compare_images", {"images": ["00.png", "more/Out.png"]}, OUTSIDE),
    "a measured image": ("measure_metric", {"metric": "NIQE", "image": "more/Out.png"}, OUTSIDE),
    "a folder": ("worst_images", {"folder": ".."}, OUTSIDE),
    "a null character": ("assess_image", {"image": "a\0.png"}, OUTSIDE),
    "links in a circle": ("assess_image", {"image": "more/circle.png"}, ""),
    "an address": ("assess_image", {"image": "https://example.org/a.png"}, "there is no such file"),
    "a missing file": ("assess_image", {"image": "nope.png"}, "there is no such file"),
    "no image": ("assess_image", {"image": "more"}, "expected an image, found a folder"),
    "an unknown argument": ("assess_image", {"image": "00.png", "quesiton": "Is it sharp?"}, "quesiton"),
    "no argument": ("assess_image", {}, "Field required"),
    "another type": ("compare_images", {"images": 3}, "valid list"),
    "a single image": ("compare_images", {"images": ["00.png"]}, "at least 2 items"),
    "no count": ("worst_images", {"count": 0}, "greater than or equal to 1"),
    "too many in a folder": ("worst_images", {}, f"17 images are more than {MOST}, the limit of one call"),
    "too many by name": ("compare_images", {"images": ["00.png"] * 13}, f"13 images are more than {MOST}"),
    "an unknown metric": ("measure_metric", {"metric": "ssimm", "image": "00.png"}, "did you mean SSIM?"),
    "a metric that is downloaded": ("measure_metric", {"metric": "pyiqa:lpips", "image": "00.png"}, "unknown tool"),
    "no reference": ("measure_metric", {"metric": "SSIM", "image": "00.png"}, "SSIM needs a reference"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_an_error_that_says_why(calls: Calls, name: str) -> None:
    tool, arguments, message = WRONG[name]
    filled = {key: value.format(folder=calls.folder) if key == "image" else value for key, value in arguments.items()}
    error = calls.error(tool, **filled)
    assert message in error
    assert "Traceback" not in error


def test_a_cancelled_call_ends_its_work(calls: Calls) -> None:
    begun = Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        begun.set()

    async def worst() -> CallToolResult:
        return await calls.client.call_tool("worst_images", {"folder": "many"}, progress_callback=progress)

    future = calls.portal.start_task_soon(worst)
    assert begun.wait(SECONDS)
    future.cancel()
    calls.result("measure_metric", metric="RMS-CONTRAST", image="00.png")  # waits for the end of the cancelled work
    done = [row["image"] for row in json_lines(calls.folder / "log.jsonl") if row.get("event") == "done"]
    assert 0 < len([image for image in done if "/many/" in image]) < MOST


def test_a_cancelled_call_gives_up_the_request_under_way(folder: Path) -> None:
    asked = Event()

    def reply(request: Body) -> Reply:
        asked.set()
        return Reply("{}", delay=SECONDS)

    with fake_server(reply) as server, start_blocking_portal() as portal:
        service, client = in_this_process(folder, "--backend", "vllm.test", "--api-base", server.url)
        with portal.wrap_async_context_manager(client):
            assert "Images are sent to vllm.test." in (client.instructions or "")
            future = portal.start_task_soon(client.call_tool, "assess_image", {"image": "secret.png"})
            assert asked.wait(SECONDS)
            future.cancel()
            assert service.lock.acquire(timeout=SECONDS / 2), "the work has ended"
        assert len(server.requests) == 1


def test_a_call_that_is_cancelled_while_it_waits_begins_no_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[object, ...]] = []
    monkeypatch.setattr(mcp_server, "measure", lambda *given: measured.append(given))
    with start_blocking_portal() as portal:
        service, client = in_this_process(folder)
        with portal.wrap_async_context_manager(client), service.lock:
            arguments = {"metric": "NIQE", "image": "secret.png"}
            future = portal.start_task_soon(client.call_tool, "measure_metric", arguments)
            sleep(0.2)  # until its thread waits
            future.cancel()
            sleep(0.1)
    assert measured == []


def test_the_limits_count_for_all_calls_of_a_server(folder: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server, start_blocking_portal() as portal:
        options = ["--backend", "vllm.test", "--api-base", server.url, "--mode", "fast", "--max-calls", "2"]
        _, client = in_this_process(folder, *options)
        with portal.wrap_async_context_manager(client):
            calls = Calls(portal, client, folder)
            calls.result("assess_image", image="photos/00.png")
            assert "the limit of 2 calls is reached" in calls.error("assess_image", image="photos/01.png")
            assert len(server.requests) == 2


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "agenticiqa.programs.cli.mcp_server")
    assert main(["mcp", "--root", str(tmp_path)]) == USAGE
    error = capsys.readouterr().err
    assert error.endswith("run pip install 'agenticiqa[mcp]'\n")
    assert error.count("\n") == 1


def test_a_root_is_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--root", str(tmp_path / "nope")]) == USAGE
    assert capsys.readouterr().err.endswith("nope: --root needs an existing folder\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(("is_ctrl_c", "status"), [(True, -SIGINT), (False, 0)])
def test_the_server_ends_without_a_traceback(folder: Path, is_ctrl_c: bool, status: int) -> None:
    command = [sys.executable, "-m", "agenticiqa", "mcp", "--root", str(folder)]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), PIPE)
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    with Popen(command, text=True, **pipes) as process:
        process.stdin.write(request)
        process.stdin.flush()
        process.stdout.readline()
        if is_ctrl_c:
            process.send_signal(SIGINT)
        else:
            process.stdout.close()
            process.stdin.write(request)
            process.stdin.close()
        assert process.wait(SECONDS) == status
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_the_panel_is_an_image(calls: Calls) -> None:
    called = calls.call("assess_image", image="00.png", panel=True)
    text, panel = called.content
    assert json.loads(text.text)["image"] == str(calls.folder / "photos" / "00.png")
    assert panel.mime_type == "image/webp"
    with Image.open(io.BytesIO(base64.b64decode(panel.data))) as picture:
        assert picture.width == WIDTH
