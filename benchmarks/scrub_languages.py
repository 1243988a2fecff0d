"""What scrub finds where the named-entity model knows nothing: German, Japanese, Arabic and Hindi.

    python benchmarks/scrub_languages.py                 2,000 rows, 500 for each language; half a minute
    python benchmarks/scrub_languages.py --rows 40 --names off

Every row is made up by a template of ours and holds one name, one e-mail address and one phone number, written as
people of that region write it: at home or from abroad, with or without a word such as `phone` in front, some in digits
of the script. Numbers are drawn in assigned ranges of mobile and city numbers, so that phonenumbers holds them for
valid; they are nobody's that we know of. A planted value counts as found where it does not stand in the row that comes
out: recall is the share of those. The named-entity tier is on, with the English model: names in these languages
are not looked for, and the stage has to say so (`names_not_scanned`). Only counts are printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import corpusforge as cf

if TYPE_CHECKING:
    from corpusforge.result import StageResult

KINDS: Final = ("EMAIL_ADDRESS", "PHONE_NUMBER", "PERSON")
FLOORS: Final = {"EMAIL_ADDRESS": 0.99, "PHONE_NUMBER": 0.90}
_DIGITS: Final = {"ar": "٠١٢٣٤٥٦٧٨٩", "hi": "०१२३४५६७८९"}


@dataclass(frozen=True)
class Language:
    """Templates with {name}, {mail}, {phone}; forms of numbers, `#` for any digit and `@` for one from 2 to 9."""

    templates: tuple[str, ...]
    names: tuple[str, ...]
    users: tuple[str, ...]
    domains: tuple[str, ...]
    phones: tuple[str, ...]


LANGUAGES: Final = {
    "de": Language(
        (
            "Guten Tag, mein Name ist {name}. Meine Telefonnummer lautet {phone}, per E-Mail an {mail} geht es auch.",
            "Bitte schreiben Sie {name} ({mail}) oder rufen Sie unter {phone} an.",
            "Kontakt: {name}, Tel. {phone}, {mail}",
            "Ich habe am 12.03.2024 mit {name} gesprochen; erreichbar ist sie unter {phone}. Unterlagen an {mail}.",
            "{name} wohnt seit 2019 in Köln. Handy: {phone}. Mail:{mail}.",
        ),
        ("Jürgen Weißmüller", "Anke Brandstätter", "Sören Oppelt", "Heike Lindqvist", "Detlef Krauß"),
        ("juergen.w", "anke_b", "soeren", "heike-l", "d.krauss"),
        ("webpost.de", "brief-kasten.de", "firma-nord.com"),
        ("+49 171 @######", "0171 @######", "0171/@######", "030 @#######", "+49 (0)30 @#######", "089-@#######"),
    ),
    "ja": Language(
        (
            "お世話になっております。{name}と申します。電話番号は{phone}、メールは{mail}です。",
            "{name}様の連絡先：{phone}（携帯）、{mail}まで。",
            "担当は{name}です。お急ぎの方は{phone}までお電話ください。資料は{mail}へ。",
            "2024年3月12日に{name}さんから連絡がありました。TEL {phone} / Email {mail}",
            "{mail}に送ってください。{name}の番号は{phone}。",
        ),
        ("佐藤花子", "鈴木一郎", "高橋美咲", "渡辺健太", "山本さくら"),
        ("hanako.s", "ichiro", "misaki_t", "kenta-w", "sakura88"),
        ("yubin-mail.jp", "kaisha.co.jp", "denshi.ne.jp"),
        ("090-@###-####", "080-@###-####", "03-@###-####", "+81 90-@###-####", "06-6###-####", "090@#######"),
    ),
    "ar": Language(
        (
            "مرحبا، اسمي {name} ورقم هاتفي {phone} وبريدي الإلكتروني {mail}.",
            "يرجى التواصل مع {name} على الرقم {phone} أو عبر {mail}",
            "الاسم: {name}، الجوال: {phone}، البريد: {mail}",
            "اتصل بي {name} يوم 12/03/2024، ويمكنك الاتصال به على {phone}. أرسل الملفات إلى {mail}",
            "تحدثت مع {name} أمس؛ هاتف {phone}؛ {mail}",
        ),
        ("خالد المنصوري", "ليلى حداد", "عمر الشريف", "نورة القحطاني", "سامي بركات"),
        ("khaled.m", "layla_h", "omar-s", "noura.q", "sami77"),
        ("barid.sa", "maktab.ae", "risala.eg"),
        ("+966 50 @## ####", "050 @## ####", "+971 50 @## ####", "+20 100 @## ####", "0100 @## ####", "05@#######"),
    ),
    "hi": Language(
        (
            "नमस्ते, मेरा नाम {name} है। मेरा फ़ोन नंबर {phone} है और ईमेल {mail} है।",
            "कृपया {name} से {phone} पर संपर्क करें या {mail} पर लिखें।",
            "नाम: {name}, मोबाइल: {phone}, ईमेल: {mail}",
            "12/03/2024 को {name} ने बताया कि उनका नंबर {phone} है। फ़ाइल {mail} पर भेजें।",
            "{name} कल दिल्ली गए थे; फोन {phone}; {mail}",
        ),
        ("राजेश शर्मा", "प्रिया वर्मा", "अमित गुप्ता", "सुनीता यादव", "विकास मिश्रा"),
        ("rajesh.s", "priya_v", "amit-g", "sunita", "vikas.m"),
        ("dakghar.in", "sandesh.co.in", "patra.net"),
        ("+91 98### #####", "98### #####", "098### #####", "9@########", "011-2### ####", "+91-98########"),
    ),
}


@dataclass(frozen=True)
class Planted:
    """A row's text, its language, and the values in it per kind."""

    text: str
    language: str
    values: dict[str, str]


