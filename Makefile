# make demo: everything set up, then a real training run on this machine's CPU
# make test: everything set up, then all checks and tests
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell tools/find-python)
BIN := .venv/bin
STAMP := .venv/.installed
UV := $(shell command -v uv 2>/dev/null || echo .bootstrap/bin/uv)
# Two workers, each file on one: training tests of a file share a run.
PYTEST_ARGS ?= -n 2 --dist loadfile

export UV_PYTHON_DOWNLOADS := never

.PHONY: help demo setup test lint types unit core conformance bench clean

help:
	@grep -E '^# make' Makefile | sed 's/^# //'

demo: setup
	$(BIN)/python -m megawrap model=llama_tiny parallel=tp2 cluster=cpu data=sample

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "megawrap trains on Python 3.12 or 3.13, and neither is here: install one (Debian 13 and Ubuntu 24.04: apt-get install python3 python3-venv; elsewhere: pyenv install 3.12)" >&2; exit 1; }
	@test -x "$(UV)" || python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .bootstrap uv
	$(UV) venv --quiet --allow-existing --python "$(PYTHON)" .venv
	VIRTUAL_ENV=$(CURDIR)/.venv $(UV) pip install --quiet --compile-bytecode --constraint constraints.txt --editable '.[cpu,dev]'
	touch $(STAMP)

test: lint types unit core

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/python -m pytest --cov --cov-report=term $(PYTEST_ARGS)

# The light core on its oldest Python, where one is here: no torch, no Megatron.
OLDEST := $(shell tools/find-python 3.10)

core: setup
ifneq ($(OLDEST),)
	$(UV) venv --quiet --allow-existing --python "$(OLDEST)" .venv-core
	VIRTUAL_ENV=$(CURDIR)/.venv-core $(UV) pip install --quiet --compile-bytecode --constraint constraints.txt --editable . pytest
	.venv-core/bin/python -m pytest -q -m 'not train and not system' tests/config tests/cli tests/megatron tests/hardware tests/preprocess tests/rccl_tests
else
	@echo "no Python 3.10 here: the light core was not tested on it"
endif

# make conformance: CASES=5000 configurations and every argument changed alone, judged here and by the real Megatron:
# the installed megatron-core and the source trees of MEGAWRAP_CHECKOUTS=DIR1:DIR2
CASES ?= 5000
COMPARE := tests/conformance/conformance_run.py

conformance: setup
	status=0; \
	for tree in "" $$(tr : ' ' <<< "$${MEGAWRAP_CHECKOUTS:-}"); do \
	    $(BIN)/python $(COMPARE) $${tree:+--tree "$$tree"} --cases $(CASES) || status=1; \
	    $(BIN)/python $(COMPARE) $${tree:+--tree "$$tree"} --singles || status=1; \
	done; exit $$status

# make bench: the benchmarks, with what they showed in benchmarks/README.md
bench: setup
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/rules.py
	$(BIN)/python benchmarks/data_tools.py

# make clean: remove what make made, runs excepted
clean:
	rm -rf .venv .venv-core .bootstrap .mypy_cache .pytest_cache .ruff_cache .coverage dist build
