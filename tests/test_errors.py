"""The error family: every member is documented, has an exit code, and survives the way between processes."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.errors import CorpusForgeError


def family(kind: type[CorpusForgeError] = CorpusForgeError) -> list[type[CorpusForgeError]]:
    """The class and everything below it."""
    return [kind, *(found for child in kind.__subclasses__() for found in family(child))]


ROOT = Path(__file__).resolve().parent.parent
FAMILY = family()
MEMBERS = FAMILY[1:]


@pytest.mark.parametrize("kind", FAMILY)
def test_pickle_keeps_type_message_and_hint(kind):
    error = pickle.loads(pickle.dumps(kind("found 3, expected 4", hint="run this")))
    assert (type(error), error.message, error.hint) == (kind, "found 3, expected 4", "run this")


@pytest.mark.parametrize("kind", FAMILY)
def test_text_is_message_then_hint(kind):
    """Also where the built-in beside it (KeyError, OSError) would print something else."""
    assert str(kind("found 3, expected 4", hint="run this")) == "found 3, expected 4\n  run this"
    assert str(kind("found 3")) == "found 3"


@pytest.mark.parametrize("kind", MEMBERS)
def test_inherits_the_builtin_it_replaces(kind):
    builtin = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    assert set(builtin) - {Exception, BaseException, object}


@pytest.mark.parametrize("kind", MEMBERS)
def test_exit_code_is_one_of_the_documented(kind):
    assert kind.exit_code in {1, 3, 4}


def test_only_a_gate_says_no():
    assert [kind for kind in MEMBERS if kind.exit_code == 1] == [errors.GateError]


def test_codes_are_unique():
    codes = [kind.code for kind in FAMILY]
    assert len(set(codes)) == len(codes)


def test_every_code_has_its_anchor_in_the_docs_and_no_anchor_is_left_over():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## `([a-z-]+)`$", page, re.MULTILINE)) == {kind.code for kind in MEMBERS}


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_docs_state_class_and_exit_code(kind):
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    section = page.split(f"## `{kind.code}`\n", 1)[1].split("\n## ", 1)[0]
    assert f"`{kind.__name__}`" in section
    assert f"exit code {kind.exit_code}" in section


def test_the_tree_in_the_module_names_every_member():
    assert all(kind.__name__ in (errors.__doc__ or "") for kind in FAMILY)
