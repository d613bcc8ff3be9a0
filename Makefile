# make demo, make test, make install. Developer commands beyond these: cargo xtask.

TARGET_DIR ?= $(or $(CARGO_TARGET_DIR),target)
HOLDUP = $(TARGET_DIR)/release/holdup
# What `holdup load` and `holdup lab` become.
GENERATOR = $(TARGET_DIR)/release/holdup-load
# What `holdup fleet` becomes. It holds an engine for SQL, which takes longer to build than all the rest: `make install
# WITHOUT=fleet` leaves it out.
WITHOUT ?=
FLEET = $(if $(filter fleet,$(WITHOUT)),,$(TARGET_DIR)/release/holdup-fleet)
FLEET_BYTES = 90000000
PROGRAMS = $(HOLDUP) $(GENERATOR) $(FLEET)
CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: help build demo test install uninstall deb

help:
	@echo "make demo     build holdup, record a built-in program, explain it"
	@echo "make test     format, lints, repository rules and all tests"
	@echo "make build    only build $(HOLDUP)"
	@echo "make install  install below PREFIX=$(PREFIX): binary, man pages, completions, systemd unit"
	@echo "              with WITHOUT=fleet (also for build) it takes half the time, and \`holdup fleet\` is left out"
	@echo "make deb      make a Debian package of that in $(TARGET_DIR)"

# What cargo builds has the lines of its code in it. What is shipped has not: they are in $(HOLDUP).debug.
build:
	@scripts/install-deps.sh build
	$(CARGO) build --release --package holdup
	$(if $(FLEET),$(CARGO) build --release --package holdup --bin holdup-fleet --no-default-features --features fleet)
	@scripts/split.sh $(HOLDUP)
	@scripts/split.sh $(GENERATOR)
	@$(if $(FLEET),scripts/split.sh $(FLEET) $(FLEET_BYTES))

# Recording needs privilege: the demo runs through sudo where that is there and needed. It is built without the scripts
# and drivers of `holdup load`, which take longer to build than all the rest; `make build` has them.
demo:
	@scripts/install-deps.sh build
	$(CARGO) build --release --package holdup --no-default-features
	@if [ "$$(id -u)" = 0 ]; then $(HOLDUP) demo; \
	elif command -v sudo >/dev/null; then echo "+ sudo $(HOLDUP) demo"; sudo $(HOLDUP) demo; \
	else echo "Recording needs root, and there is no sudo here: run \`$(HOLDUP) demo\` as root." >&2; exit 4; fi

# Every step, also after one that failed.
test:
	@CARGO="$(CARGO)" scripts/test.sh

# Builds only what is missing (`make demo` leaves a program without `load` and `fleet`), so that `sudo make install` after `make build` needs no toolchain for root.
install:
	@{ $(HOLDUP) load list workloads/empty.rn && $(if $(FLEET),$(FLEET) --version,true); } >/dev/null 2>&1 || $(MAKE) build
	@scripts/split.sh $(HOLDUP)
	@scripts/split.sh $(GENERATOR)
	@$(if $(FLEET),scripts/split.sh $(FLEET) $(FLEET_BYTES))
	install -D -m 755 $(PROGRAMS) -t $(DESTDIR)$(PREFIX)/bin
	install -D -m 644 $(PROGRAMS:=.debug) -t $(DESTDIR)$(PREFIX)/bin/.debug
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1
	$(HOLDUP) man $(DESTDIR)$(PREFIX)/share/man/man1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(HOLDUP) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdup
	$(HOLDUP) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdup
	$(HOLDUP) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdup.fish
	mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in holdup.service holdup-agent.service; do \
		sed 's|@PREFIX@|$(PREFIX)|' packaging/$$unit > $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; done

# scripts/try-deb.sh installs, uses and removes it in a Debian of its own.
deb: build
	@scripts/deb.sh $(HOLDUP) $(TARGET_DIR)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/holdup $(DESTDIR)$(PREFIX)/bin/.debug/holdup.debug \
		$(DESTDIR)$(PREFIX)/bin/holdup-load $(DESTDIR)$(PREFIX)/bin/.debug/holdup-load.debug \
		$(DESTDIR)$(PREFIX)/bin/holdup-fleet $(DESTDIR)$(PREFIX)/bin/.debug/holdup-fleet.debug \
		$(DESTDIR)$(PREFIX)/share/man/man1/holdup.1 \
		$(DESTDIR)$(PREFIX)/share/man/man1/holdup-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdup \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdup \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdup.fish \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/holdup.service \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/holdup-agent.service
