# One command runs, one command tests: `make demo`, `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Each play is one process with one BLAS thread; test workers follow the cores, with one more
# for those that wait for programs.
export OPENBLAS_NUM_THREADS ?= 1
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Test workers, and the programs that tests start, find what was compiled before.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint compiled browser broker plotly results bench soak fuzz docs clean
.PHONY: lowest newest pythons digests mutants

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(VENV)/pip: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@touch $@

$(VENV)/run: pyproject.toml $(VENV)/pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# The others are dependency groups of pyproject.toml, which pip 25.1 and later install.
$(VENV)/%: pyproject.toml $(VENV)/pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group $*
	@touch $@

demo: $(VENV)/run  ## Set up and play the first scenario to a finished table and a study
	@$(BIN)/sparq-sim run synthetic --out studies/demo --into

lint: $(VENV)/test  ## Check format, lint, imports and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/mypy

# Python compiles all tests once while mypy, which uses one core, checks types: otherwise each
# worker would. What is wrong with them is told by the tests.
compiled: $(VENV)/test
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true

test: $(VENV)/test  ## Lint, types and tests
	@$(MAKE) --no-print-directory -j 2 lint compiled
	@$(BIN)/pytest -n $(WORKERS)

soak: $(VENV)/test  ## Run the slow statistical and soak tests
	@$(BIN)/pytest -n auto -m slow

fuzz: $(VENV)/test  ## Make 10,000 scenario files wrong, check them, and play 1,000
	@$(BIN)/python -m tests.fuzz --seed 0

# Environments of their own, of the versions at the ends of what pyproject.toml permits. uv, which
# can choose the lowest, comes from the registry as all else does.
TESTS ?= tests
.venv-lowest/run: RESOLUTION := lowest-direct
.venv-newest/run: RESOLUTION := highest
.venv-%/run: pyproject.toml
	@rm -rf .venv-$*
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.venv-$*/bin/uv pip install --quiet --python .venv-$*/bin/python --resolution $(RESOLUTION) \
	  --editable ".[all]" --group tests
	@touch $@

lowest: .venv-lowest/run  ## Run the tests with the lowest versions that are permitted
	@.venv-lowest/bin/uv pip list --quiet --python .venv-lowest/bin/python
	@.venv-lowest/bin/pytest -n $(WORKERS) $(TESTS)

newest:  ## Run the tests with the newest versions that are permitted
	@rm -rf .venv-newest
	@$(MAKE) --no-print-directory .venv-newest/run
	@.venv-newest/bin/uv pip list --quiet --python .venv-newest/bin/python
	@.venv-newest/bin/pytest -n $(WORKERS) $(TESTS)

# What differs between Pythons is met by the demo, the digests and these rooms.
PYTHONS ?= 3.11 3.12 3.13 3.14
ROOMS ?= tests/project/test_digests.py tests/simulation tests/scenario tests/journal
pythons:  ## Run the demo and some rooms of tests with each Python that is here
	@missing=""; for version in $(PYTHONS); do \
	  found=""; for each in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
	    if $$each -c "" 2>/dev/null; then found=$$each; break; fi; \
	  done; \
	  if test -z "$$found"; then missing="$$missing $$version"; continue; fi; \
	  echo "Python $$version: $$found"; \
	  $(MAKE) --no-print-directory .venv-$$version/run PYTHON=$$found RESOLUTION=highest || exit 1; \
	  .venv-$$version/bin/sparq-sim run synthetic --set replications=2 --set rounds=30 \
	    --out studies/python-$$version --into --no-report --quiet || exit 1; \
	  .venv-$$version/bin/pytest -n $(WORKERS) $(ROOMS) || exit 1; \
	done; test -z "$$missing" || echo "Not here, and not tried:$$missing"

digests: $(VENV)/test  ## Play the recorded digests again, and compare
	@$(BIN)/python -m reproduce.digests

# Another SEED draws other mutants; measurements and logs are kept in .mutants.
SAMPLE ?= 150
SEED ?= 0

mutants: $(VENV)/test $(VENV)/mutants  ## Plant mistakes in the core, and list those that no fast test notices
	@$(BIN)/python -m mutants --sample $(SAMPLE) --seed $(SEED)

browser:  ## Install Debian's Chromium, for the tests of the report (as root)
	@apt-get update -qq && apt-get install -y -qq chromium chromium-driver

broker:  ## Install Debian's mosquitto, for the tests over MQTT 5 (as root)
	@apt-get update -qq && apt-get install -y -qq mosquitto

plotly: $(VENV)/test  ## Fetch the script that draws charts in pages anew (from npm)
	@$(BIN)/python -m reproduce.plotly

results: $(VENV)/test $(VENV)/bench  ## Make every figure and table of README and docs anew
	@$(BIN)/python -m reproduce --fresh

bench: $(VENV)/bench  ## Measure ratios against peers
	@for script in $(filter-out %/__init__.py %/compare.py,$(wildcard benchmarks/*.py)); do \
	  $(BIN)/python -m benchmarks.$$(basename $$script .py) || exit 1; done

docs: $(VENV)/docs  ## Build the documentation
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## Remove the environments and everything built
	rm -rf $(VENV) .venv-* build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf .mutants
