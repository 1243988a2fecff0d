"""filter: drop rows that no model should learn from, by named rules; each rule is its own reason code.

Format rules look at the whole row, quality rules at what the row teaches: assistant turns of an sft row and the
`chosen` answer of a preference row. `rejected` answers and rated rows may refuse, swear and repeat themselves: that is
what they are for. The first rule that fails, in the order below, is the row's reason; the detail lists the others.

    empty           no messages, no answer, or white space only
    broken_roles    unknown role, two system turns, an sft row that ends with its user, a tool turn nobody called for
    tool_arguments  a tool call without a name, or whose arguments are not a JSON object
    over_long       more characters than `max_chars`
    equal_answers   chosen and rejected say the same
    repetition      Gopher's repetition rules (Rae et al. 2021): repeated lines, repeated word 10-grams
    refusal         an answer that only refuses: short, and opening with a refusal (English)
    word_list       swear words and slurs above a share of the words (English; a list, not a judgement)
    toxicity_model  a classifier's score; runs only when a model is passed in

    chat#12  assistant: "I'm sorry, but I can't help with that."
        -> dropped, refusal {"rule": "refusal", "measured": 38, "limit": 300}      (characters)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusforge.result import StageResult, ledger
from corpusforge.sample import ROLES
from corpusforge.stages import _roles
from corpusforge.stages._stage import Inputs, RowWise, StageConfig, configure, in_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpusforge.text.pieces import Pieces
    from corpusforge.text.toxicity import ToxicityModel

Rule = Literal[
    "empty",
    "broken_roles",
    "tool_arguments",
    "over_long",
    "equal_answers",
    "repetition",
    "refusal",
    "word_list",
    "toxicity_model",
]
RULES: Final[tuple[Rule, ...]] = Rule.__args__  # type: ignore[attr-defined]
ENGLISH_ONLY: Final = ("refusal", "word_list")
_ASSISTANT: Final = ROLES.index("assistant")
_REFUSAL: Final = (
    r"(?is)^\W*(?:(?:i'?m|i am)(?: (?:very|so|really|truly))? sorry|sorry|(?:i )?apologi[sz]e|my apologies|"
    r"unfortunately|i'?m afraid|i am afraid|i regret)?(?: that)?[,.!:;]*\s*(?:but |however,? )?"
    r"(?:as (?:an? )?(?:ai|artificial intelligence|large|language)\b[^.,]{0,40},? )?"
    r"(?:i|we)(?: simply| just| really)? ?"
    r"(?:can'?t|can ?not|won'?t|will not|'?m (?:unable|not able|not comfortable|not allowed|not going)|"
    r"am (?:unable|not able|not comfortable|not allowed|not going)|must decline|have to decline|refuse)"
    r"(?: be able)?(?: to)?(?: really)?(?: (?:provide|offer|give|fulfil+|assist|help|comply|do|answer|discuss|engage|"
    r"support|advise|create|generate|write|produce|continue|share|respond|participate|accommodate|process|complete|"
    r"tell|talk|explain|access|perform)\b|\.)"
)


class FilterConfig(StageConfig):
    """Which rules run, and their limits."""

    rules: list[Rule] = Field(default_factory=lambda: list(RULES))
    """Rules that run, by name; leave one out to switch it off."""

    max_chars: int = Field(200_000, ge=1)
    """Characters in all texts of a row; about 50,000 tokens, beyond any context that TRL is commonly run with."""

    max_duplicate_lines: float = Field(0.3, ge=0, le=1)
    """Share of an answer's words in repeated lines; Gopher's limit, reached by 1 of 974 MBPP programs."""

    max_duplicate_ngrams: float = Field(0.5, ge=0, le=1)
    """Share of an answer's words in repeated 10-grams; above Gopher's, since worked solutions repeat their steps."""

    refusal_chars: int = Field(300, ge=1)
    """Characters up to which an answer that opens with a refusal has nothing else to say."""

    word_share: float = Field(0.01, ge=0, le=1)
    """Listed words per word of the answers; a quotation in a long answer passes, an insult does not."""

    toxicity_score: float = Field(0.5, ge=0, le=1)
    """Model score from which an answer is toxic."""


def filter(
    rows: pa.Table, config: FilterConfig | None = None, *, toxicity_model: ToxicityModel | None = None, **options: Any
) -> StageResult:
    """Drop rows that fail a rule. Keyword arguments are the fields of FilterConfig; ConfigError for a wrong one."""
    return in_memory(STAGE, rows, configure(FilterConfig, config, options), {"toxicity_model": toxicity_model})


def _run(rows: pa.Table, config: FilterConfig, inputs: Inputs) -> StageResult:
    from corpusforge.text.pieces import pieces

    context = _Context(rows, config, pieces(rows), inputs.get("toxicity_model"))
    active = [rule for rule in RULES if rule in config.rules and not (rule == "toxicity_model" and not context.model)]
    findings = [(rule, _CHECKS[rule](context)) for rule in active]
    failed = np.array([finding.mask for _, finding in findings], bool).reshape(len(findings), rows.num_rows)
    dropped = np.flatnonzero(failed.any(axis=0))
    first = failed[:, dropped].argmax(axis=0)
    reasons = [active[rule] for rule in first]
    details = [_detail(findings, failed[:, row], int(rule), int(row)) for row, rule in zip(dropped, first, strict=True)]
    kept = rows.filter(pa.array(~failed.any(axis=0)))
    return StageResult(
        STAGE.name, kept, ledger(rows, dropped, STAGE.name, reasons, details), metrics=_metrics(context, active)
    )


STAGE = RowWise("filter", FilterConfig, _run)


@dataclass(frozen=True)
class _Context:
    """One partition, its texts, and what the rules measure them with."""

    rows: pa.Table
    config: FilterConfig
    texts: Pieces
    model: ToxicityModel | None
    kind: npt.NDArray[np.object_] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", np.array(self.rows["kind"].to_pylist(), object))

    def answers(self) -> Pieces:
        """What rows teach: assistant turns of sft rows, chosen answers."""
        texts, content = self.texts, self.texts.part == 0
        said = (texts.column == 0) & (texts.role == _ASSISTANT) & (self.kind[texts.row] == "sft")
        return texts.where(content & (said | (texts.column == 1)))


@dataclass(frozen=True)
class _Finding:
    """Rows that fail a rule; per row the name of the fault (where a rule knows several) and the figure that failed."""

    mask: npt.NDArray[np.bool_]
    fault: npt.NDArray[Any] | None = None
    measured: npt.NDArray[Any] | None = None
    limit: float | npt.NDArray[np.float64] | None = None


def _detail(findings: list[tuple[Rule, _Finding]], failed: Any, rule: int, row: int) -> dict[str, Any]:
    name, finding = findings[rule]
    detail: dict[str, Any] = {"rule": name}
    if finding.fault is not None:
        detail["fault"] = str(finding.fault[row])
    if finding.measured is not None:
        limit = finding.limit[row] if isinstance(finding.limit, np.ndarray) else finding.limit
        detail |= {"measured": round(finding.measured[row].item(), 4), "limit": limit}
    also = [findings[other][0] for other in np.flatnonzero(failed) if other != rule]
    return detail | ({"also": also} if also else {})


def _metrics(context: _Context, active: list[Rule]) -> dict[str, Any]:
    """Rows that each rule looked at, and rows whose language the English-only rules do not know."""
    language = context.rows["language"]
    other = pc.sum(pc.and_(pc.is_valid(language), pc.invert(pc.is_in(language, pa.array(["en", "und"]))))).as_py() or 0
    count = context.rows.num_rows
    return {
        "checked": {rule: count if rule in active else 0 for rule in RULES},
        "not_in_english": {rule: other for rule in ENGLISH_ONLY if rule in active},
    }


def _worst(context: _Context, texts: Pieces, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The highest of the pieces' values per row, 0 where a row has none."""
    worst = np.zeros(context.rows.num_rows, values.dtype)
    np.maximum.at(worst, texts.row, values)
    return worst


