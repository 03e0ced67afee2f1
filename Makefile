# Everything starts here. `make test` and `make reproduce` set up what they need on a machine with Python, make and a C compiler.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: help setup reproduce test test-slow lint types lock clean

help:
	@echo "make setup      create $(VENV) from requirements.lock"
	@echo "make reproduce  run the example: the paper's exact numbers, and the picture in the README"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  everything, the slow tests too, with many more random networks"
	@echo "make lock       resolve requirements.lock anew (needs uv)"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'whorl needs Python 3.11 or newer, but this is ' + sys.version"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

reproduce: setup
	$(BIN)/python examples/first_light.py --out runs/first_light

test: setup lint types
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-slow: setup
	WHORL_EXAMPLES=thorough $(BIN)/python -m pytest -n auto --dist loadfile --timeout 3600

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/basedpyright

lock:
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group dev --all-extras --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) runs .pytest_cache .ruff_cache .hypothesis
