"""AWS Signature V4 made by hand, so that requests can be wrong in one place only. The recipe is
AWS's; the S3 door's own code is not used."""

import datetime
import hashlib
import hmac
import urllib.parse

UNSIGNED = "UNSIGNED-PAYLOAD"


def digest(body):
    return hashlib.sha256(body).hexdigest()


def stamp(shift=0):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=shift)
    return now.strftime("%Y%m%dT%H%M%SZ")


class Signer:
    def __init__(self, variables, service="s3"):
        self.key = variables["AWS_ACCESS_KEY_ID"]
        self.secret = variables["AWS_SECRET_ACCESS_KEY"]
        self.host = variables["AWS_ENDPOINT_URL"].rpartition("/")[2]
        self.service = service
        self.region = "us-west-2"

    def scope(self, date):
        return "%s/%s/%s/aws4_request" % (date[:8], self.region, self.service)

    def mac(self, date, text):
        key = ("AWS4" + self.secret).encode()
        for part in (date[:8], self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def sign(self, method, target, headers=None, body=b"", payload=None, date=None):
        """The headers of the request, complete. `target` is as it goes on the wire; `payload`
        is what x-amz-content-sha256 says."""
        path, _, query = target.partition("?")
        date = date or stamp()
        payload = payload or digest(body)
        headers = {"Host": self.host, "X-Amz-Date": date, "X-Amz-Content-SHA256": payload,
                   **(headers or {})}
        names = sorted(name.lower() for name in headers)
        values = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
        pairs = sorted((urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~"))
                       for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical = "\n".join([
            method, path, "&".join("%s=%s" % pair for pair in pairs),
            "".join("%s:%s\n" % (name, values[name]) for name in names), ";".join(names), payload])
        text = "\n".join(["AWS4-HMAC-SHA256", date, self.scope(date), digest(canonical.encode())])
        self.signature = self.mac(date, text)
        headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" % (
            self.key, self.scope(date), ";".join(names), self.signature)
        return headers

    def chunked(self, date, pieces, trailers=()):
        """A body in signed chunks that follows the request signed last."""
        body, before = b"", self.signature
        for piece in [*pieces, b""]:
            text = "\n".join(["AWS4-HMAC-SHA256-PAYLOAD", date, self.scope(date), before,
                              digest(b""), digest(piece)])
            before = self.mac(date, text)
            body += b"%x;chunk-signature=%s\r\n" % (len(piece), before.encode())
            body += piece + b"\r\n" if piece else b""
        if not trailers:
            return body + b"\r\n"
        canonical = "".join("%s:%s\n" % pair for pair in trailers)
        text = "\n".join(["AWS4-HMAC-SHA256-TRAILER", date, self.scope(date), before,
                          digest(canonical.encode())])
        for pair in trailers:
            body += ("%s:%s\r\n" % pair).encode()
        return body + ("x-amz-trailer-signature:%s\r\n\r\n" % self.mac(date, text)).encode()
