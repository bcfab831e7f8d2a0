"""The S3 door with unmodified clients: boto3 old and new, the aws CLI, rclone, s3fs, curl."""

import filecmp
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import venvs
from harness import ATH, Case, main, needs_root, until

HERE = os.path.dirname(os.path.abspath(__file__))
GIB = 1 << 30
FUSE = os.access("/dev/fuse", os.R_OK | os.W_OK)


def needs(program):
    return unittest.skipUnless(shutil.which(program), program + " is not installed")


class S3Case(Case):
    def setUp(self):
        self.variables = self.server.json("env", "aws")
        self.environment = dict(self.server.environment, **self.variables)

    def run_client(self, *command, status=0, **more):
        done = subprocess.run(command, env=self.environment, cwd=self.server.work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600, **more)
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode != status:
            raise AssertionError("%s: status %d\n%s\n%s" % (
                " ".join(command)[:300], done.returncode, text[-4000:],
                open(self.server.log).read()[-1000:]))
        return text

    def tree(self, *, large=True):
        """A folder with names that need quoting."""
        root = os.path.join(self.server.work, self.id().rpartition(".")[2])
        for name in ["a.txt", "deep/er/b.bin", "sp ace/caf\u00e9 &.txt", "plus+and%percent.txt"]:
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(os.urandom(3000) + name.encode())
        open(os.path.join(root, "empty"), "w").close()
        if large:
            with open(os.path.join(root, "large.bin"), "wb") as file:
                file.write(os.urandom(20 << 20))
        return root

    def same(self, one, other):
        compared = filecmp.dircmp(one, other)
        pending = [compared]
        while pending:
            here = pending.pop()
            self.assertEqual((here.left_only, here.right_only), ([], []))
            equal, wrong, broken = filecmp.cmpfiles(here.left, here.right, here.common_files,
                                                    shallow=False)
            self.assertEqual((wrong, broken), ([], []))
            pending += here.subdirs.values()

    def presigned(self, method, key):
        """As boto3 makes them by default, in the bucket "big"."""
        python = venvs.system("boto3")
        return self.run_client(python, "-c", "import boto3; print(boto3.client('s3')."
                               "generate_presigned_url(%r, {'Bucket': 'big', 'Key': %r}), end='')"
                               % (method, key))


class Boto3(S3Case):
    def checks(self, python):
        text = self.run_client(python, os.path.join(HERE, "s3_checks.py"))
        self.assertIn("ok check_identity", text)

    def test_debians(self):
        self.checks(venvs.system("boto3"))

    def test_current(self):
        self.checks(venvs.venv("boto3"))


