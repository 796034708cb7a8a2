"""Frames that hosts send, and what a router has to make of them."""

import struct
from ipaddress import IPv4Address, IPv6Address

from kinds import mac

IPV4, IPV6 = 4, 6
# Frames without check sequence: the least Ethernet has, and the most for an MTU of 1500. UDP over IPv6 begins at 62.
SHORTEST, LONGEST = 60, 1514
HOP_LIMIT = 64


def host_mac(side):
    """The MAC address of the host on a port's wire."""
    return f"02:00:00:00:01:{side:02x}"


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def port_address(side, version):
    """Thruway's own address on a port."""
    return IPv4Address(f"10.{side}.0.1") if version == IPV4 else IPv6Address(f"2001:db8:{side}::1")


def host_address(side, version):
    """The address of the host on a port's wire."""
    return port_address(side, version) + 1


def network(side, version):
    """The network behind the host on a port's wire."""
    return f"10.{side + 10}.0.0/16" if version == IPV4 else f"2001:db8:{side + 10:x}::/48"


def far_address(side, version, number):
    """An address in the network behind a host."""
    base = IPv4Address(f"10.{side + 10}.0.0") if version == IPV4 else IPv6Address(f"2001:db8:{side + 10:x}::")
    return base + 1 + number % 60000


def checksum(data):
    """The checksum of the Internet protocols (RFC 1071)."""
    rest = int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 0xFFFF
    return (0xFFFF - rest) & 0xFFFF if any(data) else 0xFFFF


def frame(version, side, number, size, flow=None, tos=0, hop_limit=HOP_LIMIT, destination=None):
    """A UDP frame of `size` bytes that comes in by a port, for the network behind the other one.

    Its number is at the end of the payload, as much of it as fits, and in the addresses unless it belongs to a flow.
    """
    other = 1 - side
    which = number if flow is None else flow
    source, destination = far_address(side, version, which), destination or far_address(other, version, which)
    length = size - 14 - (20 if version == IPV4 else 40)
    filling = bytes((number + at) & 0xFF for at in range(length - 12))
    payload = (filling + struct.pack("!I", number))[12 - 4 - length :] if length > 8 else b""
    udp = struct.pack("!HHHH", 1024 + which % 50000, 2000, length, 0) + payload
    pseudo = source.packed + destination.packed + struct.pack("!IHH", length, 0, 17)
    udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    if version == IPV4:
        fields = (0x45, tos, 20 + length, number & 0xFFFF, 0x4000, hop_limit, 17, 0, source.packed, destination.packed)
        header = with_checksum(struct.pack("!BBHHHBBH4s4s", *fields))
        kind = b"\x08\x00"
    else:
        header = struct.pack("!IHBB", 6 << 28 | tos << 20, length, 17, hop_limit) + source.packed + destination.packed
        kind = b"\x86\xdd"
    return mac_bytes(mac(side)) + mac_bytes(host_mac(side)) + kind + header + udp


def train(version, side, flow, count, size):
    """TCP frames of `size` bytes, one after the other of a flow that comes in by a port; the last is shorter.

    None has PSH: QEMU clears it in all that it cuts, where cards leave it to the last.
    """
    source, destination = far_address(side, version, flow), far_address(1 - side, version, flow)
    ip_len = 20 if version == IPV4 else 40
    sequence = 0xFFFF0000 + 7 * flow
    for number in range(count):
        last = number == count - 1
        payload = bytes((number * 3 + at) & 0xFF for at in range((size - 14 - ip_len - 32) // (2 if last else 1)))
        fields = (1024 + flow, 80, sequence & 0xFFFFFFFF, 1, 8 << 4, 0x10, 501, 0, 0)
        # Time stamps.
        options = struct.pack("!BBBBII", 1, 1, 8, 10, 7, 8)
        tcp = struct.pack("!HHIIBBHHH", *fields) + options + payload
        pseudo = source.packed + destination.packed + struct.pack("!IHH", len(tcp), 0, 6)
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        if version == IPV4:
            words = (0x45, 0, 20 + len(tcp), 500 + number, 0x4000, HOP_LIMIT, 6, 0, source.packed, destination.packed)
            header = with_checksum(struct.pack("!BBHHHBBH4s4s", *words))
        else:
            header = struct.pack("!IHBB", 6 << 28, len(tcp), 6, HOP_LIMIT) + source.packed + destination.packed
        kind = b"\x08\x00" if version == IPV4 else b"\x86\xdd"
        yield mac_bytes(mac(side)) + mac_bytes(host_mac(side)) + kind + header + tcp
        sequence += len(payload)


def with_checksum(header):
    """An IPv4 header with its checksum."""
    return header[:10] + struct.pack("!H", checksum(header[:10] + b"\0\0" + header[12:])) + header[12:]


def routed(sent, side):
    """What the host on the other wire gets of a frame that came in by a port."""
    other = 1 - side
    ethernet = mac_bytes(host_mac(other)) + mac_bytes(mac(other)) + sent[12:14]
    if sent[12:14] == b"\x08\x00":
        return ethernet + with_checksum(sent[14:22] + bytes([sent[22] - 1]) + sent[23:34]) + sent[34:]
    return ethernet + sent[14:21] + bytes([sent[21] - 1]) + sent[22:]


def unrouted_address(version):
    """An address that no route leads to."""
    return IPv4Address("10.99.0.1") if version == IPV4 else IPv6Address("2001:db8:99::1")


def number_of(received):
    """The number at the end of a frame."""
    return int.from_bytes(received[-4:], "big")


def sizes(version, count):
    """As many sizes, from the least to the greatest and all over the range between."""
    least = SHORTEST if version == IPV4 else SHORTEST + 2
    spread = [least, LONGEST, least + 1, LONGEST - 1]
    return spread + [least + step * 7 % (LONGEST + 1 - least) for step in range(len(spread), count)]
