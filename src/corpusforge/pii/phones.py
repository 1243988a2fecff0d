"""What Presidio's phone recogniser finds, with less work: the same spans from the same library.

PhoneRecognizer searches a text once for each of its regions, and parses every run of digits each time. phonenumbers
looks for a candidate (digits with few separators between them), tries it as a whole, then its parts, and goes on
behind what it found. Here a candidate is looked for once; a region that takes all of it settles it for the others,
because what they could find lies inside and Presidio drops what lies inside; and candidates without seven digits in a
row of separators are passed over. That is exact where a candidate ends at something that no number can go across, which
all do but those of more than twenty groups or digits, or with an extension: these are tried by every region. Nor is
anything parsed that no stripping of prefixes would make a number of the region's country.

    ring (212) 456-7890 or 12 34   ->   [(5, 19, 0.4)]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata
from phonenumbers import phonenumbermatcher as _library
from phonenumbers.phonenumberutil import _SECOND_NUMBER_START_PATTERN as _SECOND
from phonenumbers.phonenumberutil import _UNWANTED_END_CHAR_PATTERN as _UNWANTED_END
from phonenumbers.phonenumberutil import _extract_country_code

from corpusforge.pii.presidio import PatternTimeout, recogniser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Found = tuple[int, int, float]

# What phonenumbers lets stand between two digits, as a class that Polars and Python read (see recognisers._python).
SEPARATORS: Final = (
    r"\-x\x{2010}-\x{2015}\x{2212}\x{30fc}\x{ff0d}-\x{ff0f} \x{a0}\x{ad}\x{200b}\x{2060}\x{3000}()\x{ff08}\x{ff09}"
    r"\x{ff3b}\x{ff3d}.\[\]/~\x{2053}\x{223c}\x{ff5e}"
)
SEVEN_DIGITS: Final = r"\d(?:[" + SEPARATORS + r"]{0,4}\d){6}"
TRIES: Final = 65_535  # per text: candidates times regions that may fail; phonenumbers gives up at as many, silently
_ABROAD: Final = 4  # digits of the shortest valid number of any country, its code included
_PLUS: Final = re.compile("\\D*[+\uff0b]")
_BARE: Final = re.compile(r"[0-9 ().\-/\[\]]*")  # nothing to go by but digits: no plus, no extension
_FEW: Final = 4  # regions with the same country code, whose kinds of numbers are looked at one by one
_KINDS: Final = (
    *("premium_rate", "toll_free", "shared_cost", "voip", "personal_number"),
    *("pager", "uan", "voicemail", "fixed_line", "mobile"),
)
_SIMPLE: Final = 17  # digits; a candidate with so few reaches none of phonenumbers' limits


def python(pattern: str) -> re.Pattern[str]:
    r"""A pattern written for Rust, with `\x{…}` for characters, as Python compiles it."""
    return re.compile(re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: re.escape(chr(int(m.group(1), 16))), pattern))


_SEVEN: Final = python(SEVEN_DIGITS)
_PLAIN: Final = python(r"[\d+\x{ff0b}" + SEPARATORS + "]*")


def find(text: str, wanted: Callable[[int, int], bool] = lambda _low, _high: True) -> list[Found]:
    """Start, end and score of each number with at least seven digits, as PhoneRecognizer finds them.

    `wanted` is asked for each candidate: whether a number between these positions would be of use. Raises
    PatternTimeout for a text with too many candidates that fail.
    """
    search = _Search(text, wanted)
    done = 0
    for match in _SEVEN.finditer(text):
        if match.end() > done:
            stop = text.find("\n", match.end())
            low, done = max(text.rfind("\n", 0, match.start()) + 1, done), stop if stop >= 0 else len(text)
            search.line(low, done)
    kept, reach = [], -1
    for start, end in sorted(search.found, key=lambda span: (span[0], -span[1])):
        if end > reach and _SEVEN.search(text, start, end):
            kept.append((start, end, float(recogniser("PhoneRecognizer").SCORE)))
        reach = max(reach, end)
    return kept


class _Matcher(_library.PhoneNumberMatcher):
    """phonenumbers' matcher, which does not parse what can be no number of its region nor of any other.

    `known` and `parts` are shared by the matchers of a text: a number with a country code is the same for all of them.
    """

    def __init__(self, text: str, region: str, leniency: int, known: dict[Any, Any], parts: dict[Any, Any]) -> None:
        super().__init__(text, region, leniency)
        self._name, self._region = region, _region(region)
        self._known, self._parts = known, parts

    def _parse_and_verify(self, candidate: str, offset: int) -> Any:
        key = (candidate, offset, "" if _country_code(candidate) else self._name)
        if key not in self._known:  # groups of a candidate come up again and again
            hopeless = self._region.hopeless(candidate)
            self._known[key] = None if hopeless else super()._parse_and_verify(candidate, offset)
        return self._known[key]

    def _extract_inner_match(self, candidate: str, offset: int) -> Any:
        parts = self._parts.get((candidate, offset))
        if parts is None:
            parts = self._parts[candidate, offset] = list(dict.fromkeys(self._groups(candidate, offset)))
        self._max_tries -= len(parts)
        return next(filter(None, (self._parse_and_verify(*part) for part in parts)), None)

    def _groups(self, candidate: str, offset: int) -> Iterator[tuple[str, int]]:
        """The parts of a candidate that phonenumbers tries, in its order."""
        for pattern in _library._INNER_MATCHES:
            match = pattern.search(candidate)
            if match:
                yield self._trim_after_first_match(_UNWANTED_END, candidate[: match.start()]), offset
            while match:
                yield self._trim_after_first_match(_UNWANTED_END, match.group(1)), offset + match.start(1)
                match = pattern.search(candidate, match.start() + 1)


def _country_code(candidate: str) -> int:
    """The code of a number that begins with a plus and a country's code; 0 for any other."""
    if candidate[:1] not in ("+", "\uff0b"):
        return 0
    return int(_extract_country_code("".join(filter(str.isdecimal, candidate)))[0])


