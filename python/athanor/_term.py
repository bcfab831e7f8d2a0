"""SIGTERM, for scripts that look at should_stop(), save by should_checkpoint() or capture their steps.

It comes with every stop, and its default would end such a script before it can look, save, or have
its capture on disk. One that looks ends by itself; one that only saves is ended once it has. A
script that has a handler of its own keeps it; programs it starts get the default again, and forked
children end as they would have.
"""

import os

_pid = None
_looks = False  # at should_stop(): it ends by itself
_saves = False  # when should_checkpoint() says so
_saved = False  # since a stop was asked for
_came = False   # SIGTERM, and it was held back
_last_words = []  # functions to call first; true: it will call end() itself


def take(looks=False, saves=False, last_words=None):
    """From now on, in this process. Never raises."""
    global _pid, _looks, _saves
    _looks, _saves = _looks or looks, _saves or saves
    if last_words is not None:
        _last_words.append(last_words)
    if _pid == os.getpid():
        return
    try:
        import _signal  # what `signal` wraps, without the price of its enums
        if _signal.getsignal(_signal.SIGTERM) is _signal.SIG_DFL:
            _signal.signal(_signal.SIGTERM, _on_term)
        _pid = os.getpid()
    except Exception:
        pass  # not the main thread; its next call may come from there


def saved():
    """The script has saved, knowing of the stop."""
    global _saved
    _saved = True
    if _came:
        end()


def _on_term(number, frame):
    global _came
    if _pid == os.getpid():
        _came = True
        if any([words() for words in _last_words]):
            return
    end()


def end():
    """What SIGTERM does by default, if the script is not to go on."""
    if _pid == os.getpid() and (_looks or (_saves and not _saved)):
        return
    import _signal
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGTERM)
