"""What Presidio's phone recogniser finds, with less work: the same spans from the same library.

PhoneRecognizer searches a text once for each of its regions, and parses every run of digits each time. phonenumbers
looks for a candidate (digits with few separators between them), tries it as a whole, then its parts, and goes on
behind what it found. Here a candidate is looked for once; a region that takes all of it settles it for the others,
because what they could find lies inside and Presidio drops what lies inside; and candidates without seven digits in a
row of separators are passed over. That is exact where a candidate ends at something that no number can go across, which
all do but those of more than twenty groups or digits, or with an extension: these are tried by every region. Nor is
anything parsed that no stripping of prefixes would make a number of the region's country, or that lacks the prefix with
which such numbers are written; and what is dialled to another country is parsed once for all regions.

    ring (212) 456-7890 or 12 34   ->   [(5, 19, 0.4)]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata
from phonenumbers import phonenumbermatcher as _library
from phonenumbers.phonenumberutil import _SECOND_NUMBER_START_PATTERN as _SECOND
from phonenumbers.phonenumberutil import _UNWANTED_END_CHAR_PATTERN as _UNWANTED_END
from phonenumbers.phonenumberutil import _extract_country_code, _formatting_rule_has_first_group_only

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
# Nothing to go by but digits, and behind an x those of an extension.
_BARE: Final = re.compile(r"([0-9 ().\-/\[\]]*)(?:x[0-9]*)?")
_FEW: Final = 4  # regions with the same country code, whose numbers are looked at one by one
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


@dataclass(frozen=True)
class _Read:
    """The digits of a candidate.

    `forms` are those that phonenumbers may take for the number: all, or those before an x; none where a plus stands
    among them, or anything else than an extension.
    """

    digits: str
    forms: tuple[str, ...]
    plus: bool
    code: int  # of a number that begins with a plus and a country's code; 0 for any other


def _read(candidate: str) -> _Read:
    digits = "".join(filter(str.isdecimal, candidate))
    bare = _BARE.fullmatch(candidate)
    if bare:
        head = digits if bare.end(1) == len(candidate) else "".join(filter(str.isdecimal, bare.group(1)))
        return _Read(digits, tuple(dict.fromkeys((head, digits))), False, 0)
    code = int(_extract_country_code(digits)[0]) if candidate[:1] in ("+", "\uff0b") else 0
    return _Read(digits, (), bool(_PLUS.match(candidate)), code)


@dataclass(frozen=True)
class _Known:
    """What the matchers of a text share."""

    read: dict[str, _Read] = field(default_factory=dict)
    results: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    parts: dict[tuple[str, int], list[tuple[str, int]]] = field(default_factory=dict)


class _Matcher(_library.PhoneNumberMatcher):
    """phonenumbers' matcher, which does not parse what can be no number of its region nor of any other."""

    def __init__(self, text: str, region: str, leniency: int, known: _Known) -> None:
        super().__init__(text, region, leniency)
        self._region, self._known = _region(region), known

    def _parse_and_verify(self, candidate: str, offset: int) -> Any:
        read = self._known.read.get(candidate)
        if read is None:
            read = self._known.read[candidate] = _read(candidate)
        if self._region.hopeless(read):
            return None
        key = (candidate, offset, "+" if read.code else self._region.way_out(read) or self._region.name)
        if key not in self._known.results:  # groups of a candidate come up again and again
            self._known.results[key] = super()._parse_and_verify(candidate, offset)
        return self._known.results[key]

    def _extract_inner_match(self, candidate: str, offset: int) -> Any:
        parts = self._known.parts.get((candidate, offset))
        if parts is None:
            parts = self._known.parts[candidate, offset] = list(dict.fromkeys(self._groups(candidate, offset)))
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


