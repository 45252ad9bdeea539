# The commands of this project; `make` alone lists them.

PREFIX ?= /usr/local
DESTDIR ?=

CARGO ?= cargo
# Cargo's output directory: .cargo/config.toml names the host as target.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
RELEASE = $(or $(CARGO_TARGET_DIR),target)/$(HOST)/release

# Released programs contain neither the path of this directory nor the user's: two builds of one
# commit are identical, wherever they are made.
build packaged-programs run book bench-programs bench-bisect bench-fleet-statistics replay: export CARGO_BUILD_RUSTFLAGS = \
	--remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo

BIN = $(DESTDIR)$(PREFIX)/bin
LIBEXEC = $(DESTDIR)$(PREFIX)/libexec/toll
SHARE = $(DESTDIR)$(PREFIX)/share
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions

SCRIPTS = .ci/run packaging/action/compare packaging/action/install tools/bench-peers tools/bench-price tools/build-book tools/build-quietly tools/debian-root tools/prerequisites \
	tools/install-python-packages tools/kernel-check tools/make-package tools/same-code

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Build toll, list this machine's prices, and judge all claims in the quick profile
	@tools/prerequisites run
	@CARGO='$(CARGO)' tools/build-quietly toll-cli toll-probe toll-mount
	@# Guests come last: until then no kernel is needed.
	@$(RELEASE)/toll run --profile quick --build-kernels

.PHONY: prerequisites
prerequisites: ## Install, as root on Debian, the packages that measuring can use; enable no service, upgrade nothing
	@tools/prerequisites --install run

.PHONY: build
build: ## Build all programs for use
	$(CARGO) build --release $(PROGRAMS)

PROGRAMS = -p toll-cli -p toll-probe -p toll-mount -p toll-observe -p meow -p timewrite -p device -p primes -p memory_access

# Programs of bench/, and all programs that they measure.
.PHONY: bench-programs
bench-programs:
	$(CARGO) build --release --workspace

# nextest writes its reports here, wherever Cargo builds.
REPORTS = target/nextest
NEXTEST = $(CARGO) nextest run --workspace

.PHONY: test
test: ## Run all fast tests and one of each slow family; record a commit that passes in target/tested
	@tools/prerequisites test
	rm -f $(REPORTS)/default/junit.xml
	$(NEXTEST)
	@if [ -z "$$(git status --porcelain)" ]; then \
		mkdir -p target && echo "$$(git rev-parse HEAD) $$(date -u +%FT%TZ)" >target/tested; \
	fi

.PHONY: test-rest
test-rest: ## Run all slow tests, at their full size
	rm -f $(REPORTS)/rest/junit.xml
	TOLL_TESTS=full TOLL_REPLAY_RUNS=60 USERFS_OPERATIONS=500000 $(NEXTEST) --profile rest

.PHONY: test-all
test-all: ## Run every test at its full size: make test, then make test-rest
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-rest

# Seconds for each of three targets.
FUZZ_SECONDS ?= 600

.PHONY: fuzz
fuzz: ## Fuzz with mutated experiments, documents and messages, FUZZ_SECONDS (600) per target
	TOLL_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test -p toll-cli --test toll fuzz:: -- --nocapture --test-threads=1

# Directory for the results of benchmarks, and the profile with which they run.
BENCH_OUT ?= bench/results
BENCH_PROFILE ?= standard

# Runs an experiment of bench/ and writes its table and all measurements.
run-bench = LC_ALL=C $(RELEASE)/toll --store target/bench.sqlite run bench/$(1).toml --profile $(BENCH_PROFILE) $(BENCH_OPTIONS) && \
	mkdir -p $(BENCH_OUT) && \
	$(RELEASE)/toll --store target/bench.sqlite export last \
		--markdown $(BENCH_OUT)/$(1).md --json $(BENCH_OUT)/$(1).json

.PHONY: bench-bisect
bench-bisect: ## Simulate searches for the version that introduced a change, about 2 minutes
	$(CARGO) run --release -p toll-bench --bin bench-bisect -- --out $(BENCH_OUT) $(BENCH_OPTIONS)

