"""Tokenizers come from files, and say what is wrong when they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tokenizers import Tokenizer, models

from corpusforge.errors import SourceError
from corpusforge.io.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_or_a_file(tmp_path: Path) -> None:
    """The file and the folder that holds it give the same tokenizer, without truncation."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.enable_truncation(1)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for counter in (".", "tokenizer.json"):
        loaded = load_tokenizer(counter, tmp_path)
        assert loaded is not None
        assert loaded.truncation is None
        assert loaded.get_vocab_size() == 2


def test_characters_need_no_tokenizer(tmp_path: Path) -> None:
    """`chars/4` loads nothing."""
    assert load_tokenizer("chars/4", tmp_path) is None


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """A file that is no tokenizer is a SourceError that names it."""
    (tmp_path / "t.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SourceError, match=r"t\.json.*is not a tokenizer"):
        load_tokenizer("t.json", tmp_path)
