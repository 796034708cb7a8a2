"""Frames come out as a router has to make them, bit by bit, or are dropped and counted."""

import frames
from frames import IPV4, IPV6

from . import check, exchange, require, require_same

COUNT = 300


def forward(version, side):
    """Frames of all sizes from one side to the other."""

    def run(rig):
        sent = [frames.frame(version, side, number, size) for number, size in enumerate(frames.sizes(version, COUNT))]
        received = exchange(rig, side, sent)
        expected = [frames.routed(frame, side) for frame in sent]
        if rig.kind.queues > 1:
            # Only flows stay in order.
            received, expected = sorted(received), sorted(expected)
        require_same(received, expected)
        return f"{COUNT} frames of {min(map(len, sent))} to {max(map(len, sent))} bytes"

    return run


for _version in (IPV4, IPV6):
    for _side in range(2):
        check(f"forwards IPv{_version} from p{_side} to p{1 - _side}")(forward(_version, _side))


@check("forwards packets that are shorter than Ethernet's least frame")
def short(rig):
    # What fills the frame up is not forwarded; the NIC may fill it up again.
    sent = [frames.frame(IPV4, 0, number, size) for number, size in enumerate(range(54, frames.SHORTEST))]
    received = exchange(rig, 0, [frame + b"\xaa" * (frames.SHORTEST - len(frame)) for frame in sent])
    padded = {len(frame) for frame in received} == {frames.SHORTEST}
    expected = [frames.routed(frame, 0) for frame in sent]
    if padded:
        expected = [frame.ljust(frames.SHORTEST, b"\0") for frame in expected]
    if rig.kind.queues > 1:
        received, expected = sorted(received), sorted(expected)
    require_same(received, expected)
    return "padded by the NIC" if padded else "sent without padding"


@check("drops what must not be forwarded, each under its reason")
def drops(rig):
    count = 10
    before = rig.router.drops()
    expected = {}
    for version in (IPV4, IPV6):
        nowhere = frames.unrouted_address(version)
        cases = {
            "ttl_expired": lambda number, v=version: frames.frame(v, 0, number, 100, hop_limit=1),
            "no_route": lambda number, v=version, to=nowhere: frames.frame(v, 0, number, 100, destination=to),
            "local": lambda number, v=version: frames.frame(v, 0, number, 100, destination=frames.port_address(1, v)),
        }
        if version == IPV4:
            cases["bad_checksum"] = lambda number: spoiled(frames.frame(IPV4, 0, number, 100))
        for reason, make in cases.items():
            require(not exchange_none(rig, [make(number) for number in range(count)]), f"{reason}: frames came through")
            expected[reason] = expected.get(reason, before.get(reason, 0)) + count

    def counted():
        return rig.router.drops() if all(rig.router.drops().get(r, 0) >= c for r, c in expected.items()) else None

    now = rig.router.wait_for(counted, 20) or rig.router.drops()
    require(now == {**before, **expected}, f"the counters are {now}, expected are {expected}")
    # Good ones still pass.
    good = [frames.frame(IPV4, 0, number, 200) for number in range(count)]
    require(len(exchange(rig, 0, good)) == count, "frames that follow them do not come through")
    return ", ".join(expected)


def spoiled(frame):
    """An IPv4 frame with a checksum that is wrong."""
    return frame[:24] + bytes([frame[24] ^ 0x55]) + frame[25:]


def exchange_none(rig, sent):
    """Sends frames of which none is to come through; returns those that do."""
    for frame in sent:
        rig.wires[0].send(frame)
    return rig.wires[1].drain(0.1)