class OtherClients(S3Case):
    @needs("aws")
    def test_the_aws_command(self):
        tree = self.tree()
        aws = ("aws", "s3")
        self.run_client(*aws, "mb", "s3://cli")
        self.run_client(*aws, "sync", tree, "s3://cli/tree")
        listed = self.run_client(*aws, "ls", "--recursive", "s3://cli")
        self.assertEqual(len(listed.splitlines()), 6, listed)
        self.assertIn("PRE deep/", self.run_client(*aws, "ls", "s3://cli/tree/"))
        self.assertEqual(self.run_client(*aws, "sync", tree, "s3://cli/tree"), "")
        self.run_client(*aws, "cp", "--recursive", "s3://cli/tree", "back-aws")
        self.same(tree, os.path.join(self.server.work, "back-aws"))
        self.run_client(*aws, "cp", "s3://cli/tree/large.bin", "s3://cli/copy.bin")
        self.run_client(*aws, "rm", "--recursive", "s3://cli/tree")
        self.assertEqual(len(self.run_client(*aws, "ls", "--recursive",
                                             "s3://cli").splitlines()), 1)
        said = self.run_client(*aws, "rb", "s3://cli", status=1)
        self.assertIn("BucketNotEmpty", said)
        self.run_client(*aws, "rb", "--force", "s3://cli")

    @needs("rclone")
    def test_rclone(self):
        tree = self.tree()
        self.environment.update({
            "RCLONE_CONFIG_A_TYPE": "s3", "RCLONE_CONFIG_A_PROVIDER": "Other",
            "RCLONE_CONFIG_A_ENV_AUTH": "true", "RCLONE_CONFIG_A_REGION": "us-west-2",
            "RCLONE_CONFIG_A_ENDPOINT": self.variables["AWS_ENDPOINT_URL"],
            "RCLONE_S3_UPLOAD_CUTOFF": "8M", "RCLONE_S3_CHUNK_SIZE": "5M"})
        self.run_client("rclone", "mkdir", "A:rcl")
        self.run_client("rclone", "copy", tree, "A:rcl/tree")
        self.run_client("rclone", "check", "--download", tree, "A:rcl/tree")
        os.unlink(os.path.join(tree, "a.txt"))
        self.run_client("rclone", "sync", tree, "A:rcl/tree")
        self.run_client("rclone", "sync", "A:rcl/tree", "back-rclone")
        self.same(tree, os.path.join(self.server.work, "back-rclone"))
        self.run_client("rclone", "purge", "A:rcl")

    @needs("s3fs")
    @needs_root("to use FUSE, on this machine", unless=FUSE or not os.path.exists("/dev/fuse"))
    @unittest.skipUnless(FUSE, "FUSE cannot be used here")
    def test_s3fs(self):
        python = venvs.system("boto3")
        self.run_client(python, "-c", "import boto3; boto3.client('s3').create_bucket(Bucket='fuse',"
                        "CreateBucketConfiguration={'LocationConstraint': 'us-west-2'})")
        point = os.path.join(self.server.work, "mount")
        os.mkdir(point)
        self.environment["AWSACCESSKEYID"] = self.variables["AWS_ACCESS_KEY_ID"]
        self.environment["AWSSECRETACCESSKEY"] = self.variables["AWS_SECRET_ACCESS_KEY"]
        mount = subprocess.Popen(
            ["s3fs", "fuse", point, "-f", "-o", "url=" + self.variables["AWS_ENDPOINT_URL"],
             "-o", "use_path_request_style,sigv4,endpoint=us-west-2"], env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: os.path.ismount(point) or mount.poll() is not None, "s3fs has mounted")
            if mount.poll() is not None:
                self.skipTest("s3fs cannot mount here")
            tree = self.tree(large=False)
            shutil.copytree(tree, os.path.join(point, "tree"))
            os.rename(os.path.join(point, "tree", "a.txt"), os.path.join(point, "tree", "b.txt"))
            os.rename(os.path.join(tree, "a.txt"), os.path.join(tree, "b.txt"))
            self.same(tree, os.path.join(point, "tree"))
            shutil.rmtree(os.path.join(point, "tree"))
            self.assertEqual(os.listdir(point), [])
        finally:
            subprocess.run(["umount", "-l", point] if os.geteuid() == 0 else
                           ["fusermount", "-u", "-z", point], stderr=subprocess.DEVNULL)
            mount.wait(60)