.PHONY: bench-cat
bench-cat: bench-programs ## Compare meow with other programs that copy a file, about an hour
	@tools/prerequisites bench
	mkdir -p $(BENCH_OUT)
	tools/bench-peers $(RELEASE) >$(BENCH_OUT)/cat-peers.txt
	$(call run-bench,cat)

.PHONY: bench-ci
bench-ci: bench-programs ## Simulate calls of toll ci with this machine's noise, about 10 minutes
	rm -f target/ci.sqlite
	LC_ALL=C $(RELEASE)/toll --store target/ci.sqlite run -q --no-html -r 400 -n one -n two -n three \
		$(foreach copy,1 2 3,'dd if=/dev/zero of=/dev/null bs=64k count=22000 status=none')
	$(RELEASE)/toll --store target/ci.sqlite export last --json target/ci.json
	$(RELEASE)/bench-ci target/ci.json --out $(BENCH_OUT) $(BENCH_OPTIONS)

.PHONY: bench-device
bench-device: bench-programs ## Compare the virtual device with two programs in guests, about 20 minutes
	@tools/prerequisites run
	$(RELEASE)/toll kernel build
	$(call run-bench,device)

.PHONY: bench-fleet
bench-fleet: bench-programs ## Time reports on 10 to 10,000 machines, and a DuckDB query on 100 million samples, about 15 minutes
	mkdir -p $(BENCH_OUT)
	tools/bench-fleet.py $(RELEASE)/toll $(BENCH_OPTIONS) >$(BENCH_OUT)/fleet.md

.PHONY: bench-fleet-statistics
bench-fleet-statistics: ## Simulate fleets with known effects, and count how often reports are right, about 6 minutes
	$(CARGO) run --release -p toll-bench --bin bench-fleet-statistics -- --out $(BENCH_OUT) $(BENCH_OPTIONS)

.PHONY: bench-functions
bench-functions: bench-programs ## Plant costs in kernel functions, and see whether toll names them, an hour on two CPUs
	@tools/prerequisites run
	$(RELEASE)/toll kernel build
	mkdir -p $(BENCH_OUT)
	tools/bench-functions.py $(RELEASE)/toll $(BENCH_OPTIONS) >$(BENCH_OUT)/functions.md

.PHONY: bench-hyperfine
bench-hyperfine: bench-programs ## Compare the rates of right and wrong answers with hyperfine's, about 40 minutes
	@tools/prerequisites bench
	tools/bench-peers $(RELEASE) --hyperfine
	$(call run-bench,hyperfine)
	$(RELEASE)/bench-hyperfine rates $(BENCH_OUT)/hyperfine.json >>$(BENCH_OUT)/hyperfine.md

.PHONY: bench-loops
bench-loops: ## Measure in a fresh clone how long make run and the tests take, about an hour
	@tools/prerequisites test
	mkdir -p $(BENCH_OUT)
	tools/bench-loops.py $(BENCH_OUT)/loops.md $(BENCH_OPTIONS)

.PHONY: bench-prices
bench-prices: bench-programs ## Compare toll prices with lmbench and perf bench, about 15 minutes
	@tools/prerequisites bench
	tools/bench-peers $(RELEASE) --own
	tools/bench-price --fetch
	$(call run-bench,prices)

.PHONY: bench-toll
bench-toll: bench-programs ## Measure the overhead of toll itself, about 15 minutes
	@tools/prerequisites bench
	tools/bench-peers $(RELEASE) --own
	$(call run-bench,toll)
	$(call run-bench,toll-parts)
	$(call run-bench,toll-call)

.PHONY: bench-trace
bench-trace: bench-programs ## Compare savings predicted by toll trace with measured ones, and time its overhead, about 6 minutes
	@tools/prerequisites bench
	tools/bench-peers $(RELEASE) --own
	$(call run-bench,trace)
	$(call run-bench,trace-overhead)

# Number of runs for each planted delay.
WHY_RUNS ?= 100

