"""What boto3 must see of the S3 door. Run by test_s3.py with the interpreter whose boto3 is meant
and the variables of `ath env aws`; prints one line per check and ends with 0, or with a traceback.
"""

import base64
import hashlib
import io
import os
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib

import boto3
import botocore
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

NEW = tuple(int(n) for n in boto3.__version__.split(".")[:2]) >= (1, 36)
BUCKET = "bucket-" + "x".join(boto3.__version__.split(".")[:2])
KEYS = ["plain", "a/b", "a/b/c", "a//b", "a/", "/", "..", "../../etc/passwd", "a b+c&d=e%f?g#h",
        "caf\u00e9/\u20ac/\U0001f375", "'\"<>&", "x" * 1024, "~-_.!*()", "\n\t"]


def refused(code, call, *arguments, status=None, **more):
    """The call must be refused with that code."""
    try:
        call(*arguments, **more)
    except ClientError as error:
        seen = error.response["Error"]["Code"]
        assert seen == code, "%s instead of %s" % (error, code)
        if status:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error
        return error
    raise AssertionError("not refused: %s" % code)


def check_buckets(s3):
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    refused("BucketAlreadyOwnedByYou", s3.create_bucket, Bucket=BUCKET, status=409,
            CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    assert BUCKET in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    s3.head_bucket(Bucket=BUCKET)
    refused("404", s3.head_bucket, Bucket="not-there")
    refused("NoSuchBucket", s3.list_objects_v2, Bucket="not-there")
    assert s3.get_bucket_location(Bucket=BUCKET)["LocationConstraint"] == "us-west-2"
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)
    refused("NoSuchBucketPolicy", s3.get_bucket_policy, Bucket=BUCKET)
    refused("NotImplemented", s3.get_bucket_logging, Bucket=BUCKET, status=501)
    refused("403", s3.head_bucket, Bucket=BUCKET, ExpectedBucketOwner="111122223333")


def check_objects(s3):
    etag = '"%s"' % hashlib.md5(b"hello").hexdigest()
    made = s3.put_object(Bucket=BUCKET, Key="one", Body=b"hello", ContentType="text/plain",
                         CacheControl="no-cache", Metadata={"note": "x  y", "Dotted.Name": "z"},
                         Tagging="k=v&w=", ServerSideEncryption="aws:kms", ACL="private")
    assert made["ETag"] == etag
    for got in (s3.get_object(Bucket=BUCKET, Key="one"), s3.head_object(Bucket=BUCKET, Key="one")):
        assert got["ETag"] == etag and got["ContentLength"] == 5
        assert got["ContentType"] == "text/plain" and got["CacheControl"] == "no-cache"
        assert got["Metadata"]["note"] in ("x  y", "x y") and got["Metadata"]["dotted.name"] == "z"
    tags = s3.get_object_tagging(Bucket=BUCKET, Key="one")["TagSet"]
    assert tags == [{"Key": "k", "Value": "v"}, {"Key": "w", "Value": ""}], tags
    s3.put_object_tagging(Bucket=BUCKET, Key="one", Tagging={"TagSet": [{"Key": "a&", "Value": "<"}]})
    assert s3.get_object_tagging(Bucket=BUCKET, Key="one")["TagSet"] == [{"Key": "a&", "Value": "<"}]
    s3.delete_object_tagging(Bucket=BUCKET, Key="one")
    assert s3.get_object_tagging(Bucket=BUCKET, Key="one")["TagSet"] == []
    refused("NoSuchKey", s3.get_object, Bucket=BUCKET, Key="none", status=404)
    refused("404", s3.head_object, Bucket=BUCKET, Key="none")
    refused("AccessControlListNotSupported", s3.put_object, Bucket=BUCKET, Key="p", Body=b"",
            ACL="public-read")
    got = s3.get_object(Bucket=BUCKET, Key="one", ResponseContentType="a/b")
    assert got["ContentType"] == "a/b"
    s3.put_object(Bucket=BUCKET, Key="empty", Body=b"")
    assert s3.get_object(Bucket=BUCKET, Key="empty")["Body"].read() == b""
    s3.delete_object(Bucket=BUCKET, Key="empty")
    s3.delete_object(Bucket=BUCKET, Key="empty")


