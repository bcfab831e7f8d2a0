"""mkdocs calls this for each page of docs/: a link that leaves docs/, which a site does not
contain, becomes its text and the path in the source tree."""

import os
import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown, page, **_):
    folder = posixpath.dirname(page.file.src_uri)

    def outside(found):
        text, target = found.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if re.match(r"[a-z]+:", target) or path == "docs" or path.startswith("docs/"):
            return found.group()
        if not os.path.exists(os.path.join(os.path.dirname(__file__), "..", path)):
            return found.group()  # a broken link stays one, and ends a strict build
        if text.strip("`") in (path, posixpath.dirname(path)):
            return "`%s`" % text.strip("`")
        return "%s (`%s`)" % (text, path)

    return LINK.sub(outside, markdown)
