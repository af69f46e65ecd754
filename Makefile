# `make help` says what one can do. The machine needs python3 (3.11 or newer), git and make; the rest goes into .venv.

PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
NOTEBOOKS = $(sort $(patsubst notebooks/%.py,%,$(wildcard notebooks/[0-9]*.py)))
BIN := $(CURDIR)/.venv/bin

export PATH := $(BIN):$(PATH)
export PYTHONPATH :=
export OMP_NUM_THREADS := 1

.PHONY: help setup repro test smoke lab book lint lock clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

setup: .venv/.ready ## create .venv with the pinned versions (3 min; others call it, and it runs once)
	@:

.venv/.ready: requirements.lock pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py

repro: setup ## execute all notebooks on the committed results, train what is missing, report what differs (10 min)
	@mkdir -p build && touch build/repro-started
	@$(BIN)/psrl sweep
	@$(BIN)/dvc repro train theory filmstrip film levels
	@$(BIN)/dvc repro --force --single-item $(NOTEBOOKS)
	@$(BIN)/psrl report --since build/repro-started

test: setup ## lint, tests, notebooks at small scale, smoke (15 min)
	@$(BIN)/python tools/check.py

smoke: setup ## the whole pipeline at toy scale, from training to figures, in build/smoke (4 min)
	@$(BIN)/python tools/smoke.py

lab: setup ## open JupyterLab at the first notebook
	@$(BIN)/jupyter lab notebooks/$(firstword $(NOTEBOOKS)).ipynb

book: setup ## build the HTML book of all notebooks in build/book (1 min)
	@$(BIN)/python book/build.py

lint: setup ## ruff, without changing anything (1 s)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

lock: setup ## resolve pyproject.toml's ranges anew into requirements.lock and environment.yml (2 min)
	@$(BIN)/python tools/lock.py

clean: ## remove what can be made again, except .venv and checkpoints
	@rm -rf build dvc_plots .pytest_cache .ruff_cache .hypothesis
