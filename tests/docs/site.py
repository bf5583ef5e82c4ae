"""Reading a built site: the links, images and scripts of its pages."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself when it shows a page, and the attribute that says from where.
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src",),
    "audio": ("src",),
    "object": ("data",),
}


class Page(HTMLParser):
    """The identifiers of a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for key in LOADED.get(tag, ()):
            if tag == "link" and values.get("rel") in ("canonical", "next", "prev"):
                self.links.append(values["href"])
            elif values.get(key):
                self.loaded += _addresses(key, values[key])


def _addresses(key: str, value: str) -> list[str]:
    if key != "srcset":
        return [value]
    return [part.split()[0] for part in value.split(",") if part.strip()]


def is_outside(address: str) -> bool:
    """Whether an address leads away from the site."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto", "ftp")


def target_of(page: Path, address: str) -> tuple[Path, str]:
    """Return the file that a link leads to, and the identifier in it."""
    parts = urlsplit(address)
    file = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
    return (file / "index.html" if file.is_dir() else file), unquote(parts.fragment)


def broken_links(pages: dict[Path, Page]) -> list[str]:
    """List links within the site whose file or identifier does not exist."""
    wrong = []
    for path, page in pages.items():
        for address in dict.fromkeys(page.links + page.loaded):
            if is_outside(address) or address.startswith(("data:", "javascript:")):
                continue
            file, anchor = target_of(path, address)
            known = pages[file].ids if file in pages else None
            if not file.exists() or (anchor and known is not None and anchor not in known):
                wrong.append(f"{path.name}: {address}")
    return wrong
