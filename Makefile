# The checks and measures of plimsoll. `make test` is what CI runs; it installs what the tests need where it may.
.PHONY: test lint clippy unit e2e lab-test casebook casebook-short docs docs-run bench fuzz needs dist dist-test release \
	fleet-kubernetes

CARGO ?= cargo
export CARGO_BUILD_JOBS ?= 2
# The property tests look at the same cases each time, so that CI says something about the change; another seed looks at
# others (make unit PROPTEST_RNG_SEED=2).
export PROPTEST_RNG_SEED ?= 1

# Lint and the tests in lab/ run while the Rust tests compile.
test:
	@MAKE="$(MAKE)" ./scripts/test-all

# Prose of the documentation and of all messages, and format. Clippy lints as it compiles the tests (unit).
lint:
	./scripts/check-prose-test
	./scripts/check-prose
	./scripts/messages-test
	./scripts/messages
	./scripts/check-translations-test
	./scripts/check-translations
	./casebook/finding-test
	$(CARGO) fmt --all --check

# Clippy alone, without tests.
clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Unit, property, simulation, fuzz and end-to-end tests.
unit:
	@CARGO="$(CARGO)" ./scripts/test

# The sample services in lab/ (Go, Node.js), started for real.
lab-test:
	$(MAKE) -C lab test

# The cases of casebook/ (CASE=1 for one): fails where a finding is not found. All take 25 minutes at most.
casebook:
	./casebook/run $(CASE)

# The first case, in a minute at most. A finding that is not known, since other programs disturbed every try, is told
# and does not fail; a wrong one does. The tests' own build of plimsoll makes the load.
casebook-short:
	@PLIMSOLL=$$(realpath "$${CARGO_TARGET_DIR:-target}")/debug/plimsoll CASEBOOK=short ./casebook/run 1; status=$$?; \
		if [ $$status -eq 3 ]; then echo "casebook: disturbed each time, so nothing is known of this finding" >&2; exit 0; fi; \
		exit $$status

# The documentation as a site in _output/site, with its links checked.
docs:
	./scripts/docs

# Runs the blocks of the documentation that are marked as runnable, against a server started for that.
docs-run:
	./scripts/docs-run

# The manifests of deploy/kubernetes on a real Kubernetes of three nodes on this machine. Needs root and about four
# minutes; the first time it builds Kubernetes, which takes twelve more.
fleet-kubernetes:
	./scripts/fleet-kubernetes

# What the end-to-end tests need beyond the toolchains; installed where this user may.
needs:
	@./scripts/needs nginx go node python3 chromium openssl wrk ip sshd nats-server

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

# Checks that versions, changelog, pages and packages agree: make release VERSION=0.2.0. It publishes nothing.
release:
	@./scripts/release "$(VERSION)"
