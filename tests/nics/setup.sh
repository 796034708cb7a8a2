#!/bin/bash
# Fetches what the virtual machines are made of into the folder given: QEMU (from bookworm-backports, unless the
# machine has one with igb), Debian's kernel, busybox. Packages are unpacked there, nothing is installed, root is not
# needed. What is there already is not fetched again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: setup.sh FOLDER}"
cd "$1"

die() {
    echo "tests/nics/setup.sh: $*" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || die "the guest's kernel and drivers are for x86-64 machines, this is $(uname -m)"

# The machine's package sources, with backports where it is Debian 12, and lists of our own.
prepare_apt() {
    rm -rf apt
    mkdir -p apt/lists/partial apt/cache/archives/partial apt/parts
    cp /etc/apt/sources.list.d/debian.sources apt/parts/ 2> /dev/null \
        || die "there is no /etc/apt/sources.list.d/debian.sources: this needs Debian 12 or later"
    sed -i 's/^Suites: *bookworm .*/& bookworm-backports/' apt/parts/debian.sources
    options=(-qq -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$PWD/apt/parts"
        -o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o APT::Sandbox::User=root
        -o Debug::NoLocking=true)
    apt-get "${options[@]}" -o APT::Update::Error-Mode=any update || die "the package lists cannot be read"
}

# fetch FOLDER APT-ARGUMENTS...: downloads packages with those they depend on, and unpacks them.
fetch() {
    local folder=$1 package
    shift
    apt-get "${options[@]}" --yes --no-install-recommends --download-only install "$@" > /dev/null \
        || die "cannot download $*"
    rm -rf "$folder.part"
    for package in apt/cache/archives/*.deb; do
        dpkg -x "$package" "$folder.part"
    done
    rm -f apt/cache/archives/*.deb
    mv "$folder.part" "$folder"
}

# unpack FOLDER PACKAGE: the same for one package alone.
unpack() {
    mkdir -p apt/alone
    (cd apt/alone && apt-get "${options[@]}" download "$2") || die "cannot download $2"
    rm -rf "$1"
    dpkg -x apt/alone/*.deb "$1"
    rm -r apt/alone
}

has_igb() {
    "$1" -device help 2> /dev/null | grep -q '^name "igb"'
}

prepared=
ready() {
    [ -n "$prepared" ] || prepare_apt
    prepared=yes
}

if has_igb qemu-system-x86_64; then
    rm -rf qemu
elif [ ! -d qemu ]; then
    ready
    release=()
    ! grep -q bookworm-backports apt/parts/debian.sources || release=(-t bookworm-backports)
    fetch qemu "${release[@]}" qemu-system-x86
fi
if [ ! -f busybox/bin/busybox ]; then
    ready
    unpack busybox busybox-static
fi
if [ ! -f vmlinux ]; then
    ready
    # The package behind the one that only depends on it.
    package=$(apt-cache "${options[@]}" depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
    unpack kernel "$package"
    python3 "$here/vmlinux.py" kernel/boot/vmlinuz-* vmlinux.part
    mv vmlinux.part vmlinux
fi
rm -rf apt
