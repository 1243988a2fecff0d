"""Where the key comes from, and that none is made silently."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from corpusforge.errors import ConfigError, MissingKey
from corpusforge.io.keys import load_key, new_key
from corpusforge.pii.keys import PUBLIC_DEMO_KEY


def test_a_new_key_is_private_loads_and_is_never_overwritten(tmp_path):
    path = new_key(tmp_path / "home" / "key")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = load_key(f"file:{path}", tmp_path / "project")
    assert len(key) == 64
    with pytest.raises(ConfigError, match="never overwritten"):
        new_key(path)
    assert load_key(f"file:{path}", tmp_path / "project") == key


def test_the_environment_gives_a_key(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_KEY", "0123456789abcdef\n")
    assert load_key("env:SOME_KEY", tmp_path) == b"0123456789abcdef"


@pytest.mark.parametrize("config", ["env:CORPUSFORGE_NO_SUCH_KEY", "file:/nowhere/key"])
def test_an_absent_key_says_how_to_make_one(config, tmp_path):
    with pytest.raises(MissingKey, match="corpusforge key new"):
        load_key(config, tmp_path)


def test_a_short_key_is_refused_without_being_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_KEY", "tiny-s3cret")
    with pytest.raises(MissingKey, match="11 bytes") as error:
        load_key("env:SOME_KEY", tmp_path)
    assert "tiny" not in str(error.value)


def test_a_key_inside_the_project_is_refused(tmp_path):
    new_key(tmp_path / "key")
    with pytest.raises(ConfigError, match="inside the project"):
        load_key("file:key", tmp_path)


def test_the_public_key_is_asked_for_by_name(tmp_path):
    assert load_key("public-demo", tmp_path) == PUBLIC_DEMO_KEY
    with pytest.raises(ConfigError, match="public-demo"):
        load_key("0123456789abcdef", tmp_path)


@pytest.mark.parametrize("name", ["file:~no-such-user/key", "file:a\0b"])
def test_what_is_no_path_is_a_config_error(name, tmp_path):
    with pytest.raises(ConfigError, match="is not a path"):
        load_key(name, tmp_path)


def test_a_key_in_the_environment_may_be_any_bytes(monkeypatch):
    """Bytes that are no UTF-8 once ended with an error that showed them."""
    monkeypatch.setenv("CORPUSFORGE_TEST_KEY", os.fsdecode(b"\xff\xfe" * 10))
    assert load_key("env:CORPUSFORGE_TEST_KEY", Path()) == b"\xff\xfe" * 10


def test_a_key_in_a_file_may_be_any_bytes_and_end_with_a_line_end(tmp_path):
    (tmp_path / "key").write_bytes(b"\xff\xfe" * 10 + b"\r\n")
    assert load_key(f"file:{tmp_path / 'key'}", tmp_path / "project") == b"\xff\xfe" * 10


@pytest.mark.parametrize("content", [None, b"", b"\n \n", b"short"])
def test_an_absent_an_empty_and_a_short_key_are_told_by_their_file(tmp_path, content):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(MissingKey, match=str(tmp_path / "key")) as error:
        load_key(f"file:{tmp_path / 'key'}", tmp_path / "project")
    assert "short" not in str(error.value)


def test_a_folder_in_place_of_a_key_is_told(tmp_path):
    with pytest.raises(MissingKey, match="cannot be read: Is a directory"):
        load_key(f"file:{tmp_path}", tmp_path / "project")
