"""A network that can be cut, between a server and the clients of its socket."""

import contextlib
import os
import socket
import threading


class Network:
    """Takes the place of a server's Unix socket: agents and verbs meet it instead, and it passes
    their bytes on. It lives as long as the server it was put before.

        with Network(server) as network:
            network.cut()             # nothing gets through, and open connections break
            network.cut(up=False)     # requests arrive and are acted on; replies do not
            network.heal()

    The server itself stays within reach by its TCP port: `network.direct` is the environment for
    a verb that must not be cut off.
    """

    def __init__(self, server):
        self.path = server.socket
        self.behind = server.socket + ".behind"
        self.direct = {"ATHANOR_URL": server.url}
        self.up = self.down = True
        self.swallowed = 0  # replies
        self.lock = threading.Lock()
        self.ends = set()
        os.rename(self.path, self.behind)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.break_open()
        with contextlib.suppress(OSError):
            os.rename(self.behind, self.path)

    def cut(self, up=True, down=True):
        """`up`: what goes to the server; `down`: what comes from it."""
        self.up, self.down = not up, not down
        self.break_open()

    def heal(self):
        self.up = self.down = True
        self.break_open()

    def passes(self, data, server):
        """Whether these bytes of a client go on to the server; for those who look closer."""
        return True

    def loses(self, server):
        """Whether what came back on this connection is lost, and the connection with it."""
        return False

    def break_open(self):
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            if not self.up:
                return
            try:
                server.connect(self.behind)
            except OSError:
                return
            with self.lock:
                self.ends |= {client, server}
            back = threading.Thread(target=self.replies, args=(server, client), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    if not self.up or not self.passes(data, server):
                        break
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
            back.join()
            with self.lock:
                self.ends -= {client, server}

    def replies(self, server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not self.down or self.loses(server):
                    with self.lock:
                        self.swallowed += 1
                    break
                client.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