@dataclass(frozen=True)
class _Region:
    """What a number must have to be valid where it is dialled: necessary conditions, from phonenumbers' own data."""

    name: str
    fewest: int  # digits of the shortest number, dialled at home or from there to another country
    abroad: re.Pattern[str]  # what begins a number that is dialled to another country
    home: re.Pattern[str] | None  # digits that end in a number of the region's country, or begin with its way abroad
    begins: re.Pattern[str]  # what may be stripped from a number's begin
    formats: re.Pattern[str] | None  # forms in writing, in phonenumbers' order; group `with…`: not without a prefix

    def hopeless(self, read: _Read) -> bool:
        """Whether parsing is of no use."""
        if len(read.digits) < _ABROAD or (len(read.digits) < self.fewest and not read.plus):
            return True
        if self.home is None or not read.forms:
            return False
        return not any(self.home.fullmatch(form) and self._may_stand(form, read.digits) for form in read.forms)

    def _may_stand(self, form: str, digits: str) -> bool:
        """Whether a number may be written so: phonenumbers asks for the prefix that its form has in writing."""
        if self.formats is None or self.begins.match(digits):
            return True
        fits = self.formats.fullmatch(form)
        return fits is None or not str(fits.lastgroup).startswith("with")

    def way_out(self, read: _Read) -> str:
        """The digits with which a number is dialled to another country, of which it alone decides; empty otherwise."""
        found = {self._way_out(form) for form in read.forms}
        return found.pop() if len(found) == 1 else ""

    def _way_out(self, form: str) -> str:
        match = self.abroad.match(form)
        # Countries' codes do not begin with 0: phonenumbers strips nothing then.
        return match.group() if match and form[match.end() : match.end() + 1].strip("0") else ""


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
    ruled = [one for one in strippers if one.national_prefix_transform_rule]
    home = None
    if all(map(_only_strips, ruled)):
        prefix = r"\d*?" if ruled else rf"(?:{code})?(?:{'|'.join(prefixes) or 'x'}){{0,2}}"
        numbers = "|".join(dict.fromkeys(_valid(one, len(family) <= _FEW) for one in family))
        home = re.compile(rf"(?:{metadata.international_prefix})\d*|{prefix}(?:{numbers})")
    return _Region(
        name,
        int(min(2 + _ABROAD, *metadata.general_desc.possible_length)),
        re.compile(metadata.international_prefix),
        home,
        re.compile("|".join((metadata.international_prefix, str(code), *prefixes))),
        _formats(family[0]),
    )


def _only_strips(metadata: Any) -> bool:
    """The rule keeps the last group, and nothing stands behind that."""
    prefix, rule = metadata.national_prefix_for_parsing, metadata.national_prefix_transform_rule
    return bool(rule == f"\\{re.compile(prefix).groups}" and re.search(r"\(\\d\{[\d,]+\}\)\)?\??$", prefix))


def _valid(metadata: Any, exact: bool) -> str:
    """The forms of the country's numbers that are given out."""
    kinds = [getattr(metadata, kind) for kind in _KINDS]
    given = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
    return f"(?=(?:{metadata.general_desc.national_number_pattern})$)(?:{given})" if exact else given


def _formats(metadata: Any) -> re.Pattern[str] | None:
    """How the country's numbers are written: the first form that fits is a number's own; None if none asks a prefix."""
    forms = []
    for number, one in enumerate(metadata.number_format):
        rule = one.national_prefix_formatting_rule
        free = not rule or one.national_prefix_optional_when_formatting or _formatting_rule_has_first_group_only(rule)
        leading = f"(?={one.leading_digits_pattern[-1]})" if one.leading_digits_pattern else ""
        forms.append(f"{leading}(?:{one.pattern})(?P<{'free' if free else 'with'}{number}>)")
    return re.compile("|".join(forms)) if any("(?P<with" in form for form in forms) else None


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
            known = _Known()
            self._matchers = [
                _Matcher(self._text, name, presidio.leniency, known) for name in presidio.supported_regions
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
        stamped = bool(_library._TIME_STAMPS.search(text))
        if not stamped and any(one._parse_and_verify(text, start) for one in self._regions):
            self.found.add((start, end))
            return
        for matcher in self._regions:
            span = self._extract(matcher, start, end, whole=stamped)
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

    def _extract(self, matcher: Any, start: int, end: int, *, whole: bool = True) -> tuple[int, int] | None:
        """A number in a candidate: `whole`, unless it is known to be none itself, or a part of it."""
        matcher._max_tries = TRIES
        extract = matcher._extract_match if whole else matcher._extract_inner_match
        found = extract(self._text[start:end], start)
        if found is not None:
            self.found.add((found.start, found.end))
            return found.start, found.end
        self._tries -= 1
        if self._tries < 0:
            raise PatternTimeout("PhoneRecognizer")
        return None
