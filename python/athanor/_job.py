"""What a script can ask about its job. Not telemetry: a wrong name raises."""

import os


class Params(dict):
    """The job's parameters; params["lr"] and params.lr both work.

    It notes which of them the script asks for, so that `ath show` can say which it never read. What
    takes all of them at once (a copy, a loop, **params, print) counts as asking for all.
    """

    _note = None  # set by load_params

    def __missing__(self, key):
        known = ", ".join(sorted(map(str, dict.keys(self)))) or "none"
        raise KeyError("no parameter %r (this job has: %s); give it with `ath run -p %s=VALUE`"
                       % (key, known, key))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None


def _noting(method, names):
    plain = getattr(dict, method)

    def noted(self, *args, **kwargs):
        if self._note is not None:
            self._note(b"name " + str(args[0]).encode() if names and args else b"all")
        return plain(self, *args, **kwargs)

    noted.__name__ = method
    noted.__doc__ = plain.__doc__
    return noted


for _method in ("__getitem__", "__contains__", "get", "pop", "setdefault"):
    setattr(Params, _method, _noting(_method, True))
for _method in ("__iter__", "__reversed__", "__repr__", "__eq__", "__ne__", "__or__", "__ror__",
                "copy", "items", "keys", "popitem", "values"):
    if hasattr(dict, _method):
        setattr(Params, _method, _noting(_method, False))


def _reads_file(folder):
    """Appends a line to the agent's file of what was asked for, each once (src/run/agent/param_reads.h)."""
    noted = set()

    def note(line):
        if line in noted or b"\n" in line:
            return
        noted.add(line)
        try:
            fd = os.open(folder + "/read", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line + b"\n")
            finally:
                os.close(fd)
        except OSError:
            pass

    return note


def _restore(text, json):
    try:
        return json.loads(text)
    except ValueError:
        return text


def load_params():
    path = os.environ.get("ATHANOR_PARAMS_FILE")
    if not path:
        return Params()
    # A copy of the file: opening the original would count as reading all of it.
    folder = os.environ.get("ATHANOR_PARAMS_DIR")
    if folder:
        path = folder + "/values.json"
    import json
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        # Training on defaults by mistake is worse than not training.
        raise RuntimeError("the job's parameters cannot be read from %s: %s"
                           % (path, error)) from None
    # hyperparameters.json as SageMaker writes it holds strings only: "0.1", "true", "[1, 2]".
    if all(isinstance(value, str) for value in values.values()):
        values = {name: _restore(text, json) for name, text in values.items()}
    params = Params(values)
    if folder:
        object.__setattr__(params, "_note", _reads_file(folder))
    return params


def _number(name, default):
    try:
        return int(os.environ.get(name, ""))
    except ValueError:
        return default


def job_id():
    """The job's id, or None outside a job."""
    return os.environ.get("ATHANOR_JOB_ID") or None


def rank():
    """This process's rank among world_size(); 0 outside a job."""
    return _number("ATHANOR_RANK", 0)


def world_size():
    """How many ranks the job has; 1 outside a job."""
    return _number("ATHANOR_WORLD_SIZE", 1)


def checkpoint_dir(default="checkpoints"):
    """The folder that survives interruptions (`default` outside a job); made if missing."""
    path = os.environ.get("ATHANOR_CHECKPOINT_DIR") or default
    os.makedirs(path, exist_ok=True)
    return path


def model_dir(default="model"):
    """The folder whose files are kept as the job's model (`default` outside a job); made if missing.

    Fetch them with `ath cp JOB:model/ .`
    """
    path = os.environ.get("SM_MODEL_DIR") or default
    os.makedirs(path, exist_ok=True)
    return path


def output_dir(default="output"):
    """The folder whose files are kept as the job's output (`default` outside a job); made if missing.

    Fetch them with `ath cp JOB:output/ .`
    """
    path = os.environ.get("SM_OUTPUT_DATA_DIR") or default
    os.makedirs(path, exist_ok=True)
    return path


def notice():
    """The agent's notice that this run is to end, {"cause": ..., "deadline_unix_ms": ...}, or None.

    Read from the file named by ATHANOR_NOTICE_FILE, which is there for code that is not Python;
    should_stop() says the same and costs less.
    """
    try:
        import json
        with open(os.environ["ATHANOR_NOTICE_FILE"], encoding="utf-8") as file:
            value = json.load(file)
        return value if isinstance(value, dict) else None
    except Exception:
        return None  # no job, no notice yet


def _variable_part(name):
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()


def channel(name):
    """The folder of a data channel."""
    for prefix in ("ATHANOR_CHANNEL_", "SM_CHANNEL_"):
        path = os.environ.get(prefix + _variable_part(name))
        if path:
            return path
    prefix = "ATHANOR_CHANNEL_"
    known = sorted(key[len(prefix):].lower() for key in os.environ if key.startswith(prefix))
    raise KeyError("no data channel %r (there are: %s); add it under `data:` in the job file, or "
                   "outside a job set %s%s=PATH"
                   % (name, ", ".join(known) or "none", prefix, _variable_part(name)))


def secret(name):
    """The value of a secret the job was given, from its secrets folder or the environment."""
    # The folder first: a secret given as a file has its path in the environment.
    folder = os.environ.get("ATHANOR_SECRETS_DIR")
    if folder and name and "/" not in name and "\0" not in name and name not in (".", ".."):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
        except OSError:
            pass
    if name in os.environ:
        return os.environ[name]
    raise KeyError("no secret %r; store it with `ath secret set %s` and list it under `secrets:` "
                   "in the job file (outside a job: export %s=...)" % (name, name, name))