def check_ranges(s3):
    body = bytes(range(256)) * 1000
    s3.put_object(Bucket=BUCKET, Key="r", Body=body)

    def part(text):
        got = s3.get_object(Bucket=BUCKET, Key="r", Range=text)
        return got["ResponseMetadata"]["HTTPStatusCode"], got.get("ContentRange"), got["Body"].read()

    size = len(body)
    assert part("bytes=0-0") == (206, "bytes 0-0/%d" % size, body[:1])
    assert part("bytes=5-999999999") == (206, "bytes 5-%d/%d" % (size - 1, size), body[5:])
    assert part("bytes=100-") == (206, "bytes 100-%d/%d" % (size - 1, size), body[100:])
    assert part("bytes=-3") == (206, "bytes %d-%d/%d" % (size - 3, size - 1, size), body[-3:])
    assert part("bytes=9-3") == (200, None, body)
    refused("InvalidRange", s3.get_object, Bucket=BUCKET, Key="r", Range="bytes=%d-" % size,
            status=416)


def check_conditions(s3):
    etag = s3.put_object(Bucket=BUCKET, Key="c", Body=b"1")["ETag"]
    s3.get_object(Bucket=BUCKET, Key="c", IfMatch=etag)
    refused("PreconditionFailed", s3.get_object, Bucket=BUCKET, Key="c", IfMatch='"0"', status=412)
    refused("304", s3.get_object, Bucket=BUCKET, Key="c", IfNoneMatch=etag)
    modified = s3.head_object(Bucket=BUCKET, Key="c")["LastModified"]
    refused("304", s3.get_object, Bucket=BUCKET, Key="c", IfModifiedSince=modified)
    s3.get_object(Bucket=BUCKET, Key="c", IfUnmodifiedSince=modified)
    if NEW:
        refused("PreconditionFailed", s3.put_object, Bucket=BUCKET, Key="c", Body=b"2",
                IfNoneMatch="*", status=412)
        refused("PreconditionFailed", s3.put_object, Bucket=BUCKET, Key="c", Body=b"2",
                IfMatch='"0"')
        s3.put_object(Bucket=BUCKET, Key="c", Body=b"2", IfMatch=etag)
        s3.put_object(Bucket=BUCKET, Key="c-new", Body=b"2", IfNoneMatch="*")


def check_checksums(s3):
    body = b"some bytes to be summed up"
    for kind in ["CRC32", "SHA1", "SHA256"]:
        made = s3.put_object(Bucket=BUCKET, Key="sum", Body=body, ChecksumAlgorithm=kind)
        got = s3.get_object(Bucket=BUCKET, Key="sum", ChecksumMode="ENABLED")
        assert got["Checksum" + kind] == made["Checksum" + kind], kind
        assert got["Body"].read() == body  # botocore compares it, too
    wrong = base64.b64encode(zlib.crc32(b"other").to_bytes(4, "big")).decode()
    refused("BadDigest", s3.put_object, Bucket=BUCKET, Key="bad", Body=body, ChecksumCRC32=wrong)
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    refused("BadDigest", s3.put_object, Bucket=BUCKET, Key="bad", Body=body, ContentMD5=md5)
    refused("InvalidDigest", s3.put_object, Bucket=BUCKET, Key="bad", Body=body, ContentMD5="x")
    refused("NoSuchKey", s3.get_object, Bucket=BUCKET, Key="bad")


def check_keys_and_lists(s3):
    bucket = BUCKET + "-keys"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    for key in KEYS:
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode(), repr(key)
    expected = sorted(KEYS, key=lambda key: key.encode())
    for size in (1, 3, 1000):
        for name in ("list_objects_v2", "list_objects"):
            pages = s3.get_paginator(name).paginate(Bucket=bucket, PaginationConfig={"PageSize": size})
            seen = [row["Key"] for page in pages for row in page.get("Contents", [])]
            assert seen == expected, (name, size, seen)
            pages = s3.get_paginator(name).paginate(Bucket=bucket, Delimiter="/", Prefix="a/",
                                                    PaginationConfig={"PageSize": size})
            keys, prefixes = [], []
            for page in pages:
                keys += [row["Key"] for row in page.get("Contents", [])]
                prefixes += [row["Prefix"] for row in page.get("CommonPrefixes", [])]
            assert keys == ["a/", "a/b"] and prefixes == ["a//", "a/b/"], (keys, prefixes)
    after = s3.list_objects_v2(Bucket=bucket, StartAfter="a/b")
    assert after["Contents"][0]["Key"] == "a/b/c"
    refused("KeyTooLongError", s3.put_object, Bucket=bucket, Key="y" * 1025, Body=b"")
    refused("BucketNotEmpty", s3.delete_bucket, Bucket=bucket, status=409)
    gone = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in KEYS]})
    assert len(gone["Deleted"]) == len(KEYS) and "Errors" not in gone
    s3.delete_bucket(Bucket=bucket)


