"""The OpenAPI document as others read it: openapi-spec-validator, unmodified, from PyPI."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import venvs
from harness import Case

CHECK = """
import json, sys
from openapi_spec_validator import OpenAPIV30SpecValidator
errors = list(OpenAPIV30SpecValidator(json.load(sys.stdin)).iter_errors())
for error in errors:
    print("/".join(map(str, error.absolute_path)), error.message[:500])
sys.exit(1 if errors else 0)
"""


class OpenApi(Case):
    def validate(self, document):
        python = venvs.venv("openapi-spec-validator==0.7.1")
        return subprocess.run([python, "-c", CHECK], input=document, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def document(self):
        reply = self.server.http("GET", "/api/v1/openapi.json")
        self.assertEqual(reply.status, 200)
        return reply.body

    def test_document_is_valid(self):
        """Red when a parameter has no type (`from key` in place of `from:string key:string`)."""
        checked = self.validate(self.document())
        self.assertEqual(checked.returncode, 0, checked.stdout.decode())

    def test_validator_sees_a_mistake(self):
        broken = self.document().replace(b'"in":"path","required":true', b'"in":"path"')
        self.assertNotEqual(self.validate(broken).returncode, 0)


if __name__ == "__main__":
    harness.main()
