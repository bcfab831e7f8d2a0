"""AWS clients inside jobs: they reach this server with a key that ends with the attempt."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import venvs
import sigv4
from harness import Case, main, until


class Jobs(Case):
    def outside(self):
        return dict(self.server.environment, **self.server.json("env", "aws"))

    def s3(self, method, target, body=b""):
        signer = sigv4.Signer(self.outside())
        return self.server.http(method, target, body, signer.sign(method, target, body=body))

    def test_boto3_in_a_script_reaches_this_server(self):
        python = venvs.system("boto3")
        self.assertEqual(self.s3("PUT", "/from-jobs").status, 200)
        kept = os.path.join(self.server.root, "kept.json")
        script = self.server.script("s3.py", """
            import json, os, sys
            import boto3
            s3 = boto3.client("s3")
            s3.put_object(Bucket="from-jobs", Key="out/result", Body=b"42")
            sts = boto3.client("sts", endpoint_url="https://sts.us-west-2.amazonaws.com")
            names = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "S3_ENDPOINT_URL", "S3_ENDPOINT"]
            assert len({os.environ[name] for name in names}) == 1
            assert os.environ["AWS_REGION"] == os.environ["AWS_DEFAULT_REGION"] == "us-west-2"
            print("I am", sts.get_caller_identity()["Arn"])
            print("secret", os.environ["AWS_SECRET_ACCESS_KEY"])
            with open(sys.argv[1], "w") as file:
                json.dump({name: os.environ[name] for name in os.environ if "AWS" in name}, file)
            """)
        job = self.server.submit(python, script, kept)
        self.ended(job)
        self.assertEqual(self.s3("GET", "/from-jobs/out/result").body, b"42")
        with open(kept) as file:
            variables = json.load(file)
        said = self.server.logs(job).decode()
        self.assertIn(":user/job-" + job.lower(), said.lower())
        # Scrubbed from what it printed, and void now that the job is over.
        self.assertNotIn(variables["AWS_SECRET_ACCESS_KEY"], said)
        headers = sigv4.Signer(variables).sign("GET", "/from-jobs/out/result")
        reply = self.server.http("GET", "/from-jobs/out/result", headers=headers)
        self.assertEqual(reply.status, 400)
        self.assertIn(b"<Code>ExpiredToken</Code>", reply.body)

    def test_a_job_that_brings_its_own_account_keeps_it(self):
        script = self.server.script("own.py", """
            import os
            print(sorted(name for name in os.environ if name.startswith(("AWS", "S3_"))))
            """)
        job = self.server.submit("python3", script, flags=("--env", "AWS_PROFILE=mine"))
        self.ended(job)
        self.assertIn(b"['AWS_PROFILE']", self.server.logs(job))

    def test_a_summary_writer_writes_to_s3_and_tensorboard_reads_it(self):
        venvs.system("torch")
        python = venvs.venv("tensorboard", "boto3", "setuptools<80", inherit=True)
        self.assertEqual(self.s3("PUT", "/boards").status, 200)
        script = self.server.script("board.py", """
            from torch.utils.tensorboard import SummaryWriter
            with SummaryWriter("s3://boards/logs/run") as writer:
                for step in range(5):
                    writer.add_scalar("loss", 1 / (1 + step), step)
            """)
        self.ended(self.server.submit(python, script))
        self.assertIn(b"<Key>logs/run/events.out.tfevents", self.s3("GET", "/boards").body)
        log = os.path.join(self.server.root, "board.log")
        with open(log, "wb") as out:
            board = subprocess.Popen(
                [python, "-m", "tensorboard.main", "--logdir", "s3://boards/logs", "--port", "0",
                 "--host", "127.0.0.1", "--load_fast", "false"], env=self.outside(),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            def text():
                with open(log) as file:
                    return file.read()

            until(lambda: "http://127.0.0.1:" in text() or board.poll() is not None,
                  "tensorboard listens")
            self.assertIsNone(board.poll(), text()[-3000:])
            port = text().partition("http://127.0.0.1:")[2].split("/")[0]

            def tags():
                url = "http://127.0.0.1:%s/data/plugin/scalars/tags" % port
                try:
                    with urllib.request.urlopen(url, timeout=10) as reply:
                        return json.loads(reply.read()).get("run")
                except urllib.error.URLError:
                    return None

            self.assertIn("loss", until(tags, "tensorboard has read the run:\n" + text()[-2000:]))
        finally:
            board.kill()
            board.wait()


if __name__ == "__main__":
    main()