class Streaming(S3Case):
    def peak(self):
        with open("/proc/%d/status" % self.server.pid) as file:
            for line in file:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) << 10
        raise AssertionError("no VmHWM")

    def setUp(self):
        super().setUp()
        self.run_client(venvs.system("boto3"), "-c",
                        "import boto3; s3 = boto3.client('s3')\n"
                        "if not s3.list_buckets()['Buckets']: s3.create_bucket(Bucket='big',"
                        "CreateBucketConfiguration={'LocationConstraint': 'us-west-2'})")

    @needs("curl")
    def test_a_large_object_never_sits_in_memory(self):
        path = os.path.join(self.server.work, "one")
        with open(path, "wb") as file:
            file.truncate(GIB)
            file.seek(GIB - 3)
            file.write(b"end")
        before = self.peak()
        self.run_client("curl", "-sfT", path, self.presigned("put_object", "one"))
        fetch = subprocess.Popen(["curl", "-sf", self.presigned("get_object", "one")],
                                 stdout=subprocess.PIPE)
        size, tail = 0, b""
        while piece := fetch.stdout.read(1 << 20):
            size += len(piece)
            tail = piece[-3:]
        self.assertEqual((fetch.wait(), size, tail), (0, GIB, b"end"))
        fetch.stdout.close()
        self.assertLess(self.peak() - before, 64 << 20)

    @needs("curl")
    def test_a_body_that_breaks_off_leaves_nothing(self):
        url = self.presigned("put_object", "half")
        where = urllib.parse.urlsplit(url)
        tmp = os.path.join(self.server.home, "objects", "tmp")
        with socket.create_connection((where.hostname, where.port), 60) as one:
            one.sendall(b"PUT %s?%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\n" % (
                where.path.encode(), where.query.encode(), where.netloc.encode()))
            one.sendall(b"x" * 100000)
            until(lambda: os.listdir(tmp), "the body arrives")
        until(lambda: not os.listdir(tmp), "what came of it is gone")
        self.assertIn("404", subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
             self.presigned("get_object", "half")], stdout=subprocess.PIPE, text=True).stdout)

    @needs("curl")
    def test_objects_survive_a_killed_server(self):
        body = os.urandom(100000)
        path = os.path.join(self.server.work, "body")
        with open(path, "wb") as file:
            file.write(body)
        self.run_client("curl", "-sfT", path, self.presigned("put_object", "kept"))
        self.server.kill()
        self.server.ath("fsck", "--deep", check=0)
        self.server.start()
        self.environment.update(self.server.json("env", "aws"))
        got = subprocess.run(["curl", "-sf", self.presigned("get_object", "kept")],
                             stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(body).digest())


class Keys(S3Case):
    def test_the_shells_variables_come_and_go(self):
        script = """
            set -e
            export AWS_PROFILE=mine AWS_REGION='eu west' AWS_DATA_PATH=/mine http_proxy=http://x
            eval "$(%(ath)s env aws --quiet)"
            test -z "${AWS_PROFILE+x}"; test "$AWS_REGION" = us-west-2
            case "$no_proxy" in *127.0.0.1*) ;; *) exit 2;; esac
            case "$AWS_DATA_PATH" in */models:/mine) ;; *) exit 3;; esac
            eval "$(%(ath)s env aws --quiet)"
            first=$AWS_ACCESS_KEY_ID
            eval "$(%(ath)s env aws --unset)"
            test "$AWS_PROFILE" = mine; test "$AWS_REGION" = 'eu west'
            test -z "${AWS_ENDPOINT_URL+x}${AWS_ACCESS_KEY_ID+x}${no_proxy+x}"
            test "$AWS_DATA_PATH" = /mine
            env | grep ATHANOR_ | grep -v ATHANOR_HOME && exit 1
            eval "$(%(ath)s env aws --quiet)"
            test "$first" = "$AWS_ACCESS_KEY_ID"
        """ % {"ath": ATH}
        done = subprocess.run(["sh", "-c", script], env=self.server.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        mode = os.stat(os.path.join(self.server.home, "aws", "key.json")).st_mode & 0o777
        self.assertEqual(mode, 0o600)

    def test_scope_expiry_and_revocation_hold(self):
        python = venvs.system("boto3")
        key = self.server.json("token", "create", "--aws", "--scope", "read")
        self.assertEqual(len(key["access_key_id"]), 20)
        self.environment["AWS_ACCESS_KEY_ID"] = key["access_key_id"]
        self.environment["AWS_SECRET_ACCESS_KEY"] = key["secret_access_key"]
        listing = "import boto3; boto3.client('s3').list_buckets()"
        self.run_client(python, "-c", listing)
        said = self.run_client(python, "-c", "import boto3; boto3.client('s3').put_object("
                               "Bucket='b-b-b', Key='k', Body=b'x')", status=1)
        self.assertIn("AccessDenied", said)
        self.assertIn("ath token create", said)
        shown = self.server.ath("token", "ls", check=0).stdout
        self.assertIn(key["access_key_id"], shown)
        self.assertNotIn(key["secret_access_key"], shown)
        self.server.ath("token", "revoke", key["access_key_id"], check=0)
        self.assertIn("InvalidAccessKeyId", self.run_client(python, "-c", listing, status=1))


if __name__ == "__main__":
    main()
