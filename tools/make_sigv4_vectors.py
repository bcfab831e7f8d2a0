#!/usr/bin/env python3
"""Writes src/net/testdata/sigv4.json: requests as botocore signs them, for sigv4_test.

    python3 tools/make_sigv4_vectors.py > src/net/testdata/sigv4.json

Needs botocore (Debian's python3-botocore will do). Each vector is a whole request; the test checks
that the right secret verifies it and that every change is noticed.
"""

import json
import sys
import time
from urllib.parse import urlsplit

import botocore
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEY, SECRET = "ATHAEXAMPLEKEY000001", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ENDPOINT = "http://127.0.0.1:7070"


def vector(name, auth, method, url, headers=(), body=b"", service="s3", token=None, **more):
    request = AWSRequest(method=method, url=ENDPOINT + url, headers=dict(headers), data=body)
    request.context["signing"] = {}
    auth(Credentials(KEY, SECRET, token), service, "us-west-2", **more).add_auth(request)
    prepared = request.prepare()
    parts = urlsplit(prepared.url)
    target = parts.path + ("?" + parts.query if parts.query else "")
    fields = [["Host", parts.netloc]]
    for key, value in prepared.headers.items():
        fields.append([key, value if isinstance(value, str) else value.decode()])
    return {"name": name, "service": service, "method": method, "target": target,
            "headers": fields, "body": body.decode(), "now_ms": int(time.time() * 1000)}


def main():
    json_headers = {"Content-Type": "application/x-amz-json-1.1",
                    "X-Amz-Target": "SageMaker.DescribeTrainingJob"}
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    made = [
        vector("list buckets", S3SigV4Auth, "GET", "/"),
        vector("get", S3SigV4Auth, "GET", "/bucket/some/key.txt"),
        vector("key with bytes to encode", S3SigV4Auth, "GET",
               "/bucket/a%20b/%2B%26%3D%25/%C3%A9%E2%82%AC/(x)!%27*~"),
        vector("doubled and dotted path", S3SigV4Auth, "PUT", "/bucket//a/../b/./c//", body=b"x"),
        vector("query", S3SigV4Auth, "GET",
               "/bucket?list-type=2&prefix=a%20b%2F%26&delimiter=%2F&encoding-type=url&max-keys=2"),
        vector("query without values", S3SigV4Auth, "POST", "/bucket/key?uploads"),
        vector("query in another order", S3SigV4Auth, "PUT",
               "/bucket/key?uploadId=abc%3D&partNumber=10", body=b"part"),
        vector("put", S3SigV4Auth, "PUT", "/bucket/key",
               {"Content-Type": "text/plain", "x-amz-meta-note": "a  b   c ",
                "x-amz-server-side-encryption": "aws:kms"}, b"hello"),
        vector("put unsigned payload", S3SigV4Auth, "PUT", "/bucket/key",
               {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}, b"hello"),
        vector("presigned get", S3SigV4QueryAuth, "GET", "/bucket/a%20b.txt", expires=3600),
        vector("presigned get with a query", S3SigV4QueryAuth, "GET",
               "/bucket/key?response-content-type=text%2Fplain", expires=60),
        vector("presigned put", S3SigV4QueryAuth, "PUT", "/bucket/key", expires=60),
        vector("session token", S3SigV4Auth, "GET", "/bucket/key", token="to/ken+=="),
        vector("json", SigV4Auth, "POST", "/", json_headers, b'{"TrainingJobName":"a"}',
               service="sagemaker"),
        vector("form", SigV4Auth, "POST", "/", form,
               b"Action=GetCallerIdentity&Version=2011-06-15", service="sts"),
        vector("encoded path twice", SigV4Auth, "GET", "/a%20b/c%2Fd/./e//f",
               service="execute-api"),
        vector("presigned sts", SigV4QueryAuth, "GET",
               "/?Action=GetCallerIdentity&Version=2011-06-15", service="sts", expires=60),
    ]
    print(json.dumps({"made_by": "botocore " + botocore.__version__, "key": KEY,
                      "secret": SECRET, "vectors": made}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
