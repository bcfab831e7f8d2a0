"""A network that can be cut, between a server and the clients of its socket."""

import contextlib
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from apart import Line


def network_of(server):
    """The way between a server and its agents: its own socket, or that of its machine apart."""
    return server.machine.line if server.machine else Network(server)


class Network(Line):
    """Takes the place of a server's Unix socket: agents and verbs meet it instead, and it passes
    their bytes on. It lives as long as the server it was put before.

    The server itself stays within reach by its TCP port: `network.direct` is the environment for
    a verb that must not be cut off.
    """

    def __init__(self, server):
        self.direct = {"ATHANOR_URL": server.url}
        self.path = server.socket
        self.behind = server.socket + ".behind"
        os.rename(self.path, self.behind)
        super().__init__(self.path, self.to_behind)

    def to_behind(self):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.connect(self.behind)
        except OSError:
            server.close()
            raise
        return server

    def close(self):
        super().close()
        with contextlib.suppress(OSError):
            os.rename(self.behind, self.path)
