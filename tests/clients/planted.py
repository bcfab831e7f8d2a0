"""Failures to plant: (name, class wanted, how). `how` is a Python script, or Sh(...) for a shell's, or
a Job(...) with what else it needs. Scripts fail for real where this machine allows; what needs a GPU, a
cluster or a server on the net says what the library says, from an exception of the same name."""

import textwrap


class Job:
    def __init__(self, *command, files=(), flags=(), text=None, contains=(), hint=(), no=()):
        self.command, self.files, self.flags, self.text = command, dict(files), flags, text
        self.contains, self.hint, self.no = contains, hint, no


def Sh(text, **more):
    return Job("sh", "-c", text, **more)


def Py(text, **more):
    return Job("python3", "train.py", files={"train.py": text, **more.pop("files", {})}, **more)


def Raises(type_name, message, base="RuntimeError", **more):
    """A script whose library raises this, with the type's full name."""
    module, _, name = type_name.rpartition(".")
    return Py("""
        def step():
            error = type(%r, (%s,), {"__module__": %r})
            raise error(%r)
        step()
        """ % (name, base, module or "builtins", textwrap.dedent(message)), **more)


HANDLED = """
    import sys, traceback
    def load():
        try:
            {}["shard"]
        except KeyError:
            traceback.print_exc()
    load()
    """

