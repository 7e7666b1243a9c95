# The commands of this repository; `make` lists them.

SHELL := /bin/bash
CYCLES ?= 2000
SEEDS ?= 20000
ROUNDS ?= 20
FROM ?= 0
ARGS ?=
# Where there are properties that are tried with generated inputs.
PROPERTIES := package(object) | package(schema) | package(cel) | package(scheduler) | package(controllers) | binary(model)

.DEFAULT_GOAL := help
.PHONY: help setup build up test check bench torture simulate explore clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what building and testing need
	@scripts/setup test

build: ## Build everything in release mode
	@scripts/setup build
	cargo build --release --workspace

up: ## Install what is missing, build, and run a cluster (ARGS="--nodes simulated=3")
	@scripts/setup build
	cargo run --release --package setpoint --bin setpoint -- up $(ARGS)

# Documentation examples are compiled only where there are any: each costs a build of its own.
test: ## Install what is missing and run every test
	@scripts/setup test
	cargo nextest run --workspace
	@if grep -rqE '^\s*//[/!] ```($$|rust|no_run|should_panic)' crates/*/src; then cargo test --workspace --doc; fi

check: ## Formatting, lints, the rules of the repository, dependencies
	@scripts/setup build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "cargo-deny is not installed: advisories and sources unchecked; tidy has checked the licences"; fi

bench: ## Run the benchmarks; the reports, with plots, are in target/bench
	@scripts/setup test
	cargo bench --workspace --bench '*' --no-fail-fast

torture: ## Kill and recover the store, CYCLES=2000 times
	@scripts/setup build
	cargo run --release --package testkit --bin torture -- --cycles $(CYCLES)

simulate: ## Run the control plane under faults from SEEDS=20000 seeds, starting at FROM=0
	@scripts/setup build
	cargo run --release --package testkit --bin simulate -- --seeds $(SEEDS) --from $(FROM)
	for life in 0 1 2 3; do cargo run --release --package testkit --bin simulate -- --crashes $$life || exit; done

explore: ## Try every property with inputs of its own, ROUNDS=20 times
	@scripts/setup build
	for round in $$(seq $(ROUNDS)); do \
	    seed=$$RANDOM$$RANDOM; echo "round $$round of $(ROUNDS): PROPTEST_RNG_SEED=$$seed"; \
	    PROPTEST_RNG_SEED=$$seed cargo nextest run --workspace -E '$(PROPERTIES)' || exit; \
	done

clean: ## Remove what was built
	cargo clean
