"""Ports of this machine that ranks may find each other at."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path


def free_port() -> int:
    """A loopback port that nobody listens on, and that no connection is given by itself.

    A port that the system would hand out may be taken by any connection (gloo's, of which ranks
    make dozens) between this probe and the moment at which rank 0 listens on it; then rank 0 ends,
    and the others wait for it.
    """
    handed_out = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(handed_out.read_text().split()[0]) if handed_out.exists() else 32768
    while True:
        port = random.SystemRandom().randrange(first // 2, first)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
