"""Dedupe in every script: near copies go, other sentences and other numbers stay, whatever the alphabet."""
# ruff: noqa: E501 - a text is easier to read on one line

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import row, table

from corpusforge.sample import dumps
from corpusforge.stages import _pieces
from corpusforge.stages.dedupe import dedupe
from corpusforge.text.shingles import shingle

# In each script a text of two sentences, its last word or character changed, and two other sentences.
TEXTS = {
    "chinese": (
        "渡船每天早上七点离开北码头，在盐场停靠两次，然后在退潮之前到达灯塔。乘客们在木棚里等候，看管人用铜铃通知大家上船。",
        "渡船每天早上七点离开北码头，在盐场停靠两次，然后在退潮之前到达灯塔。乘客们在木棚里等候，看管人用铜铃通知大家下船。",
        "老磨坊星期一磨黑麦，星期五磨小麦，磨坊主把账记在门板上。下雪的时候，采果子的人在炉子旁边修补篮子，等天气转好。",
    ),
    "japanese": (
        "渡し船は毎朝七時に北の桟橋を出て、塩田に二度立ち寄り、潮が変わる前に灯台に着きます。乗客は小屋で待ち、番人が鐘を鳴らします。",
        "渡し船は毎朝七時に北の桟橋を出て、塩田に二度立ち寄り、潮が変わる前に灯台に着きます。乗客は小屋で待ち、番人が笛を鳴らします。",
        "古い水車小屋は月曜にライ麦を、金曜に小麦を挽き、粉屋は戸板に帳面をつけます。雪の日には皆が炉端で籠を直して春を待ちます。",
    ),
    "thai": (
        "เรือข้ามฟากออกจากท่าเหนือตอนเจ็ดโมงเช้าทุกวันแวะที่นาเกลือสองครั้งแล้วไปถึงประภาคารก่อนน้ำลง",
        "เรือข้ามฟากออกจากท่าเหนือตอนเจ็ดโมงเช้าทุกวันแวะที่นาเกลือสองครั้งแล้วไปถึงประภาคารก่อนน้ำขึ้น",
        "โรงสีเก่าบดข้าวไรย์วันจันทร์และบดข้าวสาลีวันศุกร์ส่วนคนโม่แป้งจดบัญชีไว้ที่บานประตูไม้ข้างเตาไฟ",
    ),
    "khmer": (
        "សាឡាងចេញពីកំពង់ផែខាងជើងនៅម៉ោងប្រាំពីរព្រឹកជារៀងរាល់ថ្ងៃហើយឈប់ពីរដងនៅស្រែអំបិលមុនពេលទឹកនាច",
        "សាឡាងចេញពីកំពង់ផែខាងជើងនៅម៉ោងប្រាំពីរព្រឹកជារៀងរាល់ថ្ងៃហើយឈប់ពីរដងនៅស្រែអំបិលមុនពេលទឹកជោរ",
        "ម៉ាស៊ីនកិនស្រូវចាស់កិននៅថ្ងៃច័ន្ទនិងថ្ងៃសុក្រហើយម្ចាស់កត់បញ្ជីនៅលើទ្វារឈើក្បែរចង្ក្រានផ្ទះបាយ",
    ),
    "burmese": (
        "ကူးတို့သင်္ဘောသည်မနက်ခုနစ်နာရီတွင်မြောက်ဘက်ဆိပ်ကမ်းမှထွက်ပြီးဆားကွင်းတွင်နှစ်ကြိမ်ရပ်သည်",
        "ကူးတို့သင်္ဘောသည်မနက်ခုနစ်နာရီတွင်မြောက်ဘက်ဆိပ်ကမ်းမှထွက်ပြီးဆားကွင်းတွင်နှစ်ကြိမ်ရပ်၏",
        "စက်ဟောင်းသည်တနင်္လာနေ့တွင်ဂျုံကြိတ်ပြီးသောကြာနေ့တွင်ဆန်ကြိတ်ကာပိုင်ရှင်ကစာရင်းမှတ်သည်",
    ),
    "korean": (
        "나룻배는 매일 아침 일곱 시에 북쪽 부두를 떠나 염전에 두 번 들르고 물때가 바뀌기 전에 등대에 닿는다 승객들은 헛간에서 기다리고 "
        "관리인은 종을 울려 사람들에게 배에 오르라고 알린 뒤 밧줄을 푼다",
        "나룻배는 매일 아침 일곱 시에 북쪽 부두를 떠나 염전에 두 번 들르고 물때가 바뀌기 전에 등대에 닿는다 승객들은 헛간에서 기다리고 "
        "관리인은 종을 울려 사람들에게 배에 오르라고 알린 뒤 밧줄을 감는다",
        "오래된 방앗간은 월요일에 호밀을 빻고 금요일에 밀을 빻으며 주인은 문짝에 장부를 적는다 눈이 오는 날이면 사람들은 난로 곁에서 바구니를 "
        "고치며 날이 풀리기를 기다린다",
    ),
    "arabic": (
        "تغادر العبارة الرصيف الشمالي كل صباح في السابعة وتتوقف مرتين عند الملاحات ثم تصل إلى المنارة قبل أن يتغير المد والجزر "
        "وينتظر الركاب في السقيفة الخشبية حتى يدق الحارس الجرس",
        "تغادر العبارة الرصيف الشمالي كل صباح في السابعة وتتوقف مرتين عند الملاحات ثم تصل إلى المنارة قبل أن يتغير المد والجزر "
        "وينتظر الركاب في السقيفة الخشبية حتى يدق الحارس الطبل",
        "تطحن الطاحونة القديمة الجاودار يوم الاثنين والقمح يوم الجمعة ويكتب الطحان حسابه على باب خشبي قديم بجانب الموقد وعندما يسقط "
        "الثلج يصلح الناس السلال",
    ),
    "hindi": (
        "नाव हर सुबह सात बजे उत्तरी घाट से चलती है और नमक के खेतों पर दो बार रुकती है फिर ज्वार बदलने से पहले प्रकाश स्तंभ पर पहुँचती है "
        "और यात्री लकड़ी के छप्पर में घंटी का इंतज़ार करते हैं",
        "नाव हर सुबह सात बजे उत्तरी घाट से चलती है और नमक के खेतों पर दो बार रुकती है फिर ज्वार बदलने से पहले प्रकाश स्तंभ पर पहुँचती है "
        "और यात्री लकड़ी के छप्पर में घंटी का इंतज़ार करतीं",
        "पुरानी चक्की सोमवार को राई और शुक्रवार को गेहूँ पीसती है और मालिक दरवाज़े पर हिसाब लिखता है जब बर्फ़ गिरती है तब लोग चूल्हे के पास "
        "बैठकर टोकरियाँ सुधारते हैं",
    ),
    "russian": (
        "Паром отходит от северного причала в семь утра, дважды останавливается у солеварен и приходит к маяку до отлива, а пассажиры "
        "ждут в сарае, пока сторож не ударит в колокол",
        "ПАРОМ отходит от северного причала в семь утра — дважды останавливается у солеварен и приходит к маяку до отлива, а пассажиры "
        "ждут в сарае, пока сторож не ударит в гонг",
        "Старая мельница мелет рожь по понедельникам и пшеницу по пятницам, а мельник ведёт счёт на двери, и когда идёт снег, сборщики "
        "чинят корзины у печи",
    ),
}
DIGITS = {
    "western": "0123456789",
    "arabic": "٠١٢٣٤٥٦٧٨٩",
    "persian": "۰۱۲۳۴۵۶۷۸۹",
    "devanagari": "०१२३४५६७८९",
    "bengali": "০১২৩৪৫৬৭৮৯",
    "thai": "๐๑๒๓๔๕๖๗๘๙",
    "khmer": "០១២៣៤៥៦៧៨៩",
    "burmese": "၀၁၂၃၄၅၆၇၈၉",
    "full width": "０１２３４５６７８９",
    "superscript": "⁰¹²³⁴⁵⁶⁷⁸⁹",
}
NOTHING = (
    "",
    " \t\n",
    "?!…",
    "。、！？",
    "؟،",
    "।॥",
    "«»—",
    "🙂🙃",
    "👩‍👩‍👧",
    "\u200b\ufeff",
    "☺️ ✅",
    "()[]{}",
    "+-*/=",
    "\u3000",
)
SHORT = (
    "cat",
    "C",
    "C++",
    "C#",
    "42",
    "-42",
    "是",
    "否",
    "はい",
    "ใช่",
    "បាទ",
    "예",
    "نعم",
    "हाँ",
    "да",
    "ß",
    "½",
    "k = 3",
    "k < 3",
)