def check_copies(s3):
    s3.put_object(Bucket=BUCKET, Key="from \u00e9", Body=b"bytes", Metadata={"a": "1"})
    source = {"Bucket": BUCKET, "Key": "from \u00e9"}
    s3.copy_object(Bucket=BUCKET, Key="to", CopySource=source)
    assert s3.head_object(Bucket=BUCKET, Key="to")["Metadata"] == {"a": "1"}
    s3.copy_object(Bucket=BUCKET, Key="to", CopySource=source, MetadataDirective="REPLACE",
                   Metadata={"b": "2"}, ContentType="x/y")
    head = s3.head_object(Bucket=BUCKET, Key="to")
    assert head["Metadata"] == {"b": "2"} and head["ContentType"] == "x/y"
    refused("InvalidRequest", s3.copy_object, Bucket=BUCKET, Key="from \u00e9", CopySource=source)
    refused("NoSuchKey", s3.copy_object, Bucket=BUCKET, Key="to",
            CopySource={"Bucket": BUCKET, "Key": "none"})
    refused("PreconditionFailed", s3.copy_object, Bucket=BUCKET, Key="to", CopySource=source,
            CopySourceIfMatch="0")


def check_transfers(s3):
    body = os.urandom(20 << 20) + b"tail"
    small = TransferConfig(multipart_threshold=8 << 20, multipart_chunksize=5 << 20)
    s3.upload_fileobj(io.BytesIO(body), BUCKET, "big", Config=small)
    digests = [hashlib.md5(body[at:at + (5 << 20)]).digest() for at in range(0, len(body), 5 << 20)]
    head = s3.head_object(Bucket=BUCKET, Key="big")
    assert head["ETag"] == '"%s-%d"' % (hashlib.md5(b"".join(digests)).hexdigest(), len(digests))
    out = io.BytesIO()
    s3.download_fileobj(BUCKET, "big", out, Config=small)
    assert out.getvalue() == body
    s3.copy({"Bucket": BUCKET, "Key": "big"}, BUCKET, "big2", Config=small)
    assert s3.get_object(Bucket=BUCKET, Key="big2")["Body"].read() == body
    part = s3.get_object(Bucket=BUCKET, Key="big", PartNumber=2)
    assert part["PartsCount"] == len(digests)
    assert part["Body"].read() == body[5 << 20:10 << 20]


def check_multipart(s3):
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="m", Metadata={"m": "1"})["UploadId"]
    name = {"Bucket": BUCKET, "Key": "m", "UploadId": upload}
    one = s3.upload_part(PartNumber=1, Body=b"a" * (5 << 20), **name)["ETag"]
    two = s3.upload_part(PartNumber=2, Body=b"b", **name)["ETag"]
    three = s3.upload_part(PartNumber=10000, Body=b"c", **name)["ETag"]
    refused("InvalidArgument", s3.upload_part, PartNumber=10001, Body=b"", **name)
    listed = s3.list_parts(**name)["Parts"]
    assert [row["PartNumber"] for row in listed] == [1, 2, 10000]
    first = s3.list_parts(MaxParts=1, **name)
    assert first["IsTruncated"] and first["NextPartNumberMarker"] == 1
    assert upload in [u["UploadId"] for u in s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]]

    def complete(*parts):
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in parts]
        return s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **name)

    refused("InvalidPartOrder", complete, (2, two), (1, one))
    refused("InvalidPart", complete, (1, two))
    refused("EntityTooSmall", complete, (1, one), (2, two), (10000, three))
    refused("NoSuchKey", s3.get_object, Bucket=BUCKET, Key="m")
    made = complete((1, one), (2, two))
    assert complete((1, one), (2, two))["ETag"] == made["ETag"]
    got = s3.get_object(Bucket=BUCKET, Key="m")
    assert got["Metadata"] == {"m": "1"} and got["Body"].read() == b"a" * (5 << 20) + b"b"
    refused("NoSuchUpload", s3.upload_part, PartNumber=1, Body=b"", **name)
    gone = s3.create_multipart_upload(Bucket=BUCKET, Key="m2")["UploadId"]
    s3.abort_multipart_upload(Bucket=BUCKET, Key="m2", UploadId=gone)
    refused("NoSuchUpload", s3.list_parts, Bucket=BUCKET, Key="m2", UploadId=gone)
    refused("NoSuchUpload", s3.abort_multipart_upload, Bucket=BUCKET, Key="m2", UploadId=gone)


