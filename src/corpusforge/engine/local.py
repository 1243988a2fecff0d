"""The local engine: a function over partitions, on this machine's cores, results in the order of the partitions.

Workers are spawned processes (never forked: numba's and OpenMP's threads do not survive a fork) that die with their
parent. One partition, or little data, is done in this process: the result is the same, only the clock differs. The job
must be a module-level function and its items small: a worker reads its own partition and writes its own output.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Final, TypeVar

from corpusforge.engine.lifeline import die_with_parent
from corpusforge.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")
_FEW: Final = 2  # fewer items need no other process
_SMALL: Final = 8 << 20  # bytes of compressed rows
_AHEAD: Final = 2  # items per worker that a stream hands out before it waits for the first of them


def workers_from_environment() -> int:
    """CORPUSFORGE_WORKERS, else the cores this process may use."""
    asked = os.environ.get("CORPUSFORGE_WORKERS", "")
    if asked.isdigit():
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers_for(size: int) -> int:
    """Workers for `size` bytes of compressed rows: one where starting others would take longer than the work.

    CORPUSFORGE_WORKERS, where it is set, decides whatever the size.
    """
    return 1 if size < _SMALL and not os.environ.get("CORPUSFORGE_WORKERS") else workers_from_environment()


class LocalEngine:
    """Maps over partitions with at most `workers` processes, which live until `close` (or the end of a `with`)."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or workers_from_environment()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, if any were started."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def start(self, job: Callable[[], object]) -> None:
        """Start all workers now, each with this job, while there is something else to do here."""
        if self.workers > 1:
            pool = self._workers(self.workers)
            for _ in range(self.workers):
                pool.submit(job)

    def map(self, job: Callable[[T], R], items: Sequence[T], done: Callable[[int], None] | None = None) -> list[R]:
        """`[job(item) for item in items]`; `done(n)` is told after each finished item. Raises WorkerError."""
        results: list[R] = []
        for result in map(job, items) if self.workers == 1 or len(items) < _FEW else self._spread(job, items):
            results.append(result)
            if done:
                done(len(results))
        return results

    def stream(self, job: Callable[[T], R], items: Iterable[T], few: int = 0) -> Iterator[R]:
        """The results for items that come one by one, in their order; a bounded number of items is in work.

        The first `few` are done in this process: where there are no more, no other is started. Raises WorkerError.
        """
        if self.workers == 1:
            yield from map(job, items)
            return
        coming = iter(items)
        yield from map(job, itertools.islice(coming, few))
        waiting: deque[Future[R]] = deque()
        try:
            for number, item in enumerate(coming, few):
                try:
                    waiting.append(self._workers(self.workers).submit(job, item))
                except BrokenProcessPool:  # one died before, perhaps while it started
                    raise _died(number) from None
                if len(waiting) > _AHEAD * self.workers:
                    yield _result(waiting.popleft(), number)
            while waiting:
                yield _result(waiting.popleft(), number)
        except BaseException:
            self.close()
            raise

    def _spread(self, job: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        pool = self._workers(min(self.workers, len(items)))
        futures = [pool.submit(job, item) for item in items]
        try:
            for number, future in enumerate(futures):
                yield _result(future, number)
        except BaseException:
            self.close()
            raise

    def _workers(self, count: int) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(count, context, die_with_parent, (os.getpid(),))
        return self._pool


def in_threads(job: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """The results for items, in their order, by threads: for kernels that release the GIL. A bounded number is in work.

    What a job raises is raised here, when its turn comes; jobs that have not begun are not begun then.
    """
    if workers == 1:
        yield from map(job, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(job, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _result(future: Future[R], number: int) -> R:
    try:
        return future.result()
    except BrokenProcessPool:
        raise _died(number) from None


def _died(number: int) -> WorkerError:
    return WorkerError(
        f"a worker process died while partition {number} or a neighbour was in work",
        hint="out of memory? try CORPUSFORGE_WORKERS=1, or a smaller engine.partition_rows",
    )
