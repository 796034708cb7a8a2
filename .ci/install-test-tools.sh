#!/bin/sh
# Installs the tools that tests use where they are there.
set -eu
tools="ethtool iperf3 iproute2 iputils-ping make python3 strace util-linux"
missing=
for tool in $tools; do
    dpkg-query --show --showformat '${Status}' "$tool" 2> /dev/null | grep -q 'ok installed' || missing="$missing $tool"
done
[ -n "$missing" ] || exit 0
echo "installing$missing"
apt-get -qq update
# Unquoted: a list of packages.
apt-get -qq install --no-install-recommends $missing > /dev/null
