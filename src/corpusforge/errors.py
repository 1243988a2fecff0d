"""Every error CorpusForge raises on purpose, on one page.

    CorpusForgeError
    ├── ConfigError        params.yaml, an option, a keyword argument        exit 4
    │   ├── UnknownKey     a key nobody reads, answered with the nearest one
    │   └── MissingKey     the scrubbing key is absent and nobody can be asked
    ├── SourceError        a declared source cannot be read                  exit 3
    ├── RecordError        one record cannot be represented (strict mode)    exit 3
    ├── SchemaError        a table does not have the row format              exit 3
    ├── CountError         kept + dropped is not what came in                exit 3
    ├── BusyError          another run holds the lock                        exit 3
    ├── StorageError       a disk is full, read-only, or refuses             exit 3
    ├── StaleLockError     dvc.yaml or methods.lock.json lag behind          exit 4
    ├── WorkerError        a worker process died                             exit 3
    ├── ProjectError       not a project, or a stage has not run yet         exit 3
    ├── TrainingError      training failed, or was told to stop              exit 3
    ├── GateError          the answer is no: the build is not good enough    exit 1
    └── MissingExtra       an optional package is not installed              exit 4

Each carries a `code` (an anchor in docs/errors.md) and an `exit_code`, inherits the built-in it replaces,
survives pickling between worker processes, and says what was found, what was expected, and what to type next.
No message echoes the text of a row: file, line, column and id are enough to find it.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


class CorpusForgeError(Exception):
    """Base of the family. `hint` is the next thing to type or look at."""

    code = "error"
    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[CorpusForgeError], message: str, hint: str) -> CorpusForgeError:
    return kind(message, hint=hint)


class ConfigError(CorpusForgeError, ValueError):
    """A parameter has the wrong type or value; names file, line, key, and what would be right."""

    code = "config"
    exit_code = 4


class UnknownKey(ConfigError, KeyError):
    """A parameter that no stage reads."""

    code = "unknown-key"

    __str__ = CorpusForgeError.__str__


class MissingKey(ConfigError):
    """The key for stand-ins is in neither the environment nor the file that params name."""

    code = "missing-key"


class SourceError(CorpusForgeError, OSError):
    """A declared source is missing, unreadable, refused, or not what it says."""

    code = "source"

    __str__ = CorpusForgeError.__str__


class RecordError(CorpusForgeError, ValueError):
    """A single record cannot be represented; raised in strict mode, quarantined otherwise."""

    code = "record"


class SchemaError(CorpusForgeError, TypeError):
    """A table does not have the row format that the stage's border demands."""

    code = "schema"


class CountError(CorpusForgeError, AssertionError):
    """A stage lost or invented rows."""

    code = "count"


class BusyError(CorpusForgeError, RuntimeError):
    """Another process is running the same stage in the same project."""

    code = "busy"


_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
# Of safetensors, datasets, and torch (twice).
_SAYS_FULL: Final = ("No space left", "Not enough disk space", "PytorchStreamWriter", "unexpected pos")
_CLOSED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)


class StorageError(CorpusForgeError, OSError):
    """The disk is full, may not be written to, or refuses in another way."""

    code = "storage"

    __str__ = CorpusForgeError.__str__

    @classmethod
    def of(cls, error: BaseException, doing: str = "") -> StorageError | None:
        """What an error says of the disk, in whatever library it was raised; None when it is about something else."""
        says = str(error)
        start = f"{doing}: " if doing else ""
        if getattr(error, "errno", None) in _FULL or any(word in says for word in _SAYS_FULL):
            return cls(f"{start}the disk is full", hint="free some space, then run it again")
        if not isinstance(error, OSError):
            return None
        where = f": {error.filename}" if error.filename else ""
        what = error.strerror or type(error).__name__
        hint = "let it be written to, then run it again" if error.errno in _CLOSED else "look at the path and the disk"
        return cls(f"{start}{what}{where}", hint=hint)


@contextmanager
def storage_told(doing: str) -> Iterator[None]:
    """Say what a disk refuses within the block, by whatever name a library has for it. Raises StorageError."""
    try:
        yield
    except CorpusForgeError:
        raise
    except Exception as error:
        told = StorageError.of(error, doing)
        if told is None:
            raise
        raise told from None


class StaleLockError(CorpusForgeError, RuntimeError):
    """dvc.yaml or methods.lock.json do not say what the stage will really read or use."""

    code = "stale-lock"
    exit_code = 4


class WorkerError(CorpusForgeError, RuntimeError):
    """A worker process died (killed, out of memory, crashed library)."""

    code = "worker"


class ProjectError(CorpusForgeError, FileNotFoundError):
    """The folder is not a project, or the stage whose output is asked for has not run."""

    code = "project"

    __str__ = CorpusForgeError.__str__


class TrainingError(CorpusForgeError, RuntimeError):
    """Training failed or was told to stop; what was reached lies in a checkpoint."""

    code = "training"


class GateError(CorpusForgeError, RuntimeError):
    """The build is worse than what the limits or the baseline allow."""

    code = "gate"
    exit_code = 1


class MissingExtra(CorpusForgeError, ImportError):
    """An optional dependency is absent; the message is the command that installs it."""

    code = "missing-extra"
    exit_code = 4
