# The commands that a person, or CI, gives. Each works on a fresh clone on Debian 12 with Rust installed.

.PHONY: help demo test test-nics

help:
	@echo 'make demo        install what is missing, build, and forward packets for 5 seconds: needs no card and no root'
	@echo 'make test        every check there is; what needs root or a tool that is not installed is skipped and says so'
	@echo 'make test-nics   Thruway in virtual machines, on every kind of emulated NIC (tests/nics/README.md)'

demo:
	@.ci/install-dpdk.sh
	cargo build --quiet --release
	target/release/thruway demo --seconds 5

test:
	@.ci/test.sh

test-nics:
	@tests/nics/run.py
