# The commands of this repository; `make` lists them.

SHELL := /bin/bash
CYCLES ?= 2000
SEEDS ?= 20000
FROM ?= 0
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup build up test check bench torture simulate clean

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

clean: ## Remove what was built
	cargo clean
