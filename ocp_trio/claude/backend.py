"""Serve completions from children of the ``claude`` program, one for each request."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from math import inf
from typing import Final, TypeAlias

import trio

from ocp_trio.backend_state import BackendState, Plan
from ocp_trio.claude.children import Children, open_children
from ocp_trio.claude.command import child_environment, claude_command
from ocp_trio.claude.fingerprint import fingerprint
from ocp_trio.claude.histories import continued_by
from ocp_trio.claude.models import Catalogue
from ocp_trio.claude.plan import learned
from ocp_trio.claude.program import Program
from ocp_trio.claude.slots import Slot, Slots
from ocp_trio.claude.tool_choice import choose_tools, stream_forced
from ocp_trio.claude.turn import Turn
from ocp_trio.completion import Batch, CompletionRequest, Model
from ocp_trio.errors import BackendUnavailableError, UpstreamAuthError
from ocp_trio.streaming import MAX_LINE, Child, ProcessTally, StallLimits, open_child_process, open_stall_guard
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["ClaudeBackend", "open_claude"]


OpenChild: TypeAlias = Callable[..., AbstractAsyncContextManager[Child]]


class ClaudeBackend:
    """Serves completions from children; made by `open_claude`.

    Attributes:
        program: What is known of the CLI: as much as requests tell, and `watch_program` where that runs.
    """

    name: Final = "claude"
    starts_at_once: Final = True

    def __init__(
        self,
        slots: Slots,
        children: Children,
        tool_children: Children,
        stall_limits: StallLimits,
        max_line: int,
        *,
        tally: ProcessTally,
    ) -> None:
        self.slots = slots
        self.children = children
        self.program = Program()
        self._tally = tally
        self._stall_limits = stall_limits
        self._max_line = max_line
        self._tool_children = tool_children
        self._catalogue = Catalogue()
        self._plan: Plan | None = None

    @property
    def models(self) -> tuple[Model, ...]:
        """The models known to exist: more of them once a child has listed its own."""
        return self._catalogue.models

    @property
    def state(self) -> BackendState:
        """Slots, queue, children, and what is known of the CLI and of the subscription."""
        slots = self.slots
        return BackendState(
            in_flight=slots.in_flight,
            queued=slots.queued,
            queue_rejections=slots.rejections,
            warm=self.children.state,
            max_concurrent=slots.max_concurrent,
            max_queue=slots.max_queue,
            version=self.program.version,
            login=self.program.login,
            plan=self._plan,
            children=self._tally.alive,
            kills=dict(self._tally.signals),
        )

    def tune(
        self, *, max_concurrent: int, max_queue: int, retry_after: float, stall_timeout: float, warm_conversations: int
    ) -> None:
        """Change what `open_claude` was told, for requests that come, and for those that wait for a slot."""
        self.slots.resize(max_concurrent, max_queue, retry_after)
        self._stall_limits = _stall_limits(stall_timeout)
        for children in (self.children, self._tool_children):
            children.max_conversations = warm_conversations

    def resolve(self, model: str) -> str | None:
        """Return the id of a model by its name or alias; None if it cannot be a Claude model."""
        return self._catalogue.resolve(model)

    def stream(self, request: CompletionRequest) -> AbstractAsyncContextManager[AsyncIterator[Batch]]:
        """Stream an answer for the length of a block; where a tool has to be called, ask until one is.

        Cancellation: leaving the block ends the child and its descendants, within the grace period plus one second.

        Raises:
            QueueFullError: no slot, and no place in the queue.
            ChildSpawnError: the program could not be started.
        """
        chosen = choose_tools(request)
        if chosen.tools and request.tool_choice.mode == "required":
            return stream_forced(self._stream, chosen)
        return self._stream(chosen)

    @asynccontextmanager
    async def _stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Wait for a slot and a child, and stream its answer for the length of the block.

        Cancellation: leaving the block ends the child and its descendants, within the grace period plus one second. A
        child whose answer is complete is kept for its conversation where that is wanted, or has one second to exit by
        itself. The slot is free when the child has been reaped, or is kept.

        Raises:
            QueueFullError: no slot, and no place in the queue.
            ChildSpawnError: the program could not be started.
        """
        children = self._tool_children if request.tools else self.children
        async with (
            self.slots.take() as slot,
            children.lend(continued_by(request)) as lease,
            # Without a limit, which is the default, a guard would be a tenth of what a delta costs.
            open_stall_guard(self._stall_limits) if self._stall_limits.any else nullcontext() as guard,
        ):
            if guard is not None:
                guard.created()
            turn = Turn(lease, guard, request, self._max_line, queued=slot.waited)
            with unwrap_lone_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(turn.write)
                    nursery.start_soon(_release_at_exit, lease.child, slot)
                    async with aclosing(turn.read()) as batches:
                        yield batches
                    self._learn(turn)
                    await turn.settle()
                    first_turn = len(request.messages) == 1
                    if not children.keep(lease, turn.conversation, held=turn.held, first_turn=first_turn):
                        await turn.leave()
                    nursery.cancel_scope.cancel()

    def _learn(self, turn: Turn) -> None:
        """Take what a turn has told beside its answer."""
        self._catalogue.learn(turn.listed_models)
        self._plan = learned(self._plan, turn.rate_limits)
        if isinstance(turn.error, UpstreamAuthError):
            self.program.note_login("refused", "request")
        elif turn.answered:
            self.program.note_login("ok", "request")


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
    warm_pool: int = 0,
    warm_conversations: int = 0,
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
        warm_pool: Children that are started ahead, so that a request need not wait for that; each about 150 MiB.
        warm_conversations: Children that are kept after their answer, for the next turn; each about 150 MiB.
        open_child: Starts a child; for tests, `ocp_trio.testing.ScriptedProgram.open`.

    Cancellation: at once; streams have blocks of their own.

    Raises:
        BackendUnavailableError: ``binary`` is None.
    """
    if binary is None:
        raise BackendUnavailableError("no claude program was found")
    # The CLI tells the model which folder it works in: that one stays empty.
    with _private_folder() as work, _private_folder() as temporary:
        child_env = child_environment(environment, also=pass_environment, temporary_folder=temporary)
        open_group = partial(
            open_children,
            fingerprint=partial(fingerprint, binary, child_env),
            max_conversations=warm_conversations,
            end_within=grace_period + 2,
        )

        def start(rules: tuple[str, ...], config: str | None) -> Callable[[], AbstractAsyncContextManager[Child]]:
            command = claude_command(binary, allowed_tools=rules, mcp_config=config, setting_sources=setting_sources)
            return partial(open_child, command, env=child_env, cwd=work, grace_period=grace_period, tally=tally)

        tally = ProcessTally()
        own_tools = tuple(allowed_tools)
        async with AsyncExitStack() as stack:
            children = await stack.enter_async_context(open_group(start(own_tools, mcp_config), warm=warm_pool))
            tool_children = children
            if own_tools or mcp_config:
                # A caller that brings tools gets no others: it decides what runs.
                tool_children = await stack.enter_async_context(open_group(start((), None), warm=0))
            slots = Slots(max_concurrent, max_queue, retry_after)
            yield ClaudeBackend(slots, children, tool_children, _stall_limits(stall_timeout), max_line, tally=tally)


def _stall_limits(timeout: float) -> StallLimits:
    setting = "CLAUDE_STALL_TIMEOUT"
    return StallLimits(first_event=timeout, idle=timeout, first_event_setting=setting, idle_setting=setting)


def _private_folder() -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="ocp-trio-", ignore_cleanup_errors=True)