def planted(rows: int) -> list[Planted]:
    """`rows` texts for each language, always the same ones."""
    return [_one(language, number) for language in LANGUAGES for number in range(rows)]


def _one(language: str, number: int) -> Planted:
    draw, kit = random.Random(f"{language}-{number}"), LANGUAGES[language]
    form = draw.choice(kit.phones)
    phone = re.sub("[#@]", lambda place: draw.choice("0123456789" if place.group() == "#" else "23456789"), form)
    if language in _DIGITS and draw.random() < 0.2:
        phone = phone.translate(str.maketrans("0123456789", _DIGITS[language]))
    mail = f"{draw.choice(kit.users)}{draw.randrange(1000)}@{draw.choice(kit.domains)}"
    values = {"PERSON": draw.choice(kit.names), "EMAIL_ADDRESS": mail, "PHONE_NUMBER": phone}
    text = draw.choice(kit.templates).format(name=values["PERSON"], mail=mail, phone=phone)
    return Planted(f"{text} ({number})", language, values)


def scrubbed(texts: list[Planted], **options: Any) -> StageResult:
    """The texts through the stage, each with its language declared."""
    records = [
        {"id": str(n), "messages": [{"role": "user", "content": one.text}, {"role": "assistant", "content": "…"}]}
        for n, one in enumerate(texts)
    ]
    tables = []
    for language in LANGUAGES:
        own = [record for record, one in zip(records, texts, strict=True) if one.language == language]
        tables.append(cf.read(own, {"name": language, "license": "MIT", "origin": "synthetic", "language": language}))
    return cf.scrub(pa.concat_tables(tables), key="public-demo", **options)


def recall(texts: list[Planted], result: StageResult) -> dict[tuple[str, str], float]:
    """Per language and kind, the share of planted values of which nothing is left."""
    after = {row["source"]["record_id"]: row["messages"][0]["content"] for row in result.kept.to_pylist()}
    found: Counter[tuple[str, str]] = Counter()
    for number, one in enumerate(texts):
        for kind, value in one.values.items():
            found[one.language, kind] += value not in after.get(str(number), "")
    rows = Counter(one.language for one in texts)
    return {(language, kind): found[language, kind] / rows[language] for language in LANGUAGES for kind in KINDS}


def main(arguments: list[str] | None = None) -> int:
    """Print the table; exit code 1 where a floor is missed or rows with unread names are called read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500, help="rows per language")
    parser.add_argument("--names", choices=("off", "spacy"), default="spacy", help="the named-entity tier")
    chosen = parser.parse_args(arguments)
    texts = planted(chosen.rows)
    result = scrubbed(texts, names=chosen.names)
    found, unread = recall(texts, result), result.metrics["names_not_scanned"]
    print(f"{'language':<10}{'rows':>6}" + "".join(f"{kind:>16}" for kind in KINDS) + f"{'names not scanned':>20}")
    for language in LANGUAGES:
        shares = "".join(f"{found[language, kind]:>16.3f}" for kind in KINDS)
        print(f"{language:<10}{chosen.rows:>6}{shares}{unread.get(language, 0):>20}")
    pairs = [(language, kind) for language in LANGUAGES for kind in FLOORS]
    missed = [
        f"{k} in {lang}: {found[lang, k]:.3f}, wanted {FLOORS[k]}" for lang, k in pairs if found[lang, k] < FLOORS[k]
    ]
    missed += [f"{lang}: names counted as scanned" for lang in LANGUAGES if unread.get(lang, 0) != chosen.rows]
    print("\n".join(missed) or "every floor holds")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
