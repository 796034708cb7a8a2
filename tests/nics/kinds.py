"""The kinds of NICs that are tried."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A NIC as QEMU emulates it, and how Thruway is set up on two of them."""

    name: str
    # QEMU's device.
    model: str
    # The PMD that must drive it.
    driver: str
    # How it is known that a packet has left.
    completion: str
    # Each is behind a PCIe root port of its own: igb's virtual functions take slots of the bus that it is on.
    root_port: bool = False
    # Receive queues, which are as many as the transmit queues and the workers.
    queues: int = 1
    # Packets of a flow are merged; here the device cuts TCP packets again.
    gro: bool = False
    # The driver frees what has left when it is asked to.
    cleans: bool = False
    # What a stalled host holds up is the guest's transmit ring; else QEMU queues without bound.
    back_pressure: bool = False
    # The driver keeps its receive buffers while a port is stopped.
    keeps_receive_buffers: bool = False

    def device(self, number, netdev):
        """QEMU's arguments for one of them."""
        arguments, bus = [], ""
        if self.root_port:
            arguments = ["-device", f"pcie-root-port,id=root{number},chassis={number + 1},slot={number + 1}"]
            bus = f",bus=root{number}"
        return [*arguments, "-device", f"{self.model}{bus},netdev={netdev},romfile=,mac={mac(number)}"]


def mac(number):
    """The MAC address of a port."""
    return f"52:54:00:00:00:{number + 1:02x}"


KINDS = {
    kind.name: kind
    for kind in [
        Kind(
            "igb",
            model="igb",
            driver="net_e1000_igb",
            completion="descriptor-status",
            root_port=True,
            queues=2,
            gro=True,
            cleans=True,
        ),
        Kind(
            "virtio",
            model="virtio-net-pci",
            driver="net_virtio",
            completion="paced",
            back_pressure=True,
            keeps_receive_buffers=True,
        ),
        Kind("e1000e", model="e1000e", driver="net_e1000_em", completion="paced"),
        Kind("vmxnet3", model="vmxnet3", driver="net_vmxnet3", completion="mbuf-refcount"),
    ]
}
