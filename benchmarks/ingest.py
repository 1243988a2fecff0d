"""Ingest: files of chat records to rows, beside `datasets.load_dataset("json")` and `.map` to the same form.

    python benchmarks/ingest.py                          20,000 made-up conversations
    python benchmarks/ingest.py --rows 1000000           about 1 GB of JSON Lines in eight files
    python benchmarks/ingest.py --rows 4000000           does memory stay the same?

Both sides get the same files and the same number of processes, and run one after the other, each in a process of its
own with an empty cache folder; memory is that of its whole process tree (proportional set size, every 0.2 s).

What each does. Both: every record read, messages as role and content, every other field of message and record as JSON
text, the result on disk in columns. corpusforge besides: a hash of the files, row ids, content ids, tool calls and
schemas in one form, licence and origin of each row, domain by rule, a check for keys that stand twice, a ledger of
what could not be read, zstd; with and without detection of the language. datasets: Arrow files without compression,
once as loaded and once as mapped. Its values are what its JSON reader makes of them: a text that is a date becomes a
timestamp, a key that some records lack becomes a null in them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

FILES = 8
TAGS = ("support", "travel", "cooking", "code", "maths", "history", "law", "sports", "music", "garden")
# Common words: enough for a detector of languages to know each by.
WORDS = {
    "en": "the of and to in is that for it with as was on are this have from not they which their would there been "
    "about could because people other after should through before between water little world house still never",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er "
    "hat dass sie nach wird bei einer um am sind noch wie über so zum haben nur oder aber vor zur bis können müssen",
    "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont avec mais nous "
    "vous cette leur été être fait comme tout même aussi bien peut très après où déjà français élève façon",
    "es": "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque "
    "esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante todos año niño",
    "pl": "nie to się w na i z do jest że jak o za po co tak ale czy już tylko jego był być może kiedy bardzo mnie "
    "jestem wszystko tego jeszcze gdzie można coś dlaczego łatwo święto źródło żeby pięć mówić",
    "ru": "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой от так о для ты же все "
    "год мочь человек такой его только или ещё бы себя один как уже до время если сам когда другой",
    "el": "και το να του η της με που για από την στο είναι τον θα δεν οι των ότι στην τα ένα αυτό μια πως αλλά όταν "
    "ήταν μου σας πολύ κάτι χρόνια μόνο πρέπει άνθρωπος σήμερα ημέρα",
    "ar": "في من على أن إلى هذا مع عن التي الذي لا ما هو كان كل بعد قبل غير بين أو حتى إذا لكن هناك عند يوم وقت "
    "العمل الناس البيت المدينة الماء الكتاب السؤال الجواب",
    "hi": "है और के में की से को का यह पर नहीं एक हो था कि भी तो वह ने इस जो कर था लिए साथ बाद समय लोग काम घर पानी "
    "दिन बहुत क्या कैसे जब सब अपने बात",
    "ja": "これは それが 日本語 の文章 です。 ます。 わたし たちは 今日 学校で 料理を 作り ました 新しい 言葉 について "
    "考える 時間が あります しかし 問題は 難しい ので 水を 飲んで ください",
    "zh": "我们 今天 学习 中文 的 方法 是 每天 阅读 一个 问题 需要 时间 因为 他们 可以 这个 世界 非常 重要 但是 如果 "
    "没有 水 就 不能 生活 请 告诉 我 怎么 去 学校",
}
SYSTEMS = ("You are a helpful assistant.", "Answer in the language of the question.", "Be brief.\nSay when unsure.")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


def pools(draw: random.Random) -> dict[str, list[str]]:
    """Sentences per language, so that a million records are made in a minute."""
    made = {}
    for language, words in WORDS.items():
        known = words.split()
        between = "" if language in ("ja", "zh") else " "
        made[language] = [
            between.join(draw.choices(known, k=draw.randrange(5, 16))).capitalize() + draw.choice(".?!,")
            for _ in range(3000)
        ]
    return made


def record(number: int, draw: random.Random, sentences: dict[str, list[str]]) -> dict[str, Any]:
    """One conversation: a few turns of a few to many sentences; one in four has a system turn, one in ten tools."""
    chance = draw.random()
    language = "en" if chance < 0.5 else draw.choice(list(WORDS))
    pool = sentences[language]
    separator = "" if language in ("ja", "zh") else "\n\n" if chance < 0.1 else " "

    def say(low: int, high: int) -> str:
        return separator.join([f"{draw.randrange(10**6)}", *draw.choices(pool, k=draw.randrange(low, high))])

    messages: list[dict[str, Any]] = []
    if draw.random() < 0.25:
        messages.append({"role": "system", "content": draw.choice(SYSTEMS)})
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3))):
        messages.append({"role": "user", "content": say(1, 5)})
        messages.append({"role": "assistant", "content": say(2, 10)})
    made: dict[str, Any] = {"id": f"chat-{number:08d}", "messages": messages}
    if chance > 0.9:
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": draw.choice(TAGS), "days": 3})},
        }
        messages[-1:] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": '{"temperature": 21.5}', "tool_call_id": call["id"]},
            messages[-1],
        ]
        made["tools"] = TOOLS
    if chance < 0.3:
        messages[-1]["weight"] = draw.randrange(2)
    made["meta"] = {"score": round(draw.random(), 4), "tags": draw.sample(TAGS, 2), "turn_count": len(messages)}
    made["collected_at"] = f"2025-{draw.randrange(1, 13):02d}-{draw.randrange(1, 29):02d}"
    return made


def make(folder: Path, rows: int) -> None:
    """`rows` records in FILES files of one size."""
    draw = random.Random(7)
    sentences = pools(draw)
    for number in range(FILES):
        with (folder / f"chat-{number}.jsonl").open("w", encoding="utf-8") as file:
            for at in range(rows * number // FILES, rows * (number + 1) // FILES):
                file.write(json.dumps(record(at, draw, sentences), ensure_ascii=False) + "\n")


def corpusforge(data: Path, out: Path, workers: int, *, detect: bool) -> int:
    """The stage as `dvc repro` runs it."""
    from corpusforge.io import partitions
    from corpusforge.project import Project

    os.environ["CORPUSFORGE_WORKERS"] = str(workers)
    source = {"name": "chat", "path": str(data), "license": "CC-BY-4.0", "origin": "human"}
    params = {"ingest": {"sources": [source], "detect_language": detect}}
    (out / "params.yaml").write_text(json.dumps(params), encoding="utf-8")
    (out / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    stage = out / "ingest"
    stage.mkdir()
    return int(partitions.run(Project.find(out), stage)["rows"])


def known(message: dict[str, Any]) -> dict[str, Any]:
    """A message as role, content and JSON text."""
    rest = {key: value for key, value in message.items() if key not in ("role", "content") and value is not None}
    return {
        "role": message["role"],
        "content": message["content"],
        "extra": json.dumps(rest, ensure_ascii=False) if rest else None,
    }


def to_form(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The peer's map function, over a batch, which is its faster way."""
    rest = [name for name in rows if name not in ("id", "messages")]
    return {
        "id": rows["id"],
        "messages": [[known(message) for message in messages] for messages in rows["messages"]],
        "extra": [
            json.dumps(dict(zip(rest, values, strict=True)), ensure_ascii=False, default=str)
            for values in zip(*(rows[name] for name in rest), strict=True)
        ],
    }


