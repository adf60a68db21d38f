# Everything here works from a fresh clone with Python >= 3.11 and make, nothing else installed.

VENV := .venv
BIN  := $(VENV)/bin
PYTHON ?=
WORKERS ?= auto

# One process per core instead of threads: two BLAS threads on a busy core wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# Hundreds of processes are started here: what Python compiles, it keeps, as numba does.
export PYTHONDONTWRITEBYTECODE :=
# What tests and documents call by name is what is installed here.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-rehearsal check style types layers docs docs-check notebooks notebooks-check \
    site tour oracle torchrec browser wheel bench mutants promise promise-torch held-out fit-coverage \
    fragment-against-replay rehearse rehearse-ray campaign reproduce clean

help:  ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.has-run  ## Set up what running takes, then simulate the first scenario
	@$(BIN)/cprsim run scenarios/quickstart.yaml

# All tests of a file run in one process: what they share is made once.
test: $(VENV)/.has-test  ## Run the tests, one process per core (WORKERS=1 for one)
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile -q -m "not long"

test-long: $(VENV)/.has-test  ## Run the tests that take their time: damaged inputs, kills, random scenarios
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m long --ignore=tests/rehearsal

# They wait for real processes more than they work, and are judged on a machine that does nothing else.
test-rehearsal: $(VENV)/.has-test  ## Run the long tests of rehearsals (about 5 minutes, not part of check)
	@$(BIN)/pytest -q -m long tests/rehearsal

check: $(VENV)/.has-check  ## Everything that has to hold before a commit
	@$(MAKE) --no-print-directory --jobs=$(CORES) --output-sync style types layers site
	@$(MAKE) --no-print-directory test test-long docs-check notebooks-check
	@echo "make check: all good"

style: $(VENV)/.has-test
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .

types: $(VENV)/.has-test
	@$(BIN)/mypy

layers: $(VENV)/.has-test
	@$(BIN)/lint-imports --no-logo

docs: $(VENV)/.has-test  ## Bring the outputs and figures shown in the documentation up to date
	@$(BIN)/cog -I docs -r $(COGGED)
	@mkdir -p docs/figures
	@cp "$(call result,quickstart)/overhead.png" docs/figures/quickstart-overhead.png
	@cp "$(REPLAYED)/timeline.png" docs/figures/quickstart-p95.png
	@cp "$(SELECTED)/pareto.png" docs/figures/criteo-kaggle-pareto.png
	@$(BIN)/python docs/tour.py

docs-check: $(VENV)/.has-test
	@printf '%s\n' $(COGGED) | xargs -n 1 -P $(CORES) \
	    $(BIN)/cog -I docs --check --check-fail-msg="run: make docs"
	@cmp "$(call result,quickstart)/overhead.png" docs/figures/quickstart-overhead.png \
	    || { echo "run: make docs"; exit 1; }
	@cmp "$(REPLAYED)/timeline.png" docs/figures/quickstart-p95.png \
	    || { echo "run: make docs"; exit 1; }
	@cmp "$(SELECTED)/pareto.png" docs/figures/criteo-kaggle-pareto.png \
	    || { echo "run: make docs"; exit 1; }
	@$(BIN)/python docs/tour.py --check

# Strict: a warning, a lost link or anchor, or a page that is in no menu ends it.
site: $(VENV)/.has-check  ## Build the documentation as a site, in build/site, which opens without a server
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

tour: $(VENV)/.has-test  ## Make the recording at the top of the README from the outputs in the documents
	@$(BIN)/python docs/tour.py

notebooks: $(VENV)/.has-check  ## Run the notebooks and store their outputs
	@$(NOTEBOOKS) | xargs -n 1 -P $(CORES) $(BIN)/python notebooks/remake.py

notebooks-check: $(VENV)/.has-check
	@$(NOTEBOOKS) | xargs -n 1 -P $(CORES) $(BIN)/python notebooks/remake.py --check

