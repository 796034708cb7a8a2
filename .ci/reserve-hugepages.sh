#!/bin/sh
# Reserves a gigabyte of hugepages and mounts them. Where that is not allowed, as in many containers, tests do
# without.
set -u
pages=/proc/sys/vm/nr_hugepages
if [ "$(cat $pages)" -lt 512 ]; then
    echo 512 > $pages 2> /dev/null || echo "no hugepages: they cannot be reserved here"
fi
grep -q ' /dev/hugepages hugetlbfs ' /proc/mounts && exit 0
mkdir -p /dev/hugepages 2> /dev/null
mount -t hugetlbfs nodev /dev/hugepages 2> /dev/null || echo "no hugepages: they cannot be mounted here"
