"""How a job or a run looks in a notebook, also while it continues."""

import html

_INK = {"Completed": "#1a7f37", "Finished": "#1a7f37", "Failed": "#b3261e", "Running": "#0b57d0"}
_MOST = 12  # metrics


def _number(value):
    try:
        return "%.6g" % float(value)
    except (TypeError, ValueError):
        return str(value)


def page(title, state, rows, note=""):
    """`rows`: name, last value, step."""
    cell = "<td style='text-align:left;padding:1px 12px 1px 0'>%s</td>"
    table = "".join("<tr>%s%s%s</tr>" % (cell % html.escape(str(name)), cell % html.escape(_number(value)),
                                         cell % ("" if step is None else "step %s" % html.escape(str(step))))
                    for name, value, step in rows[:_MOST])
    more = "<div>and %d more metrics</div>" % (len(rows) - _MOST) if len(rows) > _MOST else ""
    return ("<div><b>%s</b> <span style='color:%s'>%s</span>%s%s%s</div>"
            % (html.escape(title), _INK.get(state, "inherit"), html.escape(state),
               "<div>%s</div>" % html.escape(note) if note else "",
               "<table style='margin:4px 0'>%s</table>" % table if table else "", more))


def in_notebook():
    """Whether an IPython kernel runs this, so that a display can be updated."""
    import sys
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Html:
    """What IPython shows of a text of HTML; other consoles see the plain words."""

    def __init__(self, text, plain):
        self._text = text
        self._plain = plain

    def _repr_html_(self):
        return self._text

    def __repr__(self):
        return self._plain


class Live:
    """One display of a notebook that is drawn again when what it shows changed. Never raises."""

    def __init__(self, draw):
        self._draw = draw
        self._last = None
        self._handle = None
        try:
            from IPython.display import display
            self._last = draw()
            self._handle = display(self._last, display_id=True)
        except Exception:
            pass

    def update(self):
        try:
            now = self._draw()
            if self._handle is not None and now._repr_html_() != self._last._repr_html_():
                self._handle.update(now)
                self._last = now
        except Exception:
            pass