.PHONY: bench-why
bench-why: bench-programs ## Measure how often toll run --why finds planted delays, about 30 minutes
	mkdir -p $(BENCH_OUT)
	tools/bench-why $(RELEASE) --runs $(WHY_RUNS) --out $(BENCH_OUT)/why.md

.PHONY: replay
replay: ## Simulate runs of the built-in experiments, and count how often claims are decided and how often rightly
	$(CARGO) build --release -p toll-bench --bin bench-replay
	$(RELEASE)/bench-replay --out $(BENCH_OUT) $(BENCH_OPTIONS) >/dev/null

# Power cuts for each cache mode, and for ext4 alone.
POWER_CUTS ?= 500

.PHONY: power-cuts
power-cuts: ## Cut the power of guests POWER_CUTS (500) times for each cache mode of toll mount, about 3 hours
	@tools/prerequisites run
	$(CARGO) build --workspace
	$(CARGO) run --quiet --bin toll -- kernel build
	TOLL_TESTS=full TOLL_POWER_CUTS=$(POWER_CUTS) TOLL_POWER_CUTS_OUT=$(CURDIR)/bench/results \
		$(NEXTEST) --profile rest --no-capture slow::power_cuts::what_was

.PHONY: check
check: ## Check formatting, lints, documentation, circular dependencies of files, and shell scripts
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --document-private-items --no-deps
	tools/module-circles
	@if command -v shellcheck >/dev/null; then \
		echo shellcheck $(SCRIPTS); \
		shellcheck $(SCRIPTS); \
	else \
		echo "skipped: shellcheck is missing; install the package shellcheck"; \
	fi

.PHONY: bless
bless: ## Rewrite snapshots and schemas after an intended change
	$(CARGO) build --workspace
	TOLL_BLESS=1 $(CARGO) test -p toll-wire --test format_document
	TOLL_BLESS=1 INSTA_UPDATE=always $(CARGO) test -p toll-cli --lib
	TOLL_BLESS=1 INSTA_UPDATE=always $(CARGO) test -p toll-cli --test toll -- cli:: exchange::published_schemas

.PHONY: install
install: build ## Install below PREFIX (/usr/local): programs, manual page, completions
	@$(MAKE) --no-print-directory install-files

# Installs the files of programs that are already built.
.PHONY: install-files
install-files:
	install -D -m 755 $(RELEASE)/toll $(BIN)/toll
	install -m 755 $(RELEASE)/toll-mount $(RELEASE)/toll-observe $(BIN)
	install -D -m 755 $(RELEASE)/toll-probe $(LIBEXEC)/toll-probe
	for number in 1 2 3 4 5 6; do ln -sf meow $(BIN)/mycat$$number; done
	install -m 755 $(RELEASE)/meow $(RELEASE)/timewrite $(RELEASE)/master $(RELEASE)/slave \
		$(RELEASE)/prime_user $(RELEASE)/prime_sys_test \
		$(RELEASE)/memory_access $(RELEASE)/compete_for_memory $(BIN)
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(DESTDIR)$(ZSH_COMPLETIONS) $(SHARE)/fish/vendor_completions.d
	install -m 644 docs/man/meow.1 docs/man/timewrite.1 docs/man/master.1 docs/man/slave.1 \
		docs/man/prime_user.1 docs/man/prime_sys_test.1 \
		docs/man/memory_access.1 docs/man/compete_for_memory.1 $(SHARE)/man/man1
	cd kernel && find . -type f ! -name '*.mod.c' \( -name '*.[chS]' -o -name '*.patch' -o -name '*.config' \
		-o -name '*.awk' -o -name '*.sh' -o -name packages -o -name Makefile -o -name Kbuild \
		-o -name FLAGS -o -name README.md \) \
		-exec install -D -m 644 {} $(abspath $(SHARE))/toll/kernel/{} \;
	$(RELEASE)/toll man >$(SHARE)/man/man1/toll.1
	$(RELEASE)/toll completions bash >$(SHARE)/bash-completion/completions/toll
	$(RELEASE)/toll completions zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_toll
	$(RELEASE)/toll completions fish >$(SHARE)/fish/vendor_completions.d/toll.fish
	for program in toll-mount toll-observe; do \
		$(RELEASE)/$$program --generate=man >$(SHARE)/man/man1/$$program.1 && \
		$(RELEASE)/$$program --generate=bash >$(SHARE)/bash-completion/completions/$$program && \
		$(RELEASE)/$$program --generate=zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_$$program && \
		$(RELEASE)/$$program --generate=fish >$(SHARE)/fish/vendor_completions.d/$$program.fish || exit; \
	done

