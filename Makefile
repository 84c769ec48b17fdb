# make test      lint, types and tests
# make campaign  fuzz every harness: SECONDS of wall time over JOBS processes
# make nightly   the campaign and everything else that runs at night: MINUTES over JOBS processes
# make docs      write the parts of docs/ that are made from the code and the recordings
# make package   build what is uploaded of the engine, into build/dist
#
# All make their own virtual environment from requirements.lock. Another interpreter gets
# another environment: make PYTHON=python3.12 test

# The first that runs: a version manager may have a command for each and let only some of them run.
DEFAULT_PYTHON := $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c '' 2>/dev/null && echo $$python && break; done)

ifeq ($(origin PYTHON),undefined)
PYTHON := $(DEFAULT_PYTHON)
VENV := .venv
else
VENV := .venv-$(notdir $(PYTHON))
endif

SECONDS = 60
MINUTES = 60
JOBS = 2
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test lint types unit campaign nightly docs package environment lock clean

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/zizmor --offline --quiet --no-progress .github/workflows

types: $(STAMP)
	$(BIN)/mypy

# Compiled code is kept, whatever the environment says: without it each of the workers, and of the
# hundreds of processes that tests start, compiles all that it imports. The slow tests stand together
# and differ a hundredfold, so one worker takes over what the other has not begun.
unit: export PYTHONDONTWRITEBYTECODE =
unit: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

campaign: $(STAMP)
	$(BIN)/python -m ci campaign --seconds $(SECONDS) --jobs $(JOBS)

nightly: $(STAMP)
	$(BIN)/python -m ci nightly --minutes $(MINUTES) --jobs $(JOBS)

docs: $(STAMP)
	@$(BIN)/python docs/architecture.py --update
	@$(BIN)/python -m peers.recorder.refusals --update

# Nothing of an earlier version may stand beside what is uploaded.
package: $(STAMP)
	rm -rf build/dist
	cd engine && $(CURDIR)/$(BIN)/hatchling build -d $(CURDIR)/build/dist

environment: $(STAMP)

# The stamp is written last, so that an install that was cut short is done again.
$(STAMP): requirements.lock setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python found: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# Needs uv, which nothing else here does. Read the difference before committing it.
lock:
	uv pip compile --universal --generate-hashes --all-extras --no-annotate \
		--python-version 3.11 --custom-compile-command 'make lock' --output-file requirements.lock setup.cfg

clean:
	rm -rf build .mypy_cache .pytest_cache .ruff_cache
