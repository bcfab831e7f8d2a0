"""What the package raises when Athanor refuses: what happened, why, and what to do next."""

import json
import re


class AthanorError(RuntimeError):
    """`what` happened, `why`, and what to do `next`; `code` is for `ath explain`."""

    def __init__(self, what, why="", next="", code=""):
        self.what = what
        self.why = why
        self.next = next
        self.code = code
        lines = [what]
        lines += ["  why:  " + line for line in why.splitlines()[:1]]
        lines += ["        " + line for line in why.splitlines()[1:]]
        lines += ["  next: " + line for line in next.splitlines()[:1]]
        lines += ["        " + line for line in next.splitlines()[1:]]
        super().__init__("\n".join(lines))

    def __reduce__(self):
        return type(self), (self.what, self.why, self.next, self.code)


def fields_of(body):
    """what, why, next and code of an error as the server and `ath --json` write it; or None."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not error.get("what"):
        return None
    where = error.get("where")
    return (error["what"] + (" (%s)" % where if where else ""), error.get("why", ""),
            error.get("hint", ""), error.get("id", ""))


def fields_in(text):
    """The same of an error as `ath` prints it, in JSON or in words; or None."""
    for line in reversed(text.strip().splitlines()):
        try:
            return fields_of(json.loads(line))
        except ValueError:
            continue
    parts = {"what": [], "why": [], "next": []}
    code = at = None
    for line in text.splitlines():
        head = re.match(r"error(?:\[([^]]+)\])?: (.*)", line)
        label = re.match(r"  (why|next): +(.*)", line)
        if head:
            code, at = head.group(1), "what"
            parts = {"what": [head.group(2)], "why": [], "next": []}
        elif label and at:
            at = label.group(1)
            parts[at].append(label.group(2))
        elif at and line.startswith("   "):
            parts[at].append(line.strip())
    if not parts["what"]:
        return None
    return tuple("\n".join(parts[key]) for key in ("what", "why", "next")) + (code or "",)
