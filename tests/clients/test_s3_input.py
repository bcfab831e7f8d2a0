"""What is sent to the S3 door in bad faith or by mistake: signatures, names, bodies, documents. Each
is refused in AWS's words, and nothing outside the store is read or written."""

import base64
import os
import re
import socket
import sys
import urllib.parse
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sigv4
from harness import PATIENCE, Case, main, until


def code_of(reply):
    found = re.search(rb"<Code>(.*?)</Code>", reply.body)
    return (reply.status, found.group(1).decode() if found else reply.body[:200])


class InputCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.variables = cls.server.json("env", "aws")
        cls.signer = sigv4.Signer(cls.variables)
        assert cls.send("PUT", "/bucket").status == 200

    @classmethod
    def send(cls, method, target, body=b"", headers=None, signer=None, **more):
        signed = (signer or cls.signer).sign(method, target, headers, body, **more)
        return cls.server.http(method, target, body, signed)

    def raw(self, data, half=False):
        """Everything the server says to these bytes; `half`: no more will come."""
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as one:
            one.sendall(data)
            if half:
                one.shutdown(socket.SHUT_WR)
            text = b""
            while piece := one.recv(1 << 16):
                text += piece
            return text

    def head(self, method, target, headers):
        return ("%s %s HTTP/1.1\r\n" % (method, target) + "".join(
            "%s: %s\r\n" % pair for pair in headers.items()) + "\r\n").encode()

    def assertRefused(self, reply, status, code):
        self.assertEqual(code_of(reply), (status, code))

    def absent(self, key):
        self.assertRefused(self.send("GET", "/bucket/" + key), 404, "NoSuchKey")


class Signatures(InputCase):
    def test_what_was_changed_after_signing_is_refused(self):
        headers = self.signer.sign("GET", "/bucket/a")
        self.assertRefused(self.server.http("GET", "/bucket/b", headers=headers), 403,
                           "SignatureDoesNotMatch")
        self.assertRefused(self.server.http("DELETE", "/bucket/a", headers=headers), 403,
                           "SignatureDoesNotMatch")
        self.assertRefused(self.server.http("GET", "/bucket/a?acl", headers=headers), 403,
                           "SignatureDoesNotMatch")
        more = dict(headers, **{"x-amz-copy-source": "/bucket/c"})
        self.assertRefused(self.server.http("GET", "/bucket/a", headers=more), 403, "AccessDenied")
        body = self.signer.sign("PUT", "/bucket/a", body=b"right")
        self.assertRefused(self.server.http("PUT", "/bucket/a", b"wrong", body), 400,
                           "XAmzContentSHA256Mismatch")
        self.absent("a")

    def test_a_request_cannot_be_sent_again_later(self):
        for shift in (-16 * 60, 16 * 60):
            self.assertRefused(self.send("GET", "/bucket", date=sigv4.stamp(shift)), 403,
                               "RequestTimeTooSkewed")
        self.assertEqual(self.send("GET", "/bucket", date=sigv4.stamp(-14 * 60)).status, 200)

    def test_refusals_say_what_to_type(self):
        stranger = sigv4.Signer(dict(self.variables, AWS_ACCESS_KEY_ID="ATHA" + "A" * 16))
        reply = self.send("GET", "/bucket", signer=stranger)
        self.assertRefused(reply, 403, "InvalidAccessKeyId")
        self.assertIn(b"ath env aws", reply.body)
        other = sigv4.Signer(self.variables, service="ec2")
        self.assertEqual(self.send("GET", "/bucket", signer=other).status, 404)
        old = {"Authorization": "AWS %s:abc" % self.signer.key}
        self.assertRefused(self.server.http("GET", "/bucket", headers=old), 400, "InvalidRequest")

    def test_without_a_signature_it_is_not_s3(self):
        self.assertEqual(self.send("PUT", "/bucket/plain", b"x").status, 200)
        reply = self.server.http("GET", "/bucket/plain")
        self.assertEqual(reply.status, 404)
        self.assertNotIn(b"<Error>", reply.body)

    def test_garbled_authorization_is_refused(self):
        good = self.signer.sign("GET", "/bucket")["Authorization"]
        for bad in ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a", good[:-3], good + "x",
                    good.replace("aws4_request", "x"), good.replace("host;", ""),
                    good.replace("Signature=", "Signature=zz"), "AWS4-" + "x" * 5000):
            headers = dict(self.signer.sign("GET", "/bucket"), Authorization=bad)
            reply = self.server.http("GET", "/bucket", headers=headers)
            self.assertIn(reply.status, (400, 403), bad)
            self.assertIn(b"<Error><Code>", reply.body)

    def test_other_protocols_are_refused_in_their_own_shape(self):
        wrong = dict(self.variables, AWS_SECRET_ACCESS_KEY="x" * 40)
        headers = {"X-Amz-Target": "SageMaker.ListTrainingJobs",
                   "Content-Type": "application/x-amz-json-1.1"}
        for variables, kind in ((wrong, "InvalidSignatureException"),
                                (dict(wrong, AWS_ACCESS_KEY_ID="ATHA" + "B" * 16),
                                 "UnrecognizedClientException")):
            signer = sigv4.Signer(variables, "sagemaker")
            reply = self.send("POST", "/", b"{}", headers, signer=signer)
            self.assertEqual((reply.status, reply.json()["__type"]), (400, kind))
        reply = self.server.http("POST", "/", b"{}", headers)
        self.assertEqual(reply.json()["__type"], "MissingAuthenticationTokenException")
        # A digest that is not the body's does not make the body a signed one.
        right = sigv4.Signer(self.variables, "sagemaker")
        for payload in (sigv4.digest(b"other"), sigv4.UNSIGNED):
            reply = self.send("POST", "/", b"{}", headers, signer=right, payload=payload)
            self.assertEqual(reply.json()["__type"], "InvalidSignatureException")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = b"Action=GetCallerIdentity&Version=2011-06-15"
        reply = self.send("POST", "/", body, form, signer=sigv4.Signer(wrong, "sts"))
        self.assertRefused(reply, 403, "SignatureDoesNotMatch")
        self.assertIn(b"<ErrorResponse>", reply.body)
        late = self.send("POST", "/", body, form, signer=sigv4.Signer(self.variables, "sts"),
                         date=sigv4.stamp(-3600))
        self.assertRefused(late, 403, "SignatureDoesNotMatch")


