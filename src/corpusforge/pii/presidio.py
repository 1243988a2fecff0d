"""Presidio's recognisers without Presidio's engine: no spaCy, no torch, no network.

Importing `presidio_analyzer` loads spaCy and, where they are installed, transformers and torch: seconds of start-up in
every worker, for recognisers that are regular expressions and checksums. So its leaf modules are imported beneath
empty packages of the same names, which are taken away again afterwards: a later `import presidio_analyzer` is the
real one and finds the same classes. Should the layout change, the ordinary import is used.

The e-mail recogniser validates domains with tldextract, which by default fetches the public suffix list. Here it uses
the list that tldextract ships, and nothing is fetched or cached. Presidio logs the values that it fails to validate;
those loggers are muted, and a pattern that ran out of time raises instead of being skipped. Patterns and checks are
asked without the explanation that Presidio writes for each match, and a card's digits are summed up without a list for
each of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType

ROOT: Final = "presidio_analyzer"
TIMEOUT_SECONDS: Final = 10
REGEX_FLAGS: Final = 26  # DOTALL, MULTILINE, IGNORECASE: what Presidio's registry gives to every recogniser

_LEAVES: Final = (
    ("analysis_explanation", "AnalysisExplanation"),
    ("recognizer_result", "RecognizerResult"),
    ("entity_recognizer", "EntityRecognizer"),
    ("local_recognizer", "LocalRecognizer"),
    ("pattern", "Pattern"),
    ("pattern_recognizer", "PatternRecognizer"),
)
_GENERIC: Final = "predefined_recognizers.generic"
_US: Final = "predefined_recognizers.country_specific.us"
_UK: Final = "predefined_recognizers.country_specific.uk"
_PACKAGES: Final = (
    "nlp_engine",
    "predefined_recognizers",
    _GENERIC,
    "predefined_recognizers.country_specific",
    _US,
    _UK,
)
MODULES: Final = {
    "EmailRecognizer": f"{_GENERIC}.email_recognizer",
    "PhoneRecognizer": f"{_GENERIC}.phone_recognizer",
    "CreditCardRecognizer": f"{_GENERIC}.credit_card_recognizer",
    "IbanRecognizer": f"{_GENERIC}.iban_recognizer",
    "IpRecognizer": f"{_GENERIC}.ip_recognizer",
    "MacAddressRecognizer": f"{_GENERIC}.mac_recognizer",
    "CryptoRecognizer": f"{_GENERIC}.crypto_recognizer",
    "UsSsnRecognizer": f"{_US}.us_ssn_recognizer",
    "UsItinRecognizer": f"{_US}.us_itin_recognizer",
    "NhsRecognizer": f"{_UK}.uk_nhs_recognizer",
}

_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # sum of the digits of twice the digit
# Those that leave the search to PatternRecognizer.
_PLAIN: Final = frozenset(MODULES) - {"PhoneRecognizer", "IbanRecognizer"}

_lock = threading.Lock()


class PatternTimeout(Exception):
    """A regular expression ran longer than TIMEOUT_SECONDS; the row cannot be called clean."""


class _Mute(logging.Filter):
    """Lets nothing through."""

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return False


class _Ear(logging.LoggerAdapter):  # type: ignore[type-arg]
    """In place of a module's logger: hears that a pattern timed out, whatever level is logged and if none is."""

    seen = threading.local()

    def warning(self, msg: object, *args: object, **more: Any) -> None:
        del args, more  # they may hold a text
        if "timed out" in str(msg):
            self.seen.timeout = True

    @classmethod
    def take(cls) -> bool:
        timed_out = getattr(cls.seen, "timeout", False)
        cls.seen.timeout = False
        return timed_out


_mute = _Mute()


@cache
def recogniser(name: str) -> Any:
    """One shared instance of the Presidio recogniser called `name` (a key of MODULES), with Presidio's defaults."""
    with _lock:
        for logger in (f"{ROOT.replace('_', '-')}", "tldextract"):
            if _mute not in logging.getLogger(logger).filters:
                logging.getLogger(logger).addFilter(_mute)
        made = getattr(_module(MODULES[name]), name)()
        if name == "IbanRecognizer":
            made.global_regex_flags = REGEX_FLAGS
        for path in (f"{ROOT}.pattern_recognizer", type(made).__module__):
            _listen(importlib.import_module(path))
    if name == "EmailRecognizer":
        made.validate_result = _offline_domain_check()
    if name == "CreditCardRecognizer":
        made.validate_result = _luhn_check
    return made