.PHONY: uninstall
uninstall: ## Remove what make install installed; keep runs and reports
	rm -f $(BIN)/toll $(BIN)/toll-mount $(BIN)/toll-observe $(BIN)/meow $(BIN)/mycat[1-6] $(BIN)/timewrite $(BIN)/master $(BIN)/slave \
		$(BIN)/prime_user $(BIN)/prime_sys_test $(BIN)/memory_access $(BIN)/compete_for_memory \
		$(LIBEXEC)/toll-probe \
		$(SHARE)/man/man1/toll.1 $(SHARE)/man/man1/meow.1 $(SHARE)/man/man1/timewrite.1 \
		$(SHARE)/man/man1/master.1 $(SHARE)/man/man1/slave.1 \
		$(SHARE)/man/man1/prime_user.1 $(SHARE)/man/man1/prime_sys_test.1 \
		$(SHARE)/man/man1/memory_access.1 $(SHARE)/man/man1/compete_for_memory.1 \
		$(SHARE)/bash-completion/completions/toll $(DESTDIR)$(ZSH_COMPLETIONS)/_toll \
		$(SHARE)/fish/vendor_completions.d/toll.fish
	for program in toll-mount toll-observe; do \
		rm -f $(SHARE)/man/man1/$$program.1 $(SHARE)/bash-completion/completions/$$program \
			$(DESTDIR)$(ZSH_COMPLETIONS)/_$$program $(SHARE)/fish/vendor_completions.d/$$program.fish; \
	done
	rm -rf $(SHARE)/toll/kernel
	-rmdir $(LIBEXEC) $(SHARE)/toll 2>/dev/null

PACKAGES = $(or $(CARGO_TARGET_DIR),target)/packages

# Smaller than the programs of `build`; their build takes two minutes longer.
.PHONY: packaged-programs
packaged-programs:
	$(CARGO) build --profile packaged $(PROGRAMS)

.PHONY: dist
dist: packaged-programs ## Pack what make install installs as a tarball, in target/packages

.PHONY: deb
deb: packaged-programs ## Pack what make install installs as a Debian package

.PHONY: rpm
rpm: packaged-programs ## Pack what make install installs as an RPM package

.PHONY: wheel
wheel: packaged-programs ## Pack what make install installs as a wheel, for pip

dist deb rpm wheel:
	@tools/make-package $@ $(PACKAGES) $(RELEASE:release=packaged)

# Crates that users install with cargo, and their dependencies.
CRATES = --workspace --exclude toll-bench --exclude toll-checks --exclude toll-testing --exclude device --exclude memory_access --exclude meow --exclude primes --exclude timewrite

.PHONY: crates
crates: ## Pack the crates as they are published, in target/package
	$(CARGO) package --no-verify $(CRATES) $(CRATES_OPTIONS)

.PHONY: dist-check
dist-check: ## Build the tarball of the last commit in two directories, and compare the tarballs, about 15 minutes
	rm -rf target/dist-check
	for place in one another/place; do \
		git clone --quiet . target/dist-check/$$place && \
		env -u CARGO_TARGET_DIR $(MAKE) -C target/dist-check/$$place dist || exit; \
	done
	cmp target/dist-check/one/target/packages/*.tar.gz \
		target/dist-check/another/place/target/packages/*.tar.gz
	@echo "the two tarballs are identical"

.PHONY: book
book: ## Build the chapters and the reference as a site, in target/book
	$(CARGO) build --release -p toll-cli -p toll-probe -p toll-mount -p toll-observe
	tools/build-book $(RELEASE)/toll $(or $(CARGO_TARGET_DIR),target)/book

.PHONY: clean
clean: ## Remove everything that was built
	$(CARGO) clean
