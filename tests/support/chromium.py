"""Open a page from disk in headless Chromium by its DevTools protocol, and record what it loads, logs and shows."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(COMMAND is None, reason="needs chromium: apt-get install chromium")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run")

Send = Callable[..., Awaitable[dict[str, Any]]]
# A kind of input and its parameters, ("MouseEvent", {"type": "mousePressed", ...}); or any method, ("Page.reload", {}).
Input = tuple[str, dict[str, Any]]


@dataclass
class Seen:
    """The record of a page: console errors, requested addresses, values."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def visit(
    page: Path,
    *expressions: str | Input,
    width: int = 1200,
    height: int = 900,
    dark: bool = False,
) -> Seen:
    """Load a page, wait half a second, and evaluate JavaScript in it, send input to it, or call methods by full names.

    The answers of such methods are among the values, too.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,  # its processes end a moment later
        subprocess.Popen(
            [str(COMMAND), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as browser,
    ):
        try:
            address = _address(Path(folder) / "DevToolsActivePort")
            return asyncio.run(_visit(address, page, expressions, (width, height), dark))
        finally:
            browser.terminate()


def _address(file: Path) -> str:
    for _ in range(300):
        if file.exists() and len(lines := file.read_text().splitlines()) == 2:
            return f"http://127.0.0.1:{lines[0]}"
        time.sleep(0.1)
    raise TimeoutError("Chromium did not start")


async def _visit(
    address: str,
    page: Path,
    expressions: tuple[str | Input, ...],
    size: tuple[int, int],
    dark: bool,
) -> Seen:
    seen, numbers = Seen(), count(1)
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
    loaded = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{address}/json") as answer:
            target = next(each for each in await answer.json() if each["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:

            async def send(method: str, **params: Any) -> dict[str, Any]:
                number = next(numbers)
                waiting[number] = asyncio.get_running_loop().create_future()
                await socket.send_json({"id": number, "method": method, "params": params})
                return await asyncio.wait_for(waiting[number], 60)

            async def listen() -> None:
                async for message in socket:
                    event = message.json()
                    if "id" in event:
                        waiting[event["id"]].set_result(event.get("result", event))
                    elif event["method"] == "Page.loadEventFired":
                        loaded.set()
                    else:
                        _note(event, seen)

            listening = asyncio.create_task(listen())
            for domain in ("Page", "Runtime", "Log", "Network"):
                await send(f"{domain}.enable")
            width, height = size
            await send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=width < 600,
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await send("Emulation.setEmulatedMedia", features=[scheme])
            await send("Page.navigate", url=page.resolve().as_uri())
            await asyncio.wait_for(loaded.wait(), 60)
            await asyncio.sleep(0.5)
            for expression in expressions:
                if isinstance(expression, tuple):
                    method, params = expression
                    if "." not in method:
                        await send(f"Input.dispatch{method}", **params)
                        continue
                    loaded.clear()
                    seen.values.append(await send(method, **params))
                    if method == "Page.reload":
                        await asyncio.wait_for(loaded.wait(), 60)
                        await asyncio.sleep(0.5)
                    continue
                found = await send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
                seen.values.append(found["result"].get("value", found.get("exceptionDetails")))
            listening.cancel()
    return seen


def _note(event: dict[str, Any], seen: Seen) -> None:
    params = event["params"]
    if event["method"] == "Network.requestWillBeSent":
        seen.requests.append(params["request"]["url"])
    elif event["method"] == "Runtime.exceptionThrown":
        seen.errors.append(str(params["exceptionDetails"]))
    elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
        seen.errors.append(params["entry"]["text"])
    elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
        seen.errors.append(str(params["args"]))
