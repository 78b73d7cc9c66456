# The checks and measures of plimsoll. `make test` is what CI runs; it installs what the tests need where it may.
.PHONY: test lint unit e2e lab-test bench fuzz needs dist dist-test

CARGO ?= cargo
export CARGO_BUILD_JOBS ?= 2
# The property tests look at the same cases each time, so that CI says something about the change; another seed looks at
# others (make unit PROPTEST_RNG_SEED=2).
export PROPTEST_RNG_SEED ?= 1

test: needs lint unit lab-test

# Prose of the documentation and of all messages, format and clippy, warnings as errors.
lint:
	./scripts/check-prose-test
	./scripts/check-prose
	./scripts/messages-test
	./scripts/messages
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Unit, property, simulation, fuzz and end-to-end tests.
unit:
	@CARGO="$(CARGO)" ./scripts/test

# The sample services in lab/ (Go, Node.js), started for real.
lab-test:
	$(MAKE) -C lab test

# What the end-to-end tests need beyond the toolchains; installed where this user may.
needs:
	@./scripts/needs nginx go node python3 chromium openssl wrk ip sshd

# Reproduces the figures of docs/reference/benchmarks.md; takes long, and wants a quiet machine.
bench:
	$(CARGO) build --release --workspace --locked
	./bench/run

# Every fuzz target for a minute; needs a nightly compiler and cargo-fuzz (fuzz/README.md).
fuzz:
	./scripts/fuzz

# The packages of a release, in dist/: tarball, wheel, .deb, container image. Takes many minutes.
dist:
	./scripts/dist

# Installs each of them into a root of its own and runs it there.
dist-test:
	./scripts/dist-test
