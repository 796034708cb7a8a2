#!/bin/bash
# Every check, one after the other. All are run even if some fail. The last line counts the tests and checks:
# "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# check NAME COMMAND...: a check that passes or fails as a whole.
check() {
    local name=$1 start=$SECONDS
    shift
    if "$@" > "$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name ($((SECONDS - start)) s)"
    else
        failed=$((failed + 1))
        cat "$log"
        echo "FAILED  $name"
    fi
}

# tests NAME COMMAND...: runs of test programs, each of whose tests counts.
tests() {
    local name=$1 start=$SECONDS status=0 good bad
    shift
    "$@" > "$log" 2>&1 || status=$?
    read -r good bad < <(awk '/^test result:/ { good += $4; bad += $6 }
        /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3 }
        END { print good + 0, bad + 0 }' "$log")
    # What did not build, or died, failed as well.
    [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    passed=$((passed + good)) failed=$((failed + bad))
    grep '^skipped: ' "$log" | sort -u
    if [ "$bad" -eq 0 ]; then
        echo "ok      $name: $good tests ($((SECONDS - start)) s)"
    else
        cat "$log"
        echo "FAILED  $name: $bad of $((good + bad)) tests"
    fi
}

check "formatting" cargo fmt --all --check
check "lints" cargo clippy --quiet --workspace --all-targets -- -D warnings
check "lints without DPDK" cargo clippy --quiet --all-targets --no-default-features -- -D warnings
tests "tests without DPDK" cargo test --quiet --no-default-features --no-fail-fast
# Tests say on standard output what they skip.
tests "tests" cargo test --quiet --workspace --no-fail-fast -- --show-output
# The program is there from the tests.
check "demonstration" "${CARGO_TARGET_DIR:-target}/debug/thruway" demo --seconds 2
tests "emulated NICs" tests/nics/run.py --short --if-possible
check "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
check "DPDK 24.11" .ci/check-dpdk-24.11.sh

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
