"""MLflow's own server beside ours: installed once into a virtual environment, started on an empty
SQLite store as `mlflow server` comes."""

import contextlib
import os
import signal
import socket
import subprocess
import urllib.request

from common import Broken, python_with, scratch, until

MLFLOW = "3.15.2"


def mlflow_python():
    return python_with("mlflow", MLFLOW)


@contextlib.contextmanager
def mlflow_server(python):
    """The address of an `mlflow server` on an empty SQLite store."""
    with scratch() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        with open(os.path.join(folder, "log"), "wb") as log:
            server = subprocess.Popen(
                [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
                 "--backend-store-uri", "sqlite:///%s/mlflow.db" % folder,
                 "--default-artifact-root", os.path.join(folder, "artifacts")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                start_new_session=True)
        url = "http://127.0.0.1:%d" % port

        def healthy():
            if server.poll() is not None:
                with open(os.path.join(folder, "log"), errors="replace") as log:
                    raise Broken("mlflow server ended: " + log.read()[-500:])
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(url + "/health", timeout=5).status == 200
        try:
            until(healthy, "mlflow server answers", patience=600, pause=0.2)
            yield url, server.pid
        finally:
            # Its workers are in the session it leads.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
