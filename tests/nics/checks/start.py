"""Thruway starts on the NICs."""

from . import check, require


@check("starts, and the links come up")
def starts(rig):
    ports = rig.router.ports()
    drivers = [port["driver"] for port in ports.values()]
    require(drivers == [rig.kind.driver] * 2, f"the drivers are {drivers}")
    require(rig.router.links_are_up(), f"a link stays down: {rig.router.ports()}")
    unexpected = [line for line in rig.router.log().splitlines() if " INFO " not in line]
    require(not unexpected, f"the log has {unexpected}")
    rig.idle_buffers = rig.router.in_use()
    pool = ports["p0"]["pool"]
    return f"{rig.idle_buffers} of {pool['buffers']} buffers wait in receive rings"
