"""What the checks of the SageMaker door share: boto3's clients, small jobs, waiting. Used by the
interpreter whose boto3 is meant, with the variables of `ath env aws`."""

import io
import itertools
import json
import os
import subprocess
import tarfile
import textwrap
import threading
import time

REGION = "us-west-2"
ACCOUNT = "000000000000"
ROLE = "arn:aws:iam::%s:role/SageMakerRole" % ACCOUNT
IMAGE = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.13.1-cpu-py39"
GROUP = "/aws/sagemaker/TrainingJobs"
TYPE = "ml.athanor.small"  # of the test's own catalogue: many run side by side
TERMINAL = ("Completed", "Failed", "Stopped")
PATIENCE = float(os.environ.get("ATHANOR_TEST_PATIENCE", "90"))


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    pause = 0.02
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "waited in vain until " + what
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def refused(codes, call, *says, **arguments):
    """The call must be refused with one of these codes (one may be given as text), and the
    message must hold each of `says`."""
    from botocore.exceptions import ClientError
    codes = (codes,) if isinstance(codes, str) else codes
    try:
        call(**arguments)
    except ClientError as error:
        seen = error.response["Error"]
        assert seen["Code"] in codes, "%s instead of %s: %s" % (seen["Code"], codes, error)
        for word in says:
            assert word in seen["Message"], "%r is not in %r" % (word, seen["Message"])
        return error
    raise AssertionError("not refused: %s" % (codes,))


def subsequence(wanted, seen):
    left = iter(seen)
    return all(any(one == other for other in left) for one in wanted)


