"""judge: a model grades an answer by a rubric, and is believed only after it was measured.

    {"rubric": "Is the tone polite?", "answer"?: a reference, "scale"?: [1, 10], "pass_at"?: 8, "mode"?: "pair"}

Mode `grade` asks for a score on the scale. `pair` asks which is better, the completion or the reference, in both
orders; where the preference turns with the order, the verdict is undecided. Whatever is no clear score is undecided,
and never a default. The endpoint stands in the environment (CORPUSFORGE_JUDGE_URL, _MODEL, _KEY), never in a task.
Biases of judges, among them that of order, and the remedy of asking twice: Zheng et al. 2023, arXiv:2306.05685.

    examples = [(task, completion, True), (task, completion, False), …]     labelled by people, one rubric
    agreement(examples, judge).save("judge.json")                           CORPUSFORGE_JUDGE_AGREEMENT=judge.json
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError
from corpusforge.verify._agreement import Agreement, Rate, Trust, fingerprint
from corpusforge.verify._endpoint import Endpoint, Reply, ask
from corpusforge.verify._final import without_reasoning
from corpusforge.verify._rubric import Question, Rubric, Unreadable, better_of, questions, score_of
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided, understood

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Agreement", "Endpoint", "Judge", "Rate", "Trust", "agreement", "check", "check_many", "grade"]

_LONGEST: Final = 200_000  # characters of question, reference and completion together
_LABELS: Final = {"pass": True, "fail": False}


@dataclass(frozen=True)
class Judge:
    """Whom to ask, and when to believe it."""

    endpoint: Endpoint
    trust: Trust = field(default_factory=Trust)

    @classmethod
    def from_environment(cls) -> Judge | None:
        """What the variables `CORPUSFORGE_JUDGE_…` say; None without a URL. Raises ConfigError for odd values."""
        endpoint = Endpoint.from_environment()
        return None if endpoint is None else cls(endpoint, Trust.from_environment())


def check(task: Task, completion: Any) -> Verdict:
    """What the judge of the environment says. Raises ConfigError for settings that are none, MissingExtra."""
    return check_many([task], [completion])[0]


def check_many(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`, several questions under way at once."""
    return _judged(tasks, completions, Judge.from_environment())


def grade(tasks: Sequence[Task | Mapping[str, Any]], completions: Sequence[Any], judge: Judge) -> list[Verdict]:
    """The verdicts of a judge that is handed over, in place of the one in the environment.

    Raises ConfigError when its file of measurements is none, MissingExtra without httpx.
    """
    read = [Task.of(task) for task in tasks]
    said = [understood(completion) for completion in completions]
    known = [number for number, one in enumerate(said) if one is not None]
    verdicts = [undecided("verify.unreadable_completion")] * len(said)
    for number, verdict in zip(known, _judged([read[n] for n in known], [said[n] for n in known], judge), strict=True):
        verdicts[number] = verdict
    return verdicts


def agreement(examples: Sequence[tuple[Task | Mapping[str, Any], Any, bool | str]], judge: Judge) -> Agreement:
    """Measure a judge on examples `(task, completion, label)`, the label being True, False, "pass" or "fail".

    All examples have one rubric; what the judge is trusted with plays no part. Raises ConfigError for no examples,
    another label, a task that is none of a judge, or several rubrics.
    """
    tasks = [Task.of(task) for task, _, _ in examples]
    labels = [_LABELS.get(label) if isinstance(label, str) else label for _, _, label in examples]
    if not examples or not all(isinstance(label, bool) for label in labels):
        raise ConfigError("examples to measure a judge on are labelled pass or fail", hint="give some, each labelled")
    try:
        rubrics = [Rubric.of(task.spec) for task in tasks]
    except Unreadable as what:
        raise ConfigError(f"an example has no task of a judge: {what}", hint="see docs/verifiers.md#judge") from None
    if len({rubric.fingerprint for rubric in rubrics}) > 1:
        raise ConfigError("the examples have several rubrics", hint="measure each rubric on its own")
    verdicts = grade(tasks, [completion for _, completion, _ in examples], Judge(judge.endpoint, _ANYHOW))
    return Agreement.counted(judge.endpoint, rubrics[0], verdicts, [bool(label) for label in labels])


_ANYHOW: Final = Trust(unmeasured="allow")


def _judged(tasks: Sequence[Task], completions: Sequence[Any], judge: Judge | None) -> list[Verdict]:
    """Settle what needs no question, ask all the rest at once."""
    measured = judge.trust.measured() if judge else {}
    settled: list[Verdict | tuple[Rubric, slice]] = []
    asked: list[Question] = []
    for task, completion in zip(tasks, completions, strict=True):
        try:
            rubric = Rubric.of(task.spec)
        except Unreadable as what:
            settled.append(undecided(f"judge.{what}"))
            continue
        text, question = without_reasoning(text_of(completion)).strip(), _question(task.prompt)
        early = _early(rubric, text, question, judge, measured)
        if early is None:
            assert judge is not None
            new = questions(rubric, question, text, judge.endpoint.replies)
            settled.append((rubric, slice(len(asked), len(asked) + len(new))))
            asked += new
        else:
            settled.append(early)
    replies = ask(judge.endpoint, asked) if judge and asked else []
    return [one if isinstance(one, Verdict) else _verdict(one[0], replies[one[1]]) for one in settled]


def _early(
    rubric: Rubric, text: str, question: str, judge: Judge | None, measured: Mapping[str, Agreement]
) -> Verdict | None:
    """The verdict where nothing has to be asked, or nobody may be."""
    if judge is None:
        return undecided("judge.unconfigured")
    key = fingerprint(judge.endpoint.model, rubric.fingerprint, judge.endpoint.replies)
    doubt = judge.trust.doubt(measured.get(key))
    if doubt:
        return undecided(f"judge.{doubt}")
    if not text:
        return failed("judge.no_answer")
    too_long = len(text) + len(question) + len(rubric.answer or "") > _LONGEST
    return undecided("judge.too_long") if too_long else None


def _verdict(rubric: Rubric, replies: Sequence[Reply]) -> Verdict:
    fault = next((reply.fault for reply in replies if reply.fault), None)
    if fault:
        return undecided(f"judge.{fault}")
    if rubric.mode == "pair":
        return _preferred(rubric, [better_of(reply.text) for reply in replies])
    score = score_of(replies[0].text, rubric.low, rubric.high)
    if score is None:
        return undecided("judge.unparsable")
    return (passed if score >= rubric.pass_at else failed)("judge.grade", rubric.share(score))


def _preferred(rubric: Rubric, better: Sequence[str | None]) -> Verdict:
    """The completion is A in the first question and B in the second."""
    if None in better:
        return undecided("judge.unparsable")
    first = {"a": 1.0, "tie": 0.5, "b": 0.0}[str(better[0])]
    second = {"b": 1.0, "tie": 0.5, "a": 0.0}[str(better[1])]
    if first != second:
        return undecided("judge.order")
    return (passed if first >= rubric.pass_at else failed)("judge.pair", first)


def _question(prompt: Sequence[Mapping[str, Any]]) -> str:
    """The prompt as one text. What an assistant says at its end is an answer that was stored, and no part of it."""
    said = [(str(message.get("role", "user")), _content(message.get("content"))) for message in prompt]
    while said and said[-1][0] == "assistant":
        said.pop()
    if len(said) == 1:
        return said[0][1]
    return "\n\n".join(f"{role}: {text}" for role, text in said if text)


def _content(content: Any) -> str:
    joined = understood(content)
    return joined if isinstance(joined, str) else ""
