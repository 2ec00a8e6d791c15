"""What happens to a backend's answers on their way to whoever asked: ended at stop sequences, held to a form."""

from ocp_trio.shaping.checking import check_format
from ocp_trio.shaping.stop import Stream, end_at_stops
from ocp_trio.shaping.structured import hold_to_format

__all__ = ["Stream", "check_format", "end_at_stops", "hold_to_format"]
