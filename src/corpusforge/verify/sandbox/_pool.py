"""Confined interpreters at rest: taken for a check, given back after it, started where none rests.

    pool = Pool(Zygote)
    one = pool.take()     ->  one that rested and is quiet, or a new one
    pool.give(one)        ->  rests, or is closed where enough rest already

They are started by a thread of the pool's own: a confined process dies with the thread that started it. They are closed
when the process ends; a fork of it starts its own, and leaves those of its parent alone.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

_RESTING: Final = 2 * (os.cpu_count() or 1)  # a solution and its tests take one each


class Resting(Protocol):
    """What can wait for work."""

    def waits(self) -> bool:
        """Whether it lives and has nothing to say."""

    def leave(self) -> None:
        """Begin to end, without waiting for it."""

    def close(self) -> None:
        """End it, with all that belongs to it."""


One = TypeVar("One", bound=Resting)


class Pool(Generic[One]):
    """Those that rest, and the thread that starts more."""

    def __init__(self, make: Callable[[], One]) -> None:
        self._make = make
        self._most = _RESTING
        self._rest: list[One] = []
        self._inherited: list[One] = []
        self._begin()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            leave = weakref.WeakMethod(self._leave)
            os.register_at_fork(after_in_child=lambda: (mine := leave()) and mine())

    def take(self) -> One:
        """One that nobody else has. Raises what starting one raises."""
        while True:
            with self._lock:
                one: One | None = self._rest.pop() if self._rest else None
            if one is None:
                made: Future[One] = self._starter.submit(self._make)
                try:
                    return made.result()
                except BaseException:  # Ctrl-C: what comes up yet has nobody to give it back
                    if not made.cancel():
                        made.add_done_callback(self._unclaimed)
                    raise
            if one.waits():
                return one
            one.close()

    def give(self, one: One) -> None:
        """Take it back."""
        with self._lock:
            if len(self._rest) < self._most:
                return self._rest.append(one)
        one.close()

    def close(self) -> None:
        """End those that rest."""
        with self._lock:
            resting, self._rest = self._rest, []
        for one in resting:
            one.leave()
        for one in resting:
            one.close()

    def retire(self) -> None:
        """End those that rest, and those that are out when they come back."""
        self._most = 0
        atexit.unregister(self.close)
        self.close()

    def _unclaimed(self, made: Future[One]) -> None:
        if made.exception() is None:
            self.give(made.result())

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._rest = []
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="corpusforge-confined")

    def _leave(self) -> None:
        """In a fork: what it inherited is kept, untouched: it is the parent's to end."""
        self._inherited += self._rest
        self._begin()
