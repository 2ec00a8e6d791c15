"""``python -m ocp_trio`` is ``ocp-trio``."""

from ocp_trio.cli import main

main(prog_name="ocp-trio")
