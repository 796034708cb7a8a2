"""Takes the kernel proper out of a compressed image. QEMU starts it directly: no firmware pass, and nothing is
decompressed by the emulated processor.

usage: vmlinux.py IMAGE OUTPUT
"""

import lzma
import subprocess
import sys
import zlib

FORMATS = {
    b"\xfd7zXZ\0": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\x1f\x8b\x08": lambda data: zlib.decompressobj(31).decompress(data),
    b"\x28\xb5\x2f\xfd": lambda data: subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout,
}


def extract(image):
    """The first thing in an image that decompresses to an ELF file."""
    for magic, decompress in FORMATS.items():
        at = image.find(magic)
        while at >= 0:
            try:
                kernel = decompress(image[at:])
            except (lzma.LZMAError, zlib.error):
                kernel = b""
            if kernel.startswith(b"\x7fELF"):
                return kernel
            at = image.find(magic, at + 1)
    sys.exit("vmlinux.py: no kernel found in the image")


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source:
        kernel = extract(source.read())
    with open(sys.argv[2], "wb") as target:
        target.write(kernel)