def peer(data: Path, out: Path, workers: int) -> int:
    """The usual two calls of `datasets`."""
    os.environ["HF_DATASETS_OFFLINE"] = "1"
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    files = sorted(str(file) for file in data.iterdir())
    loaded = load_dataset("json", data_files=files, split="train", num_proc=workers, cache_dir=str(out))
    mapped = loaded.map(to_form, batched=True, num_proc=workers, remove_columns=loaded.column_names)
    return int(mapped.num_rows)


SIDES = {
    "corpusforge": lambda data, out, workers: corpusforge(data, out, workers, detect=True),
    "corpusforge, languages off": lambda data, out, workers: corpusforge(data, out, workers, detect=False),
    "datasets": peer,
}


def memory(tree: psutil.Process) -> int:
    """Bytes that a process and its children hold, shared pages counted once."""
    total = 0
    for process in [tree, *tree.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except (psutil.Error, AttributeError):
            continue
    return total


def measure(side: str, data: Path, out: Path, workers: int) -> dict[str, Any]:
    """Run one side in a process of its own: rows, seconds, highest memory of its process tree."""
    out.mkdir()
    command = [sys.executable, __file__, "--side", side, "--data", str(data), "--out", str(out)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True)
    peak, tree = 0, psutil.Process(child.pid)
    while child.poll() is None:
        peak = max(peak, memory(tree))
        time.sleep(0.2)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = child.stdout.read() if child.stdout else ""
    if child.returncode:
        raise SystemExit(f"{side} ended with code {child.returncode}")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    shutil.rmtree(out)
    rows = int(said.split()[-1])
    return {"side": side, "rows": rows, "seconds": seconds, "busy": busy, "peak": peak, "size": size}


def main() -> None:
    """Make the files, run each side, print the table."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=20_000)
    ask.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes of each side")
    ask.add_argument("--data", type=Path, help="a folder that holds the files already, or that keeps them")
    ask.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    ask.add_argument("--side", choices=SIDES, action="append", help="only this side (may be repeated)")
    chosen = ask.parse_args()
    if chosen.out:  # the process that is measured
        print(SIDES[chosen.side[0]](chosen.data, chosen.out, chosen.workers))
        return
    with tempfile.TemporaryDirectory() as scratch:
        data = chosen.data or Path(scratch, "data")
        if not data.exists():
            data.mkdir(parents=True)
            make(data, chosen.rows)
        size = sum(file.stat().st_size for file in data.iterdir())
        print(f"{size / 1e6:,.0f} MB in {FILES} files, {chosen.workers} processes, load {os.getloadavg()[0]:.1f}")
        found = [measure(side, data.resolve(), Path(scratch, "out"), chosen.workers) for side in chosen.side or SIDES]
        last = found[-1]
        names = f"{'seconds':>8} {'rows/s':>8} {'ratio':>6} {'cpu s':>7} {'peak MB':>8} {'on disk MB':>11}"
        print(f"{'':27} {'rows':>9} {names}")
        for one in found:
            speed, ratio = one["rows"] / one["seconds"], last["seconds"] / one["seconds"]
            print(
                f"{one['side']:27} {one['rows']:9,} {one['seconds']:8.1f} {speed:8,.0f} {ratio:6.2f}"
                f" {one['busy']:7,.1f} {one['peak'] / 1e6:8,.0f} {one['size'] / 1e6:11,.0f}"
            )


if __name__ == "__main__":
    main()
