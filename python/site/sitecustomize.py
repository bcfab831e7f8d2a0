"""The one thing Athanor puts into the interpreter of a job: Python stacks on request.

Python imports this file by its name at every start because its folder comes first in
PYTHONPATH. It makes faulthandler write the stacks of all threads to the file named by
ATHANOR_STACKS when the process gets SIGURG, which Athanor sends when a job seems to hang. Then it
leaves sys.path and hands over to the sitecustomize that would have been found without it.

Why SIGURG: its default is to be ignored, so that sending it to the wrong process, or to one
that has just become another program, does nothing (SIGUSR1 would end it); nothing in Python or
the usual training libraries uses it, while SIGUSR1 and SIGUSR2 ask for a checkpoint in many
scripts under Slurm. A disposition that is not the default is left alone, and a handler that the
script sets later replaces ours. faulthandler's handler is C: it works while the interpreter is
stuck in an extension or waits for the GIL.

Nothing here raises, prints, starts a thread or imports a module that is not built in.
ATHANOR_SITE=0 switches it off; the user's own sitecustomize still runs. Interpreters started
with -I, -E or -S never see it.
"""


def _register():
    import os
    path = os.environ.get("ATHANOR_STACKS")
    if not path or os.environ.get("ATHANOR_SITE") == "0":
        return
    import _signal  # what `signal` wraps, without the price of its enums
    import faulthandler
    if _signal.getsignal(_signal.SIGURG) is not _signal.SIG_DFL:
        return
    # A handler can open nothing, so the file must be open before. Appending, as all processes
    # of a rank write to it; forked children share the descriptor, other programs do not get it.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        # Not chained: there is nobody before us to call, and a chained handler would not let
        # the system calls it interrupts start again.
        faulthandler.register(_signal.SIGURG, file=fd, all_threads=True, chain=False)
    except BaseException:
        os.close(fd)
        raise


def _leave():
    import sys
    folder = __file__.rpartition("/")[0]
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    if sys.modules.get("sitecustomize") is sys.modules.get(__name__):
        sys.modules.pop("sitecustomize", None)


try:
    _register()
except Exception:
    pass
_leave()
# The next one on sys.path. Without one this raises what `site` expects when there is none, and
# what goes wrong in it is told as if it had been found first.
import sitecustomize  # noqa: E402,F401
