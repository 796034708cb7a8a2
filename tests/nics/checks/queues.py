"""Several queues, and the order of packets in front of a device that is full."""

import frames
from frames import IPV4, IPV6

from . import LOST_AFTER, check, exchange, require, require_same

FLOWS, EACH = 16, 40
# Type of service: throughput goes to the last of the bands, low delay to the first.
BULK, URGENT = 0x08, 0x10
WAITING, URGENT_COUNT, MOST_BULK = 200, 100, 3000


@check("spreads flows over the queues and keeps each in order", applies=lambda kind: kind.queues > 1)
def spread(rig):
    busy = {core["core"]: core["packets"] for core in rig.router.cores()}
    # Flows take turns; and one by itself, whose packets come close together.
    turns = [(flow, number) for number in range(EACH) for flow in range(FLOWS)]
    alone = [(FLOWS, number) for number in range(300)]
    for side, order in ((0, turns), (1, turns), (0, alone)):
        sent = [frames.frame(IPV4, side, number, 100, flow=flow) for flow, number in order]
        received = exchange(rig, side, sent)
        require(
            sorted(received) == sorted(frames.routed(frame, side) for frame in sent),
            f"{len(received)} frames came, expected were {len(sent)}, or they are not the same",
        )
        last = {}
        for frame in received:
            flow, number = frame[26:30], frames.number_of(frame)
            require(last.get(flow, -1) < number, f"{number} came after {last.get(flow)} of the same flow")
            last[flow] = number
    shares = {core["core"]: core["packets"] - busy[core["core"]] for core in rig.router.cores()}
    require(all(share > 0 for share in shares.values()), f"the workers received {shares}")
    return "packets by core: " + ", ".join(f"{core}: {share}" for core, share in shares.items())


TRAIN, TRAINS = 32, 20


@check("merges TCP packets, which the device cuts into the same ones", applies=lambda kind: kind.gro)
def cutting(rig):
    def offloaded():
        return sum(queue["gso"]["offloaded"] for queue in rig.router.queues("p1"))

    remarks = []
    for version in (IPV4, IPV6):
        before = offloaded()
        for flow in range(TRAINS):
            size = (frames.LONGEST, 600, 1000, 1514)[flow % 4]
            sent = list(frames.train(version, 0, flow, TRAIN, size))
            # All at once, so that some are received together.
            require_same(exchange(rig, 0, sent, window=TRAIN + 1), [frames.routed(frame, 0) for frame in sent])
        cut = offloaded() - before
        require(cut > 0, f"IPv{version}: the device cut none of {TRAINS} trains of {TRAIN} packets")
        remarks.append(f"IPv{version}: {cut} super-packets of {TRAIN * TRAINS} packets")
    return ", ".join(remarks)


def waiting(rig, band):
    """Packets in a band before p1."""
    return rig.router.queues("p1")[0]["bands"][band]["backlog"]["packets"]


def fill(rig):
    """Sends bulk packets to a host that does not read, until the device is full and some wait; returns how many."""
    router, source, bulk = rig.router, rig.wires[0], 0
    before = router.ports()["p0"]["rx"]["packets"]
    while waiting(rig, 2) < WAITING:
        require(bulk < MOST_BULK, f"{bulk} frames went to a host that does not read, and {waiting(rig, 2)} wait")
        for number in range(bulk, bulk + 50):
            source.send(frames.frame(IPV4, 0, number, 100, tos=BULK))
        bulk += 50
        router.wait_for(lambda: router.ports()["p0"]["rx"]["packets"] - before >= bulk or None, 10)
    return bulk


@check("sends urgent packets first when the device is full", applies=lambda kind: kind.back_pressure)
def priority(rig):
    router, (source, sink) = rig.router, rig.wires
    before = router.ports()["p1"]["tx"]["packets"]
    bulk = fill(rig)
    for number in range(URGENT_COUNT):
        source.send(frames.frame(IPV4, 0, number, 100, tos=URGENT))
    all_wait = router.wait_for(lambda: waiting(rig, 0) == URGENT_COUNT or None)
    require(all_wait, f"{waiting(rig, 0)} urgent packets wait")

    # What has left the bands is with the device, but for a few that it gave back, which are first in line.
    queue, taken = router.queues("p1")[0], router.ports()["p1"]["tx"]["packets"] - before
    given_back = queue["backlog"]["packets"] - sum(band["backlog"]["packets"] for band in queue["bands"])
    received = []
    while len(received) < bulk + URGENT_COUNT and (frame := sink.receive(LOST_AFTER)) is not None:
        received.append((frame[15] == URGENT, frames.number_of(frame)))
    require(len(received) == bulk + URGENT_COUNT, f"{len(received)} of {bulk} and {URGENT_COUNT} frames came")
    ahead = received.index((True, 0))
    require(ahead <= taken + given_back, f"{ahead} went ahead; the device had {taken}, and had given {given_back} back")
    urgent = [(True, number) for number in range(URGENT_COUNT)]
    require(received[ahead : ahead + URGENT_COUNT] == urgent, "urgent packets are not together and in order")
    rest = received[:ahead] + received[ahead + URGENT_COUNT :]
    require(rest == [(False, number) for number in range(bulk)], "bulk packets are not in order")
    return f"{ahead} ahead of them: {taken} with the device, {given_back} given back; {bulk - ahead} behind"
