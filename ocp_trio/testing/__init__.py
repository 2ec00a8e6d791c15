r"""Test doubles for programs that stream, made for Trio's mock clock: an ASGI client, a backend, a child process.

A test of one's own cancellation path, in virtual time and without a process::

    async def test_a_child_is_terminated_when_its_consumer_leaves(autojump_clock):
        program = ScriptedProgram([b"one\n", math.inf])

        with trio.move_on_after(60):
            async with stream_child(["/bin/any"], env={}, describe=describe, open_child=program.open) as lines:
                async for line in lines:
                    ...

        assert [run.returncode for run in program.runs] == [-signal.SIGTERM]
"""

from ocp_trio.testing.asgi import AsgiExchange, open_asgi_exchange
from ocp_trio.testing.backend import ScriptedBackend
from ocp_trio.testing.child import ScriptedChild, ScriptedProgram

__all__ = ["AsgiExchange", "ScriptedBackend", "ScriptedChild", "ScriptedProgram", "open_asgi_exchange"]
