# make demo      set up .venv, profile an example, print its lines and findings
# make check     set up, check the style and the types, run every test that starts no process; under a minute
# make test      the same, and every test
# make editors   once, about 3 minutes: the real editors that tests/editors drives
# make frameworks  once: transformers, accelerate, pytorch-lightning and diffusers, for tests/frameworks
# make samples   once: the public traces of HTA and of the TensorBoard plugin, for tests/trace
# make bench     the speed of everything beside its peers, 40 to 50 minutes; PARTS=import for one part
# make gpu-test  the tests that need a CUDA device
# make PYTHON=/path/to/python3.12 …  uses another interpreter (3.10 to 3.14)

PYTHON ?= python3
VENV ?= .venv
# Workers that run tests. Each starts processes of its own, so a few are enough.
JOBS ?= 2
GPU_JOBS ?= auto
DEMO ?= examples/quickstart/slow.py

bin := $(VENV)/bin
pip := $(bin)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# By file and group (tests/distribution.py): what they share is made once. In the order of tests/processes.py.
parallel := --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: demo check test frameworks samples bench gpu-test lint lint-types lint-style lint-extension lint-page editors readme pictures clean

demo: $(VENV)/.ready-examples
	$(bin)/warpline profile $(DEMO)

# Style and types are checked beside the tests; what they find is printed behind them.
# Python keeps the compiled tests for the next time, also where PYTHONDONTWRITEBYTECODE is set.
check: $(VENV)/.ready-dev node_modules/.package-lock.json
	@mkdir -p .cache
	@$(MAKE) --no-print-directory lint > .cache/lint.txt 2>&1 & lint=$$!; \
		PYTHONDONTWRITEBYTECODE= $(bin)/python -m pytest $(parallel) \
		-m "not process and not gpu and not editor"; tests=$$?; \
		wait $$lint || { cat .cache/lint.txt; exit 1; }; exit $$tests

# Editors and frameworks are heavy: `make editors frameworks` gets them. Without them their tests are left out,
# and it says so.
# Hundreds of processes import our modules, which are compiled once, also where PYTHONDONTWRITEBYTECODE is set.
test: lint
	@$(bin)/python -m compileall -q server/warpline
	@$(bin)/python tests/frameworks/installed.py || true
	@if tests/editors/install.sh --check; then marks="not gpu"; else marks="not gpu and not editor"; fi; \
		echo "$(bin)/python -m pytest $(parallel) -m \"$$marks\""; \
		$(bin)/python -m pytest $(parallel) -m "$$marks"

# Several workers share each GPU (tests/gpu/sharing.py). GPU_JOBS=0: one test after the other.
gpu-test: $(VENV)/.ready-dev
	$(bin)/python -m pytest --numprocesses $(GPU_JOBS) --dist loadfile --no-loadscope-reorder -rP \
		-m gpu tests/gpu

# The peers live in an environment of their own. HTA 0.5 fails on pandas 3.
bench: $(VENV)/.ready-dev .cache/peers/.ready
	-$(bin)/python tests/trace/samples.py
	$(bin)/python benchmarks/bench.py $(PARTS) --peers .cache/peers

.cache/peers/.ready: Makefile
	$(PYTHON) -m venv .cache/peers
	.cache/peers/bin/python -m pip --disable-pip-version-check install --quiet HolisticTraceAnalysis==0.5.0 'pandas<3' \
		torch-tb-profiler==0.4.3 jedi-language-server python-lsp-server ruff basedpyright esbonio
	touch $@

editors: node_modules/.package-lock.json
	tests/editors/install.sh

# What tests/frameworks runs; without them its tests are left out, and `make test` says so.
frameworks: $(VENV)/.ready-frameworks

samples: $(VENV)/.ready-dev
	$(bin)/python tests/trace/samples.py

# What takes longest comes first: two at a time, mypy beside the others.
lint: $(VENV)/.ready-dev node_modules/.package-lock.json
	@$(MAKE) --no-print-directory --jobs 2 lint-types lint-style lint-extension lint-page

lint-types:
	$(bin)/mypy --no-error-summary

lint-style:
	$(bin)/ruff format --check --quiet .
	$(bin)/ruff check --quiet .

# These two take half a minute of processor time, so they run only where something that they read has changed;
# a folder changes when a file in it is removed.
lint-extension: .cache/lint-extension
lint-page: .cache/lint-page

typescript := package.json package-lock.json node_modules/.package-lock.json

.cache/lint-extension: $(shell find extension) $(typescript)
	npm run --silent typecheck
	npm run --silent lint
	@mkdir -p .cache && touch $@

.cache/lint-page: $(shell find page server/warpline/html -not -path '*__pycache__*') $(typescript)
	npm run --silent page:check
	@mkdir -p .cache && touch $@

# The printed reports in README.md and examples/*/README.md, from runs on this machine.
readme: $(VENV)/.ready-examples
	$(bin)/python docs/print_reports.py

# All pictures in README.md and docs: sessions in VS Code, and one with the page of runs recorded on a GPU.
# About six minutes; needs `make editors frameworks` once. They replace those in docs/images when all of them are made, and not
# before. On a busy machine it takes longer, and the pictures show its times. Look at them before you commit them.
pictures: $(VENV)/.ready-dev node_modules/.package-lock.json
	tests/editors/install.sh --check
	@rm -rf .cache/pictures && mkdir -p .cache/pictures
	WARPLINE_PICTURES=1 WARPLINE_LIMIT_S=360 $(bin)/python -m pytest -m editor --reruns 1 tests/html/test_browser.py \
		"tests/editors/test_vscode.py::test_a_session[vscode-new]" tests/editors/test_vscode.py::test_a_newcomer \
		tests/editors/test_vscode.py::test_beside_the_code tests/editors/test_vscode.py::test_a_notebook \
		"tests/editors/test_vscode.py::test_a_library[transformers]" \
		|| { echo "make: docs/images is as it was, because a session failed (above)" >&2; exit 1; }
	@for picture in docs/images/*.png; do \
		test -s .cache/pictures/$${picture##*/} || { echo "make: no session made $$picture" >&2; exit 1; }; done
	cp .cache/pictures/*.png docs/images/

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
		|| { echo "make: $(PYTHON) is missing or older than 3.10; say PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(pip) --editable '.[$*]'
	touch $@

node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	touch $@

clean:
	rm -rf $(VENV) node_modules dist
