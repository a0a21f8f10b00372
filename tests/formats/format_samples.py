"""Configuration files made byte by byte, independently of the code under test."""

import io
import struct
import zlib
from itertools import product

import h5py
import numpy as np

EXTENTS = (4, 2, 6, 8)
GROUPS = ("su2", "su3")
PRECISIONS = ("single", "double")
PARTS = {"single": "f", "double": "d"}


def random_links(group, precision="double", extents=EXTENTS, seed=1):
    """Return random links U[t, z, y, x, mu, a, b] of a group that `precision` holds exactly."""
    rng = np.random.default_rng(seed)
    x, y, z, t = extents
    n = int(group[2])
    q, r = np.linalg.qr(rng.normal(size=(t, z, y, x, 4, n, n, 2)) @ np.array([1, 1j]))
    phase = np.diagonal(r, axis1=-2, axis2=-1)
    q = q * (phase / abs(phase))[..., None, :]
    q[..., 0] /= np.linalg.det(q)[..., None]
    if n == 2:  # the last row as it follows from the first one, which quaternions need
        q[..., 1, :] = np.stack([-q[..., 0, 1].conj(), q[..., 0, 0].conj()], axis=-1)
    return q.astype(np.complex64 if precision == "single" else complex).astype(complex)


def plaquettes(links):
    """Return the plaquettes Re Tr / N of the planes xy, xz, yz, xt, yt, zt."""

    def ahead(mu, nu):
        return np.roll(links[..., mu, :, :], -1, axis=3 - nu)

    loops = [
        links[..., mu, :, :]
        @ ahead(nu, mu)
        @ (links[..., nu, :, :] @ ahead(mu, nu)).conj().swapaxes(-1, -2)
        for mu, nu in ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
    ]
    return [trace(loop) for loop in loops]


def trace(matrices):
    """Return the average of Re Tr / N."""
    return np.trace(matrices, axis1=-2, axis2=-1).real.mean() / matrices.shape[-1]


def averages(links):
    """Return plaquette and link trace."""
    return np.mean(plaquettes(links)), trace(links)


def sites(links):
    """Yield the coordinates in the order of ILDG, NERSC and MILC: x fastest, t slowest."""
    t, z, y, x = links.shape[:4]
    yield from product(range(t), range(z), range(y), range(x))


def matrix_bytes(matrix, kind, rows=None):
    """Pack the rows of a matrix; `kind` is the byte order and type of struct, such as >d."""
    n = len(matrix)
    parts = [
        part
        for a in range(n if rows is None else rows)
        for b in range(n)
        for part in (matrix[a, b].real, matrix[a, b].imag)
    ]
    return struct.pack(f"{kind[0]}{len(parts)}{kind[1]}", *parts)


def site_bytes(links, kind, rows=None):
    """Pack the four links of each site, in order."""
    return [
        b"".join(matrix_bytes(links[site][mu], kind, rows) for mu in range(4))
        for site in sites(links)
    ]


def rotated(words):
    """Combine words, rotated by their number modulo 29 and 31."""
    sums = [0, 0]
    for rank, word in enumerate(words):
        for i, period in enumerate((29, 31)):
            k = rank % period
            sums[i] ^= ((word << k) & 0xFFFFFFFF) | (word >> (32 - k))
    return sums


def record(kind, data, *, begins=0, ends=0, length=None):
    """Make a LIME record."""
    size = len(data) if length is None else length
    head = struct.pack(">LHHQ", 0x456789AB, 1, begins << 15 | ends << 14, size)
    return head + kind.ljust(128, b"\0") + data + b"\0" * (-len(data) % 8)