@dataclass(frozen=True)
class _Region:
    """What a number must have to be valid where it is dialled: necessary conditions, from phonenumbers' own data."""

    fewest: int  # digits of the shortest number, dialled at home or from there to another country
    home: re.Pattern[str] | None  # digits that end in a number of the region's country, or begin with its way abroad

    def hopeless(self, candidate: str) -> bool:
        """Whether parsing is of no use."""
        digits = "".join(filter(str.isdecimal, candidate))
        if len(digits) < _ABROAD:
            return True
        if len(digits) < self.fewest and not _PLUS.match(candidate):
            return True
        return self.home is not None and bool(_BARE.fullmatch(candidate)) and not self.home.fullmatch(digits)


@cache
def _region(name: str) -> _Region:
    """What phonenumbers strips from a number before it looks at its form: the country's code, and twice a prefix.

    That is up to the region and to the first of its country code; whose number it is, to all of them. A rule that
    rewrites numbers (none that Presidio searches for has one but Brazil, which drops a carrier) may strip anything.
    """
    metadata: Any = PhoneMetadata.metadata_for_region(name)
    code = metadata.country_code
    family: list[Any] = [PhoneMetadata.metadata_for_region(one) for one in COUNTRY_CODE_TO_REGION_CODE[code]]
    strippers = [one for one in (metadata, family[0]) if one.national_prefix_for_parsing]
    prefixes = dict.fromkeys(one.national_prefix_for_parsing for one in strippers)
    fewest = int(min(2 + _ABROAD, *metadata.general_desc.possible_length))
    ruled = [one for one in strippers if one.national_prefix_transform_rule]
    if not all(map(_only_strips, ruled)):
        return _Region(fewest, None)
    prefix = r"\d*?" if ruled else rf"(?:{code})?(?:{'|'.join(prefixes) or 'x'}){{0,2}}"
    numbers = "|".join(dict.fromkeys(_valid(one) for one in family))
    return _Region(fewest, re.compile(rf"(?:{metadata.international_prefix})\d*|{prefix}(?:{numbers})"))


