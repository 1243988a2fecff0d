"""Where the scrubbing key comes from: the environment or a file outside git. Nothing makes one silently."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from corpusforge.errors import ConfigError, MissingKey
from corpusforge.pii.keys import PUBLIC_DEMO, PUBLIC_DEMO_KEY, check_key

_HOW = (
    "make one with `corpusforge key new` and put the line that it prints under `scrub:` in params.yaml "
    '(in Python: key="file:PATH"), '
    "or set `scrub.key: public-demo` for data that is public anyway"
)


def load_key(config: str, root: Path) -> bytes:
    """The key that `config` names: `env:NAME`, `file:PATH` (relative to `root`, `~` allowed), or `public-demo`.

    Raises MissingKey when it is absent or too short; ConfigError for another form, or a file inside the project, where
    git and dvc can take it up (only `.corpusforge/`, which ignores itself, is allowed).
    """
    if config == PUBLIC_DEMO:
        return PUBLIC_DEMO_KEY
    kind, _, name = config.partition(":")
    if kind == "env" and name:
        value = os.environ.get(name, "")
        if not value.strip():
            raise MissingKey(f"the scrubbing key is not set: environment variable {name} is empty or absent", hint=_HOW)
        return check_key(os.fsencode(value.strip()), f"environment variable {name}")
    if kind == "file" and name:
        try:
            return _from_file(Path(name).expanduser(), root)
        except (RuntimeError, ValueError) as error:  # no such user, or a zero byte
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"option 'key': {name!r} is not a path", hint="see docs/stages/scrub.md") from None
    raise ConfigError(
        "option 'key': expected env:NAME, file:PATH or public-demo", hint="see docs/stages/scrub.md, section keys"
    )


def new_key(path: Path) -> Path:
    """Write 32 random bytes as hex to `path`, readable by its owner only. Refuses to overwrite a key."""
    path = path.expanduser()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(
            f"{path} exists, and a key is never overwritten",
            hint="remove it yourself if nothing depends on it any more",
        ) from None
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return path


def _from_file(path: Path, root: Path) -> bytes:
    path = (path if path.is_absolute() else root / path).resolve()
    inside = path.relative_to(root.resolve()).parts if path.is_relative_to(root.resolve()) else ()
    if inside and inside[0] != ".corpusforge":
        raise ConfigError(
            f"the scrubbing key {path} lies inside the project, where git and dvc can take it up",
            hint="move it out of the project, for instance to ~/.config/corpusforge/key",
        )
    try:
        data = path.read_bytes().strip()
    except FileNotFoundError:
        raise MissingKey(f"the scrubbing key is not there: no file {path}", hint=_HOW) from None
    except OSError as error:
        raise MissingKey(f"the scrubbing key in {path} cannot be read: {error.strerror}", hint=_HOW) from None
    return check_key(data, str(path))
