"""English words that are written like names and are none, and the case of texts that have none.

In a text without any capital letter, capitals tell nothing: there every word may be a name but for function words.
"""

from __future__ import annotations

import re
from typing import Final

# Words that are capitalised at the start of a sentence, or everywhere, and are nobody's name.
FUNCTION_WORDS: Final = frozenset(
    """
    a about above after again all also although always am an and another any anyone are as at be because been before
    being below both but by can could did do does doing during each either else every everyone few finally first for
    from further had has have he hence her here hers him his how however i i'd i'll i'm i've if in instead into is it
    it's its just last let let's like many may maybe me might mine more most much must my neither never next no nor not
    now of off often ok okay on once one only or other our out over per perhaps please same second she should since so
    some someone soon still such sure than thank thanks that that's the their them then there there's therefore these
    they they're third this those though three through thus to today together tomorrow too total two under unless until
    up upon us usually very was we we're we've well were what what's when where whether which while who whose why will
    with within without would write yes yesterday yet you you'll you're your yours
    answer question note name address date phone email step total example output input find given calculate number
    january february march april june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday english god sorry hi hello hey dear sir madam mom dad mum bot user assistant human
    """.split()  # noqa: SIM905
)
# Abbreviations, and words of programs and maths, that the model takes for organisations and people.
TERMS: Final = frozenset(
    """
    AI API ATM CC CEO CFO CTO CV CVC CVV DNS DOB FAQ GPS HR HTML HTTP IBAN ID IP IQ IT JSON MAC OK PC PDF PIN PO Q SMS
    SQL SSN TV URL USB VAT WIFI WI-FI ZIP AM PM BC AD DIY ETA FYI ASAP RSVP PS P.S PPS P.P.S
    ASCII CSV XML RGB XOR GCD LCM BMI USD EUR GBP TRUE FALSE TRUE/FALSE NONE NULL INTEGER STRING BOOLEAN JAVA JAVASCRIPT
    PYTHON MARKDOWN JDBC KEYERROR VALUEERROR TYPEERROR FIBONACCI
    """.split()  # noqa: SIM905
)

_WORD: Final = re.compile(r"(?<![\w'’@])[a-z](?:[a-z'’]*[a-z])?(?![\w@])")


def capitalised(text: str) -> str:
    """The text with a capital at the start of every word but function words; as long as before."""
    return _WORD.sub(lambda m: m.group() if m.group() in FUNCTION_WORDS else m.group()[0].upper() + m.group()[1:], text)