def _only_strips(metadata: Any) -> bool:
    """The rule keeps the last group, and nothing stands behind that."""
    prefix, rule = metadata.national_prefix_for_parsing, metadata.national_prefix_transform_rule
    return bool(rule == f"\\{re.compile(prefix).groups}" and re.search(r"\(\\d\{[\d,]+\}\)\)?\??$", prefix))


def _valid(metadata: Any) -> str:
    """The form of the country's numbers; of a country with a number plan of its own, of those that are given out."""
    general = metadata.general_desc.national_number_pattern
    if len(COUNTRY_CODE_TO_REGION_CODE[metadata.country_code]) > _FEW:
        return f"(?:{general})"
    kinds = [getattr(metadata, kind) for kind in _KINDS]
    given = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
    return f"(?=(?:{general})$)(?:{given})"


class _Search:
    """Numbers found in one text so far, and what is left to try."""

    def __init__(self, text: str, wanted: Callable[[int, int], bool]) -> None:
        self.found: set[tuple[int, int]] = set()
        self._text, self._tries = text, TRIES
        self._ask, self._answers = wanted, dict[tuple[int, int], bool]()
        self._candidates = dict[tuple[int, int], tuple[int, int] | None]()
        self._matchers: list[Any] = []

    def _wanted(self, start: int, end: int) -> bool:
        if (start, end) not in self._answers:
            self._answers[start, end] = self._ask(start, end)
        return self._answers[start, end]

    def _candidate(self, at: int, high: int) -> tuple[int, int] | None:
        if (at, high) not in self._candidates:
            self._candidates[at, high] = self._next_candidate(at, high)
        return self._candidates[at, high]

    @property
    def _regions(self) -> list[Any]:
        """One matcher for each region that Presidio searches for, made when the first candidate asks for them."""
        if not self._matchers:
            presidio = recogniser("PhoneRecognizer")
            shared: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
            self._matchers = [
                _Matcher(self._text, name, presidio.leniency, *shared) for name in presidio.supported_regions
            ]
        return self._matchers

    def line(self, low: int, high: int) -> None:
        """Everything between two line ends."""
        at = low
        while (candidate := self._candidate(at, high)) is not None:
            start, end = candidate
            text = self._text[start:end]
            if not _PLAIN.fullmatch(text) or sum(map(str.isdecimal, text)) > _SIMPLE:
                for matcher in self._regions:
                    self._alone(matcher, start, high)
                return
            if _SEVEN.search(text) and self._wanted(start, end):
                self._simple(start, end)
            at = end

    def _simple(self, start: int, end: int) -> None:
        """A region that takes all of the candidate settles it, so each is asked for all before any looks at parts."""
        text = self._text[start:end]
        if _library._SLASH_SEPARATED_DATES.search(text):
            return  # what `_extract_match` answers first, whatever the region
        if not _library._TIME_STAMPS.search(text) and any(one._parse_and_verify(text, start) for one in self._regions):
            self.found.add((start, end))
            return
        for matcher in self._regions:
            span = self._extract(matcher, start, end)
            if span == (start, end):
                return
            if span:
                self._alone(matcher, span[1], end)

    def _alone(self, matcher: Any, at: int, high: int) -> None:
        """One region's own search for candidates that start before `high`."""
        while (candidate := self._candidate(at, high)) is not None:
            span = self._extract(matcher, *candidate) if self._wanted(*candidate) else None
            at = span[1] if span else candidate[1]

    def _next_candidate(self, at: int, high: int) -> tuple[int, int] | None:
        match = _library._PATTERN.search(self._text, at)
        if match is None or match.start() >= high:
            return None
        start, end = match.span()
        second = _SECOND.search(self._text, start, end)
        return start, second.start() if second else end

    def _extract(self, matcher: Any, start: int, end: int) -> tuple[int, int] | None:
        matcher._max_tries = TRIES
        found = matcher._extract_match(self._text[start:end], start)
        if found is not None:
            self.found.add((found.start, found.end))
            return found.start, found.end
        self._tries -= 1
        if self._tries < 0:
            raise PatternTimeout("PhoneRecognizer")
        return None
