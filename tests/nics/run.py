#!/usr/bin/python3
"""Runs Thruway in virtual machines on emulated NICs and checks what it does. README.md beside this says more.

usage: run.py [--short] [--if-possible] [KIND...]; the last line is "N passed, M failed".
"""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
# No compiled files among the sources.
sys.dont_write_bytecode = True

import initramfs  # noqa: E402
from checks import CHECKS, CheckFailed, Rig  # noqa: E402
from kinds import KINDS  # noqa: E402
from machine import GuestError, Machine  # noqa: E402
from router import Router  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
TARGET = os.path.join(TOP, os.environ.get("CARGO_TARGET_DIR", "target"))
# What most machines and most users have: one with several queues, one with back-pressure.
SHORT = ["igb", "virtio"]
# Seconds that a kind may take.
KIND_TIMEOUT = 240


class TimeIsUp(Exception):
    """It takes too long."""


def try_kind(folder, kind):
    """Runs the checks of a kind; yields each one's name, why it failed or `None`, and a line to say."""
    checks = [check for check in CHECKS if check.applies(kind)]
    began, done = time.monotonic(), 0
    try:
        with Machine(folder, kind, f"{folder}/{kind.name}.log") as machine:
            rig = Rig(kind, machine, Router(machine, kind, machine.boot()))
            for check in checks:
                began = time.monotonic()
                try:
                    remark, why = check.run(rig) or "", None
                except CheckFailed as failure:
                    remark, why = "", str(failure)
                except (LookupError, ValueError) as error:
                    remark, why = "", repr(error)
                done += 1
                yield check.name, why, f"({time.monotonic() - began:.1f} s) {why or remark}"
    except (GuestError, TimeIsUp, OSError) as error:
        why = f"{type(error).__name__}: {error}"
        for check in checks[done:]:
            yield check.name, why, why
            why = "not tried after that"


def run_kind(folder, kind):
    """Runs a kind in bounded time; returns how many checks passed and failed."""

    def time_is_up(*_):
        raise TimeIsUp(f"{KIND_TIMEOUT} s are over")

    signal.signal(signal.SIGALRM, time_is_up)
    signal.alarm(KIND_TIMEOUT)
    passed = failed = 0
    for name, why, line in try_kind(folder, kind):
        passed, failed = passed + (why is None), failed + (why is not None)
        print(f"{'FAILED ' if why else 'ok     '} {kind.name}: {name} {' '.join(line.split())}", flush=True)
    signal.alarm(0)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Checks Thruway on emulated NICs.")
    parser.add_argument("--short", action="store_true", help=f"only {' and '.join(SHORT)}")
    parser.add_argument("--if-possible", action="store_true", help="skip all if QEMU cannot be had, but not in CI")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"which of {', '.join(KINDS)} (default: all)")
    arguments = parser.parse_args()
    names = arguments.kinds or (SHORT if arguments.short else list(KINDS))
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"there is no kind {', '.join(unknown)}: the kinds are {', '.join(KINDS)}")
    folder = os.path.abspath(os.environ.get("NICS_DIR", f"{TOP}/target/nics"))
    # QEMU ends with this program, however that ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(folder, exist_ok=True)
    lock = open(f"{folder}/lock", "w", encoding="ascii")
    # One at a time: two virtual machines get in each other's way. It is given back when this program ends.
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        subprocess.run([f"{HERE}/setup.sh", folder], check=True)
    except subprocess.CalledProcessError:
        if arguments.if_possible and "CI" not in os.environ:
            print("skipped: tests on emulated NICs: there is no QEMU with igb, and it cannot be fetched")
            print("0 passed, 0 failed")
            return False
        print("0 passed, 1 failed")
        return True
    subprocess.run(["cargo", "build", "--quiet"], cwd=TOP, check=True)
    initramfs.build(folder, f"{TARGET}/debug/thruway")

    passed = failed = 0
    for name in names:
        began = time.monotonic()
        good, bad = run_kind(folder, KINDS[name])
        if bad:
            print(f"again: {name}: {bad} checks failed, which a busy machine may have done", flush=True)
            good, bad = run_kind(folder, KINDS[name])
        passed, failed = passed + good, failed + bad
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
