"""What Athanor puts into the interpreter of a job: Python stacks on request, and whether the script
read the job's parameters.

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

A job with parameters that its command does not pass has ATHANOR_PARAMS_DIR. There os.environ notes
in the file `read` of that folder which SM_HP_* variables are asked for, and the calls that start
programs note their names, because other programs read their environment unnoticed. The agent
makes of it what `ath show` says (src/run/agent/param_reads.h has the lines). Without the variable nothing
is changed.

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
        # Not chained: there is no handler before ours, and a chained handler would not let
        # the system calls it interrupts start again.
        faulthandler.register(_signal.SIGURG, file=fd, all_threads=True, chain=False)
    except BaseException:
        os.close(fd)
        raise


def _note_reads():
    import os
    folder = os.environ.get("ATHANOR_PARAMS_DIR")
    if not folder or os.environ.get("ATHANOR_SITE") == "0":
        return
    path = folder + "/read"
    noted = set()

    def note(line):
        if line in noted:
            return
        noted.add(line)
        try:
            # By its name each time: a script may close descriptors that it does not know.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line + b"\n")
            finally:
                os.close(fd)
        except OSError:
            pass

    plain = type(os.environ)

    class _Environ(plain):
        __module__ = plain.__module__
        __qualname__ = plain.__qualname__
        __doc__ = plain.__doc__
        _walk = None  # the keys still to come, while somebody copies all of them in order

        def __iter__(self):
            self._walk = iter(list(self._data))
            return plain.__iter__(self)

        def __getitem__(self, key):
            value = plain.__getitem__(self, key)
            name = self.encodekey(key)
            walks = self._walk is not None and next(self._walk, None) == name
            if not walks:
                self._walk = None
            if name.startswith(b"SM_HP") or name == b"SM_TRAINING_ENV":
                note(b"walk" if walks else b"env " + name)
            return value

    def noting(call, program_of):
        def start(*args, **kwargs):
            try:
                program = program_of(args)
                program = os.fsencode(program).split()[:1] or [b"?"]
                note(b"spawn " + program[0].rpartition(b"/")[2])
            except Exception:
                note(b"spawn ?")
            return call(*args, **kwargs)

        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(start, name, getattr(call, name))
        return start

    for environ in (os.environ, os.environb):
        environ.__class__ = _Environ
    for name in ("execv", "execve", "posix_spawn", "posix_spawnp", "system"):
        setattr(os, name, noting(getattr(os, name), lambda args: args[0]))
    import _posixsubprocess  # what subprocess and multiprocessing start programs with
    _posixsubprocess.fork_exec = noting(_posixsubprocess.fork_exec, lambda args: args[1][0])
    note(b"python")  # last: it says that all of the above is in place


def _leave():
    import sys
    folder = __file__.rpartition("/")[0]
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    if sys.modules.get("sitecustomize") is sys.modules.get(__name__):
        sys.modules.pop("sitecustomize", None)


for _each in (_register, _note_reads):
    try:
        _each()
    except Exception:
        pass
_leave()
# The next one on sys.path. Without one this raises what `site` expects when there is none, and
# what goes wrong in it is told as if it had been found first.
import sitecustomize  # noqa: E402,F401
