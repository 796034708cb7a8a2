"""Counters agree with each other and with the wires."""

import frames

from . import check, exchange, require


def settled(rig):
    """The ports, the transmit queues and the drops, when nothing changes any more."""
    last = None

    def still():
        nonlocal last
        snapshot = rig.router.snapshot()
        same, last = snapshot == last, snapshot
        return snapshot if same else None

    snapshot = rig.router.wait_for(still)
    require(snapshot, "the counters do not settle")
    return snapshot


def require_conserved(ports, queues, drops):
    """What came in was sent, is counted as dropped, or waits."""
    received, sent = (sum(port[way]["packets"] for port in ports.values()) for way in ("rx", "tx"))
    waiting = sum(queue["backlog"]["packets"] for of_port in queues.values() for queue in of_port)
    dropped = sum(drops.values())
    text = f"{received} received = {sent} sent + {dropped} dropped + {waiting} waiting"
    require(received == sent + dropped + waiting, f"{text} does not add up: {drops}")
    return text


@check("counters agree with the wires and add up")
def counters(rig):
    ports, queues, drops = settled(rig)
    for wire, (name, port) in zip(rig.wires, ports.items()):
        rx, tx = port["rx"], port["tx"]
        require([rx["packets"], rx["bytes"]] == wire.sent, f"{name} received {rx}, the host sent {wire.sent}")
        others = [rx["missed"], rx["errors"], rx["no_mbuf"], tx["dropped"], tx["errors"]]
        require(not any(others), f"{name} has lost something: {rx} {tx}")
        require(tx["packets"] == wire.received[0], f"{name} sent {tx}, the host received {wire.received}")
        # The NIC may have filled short frames up.
        require(0 <= wire.received[1] - tx["bytes"] < 100, f"{name} sent {tx}, the host received {wire.received}")
        for what in ("packets", "bytes"):
            given = sum(queue["sent"][what] for queue in queues[name])
            ways = sum(queue[way][what] for queue in queues[name] for way in ("bypassed", "queued"))
            text = f"{name}: {given} {what} given to the device, {ways} were on their way to it: {tx}"
            require(given == tx[what] == ways, text)
    return require_conserved(ports, queues, drops)


@check("does not forward frames for other stations, whether the NIC filters them or not")
def others(rig):
    count = 10
    before, _, dropped_before = settled(rig)
    for address in (b"\x52\x54\0\0\0\x77", b"\xff" * 6, b"\x01\0\x5e\0\0\x05"):
        for number in range(count):
            rig.wires[0].send(address + frames.frame(frames.IPV4, 0, number, 100)[6:])
    # What comes behind them comes alone.
    sent = [frames.frame(frames.IPV4, 0, number, 300) for number in range(count)]
    received = exchange(rig, 0, sent)
    require(sorted(received) == sorted(frames.routed(frame, 0) for frame in sent), f"{len(received)} frames came")
    ports, queues, drops = settled(rig)
    require_conserved(ports, queues, drops)
    reached = ports["p0"]["rx"]["packets"] - before["p0"]["rx"]["packets"] - count
    reasons = ("not_our_mac", "group_mac")
    counted = sum(drops.get(reason, 0) - dropped_before.get(reason, 0) for reason in reasons)
    require(reached == counted, f"{reached} reached Thruway, which counted {counted}")
    return f"{reached} of {3 * count} reached Thruway"