oracle: $(VENV)/.has-oracle  ## Hold the training kernel to PyTorch, do what docs/own-model.md says (installs its CPU build)
	@$(BIN)/pytest -q -m "not long" tests/kernel/test_torch.py tests/torch

torchrec: $(VENV)/.has-oracle  ## Try TorchRec's tables in `cprsim.torch` (installs its CPU build; outside CI)
	@$(BIN)/pip install -q -c constraints.txt $(TORCHREC_NEEDS)
	@$(BIN)/pip install -q --no-deps torchrec==1.9.2
	@$(BIN)/pytest -q -n 0 tests/torch/test_torchrec.py

browser: $(VENV)/.has-browser tests/present/node_modules/.installed  ## Try the report in a browser (installs Chromium where root may)
	@command -v chromium > /dev/null || $(INSTALL_CHROMIUM)
	@CPRSIM_BROWSER=required $(BIN)/pytest -q tests/present/test_browser.py

wheel: $(VENV)/.has-test  ## Build the package, try its wheel in an empty environment (about 3 minutes)
	@tests/installed/try_wheel $(BIN)/python

bench: $(VENV)/.has-run  ## Measure the simulator's speed
	@for script in benchmarks/bench_*.py; do $(BIN)/python "$$script" || exit 1; done

mutants: $(VENV)/.has-test  ## Count the mutants of four rooms that tests notice (about an hour; resumes)
	@$(BIN)/python -m benchmarks.mutants

rehearse: $(VENV)/.has-run  ## Run a scenario on real processes beside its prediction (about 3 minutes)
	@$(BIN)/cprsim rehearse scenarios/rehearsal.yaml --strategies full,partial,cpr,cpr-mfu \
	    --set job.useful='20 s' --set kernel.samples=66000

# Ray is large: it has an environment of its own, beside the others.
rehearse-ray:  ## Rehearse on two nodes of Ray in two network namespaces (root; about 3 minutes)
	@$(MAKE) --no-print-directory VENV=.venv-ray .venv-ray/.has-ray
	@.venv-ray/bin/pytest -q -m long tests/rehearsal/test_ray.py

campaign: $(VENV)/.has-run  ## Rehearse ten failure traces, and one run of 20 minutes (up to 3 hours on an idle machine; resumes)
	@$(BIN)/python -m benchmarks.rehearsal_campaign

promise: $(VENV)/.has-run  ## Hold the selector's intervals to losses measured on fresh data (up to 90 minutes)
	@$(BIN)/python benchmarks/promise.py

promise-torch: $(VENV)/.has-oracle  ## The same of a PyTorch model of one's own (says its cost first)
	@$(BIN)/python benchmarks/promise_torch.py

held-out: $(VENV)/.has-oracle  ## Hold predicted losses to runs that took no part in a fit (35 CPU minutes; real clicks by CPRSIM_DATA)
	@$(BIN)/python benchmarks/held_out.py

fit-coverage: $(VENV)/.has-test  ## Coverage of the intervals of fits and rates of their warnings, on simulated fleets (KINDS=families: these alone)
	@$(BIN)/python -m benchmarks.fit_coverage 400 results/fit-coverage.json $(KINDS)

fragment-against-replay: $(VENV)/.has-run  ## Hold fragments of fits to replays of their logs (needs CPRSIM_DATA)
	@$(BIN)/python -m benchmarks.fragment_against_replay

reproduce: $(VENV)/.has-run  ## Make the paper's results again and keep them in results/reproduction
	@$(BIN)/cprsim reproduce --keep

clean:  ## Remove the virtual environment and every cache; results stay
	@rm -rf $(VENV) $(VENV).unfinished .venv-ray build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .import_linter_cache tests/present/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

CORES = $$(getconf _NPROCESSORS_ONLN)