PLANTED = [
    # Imports.
    ("no_module", "bad_import", Py("import surely_not_there", hint=["ath retry", "requirements.txt"])),
    ("no_module_of_another_name", "bad_import", Py(
        "import sys; sys.modules['umap'] = None\nimport importlib\nraise ModuleNotFoundError(\"No module named 'umap'\")",
        hint=["umap-learn"])),
    ("dash_m", "bad_import", Job("python3", "-m", "nosuchmod", contains=["nosuchmod"])),
    ("dash_m_of_a_package", "bad_import", Job("python3", "-m", "nopkg.trainer", contains=["nopkg"])),
    ("package_without_main", "bad_import", Job("python3", "-m", "pkg", files={"pkg/__init__.py": ""},
                                               contains=["__main__"])),
    ("name_not_in_module", "bad_import", Py("from json import lodas")),
    ("relative_import", "bad_import", Py("from . import model")),
    ("circular_import", "bad_import", Py("import a", files={"a.py": "from b import x\ny = 1",
                                                            "b.py": "from a import y\nx = 1"})),
    ("module_in_src", "bad_import", Py("import mymodel", files={"src/mymodel.py": "x = 1"},
                                       hint=["-e PYTHONPATH=src"])),
    ("listed_but_not_installed", "bad_import", Py(
        "import notyetthere", files={"requirements.txt": "NotYetThere>=1  # soon\n"},
        contains=["requirements.txt lists"], hint=["--requirements requirements.txt"], no=["echo"])),
    ("missing_library", "bad_import", Py("import ctypes\nctypes.CDLL('libsurelynot.so.7')",
                                         contains=["libsurelynot.so.7"])),
    ("glibc", "wrong_build", Raises("ImportError", "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not "
                                    "found (required by /x/_C.so)", base="ImportError")),
    ("undefined_symbol", "wrong_build", Raises("ImportError", "/x/flash.so: undefined symbol: _ZN3c10", base="ImportError")),
    ("numpy_abi", "wrong_build", Raises("ValueError", "numpy.dtype size changed, may indicate binary incompatibility", base="ValueError")),
    # Memory.
    ("memory_error", "out_of_memory", Py("x = bytearray(1 << 62)")),
    ("cuda_oom", "out_of_memory", Raises("torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB")),
    ("numpy_alloc", "out_of_memory", Py("import numpy\nnumpy.zeros((1 << 40, 1 << 10))")),
    ("jax_oom", "out_of_memory", Raises("jaxlib.xla_extension.XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes.")),
    ("tf_oom", "out_of_memory", Raises("tensorflow.python.framework.errors_impl.ResourceExhaustedError", "OOM when allocating tensor with shape[64]")),
    # Signals and statuses.
    ("segfault", "segfault", Py("import ctypes\nctypes.string_at(0)", hint=["--debug"])),
    ("sigkill", "signal", Py("import os\nos.kill(os.getpid(), 9)", contains=["SIGKILL"])),
    ("sigterm_of_others", "signal", Py("import os\nos.kill(os.getpid(), 15)", contains=["SIGTERM"])),
    ("illegal_instruction", "wrong_build", Py("import os\nos.kill(os.getpid(), 4)")),
    ("abort", "signal", Py("import os\nos.abort()")),
    ("exit_137_by_itself", "nonzero_exit", Sh("exit 137", contains=["137", "itself"], no=["dmesg"])),
    ("child_killed_under_sh", "signal", Sh("sh -c 'kill -9 $$'; exit $?", contains=["137", "SIGKILL"])),
    ("exit_3", "nonzero_exit", Py("import sys\nsys.exit(3)", contains=["3"])),
    ("exit_message", "nonzero_exit", Py("import sys\nsys.exit('no rows left after the filter')", contains=["no rows left"])),
    ("timeout_program", "nonzero_exit", Sh("timeout 0.1 sleep 60", contains=["124"])),
    # Tracebacks that are not the reason.
    ("handled_then_exit", "nonzero_exit", Py(HANDLED + "print('no licence left', file=sys.stderr)\n    sys.exit(4)",
                                             contains=["no licence"], no=["KeyError"])),
    ("handled_then_message", "nonzero_exit", Py(HANDLED + "sys.exit('giving up: no usable shard')",
                                                contains=["giving up"])),
    ("handled_then_other", "missing_file", Py(HANDLED + "open('weights.pt')", contains=["weights.pt"])),
    ("atexit_error", "nonzero_exit", Py("""
        import atexit, sys
        def bye(): raise ValueError("in atexit")
        atexit.register(bye)
        sys.exit("bad shard 7")
        """, contains=["bad shard 7"], no=["ValueError"])),
    ("atexit_error_after_another", "missing_file", Py("""
        import atexit
        def bye(): raise ValueError("in atexit")
        atexit.register(bye)
        open("labels.json")
        """, contains=["labels.json"])),
    ("del_error", "python_exception", Py("""
        class Leaky:
            def __del__(self): raise OSError("in del")
        keep = Leaky()
        raise ArithmeticError("the real one")
        """, contains=["the real one"])),
    ("thread_error_then_exit", "nonzero_exit", Py("""
        import sys, threading
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start(); thread.join()
        sys.exit("the loader stopped")
        """, contains=["the loader stopped"])),
    ("logged_error", "nonzero_exit", Py("""
        import logging, sys
        try: 1 / 0
        except ZeroDivisionError: logging.exception("shard 3 is bad")
        print("no shard is left", file=sys.stderr)
        sys.exit(1)
        """, contains=["no shard is left"])),
    # Exceptions.
    ("plain", "python_exception", Py("def f(n): return 1 / n\nf(0)", contains=["ZeroDivisionError", "train.py:1"], hint=["--debug"])),
    ("from_a_missing_file", "missing_file", Py("""
        try: open("conf/base.yaml")
        except FileNotFoundError as e: raise RuntimeError("no configuration") from e
        """, contains=["no configuration", "conf/base.yaml"])),
    ("group", "python_exception", Py("raise ExceptionGroup('two', [ValueError('first'), KeyError('second')])", contains=["first"])),
    ("recursion", "python_exception", Py("def f(n): return f(n + 1)\nf(0)", contains=["RecursionError"])),
    ("assertion", "python_exception", Py("assert 1 == 2, 'sizes differ'", contains=["sizes differ"])),
    ("shape_mismatch", "python_exception", Py("import numpy\nnumpy.ones((2, 3)) @ numpy.ones((2, 3))")),
    ("worker_pool", "python_exception", Py("""
        import multiprocessing
        def work(x): return [1][x]
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(1) as pool: pool.map(work, [5])
        """, contains=["IndexError"])),
    ("broken_pipe", "python_exception", Py("import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')", contains=["BrokenPipe"])),
    ("sqlite_locked", "python_exception", Py("""
        import sqlite3
        a, b = (sqlite3.connect("x.db", timeout=0, isolation_level=None) for _ in range(2))
        a.execute("create table t(x)")
        a.execute("begin exclusive")
        b.execute("insert into t values(1)")
        """, contains=["locked"])),
    ("rich_box", "missing_file", Py("""
        import sys
        print("╭──── Traceback (most recent call last) ────╮", file=sys.stderr)
        print("│ /opt/ml/code/train.py:7 in <module>      │", file=sys.stderr)
        print("│ ❱ 7 open('x.csv')                        │", file=sys.stderr)
        print("╰──────────────────────────────────────────╯", file=sys.stderr)
        print("FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", file=sys.stderr)
        sys.exit(1)
        """, contains=["x.csv", "train.py:7"])),
    # Files.
    ("missing_relative", "missing_file", Py("open('data/train.csv')", contains=["data/train.csv"])),
    ("missing_absolute", "missing_file", Py("open('/no/such/place/x.bin')", contains=["/no/such/place/x.bin"])),
    ("ignored_file", "missing_file", Py("open('big.npy')", files={"big.npy": "x", ".gitignore": "*.npy\n"},
                                        contains=["in your folder"], hint=[".athanorignore"])),
    ("missing_channel", "missing_file", Py("open('/opt/ml/input/data/train/x.csv')", hint=["-i train="])),
    ("cat_missing", "missing_file", Sh("cat nothing.txt", contains=["nothing.txt"])),
    ("missing_program", "missing_file", Sh("no-such-program --x", contains=["no-such-program"])),
    ("git_missing", "missing_file", Py("import subprocess\nsubprocess.run(['git-surely-not', 'status'])", contains=["git-surely-not"])),
    ("script_missing", "missing_file", Sh("python3 tarin.py", contains=["tarin.py"])),
    ("permission", "permission_denied", Py("""
        raise PermissionError(13, "Permission denied", "/etc/shadow")""", contains=["/etc/shadow"])),
    ("not_executable", "permission_denied", Sh("./go.sh", files={"go.sh": "#!/bin/sh\ntrue\n"}, hint=["chmod +x"])),
    ("read_only", "permission_denied", Py("raise OSError(30, 'Read-only file system', '/proc/x')")),
    ("disk_full", "disk_full", Py("f = open('/dev/full', 'w', buffering=1)\nf.write('x\\n')", hint=["df -h"])),
    ("shm_full", "system_limit", Py("raise OSError(28, 'No space left on device', '/dev/shm/torch_1')")),
    ("open_files", "system_limit", Py("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        keep = [open("/dev/null") for _ in range(50)]
        """)),
    ("crlf_script", "missing_file", Sh("sh ./steps.sh", files={"steps.sh": "cd /tmp\r\nls-not\r\n"},
                                       contains=["CRLF"], hint=["sed -i"])),
    ("crlf_shebang", "missing_file", Job("./run.py", files={"run.py": "#!/usr/bin/python3\r\nprint(1)\r\n"},
                                         contains=["CRLF"], hint=["sed -i"])),
    ("wrong_interpreter", "missing_file", Job("./run.sh", files={"run.sh": "#!/usr/bin/nosuchshell\ntrue\n"},
                                              contains=["nosuchshell"])),
    ("no_shebang", "wrong_build", Job("./tool", files={"tool": "\x01\x02 nothing\n"})),
    # Environment variables.
    ("environ_key", "missing_variable", Py("import os\nos.environ['DATA_BUCKET']", contains=["DATA_BUCKET"],
                                           hint=["-e DATA_BUCKET="])),
    ("environ_secret", "missing_variable", Py("import os\ndef get(): return os.environ['MY_API_KEY']\nget()",
                                              hint=["ath secret set MY_API_KEY", "-s MY_API_KEY"])),
    ("unbound_in_sh", "missing_variable", Sh("set -u; echo $STAGE_DIR", contains=["STAGE_DIR"], hint=["-e STAGE_DIR="])),
    ("unbound_in_bash", "missing_variable", Job("bash", "-c", "set -u; echo ${STAGE_DIR}", hint=["-e STAGE_DIR="])),
    ("required_in_sh", "missing_variable", Sh(": ${RUN_NAME:?}", contains=["RUN_NAME"])),
    ("environs", "missing_variable", Raises("environs.EnvError", 'Environment variable "TRAIN_ROOT" not set', hint=["TRAIN_ROOT"])),
    # Arguments and code.
    ("argparse", "bad_arguments", Py("""
        import argparse
        p = argparse.ArgumentParser(); p.add_argument("--lr"); p.parse_args(["--rl", "1"])
        """, contains=["--rl"])),
    ("argparse_choice", "bad_arguments", Py("""
        import argparse
        p = argparse.ArgumentParser(); p.add_argument("--opt", choices=["adam"]); p.parse_args(["--opt", "x"])
        """)),
    ("hydra", "bad_arguments", Raises("hydra.errors.ConfigCompositionException", "Could not override 'modle.lr'.\nKey 'modle' is not in struct")),
    ("tool_option", "bad_arguments", Sh("ls --surely-no-option", contains=["--surely-no-option"])),
    ("syntax", "syntax_error", Py("x = (1,\nprint(x", contains=["SyntaxError"])),
    ("indentation", "syntax_error", Py("def f():\nreturn 1")),
    ("sh_syntax", "syntax_error", Sh("sh broken.sh", files={"broken.sh": "if true; then echo x\n"})),
    # Data.
    ("json", "unreadable_data", Py("import json\njson.loads('{bad')")),
    ("yaml", "unreadable_data", Py("import yaml\nyaml.safe_load('a: [1, 2')")),
    ("pickle", "unreadable_data", Py("import pickle\npickle.loads(b'not a pickle')")),
    ("encoding", "unreadable_data", Py("b'\\xff\\xfe'.decode('utf-8')")),
    ("zip", "unreadable_data", Py("import zipfile\nopen('x.zip','w').write('no')\nzipfile.ZipFile('x.zip')")),
    ("gzip", "unreadable_data", Py("import gzip\nopen('x.gz','w').write('no')\ngzip.open('x.gz').read()")),
    ("torch_file", "unreadable_data", Raises("RuntimeError", "PytorchStreamReader failed reading zip archive: failed finding central directory")),
    # Models.
    ("state_dict", "checkpoint_mismatch", Raises("RuntimeError", 'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight".')),
    ("size_mismatch", "checkpoint_mismatch", Raises("RuntimeError", "size mismatch for fc.weight: copying a param with shape torch.Size([10, 5])")),
    ("nan_loss", "not_finite", Py("import sys\nprint('Loss is nan, stopping training')\nsys.exit(1)", hint=["--debug"])),
    ("nan_error", "not_finite", Py("loss = float('nan')\nif loss != loss: raise ValueError(f'loss is {loss} at step 3')")),
    ("sklearn_nan", "not_finite", Raises("ValueError", "Input X contains NaN.", base="ValueError")),
    # Processes.
    ("loader_killed", "worker_died", Raises("RuntimeError", "DataLoader worker (pid 77) is killed by signal: Killed.")),
    ("loader_exited", "worker_died", Raises("RuntimeError", "DataLoader worker (pid(s) 12, 13) exited unexpectedly")),
    ("pool_broken", "worker_died", Py("""
        import os
        from concurrent.futures import ProcessPoolExecutor
        def work(x): os._exit(1)
        if __name__ == "__main__":
            with ProcessPoolExecutor(1) as pool: list(pool.map(work, [1]))
        """)),
    ("child_traceback", "missing_file", Py("import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)",
                                           files={"child.py": "open('shard-0.bin')\n"}, contains=["shard-0.bin"])),
    ("torchrun", "python_exception", Py("""
        import sys
        print('''[rank0]: Traceback (most recent call last):
        [rank0]:   File "/opt/ml/code/train.py", line 4, in <module>
        [rank0]:     step()
        [rank0]: NameError: name 'modle' is not defined
        E1118 12:00:00.000000 12 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0
        Traceback (most recent call last):
          File "/usr/bin/torchrun", line 8, in <module>
            sys.exit(main())
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        ============================================================
        train.py FAILED
        ------------------------------------------------------------'''.replace("\\n        ", "\\n"), file=sys.stderr)
        sys.exit(1)
        """, contains=["NameError"])),
    ("mpirun", "worker_died", Sh("echo 'mpirun noticed that process rank 1 with PID 12 on node a exited on signal 9 (Killed).' >&2; exit 1")),
    ("gloo_peer", "worker_died", Raises("RuntimeError", "[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:33321")),
    ("nccl", "gpu_error", Raises("torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error")),
    ("no_gpu", "gpu_error", Raises("RuntimeError", "No CUDA GPUs are available")),
    ("device_assert", "gpu_error", Raises("RuntimeError", "CUDA error: device-side assert triggered")),
    # The network.
    ("port", "address_in_use", Py("""
        import socket
        a, b = socket.socket(), socket.socket()
        a.bind(("127.0.0.1", 0)); a.listen()
        b.bind(a.getsockname())
        """)),
    ("dns", "network_error", Py("import socket\nsocket.getaddrinfo('surely-not.invalid', 80)")),
    ("refused", "network_error", Py("""
        import socket
        a = socket.socket(); a.bind(("127.0.0.1", 0)); at = a.getsockname(); a.close()
        socket.create_connection(at)
        """)),
    ("url_refused", "network_error", Py("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1/x')")),
    ("certificate", "network_error", Raises("requests.exceptions.SSLError", "HTTPSConnectionPool(host='h', port=443): Max retries exceeded (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed')))", hint=["SSL_CERT_FILE"])),
    ("http_401", "access_refused", Raises("requests.exceptions.HTTPError", "401 Client Error: Unauthorized for url: https://h/x", hint=["ath secret set"])),
    ("http_403", "access_refused", Raises("urllib.error.HTTPError", "HTTP Error 403: Forbidden")),
    ("http_404", "access_refused", Raises("urllib.error.HTTPError", "HTTP Error 404: Not Found")),
    ("http_429", "access_refused", Raises("requests.exceptions.HTTPError", "429 Client Error: Too Many Requests for url: https://h/x")),
    ("gated", "access_refused", Raises("huggingface_hub.errors.GatedRepoError", "Cannot access gated repo for url https://h/x", hint=["HF_TOKEN"])),
    ("no_credentials", "access_refused", Raises("botocore.exceptions.NoCredentialsError", "Unable to locate credentials")),
]
