"""Read the address of a server, which a configuration, a variable or a provider sets, also with a login in it."""

import base64
import os
import re
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from agenticiqa.programs.backends.providers import Provider
from agenticiqa.programs.errors import BackendError

KEY_PARAMETER = re.compile(r"key|token|secret|password|signature|^(sig|code|auth)$", re.IGNORECASE)
LOGIN = re.compile(r"(?<=:)//[^/?#\s]*@")  # the name and password in an address


def public_address(address: str) -> str:
    """Return host, port and path of an address, valid or not, without name, password and query, for display.

    A text without the punctuation of an address may be a key that was set in its place, so it is not shown.
    """
    shown = address.rpartition("://")[2].rpartition("@")[2].partition("?")[0].rstrip("/")
    return shown if set(":/.") & set(address) else "***"


def default_address(provider: Provider) -> tuple[str | None, str]:
    """Return the address of a provider if the configuration has none, and the environment variable that set it, if any.

    Its own clients read these variables. Anthropic's, Google's and Ollama's leave out the path, and Ollama's also
    ``http://`` and its port. Raises BackendError as ``checked_address`` does.
    """
    variable = next((name for name in provider.address_env if os.environ.get(name, "").strip()), None)
    if variable is None:
        return provider.address, "the default"
    address = os.environ[variable].strip().rstrip("/")
    if "://" not in address and provider.key_env is None:  # a key is never sent to an address that may be unencrypted
        port = "" if re.search(r":\d+(/|$)", address) else f":{urlsplit(provider.address).port}"
        address = f"http://{address}{port}"
    checked_address(address, variable)
    base, mark, query = address.partition("?")
    base = base.rstrip("/")
    return f"{base if base.endswith(provider.path) else base + provider.path}{mark}{query}", variable


def checked_address(address: str, setting: str = "api_base") -> str:
    """Return the address unchanged. Raises BackendError unless it is an HTTP address, with the name of the setting."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise BackendError(f"{setting} {public_address(address)!r} is not a URL such as http://127.0.0.1:8000/v1")
    return address


def without_secrets(address: str) -> str:
    """Return an address, or a word with one, as it may be written: without login, and without parameters for keys.

    Other words are unchanged.
    """
    if "://" not in address:
        return address
    base, _, query = LOGIN.sub("//", address).partition("?")
    kept = [part for part in query.split("&") if not KEY_PARAMETER.search(unquote_plus(part.partition("=")[0]))]
    return f"{base}?{'&'.join(kept)}" if any(kept) else base


def base_of(address: str) -> str:
    """Return the address to which paths are appended: without name, password and query."""
    return LOGIN.sub("//", urlsplit(address)._replace(query="", fragment="").geturl()).rstrip("/")


def query_of(address: str | None) -> tuple[tuple[str, str], ...]:
    """Return the parameters at the end of an address, such as ``api-version``, which each request has."""
    return tuple(parse_qsl(urlsplit(address or "").query, keep_blank_values=True))


def secrets_in(address: str | None) -> tuple[str, ...]:
    """Return the secrets in an address, in each encoding sent.

    These are its password, or its name without a password, and the values of parameters that are keys by their names.
    """
    parts = urlsplit(address or "")
    secret = parts.password or parts.username
    keys = [value for name, value in query_of(address) if value and KEY_PARAMETER.search(name)]
    login = (secret, unquote(secret), str(basic_login(address)).removeprefix("Basic ")) if secret else ()
    return (*login, *keys)


def basic_login(address: str | None) -> str | None:
    """Return the header for the name and password in an address; ``None`` without them."""
    login = urlsplit(address or "").netloc.rpartition("@")[0]
    name, _, password = map(unquote, login.partition(":"))
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" if login else None