def _empty(context: _Context) -> _Finding:
    """No text at all, or nothing of what the kind of row is for."""
    texts = context.texts
    filled = pc.match_substring_regex(texts.text, r"\S").to_numpy(zero_copy_only=False)

    def has(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return np.bincount(texts.row[mask & filled], minlength=context.rows.num_rows) > 0

    asked, said, kind = has(texts.column == 0), has((texts.column == 0) & (texts.role == _ASSISTANT)), context.kind
    chosen, rejected = has(texts.column == 1), has(texts.column == 2)
    faults = np.select(
        [
            ~asked & ~chosen & ~rejected,
            (kind == "sft") & ~said,
            (kind == "preference") & ~chosen,
            (kind == "preference") & ~rejected,
            np.isin(kind, ["task", "preference"]) & ~asked,
        ],
        ["no_text", "no_answer", "no_chosen", "no_rejected", "no_prompt"],
        "",
    )
    return _Finding(faults != "", faults)


def _broken_roles(context: _Context) -> _Finding:
    faults = _roles.role_faults(context.rows)
    return _Finding(faults != "", faults)


def _tool_arguments(context: _Context) -> _Finding:
    faults = _roles.call_faults(context.rows)
    return _Finding(faults != "", faults)


def _over_long(context: _Context) -> _Finding:
    texts = context.texts
    counted = texts.where(texts.column < 3)
    lengths = pc.utf8_length(counted.text).to_numpy(zero_copy_only=False).astype(np.int64)
    chars = np.bincount(counted.row, lengths, context.rows.num_rows).astype(np.int64)
    return _Finding(chars > context.config.max_chars, None, chars, context.config.max_chars)


def _equal_answers(context: _Context) -> _Finding:
    same = _roles.equal_answers(context.rows)
    return _Finding(same)


def _repetition(context: _Context) -> _Finding:
    from corpusforge.text import quality

    answers, config = context.answers(), context.config
    lines = _worst(context, answers, quality.duplicate_lines(answers.text))
    ngrams = _worst(context, answers, quality.duplicate_ngrams(answers.text))
    by_lines, by_ngrams = lines > config.max_duplicate_lines, ngrams > config.max_duplicate_ngrams
    return _Finding(
        by_lines | by_ngrams,
        np.where(by_lines, "duplicate_lines", "duplicate_ngrams"),
        np.where(by_lines, lines, ngrams),
        np.where(by_lines, config.max_duplicate_lines, config.max_duplicate_ngrams),
    )


def _refusal(context: _Context) -> _Finding:
    """The last answer opens with a refusal and is short enough to hold nothing else."""
    answers, limit = context.answers(), context.config.refusal_chars
    answers = answers.where(answers.last)
    chars = pc.utf8_length(answers.text).to_numpy(zero_copy_only=False).astype(np.int64)
    short = answers.where(chars <= limit)
    plain = pc.replace_substring(short.text, "\u2019", "'")
    refuses = pc.match_substring_regex(plain, _REFUSAL).to_numpy(zero_copy_only=False)
    size = _worst(context, short.where(refuses), chars[chars <= limit][refuses])
    return _Finding(size > 0, None, size, limit)


def _word_list(context: _Context) -> _Finding:
    from corpusforge.text.toxicity import listed_words

    answers = context.answers()
    listed, words = (np.bincount(answers.row, n, context.rows.num_rows) for n in listed_words(answers.text))
    share = listed / np.maximum(words, 1)
    return _Finding(share > context.config.word_share, None, share, context.config.word_share)


def _toxicity_model(context: _Context) -> _Finding:
    answers, limit = context.answers(), context.config.toxicity_score
    assert context.model is not None  # the rule is not active without one
    scores = np.asarray(context.model.score(answers.text.to_pylist()), np.float64)
    worst = _worst(context, answers, scores)
    return _Finding(worst >= limit, None, worst, limit)


_CHECKS: Final[dict[Rule, Callable[[_Context], _Finding]]] = {
    "empty": _empty,
    "broken_roles": _broken_roles,
    "tool_arguments": _tool_arguments,
    "over_long": _over_long,
    "equal_answers": _equal_answers,
    "repetition": _repetition,
    "refusal": _refusal,
    "word_list": _word_list,
    "toxicity_model": _toxicity_model,
}
