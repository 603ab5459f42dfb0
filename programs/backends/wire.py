"""Send requests over HTTP: to OpenAI-compatible servers with ``openai``, and to Anthropic and Google with lm15."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx
from dspy import lm15

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.backends.addresses import base_of, basic_login, query_of, secrets_in
from agenticiqa.programs.backends.failures import masked, retry_after
from agenticiqa.programs.backends.held_images import marked
from agenticiqa.programs.backends.json_schema import without_keywords
from agenticiqa.programs.backends.providers import NO_KEY, Provider, TokenLimit
from agenticiqa.programs.backends.transport import Transport, largest_answer
from agenticiqa.programs.backends.usage import billed_output
from agenticiqa.programs.backends.vetting import VETTED, vet_chat, vetted
from agenticiqa.signatures.vocabulary import well_formed

# The headers of the openai client that are sent. Headers about this machine, cookies, and values that the client reads
# from the environment (such as an organization, which other servers must not get) are not sent.
SENT = frozenset({"accept", "authorization", "content-type", "host", "user-agent"})
LISTING = 10.0  # seconds
LARGEST_LIST = 1 << 20  # bytes
Post = Callable[[bytes], httpx.Response]


@dataclass
class Server(ABC):
    """A provider's interface at an address (``None``: the provider's own), with a key.

    A user name and password in the address are sent as basic authentication, instead of a key in the same header.
    ``timeout`` is the deadline of a request in seconds. ``max_tokens`` limits the bytes of an answer.
    """

    provider: Provider
    model: str
    address: str | None = field(repr=False)
    key: str = field(repr=False)
    timeout: float
    max_tokens: int = 2048

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, and the login in the address: no text from the server keeps them."""
        return (*(() if self.key == NO_KEY else (self.key,)), *secrets_in(self.address))

    def cleaned(self, reply: httpx.Response) -> httpx.Response:
        """Return a reply without secrets in its headers and body, and without lone surrogates in its JSON."""
        text = masked(reply.content.decode("utf-8", "replace"), self.secrets)
        if "\\ud" in text.lower():
            with suppress(ValueError):
                text = well_formed(json.dumps(json_value(text), ensure_ascii=False))
        headers = [  # Latin-1 keeps all bytes
            (name, masked(value.decode("latin-1"), self.secrets).encode("latin-1")) for name, value in reply.headers.raw
        ]
        return httpx.Response(reply.status_code, headers=headers, content=text.encode())

    def prepared(self, request: lm15.Request) -> lm15.Request:
        """Return the request with a mark for each held image; sending inserts the image's bytes into the body.

        A request that continues an unfinished answer is marked as the server expects.
        """
        if _is_begun(request):
            extensions = {**(request.config.extensions or {}), **(self.provider.continues or {})}
            request = replace(request, config=replace(request.config, extensions=extensions))
        form = request.config.response_format
        if form and "schema" in form and self.provider.refused_keywords:
            form = {**form, "schema": without_keywords(form["schema"], self.provider.refused_keywords)}
            request = replace(request, config=replace(request.config, response_format=form))
        return marked(request)

    def transport(self, sent: frozenset[str] | None = None) -> httpx.BaseTransport:
        """Return a transport for this server. Connections without TLS cost little, so they are not used again."""
        reuse = not (self.address or "").startswith("http:")
        return WithQuery(Transport(self.timeout, largest_answer(self.max_tokens), sent, reuse), self)

    def listed(self, path: str) -> dict[str, Any] | None:
        """Return the JSON object at a path of the server, such as its list of models; ``None`` if there is none.

        See ``ContextSize`` for the path.
        """
        return None

    @abstractmethod
    def complete(self, request: lm15.Request, token_limit: TokenLimit, post: Post | None = None) -> lm15.Response:
        """Send one request, by ``post`` if it is given, and return its answer. Raises lm15's errors.

        ``token_limit`` is the parameter of OpenAI's interface that limits the tokens of an answer.
        """


