"""What Presidio's phone recogniser finds, with less work: the same spans from the same library.

PhoneRecognizer searches a text once for each of its regions, and parses every run of digits each time. phonenumbers
looks for a candidate (digits with few separators between them), tries it as a whole, then its parts, and goes on
behind what it found. Here a candidate is looked for once; a region that takes all of it settles it for the others,
because what they could find lies inside and Presidio drops what lies inside; and candidates without seven digits in a
row of separators are passed over. That is exact where a candidate ends at something that no number can go across, which
all do but those of more than twenty groups or digits, or with an extension: these are tried by every region.

    ring (212) 456-7890 or 12 34   ->   [(5, 19, 0.4)]
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from phonenumbers import PhoneMetadata
from phonenumbers import phonenumbermatcher as _library
from phonenumbers.phonenumberutil import _SECOND_NUMBER_START_PATTERN as _SECOND

from corpusforge.pii.presidio import PatternTimeout, recogniser

if TYPE_CHECKING:
    from collections.abc import Callable

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
            kept.append((start, end, search.score))
        reach = max(reach, end)
    return kept


class _Matcher(_library.PhoneNumberMatcher):
    """phonenumbers' matcher, which does not parse what is too short to be a number of its region or of any other."""

    def __init__(self, text: str, region: str, leniency: int) -> None:
        super().__init__(text, region, leniency)
        self._fewest = _fewest(region)

    def _parse_and_verify(self, candidate: str, offset: int) -> Any:
        digits = sum(map(str.isdecimal, candidate))
        if digits < _ABROAD or (digits < self._fewest and not _PLUS.match(candidate)):
            return None
        return super()._parse_and_verify(candidate, offset)


@cache
def _fewest(region: str) -> int:
    """Digits of the shortest valid number, dialled at home or from there to another country."""
    metadata: Any = PhoneMetadata.metadata_for_region(region)
    return int(min(2 + _ABROAD, *metadata.general_desc.possible_length))


class _Search:
    """Numbers found in one text so far, and what is left to try."""

    def __init__(self, text: str, wanted: Callable[[int, int], bool]) -> None:
        self.score = float(recogniser("PhoneRecognizer").SCORE)
        self.found: set[tuple[int, int]] = set()
        self._text, self._tries = text, TRIES
        self._wanted = cache(wanted)
        self._candidate = cache(self._next_candidate)

    @cached_property
    def _regions(self) -> list[Any]:
        """One matcher for each region that Presidio searches for, made when the first candidate asks for them."""
        presidio = recogniser("PhoneRecognizer")
        return [_Matcher(self._text, region, presidio.leniency) for region in presidio.supported_regions]

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
        if _library._SLASH_SEPARATED_DATES.search(self._text, start, end):
            return  # what `_extract_match` answers first, whatever the region
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
