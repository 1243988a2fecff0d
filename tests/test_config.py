"""params.yaml: every fault is answered with file, line, key, and what would be right."""

from __future__ import annotations

import pytest

from corpusforge.config import parse_params
from corpusforge.errors import ConfigError, UnknownKey

TEXT = """\
ingest:
  sources:
    - name: forum
      path: raw/forum.jsonl
      license: MIT
    - name: web
      path: raw/web.jsonl
      where: {lang: {equals: en}}
dedupe: {}
blend: {}
decontaminate:
  benchmarks: []
gate_data: {}
"""


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ("license: MIT", "license: MIT AND", "params.yaml:5: ingest.sources.0.license: not an SPDX", "SPDX expression"),
        ("license: MIT", "limit: -1", "params.yaml:5: ingest.sources.0.limit: ", "at most this many"),
        ("name: web", "name: forum", "params.yaml:6: ingest.sources.1.name: another is called 'forum'", ""),
        ("{equals: en}", "{between: [1]}", "params.yaml:8: ingest.sources.1.where.lang.between: ", "both included"),
        ("dedupe: {}", "dedupe:", "params.yaml:9: dedupe: expected a block of options; write {}", "dedupe.md"),
        ("dedupe: {}", "dedupe: {threshold: '0.8'}", "params.yaml:9: dedupe.threshold: ", "Jaccard"),
        ("dedupe: {}", "dedupe: {threshold: .nan}", "params.yaml:9: dedupe.threshold: ", "Jaccard"),
        ("blend: {}", "blend: {sources: {wed: 0.5}}", "params.yaml:10: blend.sources.wed: nothing", "mean 'web'"),
        ("  benchmarks: []", "  thresholds: {exam: 0.9}", "params.yaml:12: decontaminate.thresholds.exam: ", "none"),
        ("gate_data: {}", "gate_data: {max_loss: {dedupe: .nan}}", "params.yaml:13: gate_data.max_loss.dedupe: ", ""),
        ("gate_data: {}", "gate_data: {source_loss: {x: 1}}", "params.yaml:13: gate_data.source_loss.x: ", "forum"),
        ("gate_data: {}", "gate_data: {licences: {forbid: [notrain]}}", "params.yaml:13: gate_data.", ""),
        ("blend: {}", "blend: {}\nblend: {seed: 1}", 'params.yaml:11: not YAML: found duplicate key "blend"', ""),
        ("    - name: web", "\t- name: web", "params.yaml:6: not YAML", "spaces"),
    ],
)  # fmt: skip
def test_a_fault_is_answered_with_its_line_its_key_and_what_is_right(old, new, says, hint):
    assert TEXT.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        parse_params(TEXT.replace(old, new))
    assert caught.value.message.startswith(says), caught.value.message
    assert hint in caught.value.hint, caught.value.hint
    assert "[type=" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ("license: MIT", "licence: MIT", "params.yaml:5: unknown key 'ingest.sources.0.licence'", "'license'"),
        ("{equals: en}", "{equal: en}", "params.yaml:8: unknown key 'ingest.sources.1.where.lang.equal'", "'equals'"),
        ("  sources:", "  source:", "params.yaml:2: unknown key 'ingest.source'", "'sources'"),
        ("blend: {}", "blend: {mix: {human: {shar: 1}}}", "params.yaml:10: unknown key 'blend.mix.human.shar'", "sha"),
        ("blend: {}", "blend: {5: x}", "params.yaml:10: unknown key 'blend.5'", "known keys: mix, "),
        ("blend: {}", "2020-01-01: x", "params.yaml:10: unknown key '2020-01-01'", "known keys: engine, "),
    ],
)  # fmt: skip
def test_an_unknown_key_is_answered_with_the_nearest(old, new, says, hint):
    assert TEXT.count(old) == 1
    with pytest.raises(UnknownKey) as caught:
        parse_params(TEXT.replace(old, new))
    assert caught.value.message == says
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "word\n", "a: \0\n", "a: &x [*x]\n", "d: 2020-99-99\n"])
def test_what_is_no_mapping_of_stages_is_a_config_error(text):
    with pytest.raises(ConfigError):
        parse_params(text)


@pytest.mark.parametrize("path", ['""', "[a.jsonl, '']", "' '"], ids=["empty", "in a list", "a blank"])
def test_an_empty_path_is_not_the_project_folder(path):
    with pytest.raises(ConfigError, match=r"ingest\.sources.*path: an empty path"):
        parse_params(f"ingest: {{sources: [{{name: a, path: {path}}}]}}")


def test_the_text_itself_is_right():
    assert [source.name for source in parse_params(TEXT).ingest.sources] == ["forum", "web"]


TRAINS = """
ingest: {sources: [{name: a, path: a.jsonl}]}
model: {where: {source: [WHERE]}}
train_sft: {}
LAST: {}
"""


def test_a_training_stage_whose_input_is_not_there_is_named_with_its_line():
    with pytest.raises(ConfigError, match=r"params\.yaml:5: train_grpo needs the block rollout"):
        parse_params(TRAINS.replace("WHERE", "a").replace("LAST", "train_grpo"))


def test_training_stages_are_those_that_have_a_block():
    assert parse_params(TRAINS.replace("WHERE", "a").replace("LAST", "evaluate")).training == ("train_sft", "evaluate")


def test_a_model_for_rows_of_a_source_that_is_not_declared_is_refused():
    with pytest.raises(ConfigError, match=r"model\.where\.source\.b: nothing of this name is declared"):
        parse_params(TRAINS.replace("WHERE", "b").replace("LAST", "evaluate"))