class WithQuery(httpx.BaseTransport):
    """A transport that adds the query of a server's address, which may have a key: clients log what they send."""

    def __init__(self, transport: httpx.BaseTransport, server: Server) -> None:
        self.transport, self.query = transport, httpx.QueryParams(query_of(server.address))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request with the parameters that are set in the address."""
        sent = httpx.Request(
            request.method,
            request.url.copy_merge_params(self.query),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return self.transport.handle_request(sent)

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()


class ChatServer(Server):
    """OpenAI, or an OpenAI-compatible server of the user.

    lm15 formats and parses the JSON, as for any engine of DSPy; the ``openai`` client sends it.
    """

    @cached_property
    def _client(self) -> Any:
        return openai_client(self, httpx.Client(transport=self.transport(SENT)), {"Content-Type": "application/json"})

    def complete(self, request: lm15.Request, token_limit: TokenLimit, post: Post | None = None) -> lm15.Response:
        """See ``Server``. ``post`` gets the body, which has marks in place of held images."""
        import openai

        dialect = _dialect(token_limit)
        body = dialect.build_request(request, stream=False).body
        try:
            reply: httpx.Response = (
                post(body) if post else self._client.post("/chat/completions", cast_to=httpx.Response, content=body)
            )
        except openai.APIStatusError as error:
            reply = error.response
        except openai.APIConnectionError as error:
            raise error.__cause__ or error  # noqa: B904 - the transport's error, with its own cause
        reply = self.cleaned(reply)
        if reply.status_code >= 400:
            refused = dialect.normalize_error(reply.status_code, reply.text)
            refused.retry_after, refused.request_id = retry_after(reply.headers), reply.headers.get("x-request-id")
            raise refused
        response = lm15.response_from_openai_chat(vetted(reply, vet_chat), model=request.model)
        return finished(request, response, self.provider)

    def listed(self, path: str) -> dict[str, Any] | None:
        """See ``Server``. Only a server of the user's own is asked."""
        import openai

        if self.address is None:
            return None
        base = urlsplit(base_of(self.address))
        url = f"{base.scheme}://{base.netloc}{path}" if path.startswith("/") else f"/{path}"
        transport = WithQuery(Transport(min(self.timeout, LISTING), LARGEST_LIST, SENT), self)
        with httpx.Client(transport=transport) as http_client:
            try:
                reply: httpx.Response = openai_client(self, http_client).get(url, cast_to=httpx.Response)
                found = json_value(self.cleaned(reply).text)
            except (openai.OpenAIError, ValueError, RecursionError):
                return None
        return found if isinstance(found, dict) else None


@cache
def _dialect(token_limit: TokenLimit) -> lm15.OpenAIChatLM:
    return lm15.OpenAIChatLM(api_key=NO_KEY, compat=lm15.OpenAIChatCompat(max_tokens_field=token_limit))


class NativeServer(Server):
    """Anthropic or Google, each with its own format, through lm15."""

    @cached_property
    def _connection(self) -> Any:
        route = self.provider.route
        config = lm15.RouterConfig(
            env={},  # no key is read from the environment
            api_keys={route: self.key},
            base_urls={route: base_of(self.address)} if self.address else None,
        )
        connection = lm15.LMRouter(config).lm(f"{route}:{self.model}")
        connection.transport = self
        return connection

    @cached_property
    def _transport(self) -> httpx.BaseTransport:
        return self.transport()

    def complete(self, request: lm15.Request, token_limit: TokenLimit, post: Post | None = None) -> lm15.Response:
        """See ``Server``. ``token_limit`` has no effect, and ``post`` is not supported."""
        assert post is None, "the Batch APIs of these providers are not supported"
        return finished(request, self._connection.complete(request), self.provider)

    @contextmanager
    def stream(self, request: Any) -> Iterator["HttpResponse"]:
        """Send a request of lm15, and yield the complete answer (lm15's interface for transports)."""
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.body)
        if basic := basic_login(self.address):
            sent.headers["Authorization"] = basic
        reply = self.cleaned(self._transport.handle_request(sent))
        if reply.status_code < 300:
            vetted(reply, VETTED[self.provider.route])
        yield HttpResponse(reply.status_code, reply.reason_phrase, reply.headers.multi_items(), reply.content)


@dataclass
class HttpResponse:
    """A response in the form that lm15 expects from a transport."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    http_version: str = "HTTP/1.1"

    def read(self) -> bytes:
        """Return the body."""
        return self.body


def openai_client(server: Server, http_client: httpx.Client, headers: Mapping[str, str] | None = None) -> Any:
    """Return the client of the package ``openai`` for a server; it sends through ``http_client`` and never retries."""
    import openai  # half a second, so only with a model

    basic = basic_login(server.address)
    return openai.OpenAI(
        api_key=server.key,
        base_url=base_of(server.address) if server.address else server.provider.address,
        max_retries=0,
        default_headers={**(headers or {}), **({"Authorization": basic} if basic else {})},
        http_client=http_client,
    )


def server(provider: Provider, model: str, address: str | None, key: str, timeout: float, max_tokens: int) -> Server:
    """Return the server of a provider: see ``Server``."""
    kind = ChatServer if provider.route == "openai-chat" else NativeServer
    return kind(provider, model, address, key, timeout, max_tokens)


def finished(request: lm15.Request, response: lm15.Response, provider: Provider) -> lm15.Response:
    """Return the response with hidden reasoning in its output tokens, as billed.

    Reasoning tokens beyond the output tokens were counted separately. The end of an answer at its limit is no cut if
    only one token was requested.
    """
    usage = response.usage
    read, written, total, thought = (
        count or 0 for count in (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.reasoning_tokens)
    )
    apart = written + thought if provider.reasoning_is_apart or thought > written else written
    billed = max(apart, billed_output(read, written, total))
    if billed != written:
        response = replace(response, usage=replace(usage, output_tokens=billed))
    if _is_begun(request) and request.config.max_tokens == 1 and response.finish_reason == "length":
        response = replace(response, finish_reason="stop")
    return response


def _is_begun(request: lm15.Request) -> bool:
    return request.messages[-1].role == "assistant"
