"""A plugin of pytest that puts a real Athanor server in the place of MLflow's own, wherever
MLflow's tests start one. Loaded with `-p plugin` by own_tests.py; nothing of MLflow's is changed
on disk.

Each start is a server of its own with an empty home, since the tests count what they find. The
artifact root that a test asks for is handed on.
"""

import contextlib
import inspect
import json
import os
import sys

import mlflow
import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness

RESULT = os.environ["ATHANOR_OWN_TESTS_RESULT"]
asked_root = None
adapted = []
results = {}
servers = contextlib.ExitStack()


def serve(root=None):
    return harness.Server(arguments=["--mlflow-artifact-root", root] if root else [])


class ServerThread:
    """In place of the thread that serves MLflow's app."""

    def __init__(self, app, port):
        self.server = None

    def __enter__(self):
        self.server = serve(asked_root)
        # Where these tests work without naming a server, at MLflow that is the same database.
        mlflow.set_tracking_uri(self.server.url)
        return self.server.url

    def __exit__(self, *_):
        self.server.close()


def initialize_backend_stores(*_, default_artifact_root=None, **more):
    """In place of MLflow's stores: only where artifacts go is of use."""
    global asked_root
    asked_root = default_artifact_root


def launcher(own):
    """In place of `mlflow server --artifacts-destination`: what yields the process, or, as it was
    in older versions, gives it back."""
    def launch(*_, **more):
        launcher.server = servers.enter_context(serve())
        return launcher.server.process

    @contextlib.contextmanager
    def launched(*_, **more):
        yield launch()
    return launched if inspect.isgeneratorfunction(inspect.unwrap(own)) else launch


def client_of(kind):
    """A client that takes what one of the tests writes past the server, into MLflow's own
    database: a run's id that is a number, which no call can carry."""
    class Client(kind):
        def create_model_version(self, name, source, run_id=None, *rest, **more):
            run_id = run_id if run_id is None else str(run_id)
            return super().create_model_version(name, source, run_id, *rest, **more)
    return Client


def pytest_collection_modifyitems(config, items):
    """The test modules are imported now, and have MLflow's own parts by name."""
    kept = []
    for item in items:
        module = item.module
        for name, part in (("ServerThread", ServerThread),
                           ("initialize_backend_stores", initialize_backend_stores)):
            if hasattr(module, name):
                setattr(module, name, part)
        if hasattr(module, "_launch_server") and module not in adapted:
            adapted.append(module)
            module._launch_server = launcher(module._launch_server)
            kind = module.ArtifactsServer

            def made(*_, kind=kind):
                server = launcher.server
                return kind(backend_store_uri=server.url, url=server.url,
                            default_artifact_root=server.url + "/api/2.0/mlflow-artifacts/artifacts",
                            artifacts_destination=os.path.join(server.home, "artifacts"),
                            process=server.process)
            module.ArtifactsServer = made
            module.MlflowClient = client_of(module.MlflowClient)
        # The same server would be tested twice: here it has one store only.
        if "[file" in item.name or "-file]" in item.name or "-file-" in item.name:
            continue
        kept.append(item)
    items[:] = kept


def pytest_runtest_logreport(report):
    name = report.nodeid.rpartition("::")[2]
    case = results.setdefault(name.partition("[")[0], {}).setdefault(
        name, {"outcome": "passed", "text": ""})
    if report.outcome != "passed" and case["outcome"] != "failed":
        case["outcome"] = report.outcome
        case["text"] = str(report.longrepr)[-6000:]
        if hasattr(report, "wasxfail"):
            case["text"] = "MLflow marks it as one that fails: " + report.wasxfail


def pytest_collectreport(report):
    if report.failed:
        results.setdefault("collection", {})[report.nodeid] = {
            "outcome": "failed", "text": str(report.longrepr)[-6000:]}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    servers.close()
    with open(RESULT, "w") as file:
        json.dump(results, file)
