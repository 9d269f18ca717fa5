"""A browser for the pages: Chromium on PATH, driven by Playwright; without them, every test here is skipped."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

from tools.report_picture import BROWSERS

HERE = Path(__file__).parent
AXE = "node_modules/axe-core/axe.min.js"
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:")


def missing():
    """Why there is no browser, or nothing."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "Playwright is not installed; pip install 'nceref[site]'"
    return "" if any(map(shutil.which, BROWSERS)) else f"no browser on PATH; looked for {', '.join(BROWSERS)}"


def pytest_collection_modifyitems(items):
    """Skip what needs a browser where there is none."""
    if reason := missing():
        for item in items:
            if HERE in item.path.parents and "chromium" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    # Within a container the browser has no sandbox of its own.
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def watch(page, faults):
    """Append what is wrong with a page to a list: errors on its console, and requests that leave the machine."""
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(LOCAL) else None)


@pytest.fixture
def open_page(chromium):
    """Open an address in a new window; errors on its console and requests that leave the machine fail the test.

    Options are those of Playwright's `new_context`, such as `java_script_enabled` and `color_scheme`.
    """
    contexts, faults = [], []

    def open_page(address, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        watch(page, faults)
        page.goto(address)
        return page

    open_page.faults = faults
    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture(scope="session")
def serve():
    """Serve a folder on this machine; returns its address."""
    servers = []

    def serve(folder):
        handler = functools.partial(Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format, *args):
        """Say nothing: pytest shows what fails."""


@pytest.fixture(scope="session")
def accessibility_faults():
    """What axe-core calls serious or critical in a page: a list of rule and element."""
    script = next((path for folder in _node_folders() if (path := folder / AXE).exists()), None)
    if script is None:
        pytest.skip("axe-core is not installed; make test-site installs it")

    def accessibility_faults(page):
        page.add_script_tag(path=script)
        violations = page.evaluate("async () => (await axe.run()).violations")
        severe = [one for one in violations if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {node['html'][:200]}" for one in severe for node in one["nodes"]]

    return accessibility_faults


def _node_folders():
    """Where npm may have installed: what NCEREF_NODE names, and the environment of the Makefile."""
    named = os.environ.get("NCEREF_NODE")
    return [*([Path(named)] if named else []), HERE.parents[1] / ".venv"]


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """The folder for pictures of pages: what NCEREF_SCREENSHOTS names, else a temporary one."""
    folder = Path(os.environ.get("NCEREF_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


SIZES = {"phone": (375, 812), "desktop": (1440, 900)}
"""Width and height of the windows that pages are looked at in."""


@pytest.fixture(params=[(size, scheme) for size in SIZES for scheme in ("light", "dark")], ids="-".join)
def window(request):
    """Options of a window for `open_page`, with its name: a phone and a desktop, light and dark."""
    size, scheme = request.param
    width, height = SIZES[size]
    return f"{size}-{scheme}", {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
