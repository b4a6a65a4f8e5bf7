# make check   quick checks before every commit
# make verify  everything that CI runs
# make help    all targets
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_LINT := v2.15.0
DEADCODE := v0.52.0
MISSPELL := v0.8.0
TOOLS := $(CURDIR)/bin
ASKED := $(TOOLS)/asked
FUZZTIME ?= 60s
# ackscope needs no C. So its tests run without cgo and compile only the packages that are shipped.
# The race detector and the comparisons with C programs set CGO_ENABLED themselves.
export CGO_ENABLED := 0
FUZZCAP ?= 0
BENCH ?= .
BENCHTIME ?= 1x
SOAKTIME ?= 30m
TUISOAK ?= 100000
TUISEED ?= 1

.PHONY: help
help: ## list all targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

.PHONY: check
check: ## before every commit: format, vet, build, tests (without the long ones)
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
		if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w):"; echo "$$unformatted"; exit 1; fi
	go build ./...
	go vet ./...
	go test -short ./...

.PHONY: verify
verify: plain full lint race fuzzshort benchsmoke readme contrib smoke ## everything that CI runs; needs the tools that .ci/run installs

.PHONY: plain
plain: ## the test command of README.md
	go build ./...
	go vet ./...
	@mkdir -p $(TOOLS); rm -f $(ASKED)*
	asked=$$(mktemp $(ASKED).XXXXXX); TESTENV_ASKED=$$asked go test ./...; mv $$asked $(ASKED)

# `plain` has run the other tests already. They need no tool, no privilege and no long grid, so a second run
# would repeat the first. It leaves the names of those that ask for more in the file ASKED. Its name there is
# new for each run, so that no test is answered from the cache. Without this file, all tests of the packages run.
.PHONY: full
full: ## the tests that need tools, privileges or time, in random order; a skipped test is a failure
	only=$$(sort -u $(ASKED) 2>/dev/null | paste -sd '|'); rm -f $(ASKED); \
	ACKSCOPE_REQUIRE=1 go test -shuffle=on -timeout 20m $${only:+-run "^($$only)\$$"} $$(git ls-files '*_test.go' ':!contrib' | xargs grep -lE 'testenv\.(Need|Skip|Root|Long|Grid|Require)|gaffertest\.Seeds|testnet\.|ACKSCOPE_REQUIRE' | xargs -n1 dirname | sort -u | sed 's|^|./|')

# The race detector runs where it can find something:
# - The packages below internal/ run the program in other processes, so it would watch only the tests.
# - The other excluded packages start no goroutine. internal/arch checks that.
# - -short omits long repetitions, which `full` has run.
# - -skip omits tests that run one command after the other.
RACE_SKIP := AckBase|ComparePairs|Plurals|PatternAsEachAlone|RestsOn|Columns|NotesMatrix|Outputs|Faults|WhatIf|Confusion|Honest|Noise|Tshark|FiltersMix|FiltersRefused|Browser|Wireshark|Lua|ExportsReadBack|Qlog|Schemas|WriteKeeps|WriteRefused|ReportSize|ResendCause|HostileArguments|HostileText|NoKeyInAnyOutput|YojimboProfiles
RACE_SCRIPTS := anonymise|graph|ledger|listings|merge|packets|protocols|report|riptide_messages|simulate|srdp|state|walks|wrong|overview|log|whatif|reduce|resend|fail_if
.PHONY: race
race: ## the tests of concurrent code with the race detector
	ACKSCOPE_REQUIRE=1 CGO_ENABLED=1 go test -race -pgo=off -short -shuffle=on -timeout 20m -skip "$(RACE_SKIP)|Scripts/($(RACE_SCRIPTS))" $$(go list ./... | grep -vE '^github.com/ackscope/ackscope/(internal|agenda|wire|machine|schema|sim|dissect|filter|replay|rewrite|graph|show|ledger|report|overview|cause|recorder|compare|figures|export|capture/stream|capture/pcapfilter)(/|$$)')

.PHONY: lint
lint: $(TOOLS)/golangci-lint $(TOOLS)/deadcode $(TOOLS)/misspell ## .golangci.yml, `go mod tidy`, dead code, spelling
	go mod tidy -diff
	$(TOOLS)/golangci-lint config verify
	$(TOOLS)/golangci-lint run ./...
	scripts/deadcode $(TOOLS)/deadcode
	$(TOOLS)/misspell -error $$(git ls-files '*.md' '*.go' '*.txtar')

