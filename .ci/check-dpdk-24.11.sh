#!/bin/sh
# Compiles and links the DPDK crates, tests included, against DPDK 24.11 as Debian 13 packages it. Nothing is
# installed: the packages are unpacked below target/, and downloaded once.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/target/dpdk-24.11
root=$work/root

die() {
    echo "check-dpdk-24.11: $*" >&2
    exit 1
}

unpack() {
    sources=/etc/apt/sources.list.d/debian.sources
    mirror=$(sed -n 's/^URIs: *//p' "$sources" 2>/dev/null | head -n 1)
    rm -rf "$root" "$work/apt" "$work/debs"
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/apt/parts" "$work/debs"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} trixie main" \
        > "$work/apt/sources.list"
    : > "$work/apt/status"
    options="-qq -o Dir::Etc::sourcelist=$work/apt/sources.list -o Dir::Etc::sourceparts=$work/apt/parts
        -o Dir::State::lists=$work/apt/lists -o Dir::State::status=$work/apt/status -o Dir::Cache=$work/apt
        -o APT::Sandbox::User=root"
    # Unquoted: a list of options.
    apt-get $options update || die "cannot read the package lists of Debian 13"
    packages=$(apt-cache $options depends libdpdk-dev | awk '/Depends: librte-/ { print $2 }')
    (cd "$work/debs" && apt-get $options download libdpdk-dev $packages) || die "cannot download libdpdk-dev of Debian 13"
    for package in "$work/debs"/*.deb; do
        dpkg -x "$package" "$root.part"
    done
    # What static linking and the drivers need is of no concern here.
    sed -i '/^Requires.private/d' "$root.part"/usr/lib/*/pkgconfig/libdpdk.pc
    mv "$root.part" "$root"
    rm -rf "$work/debs" "$work/apt"
}

[ -d "$root" ] || unpack
PKG_CONFIG_PATH=$(echo "$root"/usr/lib/*/pkgconfig)
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR="$root"
version=$(pkg-config --modversion libdpdk)
case $version in
24.11*) ;;
*) die "unpacked DPDK $version instead of 24.11" ;;
esac
# Debian 13's libraries ask for a newer libc than the machine may have: what they lack is not looked at.
RUSTFLAGS="-C link-arg=-Wl,--unresolved-symbols=ignore-in-shared-libs" CARGO_TARGET_DIR="$work/build" \
    cargo test --quiet -p dpdk -p dpdk-sys --no-run || die "the DPDK crates do not build against DPDK $version"
echo "check-dpdk-24.11: ok, compiled and linked against DPDK $version"