def _listen(module: ModuleType) -> None:
    """Have the patterns of a module time out, and hear of it."""
    given = vars(module)
    if "REGEX_TIMEOUT_SECONDS" in given:
        given["REGEX_TIMEOUT_SECONDS"] = TIMEOUT_SECONDS
    if "logger" in given and not isinstance(given["logger"], _Ear):
        given["logger"] = _Ear(given["logger"], {})


def analyse(name: str, entity: str, text: str) -> list[tuple[int, int, float]]:
    """Start, end and score of what Presidio's recogniser `name` finds in `text`. Raises PatternTimeout."""
    made = recogniser(name)
    # Presidio compiles a pattern when it is first asked.
    if name in _PLAIN and all(one.compiled_with_flags == made.global_regex_flags for one in made.patterns):
        return _distinct(_matches(made, name, text))
    results = made.analyze(text, [entity], None)
    if _Ear.take():
        raise PatternTimeout(name)
    return [(result.start, result.end, float(result.score)) for result in results]


def _matches(made: Any, name: str, text: str) -> list[tuple[int, int, float]]:
    """What PatternRecognizer does before it removes duplicates, without an explanation of every match."""
    found = []
    for pattern in made.patterns:
        try:
            for match in pattern.compiled_regex.finditer(text, timeout=TIMEOUT_SECONDS):
                value = match.group()
                valid = made.validate_result(value) if value else False
                score = pattern.score if valid is None else float(valid)
                if score > 0 and not made.invalidate_result(value):
                    found.append((match.start(), match.end(), float(score)))
        except TimeoutError:
            raise PatternTimeout(name) from None
    return found


def _distinct(found: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """As EntityRecognizer.remove_duplicates: without what another one contains whose score is no lower; best first."""
    if len(found) < 2:
        return found
    kept: list[tuple[int, int, float]] = []
    active: list[tuple[int, int, float]] = []  # those of `kept` that reach as far as the one in question
    for one in sorted(found, key=lambda one: (one[0], -one[1], -one[2])):
        active = [other for other in active if other[1] >= one[0]]
        if not any(one[1] <= high and one[2] <= score for _, high, score in active):
            kept.append(one)
            active.append(one)
    return sorted(kept, key=lambda one: (-one[2], one[0], -one[1]))


def _luhn_check(text: str) -> bool:
    """As CreditCardRecognizer.validate_result."""
    digits = [int(character) for character in text if character not in "- "]
    return (sum(digits[-1::-2]) + sum(map(_DOUBLED.__getitem__, digits[-2::-2]))) % 10 == 0


def _offline_domain_check() -> Any:
    import tldextract

    extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True)
    return lambda text: extract(text).fqdn != ""


def _module(path: str) -> ModuleType:
    full = f"{ROOT}.{path}"
    if full in sys.modules:
        return sys.modules[full]
    if ROOT in sys.modules:
        return importlib.import_module(full)
    added: list[str] = []
    try:
        return _light_import(full, added)
    except (ImportError, AttributeError):
        for name in added:
            sys.modules.pop(name, None)
        added.clear()
        return importlib.import_module(full)
    finally:
        for name in added:
            sys.modules.pop(name, None)


def _light_import(full: str, added: list[str]) -> ModuleType:
    """Import one leaf module beneath empty packages; their names are put into `added`."""
    root = _hollow(ROOT, added)
    for leaf, name in _LEAVES:
        setattr(root, name, getattr(importlib.import_module(f"{ROOT}.{leaf}"), name))
    for package in _PACKAGES:
        hollow = _hollow(f"{ROOT}.{package}", added)
        if package == "nlp_engine":
            hollow.NlpArtifacts = object  # type: ignore[attr-defined]  # only named in annotations
    return importlib.import_module(full)


def _hollow(name: str, added: list[str]) -> ModuleType:
    """A package that knows where its modules lie but has not run its own code."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    added.append(name)
    return module