def left(*texts: str | None, **more: Any) -> list[int]:
    """Numbers of the texts that stay."""
    kept = dedupe(table([row(i, text, **more) for i, text in enumerate(texts)])).kept  # type: ignore[arg-type]
    return [int(name.partition("#")[2]) for name in kept["row_id"].to_pylist()]


@pytest.mark.parametrize("script", TEXTS)
def test_near_copies_go_and_other_sentences_stay(script: str) -> None:
    """One word at the end differs: at 0.8 a near duplicate. Another text is none."""
    text, near, other = TEXTS[script]
    result = dedupe(table([row(i, one) for i, one in enumerate((text, near, other))]))
    (line,) = result.dropped.to_pylist()
    assert {line["row_id"], json.loads(line["detail"])["kept"]} == {"test#0", "test#1"}
    assert 0.8 <= json.loads(line["detail"])["similarity"] < 1


def test_no_script_is_taken_for_another() -> None:
    """The same story told in nine scripts is nine rows."""
    stories = [texts[0] for texts in TEXTS.values()]
    assert left(*stories) == list(range(len(stories)))


@pytest.mark.parametrize("script", DIGITS)
@pytest.mark.parametrize("story", ["chinese", "thai", "arabic", "hindi", "russian"])
def test_tasks_that_differ_only_in_a_number_stay(script: str, story: str) -> None:
    """Ten tasks of one text with ten numbers, in the digits of whichever script: ten tasks."""
    gold = {"kind": "task", "verifier": {"kind": "exact", "spec": dumps({"answer": "yes"})}}
    digits = DIGITS[script]
    texts = [f"{TEXTS[story][0]} {digits[1]}{digit}" for digit in digits]
    assert left(*texts, **gold) == list(range(10))
    assert len(left(texts[0], texts[0] + " ", texts[0].replace(" ", "  "), **gold)) == 1


