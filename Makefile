# `make` alone lists the targets.  Everything runs in .venv, which the first target to need it makes.

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROKER := $(VENV)/.broker
MONITORING := $(VENV)/.monitoring
PORT := 9092

.PHONY: help install run kafka test lint format bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY) $(BROKER) $(MONITORING) ## Create .venv with streamdedup and its tools (instant when nothing changed)

# The stamp is written last, so that an interrupted installation is done again.
$(READY): pyproject.toml constraints.txt
	@python=""; \
	for candidate in "$${PYTHON:-python3}" python3.13 python3.12 python3.11; do \
		if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
			>/dev/null 2>&1; then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "error: streamdedup needs Python 3.11 or newer with the venv module." >&2; \
		echo "Install it, or name it: make install PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi; \
	echo "Installing into $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[test,lint,bench]'
	@touch $@

# Java, Maven and Kafka's jars, and kustomize.  Where they cannot be had, the rest works all the same:
# without a broker no stamp, and the reason is told again next time.
$(BROKER): $(READY) streamdedup/testing/pom.xml
	@$(BIN)/python -m streamdedup.testing.kustomize || true
	@if $(BIN)/python -m streamdedup.testing.install; then touch $@; fi

# Prometheus and Alertmanager, which the tests of dashboard and alerts ask; in the same way.
$(MONITORING): $(READY) streamdedup/testing/monitoring.py
	@if $(BIN)/python -m streamdedup.testing.monitoring; then touch $@; fi

run: $(READY) ## Watch the service judge a news feed; KAFKA=host:9092 does it on a real broker
	@$(BIN)/streamdedup demo $(if $(KAFKA),--kafka $(KAFKA))

kafka: $(READY) $(BROKER) ## Start a Kafka broker on localhost:9092 for playing (PORT=9093 for another port)
	@$(BIN)/python -m streamdedup.testing --port $(PORT)

test: lint $(BROKER) $(MONITORING) ## Check style and types, then run every test
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY) ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict streamdedup

format: $(READY) ## Put the code into its standard form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) $(BROKER) ## Measure against other libraries, and on a real Kafka broker
	$(BIN)/python benchmarks/peers.py --plot out/peers.png
	$(BIN)/python benchmarks/kafka.py

clean: ## Remove .venv, caches and build results
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
