#!/usr/bin/busybox sh
# The guest's first process: gives hugepages, hands the NICs to DPDK, and leaves a shell on the serial line, by which
# the host does everything else.
/usr/bin/busybox --install -s /usr/bin
export PATH=/usr/bin
# DPDK loads no drivers from below a folder that everybody may write to, which this root is at first.
chmod 755 /
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/hugepages
mount -t hugetlbfs none /dev/hugepages
echo 200 > /proc/sys/vm/nr_hugepages
insmod /modules/uio.ko
insmod /modules/uio_pci_generic.ko
for device in /sys/bus/pci/devices/*; do
    read -r class < $device/class
    [ $class = 0x020000 ] || continue
    echo uio_pci_generic > $device/driver_override
    echo ${device##*/} > /sys/bus/pci/drivers_probe
    echo "guest: nic ${device##*/}"
done
stty -echo
echo "guest: ready"
exec setsid sh -c 'PS1= exec sh -i < /dev/ttyS0 > /dev/ttyS0 2>&1'
