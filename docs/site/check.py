"""Open each page of a built site in Chromium: ``python -m docs.site.check [build/site]``.

A page must ask for nothing outside of the site, log no error, and link only what exists; the search
must find names. It needs the extra `browser` and Chromium.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from playwright.sync_api import Browser, Page, sync_playwright

SEARCHES = {
    "while_loop": "names/tracegraph.loops_and_branches.html#tracegraph.while_loop",
    "TracerBoolError": "reference/errors.html#tracegraph.errors.TracerBoolError",
    "heat equation": "tutorials/heat.html",
}
"""What is searched for, and a part of a link that must be among the results."""

LINKS = "links => links.map(link => link.href)"
NAMES = "elements => elements.map(element => element.id)"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of plain files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def watched(browser: Browser, base: str, scheme: Any, faults: list[str]) -> Page:
    """A page that notes what must not happen."""
    page = browser.new_context(color_scheme=scheme).new_page()

    def note(what: str) -> None:
        faults.append(f"{page.url} ({scheme}): {what}")

    def note_request(request: Any) -> None:
        if not request.url.startswith((base, "data:")):
            note(f"asks for {request.url}")

    def note_response(response: Any) -> None:
        if response.status >= 400:
            note(f"{response.url} is missing")

    def note_message(message: Any) -> None:
        if message.type == "error":  # the search warns of names with dots
            note(message.text)

    page.on("request", note_request)
    page.on("response", note_response)
    page.on("console", note_message)
    page.on("pageerror", lambda error: note(str(error)))
    return page


def check(folder: Path) -> list[str]:
    """What is wrong with a site, one line each."""
    faults: list[str] = []
    links: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    with served(folder) as base, sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = own if Path(own).exists() else shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = watched(browser, base, scheme, faults)
            for file in sorted(folder.rglob("*.html")):
                if "_static" in file.parts:
                    continue
                address = urljoin(base, file.relative_to(folder).as_posix())
                page.goto(address)
                links[address] = set(page.eval_on_selector_all("a[href]", LINKS))
                names[address] = set(page.eval_on_selector_all("[id]", NAMES))
        faults += [fault for where in links for fault in missing(where, links[where], names)]
        page = watched(browser, base, "light", faults)
        for word, wanted in SEARCHES.items():
            page.goto(f"{base}search.html?q={word}")
            page.wait_for_selector("#search-results li")
            found = page.eval_on_selector_all("#search-results a", LINKS)
            if not any(wanted in link for link in found):
                faults.append(f"a search for {word} does not find {wanted}")
        browser.close()
    return faults


def missing(where: str, links: set[str], names: dict[str, set[str]]) -> Iterator[str]:
    """The links of a page to places of the site that do not exist."""
    for link in sorted(links):
        target, name = urldefrag(link)
        known = names.get(target)
        if known and name not in ("", "top") and unquote(name) not in known:
            yield f"{where}: {link} names no place"


def main() -> None:
    """Check a site, and end with 1 if something is wrong."""
    faults = check(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site"))
    print("\n".join(sorted(set(faults))) or "no fault")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
