"""Toxicity, two tiers: a word list that says what it is, and one method for a model.

The word list is the one that the package better-profanity ships (MIT), without the entries that everyday, medical,
drug, religious or identity speech needs (`EVERYDAY` below: dropping every row that says "gay", "uterus" or "stroke"
does harm and finds nothing). It finds swear words and slurs, not hate: see docs/stages/filter.md for its measured
precision and recall. English only.

    "what a f… idea"  ->  1 listed word in 4
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.text.ngrams import GramTable, Words, chunks, grams, tokenise

if TYPE_CHECKING:
    from collections.abc import Sequence

_EVERYDAY_WORDS: Final = """
    anal anus areole arian aryan asanchez auto bestial bimbo bimbos bondage boner breasts busty coon cow cowgirl
    cowgirls crap crotch cum damn deepthroat dink dinks doggin dogging dong doofus dopey drunk dummy dyke dykes
    ejaculate ejaculated ejaculates ejaculating ejaculation enlargement erect erection erotic extacy extasy
    facial fack fanny fart fat feck fingering fisted fisty flange floozy fondle foobar foreskin frigg fubar gae
    gai ganja gay gays gey gigolo glans god goddamn gonad gonads gringo guido hardon hebe hell hemp hentai
    heroin herp herpes hitler hiv hoar hoare hoer homey homoerotic hooch hookah hoor hooter hooters hore horny
    hump humped humping hussy hymen inbred incest injun jap jerk jerked junkie junky kill kinky kkk klan knob
    kock kraut kum labia lech len leper lesbians lez lmao loin loins lube lust lusting lusty mams masochist
    massa masturbate masturbating masturbation maxi menses menstruate menstruation meth molest moron muff murder
    muther nad nads naked napalm nappy nazi nazism negro niggle nimrod ninny nipple nipples nob nooky nude nudes
    omg opiate opium oral orally organ orgasm orgasmic orgasms orgies orgy ovary ovum ovums paddy pantie panties
    panty pastie pasty pawn pcp pecker pedo pedophile pedophilia pedophiliac pee penetrate penetration penial
    penile penis perversion peyote phalli phallic phuk pimp pinko piss pissed playboy pms pollock poon poop porn
    porno pornography pot potty prick pricks prig pron prostitute prude pubic pubis punky puss puto queer queers
    quicky racy rape raped raper raping rapist rectal rectum rectus reefer reich revue rimjaw rimming rum rump
    ruski sadism sadist sandbar scantily schizo screw screwed screwing scrotum scrud scum seaman seamen seduce
    semen sex sexual shag shibari shota sissy slave sleaze sleazy slope smut smutty snatch sniper snuff sodom
    souse soused spac sperm spunk steamy stoned strip stroke stupid suck sucked sucking tampon tawdry teat terd
    teste testee testes testicle testis three thrust thug tinkle titi toke toots tramp transsexual trashy tush
    ugly undies unwed urinal urine uterus uzi vag vagina valium viagra virgin vixen vodka vomit voyeur vulgar
    vulva wad wang wedgie weed weenie weiner weirdo wench whitey whiz willies willy womb woody wop xx xxx yaoi
    yury
"""
EVERYDAY: Final = frozenset(_EVERYDAY_WORDS.split())
_EVERYDAY_PHRASES: Final = frozenset({"cow girl", "cow girls", "strip club", "three some", "foot job", "auto erotic"})


class ToxicityModel(Protocol):
    """A classifier: one score per text, 0 harmless to 1 toxic."""

    def score(self, texts: Sequence[str]) -> Sequence[float]:
        """Scores of `texts`, in their order."""
        ...


def listed_words(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Per text: occurrences of listed terms, and words in all."""
    table = _table()
    listed, total = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    for start, some in chunks(texts):
        tokens = tokenise(some)
        total[start : start + len(some)] = np.diff(tokens.bounds)
        np.add.at(listed, start + table.find(tokens).text, 1)
    return listed, total


@lru_cache(maxsize=1)
def _table() -> GramTable:
    """The list's terms as n-grams; a term that is written with signs between its letters cannot be one."""
    from better_profanity import utils

    raw = utils.read_wordlist(utils.get_complete_path_of_file("profanity_wordlist.txt"))
    terms = sorted({term.strip().lower().replace("-", " ") for term in raw})
    terms = [t for t in terms if t.replace(" ", "").isalnum() and t not in EVERYDAY and t not in _EVERYDAY_PHRASES]
    terms = [t for t in terms if min(map(len, t.split())) > 1]
    tokens: Words = tokenise(pa.array(terms, pa.string()))
    lengths = np.diff(tokens.bounds)
    hashes = [grams(tokens, number, int(length))[0] for number, length in enumerate(lengths)]
    return GramTable(np.unique(np.array(hashes, np.uint64)), [int(length) for length in lengths])
