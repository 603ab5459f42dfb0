"""Tell whether a server is on this machine or in its network, from the server's address alone."""

import ipaddress
import re
import socket
from contextlib import suppress
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

# Names in the file of hosts of usual systems.
LOOPBACK_NAMES = (
    *("localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6"),
    *("localhost6.localdomain6", "ip6-localhost", "ip6-loopback"),
)
_WITH_PORT = re.compile(r"(?P<name>[^:]+|\[.+\]):(?P<port>\d+)")  # of IPv6, only in brackets


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own, in any spelling, such as 127.1 or "localhost."."""
    found = _ip_address(host)
    if found is None:
        name, own = _plain(host), _plain(socket.gethostname())
        return name in LOOPBACK_NAMES or name.endswith(".localhost") or name in (own, own.partition(".")[0])
    return found.is_loopback or found.is_unspecified


def is_own_network(address: str) -> bool:
    """Return whether an address, such as "http://gpu:8000/v1", is on this machine or in a private network."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # no address at all, which is reported where it is used
        return False
    found = _ip_address(host)
    if found is None:
        return "." not in _plain(host) or is_loopback(host)
    return found.is_private or found.is_link_local or is_loopback(host)


def is_listed(host: str, port: int, entries: str) -> bool:
    """Return whether a list such as NO_PROXY has a host: by name, domain, pattern (10.*) or address block (10.0.0.0/8).

    An entry that ends in a port is for this port only.
    """
    name, found = _plain(host), _ip_address(host)
    for entry in filter(None, re.split(r"[\s,]+", entries.lower())):
        with_port = _WITH_PORT.fullmatch(entry)
        if with_port and int(with_port["port"]) != port:
            continue
        listed = _plain((with_port["name"] if with_port else entry).strip("[]"))
        if fnmatchcase(name, listed):
            return True
        if found is None and name.endswith(f".{listed.lstrip('*.')}"):
            return True
        with suppress(ValueError):
            if found is not None and found in ipaddress.ip_network(listed, strict=False):
                return True
    return False


def _plain(host: str) -> str:
    return host.lower().removesuffix(".")


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    name = _plain(host)
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(name))  # 127.1, 0x7f.1, 2130706433
        except (OSError, UnicodeError):
            return None
    return getattr(address, "ipv4_mapped", None) or address
