# One runner. `make demo` and `make test` do all the set-up they need.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
ROOMS := steward collector sql analytics enforcer dashboard
ARGS ?=

.PHONY: help setup demo test check format gpu bench docs lock wheel cluster-binaries

help: ## Show this list.
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

setup:
	@deploy/setup.sh venv

demo: setup ## Build a warehouse from a simulated fleet, print its health, serve the overview (ARGS=--exit stops before).
	@$(BIN)/steward demo $(ARGS)

test: setup ## Install what the tests need, then run all of them (ARGS names some).
	@for part in browser compiler prometheus focus; do deploy/setup.sh $$part || exit 1; done
	@deploy/run_tests.sh $(ARGS)

cluster-binaries: ## Build the programs of the test cluster, once (or take them from KUBEBUILDER_ASSETS).
	@deploy/cluster_binaries.sh etcd kubernetes kwok kueue jobset kuberay training

check: setup ## Format, lint, types, imports, SQL.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --disable-progress-bar sql

format: setup ## Format Python and SQL, and mend what the linters can.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/sqlfluff fix --disable-progress-bar sql

gpu: setup ## Read a real card, every signal; without one say so.
	@$(BIN)/python -m deploy.gpu_smoke

bench: setup ## Print each benchmark's ratio against its baseline.
	@deploy/setup.sh prometheus && deploy/setup.sh compiler && deploy/setup.sh cluster
	@for bench in benchmarks/bench_*.py; do $(BIN)/python "$$bench" || exit 1; done

docs: setup ## Write the generated parts of docs/ anew.
	$(BIN)/python -m steward.manual > docs/cli.md
	$(BIN)/steward settings schema --output docs/settings.schema.json
	$(BIN)/steward settings schema --format markdown --output docs/settings.md

lock: setup ## Resolve the dependencies anew into requirements.lock.
	uv pip compile -q pyproject.toml --all-extras --group dev --universal --upgrade \
		--generate-hashes --no-annotate --no-header -o requirements.lock

wheel: setup ## Build the wheel into dist/.
	@rm -rf dist && $(BIN)/python -m build -q --wheel