class World:
    """The server as boto3 sees it."""

    names = itertools.count(1)
    lock = threading.Lock()

    def __init__(self):
        import boto3
        from botocore.client import Config
        self.version = tuple(int(n) for n in boto3.__version__.split(".")[:2])
        self.boto3 = boto3
        self.sm = boto3.client("sagemaker")
        self.logs = boto3.client("logs")
        self.cloudwatch = boto3.client("cloudwatch")
        self.s3 = boto3.client("s3")
        self.as_sdk = boto3.client("sagemaker", config=Config(
            user_agent_extra="AWS-SageMaker-Python-SDK/2.122.0"))
        self.root = os.environ["ATHANOR_TEST_ROOT"]
        self.bucket = "checks-%d-%d" % self.version
        self.s3.create_bucket(Bucket=self.bucket,
                              CreateBucketConfiguration={"LocationConstraint": REGION})

    # --- around the jobs

    def name(self, base):
        with self.lock:
            return "%s-%d-%d" % (base, self.version[1], next(self.names))

    def ath(self, *arguments, check=True):
        return subprocess.run([os.environ["ATHANOR_TEST_ATH"], *arguments], check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def put(self, key, body):
        self.s3.put_object(Bucket=self.bucket, Key=key,
                           Body=body if isinstance(body, bytes) else body.encode())
        return "s3://%s/%s" % (self.bucket, key)

    def get(self, uri):
        bucket, _, key = uri[len("s3://"):].partition("/")
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def keys(self, prefix):
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [row["Key"] for row in listed.get("Contents", [])]

    def archive(self, uri):
        """The files of a .tar.gz in S3: {name: bytes}."""
        with tarfile.open(fileobj=io.BytesIO(self.get(uri)), mode="r:gz") as tar:
            return {os.path.normpath(member.name): tar.extractfile(member).read()
                    for member in tar if member.isfile()}

    def raw(self, operation, body, service="sagemaker", prefix="SageMaker"):
        """A signed call past the client's own checks: (status, answer)."""
        import urllib.error
        import urllib.request
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = AWSRequest("POST", os.environ["AWS_ENDPOINT_URL"] + "/", data=data, headers={
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": "%s.%s" % (prefix, operation)})
        SigV4Auth(self.boto3.Session().get_credentials(), service, REGION).add_auth(request)
        asked = urllib.request.Request(request.url, data=data, headers=dict(request.headers))
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as reply:
                return reply.status, json.loads(reply.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def refused_raw(self, code, operation, body, *says):
        status, answer = self.raw(operation, body)
        message = answer.get("message") or answer.get("Message") or ""
        assert status == 400, (status, answer)
        assert answer["__type"].rpartition("#")[2] == code, answer
        for word in says:
            assert word in message, "%r is not in %r" % (word, message)
        return message

    # --- jobs

    def source(self, name, files):
        """Uploads what an estimator would."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for path, text in files.items():
                data = textwrap.dedent(text).encode()
                info = tarfile.TarInfo(path)
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
        return self.put(name + "/source/sourcedir.tar.gz", out.getvalue())

    def request(self, base, script="print('done')", hyper=None, **more):
        """The body of CreateTrainingJob for a small script; `more` replaces members."""
        name = self.name(base)
        files = script if isinstance(script, dict) else {"train.py": script}
        parameters = {
            "sagemaker_program": json.dumps("train.py"), "sagemaker_container_log_level": "20",
            "sagemaker_submit_directory": json.dumps(self.source(name, files)),
            "sagemaker_job_name": json.dumps(name), "sagemaker_region": json.dumps(REGION)}
        parameters.update(hyper or {})
        body = {"TrainingJobName": name, "RoleArn": ROLE, "HyperParameters": parameters,
                "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
                "OutputDataConfig": {"S3OutputPath": "s3://%s/" % self.bucket},
                "ResourceConfig": {"InstanceType": TYPE, "InstanceCount": 1, "VolumeSizeInGB": 30},
                "StoppingCondition": {"MaxRuntimeInSeconds": 86400}}
        body.update(more)
        return body

    def create(self, base, script="print('done')", hyper=None, **more):
        body = self.request(base, script, hyper, **more)
        self.sm.create_training_job(**body)
        return body["TrainingJobName"]

    def describe(self, name):
        return self.sm.describe_training_job(TrainingJobName=name)

    def ended(self, name, status="Completed"):
        def over():
            told = self.describe(name)
            return told if told["TrainingJobStatus"] in TERMINAL else None
        told = until(over, "%s has ended" % name)
        assert told["TrainingJobStatus"] == status, "%s: %s: %s\n%s" % (
            name, told["TrainingJobStatus"], told.get("FailureReason"),
            "\n".join(self.lines(name)[-30:]))
        return told

    def run(self, base, script="print('done')", hyper=None, status="Completed", **more):
        return self.ended(self.create(base, script, hyper, **more), status)

    def gate(self):
        """A path that a script can wait for; open() lets it go on."""
        return os.path.join(self.root, self.name("gate"))

    @staticmethod
    def open(path):
        with open(path, "w"):
            pass

    # --- logs

    def stream(self, name):
        found = self.logs.describe_log_streams(
            logGroupName=GROUP, logStreamNamePrefix=name + "/", orderBy="LogStreamName", limit=1)
        assert "nextToken" not in found, found
        return found["logStreams"][0]["logStreamName"]

    def events(self, name, **more):
        """Every event, read as the SDK reads them: on to the next token until nothing comes."""
        stream, token, seen = self.stream(name), None, []
        while True:
            page = self.logs.get_log_events(
                logGroupName=GROUP, logStreamName=stream, startFromHead=True,
                **({"nextToken": token} if token else {}), **more)
            if not page["events"]:
                return seen
            seen += page["events"]
            token = page["nextForwardToken"]

    def lines(self, name):
        from botocore.exceptions import ClientError
        try:
            return [event["message"] for event in self.events(name)]
        except (ClientError, IndexError):
            return []

    def until_line(self, name, text):
        until(lambda: any(text in line for line in self.lines(name)),
              "%s printed %r" % (name, text))


# What a script does to wait for the test.
WAIT = """
import os, sys, time
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.02)
"""