def test_full_width_digits_are_digits() -> None:
    """The form of a digit is no difference, as the form of a letter is none."""
    gold = {"kind": "task", "verifier": {"kind": "exact", "spec": dumps({"answer": "yes"})}}
    assert len(left("How many carts hold 120 sacks?", "How many carts hold １２０ sacks?", **gold)) == 1


def test_rows_that_say_nothing_are_noted_in_every_script() -> None:
    """Blanks, punctuation, emoji: noted as empty, never a duplicate of anything."""
    texts = [*NOTHING, *NOTHING, None]
    result = dedupe(table([row(i, text) for i, text in enumerate(texts)]))  # type: ignore[arg-type]
    assert (result.kept.num_rows, result.metrics["empty"]) == (len(texts), len(texts))
    assert set(result.changes["reason"].to_pylist()) == {"empty"}


def test_short_texts_are_themselves() -> None:
    """Shorter than a shingle: equal but for case and blanks, or not the same."""
    assert left(*SHORT) == list(range(len(SHORT)))
    assert left(*SHORT, *(f" {text.upper()} " for text in SHORT if text != "ß")) == list(range(len(SHORT)))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_text_is_survived(texts: list[str]) -> None:
    """Kept and gone are all there; of two equal texts that say something one is left."""
    result = dedupe(table([row(i, text) for i, text in enumerate(texts)]))
    assert result.kept.num_rows + result.dropped.num_rows == len(texts)
    said = {text for text in texts if shingle(pa.array([text]), 5).units[0]}
    kept = [turns[0]["content"] for turns in result.kept["messages"].to_pylist()]
    assert all(kept.count(text) <= 1 for text in said)


def test_a_huge_row_is_compared_like_any_other() -> None:
    """Two million words: the copy with another end goes, texts half as long or of other words stay."""
    words = np.random.default_rng(5).integers(0, 99_999, 1_000_000).astype(str).tolist()
    long = " ".join(words)
    assert left(long, " ".join([*words[:-1], "end"]), long[: len(long) // 2], " ".join(words[::-1])) in (
        [0, 2, 3],
        [1, 2, 3],
    )


@pytest.mark.parametrize(
    "text", ["a " * 2**20, "字" * 2**20, "word " * 2**19, "x" * 2**21, "\x1e" * 2**20, "a\x1e" * 2**20]
)
def test_shingles_take_at_most_eight_bytes_per_byte(text: str) -> None:
    """Whatever the text is made of: the hashes fit into what is set aside for them, and that is bounded."""
    column = pa.array([text])
    shingle(pa.array(["warm"]), 5)
    tracemalloc.start()
    found = shingle(column, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.hashes) <= (len(text.encode()) + 1) // 2
    assert peak <= 14.5 * len(text.encode())


@settings(max_examples=40)
@given(st.lists(st.text("ab \x1e字\u0301😀.", max_size=40), max_size=5), st.integers(1, 6))
def test_hashes_never_outgrow_what_is_set_aside(texts: list[str], k: int) -> None:
    """At most one shingle per two bytes, and one more per text."""
    found = shingle(pa.array(texts, pa.string()), k)
    assert len(found.hashes) <= (sum(len(text.encode()) for text in texts) + len(texts)) // 2


@settings(max_examples=40)
@given(st.lists(st.integers(0, 90), max_size=12), st.integers(1, 60))
def test_pieces_are_the_rows_in_order(sizes: list[int], most: int) -> None:
    """Cut by rows and by bytes, nothing is lost; a piece is small or a single row."""
    rows = pa.table({"text": pa.array(["x" * size for size in sizes], pa.string())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pieces, "ROWS", 5)
        patch.setattr(_pieces, "BYTES", most)
        found = list(_pieces.pieces(rows, ["text"]))
    assert pa.concat_tables(found).equals(rows)
    assert all(piece.num_rows < 2 or (piece.num_rows <= 5 and piece.nbytes <= most) for piece in found)
