"""Serve completions from children of the ``claude`` program, one for each request."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import trio

from ocp_trio.claude import models
from ocp_trio.claude.command import child_environment, claude_command
from ocp_trio.claude.slots import Slot, Slots
from ocp_trio.claude.turn import Turn
from ocp_trio.completion import Batch, CompletionRequest, Model
from ocp_trio.errors import BackendUnavailableError
from ocp_trio.streaming import MAX_LINE, Child, StallLimits, open_child_process, open_stall_guard
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["ClaudeBackend", "open_claude"]


OpenChild: TypeAlias = Callable[..., AbstractAsyncContextManager[Child]]


@dataclass(frozen=True, slots=True)
class _Launch:
    """How every child of a backend is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    grace_period: float
    stall_limits: StallLimits
    max_line: int
    open_child: OpenChild


class ClaudeBackend:
    """Serves completions from children; made by `open_claude`."""

    name: Final = "claude"

    def __init__(self, launch: _Launch, slots: Slots) -> None:
        self._launch = launch
        self.slots = slots

    @property
    def models(self) -> tuple[Model, ...]:
        """The models known to exist."""
        return models.MODELS

    def resolve(self, model: str) -> str | None:
        """Return the id of a model by its name or alias; None if it cannot be a Claude model."""
        return models.resolve(model)

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Wait for a slot, start a child, and stream its answer for the length of the block.

        Cancellation: leaving the block ends the child and its descendants, within the grace period plus one second. A
        child whose answer is complete has one second to exit by itself first. The slot is free when the child has been
        reaped.

        Raises:
            QueueFullError: no slot, and no place in the queue.
            ChildSpawnError: the program could not be started.
        """
        launch = self._launch
        async with (
            self.slots.take() as slot,
            launch.open_child(
                launch.command, env=launch.environment, cwd=launch.folder, grace_period=launch.grace_period
            ) as child,
            open_stall_guard(launch.stall_limits) as guard,
        ):
            guard.created()
            turn = Turn(child, guard, request, launch.max_line)
            with unwrap_lone_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(turn.write)
                    nursery.start_soon(_release_at_exit, child, slot)
                    async with aclosing(turn.read()) as batches:
                        yield batches
                    await turn.leave()
                    nursery.cancel_scope.cancel()


async def _release_at_exit(child: Child, slot: Slot) -> None:
    """Free the slot even while nobody reads what the child has left behind."""
    await child.exited.wait()
    slot.release()


@asynccontextmanager
async def open_claude(
    binary: str | None,
    *,
    environment: Mapping[str, str],
    pass_environment: Iterable[str] = (),
    max_concurrent: int = 8,
    max_queue: int = 16,
    retry_after: float = 5.0,
    grace_period: float = 5.0,
    stall_timeout: float = inf,
    max_line: int = MAX_LINE,
    allowed_tools: Iterable[str] = (),
    mcp_config: str | None = None,
    setting_sources: str = "",
    open_child: OpenChild = open_child_process,
) -> AsyncIterator[ClaudeBackend]:
    """Serve completions from the ``claude`` CLI for the length of a block.

    Args:
        binary: Path of the CLI, as `find_claude` returns it.
        environment: What the child's environment is chosen from, usually `os.environ`.
        pass_environment: Names that pass beside the allow-list.
        max_concurrent: Children at once.
        max_queue: Requests that may wait for one.
        retry_after: Seconds that a refused client is asked to wait.
        grace_period: Seconds between SIGTERM and SIGKILL.
        stall_timeout: Seconds of silence after which an answer is given up; `math.inf` never gives up.
        max_line: Longest line accepted from the child, in bytes.
        allowed_tools: Permission rules for the tools that a prompt may use on this machine, such as ``Bash(git:*)`` or
            ``mcp__SERVER``; none by default.
        mcp_config: Path of an MCP configuration whose servers are started; their tools run only if allowed.
        setting_sources: The CLI's settings files that are read.
        open_child: Starts a child; for tests, `ocp_trio.testing.ScriptedProgram.open`.

    Cancellation: at once; streams have blocks of their own.

    Raises:
        BackendUnavailableError: ``binary`` is None.
    """
    if binary is None:
        raise BackendUnavailableError("no claude program was found")
    command = claude_command(
        binary, allowed_tools=allowed_tools, mcp_config=mcp_config, setting_sources=setting_sources
    )
    limits = StallLimits(
        first_event=stall_timeout,
        idle=stall_timeout,
        first_event_setting="CLAUDE_STALL_TIMEOUT",
        idle_setting="CLAUDE_STALL_TIMEOUT",
    )
    # The CLI tells the model which folder it works in: that one stays empty.
    with _private_folder() as work, _private_folder() as temporary:
        child_env = child_environment(environment, also=pass_environment, temporary_folder=temporary)
        launch = _Launch(tuple(command), child_env, work, grace_period, limits, max_line, open_child)
        yield ClaudeBackend(launch, Slots(max_concurrent, max_queue, retry_after))


def _private_folder() -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="ocp-trio-", ignore_cleanup_errors=True)