def lime_records(data):
    """Read the records of a LIME file by hand: flags of the message, type and content."""
    found, place = [], 0
    while place < len(data):
        magic, version, flags, length, kind = struct.unpack_from(">IHHQ128s", data, place)
        assert (magic, version) == (0x456789AB, 1)
        begin = place + 144
        found.append((flags >> 14, kind.rstrip(b"\0").decode(), data[begin : begin + length]))
        place = begin + -(-length // 8) * 8
        assert data[begin + length : place] == bytes(place - begin - length)
    assert place == len(data)
    return found


def ildg_format(extents, group, precision):
    x, y, z, t = extents
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ildgFormat xmlns="http://www.lqcd.org/ildg"
            xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
            xsi:schemaLocation="http://www.lqcd.org/ildg filefmt.xsd">
  <version> 1.0 </version>
  <field> {group}gauge </field>
  <precision> {64 if precision == "double" else 32} </precision>
  <lx> {x} </lx> <ly> {y} </ly> <lz> {z} </lz> <lt> {t} </lt>
</ildgFormat>
""".encode()


def ildg_bytes(links, precision, checksum=True, format_xml=None, more=b""):
    """Return an ILDG file with the records that it must have, each a message of its own."""
    data = site_bytes(links, ">" + PARTS[precision])
    group, extents = f"su{links.shape[-1]}", links.shape[3::-1]
    if format_xml is None:
        format_xml = ildg_format(extents, group, precision)
    file = record(b"ildg-format", format_xml, begins=1)
    file += record(b"ildg-binary-data", b"".join(data), ends=1)
    file += record(b"ildg-data-lfn", b"lfn://test/1\0", begins=1, ends=1)
    if checksum:
        a, b = rotated([zlib.crc32(site) for site in data])
        xml = f"<scidacChecksum><version>1.0</version><suma>{a:x}</suma><sumb>{b:x}</sumb>"
        file += record(b"scidac-checksum", xml.encode() + b"</scidacChecksum>\0", begins=1, ends=1)
    return file + more


def scidac_bytes(links, precision, checksum=True, **changes):
    """Return a file of QIO with a field of colour matrices; `changes` replaces XML elements."""
    data = site_bytes(links, ">" + PARTS[precision])
    n, (x, y, z, t) = links.shape[-1], links.shape[3::-1]
    letter = "D" if precision == "double" else "F"
    fields = {
        "version": "1.0",
        "date": "Mon Feb 14 21:58:40 2005 UTC",
        "globaldata": 0,
        "datatype": f"QDP_{letter}{n}_ColorMatrix",
        "precision": letter,
        "colors": n,
        "typesize": len(data[0]) // 4,
        "datacount": 4,
    } | changes
    xml = "".join(f"<{key}>{value}</{key}>" for key, value in fields.items())
    dims = f"<spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims><volfmt>0</volfmt>"
    private = f"<scidacFile><version>1.1</version>{dims}</scidacFile>\0".encode()
    file = record(b"scidac-private-file-xml", private, begins=1)
    file += record(b"scidac-file-xml", b"a file\0", ends=1)
    own = f"<scidacRecord>{xml}</scidacRecord>\0".encode()
    file += record(b"scidac-private-record-xml", own, begins=1)
    file += record(b"scidac-record-xml", b"a record\0")
    file += record(b"scidac-binary-data", b"".join(data), ends=0 if checksum else 1)
    if checksum:
        a, b = rotated([zlib.crc32(site) for site in data])
        sums = f"<scidacChecksum><version>1.0</version><suma>{a:x}</suma><sumb>{b:x}</sumb>"
        file += record(b"scidac-checksum", sums.encode() + b"</scidacChecksum>\0", ends=1)
    return file


def nersc_bytes(links, real="IEEE64BIG", rows=None, **changes):
    """Return a NERSC file; `changes` replaces header fields, and None leaves them out."""
    n = links.shape[-1]
    order = "<" if "LITTLE" in real else ">"
    data = b"".join(site_bytes(links, order + ("d" if "64" in real else "f"), rows))
    total = sum(struct.unpack(f"{order}{len(data) // 4}I", data)) & 0xFFFFFFFF
    plaquette, link_trace = averages(links)
    x, y, z, t = links.shape[3::-1]
    full = rows is None or rows == n
    fields = {
        "HDR_VERSION": "1.0",
        "DATATYPE": f"4D_SU{n}_GAUGE" + (f"_{n}x{n}" if full else ""),
        "STORAGE_FORMAT": "1.0",
        **{f"DIMENSION_{i}": e for i, e in enumerate((x, y, z, t), 1)},
        "CHECKSUM": f"{total:x}",
        "LINK_TRACE": f"{link_trace:.10f}",
        "PLAQUETTE": f"{plaquette:.10f}",
        **{f"BOUNDARY_{i}": "PERIODIC" for i in (1, 2, 3, 4)},
        "ENSEMBLE_ID": "test",
        "SEQUENCE_NUMBER": 7,
        "FLOATING_POINT": real,
    } | changes
    lines = [f"{key} = {value}\n" for key, value in fields.items() if value is not None]
    return ("BEGIN_HEADER\n" + "".join(lines) + "END_HEADER\n").encode() + data


def milc_bytes(links, order="<", extents=None, site_order=0):
    """Return a MILC version 5 file in either byte order."""
    data = b"".join(site_bytes(links, order + "f"))
    sums = rotated(struct.unpack(f"{order}{len(data) // 4}I", data))
    extents = links.shape[3::-1] if extents is None else extents
    stamp = b"Thu Jan  2 03:04:05 2003"
    head = struct.pack(f"{order}i4i64siII", 20103, *extents, stamp, site_order, *sums)
    return head + data


def openqcd_bytes(links, plaquette=None):
    """Return an openQCD file."""
    t, z, y, x = links.shape[:4]
    if plaquette is None:
        plaquette = 3 * averages(links)[0]
    file = [struct.pack("<4id", t, x, y, z, plaquette)]
    for it, ix, iy, iz in product(range(t), range(x), range(y), range(z)):
        if (it + ix + iy + iz) % 2:
            for mu in (3, 0, 1, 2):
                file.append(matrix_bytes(links[it, iz, iy, ix, mu], "<d"))
                back = [it, iz, iy, ix]
                back[3 - mu] -= 1
                file.append(matrix_bytes(links[(*back, mu)], "<d"))
    return b"".join(file)


def quaternion(matrix):
    """Return the quaternion q0 + i q . sigma of a matrix of SU(2), with HiRep's signs."""
    return [
        (matrix[0, 0] + matrix[1, 1]).real / 2,
        (matrix[0, 1] + matrix[1, 0]).imag / 2,
        (matrix[1, 0] - matrix[0, 1]).real / 2,
        (matrix[0, 0] - matrix[1, 1]).imag / 2,
    ]


def hirep_bytes(links, plaquette=None, quaternions=True):
    """Return a HiRep file; those of SU(2) have quaternions, or matrices."""
    t, z, y, x = links.shape[:4]
    n = links.shape[-1]
    if plaquette is None:
        plaquette = averages(links)[0]
    file = [struct.pack(">5id", n, t, x, y, z, plaquette)]
    for it, ix, iy, iz in product(range(t), range(x), range(y), range(z)):
        for mu in (3, 0, 1, 2):
            link = links[it, iz, iy, ix, mu]
            if n == 2 and quaternions:
                file.append(struct.pack(">4d", *quaternion(link)))
            else:
                file.append(matrix_bytes(link, ">d"))
    return b"".join(file)


def hdf5_bytes(links, precision="double", checksum=True, name="cfg/links", attributes=None):
    """Return an HDF5 file as QDP++ lays it out, with the attributes of gauge-mc if wanted."""
    kind = "<c8" if precision == "single" else "<c16"
    n = links.shape[-1]
    file = io.BytesIO()
    with h5py.File(file, "w") as h5:
        matrix = np.dtype((kind, (n, n)))
        # QDP++ names the types, too.
        h5[".ColorMatrix"] = matrix
        data = h5.create_dataset(name, links.shape[:5], h5[".ColorMatrix"])
        data[...] = links
        if checksum:
            crcs = [zlib.crc32(site) for site in site_bytes(links, "<" + PARTS[precision])]
            first, second = rotated(crcs)
            data.attrs["checksum"] = np.bytes_(f"{first:08x} {second:08x}")
            data.attrs["plaquette"], data.attrs["link_trace"] = averages(links)
        data.attrs.update(attributes or {})
    return file.getvalue()


SAMPLES = {
    "hdf5": hdf5_bytes,
    "ildg": ildg_bytes,
    "nersc": lambda links, precision: nersc_bytes(
        links, "IEEE64BIG" if precision == "double" else "IEEE32LITTLE"
    ),
    "milc": lambda links, precision: milc_bytes(links),
    "openqcd": lambda links, precision: openqcd_bytes(links),
    "scidac": scidac_bytes,
    "hirep": lambda links, precision: hirep_bytes(links),
}
WITHOUT_CHECKSUM = ("openqcd", "hirep")
"""Formats in which only what moves a link out of the group or the plaquette is noticed."""
HELD = (
    *(
        (format, group, kind)
        for format in ("ildg", "nersc")
        for group in GROUPS
        for kind in PRECISIONS
    ),
    ("ildg", "su5", "double"),
    ("nersc", "su4", "single"),
    ("milc", "su3", "single"),
    ("openqcd", "su3", "double"),
    ("hdf5", "su3", "double"),
    ("hdf5", "su4", "single"),
    ("scidac", "su3", "single"),
    ("scidac", "su4", "double"),
    ("hirep", "su2", "double"),
    ("hirep", "su3", "double"),
)
"""Which formats hold which groups in which precisions."""


def sample(format, group, precision, extents=EXTENTS):
    """Return links, and the bytes of a good file of them."""
    links = random_links(group, precision, extents)
    return links, SAMPLES[format](links, precision)
