"""What libraries raise is told in their own words, unless a row may be in them."""

from __future__ import annotations

import errno
import json

import pytest

from corpusforge.errors import ConfigError, CorpusForgeError, MissingExtra, TrainingError
from corpusforge.train._faults import explained

SECRET = "the text of a row"


def library(name, function, error):
    """A function called `function` of a module called `name` that raises `error`."""
    space = {"__name__": name, "error": error}
    exec(f"def {function}():\n    raise error", space)
    return space[function]


def told(raises, tmp_path):
    with pytest.raises(CorpusForgeError) as caught, explained("train_sft", tmp_path):
        raises()
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError("needs wandb"), ConfigError), (ValueError("no"), ConfigError), (ImportError("x"), MissingExtra)],
)
def test_an_option_that_is_refused_before_rows_are_seen_is_told_in_the_librarys_words(error, kind, tmp_path):
    found = told(library("trl.trainer", "__init__", error), tmp_path)
    assert type(found) is kind
    assert str(error) in found.message


@pytest.mark.parametrize(
    ("module", "function"),
    [("datasets.arrow_dataset", "map"), ("trl.trainer", "training_step"), ("torch.utils.data", "__next__")],
)
def test_no_message_of_what_has_rows_in_its_hands_is_told(module, function, tmp_path):
    found = told(library(module, function, ValueError(SECRET)), tmp_path)
    assert type(found) is TrainingError
    assert SECRET not in str(found)
    assert f"ValueError in {module}, line 2" in found.message


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "full"),
        RuntimeError("PytorchStreamWriter failed writing"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 3072 vs 2964"),
        OSError("Not enough disk space. Needed: 4 MB"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_told_by_every_name_it_has(error, tmp_path):
    assert "the disk is full" in told(library("torch", "save", error), tmp_path).message


def test_a_fault_of_our_own_is_not_told_as_one_of_the_options(tmp_path):
    with pytest.raises(ZeroDivisionError), explained("train_sft", tmp_path):
        library("corpusforge.verify.reward", "reward", ZeroDivisionError())()


def test_errors_of_the_family_and_interrupts_go_through(tmp_path):
    for error in (ConfigError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)), explained("train_sft", tmp_path):
            raise error


def test_the_whole_traceback_is_there_for_whoever_asks(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUSFORGE_DEBUG", "1")
    with pytest.raises(json.JSONDecodeError), explained("train_sft", tmp_path):
        json.loads("{")
