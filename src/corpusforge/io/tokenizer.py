"""Tokenizers for counting: a tokenizer.json of Hugging Face's `tokenizers`, from a file, a folder, or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from corpusforge.errors import SourceError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load_tokenizer(counter: str, root: Path) -> Tokenizer | None:
    """The tokenizer that `counter` names, without truncation and padding; None for `chars/4`.

    A path is taken relative to `root`; anything else is a name on the hub. Raises SourceError.
    """
    if counter == "chars/4":
        return None
    from tokenizers import Tokenizer

    place = root / Path(counter).expanduser()
    file = place / "tokenizer.json" if place.is_dir() else place
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(counter)
    except Exception as error:  # noqa: BLE001  (the library raises bare Exception for every fault)
        what = "is not a tokenizer.json" if file.is_file() else "is neither a file here nor a tokenizer on the hub"
        hint = "give the path of a tokenizer.json, the folder that holds it, or `chars/4`"
        raise SourceError(f"counter {counter!r} {what} ({type(error).__name__})", hint=hint) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
