"""Read from the tags of an HTML page which addresses it loads or links to."""

from html.parser import HTMLParser

LOADING = {"src", "srcset", "href", "poster", "data", "action", "formaction", "background"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in LOADING]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]


def read(page: str) -> _Reader:
    """Return the tags of a page, the addresses in them, and the attributes that would run scripts."""
    reader = _Reader()
    reader.feed(page)
    return reader


def from_elsewhere(page: str) -> list[str]:
    """Return the addresses that are neither beside the page, inside it nor data."""
    return [
        address
        for address in read(page).addresses
        if (":" in address.partition("/")[0] and not address.startswith("data:")) or address.startswith("//")
    ]