class Names(InputCase):
    def test_a_key_is_never_a_path(self):
        before = self.files_outside()
        for key in ("..", "../../../../etc/passwd", "a/../../b", "/etc/passwd", "//", "a//b", "a/",
                    ".", "./", "-rf", "~", "%2e%2e", "a\\..\\b", "C:", "x" * 1024, "\x01\x7f", "nul\0here", "nul"):
            target = "/bucket/" + urllib.parse.quote(key, safe="/~-_.")
            self.assertEqual(self.send("PUT", target, b"of " + key.encode()).status, 200, key)
            self.assertEqual(self.send("GET", target).body, b"of " + key.encode())
        names = {name for folder, _, files in os.walk(os.path.join(self.server.home, "objects", "data"))
                 for name in files}
        self.assertTrue(all(re.fullmatch("[0-9a-z]{26}", name) for name in names), names)
        self.assertEqual(self.files_outside(), before)

    def files_outside(self):
        return {os.path.join(folder, name) for folder, _, files in os.walk(self.server.root)
                for name in files if "/objects" not in folder and not name.startswith("athanor.db")}

    def test_what_is_no_key_is_refused(self):
        self.assertRefused(self.send("PUT", "/bucket/" + "x" * 1025, b"x"), 400, "KeyTooLongError")
        for key in ("%ff", "a%80b", "%c0%ae%c0%ae/"):
            self.assertRefused(self.send("PUT", "/bucket/" + key, b"x"), 400, "InvalidArgument")
            self.assertRefused(self.send("GET", "/bucket/" + key), 400, "InvalidArgument")
        self.assertRefused(self.send("PUT", "/bucket/a%zz", b"x"), 400, "InvalidURI")
        self.assertRefused(self.send("PUT", "//key", b"x"), 400, "InvalidBucketName")
        for name in ("ab", "Upper", "a..b", "-x-", "a_b", "%2e%2e", "x" * 64):
            self.assertRefused(self.send("PUT", "/" + name), 400, "InvalidBucketName")

    def test_a_copy_cannot_come_from_elsewhere(self):
        for source in ("/etc/passwd", "etc/passwd", "bucket/../../etc/passwd", "%2fetc%2fpasswd",
                       "bucket", "", "bucket/%zz"):
            reply = self.send("PUT", "/bucket/to", headers={"x-amz-copy-source": source})
            self.assertIn(reply.status, (400, 404), source)
        self.absent("to")


