"""A notebook's proxy in small: it takes the prefix off a path and passes the rest on, bytes as they
come, so that streams flow. Standard library only."""

import contextlib
import http.client
import http.server
import threading

HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


class Passing(http.server.BaseHTTPRequestHandler):
    def pass_on(self):
        if not self.path.startswith(self.server.prefix):
            self.send_error(404, "outside of " + self.server.prefix)
            self.server.strays.append(self.path)
            return
        target = "/" + self.path[len(self.server.prefix):]
        # The page's own origin is the proxy's; to the server it must be the server's.
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP | {"host", "origin"}}
        headers["Host"] = self.server.address
        if "Origin" in self.headers:
            headers["Origin"] = "http://" + self.server.address
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with contextlib.closing(http.client.HTTPConnection(self.server.address, timeout=600)) as upstream:
            upstream.request(self.command, target, body or None, headers)
            reply = upstream.getresponse()
            self.send_response(reply.status, reply.reason)
            for name, value in reply.getheaders():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError, http.client.HTTPException):  # one side has gone
                while piece := reply.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class Proxy(http.server.ThreadingHTTPServer):
    """Listens on a free port; `url` is where the page is. A context manager."""

    daemon_threads = True
    handler = Passing

    def __init__(self, address, prefix):
        super().__init__(("127.0.0.1", 0), self.handler)
        self.address, self.prefix = address, prefix
        self.strays = []  # paths that were asked for outside of the prefix
        self.url = "http://127.0.0.1:%d%s" % (self.server_address[1], prefix)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