# The last takes longest, and begins first.
NOTEBOOKS = printf '%s\n' notebooks/*.ipynb | sort -r

# Files with blocks that cog fills with the output of a command, those that take longest first.
COGGED := docs/choosing-a-system.md docs/systems.md docs/outages-to-dollars.md docs/first-scenario.md docs/staleness.md docs/concepts.md docs/start.md README.md docs/reproduction.md docs/fitting.md docs/fitting-costs.md docs/sweeps.md docs/planning.md docs/python.md docs/own-model.md docs/shadowsync.md docs/rehearsal.md

# Folder of a scenario's result; simulates only where it is not there yet.
result = $$($(BIN)/cprsim run scenarios/$(1).yaml --json \
    | $(BIN)/python -c 'import json, sys; print(json.load(sys.stdin)["results"])')

# Folder of the selection that the README shows, likewise.
SELECTED = $$($(BIN)/cprsim select scenarios/criteo-kaggle.yaml --max-auc-loss 0.0005 --json \
    | $(BIN)/python -c 'import json, sys; print(json.load(sys.stdin)["results"])')

# Folder of the replication that the README shows, likewise.
REPLAYED = $$($(BIN)/cprsim run scenarios/quickstart.yaml --replay p95 --json \
    | $(BIN)/python -c 'import json, sys; print(json.load(sys.stdin)["results"])')

# Debian's own browser; nothing else is downloaded by a browser test.
INSTALL_CHROMIUM = { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
    || { echo "make browser needs chromium: install it, or run this as root on Debian" >&2; exit 1; }; \
    echo "Installing chromium (once)"; \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core > /dev/null; }

# The rules of accessibility, at the version of package-lock.json.
tests/present/node_modules/.installed: tests/present/package.json tests/present/package-lock.json
	@command -v npm > /dev/null || { echo "make browser needs npm: install it" >&2; exit 1; }
	@echo "Installing axe-core with the version of tests/present/package-lock.json (once)"
	@npm --prefix tests/present ci --silent
	@touch $@

TORCHREC_NEEDS := fbgemm-gpu-cpu==1.8.0 tensordict==0.15.3 torchmetrics==1.0.3 pyre-extensions==0.0.32 tqdm

# ------------------------------------------------------------------------------ the environment
# .venv/.has-run, .has-test and .has-check say what is installed; each holds until pyproject.toml
# or constraints.txt changes. `.venv.unfinished` stands while an installation goes on and names its
# process: where an earlier one was cut off, the next begins afresh.

EXTRAS_run   := .
EXTRAS_test  := .[dev]
EXTRAS_check := .[dev,notebooks,site]
EXTRAS_oracle := .[dev,torch]
EXTRAS_browser := .[dev,browser]
EXTRAS_ray := .[dev,ray]

COVERS_test  := run
COVERS_check := run test
COVERS_oracle := run test
COVERS_browser := run test
COVERS_ray := run test

$(VENV)/.has-%: pyproject.toml constraints.txt
	@if [ -e $(VENV).unfinished ]; then \
	    if kill -0 $$(cat $(VENV).unfinished) 2> /dev/null; then \
	        echo "Another make is installing here; if not, remove $(VENV).unfinished" >&2; exit 1; \
	    fi; \
	    rm -rf $(VENV); \
	fi
	@echo $$PPID > $(VENV).unfinished
	@if [ ! -x $(BIN)/python ]; then \
	    for python in $(PYTHON) python3.11 python3 python3.12 python3.13 python; do \
	        if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; \
	        then found=$$python; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "cprsim needs Python 3.11 or later; none of $(PYTHON) python3.11 python3 is." >&2; \
	        echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	        rm -f $(VENV).unfinished; exit 1; \
	    fi; \
	    echo "Making $(VENV) with $$("$$found" --version)"; \
	    "$$found" -m venv $(VENV); \
	fi
	@echo "Installing $(EXTRAS_$*) with the versions of constraints.txt (once, a minute or two)"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile \
	    --constraint constraints.txt --editable "$(EXTRAS_$*)"
	@rm -f $(VENV).unfinished
	@touch $@ $(addprefix $(VENV)/.has-,$(COVERS_$*))
