"""Look at a page in a real Chromium without a screen, through Debian's chromedriver and Selenium."""

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

__all__ = ["Browser", "open_browser", "require_chromium"]

PATIENCE = 30
"""Seconds that a page may take to come to what a test waits for; it is far less."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip

# Looks again whenever the document changes: nobody polls.
_WAIT = """
const [condition, done] = arguments;
const look = new Function(`return (${condition})`);
const found = () => { const value = look(); if (value) { observer.disconnect(); done(value); } };
const observer = new MutationObserver(found);
observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
found();
"""


class Browser:
    """A browser with one page; made by `open_browser`."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str, *, width: int = 1180, height: int = 900, scheme: str = "light") -> None:
        """Open a page as one who has never been there, on a screen of this size, in light or dark."""
        old = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        new = self.driver.current_window_handle
        self.driver.switch_to.window(old)
        self.driver.close()
        self.driver.switch_to.window(new)
        self.logs()
        media = {"color-scheme": scheme, "reduced-motion": "reduce"}
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [{"name": f"prefers-{name}", "value": value} for name, value in media.items()]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.driver.get(url)

    def leave(self) -> None:
        """Leave the page."""
        self.driver.get("about:blank")

    def command(self, name: str, **arguments: Any) -> Any:
        """Send a command of Chromium's own protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> Any:
        """Return what a condition in JavaScript says, as soon as it says anything but no."""
        return self.driver.execute_async_script(_WAIT, condition)

    def see(self, css: str, words: str = "") -> None:
        """Wait until something that these selectors find is visible, and says this."""
        self.wait(
            f"[...document.querySelectorAll({json.dumps(css)})]"
            f".some((found) => found.checkVisibility() && found.textContent.includes({json.dumps(words)}))"
        )

    def find(self, css: str) -> WebElement:
        """Return the first element that a selector finds."""
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def keys(self, *keys: str) -> None:
        """Type, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> WebElement:
        """Return the element that has the focus."""
        return self.driver.switch_to.active_element

    def logs(self) -> tuple[list[str], set[str]]:
        """Return what was said on the console, and the hosts that anything was asked of, since the last look."""
        said = [entry["message"] for entry in self._log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        urls = [urlsplit(each["params"]["request"]["url"]) for each in events if each["method"].endswith("WillBeSent")]
        return said, {url.netloc for url in urls if url.scheme not in {"data", "about"}}

    def _log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.execute("getLog", {"type": kind})["value"]
        return entries

    def audit(self, axe: str) -> list[str]:
        """Return what axe-core finds wrong with the page, a line each."""
        self.run(axe)
        found = self.driver.execute_async_script(
            "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => arguments[0](violations))"
        )
        return [f"{rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]

    def picture(self, *, whole: bool = True) -> bytes:
        """Return the page, as far as it reaches below the screen too, as a PNG."""
        taken = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(taken["data"])


def require_chromium() -> tuple[str, str]:
    """Return the paths of Chromium and its driver; without them skip the test, or fail it: ``OCP_REQUIRE_CHROMIUM``."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    if found[0] and found[1]:
        return found[0], found[1]
    reason = "chromium and chromium-driver are not installed"
    if os.environ.get("OCP_REQUIRE_CHROMIUM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run a browser for the length of a block, with a profile and a home of its own."""
    chromium, driver = require_chromium()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        options = Options()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={home}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "TMPDIR": home,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }
        started = webdriver.Chrome(options=options, service=Service(driver, env=environment))
        try:
            started.set_script_timeout(PATIENCE)
            yield Browser(started)
        finally:
            started.quit()
