"""Invented words and names for stand-ins: pronounceable, and meant to belong to nobody.

The lists are closed, so that a second pass knows a name of ours when the named-entity model finds it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"

GIVEN: Final = (
    "Arvela",
    "Belthan",
    "Corvina",
    "Dastrin",
    "Elmira",
    "Fenvol",
    "Galdira",
    "Hestor",
    "Ilvana",
    "Jorvik",
    "Kelmina",
    "Lorvan",
    "Maristel",
    "Nerovik",
    "Orlisa",
    "Pelthor",
    "Quenvia",
    "Rostavin",
    "Selmira",
    "Torvald",
    "Ulmera",
    "Vandric",
    "Welmina",
    "Xandrel",
    "Yorvina",
    "Zelthan",
    "Alvenor",
    "Brisella",
    "Cerdano",
    "Delvira",
    "Ervando",
    "Felmora",
)
FAMILY: Final = (
    "Ashvorne",
    "Beltrask",
    "Corvendal",
    "Drumvale",
    "Eskelworth",
    "Fallowmere",
    "Grenstad",
    "Holvander",
    "Ironsby",
    "Jaskelund",
    "Kelverton",
    "Lindovar",
    "Marrowick",
    "Northvane",
    "Ostrovell",
    "Pellandor",
    "Quillhaven",
    "Ravensby",
    "Stelmark",
    "Thornvale",
    "Umbervale",
    "Vexholme",
    "Wrenstad",
    "Yarrowby",
    "Zelmark",
    "Aldermoor",
    "Brackenvold",
    "Copperfen",
    "Dunmarch",
    "Elderholt",
    "Fernsby",
    "Galloworth",
)
PLACES: Final = (
    "Aldervale",
    "Brinmoor",
    "Cresthollow",
    "Dunmere",
    "Eastvorne",
    "Fenholm",
    "Greywater",
    "Harrowby",
    "Ivershall",
    "Junipermere",
    "Kestrelford",
    "Larkhollow",
    "Mossgate",
    "Nettlebrook",
    "Oakvorne",
    "Pinemarsh",
    "Quarrybank",
    "Rookhaven",
    "Silverfen",
    "Thistledown",
    "Underhollow",
    "Velmore",
    "Willowfen",
    "Yewbarrow",
)
COMPANIES: Final = (
    "Arvotek",
    "Brelmont",
    "Corvidyne",
    "Delmaris",
    "Elvoran",
    "Fennimark",
    "Galvotech",
    "Heltrona",
    "Ixoworks",
    "Jorvalis",
    "Kelmetrix",
    "Lumivora",
    "Morvantis",
    "Novelmar",
    "Orbivane",
    "Pelvatron",
    "Quorvex",
    "Relmark",
    "Solvantia",
    "Telvoris",
    "Umbratek",
    "Velmatrix",
    "Worvona",
    "Zelvantic",
)
# Words for streets in English addresses; they stay as they are in a stand-in.
STREET_TYPES: Final = (
    *("Street", "Avenue", "Road", "Lane", "Drive", "Court", "Boulevard", "Way", "Place", "Square", "Terrace", "Circle"),
    *("Parkway", "Highway", "Trail", "Crescent", "Close", "Alley", "Mews", "Gardens", "Grove", "Plaza", "Loop", "Row"),
    *("St", "Ave", "Rd", "Ln", "Dr", "Ct", "Blvd", "Pl", "Sq", "Ter", "Cir", "Pkwy", "Hwy", "Trl", "Cres"),
)
ALL: Final = frozenset((*GIVEN, *FAMILY, *PLACES, *COMPANIES))


def word(below: Callable[[int], int], length: int) -> str:
    """A pronounceable lower-case word of 2 to 10 letters, near `length`."""
    size = min(max(length, 2), 10)
    return "".join((_CONSONANTS, _VOWELS)[i % 2][below(14 if i % 2 == 0 else 5)] for i in range(size))


def letter(below: Callable[[int], int], like: str) -> str:
    """A letter in the case of `like`."""
    made = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[below(26)]
    return made if like.isupper() else made.lower()


def is_invented(name: str) -> bool:
    """Whether every capitalised word of `name` is one of ours."""
    words = [part.strip(".,;:!?'\"()").removesuffix("'s").removesuffix("’s") for part in name.split()]
    words = [part for part in words if part[:1].isupper()]
    return any(part in ALL for part in words) and all(part in ALL or part in STREET_TYPES for part in words)
