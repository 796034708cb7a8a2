"""A virtual machine with two emulated NICs: started, spoken to by its serial line, stopped."""

import ctypes
import mmap
import os
import re
import select
import shlex
import shutil
import subprocess
import tempfile
import time

from wire import Wire

# The machine may have to share its cores: everything but a hang is waited for.
BOOT_TIMEOUT = 200
COMMAND_TIMEOUT = 150

APPEND = "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check"


class GuestError(Exception):
    """The guest did not do what it was told."""


def tsc_khz():
    """The frequency of the time-stamp counter, which the guest sees as it is.

    The guest is told, because measured by an emulated timer on a busy machine it comes out at anything.
    """
    # rdtsc; shl rdx, 32; or rax, rdx; ret
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f3148c1e2204809d0c3"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    before, ticks = time.clock_gettime(time.CLOCK_MONOTONIC_RAW), rdtsc()
    time.sleep(0.2)
    seconds, ticks = time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - before, rdtsc() - ticks
    return round(ticks / seconds / 1000)


def qemu(folder):
    """The program of QEMU and the environment it needs: the one that setup.sh unpacked, or the machine's."""
    root = f"{folder}/qemu"
    if not os.path.isdir(root):
        return "qemu-system-x86_64", os.environ
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    return f"{root}/usr/bin/qemu-system-x86_64", {**os.environ, "LD_LIBRARY_PATH": libraries}


class Machine:
    """A running virtual machine. A context manager: QEMU ends with it."""

    def __init__(self, folder, kind, log):
        self.scratch = tempfile.mkdtemp(prefix="thruway-nics-")
        self.wires = [Wire(self.scratch, number) for number in range(2)]
        self.output, self.log = b"", open(log, "wb")
        program, environment = qemu(folder)
        command = [program, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "768"]
        command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]
        if os.path.isdir(f"{folder}/qemu"):
            command += ["-L", f"{folder}/qemu/usr/share/qemu", "-L", f"{folder}/qemu/usr/share/seabios"]
        command += ["-kernel", f"{folder}/vmlinux", "-initrd", f"{folder}/initramfs.cpio"]
        command += ["-append", f"{APPEND} tsc_early_khz={tsc_khz()}"]
        for number, wire in enumerate(self.wires):
            command += ["-netdev", wire.netdev(f"wire{number}")]
            command += kind.device(number, f"wire{number}")
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        os.set_blocking(self.process.stdout.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
        for wire in self.wires:
            wire.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def boot(self):
        """Waits until the guest is up; returns the PCI addresses of its NICs."""
        text = self.expect(r"guest: ready", BOOT_TIMEOUT)
        return re.findall(r"guest: nic (\S+)", text)

    def shell(self, command, timeout=COMMAND_TIMEOUT):
        """What a command prints. It must succeed."""
        status, text = self.try_shell(command, timeout)
        if status != 0:
            raise GuestError(f"{command}: exit status {status}: {text}")
        return text

    def try_shell(self, command, timeout=COMMAND_TIMEOUT):
        """The exit status of a command, and what it prints."""
        # The marks are not in the line itself, should it be echoed.
        line = f'echo "be""gin"; {command}\necho "e""nd $?"\n'
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        text = self.expect(r"end \d+\n", timeout)
        text = text.partition("begin\n")[2]
        body, _, status = text.rstrip("\n").rpartition("end ")
        return int(status), body

    def write_file(self, path, text):
        """Makes a file in the guest."""
        self.shell(f"rm -f {path}")
        # A terminal takes lines of 4095 bytes at most.
        for line in text.splitlines():
            self.shell(f"echo {shlex.quote(line)} >> {path}")

    def expect(self, pattern, timeout):
        """The guest's output up to and including what matches."""
        compiled, end = re.compile(pattern.encode()), time.monotonic() + timeout
        while True:
            if match := compiled.search(self.output):
                text, self.output = self.output[: match.end()], self.output[match.end() :]
                return text.decode(errors="replace")
            tail = self.output[-1000:].decode(errors="replace")
            if time.monotonic() > end:
                raise GuestError(f"{pattern!r} did not come within {timeout} s, but {tail!r}")
            if not self.read_output():
                raise GuestError(f"QEMU has ended with {self.process.wait()}: {tail!r}")

    def read_output(self):
        """Waits a moment for output; false when there will be no more."""
        if not select.select([self.process.stdout], [], [], 0.2)[0]:
            return True
        data = self.process.stdout.read()
        if data:
            self.log.write(data)
            self.log.flush()
            self.output += data.replace(b"\r", b"")
        return data != b""