class Bodies(InputCase):
    def staged(self):
        return os.listdir(os.path.join(self.server.home, "objects", "tmp"))

    def test_a_body_that_ends_early_leaves_nothing(self):
        headers = self.signer.sign("PUT", "/bucket/short", body=b"x" * 1000)
        head = self.head("PUT", "/bucket/short", dict(headers, **{"Content-Length": "1000"}))
        self.raw(head + b"x" * 999, half=True)
        until(lambda: not self.staged(), "what came of it is gone")
        self.absent("short")

    def test_lengths_that_contradict_are_refused(self):
        for more in ({"Content-Length": "-1"}, {"Content-Length": "x"},
                     {"Content-Length": "5, 6"}, {"Content-Length": "99999999999999999999"},
                     {"Content-Length": "5", "Transfer-Encoding": "chunked"}):
            headers = self.signer.sign("PUT", "/bucket/odd", body=b"hello")
            said = self.raw(self.head("PUT", "/bucket/odd", dict(headers, **more)) + b"hello",
                            half=True)
            self.assertIn(said.split(b" ")[1][:1], (b"4",), said[:200])
        self.absent("odd")

    def test_a_chunked_transfer_is_taken(self):
        headers = self.signer.sign("PUT", "/bucket/te", payload=sigv4.UNSIGNED)
        head = self.head("PUT", "/bucket/te", dict(headers, **{"Transfer-Encoding": "chunked",
                                                               "Connection": "close"}))
        said = self.raw(head + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n")
        self.assertIn(b" 200 ", said.split(b"\r\n")[0])
        self.assertEqual(self.send("GET", "/bucket/te").body, b"hello!")

    def chunked(self, key, body, length, mode="STREAMING-AWS4-HMAC-SHA256-PAYLOAD", change=None,
                **headers):
        date = sigv4.stamp()
        headers = {"x-amz-decoded-content-length": str(length), "Content-Encoding": "aws-chunked",
                   **{name.replace("_", "-"): value for name, value in headers.items()}}
        signed = self.signer.sign("PUT", "/bucket/" + key, headers, payload=mode, date=date)
        data = body(date) if callable(body) else body
        return self.server.http("PUT", "/bucket/" + key, change(data) if change else data, signed)

    def test_signed_chunks_are_verified_each(self):
        pieces = [b"a" * 70000, b"b" * 10]

        def body(date):
            return self.signer.chunked(date, pieces)

        self.assertEqual(self.chunked("ch", body, 70010).status, 200)
        got = self.send("GET", "/bucket/ch")
        self.assertEqual(got.body, b"".join(pieces))
        self.assertNotIn("aws-chunked", got.headers.get("Content-Encoding", ""))
        self.assertRefused(self.chunked("bad", body, 70010,
                                        change=lambda data: data.replace(b"aab", b"aac")
                                        if b"aab" in data else data.replace(b"bbbb", b"bbbc")),
                           403, "SignatureDoesNotMatch")
        self.assertRefused(self.chunked("bad", body, 70011), 400, "IncompleteBody")
        self.assertRefused(self.chunked("bad", body, 70010, change=lambda data: data[:-100]), 400,
                           "IncompleteBody")
        self.assertRefused(self.chunked("bad", body, 70010, change=lambda data: data + b"x"), 400,
                           "IncompleteBody")
        self.absent("bad")

    def test_trailers_are_verified(self):
        text = b"with a trailer"
        right = base64.b64encode(zlib.crc32(text).to_bytes(4, "big")).decode()
        wrong = base64.b64encode(zlib.crc32(b"other").to_bytes(4, "big")).decode()
        for value, seen in ((right, 200), (wrong, (400, "BadDigest"))):
            def body(date, value=value):
                return self.signer.chunked(date, [text], [("x-amz-checksum-crc32", value)])
            reply = self.chunked("tr", body, len(text),
                                 "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
                                 x_amz_trailer="x-amz-checksum-crc32")
            self.assertEqual(reply.status if seen == 200 else code_of(reply), seen)
            plain = b"%x\r\n%s\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n" % (
                len(text), text, value.encode())
            reply = self.chunked("tu", plain, len(text), "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
                                 x_amz_trailer="x-amz-checksum-crc32")
            self.assertEqual(reply.status if seen == 200 else code_of(reply), seen)
        self.assertEqual(self.send("GET", "/bucket/tr").body, text)
        self.assertEqual(self.send("GET", "/bucket/tu").body, text)

    def test_continue_is_said_only_to_who_may(self):
        good = self.signer.sign("PUT", "/bucket/exp", body=b"hello")
        more = {"Content-Length": "5", "Expect": "100-continue", "Connection": "close"}
        host, _, port = self.server.url.rpartition("//")[2].rpartition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as one:
            one.sendall(self.head("PUT", "/bucket/exp", dict(good, **more)))
            self.assertEqual(one.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            one.sendall(b"hello")
            self.assertTrue(one.recv(100).startswith(b"HTTP/1.1 200"))
        for target in ("/no-such-bucket/exp", "/bucket/" + "x" * 1025):
            headers = dict(self.signer.sign("PUT", target, body=b"hello"), **more)
            said = self.raw(self.head("PUT", target, headers))
            self.assertTrue(said.startswith(b"HTTP/1.1 40"), said[:100])
        bad = dict(good, **more, Authorization=good["Authorization"][:-2] + "00")
        said = self.raw(self.head("PUT", "/bucket/exp", bad))
        self.assertTrue(said.startswith(b"HTTP/1.1 403"), said[:100])


class Documents(InputCase):
    def test_xml_that_is_no_plain_document_is_refused(self):
        bomb = (b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
                b"<Delete><Object><Key>&b;</Key></Object></Delete>")
        outside = (b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
                   b"<Delete><Object><Key>&x;</Key></Object></Delete>")
        deep = b"<Delete>" + b"<a>" * 5000 + b"</a>" * 5000 + b"</Delete>"
        for body in (bomb, outside, deep, b"", b"<Delete>", b"{}", b"<Other/>", b"\xff\xfe<",
                     b"<Delete><Object><Key>a</Object></Key></Delete>"):
            reply = self.send("POST", "/bucket?delete", body)
            self.assertRefused(reply, 400, "MalformedXML")
            self.assertNotIn(b"root:", reply.body)

    def test_too_many_of_anything_is_refused(self):
        many = b"<Delete>" + b"<Object><Key>a</Key></Object>" * 1001 + b"</Delete>"
        self.assertRefused(self.send("POST", "/bucket?delete", many), 400, "MalformedXML")
        begun = self.send("POST", "/bucket/m?uploads").body
        upload = re.search(rb"<UploadId>(.*?)</UploadId>", begun).group(1).decode()
        parts = b"".join(b"<Part><PartNumber>%d</PartNumber><ETag>x</ETag></Part>" % n
                         for n in range(1, 100001))
        target = "/bucket/m?uploadId=" + upload
        body = b"<CompleteMultipartUpload>" + parts + b"</CompleteMultipartUpload>"
        self.assertRefused(self.send("POST", target, body), 400, "MalformedXML")
        for number in ("0", "10001", "100000", "-1", "x", "", "1e3", "4294967297"):
            reply = self.send("PUT", target + "&partNumber=" + number, b"x")
            self.assertRefused(reply, 400, "InvalidArgument")
        self.assertRefused(self.send("GET", "/bucket?max-keys=x"), 400, "InvalidArgument")
        self.assertRefused(self.send("GET", "/bucket?list-type=2&continuation-token=%21"), 400,
                           "InvalidArgument")
        self.absent("m")

    def test_what_is_not_done_here_is_said(self):
        for method, target in (("PUT", "/bucket?policy"), ("PUT", "/bucket?versioning"),
                               ("PUT", "/bucket/x?retention"), ("POST", "/bucket/x?select"),
                               ("GET", "/bucket/x?torrent")):
            self.assertIn(code_of(self.send(method, target)),
                          [(501, "NotImplemented"), (405, "MethodNotAllowed")])
        headers = {"x-amz-server-side-encryption-customer-algorithm": "AES256"}
        self.assertRefused(self.send("PUT", "/bucket/x", b"x", headers), 501, "NotImplemented")
        self.absent("x")


if __name__ == "__main__":
    main()
