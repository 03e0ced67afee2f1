# Everything starts here. `make test` and `make reproduce` set up what they need on a machine with Python, make and a C compiler.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/paper
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: help setup reproduce test test-pythons test-slow test-browser check-crate check-release mutants docs bench lint types lock clean

help:
	@echo "make setup      create $(VENV) from requirements.lock"
	@echo "make reproduce  the paper's three studies, audited, next to its numbers, into $(RUN)"
	@echo "make test       lint, types and tests"
	@echo "make test-pythons  make test and make reproduce with every supported Python on this machine (an hour)"
	@echo "make test-slow  everything but the browser tests, the slow tests too, with many more random networks"
	@echo "make test-browser  the tests that drive a Chromium, which must be installed"
	@echo "make check-crate   let roc-validator read runs/paper, in an environment of its own"
	@echo "make check-release  what others wrote to check a package, each in an environment of its own (docs/about/release.md)"
	@echo "make mutants    change the mathematics at random in a copy, and see whether the tests notice (benchmarks/mutants.md; an hour)"
	@echo "make docs       the documentation, into docs/_build/html"
	@echo "make bench      the benchmarks that take under two minutes each, on one page: benchmarks/results/bench.md"
	@echo "make lock       resolve requirements.lock anew (needs uv)"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'whorl needs Python 3.11 or newer, but this is ' + sys.version"
	@echo "Creating the environment $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "Installing $$(grep -c '==' requirements.lock) locked packages; this takes one to two minutes and prints nothing"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo "Installing whorl"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

reproduce: setup
	$(BIN)/whorl reproduce --out $(RUN)

test: setup lint types
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow and not browser"

test-pythons:
	$(PYTHON) tools/pythons.py $(PYTHONS)

test-slow: setup
	WHORL_EXAMPLES=thorough $(BIN)/python -m pytest -n auto --dist loadfile --timeout 3600 -m "not browser"

test-browser: setup
	$(BIN)/python -m pytest -m browser --timeout 1200

check-crate: reproduce
	$(PYTHON) -m venv .venv-crate
	.venv-crate/bin/python -m pip install --quiet "roc-validator>=0.13"
	.venv-crate/bin/python tools/check_crate.py runs/paper \
		--context "$$($(BIN)/python -c 'import rocrate, pathlib; print(pathlib.Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld")')"

check-release: setup
	$(PYTHON) tools/check_release.py --developer $(BIN)/python

mutants: setup
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet "cosmic-ray>=8.7"
	rm -rf .mutants && mkdir .mutants && git archive HEAD | tar -x -C .mutants
	PATH="$(CURDIR)/.venv-mutants/bin:$$PATH" .venv-mutants/bin/python tools/mutate.py .mutants --python $(CURDIR)/$(BIN)/python --part core
	PATH="$(CURDIR)/.venv-mutants/bin:$$PATH" .venv-mutants/bin/python tools/mutate.py .mutants --python $(CURDIR)/$(BIN)/python --part audit

docs: setup
	@echo "Running every example on the pages while building them; this takes a few minutes"
	$(BIN)/sphinx-build -b html -W --keep-going -n -E docs docs/_build/html
	@echo "The site is ready: open docs/_build/html/index.html"

bench: setup
	$(BIN)/python benchmarks/page.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/basedpyright --pythonpath $(BIN)/python

lock:
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group dev --all-extras --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf docs/_build $(VENV) .venv-3.* .venv-crate .venv-release .venv-mutants .mutants dist runs .pytest_cache .ruff_cache .hypothesis
