# Every target sets itself up in .venv; python3 and make are all that is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: reproduce test integrations versions survival lint bench docs dist clean

reproduce: .venv/ready  ## the paper's toy tables in full, beside its numbers, as a page
	$(BIN)/kmixup reproduce toy --alpha-rule same

test: .venv/ready  ## the whole test suite
	$(BIN)/python -m pytest -n auto

integrations: .venv/integrations  ## the tests against timm, torchvision, Lightning and the others
	$(BIN)/python -m pytest -n auto --integrations tests/integrations src/kmixup/integrations

versions: .venv/integrations  ## the same with the lowest and the newest versions, for some minutes
	$(BIN)/python tests/integrations/versions.py

survival: .venv/ready  ## the tests that kill drivers, workers and Ray nodes, for some minutes
	$(BIN)/python -m pytest -m survival

lint: .venv/ready  ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/ready  ## ratios against peers, measured in one run
	$(BIN)/python -m benchmarks

docs: .venv/docs  ## the site, strictly, into out/site: open index.html there
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: .venv/ready  ## wheel and source archive, and the wheel tried in an empty environment
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python tests/empty_environment.py dist/*.whl

clean:
	rm -rf .venv

.venv/ready: pyproject.toml constraints.txt src/kmixup/__init__.py  # which has the version
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,ray,bench,dev]'
	touch $@

.venv/integrations: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[integrations]'
	touch $@

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@
