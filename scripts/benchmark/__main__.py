"""Measure how fast the server is, beside a bare floor and any other server of its kind, and print a table."""

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from client import MeasureError
from figures import Group, Results, row, titles
from load import SETTINGS, run_load
from pieces import make_fake
from real_cli_rows import measure_real_cli
from rows_flow import BURST, GO_BURST, GO_PACED, LONG_LINE, PACED, PACED_MANY
from rows_load import LOAD
from rows_requests import DISCONNECT, IDLE, LATENCY, RATE, STOPPED, STUBBORN
from servers import Opener, open_floor, open_ours, open_url

GROUPS = {
    group.name: group
    for group in (
        *(BURST, PACED, PACED_MANY, GO_BURST, GO_PACED, LATENCY, RATE),
        *(DISCONNECT, STUBBORN, IDLE, LOAD, STOPPED, LONG_LINE),
    )
}
EPILOG = "On a busy machine, run it ahead of everything else: chrt -r 1 scripts/bench"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, epilog=EPILOG)
    rows = ", ".join(GROUPS)
    parser.add_argument("--only", metavar="ROWS", default=",".join(GROUPS), help=f"some of {rows}")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of what is measured over time (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row, whose median counts (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="the same as --seconds 2 --repeat 1")
    parser.add_argument(
        "--real-cli", action="store_true", help="measure the real CLI against a mock of its API, and nothing else"
    )
    parser.add_argument(
        "--load",
        type=float,
        nargs="?",
        const=120.0,
        metavar="SECONDS",
        help="be 200 clients with keys and quotas for a while (%(const)g s), and nothing else; fail if accounts differ",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all numbers to a file")
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="measure this server as well; it has to run with CLAUDE_BIN=FOLDER/cli/claude and enough slots",
    )
    parser.add_argument("--fake-folder", type=Path, metavar="FOLDER", help="make the fake claude there, and leave it")
    parser.add_argument("--server", metavar="COMMAND", help="start this in place of `python -m ocp_trio serve`")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.seconds, chosen.repeat = 2.0, 1
    chosen.only = [name.strip() for name in chosen.only.split(",")]
    if unknown := set(chosen.only) - set(GROUPS):
        parser.error(f"no such row: {', '.join(unknown)}; there are {rows}")
    if not all("=http://" in each for each in chosen.url):
        parser.error("--url takes NAME=http://…")
    return chosen


def describe_machine() -> dict[str, object]:
    """Return where and when this was measured."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count(),
        "loop": f"{_time_a_loop():.1f} ms",
        "load": round(os.getloadavg()[0], 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "trio": version("trio"),
    }


def _time_a_loop() -> float:
    """Return the milliseconds that 100,000 additions take: a shared machine may be thrice as fast a minute later."""
    began, total = time.perf_counter(), 0
    for number in range(100_000):
        total += number
    return (time.perf_counter() - began) * 1e3


def measure(group: Group, openers: dict[str, Opener], results: Results, *, seconds: float, repeat: int) -> list[str]:
    """Measure one group on each server in turn; return what went wrong."""
    problems = []
    for _ in range(repeat):
        for name, opener in openers.items():
            try:
                with opener(group.settings) as subject:
                    results.add(name, group.measure(subject, seconds))
            except (MeasureError, OSError) as error:
                problems.append(f"bench: {group.name} of {name}: {error}")
    return problems


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return 1 if something could not be measured. A missed target is no failure."""
    chosen = parse_arguments(arguments)
    if chosen.real_cli:
        print(", ".join(f"{name} {value}" for name, value in describe_machine().items()))
        measure_real_cli(chosen.repeat)
        return 0
    command = shlex.split(chosen.server) if chosen.server else [sys.executable, "-m", "ocp_trio", "serve"]
    results, machine = Results(), describe_machine()
    problems: list[str] = []
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ocp-bench-")))
        folder = chosen.fake_folder.absolute() if chosen.fake_folder else scratch
        folder.mkdir(parents=True, exist_ok=True)
        cli, floor = make_fake(folder)
        bare = open_floor(floor, scratch)
        openers = {"ours": open_ours(command, cli, scratch, bare), "floor": bare}
        if chosen.load:
            return 1 if run_load(openers["ours"](SETTINGS), scratch / "home", chosen.load) else 0
        for each in chosen.url:
            name, _, url = each.partition("=")
            openers[name] = open_url(name, url, cli)
        others = [name for name in openers if name != "ours"]
        print(titles(others), flush=True)
        for name in chosen.only:
            problems += measure(GROUPS[name], openers, results, seconds=chosen.seconds, repeat=chosen.repeat)
            for figure in GROUPS[name].figures:
                print(row(figure, results, others), flush=True)
    if chosen.json:
        figures = {f.key: results.report(f, list(openers)) for name in chosen.only for f in GROUPS[name].figures}
        chosen.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n")
    sys.stdout.flush()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
