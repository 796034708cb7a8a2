"""Ports go down and up, buffers come back, and the end is clean."""

import re
import threading
import time

import frames
from frames import IPV4, IPV6

from . import check, exchange, require, require_same
from .accounting import require_conserved, settled
from .queues import fill

TIMES = 3
PAUSE = 0.0005


class Load(threading.Thread):
    """Sends frames from p0 to p1 and takes what comes, until told to stop."""

    def __init__(self, rig):
        super().__init__(daemon=True)
        self.rig, self.sent, self.received = rig, 0, []
        self.stopping = threading.Event()

    def run(self):
        source, sink = self.rig.wires
        while not self.stopping.is_set():
            # Not waiting: a guest that has stopped takes no more.
            self.sent += source.try_send(frames.frame(IPV4, 0, self.sent, 100, flow=7))
            while (frame := sink.receive(PAUSE)) is not None:
                self.received.append(frame)

    def stop(self):
        self.stopping.set()
        self.join()
        self.received += self.rig.wires[1].drain()


@check("a port goes down and up under load, and nothing is lost uncounted")
def down_and_up(rig):
    router, sink = rig.router, rig.wires[1]
    sent_before, seen_before = router.ports()["p1"]["tx"]["packets"], sink.received[0]
    load = Load(rig)
    load.start()
    try:
        for _ in range(TIMES):
            time.sleep(0.3)
            dropped = router.drops().get("port_down", 0)
            router.run("port set p1 down")
            require(router.ports()["p1"]["admin"] == "down", "p1 is not down")
            more = router.wait_for(lambda: router.drops().get("port_down", 0) >= dropped + 20 or None)
            require(more, "packets to a port that is down are not counted")
            router.run("port set p1 up")
            came = len(load.received)
            more = router.wait_for(lambda: len(load.received) >= came + 20 or None)
            require(more, "no packets come by the port that is up again")
    finally:
        load.stop()
    ports, queues, drops = settled(rig)
    text = require_conserved(ports, queues, drops)
    numbers = [frames.number_of(frame) for frame in load.received]
    require(numbers == sorted(set(numbers)), "packets came twice, or not in order")
    require_same(load.received, [frames.routed(frames.frame(IPV4, 0, n, 100, flow=7), 0) for n in numbers])
    # What the device had taken when it was stopped may be gone with it.
    gone = ports["p1"]["tx"]["packets"] - sent_before - (sink.received[0] - seen_before)
    require(0 <= gone <= TIMES * 1024, f"{gone} packets that the device took did not come")
    return f"{text}; {drops.get('port_down', 0)} as port_down, {gone} gone with the device's ring"


@check("a port that goes down drops what waits for a full device", applies=lambda kind: kind.back_pressure)
def down_while_full(rig):
    router = rig.router
    before = router.drops().get("port_down", 0)
    fill(rig)
    waits = sum(queue["backlog"]["packets"] for queue in router.queues("p1"))
    router.run("port set p1 down")
    dropped = router.drops().get("port_down", 0) - before
    require(dropped == waits, f"{dropped} packets are counted as port_down, {waits} waited")
    rig.wires[1].drain()
    router.run("port set p1 up")
    sent = [frames.frame(IPV4, 0, number, 200) for number in range(50)]
    require_same(exchange(rig, 0, sent), [frames.routed(frame, 0) for frame in sent])
    require_conserved(*settled(rig))
    return f"{dropped} dropped"


@check("buffers come back when nothing passes")
def idle(rig):
    time.sleep(0.6)
    kept = rig.router.in_use() - rig.idle_buffers
    rings = 0 if rig.kind.cleans else 2 * rig.kind.queues * 1024
    require(0 <= kept <= rings, f"{kept} buffers more are in use than at the start, and transmit rings have {rings}")
    in_flight = [queue["bql"]["inflight"] for port in ("p0", "p1") for queue in rig.router.queues(port)]
    require(not any(in_flight), f"{in_flight} bytes are taken to be in flight")
    return f"all of them but {kept} that wait in transmit rings" if kept else "all of them"


@check("ports give their buffers back when they are down, and forward again when they are up")
def all_down(rig):
    router = rig.router
    for name in ("p0", "p1"):
        router.run(f"port set {name} down")
    kept = router.in_use()
    expected = rig.idle_buffers if rig.kind.keeps_receive_buffers else 0
    require(kept == expected, f"{kept} buffers are in use while the ports are down, expected are {expected}")
    for name in ("p0", "p1"):
        router.run(f"port set {name} up")
    require(router.links_are_up(), f"a link stays down: {router.ports()}")
    for side in range(2):
        sent = [frames.frame(IPV6, side, number, 500) for number in range(50)]
        received = sorted(exchange(rig, side, sent))
        require_same(received, sorted(frames.routed(frame, side) for frame in sent))
    return f"{kept} buffers in use while they are down"


@check("ends on SIGTERM, with its books balanced and no buffer lost")
def ends(rig):
    ports, _, drops = settled(rig)
    totals = end(rig)
    require(totals[0] == totals[1] + totals[2], f"received, sent and dropped are {totals}")
    received, sent = (sum(port[way]["packets"] for port in ports.values()) for way in ("rx", "tx"))
    expected = (received, sent, sum(drops.values()))
    require(totals == expected, f"received, sent and dropped are {totals}, expected {expected}")
    return "received {}, sent {}, dropped {}".format(*totals)


@check(
    "ends while the device is full, with its books balanced and no buffer lost",
    applies=lambda kind: kind.back_pressure,
)
def ends_while_full(rig):
    rig.router = rig.router.again()
    count = fill(rig)
    waits = sum(queue["backlog"]["packets"] for queue in rig.router.queues("p1"))
    totals = end(rig)
    expected = (count, count - waits, waits)
    require(totals == expected, f"received, sent and dropped are {totals}, expected {expected}")
    return f"received {count}, dropped {waits} that waited"


@check("starts again, and ends under load with its books balanced and no buffer lost")
def ends_under_load(rig):
    rig.router = rig.router.again()
    require(rig.router.links_are_up(), f"a link stays down: {rig.router.ports()}")
    # What the one before it has left on the wire.
    rig.wires[1].drain()
    load = Load(rig)
    load.start()
    try:
        passing = rig.router.wait_for(lambda: len(load.received) >= 200 or None)
        require(passing, f"{len(load.received)} packets come")
        received, sent, dropped = end(rig)
    finally:
        load.stop()
    require(received == sent + dropped, f"{received} received, {sent} sent, {dropped} dropped do not add up")
    gone = sent - len(load.received)
    require(0 <= gone <= 1024, f"{gone} packets that the device took did not come")
    return f"received {received}, sent {sent}, dropped {dropped}; {gone} gone with the device's ring"


def end(rig):
    """Stops Thruway, which must end well; returns how many packets it says it has received, sent and dropped."""
    status, log = rig.router.stop(), rig.router.log()
    require(status == 0, f"exit status {status}: {log}")
    totals = re.search(r"received (\d+) packets, sent (\d+), dropped (\d+)", log)
    require(totals, f"no totals: {log}")
    # It would warn of buffers that did not come back.
    unexpected = [line for line in log.splitlines() if " INFO " not in line and not line.startswith("received ")]
    require(not unexpected, f"the log has {unexpected}")
    pages = rig.machine.shell("grep HugePages /proc/meminfo")
    total, free = (re.search(rf"HugePages_{name}:\s+(\d+)", pages).group(1) for name in ("Total", "Free"))
    require(total == free, f"hugepages are not free: {pages}")
    return tuple(map(int, totals.groups()))