$(TOOLS)/golangci-lint: Makefile
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	@touch $@

$(TOOLS)/deadcode: Makefile
	GOBIN=$(TOOLS) go install golang.org/x/tools/cmd/deadcode@$(DEADCODE)
	@touch $@

$(TOOLS)/misspell: Makefile
	GOBIN=$(TOOLS) go install github.com/golangci/misspell/cmd/misspell@$(MISSPELL)
	@touch $@

.PHONY: faults
faults: ## every named fault of the references over seeds, losses and taps: compare what replay says with the oracles
	ACKSCOPE_FAULTS=$${ACKSCOPE_FAULTS:-1} go test -count 1 -timeout 60m -v -run 'TestFaults$$' ./cli

.PHONY: leaks
leaks: ## anonymise 2,000 captures of marked bytes: no mark is left
	ACKSCOPE_LEAKS=2000 go test -count 1 -timeout 30m -v -run 'TestNoLeaks$$' ./cli

.PHONY: notes
notes: ## the form of the Riptide notes over networks, endings and taps: compare replay, state and events with the truth
	ACKSCOPE_NOTES=1 go test -count 1 -timeout 20m -v -run 'TestNotesForm$$' ./cli

.PHONY: ackbase
ackbase: ## both meanings of bit 0 of ack_bits over networks, lengths and taps: the right profile is found
	ACKSCOPE_ACKBASE=1 go test -count 1 -timeout 20m -v -run 'TestAckBase$$' ./cli

.PHONY: resend
resend: ## resend policies over losses, delays, frame rates and taps: compare what is inferred, and which faults are found, with the truth
	ACKSCOPE_RESEND=1 go test -count 1 -timeout 20m -v -run 'TestResendPolicies$$' ./machine/gaffer/judge

.PHONY: arrivals
arrivals: ## when messages arrived, as captures of each library show it, against the logs; writes the tables of docs/arrival.md
	ACKSCOPE_ARRIVALS=update go test -count 1 -v -run 'Arrivals$$' ./internal/arrivals

.PHONY: compare
compare: ## 201 pairs of simulated runs of each kind, over three protocols: compare reports no difference where there is none, and finds the others
	ACKSCOPE_COMPARE=67 go test -count 1 -timeout 180m -v -run 'TestComparePairs$$' ./cli

.PHONY: batch
batch: ## 100,000 simulated captures through `batch` on two cores: captures a second, and the memory that the run takes; the figures of docs/scale.md
	ACKSCOPE_BATCH=$${ACKSCOPE_BATCH:-100000} go test -count 1 -timeout 120m -v -run 'TestScale$$' ./internal/batches

.PHONY: queries
queries: ## every query of queries/ in DuckDB and ClickHouse, compared with the rows of the command line; npm installs 600 MB
	ACKSCOPE_CLICKHOUSE=1 ACKSCOPE_REQUIRE=1 go test -count 1 -v -run 'TestStudio$$' ./internal/queries
	cd contrib/fleet && ACKSCOPE_CLICKHOUSE=1 ACKSCOPE_REQUIRE=1 go test -count 1 -v -run 'TestOperator$$' ./collect

.PHONY: cause
cause: ## 4,000 captures of 200 flows with a planted common cause, or none: how often the headline names it; the table of docs/common-cause.md
	ACKSCOPE_CAUSE=1000 go test -count 1 -timeout 30m -v -run 'TestPlanted$$' ./cause

.PHONY: host
host: ## (root) ten causes of loss planted 30 times each in real sockets and interfaces: how often the verdict is right; the table of docs/host.md
	ACKSCOPE_HOSTCAUSES=30 go test -count 1 -timeout 60m -parallel 4 -v -run 'TestPlanted$$' ./internal/hostcauses | grep -A 22 'planted '

.PHONY: rebind
rebind: ## players whose address changes, in recorded, simulated and live traffic, and 1,000 pairs of different players: what is joined, and how surely; the figures of docs/rebinding.md
	ACKSCOPE_REQUIRE=1 go test -count 1 -timeout 20m -v ./internal/rebinding

