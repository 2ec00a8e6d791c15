"""Refuse tracked files that give something private away: secrets, personal paths, e-mail addresses, host names."""

import re
import subprocess
import sys
from pathlib import Path

PATTERNS = {
    "a secret": re.compile(
        r"sk-ant-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----|xox[abprs]-[A-Za-z0-9-]{20,}"
    ),
    # A neutral user's home may be named, and the fixed one of Homebrew on Linux.
    "a personal path": re.compile(r"(?<![\w.$}])/(?:(?:home|Users)/(?!user\b|linuxbrew\b)|(?:root|work)/)\w"),
    "an e-mail address": re.compile(r"\b[\w.+-]+@(?!example\b)[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b"),
}
URL = re.compile(r"\bhttps?://(?:[^/\s@\"'`]*@)?(\[[0-9a-f:.]+\]|[^/\s:\"'`)>\]{}|\\,]+)", re.IGNORECASE)
HOSTS = re.compile(
    r"localhost|127(?:\.\d+){3}|10\.9\.8\.7|\[::1\]|0\.0\.0\.0"
    # No host of anybody's: made up for tests of what a host may look like.
    r"|[a-z…]|my\.lan|\[bad"
    # Reserved for documentation, and what the program itself talks to or quotes.
    r"|(?:[\w-]+\.)*(?:example|test|invalid|localhost)|(?:[\w-]+\.)?example\.(?:com|org|net)"
    r"|github\.com|opencode\.ai|json-schema\.org|www\.w3\.org",
    re.IGNORECASE,
)


def findings(path: Path) -> list[str]:
    """Return what is wrong with a file, a line each."""
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        found += [f"{path}:{number}: {what}" for what, pattern in PATTERNS.items() if pattern.search(line)]
        found += [f"{path}:{number}: host name {host}" for host in URL.findall(line) if not HOSTS.fullmatch(host)]
    return found


def main() -> None:
    """Look through all tracked files."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name and Path(name).is_file()]
    found = [finding for path in paths for finding in findings(path)]
    print("\n".join(found) or f"{len(paths)} files hold nothing private")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
