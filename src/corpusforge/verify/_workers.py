"""Processes that do what may not end, and may be killed for it: each answers one request at a time, over pipes.

    worker = pool.take()
    worker.ask("corpusforge.verify.math:decide", ["4", "7^{7^{7}}", True], 9.0)   ->  Exceeded("timeout")

They are started when first needed and kept. The kernel ends one that uses too much processor time (RLIMIT_CPU: what a
loaded machine does not change) and refuses it memory (RLIMIT_AS, POSIX getrlimit); a timer kills it by the clock. A
worker ends when its standard input does, so none outlives the process that started it by more than its processor time.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, Final

from corpusforge.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CPU_SECONDS: Final = 3  # of processor time for one call
START_SECONDS: Final = 120.0  # by the clock for a worker to import what it needs
MEMORY: Final = 1 << 30  # bytes of address space of a worker
_MOST_WORKERS: Final = 4
_PREPARE: Final = "prepare"  # the function of a module that imports what it needs
_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from corpusforge.verify._workers import serve; serve()"
)


class Exceeded(Exception):
    """A call went over a limit; `reason` is `timeout`, `memory`, `crashed`, from `_limits.hold` also `error`.

    `by_clock`: the clock ran out, not the processor time, which a busy machine may do to anything. `own`: see there.
    """

    def __init__(self, reason: str, *, by_clock: bool = False, own: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.by_clock = by_clock
        self.own = own


class Worker:
    """A process that answers requests, one line of JSON each."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        environment = {
            **os.environ,
            # One order of sympy's sets and one result, whatever the caller's hash seed; no threads that take memory.
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            [sys.executable, "-W", "ignore", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libraries print what they fail to parse, and no log may hold it
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is the caller's to handle
        )
        try:
            self._line(START_SECONDS)
        except BaseException as error:
            self.close()
            if isinstance(error, Exceeded):
                hint = "run `python -c 'import corpusforge.verify._workers'` and see what it says"
                raise WorkerError("a verifier's worker process did not start", hint=hint) from None
            raise

    def prepare(self, module: str) -> None:
        """Let the worker import what a module needs, once, outside the limits of a call."""
        if module not in self.prepared:
            self.ask(f"{module}:{_PREPARE}", [], START_SECONDS)
            self.prepared.add(module)

    def ask(self, function: str, arguments: Sequence[Any], seconds: float) -> dict[str, Any]:
        """The reply. Raises Exceeded when the process ends before it replies."""
        request = json.dumps([function, arguments]).encode() + b"\n"
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
        except OSError:
            raise Exceeded("crashed") from None
        reply: dict[str, Any] = json.loads(self._line(seconds))
        return reply

    def _line(self, seconds: float) -> bytes:
        assert self.process.stdout is not None
        over = threading.Event()

        def stop() -> None:
            over.set()
            self.process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if line.endswith(b"\n") and not over.is_set():
            return line
        self.process.kill()
        ended = self.process.wait()
        if over.is_set() or ended == -getattr(signal, "SIGXCPU", 0):
            raise Exceeded("timeout", by_clock=over.is_set())
        raise Exceeded("memory" if ended == -getattr(signal, "SIGKILL", 0) else "crashed")

    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Pool:
    """Workers at rest, and how many there are."""

    def __init__(self) -> None:
        self.most = max(1, min(_MOST_WORKERS, os.cpu_count() or 1))
        self.changed = threading.Condition()
        self.resting: list[Worker] = []
        self.busy: set[Worker] = set()
        self.started = 0
        self.lonely: int | None = None  # the thread whose call no other may run beside
        self.running = 0
        self.stops = 0  # how often all calls were ended from outside

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While this lasts, no other thread gets a worker; it begins when none has one."""
        with self.changed:
            while self.lonely is not None:
                self.changed.wait()
            self.lonely = threading.get_ident()
            try:
                while self.running:
                    self.changed.wait()
            except BaseException:
                self._sociable()
                raise
        try:
            yield
        finally:
            with self.changed:
                self._sociable()

    def _sociable(self) -> None:
        self.lonely = None
        self.changed.notify_all()

    def take(self) -> Worker:
        """A worker for one call; waits while all are busy."""
        with self.changed:
            while self.lonely not in (None, threading.get_ident()) or self.running >= self.most:
                self.changed.wait()
            self.running += 1
        try:
            return self._take()
        except BaseException:
            self._ended()
            raise

    def _take(self) -> Worker:
        with self.changed:
            while self.resting:
                worker = self.resting.pop()
                if worker.alive():
                    self.busy.add(worker)
                    return worker
                worker.close()  # ended while it rested
                self.started -= 1
            self.started += 1
        try:
            worker = Worker()
        except BaseException:
            self._less()
            raise
        with self.changed:
            self.busy.add(worker)
        return worker

    def give(self, worker: Worker) -> None:
        with self.changed:
            self.busy.discard(worker)
            self.resting.append(worker)
        self._ended()

    def drop(self, worker: Worker) -> None:
        with self.changed:
            self.busy.discard(worker)
        worker.close()
        self._less()
        self._ended()

    def _ended(self) -> None:
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def stop(self) -> None:
        """End the calls that are under way: each is told that its worker crashed."""
        with self.changed:
            self.stops += 1
            for worker in self.busy:
                with contextlib.suppress(OSError):
                    worker.process.kill()

    def _less(self) -> None:
        with self.changed:
            self.started -= 1

    def close(self) -> None:
        with self.changed:
            while self.resting:
                self.resting.pop().close()
                self.started -= 1


def _after_fork() -> None:
    """A forked child starts workers of its own: two processes on one pipe would read each other's replies."""
    global pool
    for worker in pool.resting:
        worker.process.returncode = 0  # not this process's child: nothing to wait for
    pool = Pool()


pool = Pool()
atexit.register(lambda: pool.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def serve() -> None:
    """The worker: reads requests from standard input until it ends, writes replies to what was standard output."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not speak in the replies
    _limit_memory()
    replies.write(b'"ready"\n')
    replies.flush()
    for line in sys.stdin.buffer:
        function, arguments = json.loads(line)
        _answer(replies, function, arguments)


def _answer(replies: IO[bytes], function: str, arguments: list[Any]) -> None:
    try:
        module, name = function.split(":")
        run = getattr(importlib.import_module(module), name)
        if name != _PREPARE:
            _limit_time()
        reply = json.dumps({"value": run(*arguments)})
    except Exception as error:  # noqa: BLE001 - the name of the error is the answer; the worker lives on
        reply = json.dumps({"error": type(error).__name__})
    replies.write(reply.encode() + b"\n")
    replies.flush()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows; systems without address space limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time() -> None:
    """Processor seconds from now, after which the kernel ends this process."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))
