"""What is checked on each kind of NIC, in the order in which it is: one virtual machine serves all checks, and one run
of Thruway all but the last.

A check is a function of the rig. It raises `CheckFailed`, by `require`, and returns a remark or nothing.
"""

from dataclasses import dataclass
from typing import Callable

from kinds import Kind
from machine import Machine
from router import Router

# A frame that is on its way for so many seconds is lost.
LOST_AFTER = 20
# Frames on their way at once: fewer than any queue between the ends has room for.
WINDOW = 32

CHECKS = []


class CheckFailed(Exception):
    """What was checked is not so."""


@dataclass
class Check:
    """A check by its name."""

    name: str
    run: Callable
    applies: Callable


@dataclass
class Rig:
    """A virtual machine in which Thruway runs."""

    kind: Kind
    machine: Machine
    router: Router
    # Buffers in use when it had just started.
    idle_buffers: int = 0

    @property
    def wires(self):
        return self.machine.wires


def check(name, applies=lambda kind: True):
    """Makes a function a check of the kinds that it applies to."""

    def register(function):
        CHECKS.append(Check(name, function, applies))
        return function

    return register


def require(condition, message):
    """Fails the check if the condition does not hold."""
    if not condition:
        raise CheckFailed(message)


def exchange(rig, side, sent, window=WINDOW):
    """Sends frames by one wire; returns what comes out of the other one."""
    source, sink, received = rig.wires[side], rig.wires[1 - side], []
    for count, frame in enumerate(sent, 1):
        source.send(frame)
        while count - len(received) >= window:
            if (frame := sink.receive(LOST_AFTER)) is None:
                return received
            received.append(frame)
    while len(received) < len(sent) and (frame := sink.receive(LOST_AFTER)) is not None:
        received.append(frame)
    # Nothing more is to come.
    return received + sink.drain(0.1)


def shown(frame):
    """A frame's headers, for people."""
    return f"{frame[:14].hex()} {frame[14:62].hex()} of {len(frame)} bytes"


def require_same(received, expected):
    """Frames are what was expected, and in order."""
    for position, (got, wanted) in enumerate(zip(received, expected)):
        require(got == wanted, f"frame {position} is {shown(got)}, expected is {shown(wanted)}")
    require(len(received) == len(expected), f"{len(received)} frames came instead of {len(expected)}")


# Last, because they need what is above. Their order is that of the checks.
from . import start, forwarding, queues, accounting, lifecycle  # noqa: E402, F401
