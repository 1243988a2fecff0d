"""Our kernels run fastText's language model as fastText does: the library itself is the oracle."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.text import langmodel, language

SAID = (
    "the of and to in is that für nicht und der die dans les des être pour que los está niño być się nie это что как "
    "на και το είναι في من على هذا और है में これは です 日本語 今天 学习 没有 한국어 문장 не так чтобы hvad er det ikke"
)
COMMON = SAID.split()
WORDS = st.lists(
    st.sampled_from(COMMON) | st.text(st.characters(codec="utf-8", exclude_categories=["Zs"]), min_size=1, max_size=9),
    max_size=25,
).map(" ".join)


def by_library(texts):
    labels = language._library().f.multilinePredict([text + "\n" for text in texts], 1, 0.5, "strict")
    return [label[0].removeprefix("__label__") if label else None for label in labels]


@pytest.fixture(scope="module")
def model():
    return langmodel.read(language._file().read_bytes())


@given(st.lists(WORDS.map(lambda text: text.replace("\n", " ")), max_size=4))
@example(
    ["", " ", "</s> the of and", "and </s> der die", "__label__en", "__label__xx das und", "a\0b", "\x1f", "\u3000"]
)
@example(["__label__ de la", "__labe__ de la", "😀", "\ud7ff\ue000 the"])
def test_it_is_what_fasttext_says(model, texts):
    assert langmodel.predict(model, texts, 0.5) == by_library(texts)


def test_also_of_many_texts(model):
    draw = random.Random(3)
    texts = [
        " ".join(draw.choices(COMMON[at : at + 12], k=draw.randrange(1, 30))) for at in range(40) for _ in range(25)
    ]
    found = langmodel.predict(model, texts, 0.5)
    assert found == by_library(texts)
    assert len(set(found)) > 10


def test_detection_is_the_same_either_way(monkeypatch):
    texts = [" ".join(COMMON[at : at + 12]) for at in range(40)]
    by_kernels = language.detect(texts)
    monkeypatch.setattr(language, "_kernels", lambda: None)
    assert language.detect(texts) == by_kernels
    assert len(set(by_kernels)) > 5


@pytest.mark.parametrize("at", [0, 8, 8 + 4 * 5])
def test_another_form_of_model_is_not_read(at):
    data = bytearray(language._file().read_bytes())
    data[at] ^= 1
    with pytest.raises(ValueError, match="form"):
        langmodel.read(bytes(data))
