# make demo, make test, make install. Developer commands beyond these: cargo xtask.

TARGET_DIR ?= $(or $(CARGO_TARGET_DIR),target)
HOLDUP = $(TARGET_DIR)/release/holdup
CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: help build demo test install uninstall

help:
	@echo "make demo     build holdup, record a built-in program, explain it"
	@echo "make test     format, lints, repository rules and all tests"
	@echo "make build    only build $(HOLDUP)"
	@echo "make install  install below PREFIX=$(PREFIX): binary, man pages, completions"

build:
	@scripts/install-deps.sh build
	$(CARGO) build --release --package holdup

# Recording needs privilege: the demo runs through sudo where that is there and needed. It is built without the scripts
# and drivers of `holdup load`, which take longer to build than all the rest; `make build` has them.
demo:
	@scripts/install-deps.sh build
	$(CARGO) build --release --package holdup --no-default-features
	@if [ "$$(id -u)" = 0 ]; then $(HOLDUP) demo; \
	elif command -v sudo >/dev/null; then echo "+ sudo $(HOLDUP) demo"; sudo $(HOLDUP) demo; \
	else echo "Recording needs root, and there is no sudo here: run \`$(HOLDUP) demo\` as root." >&2; exit 4; fi

test:
	@scripts/install-deps.sh test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) run --quiet --package xtask -- tidy
	$(CARGO) test --workspace
	$(CARGO) test --release --package holdup-trace --test mutations
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "skipped: cargo deny check (to have it: cargo install --locked cargo-deny)"; \
	else $(CARGO) deny check bans licenses sources && \
		if $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny check advisories; \
		else echo "skipped: cargo deny check advisories (their database is out of reach)"; fi; \
	fi

# Builds only what is missing (`make demo` leaves a program without `load`), so that `sudo make install` after `make build` needs no toolchain for root.
install:
	@$(HOLDUP) load list workloads/empty.rn >/dev/null 2>&1 || $(MAKE) build
	install -D -m 755 $(HOLDUP) $(DESTDIR)$(PREFIX)/bin/holdup
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1
	$(HOLDUP) man $(DESTDIR)$(PREFIX)/share/man/man1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(HOLDUP) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdup
	$(HOLDUP) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdup
	$(HOLDUP) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdup.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/holdup $(DESTDIR)$(PREFIX)/share/man/man1/holdup.1 \
		$(DESTDIR)$(PREFIX)/share/man/man1/holdup-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdup \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdup \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdup.fish