.PHONY: contrib
contrib: $(TOOLS)/golangci-lint $(TOOLS)/deadcode ## the modules below contrib/: vet, .golangci.yml, dead code, and their short tests
	for module in contrib/*/; do (cd $$module && go mod tidy -diff && go vet ./... && \
		$(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./... && \
		{ $(TOOLS)/deadcode ./... | { ! grep .; }; } && go test ./...); done

.PHONY: smoke
smoke: ## batch, a fleet whose collector is killed, and queries of both: within two minutes, compiling not counted
	cd contrib/fleet && ACKSCOPE_REQUIRE=1 go test -count 1 -v -run 'TestSmoke$$|TestOperator$$' . ./collect

.PHONY: fleet
fleet: ## contrib/fleet: kill -9 of servers, collectors and sensors over 100,000 rows, 2,000 sensors, 50 fetched findings; the figures of its README
	cd contrib/fleet && ACKSCOPE_FLEET=1 go test -count 1 -timeout 20m -v ./... | grep -vE '^ *(=== |--- PASS|[0-9:]+ )|no test files'

.PHONY: beam
beam: ## contrib/batch: all recorded captures by Beam in process, and by a Prism of its own with three kinds of workers, against `batch`; killed workers; the figures of its README
	cd contrib/batch && ACKSCOPE_BEAM=1 go test -count 1 -timeout 30m -v -run 'TestModes|TestKilledWorker|TestSpeed' . | grep -vE '^ *(=== |--- PASS)'

.PHONY: honest
honest: ## 1,000 restarts, and 5,000 captures of real builds cut at random frames: no honest side is accused
	ACKSCOPE_RESTARTS=1000 ACKSCOPE_CUTS=500 go test -count 1 -timeout 20m -v -run 'TestRestarts$$|TestCutCaptures$$' ./replay

SRDPCHECK ?= 1000
.PHONY: srdpcheck
srdpcheck: ## SRDPCHECK runs (1000) of a second SRDP endpoint against the reference, and 48 over sockets: compare with its log
	ACKSCOPE_SRDPCHECK=$(SRDPCHECK) go test -count 1 -timeout 30m -v ./internal/srdpcheck | grep -vE '^ *(===|--- PASS)'

.PHONY: realbuilds
realbuilds: ## real builds, right and wrong, with their logs; 6,000 captures made from them, cut, thinned and snapped with a new seed; simulated runs
	ACKSCOPE_REALBUILDS=$${ACKSCOPE_REALBUILDS:-1} go test -count 1 -timeout 30m -v ./internal/realbuilds

.PHONY: inferred
inferred: ## 1,200 games of yojimbo made at random, and parts of the recorded runs: what is inferred of their packets is so
	ACKSCOPE_SOAK=1 go test -count 1 -timeout 30m -v -run 'TestInferMade$$|TestProvedHeads' ./dissect/gaffer

.PHONY: cuts
cuts: ## TCP streams that begin at thousands of random places: compare their messages with those of the whole streams
	ACKSCOPE_CUTS=1 go test -count 1 -timeout 20m -v ./internal/framing

.PHONY: same
same: ## after a change that must not change output: compare every command over every capture with committed hashes
	go run ./internal/same

.PHONY: thresholds
thresholds: ## how far each measured constant of the machines may be off; writes internal/thresholds/margins.txt and docs/thresholds.md
	go run ./internal/thresholds -measure

.PHONY: fuzz
fuzz: ## every fuzz target, FUZZTIME each (60s), two at a time
	scripts/fuzz $(FUZZTIME) $(FUZZCAP)

.PHONY: fuzzshort
fuzzshort:
	scripts/fuzz 6s 110

.PHONY: bench
bench: ## every benchmark, with the ratios to libpcap and tshark; ACKSCOPE_BENCH_BEFORE=PROGRAM compares an older one too
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./...

.PHONY: growth
growth: ## how the cost grows with packets, flows, loss and cores; writes docs/performance.svg (on an idle machine)
	ACKSCOPE_BENCH_PLOT=$(CURDIR)/docs/performance.svg go test -run '^$$' -bench Growth -timeout 60m ./internal/bench

LARGE ?= 10e9
.PHONY: large
large: ## a capture of LARGE bytes (10e9) from a pipe, a file and zstd: memory, speed, and how soon Ctrl-C ends it
	ACKSCOPE_LARGE=$(LARGE) go test -count 1 -timeout 60m -v -run 'TestLarge$$' ./internal/bench

.PHONY: pgo
pgo: ## write cmd/ackscope/default.pgo, the CPU profile that go build reads (on an idle machine)
	go run ./internal/profile cmd/ackscope/default.pgo

.PHONY: benchsmoke
benchsmoke: ## run every benchmark once
	go test -short -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 10m ./...

.PHONY: golden
golden: ## rewrite the golden files from the output of the program: check the diff
	@packages=$$(grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . | xargs -r -n1 dirname | sort -u); \
		for p in $$packages; do go test -count=1 "$$p" -update; done

CLISOAK ?= 20000
.PHONY: clisoak
clisoak: ## CLISOAK runs (20000) of commands over mutated captures and configuration files; the largest configuration files
	ACKSCOPE_CLISOAK=$(CLISOAK) go test -count 1 -timeout 120m -v -run 'TestCommandSoak|TestHostile|TestSecrets' ./cli
	ACKSCOPE_CLISOAK=2000 go test -count 1 -timeout 60m -run 'TestMemory' ./schema/yamlfile

.PHONY: soak
soak: ## the long run: thousands of simulated networks, fuzzing for SOAKTIME a target, repeated tests with the race detector
	SOAK_SEEDS=50000 go test -timeout 1h -run 'Soak|Seeds' ./machine/gaffer/endpoint ./machine/gaffer/tracker ./machine/riptide/tracker
	ACKSCOPE_SAMPLES=1000 go test -timeout 1h -run 'JudgeHonest|TrackerTruth' ./machine/gaffer/article
	SOAK_ALTERED=50 go test -timeout 1h -run Altered ./internal/truth
	ACKSCOPE_SOAK=1 go test -timeout 1h -run 'Noise|Hostile' ./dissect/stack
	ACKSCOPE_LIES=2 go test -timeout 2h -run PlantedEverywhere ./replay
	scripts/fuzz $(SOAKTIME)
	ACKSCOPE_REQUIRE=1 CGO_ENABLED=1 go test -race -shuffle=on -count=5 -timeout 2h ./...

.PHONY: tuisoak
tuisoak: ## TUISOAK runs (100000) of 60 random keys in the terminal UI, each over a mutated capture, starting at seed TUISEED (1)
	ACKSCOPE_TUI_SOAK=$(TUISOAK) ACKSCOPE_TUI_SEED=$(TUISEED) go test -count 1 -timeout 8h -v -run 'TestSoak$$' ./tui

.PHONY: benchlive
benchlive: ## (root) live captures of a flood in a network namespace: ackscope, `tcpdump -w` and gopacket's cgo ring
	ACKSCOPE_BENCH_LIVE=5 ACKSCOPE_SOAK=1 go test -count 1 -timeout 30m -v -run 'TestBesideOthers' ./internal/live

.PHONY: soaklive
soaklive: ## (root) an hour of traffic within --memory, floods of a million packets of each kind, 200,000 packets a second for 10 s
	ACKSCOPE_SOAK=1 go test -count 1 -timeout 90m -v -run 'TestHour|TestNoDropUncounted' ./internal/live
	ACKSCOPE_FLOOD=1000000 go test -count 1 -timeout 60m -v -run 'TestFlood$$' ./internal/hostile

.PHONY: memory
memory: ## every command over files of a million flows within --memory 64MiB
	ACKSCOPE_FLOODS=1000000 go test -count 1 -timeout 3h -v -run 'TestBudget$$' ./internal/hostile

.PHONY: web
web: ## the page of `ackscope web` in web/dist, and the program with it in bin/ackscope; needs npm
	cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run -s check && npm run -s build
	cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" web/dist/
	scripts/pagewasm web/dist/ackscope.wasm
	go build -tags webassets -o $(TOOLS)/ackscope ./cmd/ackscope

.PHONY: webserver
webserver: web ## the same, and web/dist/ackscope.wasm.br and .gz for a server that sends them compressed; takes a minute more
	cd web && node compress.mjs

.PHONY: page
page: ## every test of the page in a browser: 20 captures of each protocol, all screens, its compressed size; needs chromium and npm
	ACKSCOPE_PAGE=1 ACKSCOPE_REQUIRE=1 go test -count 1 -timeout 30m -v ./internal/webpage | grep -vE '^ *(=== |--- PASS: .*/)'

.PHONY: webfuzz
webfuzz: ## 240 damaged captures through every view of the page: no script, no freeze, no fault; needs chromium
	ACKSCOPE_PAGE=1 ACKSCOPE_WEBFUZZ=240 go test -count 1 -timeout 30m -v -run 'TestHostile|TestFuzzed' ./internal/webpage

.PHONY: readme
readme: ## run the commands of README.md in a fresh clone
	scripts/readme
