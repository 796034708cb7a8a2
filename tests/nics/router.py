"""Thruway in the guest: set up, asked, changed and stopped by its own command line."""

import json
import time

import frames
from machine import GuestError

CONFIG, LOG, PREFIX = "/etc/thruway.toml", "/tmp/thruway.log", "nics"
START_TIMEOUT = 150


def configuration(kind, devices):
    """Two ports, a host on each one's wire, and a network behind each host."""
    workers = list(range(kind.queues)) if kind.queues > 1 else [1]
    lines = ["[runtime]", "main_core = 0", f"worker_cores = {workers}", f"file_prefix = '{PREFIX}'"]
    for side, device in enumerate(devices):
        addresses = [f"{frames.port_address(side, 4)}/24", f"{frames.port_address(side, 6)}/64"]
        lines += ["[[port]]", f"name = 'p{side}'", f"device = '{device}'", f"addresses = {addresses}"]
        lines += [f"rx_queues = {kind.queues}", f"tx_queues = {kind.queues}"]
        if kind.gro:
            # Each place of a band may need many buffers.
            lines += ["gro = true", "qdisc.limit = 200"]
    for side in range(2):
        for version in (frames.IPV4, frames.IPV6):
            host = frames.host_address(side, version)
            lines += ["[[route]]", f"prefix = '{frames.network(side, version)}'", f"via = '{host}'"]
            lines += ["[[neighbor]]", f"address = '{host}'", f"mac = '{frames.host_mac(side)}'", f"port = 'p{side}'"]
    return "\n".join(lines)


class Router:
    """A running Thruway."""

    def __init__(self, machine, kind, devices):
        self.machine, self.kind, self.devices = machine, kind, devices
        machine.write_file(CONFIG, configuration(kind, devices))
        # Emptied first: what the one before has said is not to be taken for this one's.
        machine.shell(f": > {LOG}; thruway run -c {CONFIG} >> {LOG} 2>&1 & echo $! > /tmp/pid")
        waiting = f"while ! grep -q ' ready$' {LOG} && kill -0 $(cat /tmp/pid); do sleep 0.1; done 2> /dev/null"
        machine.shell(f"{waiting}; true", START_TIMEOUT)
        if not self.log().rstrip().endswith("ready"):
            raise GuestError(f"Thruway does not start: {self.log()}")

    def log(self):
        """What it has said."""
        return self.machine.shell(f"cat {LOG}")

    def run(self, command):
        """What a command of its command line prints."""
        return self.machine.shell(f"thruway {command}")

    def show(self, *whats):
        """The answers of `thruway show`."""
        commands = "; ".join(f"thruway show {what} --json" for what in whats)
        return [json.loads(line) for line in self.machine.shell(commands).splitlines()]

    def snapshot(self):
        """The ports and the transmit queues, by the ports' names, and the reasons to drop that are not at 0."""
        ports, queues, drops = self.show("ports", "queues", "drops")
        by_port = {port["name"]: [queue for queue in queues if queue["port"] == port["name"]] for port in ports}
        counted = {drop["reason"]: drop["packets"] for drop in drops if drop["packets"]}
        return {port["name"]: port for port in ports}, by_port, counted

    def ports(self):
        """The ports, by their names."""
        return {port["name"]: port for port in self.show("ports")[0]}

    def queues(self, port):
        """The transmit queues of a port."""
        return [queue for queue in self.show("queues")[0] if queue["port"] == port]

    def cores(self):
        """The workers."""
        return self.show("cores")[0]

    def drops(self):
        """The reasons to drop that are not at 0."""
        return {drop["reason"]: drop["packets"] for drop in self.show("drops")[0] if drop["packets"]}

    def in_use(self):
        """Buffers of the packet pool in use: in receive rings for packets to come, in transmit rings as long as
        the driver has not looked whether they are done, and in qdiscs."""
        return self.ports()["p0"]["pool"]["in_use"]

    def links_are_up(self):
        """Waits until both links are up; false if they stay down."""
        return self.wait_for(lambda: all(port["link"]["up"] for port in self.ports().values()) or None) is not None

    def wait_for(self, condition, timeout=60):
        """Asks until there is an answer that is not `None`, and returns it."""
        end = time.monotonic() + timeout
        while (answer := condition()) is None:
            if time.monotonic() > end:
                return None
            time.sleep(0.1)
        return answer

    def stop(self):
        """Stops it by SIGTERM; returns its exit status."""
        status, _ = self.machine.try_shell("kill -TERM $(cat /tmp/pid); wait $(cat /tmp/pid)")
        return status

    def again(self):
        """Another one after this has stopped, or should have."""
        self.machine.try_shell("kill -KILL $(cat /tmp/pid); wait $(cat /tmp/pid)")
        return Router(self.machine, self.kind, self.devices)

