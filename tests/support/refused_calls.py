"""Let Linux itself answer a system call with an error: a full disk without a disk to fill.

A seccomp filter (seccomp(2)) needs no privilege once a process has given up gaining any, and no
file system of its own, so it works as root, as a user and in containers. It cannot be taken away
again: use it in children.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

# the machine as audit knows it, then the numbers of the calls, old and new forms together
_MACHINES: dict[str, tuple[int, dict[str, tuple[int, ...]]]] = {
    "x86_64": (
        0xC000003E,
        {
            "write": (1,),
            "fsync": (74,),
            "link": (86, 265),
            "mkdir": (83, 258),
            "flock": (73,),
            "seccomp": (317,),
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "write": (64,),
            "fsync": (82,),
            "link": (37,),
            "mkdir": (34,),
            "flock": (32,),
            "seccomp": (277,),
        },
    ),
}
_LOAD, _EQUALS, _ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where struct seccomp_data holds them
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SET_FILTER, _ALL_THREADS = 38, 1, 1


def refuse(call: str, error: int) -> None:
    """Make a system call of this process, in all its threads, fail with an errno from now on.

    `call` is one of write, fsync, link, mkdir and flock. Standard output and standard error may
    still be written to.
    """
    machine, calls = _MACHINES[platform.machine()]
    program = [(_LOAD, 0, 0, _MACHINE), (_EQUALS, 1, 0, machine), (_RETURN, 0, 0, _ALLOW)]
    for number in calls[call]:
        program += [
            (_LOAD, 0, 0, _NUMBER),
            (_EQUALS, 0, 3, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),  # a descriptor, or an address: never 0 to 2
            (_ABOVE, 0, 1, 2),
            (_RETURN, 0, 0, _ERROR | error),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code)
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    (seccomp,) = calls["seccomp"]
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(
        ctypes.c_long(seccomp), _SET_FILTER, _ALL_THREADS, filters
    ):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")
