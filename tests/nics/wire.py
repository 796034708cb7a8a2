"""The host's end of a NIC's wire: a datagram for each frame."""

import os
import select
import socket
import time

# A frame that QEMU does not take for so long will not be taken.
SEND_TIMEOUT = 60


class Wire:
    """One end of QEMU's `-netdev dgram` over a pair of Unix sockets.

    Few frames fit between the ends, and none is lost: what is not read here holds QEMU's device up, and
    frames that the guest does not receive hold `send` up.
    """

    def __init__(self, folder, number):
        self.near, self.far = f"{folder}/host{number}", f"{folder}/qemu{number}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.socket.setblocking(False)
        self.socket.bind(self.near)
        # Frames and bytes that went in here, and came out.
        self.sent, self.received = [0, 0], [0, 0]

    def netdev(self, name):
        """QEMU's argument for the other end."""
        here, there = f"local.type=unix,local.path={self.far}", f"remote.type=unix,remote.path={self.near}"
        return f"dgram,id={name},{here},{there}"

    def close(self):
        self.socket.close()
        os.unlink(self.near)

    def send(self, frame):
        """Sends a frame; waits as long as the other end has no room."""
        end = time.monotonic() + SEND_TIMEOUT
        while not self.try_send(frame):
            if time.monotonic() > end:
                raise TimeoutError(f"QEMU has taken no frame for {SEND_TIMEOUT} s")
            time.sleep(0.0002)

    def try_send(self, frame):
        """Sends a frame, or returns false if the other end has no room."""
        try:
            self.socket.sendto(frame, self.far)
        except BlockingIOError:
            return False
        self.sent[0] += 1
        self.sent[1] += len(frame)
        return True

    def receive(self, timeout):
        """The next frame, or `None` if none comes within so many seconds."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return None
        frame = self.socket.recv(65536)
        self.received[0] += 1
        self.received[1] += len(frame)
        return frame

    def drain(self, quiet=1.0):
        """All frames that come until none comes for so many seconds."""
        frames = []
        while (frame := self.receive(quiet)) is not None:
            frames.append(frame)
        return frames
