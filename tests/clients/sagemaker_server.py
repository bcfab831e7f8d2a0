"""A server for the tests of the SageMaker door, with the variables that unmodified clients need."""

import os
import subprocess

from harness import ATH, Server

# A quarter of a CPU each: eight run side by side on two.
TYPES = """# as_of: 2026-01-01
name,cpus,memory_gib,gpu,gpu_count,gpu_mem_gib,price_od,price_spot_mean
ml.athanor.small,0.25,0.125,,,,0.1,0.04
"""


class SageMakerServer(Server):
    def __init__(self):
        super().__init__(settings="instances: simulate\n", start=False)
        with open(os.path.join(self.home, "types.csv"), "w") as file:
            file.write(TYPES)
        self.start()
        self.variables = self.json("env", "aws")
        self.client_environment = dict(self.environment, **self.variables)
        self.client_environment.update(ATHANOR_TEST_ROOT=self.root, ATHANOR_TEST_ATH=ATH,
                                       PYTHONDONTWRITEBYTECODE="1")

    def client(self, *command, cwd=None, path=None, timeout=600):
        """Runs a client: its status and what it said, both streams together."""
        environment = dict(self.client_environment)
        if path:
            environment["PATH"] = path + ":" + environment["PATH"]
        done = subprocess.run(command, env=environment, cwd=cwd or self.work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")
