"""Makes the guest's file system: Thruway with the libraries it needs, DPDK's drivers of the emulated NICs, busybox.

Libraries are taken as they are on this machine, links included: DPDK must find each of its drivers as one file, by
its folder of drivers and by its libraries' names.
"""

import glob
import lzma
import os
import re
import stat
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = ["bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_ring", "net_virtio", "net_vmxnet3"]
MODULES = ["uio", "uio_pci_generic"]
FOLDERS = ["dev", "etc", "mnt", "proc", "run", "sys", "tmp", "var"]
LINKS = {
    "/bin": "usr/bin",
    "/lib": "usr/lib",
    "/lib64": "usr/lib64",
    "/sbin": "usr/bin",
    "/usr/sbin": "bin",
    "/var/run": "/run",
}


class Tree:
    """Files of the guest, by their paths."""

    def __init__(self):
        self.entries = {}

    def folder(self, path):
        """A folder with those it is in."""
        if path != "/" and path not in self.entries:
            self.folder(os.path.dirname(path))
            self.entries[path] = (stat.S_IFDIR | 0o755, b"")

    def file(self, path, content, mode=0o755):
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFREG | mode, content)

    def link(self, path, target):
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFLNK | 0o777, target.encode())

    def from_host(self, path):
        """A file of this machine, at the same place; links with what they lead to."""
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if path in self.entries:
            return
        if os.path.islink(path):
            target = os.readlink(path)
            self.link(path, target)
            self.from_host(os.path.join(os.path.dirname(path), target))
        else:
            self.file(path, read(path))

    def with_libraries(self, path):
        """A program or library of this machine, and what it is linked with."""
        self.from_host(path)
        self.libraries_of(path)

    def libraries_of(self, path):
        listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        if missing := re.findall(r"(\S+) => not found", listing):
            raise FileNotFoundError(f"{path} needs {', '.join(missing)}")
        for library in re.findall(r"(?:=> |^\s+)(/\S+) \(", listing, re.MULTILINE):
            self.from_host(library)

    def archive(self):
        """All of it in cpio's format `newc`, as the kernel unpacks it."""
        parts = []
        for number, (path, (mode, content)) in enumerate(self.entries.items(), 1):
            parts.append(member(number, path.lstrip("/"), mode, content))
        parts.append(member(0, "TRAILER!!!", 0, b""))
        return b"".join(parts)


def member(number, name, mode, content):
    encoded = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return padded(header + encoded) + padded(content)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def read(path):
    with open(path, "rb") as source:
        return source.read()


def build(folder, thruway):
    """Writes `initramfs.cpio` into the folder that setup.sh has filled."""
    tree = Tree()
    for name in FOLDERS:
        tree.folder(f"/{name}")
    for path, target in LINKS.items():
        tree.link(path, target)
    with tempfile.TemporaryDirectory() as scratch:
        stripped = f"{scratch}/thruway"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, thruway], check=True)
        tree.libraries_of(stripped)
        tree.file("/usr/bin/thruway", read(stripped))
    drivers = max(glob.glob("/usr/lib/*/dpdk/pmds-*"))
    version = drivers.rpartition("-")[2]
    for driver in DRIVERS:
        tree.with_libraries(f"{drivers}/librte_{driver}.so.{version}")
        tree.from_host(f"{os.path.dirname(os.path.dirname(drivers))}/librte_{driver}.so.{version.split('.')[0]}")
    tree.file("/usr/bin/busybox", read(f"{folder}/busybox/bin/busybox"))
    for module in MODULES:
        (path,) = glob.glob(f"{folder}/kernel/**/drivers/uio/{module}.ko*", recursive=True)
        content = read(path)
        tree.file(f"/modules/{module}.ko", lzma.decompress(content) if path.endswith(".xz") else content)
    tree.file("/init", read(f"{HERE}/guest/init.sh"))
    with open(f"{folder}/initramfs.cpio", "wb") as target:
        target.write(tree.archive())
