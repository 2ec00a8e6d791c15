"""Take the picture of the dashboard that README shows: ``OCP_PICTURE=1 scripts/test`` does, in a minute.

It is no test: it waits until there is something to see.
"""

import http.client
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio
from browser import open_browser
from fake_program import install
from fake_script import Step, api_error, burst, hang, prompt, thinking
from raw_client import CHAT
from selenium.webdriver.common.keys import Keys
from server_process import Server, shared_server

from ocp_trio.store import Quota, UsageRow, open_store

PICTURE = Path(__file__).parent / "dashboard.png"
ADMIN = "admin-secret"
WIDTH = 1100
AGE = 45
"""Seconds that the streams have been running for."""
CALLERS = {"alice": 150, "bob": 70, "ci": 40, "tablet": 12}
"""How many requests each has made in the last day."""
MODELS = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")


async def fill_store(path: Path) -> dict[str, str]:
    """Make keys that have been used, and return their secrets."""
    dice, secrets = random.Random(1), {}
    async with open_store(path) as store:
        for name, requests in CALLERS.items():
            made = await store.keys.create(name, Quota(daily=200) if name == "ci" else Quota())
            secrets[name] = made.secret
            for number in range(requests):
                row = UsageRow(
                    request_id=f"req_{name}{number}",
                    created_at=datetime.now(UTC) - timedelta(hours=dice.triangular(0, 24, 3)),
                    key_id=made.key.id,
                    key_name=name,
                    model=dice.choices(MODELS, (5, 2, 2))[0],
                    backend="claude",
                    outcome="ok",
                    tokens_in=dice.randrange(3000),
                    tokens_out=dice.randrange(4000),
                )
                await store.usage.record(row)
    return secrets


@contextmanager
def asking(server: Server, key: str, model: str, *steps: Step) -> Iterator[http.client.HTTPConnection]:
    """Ask for a stream for the length of a block, without reading it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": prompt(*steps)}]}
    connection.request("POST", CHAT, json.dumps(body), {"authorization": f"Bearer {key}"})
    try:
        yield connection
    finally:
        connection.close()


def _main() -> None:
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        store = folder / "store.db"
        secrets = trio.run(fill_store, store)
        settings = {
            "CLAUDE_AUTH_MODE": "multi",
            "OCP_ADMIN_KEY": ADMIN,
            "OCP_STORE": str(store),
            "CLAUDE_HEARTBEAT_INTERVAL": "5000",
            "CLAUDE_MAX_CONCURRENT": "4",
        }
        server = stack.enter_context(shared_server(install(folder), **settings))
        browser = stack.enter_context(open_browser())
        with asking(server, secrets["bob"], "opus", api_error("x", error="overloaded", status=529)) as refused:
            refused.getresponse().read()
        browser.open(f"{server.url}/dashboard", width=WIDTH)
        browser.find("#key").send_keys(ADMIN + Keys.ENTER)
        streams: list[tuple[str, str, list[Step]]] = [
            ("alice", "sonnet", [burst(5000, gap=0.02)]),
            ("bob", "opus", [thinking("hm"), burst(300, gap=0.08), hang()]),
            ("alice", "haiku", [burst(5000, gap=0.12)]),
            ("tablet", "sonnet", [thinking("hm"), hang()]),
            ("ci", "sonnet", [hang()]),
        ]
        for number, (name, model, steps) in enumerate(streams):
            stack.enter_context(asking(server, secrets[name], model, *steps))
            browser.see(f"#running li:nth-child({number + 1})")
        time.sleep(AGE)
        PICTURE.write_bytes(browser.picture())
        sys.stdout.write(f"{PICTURE}: {PICTURE.stat().st_size} bytes\n")


if __name__ == "__main__":
    _main()