def check_presigned(s3):
    def fetch(url, method="GET", body=None):
        # Without a type of its own: boto3's signature may say that there is none.
        request = urllib.request.Request(url, data=body, method=method,
                                         headers={"Content-Type": ""} if body else {})
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    put = s3.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "pre signed/\u00e9"})
    assert fetch(put, "PUT", b"by url")[0] == 200
    get = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "pre signed/\u00e9"})
    assert fetch(get) == (200, b"by url")
    status, body = fetch(get.replace("pre%20signed", "one"))
    assert status == 403 and b"SignatureDoesNotMatch" in body
    status, body = fetch(get + "&acl")
    assert status == 403 and b"SignatureDoesNotMatch" in body
    assert fetch(get, "DELETE")[0] == 403
    short = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "one"}, ExpiresIn=1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status, body = fetch(short)
        if status != 200:
            break
        time.sleep(0.2)
    assert status == 403 and b"expired" in body, (status, body)
    status, body = fetch(get.split("?")[0])
    assert status in (401, 404, 405) and b"by url" not in body  # not signed: not S3


def client_with(**more):
    return boto3.client("s3", config=Config(signature_version="s3v4", retries={"max_attempts": 0},
                                            s3={"addressing_style": "path"}), **more)


def check_refusals(s3):
    wrong = client_with(aws_secret_access_key="wrong" * 8,
                        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"])
    error = refused("SignatureDoesNotMatch", wrong.list_buckets, status=403)
    assert "ath env aws" in str(error), error
    unknown = client_with(aws_access_key_id="ATHA" + "A" * 16, aws_secret_access_key="x" * 40)
    refused("InvalidAccessKeyId", unknown.list_buckets, status=403)
    refused("InvalidAccessKeyId", unknown.put_object, Bucket=BUCKET, Key="x", Body=b"x" * 100000)
    token = client_with(aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"], aws_session_token="x",
                        aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"])
    refused("InvalidToken", token.list_buckets)


def check_races(s3):
    """Two clients complete one upload, and an object is deleted while it is read."""
    body = os.urandom(6 << 20)
    s3.put_object(Bucket=BUCKET, Key="gone soon", Body=body)
    stream = s3.get_object(Bucket=BUCKET, Key="gone soon")["Body"]
    first = stream.read(1000)
    s3.delete_object(Bucket=BUCKET, Key="gone soon")
    assert first + stream.read() == body
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="both")["UploadId"]
    etag = s3.upload_part(Bucket=BUCKET, Key="both", UploadId=upload, PartNumber=1,
                          Body=b"x")["ETag"]
    results = []

    def complete():
        results.append(s3.complete_multipart_upload(
            Bucket=BUCKET, Key="both", UploadId=upload,
            MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})["ETag"])

    threads = [threading.Thread(target=complete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1 and len(results) == 4, results


def check_identity(s3):
    region = os.environ["AWS_REGION"]
    # The address that the SageMaker SDK names itself.
    sts = boto3.client("sts", region_name=region,
                       endpoint_url="https://sts.%s.amazonaws.com" % region)
    who = sts.get_caller_identity()
    assert who["Account"].isdigit() and len(who["Account"]) == 12
    assert who["UserId"] == os.environ["AWS_ACCESS_KEY_ID"]
    role = boto3.client("iam").get_role(RoleName="MyRole")["Role"]
    assert role["Arn"].endswith(":role/MyRole"), role
    refused("InvalidAction", sts.get_session_token)
    error = refused("UnknownOperationException", boto3.client("sagemaker").list_projects)
    assert "ListProjects" in str(error)


def main():
    s3 = boto3.client("s3")
    print("boto3", boto3.__version__, "botocore", botocore.__version__)
    for check in (check_buckets, check_objects, check_ranges, check_conditions, check_checksums,
                  check_keys_and_lists, check_copies, check_transfers, check_multipart,
                  check_presigned, check_refusals, check_races, check_identity):
        check(s3)
        print("ok", check.__name__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
