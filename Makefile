# Everything starts here. `make test` and `make reproduce` set up what they need on a machine with Python, make and a C compiler.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: help setup reproduce test test-slow test-browser check-crate lint types lock clean

help:
	@echo "make setup      create $(VENV) from requirements.lock"
	@echo "make reproduce  the paper's three studies, audited, next to its numbers, into runs/paper"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  everything but the browser tests, the slow tests too, with many more random networks"
	@echo "make test-browser  the tests that drive a Chromium, which must be installed"
	@echo "make check-crate   let roc-validator read runs/paper, in an environment of its own"
	@echo "make lock       resolve requirements.lock anew (needs uv)"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'whorl needs Python 3.11 or newer, but this is ' + sys.version"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

reproduce: setup
	$(BIN)/whorl reproduce --out runs/paper

test: setup lint types
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not browser"

test-slow: setup
	WHORL_EXAMPLES=thorough $(BIN)/python -m pytest -n auto --dist loadfile --timeout 3600 -m "not browser"

test-browser: setup
	$(BIN)/python -m pytest -m browser --timeout 1200

check-crate: reproduce
	$(PYTHON) -m venv .venv-crate
	.venv-crate/bin/python -m pip install --quiet "roc-validator>=0.13"
	.venv-crate/bin/python tools/check_crate.py runs/paper \
		--context "$$($(BIN)/python -c 'import rocrate, pathlib; print(pathlib.Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld")')"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/basedpyright

lock:
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group dev --all-extras --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .venv-crate runs .pytest_cache .ruff_cache .hypothesis
