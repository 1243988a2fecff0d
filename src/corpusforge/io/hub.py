"""Data sets on the Hugging Face hub, read as streams at one commit, which is stored with every row.

    hf://owner/name                              the data set as the `datasets` library loads it, all splits or one
    hf://datasets/owner/name/data/*.jsonl.gz     files of it through the readers of this package: every value exact

A branch that moves while it is read changes nothing. What goes wrong on the way is told apart: no network, no such data
set, not allowed, a split or configuration that does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import CorpusForgeError, SourceError
from corpusforge.io.readers import streamed_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.stages.ingest import Record, SourceConfig

_SCHEME: Final = "hf://"
_NAME: Final = re.compile(r"(?:datasets/)?([\w.-]+/[\w.-]+|[\w.-]+)")
_FILES: Final = re.compile(r"datasets/([\w.-]+/[\w.-]+)(?:@([^/]+))?/(.+)")


@dataclass(frozen=True)
class Pinned:
    """A data set at one commit."""

    name: str
    commit: str
    files: str | None  # what is read of it, as a URL with the commit in it; None: all that `datasets` loads
    uri: str


def is_hub(source: SourceConfig) -> bool:
    """Whether a source lies on the hub."""
    return source.reader == "hub" or (isinstance(source.path, str) and source.path.startswith(_SCHEME))


def pin(source: SourceConfig) -> Pinned:
    """Ask the hub which commit a source is at. Raises SourceError, naming source and cause."""
    if not isinstance(source.path, str):
        raise SourceError(f"source {source.name!r}: one hub data set per source")
    path = source.path.removeprefix(_SCHEME)
    inside, whole = _FILES.fullmatch(path), _NAME.fullmatch(path)
    if inside is None and whole is None:
        raise SourceError(
            f"source {source.name!r}: {source.path!r} names no data set",
            hint="write hf://owner/name, or hf://datasets/owner/name/file.jsonl",
        )
    name = inside[1] if inside else whole[1] if whole else ""
    asked = (inside[2] if inside else None) or source.options.revision
    import huggingface_hub

    try:
        commit = huggingface_hub.HfApi().dataset_info(name, revision=asked).sha or asked or ""
    except Exception as error:  # noqa: BLE001 - whatever the library raises is told as what it means
        raise _explained(source, name, error) from None
    if inside is None:
        return Pinned(name, commit, None, f"{_SCHEME}{name}")
    at = f"@{commit}" if commit else ""
    return Pinned(name, commit, f"{_SCHEME}datasets/{name}{at}/{inside[3]}", f"{_SCHEME}datasets/{name}/{inside[3]}")


def open_hub(source: SourceConfig, pinned: Pinned) -> Iterator[Record]:
    """Records of a whole data set, as they come over the line. Raises SourceError, naming source and cause."""
    import datasets

    options = source.options
    try:
        loaded = datasets.load_dataset(
            pinned.name, options.subset, split=options.split, revision=pinned.commit or None, streaming=True
        )
        yield from streamed_records(loaded, pinned.uri)
    except CorpusForgeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the library raises is told as what it means
        raise _explained(source, pinned.name, error) from None


def _explained(source: SourceConfig, name: str, error: BaseException) -> SourceError:
    """The cause in one sentence, by the status of the answer where there was one."""
    said = {
        401: ("the hub asks who you are (401)", "log in: hf auth login"),
        403: ("the hub does not let you read it (403)", "ask for access on its page, then: hf auth login"),
        404: ("there is no such data set or revision on the hub (404)", "check the spelling of hf://owner/name"),
    }
    chain = list(_chain(error))
    kinds = [type(one).__name__ for one in chain]
    statuses = [status for one in chain if (status := _status(one)) in said]
    if "GatedRepoError" in kinds or any("gated dataset" in str(one) for one in chain):
        cause = said[403]
    elif statuses:
        cause = said[statuses[0]]
    elif {"RepositoryNotFoundError", "RevisionNotFoundError", "DatasetNotFoundError"} & set(kinds):
        cause = said[404]
    elif any(word in kind for kind in kinds for word in ("Connect", "Timeout", "Offline", "Network", "Protocol")):
        cause = (f"the hub cannot be reached ({kinds[0]})", "without a network, give a local path instead of hf://…")
    elif isinstance(error, OSError) and kinds[0] not in ("EmptyDatasetError", "DataFilesNotFoundError"):
        cause = (f"the hub cannot be reached ({kinds[0]})", "is there a network, and room on the disk?")
    else:
        cause = (
            f"`datasets` cannot read it ({kinds[0]})",
            f"check options.subset and options.split, or name its files: hf://datasets/{name}/…",
        )
    return SourceError(f"source {source.name!r}: {_SCHEME}{name}: {cause[0]}", hint=cause[1])


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: Any) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None
