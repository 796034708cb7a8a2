#!/bin/sh
# Installs what building needs beside Rust, from Debian's packages, if it is missing.
set -eu

missing=
command -v pkg-config > /dev/null || missing="$missing pkg-config"
pkg-config --exists libdpdk 2> /dev/null || missing="$missing dpdk dpdk-dev"
# Not libclang-cpp, which other packages bring and bindgen cannot use.
found=$(find /usr/lib/llvm-*/lib/ -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' 2> /dev/null || true)
[ -n "$found" ] || missing="$missing libclang-dev"
[ -n "$missing" ] || exit 0

echo "installing$missing"
root=
[ "$(id -u)" -eq 0 ] || root=sudo
export DEBIAN_FRONTEND=noninteractive
# Unquoted: a list of packages, and nothing or sudo.
$root apt-get -qq update
$root apt-get -qq install --no-install-recommends $missing > /dev/null
