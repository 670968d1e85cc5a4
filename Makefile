# Every target sets itself up in $(VENV); python3 and make are all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: reproduce test data pythons integrations versions survival lint bench docs browser dist clean

reproduce: $(VENV)/ready  ## the paper's toy tables in full, next to its numbers, as a page
	$(BIN)/kmixup reproduce toy --alpha-rule same

test: $(VENV)/ready  ## the whole test suite
	$(BIN)/python -m pytest -n auto

data: $(VENV)/ready  ## the tests that need the data files in the folder KMIXUP_DATA
	$(BIN)/python -m pytest -m data tests/lab/data

pythons:  ## the whole test suite on the newest Python that every dependency has wheels for
	$(MAKE) test PYTHON="$$(.ci/newest-python)" VENV=.venv-newest

integrations: $(VENV)/integrations  ## the tests against timm, torchvision, Lightning and the others
	$(BIN)/python -m pytest -n auto --integrations tests/integrations src/kmixup/integrations

versions: $(VENV)/integrations  ## the same with the lowest and the newest versions, for some minutes
	$(BIN)/python tests/integrations/versions.py

survival: $(VENV)/ready  ## the tests that kill drivers, workers and Ray nodes, for some minutes
	$(BIN)/python -m pytest -m survival -rs  # a skip is not a pass: each is named with its reason

lint: $(VENV)/ready  ## style, types, and no function with a complexity above 15
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	! $(BIN)/radon cc -s src docs benchmarks | grep -E '^ +[FM] .*\((1[6-9]|[2-9][0-9])\)'

bench: $(VENV)/ready  ## ratios against peers, measured in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/docs  ## the site, strictly, into out/site: open index.html there
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

browser: docs  ## the site's figures and search in Chromium; skipped without it
	$(BIN)/python -m pytest -m browser -rs tests/test_browser.py

dist: $(VENV)/ready  ## wheel and source archive; both and the clone tried in empty environments
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python tests/empty_environment.py dist/*.whl dist/*.tar.gz .

clean:
	rm -rf .venv .venv-newest

$(VENV)/ready: pyproject.toml constraints.txt src/kmixup/__init__.py  # which has the version
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,ray,bench,dev]'
	touch $@

$(VENV)/integrations: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[integrations]'
	touch $@

$(VENV)/docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@
