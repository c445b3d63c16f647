"""Reports of a device that does not exist, written behind what a process recorded: as its recorder would have."""

import struct

HEADER_BYTES = 4096
NAME, THREAD, DEVICE, DEVICE_CLOCK = 11, 12, 36, 37
KERNEL, COPY, FILL, CALL, WAIT, OVERHEAD, RANGE = 1, 2, 3, 5, 6, 8, 9
CUDA, XPU = 1, 12
NO_NAME = 0xFFFF_FFFF
# An ordinal that no thread of a test has, and the first number of names that no test uses.
ORDINAL, FIRST_NAME = 500, 500_000


def halves(low, high):
    """Two numbers in a word."""
    return (low & 0xFFFF_FFFF) | (high & 0xFFFF_FFFF) << 32


class Planted:
    """Reports to be written into a capture, in the nanoseconds of the monotonic clock."""

    def __init__(self, device_type=CUDA):
        self.records = []
        self._names = {}
        self._device_type = device_type

    def name(self, text):
        """The number of a name."""
        return self._names.setdefault(text, FIRST_NAME + len(self._names))

    def _add(self, kind, *words):
        first = kind | self._device_type << 8 | len(words) << 32
        self.records.append((DEVICE, [first, *words]))

    def kernel(self, name, start_ns, end_ns, correlation, device=0, stream=7, graph=0):
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        shape = [halves(graph, self.name(name)), halves(64, 2), halves(1, 32), halves(128, 1), halves(1, 0), 0]
        self._add(KERNEL, *work, *shape)

    def copy(self, start_ns, end_ns, correlation, device=0, stream=7):
        """1 kB from pinned host memory to the device."""
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        self._add(COPY, *work, halves(0, 1 | 2 << 8 | 3 << 16), 1024, 0)

    def fill(self, start_ns, end_ns, correlation, device=0, stream=7):
        """1 kB of the device."""
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        self._add(FILL, *work, halves(0, 3), 1024)

    def call(self, name, start_ns, end_ns, thread, correlation, is_runtime=True):
        """``thread``: what ``threading.get_ident`` says."""
        self._add(CALL, start_ns, end_ns, halves(self.name(name), is_runtime), halves(thread, correlation), 0)

    def wait(self, kind, start_ns, end_ns, correlation, stream):
        self._add(WAIT, start_ns, end_ns, halves(1, stream), halves(correlation, 0), kind, 0)

    def overhead(self, name, start_ns, end_ns, thread):
        self._add(OVERHEAD, start_ns, end_ns, halves(self.name(name), thread))

    def write(self, path):
        """Behind what is in the capture at ``path``."""
        with open(path, "r+b") as file:
            header = file.read(HEADER_BYTES)
            (segment_bytes,) = struct.unpack_from("<I", header, 16)
            ticks, monotonic_ns = struct.unpack_from("<QQ", header, 72)
            (segment, left) = divmod(file.seek(0, 2) - HEADER_BYTES, segment_bytes)
            segment += left > 0
            records = [(NAME, _name_words(id, text)) for text, id in self._names.items()]
            records += [(DEVICE_CLOCK, [monotonic_ns]), *self.records]
            part, at = 0, 0
            while at < len(records):
                words = [0x5347_4D54 << 32 | segment, 0]
                words += [ticks << 8 | THREAD, halves(ORDINAL, part), 77, 0]
                while at < len(records) and len(words) + len(records[at][1]) + 2 < segment_bytes // 8:
                    tag, body = records[at]
                    words += [ticks << 8 | tag, *body]
                    at += 1
                file.seek(HEADER_BYTES + segment * segment_bytes)
                words += [0] * (segment_bytes // 8 - len(words))
                file.write(struct.pack(f"<{len(words)}Q", *(word & 0xFFFF_FFFF_FFFF_FFFF for word in words)))
                segment, part = segment + 1, part + 1


def _name_words(id, text):
    data = text.encode()
    padded = data.ljust(-(-len(data) // 8) * 8, b"\0")
    return [halves(id, len(data)), *struct.unpack(f"<{len(padded) // 8}Q", padded)]
