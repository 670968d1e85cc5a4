# Every target sets itself up in .venv; python3 and make are all that is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: reproduce test survival lint bench clean

reproduce: .venv/ready  ## the paper's toy tables in full, beside its figures, as a page to look at
	$(BIN)/kmixup reproduce toy --alpha-rule same

test: .venv/ready  ## the whole test suite
	$(BIN)/python -m pytest -n auto

survival: .venv/ready  ## the tests that kill drivers, workers and Ray nodes, for some minutes
	$(BIN)/python -m pytest -m survival

lint: .venv/ready  ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/ready  ## ratios against peers, measured in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,ray,tensorboard,bench,dev]'
	touch $@
