#include "watch/diagnose/diagnose.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>

#include "base/io/files.h"
#include "base/text/text.h"
#include "job/causes.h"
#include "watch/diagnose/modules.h"
#include "watch/diagnose/surroundings.h"

namespace athanor {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
constexpr uint64_t kGb = 1'000'000'000;

// Runs a script for real and gathers what the agent would.
class RealScript {
 public:
  RealScript() {
    char name[] = "/tmp/athanor_diagnose_XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~RealScript() { (void)RemoveTree(dir_); }

  EndEvidence Run(const std::string& script, const std::string& command = "exec python3 train.py") {
    EXPECT_TRUE(ReplaceFile(JoinPath(dir_, "train.py"), script));
    EndEvidence evidence;
    const std::string line = "cd " + dir_ + " && ulimit -c 0 && PATH=/usr/bin:/bin && { " +
                             command + "; } >out 2>err </dev/null";
    const int status = std::system(line.c_str());
    evidence.exit.emplace();
    evidence.exit->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    evidence.exit->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    evidence.stdout_tail = ReadFile(JoinPath(dir_, "out")).value_or("");
    evidence.stderr_tail = ReadFile(JoinPath(dir_, "err")).value_or("");
    evidence.command = {"python", "train.py"};
    evidence.code_dir = dir_;
    return evidence;
  }

 private:
  std::string dir_;
};

struct RealCase {
  const char* name;
  const char* script;
  const char* kind;
  const char* text;    // exact, or a part when it begins with '*'
  const char* hint;    // a part
  const char* detail;  // a part
  const char* command = "exec python3 train.py";
};

void Expect(const Cause& cause, const char* kind, const char* text, const char* hint,
            const char* detail) {
  EXPECT_EQ(cause.kind, kind);
  if (text[0] == '*') {
    EXPECT_NE(cause.text.find(text + 1), std::string::npos) << cause.text;
  } else {
    EXPECT_EQ(cause.text, text);
  }
  EXPECT_NE(cause.hint.find(hint), std::string::npos) << cause.hint;
  EXPECT_NE(cause.detail.find(detail), std::string::npos) << cause.detail;
  EXPECT_NE(FindCause(cause.kind), nullptr) << cause.kind;
  EXPECT_FALSE(cause.hint.empty());
  EXPECT_LT(cause.text.size(), 1'000u);
}

const RealCase kReal[] = {
    {"Completed", "print('fine')", "completed", "the script ended with status 0", "ath show {job}",
     ""},
    {"PlainException", "def load(n):\n    return 1 / n\n\nload(0)\n", "python_exception",
     "ZeroDivisionError: division by zero (at train.py:2 in load)", "ath logs {job} --tail 50",
     "  train.py:4\n    load(0)\n  train.py:2 in load\n    return 1 / n\nZeroDivisionError"},
    {"SkipsLibraryFrames", "import json\ndef read(text):\n    return json.loads(text)\nread('{')\n",
     "unreadable_data",
     "a file or text could not be read: json.decoder.JSONDecodeError: Expecting property name "
     "enclosed in double quotes: line 1 column 2 (char 1) (at train.py:3 in read)",
     "ath logs {job}", "train.py:3 in read"},
    {"NoMessage", "raise KeyError", "python_exception", "KeyError (at train.py:1)", "ath logs", ""},
    {"ChainedWhileHandling",
     "try:\n    {}['lr']\nexcept KeyError:\n    raise ValueError('no lr given')\n",
     "python_exception", "ValueError: no lr given (at train.py:4)", "ath logs", "KeyError: 'lr'"},
    {"ChainedFrom",
     "try:\n    int('x')\nexcept ValueError as e:\n    raise RuntimeError('bad config') from e\n",
     "python_exception", "RuntimeError: bad config (at train.py:4)", "ath logs",
     "invalid literal for int()"},
    {"SyntaxErrorInTheScript", "x = (1,\nprint(x\n", "syntax_error",
     "*SyntaxError: '(' was never closed (at train.py:2)", "ath retry {job} --current", "print(x"},
    {"IndentationError", "def f():\nreturn 1\n", "syntax_error",
     "*IndentationError: expected an indented", "ath retry {job} --current", "train.py:2"},
    {"ExceptionGroupOfTwo",
     "def bad(n):\n    raise ValueError(f'shard {n}')\nerrors = []\nfor n in (1, 2):\n    try:\n   "
     "     bad(n)\n"
     "    except ValueError as e:\n        errors.append(e)\nraise ExceptionGroup('loading', "
     "errors)\n",
     "python_exception",
     "ExceptionGroup: loading (2 sub-exceptions); the first: ValueError: shard 1 (at train.py:2 in "
     "bad)",
     "ath logs", "ValueError: shard 2"},
    {"WorkerProcess",
     "import multiprocessing\ndef work(x):\n    return 1 // x\nif __name__ == '__main__':\n"
     "    with multiprocessing.get_context('fork').Pool(1) as pool:\n        pool.map(work, [0])\n",
     "python_exception",
     "ZeroDivisionError: integer division or modulo by zero (at train.py:3 in work)", "ath logs",
     "train.py:6"},
    {"FuturesWorkerProcess",
     "from concurrent.futures import ProcessPoolExecutor\ndef work(x):\n    raise OSError('shard "
     "is bad')\n"
     "if __name__ == '__main__':\n    with ProcessPoolExecutor(1) as pool:\n        "
     "list(pool.map(work, [0]))\n",
     "python_exception", "OSError: shard is bad (at train.py:3 in work)", "ath logs", "train.py:3"},
    {"Recursion", "def f(n):\n    return f(n + 1)\nf(0)\n", "python_exception",
     "*RecursionError: maximum recursion depth exceeded", "ath logs", "train.py:2 in f"},
    {"ModuleNotInstalled", "import nonexistent_pkg.sub\n", "bad_import",
     "the Python module nonexistent_pkg is not installed (at train.py:1)",
     "echo nonexistent_pkg >> requirements.txt   # run in the source folder\n"
     "ath retry {job} --current --requirements requirements.txt",
     "ModuleNotFoundError"},
    {"ModuleOfAnotherName",
     "import sys\nsys.modules['sklearn'] = None\nfrom sklearn.svm import SVC\n", "bad_import",
     "*sklearn", "scikit-learn", "train.py:3"},
    {"NameNotInModule", "from json import no_such_name\n", "bad_import",
     "*ImportError: cannot import name 'no_such_name' from 'json'", "requirements file",
     "train.py:1"},
    {"ModuleOfDashM", "", "bad_import", "the Python module trainer_x is not installed",
     "echo trainer_x >> requirements.txt", "", "exec python3 -m trainer_x"},
    {"FileNotThere", "def load(p):\n    return open(p)\nload('data/train.csv')\n", "missing_file",
     "data/train.csv is not there (at train.py:2 in load)", "ath show {job}", "FileNotFoundError"},
    {"AbsoluteFileNotThere", "open('/no/such dir/x.csv')\n", "missing_file",
     "/no/such dir/x.csv is not there (at train.py:1)", "ls -l '/no/such dir'", "train.py:1"},
    {"ProgramOfSubprocessNotThere", "import subprocess\nsubprocess.run(['no-such-program'])\n",
     "missing_file", "the program no-such-program is not there (at train.py:2)",
     "command -v no-such-program", "train.py:2"},
    {"ScriptNotThere", "", "missing_file", "*Python found no ", "source folder", "",
     "exec python3 trian.py"},
    {"ShellCommandNotThere", "", "missing_file", "the shell found no program no-such-command-x",
     "command -v no-such-command-x", "", "sh -c 'no-such-command-x --epochs 3'"},
    {"MemoryErrorOfPython", "x = bytearray(1 << 62)\n", "out_of_memory",
     "*an allocation was refused: MemoryError (at train.py:1)", "batch size", "train.py:1"},
    {"DiskFullOfPython", "f = open('/dev/full', 'w')\nf.write('x' * 100)\nf.flush()\n", "disk_full",
     "a write failed: no space is left on the disk", "df -h", "train.py:3"},
    {"DiskFullOfAShellTool", "", "disk_full", "a write failed: no space is left on the disk",
     "df -h", "No space left", "sh -c 'head -c 100000 /dev/zero > /dev/full'"},
    {"SegfaultWithStack", "import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()\n",
     "segfault", "crashed: segmentation fault (signal 11) (at train.py:3 in crash)", "--debug",
     "train.py:4", "exec python3 -X faulthandler train.py"},
    {"SegfaultWithoutStack", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
     "segfault", "crashed: segmentation fault (signal 11)", "ath retry {job} --debug", ""},
    {"SegfaultUnderAShell", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "segfault",
     "crashed: segmentation fault (signal 11), exit status 139", "--debug", "",
     "sh -c 'python3 train.py; exit $?'"},
    {"KilledByASignal", "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\n", "signal",
     "ended by signal 10 (SIGUSR1)", "ath logs", ""},
    {"KilledHard", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "signal",
     "ended by signal 9 (SIGKILL); it was not the job's memory limit", "dmesg", ""},
    {"Aborted", "import os, faulthandler\nfaulthandler.enable()\nos.abort()\n", "signal",
     "ended by signal 6 (SIGABRT): Fatal Python error: Aborted", "ath logs", "train.py"},
    {"ExitStatus", "import sys\nprint('giving up: bad shard', file=sys.stderr)\nsys.exit(3)\n",
     "nonzero_exit", "exit status 3: giving up: bad shard", "ath logs {job} --tail 50",
     "giving up"},
    {"ExitStatusWithNothingSaid", "raise SystemExit(7)", "nonzero_exit", "exit status 7",
     "ath logs", ""},
    {"UnknownArgument",
     "import argparse\np = "
     "argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args(['--rl', '1'])\n",
     "bad_arguments",
     "the script does not accept its arguments: exit status 2: train.py: error: unrecognized "
     "arguments: --rl 1",
     "ath show {job}", "usage:"},
    {"AMessageAfterACaughtExceptionCounts",
     "import sys, traceback\ndef load():\n    try:\n        1 / 0\n    except ZeroDivisionError:\n"
     "        traceback.print_exc()\nload()\nsys.exit('giving up')\n",
     "nonzero_exit", "exit status 1: giving up", "ath logs", "giving up"},
    {"AnErrorAtExitIsNotTheReason",
     "import atexit, sys\natexit.register(lambda: 1 / 0)\nsys.exit('bad shard')\n", "nonzero_exit",
     "exit status 1: bad shard", "ath logs", "bad shard"},
    {"AnErrorAtExitDoesNotHideTheReason", "import atexit\natexit.register(lambda: 1 / 0)\n[][3]\n",
     "python_exception", "IndexError: list index out of range (at train.py:3)", "ath logs",
     "train.py:3"},
    {"RaisedFromAMissingFile",
     "try:\n    open('c.yaml')\nexcept OSError as e:\n    raise RuntimeError('no config') from e\n",
     "missing_file",
     "RuntimeError: no config (at train.py:4); caused by: c.yaml is not there (at train.py:2)",
     "ath show", "RuntimeError"},
    {"AFailureOfTheHandlerIsItsOwn", "try:\n    open('c.yaml')\nexcept OSError:\n    x = 1 / 0\n",
     "python_exception", "ZeroDivisionError: division by zero (at train.py:4)", "ath logs",
     "c.yaml"},
    {"EnvironmentVariable", "import os\nos.environ['DATA_DIR']\n", "missing_variable",
     "the environment variable DATA_DIR is not set (at train.py:2)",
     "ath retry {job} -e DATA_DIR=VALUE", "KeyError"},
    {"AKeyOfADictIsNoVariable", "d = {}\nd['DATA_DIR']\n", "python_exception",
     "KeyError: 'DATA_DIR' (at train.py:2)", "--debug", ""},
    {"UnboundInAShell", "", "missing_variable", "the environment variable STAGE is not set",
     "-e STAGE=VALUE", "STAGE", "sh -c 'set -u; echo $STAGE'"},
    {"StatusOfASignalThatWasNone", "", "nonzero_exit", "*the script returned this status itself",
     "ath logs", "", "sh -c 'exit 137'"},
    {"ACaughtExceptionIsNotTheEnd",
     "import sys, traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    "
     "traceback.print_exc()\n"
     "for i in range(10):\n    print('epoch', i, file=sys.stderr)\nprint('no licence', "
     "file=sys.stderr)\n"
     "sys.exit(4)\n",
     "nonzero_exit", "exit status 4: no licence", "ath logs", "no licence"},
    {"TracebackOnStdout",
     "import sys, traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    "
     "traceback.print_exc(file=sys.stdout)\n"
     "    sys.exit(1)\n",
     "python_exception", "ZeroDivisionError: division by zero (at train.py:3)", "ath logs", ""},
};

class RealEnds : public ::testing::TestWithParam<RealCase> {};

TEST_P(RealEnds, AreNamed) {
  if (!Exists(kPython)) GTEST_SKIP() << kPython << " is not installed";
  const RealCase& c = GetParam();
  const EndEvidence evidence = RealScript().Run(c.script, c.command);
  SCOPED_TRACE(evidence.stderr_tail);
  Expect(Diagnose(evidence), c.kind, c.text, c.hint, c.detail);
}

INSTANTIATE_TEST_SUITE_P(Diagnose, RealEnds, ::testing::ValuesIn(kReal),
                         [](const auto& c) { return std::string(c.param.name); });

struct TextCase {
  const char* name;
  const char* log;
  const char* kind;
  const char* text;
  const char* hint;
};

#define TRACE(line)                                                                                \
  "Traceback (most recent call last):\n  File \"/opt/ml/code/train.py\", line 9, in <module>\n   " \
  " go()\n" line

const TextCase kTexts[] = {
    {"TorchGpuMemory",
     TRACE("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; "
           "15.77 GiB "
           "total capacity; 14.50 GiB already allocated; 8.88 MiB free)\n"),
     "out_of_memory",
     "*the GPU ran out of memory: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to "
     "allocate 20.00 MiB",
     "batch size"},
    {"OlderTorchGpuMemory", TRACE("RuntimeError: CUDA error: out of memory\n"), "out_of_memory",
     "*the GPU ran out of memory", "batch size"},
    {"TorchCpuAllocator",
     TRACE("RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
           "allocate "
           "memory: you tried to allocate 400000000000 bytes. Error code 12 (Cannot allocate "
           "memory)\n"),
     "out_of_memory", "*an allocation was refused", "batch size"},
    {"NumpyArray",
     TRACE("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 745. GiB for an array "
           "with shape "
           "(100000, 1000000) and data type float64\n"),
     "out_of_memory", "*Unable to allocate 745. GiB", "batch size"},
    {"CppBadAlloc",
     "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
     "out_of_memory", "*an allocation was refused", "batch size"},
    {"DataLoaderWorker",
     TRACE("IndexError: Caught IndexError in DataLoader worker process 0.\n"
           "Original Traceback (most recent call last):\n"
           "  File \"/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py\", line 302, "
           "in _worker_loop\n"
           "    data = fetcher.fetch(index)\n"
           "  File \"/opt/ml/code/data.py\", line 17, in __getitem__\n    return self.rows[i]\n"
           "IndexError: list index out of range\n"),
     "python_exception", "IndexError: list index out of range (at data.py:17 in __getitem__)",
     "ath logs"},
    {"SharedMemory",
     TRACE("RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is "
           "possible that "
           "dataloader's workers are out of shared memory.\n"),
     "worker_died", "*Bus error", "num_workers=0"},
    {"StateDict",
     TRACE("RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
           "\"fc.weight\". \n"),
     "checkpoint_mismatch",
     "the checkpoint does not fit the model: RuntimeError: Error(s) in loading state_dict for Net: "
     "Missing key(s) in state_dict: \"fc.weight\". (at train.py:9)",
     "ath show"},
    {"PrefixedByATorchLauncher",
     "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/opt/ml/code/train.py\", line "
     "4, in step\n"
     "[rank1]:     x\n[rank1]: NameError: name 'x' is not defined\n",
     "python_exception", "NameError: name 'x' is not defined (at train.py:4 in step)", "ath logs"},
    {"MissingSystemLibrary",
     TRACE("ImportError: libGL.so.1: cannot open shared object file: No such file or directory\n"),
     "bad_import", "the system library libGL.so.1 is missing (at train.py:9)",
     "apt-file search libGL.so.1"},
    {"PillowIsCalledOtherwise", TRACE("ModuleNotFoundError: No module named 'PIL'\n"), "bad_import",
     "the Python module PIL is not installed (at train.py:9)", "echo Pillow >> requirements.txt"},
    {"RelativeImport",
     TRACE("ImportError: attempted relative import with no known parent package\n"), "bad_import",
     "*relative import", "python -m"},
    {"CircularImport",
     TRACE("ImportError: cannot import name 'a' from partially initialized module 'm' (most likely "
           "due to a "
           "circular import) (/opt/ml/code/m.py)\n"),
     "bad_import", "*circular import", "move one import"},
    {"ColoursAndProgressBars",
     "\x1b[31m 10%|#    | 1/10\r 20%|##   | 2/10\x1b[0m\r\nbad \x1b[1mthing\x1b[0m happened\r\n",
     "nonzero_exit", "exit status 1: bad thing happened", "ath logs"},
    {"Quota", TRACE("OSError: [Errno 122] Disk quota exceeded: 'ckpt.pt'\n"), "disk_full",
     "a write failed: no space is left on the disk", "df -h"},
};

class TextEnds : public ::testing::TestWithParam<TextCase> {};

TEST_P(TextEnds, AreNamed) {
  const TextCase& c = GetParam();
  EndEvidence evidence;
  evidence.exit.emplace();
  evidence.exit->code = 1;
  evidence.stderr_tail = c.log;
  Expect(Diagnose(evidence), c.kind, c.text, c.hint, "");
}

INSTANTIATE_TEST_SUITE_P(Diagnose, TextEnds, ::testing::ValuesIn(kTexts),
                         [](const auto& c) { return std::string(c.param.name); });

const TextCase kInstalls[] = {
    {"NoSuchVersion",
     "Collecting foo==9.9\nERROR: Could not find a version that satisfies the requirement foo==9.9 "
     "(from "
     "versions: 1.0, 1.1)\nERROR: No matching distribution found for foo==9.9\n",
     "install_failed",
     "the environment could not be built: no version of foo==9.9 fits this Python and this "
     "machine, or the "
     "index has none",
     "correct the name or version of foo==9.9"},
    {"CompileFailed",
     "  error: subprocess-exited-with-error\n  gcc: fatal error\nERROR: Failed building wheel for "
     "psycopg2\n"
     "Failed to build psycopg2\nERROR: Could not build wheels for psycopg2, which is required\n",
     "install_failed",
     "the environment could not be built: psycopg2 had to be compiled, and that failed",
     "ath logs {job} --phase setup"},
    {"Conflict",
     "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting "
     "dependencies.\n"
     "ERROR: ResolutionImpossible: for help visit\n",
     "install_failed",
     "the environment could not be built: a==1 and b==2 cannot be installed together", "loosen"},
    {"IndexUnreachable",
     "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by "
     "'NewConnectionError': /simple/foo/\nERROR: No matching distribution found for foo\n",
     "install_failed", "the environment could not be built: the package index did not answer",
     "check the network"},
    {"IndexRefuses",
     "Could not fetch URL http://host/simple/foo/: 401 Client Error: Unauthorized for url: "
     "http://host/simple/foo/ - skipping\nERROR: No matching distribution found for foo\n",
     "install_failed",
     "the environment could not be built: the package index refused access to foo",
     "check the token"},
    {"NotARequirement", "ERROR: Invalid requirement: 'foo=>1' (from line 3 of requirements.txt)\n",
     "install_failed", "the environment could not be built: 'foo=>1' is not a requirement",
     "correct that line"},
    {"WrongPython", "ERROR: Package 'foo' requires a different Python: 3.11.2 not in '>=3.12'\n",
     "install_failed", "the environment could not be built: foo needs another version of Python",
     "foo"},
    {"NoNetwork",
     "WARNING: Retrying after connection broken: NewConnectionError('Temporary failure in name "
     "resolution')\n",
     "install_failed", "the environment could not be built: the package index did not answer",
     "ath retry {job}"},
    {"NoAccess", "ERROR: HTTP error 401 while getting the index\n", "install_failed",
     "the environment could not be built: the package index refused access",
     "environment.index.auth"},
    {"DiskFull",
     "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
     "disk_full", "the environment could not be built: no space is left on the disk", "df -h"},
    {"SomethingElse", "doing things\nerror: the moon is in the wrong house\n", "install_failed",
     "the environment could not be built: error: the moon is in the wrong house", "--phase setup"},
    {"Nothing", "", "install_failed",
     "the environment could not be built: the installer said nothing", "--phase setup"},
};

class InstallEnds : public ::testing::TestWithParam<TextCase> {};

TEST_P(InstallEnds, AreNamed) {
  const TextCase& c = GetParam();
  EndEvidence evidence;
  evidence.setup_failed = true;
  evidence.setup_tail = c.log;
  Expect(Diagnose(evidence), c.kind, c.text, c.hint, "");
}

INSTANTIATE_TEST_SUITE_P(Diagnose, InstallEnds, ::testing::ValuesIn(kInstalls),
                         [](const auto& c) { return std::string(c.param.name); });

EndEvidence Ended(int code, int signal = 0) {
  EndEvidence evidence;
  evidence.exit.emplace();
  evidence.exit->code = code;
  evidence.exit->signal = signal;
  return evidence;
}

TEST(Diagnose, AChildThatWasLostIsTold) {
  EndEvidence evidence = Ended(0, 0);
  evidence.exit->oom_child = "python3, pid 71";
  evidence.exit->memory_limit = 16 * kGb;
  Cause cause = Diagnose(evidence);
  EXPECT_EQ(cause.kind, "completed");
  EXPECT_EQ(
      cause.text,
      "a child process was killed for memory (python3, pid 71); the script ended with 0 anyway");
  EXPECT_NE(cause.hint.find("ath retry {job} --memory 29GiB"), std::string::npos) << cause.hint;
  evidence.exit->oom_child = "unknown";
  EXPECT_EQ(Diagnose(evidence).text,
            "a child process was killed for memory; the script ended with 0 anyway");
}

TEST(Diagnose, AKernelKillNamesPeakAndLimit) {
  EndEvidence evidence = Ended(-1, SIGKILL);
  evidence.exit->oom_killed = true;
  evidence.exit->memory_peak = 15'900'000'000;
  evidence.exit->memory_limit = 16 * kGb;
  Expect(Diagnose(evidence), "out_of_memory",
         "killed: out of memory (peak 14.8 GiB, limit 14.9 GiB)", "ath retry {job} --memory 29GiB",
         "");
  // A child was killed and the script reports it its own way.
  evidence.exit->signal = 0;
  evidence.exit->code = 1;
  evidence.stderr_tail =
      TRACE("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.\n");
  EXPECT_EQ(Diagnose(evidence).kind, "out_of_memory");
  // It went on and ended well: that is what counts.
  evidence.exit->code = 0;
  EXPECT_EQ(Diagnose(evidence).kind, "completed");
}

TEST(Diagnose, AStopIsAStopHoweverTheScriptEnded) {
  EndEvidence evidence = Ended(-1, SIGTERM);
  evidence.stop.emplace();
  evidence.stop->who = "ada";
  evidence.stop->cause.kind = "user_stop";
  Expect(Diagnose(evidence), "user_stop", "stopped by ada", "ath retry {job}", "");
  evidence.exit->signal = SIGKILL;
  Expect(Diagnose(evidence), "user_stop",
         "stopped by ada; it did not end within 2 m and was killed", "ath retry", "");
  evidence.exit->signal = 0;
  evidence.exit->code = 0;
  EXPECT_EQ(Diagnose(evidence).text, "stopped by ada");
  // Unless it had finished, in its own word.
  evidence.exit->done_called = true;
  EXPECT_EQ(Diagnose(evidence).kind, "completed");
  evidence.exit->code = 1;
  evidence.stderr_tail = TRACE("KeyboardInterrupt\n");
  EXPECT_EQ(Diagnose(evidence).text, "stopped by ada; it ended with status 1");
  evidence.exit.reset();
  EXPECT_EQ(Diagnose(evidence).kind, "user_stop");
}

TEST(Diagnose, ATimeLimitNamesItAndTheNextOne) {
  EndEvidence evidence = Ended(-1, SIGTERM);
  evidence.stop.emplace();
  evidence.stop->cause.kind = "time_limit";
  evidence.limits.max_runtime = std::chrono::hours(1);
  Expect(Diagnose(evidence), "time_limit", "ran longer than its limit of 1 h",
         "ath retry {job} --max-runtime 120m", "");
}

TEST(Diagnose, AHangIsNamed) {
  EndEvidence evidence = Ended(-1, SIGKILL);
  evidence.stop.emplace();
  evidence.stop->cause = {"hung", "nothing printed for 30:00", "", ""};
  Expect(Diagnose(evidence), "hung", "*nothing printed for 30:00", "ath logs {job}", "");
}

TEST(Diagnose, WithoutAnExitRecordTheAgentIsLost) {
  Expect(Diagnose(EndEvidence{}), "agent_lost", "*no exit record", "ath retry {job}", "");
}

TEST(Diagnose, AProgramThatCouldNotStartIsNamed) {
  EndEvidence evidence = Ended(127);
  evidence.command = {"pyhton", "train.py"};
  evidence.exit->spawn_error = "execve pyhton: No such file or directory";
  Expect(Diagnose(evidence), "missing_file",
         "pyhton could not be started: execve pyhton: No such file or directory",
         "command -v pyhton", "");
  evidence.exit->spawn_error = "execve ./train.sh: Permission denied";
  evidence.command = {"./train.sh"};
  Expect(Diagnose(evidence), "permission_denied", "*Permission denied", "chmod +x ./train.sh", "");
}

// Planted bug: the code taken to be in /opt/ml/code, where jobs have none.
TEST(Diagnose, WithoutOptMlTheVariablesAreNamed) {
  EndEvidence evidence = Ended(1);
  evidence.stderr_tail =
      "Traceback (most recent call last):\n"
      "  File \"/h/attempts/a/ml/code/train.py\", line 1, in <module>\n"
      "    open('/opt/ml/model/m', 'w')\n"
      "FileNotFoundError: [Errno 2] No such file or directory: '/opt/ml/model/m'\n";
  evidence.code_dir = "/h/attempts/a/ml/code";
  Expect(Diagnose(evidence), "missing_file", "/opt/ml/model/m is not there (at train.py:1)",
         "SM_MODEL_DIR", "");
  evidence.code_dir = "/opt/ml/code";
  EXPECT_EQ(std::string::npos, Diagnose(evidence).hint.find("SM_"));
}

// A place of which everything is said by lists.
class Place : public Surroundings {
 public:
  std::vector<std::string> folder;
  std::map<std::string, std::string> source;
  std::string system;

  bool InFolder(const std::string& path) const override {
    return std::find(folder.begin(), folder.end(), path) != folder.end();
  }
  bool InSource(const std::string& path) const override { return source.contains(path); }
  std::string SourceText(const std::string& path) const override {
    const auto found = source.find(path);
    return found == source.end() ? "" : found->second;
  }
  std::string SystemPythonWith(const std::string&) const override { return system; }
};

TEST(Diagnose, AMissingModuleIsLookedForWhereItMayBe) {
  EndEvidence evidence = Ended(1);
  Place place;
  evidence.around = &place;
  evidence.stderr_tail = TRACE("ModuleNotFoundError: No module named 'sklearn.svm'\n");
  place.source["requirements.txt"] = "numpy\nScikit_Learn[extra] >= 1.2 ; python_version > '3'\n";
  Expect(Diagnose(evidence), "bad_import",
         "*requirements.txt lists scikit-learn, but the job does not",
         "ath retry {job} --requirements requirements.txt", "");
  EXPECT_EQ(Diagnose(evidence).hint.find("echo"), std::string::npos);
  evidence.environment.requirements = "requirements.txt";
  Expect(Diagnose(evidence), "bad_import", "*but that does not bring this module", "--phase setup",
         "");
  evidence.command = {"/usr/bin/python3", "train.py"};
  Expect(Diagnose(evidence), "bad_import", "*runs /usr/bin/python3 instead", "write python", "");
  evidence.environment.requirements = "other.txt";
  Expect(Diagnose(evidence), "bad_import", "*but the job installs other.txt", "--requirements", "");
  place.source.clear();
  place.system = "/usr/bin/python3";
  Expect(Diagnose(evidence), "bad_import", "*sklearn.svm is not installed",
         "environment: {base: system}", "");
  evidence.stderr_tail = TRACE("ModuleNotFoundError: No module named 'mine'\n");
  place.folder = {"mine.py"};
  Expect(Diagnose(evidence), "bad_import", "*in your folder", "echo '!/mine.py' >> .athanorignore",
         "");
  place.source["src/mine/__init__.py"] = "";
  place.folder.clear();
  Expect(Diagnose(evidence), "bad_import", "*it is in src/", "-e PYTHONPATH=src", "");
}

TEST(Diagnose, AScriptThatCannotStartIsLookedInto) {
  EndEvidence evidence = Ended(127);
  Place place;
  evidence.around = &place;
  evidence.command = {"./go"};
  evidence.exit->spawn_error = "./go: No such file or directory";
  place.source["go"] = "#!/usr/bin/python3\r\nprint(1)\r\n";
  Expect(Diagnose(evidence), "missing_file", "*CRLF", "sed -i", "");
  place.source["go"] = "#!/opt/none/python\nprint(1)\n";
  Expect(Diagnose(evidence), "missing_file", "*asks for /opt/none/python",
         "command -v /opt/none/python", "");
  evidence.exit->spawn_error = "./go: Exec format error";
  place.source["go"] = "print(1)\n";
  Expect(Diagnose(evidence), "wrong_build", "*no first line", "head -1", "");
}

TEST(Diagnose, TheSourceTellsWhetherAnExceptionWasCaught) {
  EndEvidence evidence = Ended(1);
  Place place;
  evidence.around = &place;
  evidence.code_dir = "/opt/ml/code";
  evidence.stderr_tail = TRACE("ValueError: x\n") "could not say goodbye\n";
  place.source["train.py"] = "1\n2\n3\n4\n5\n6\n7\nif 1:\n    go()\n";
  EXPECT_EQ(Diagnose(evidence).kind, "python_exception");
  place.source["train.py"] = "1\n2\n3\n4\n5\n6\ntry:\n  if 1:\n    go()\nexcept ValueError: pass\n";
  Expect(Diagnose(evidence), "nonzero_exit", "exit status 1: could not say goodbye", "ath logs",
         "");
}

TEST(Diagnose, TroubleInPassingIsNotTheReason) {
  EndEvidence evidence = Ended(5);
  evidence.stderr_tail = "Connection refused, retrying\nconnected\nepoch 1\nbudget is used up\n";
  Expect(Diagnose(evidence), "nonzero_exit", "exit status 5: budget is used up", "ath logs", "");
}

TEST(Diagnose, ACaptureIsNamed) {
  EndEvidence evidence = Ended(1);
  evidence.captured = true;
  evidence.stderr_tail = TRACE("ValueError: x\n");
  Expect(Diagnose(evidence), "python_exception", "*ValueError", "ath replay {job}", "");
  evidence.exit->code = 0;
  EXPECT_EQ(Diagnose(evidence).hint.find("replay"), std::string::npos);
}

TEST(Diagnose, KnowsPackagesOfModules) {
  EXPECT_EQ(PackageOf("cv2"), "opencv-python-headless");
  EXPECT_EQ(PackageOf("PIL.Image"), "Pillow");
  EXPECT_EQ(PackageOf("timm.models"), "timm");
  EXPECT_TRUE(Requires("-r base.txt\nopencv-python==4.9\n", "opencv-python-headless"));
  EXPECT_TRUE(Requires("pyyaml\n", "PyYAML"));
  EXPECT_FALSE(Requires("# torch\ntorchvision\n", "torch"));
}

TEST(Diagnose, TheDiskFlagIsBelievedWhenTheLogSaysNothing) {
  EndEvidence evidence = Ended(1);
  evidence.exit->disk_full = true;
  EXPECT_EQ(Diagnose(evidence).kind, "disk_full");
}

TEST(Diagnose, TheFailureFileGivesTheMessageAndTheEvidenceTheClass) {
  EndEvidence evidence = Ended(1);
  evidence.failure_file = "\nchannel 'train' has no images\nsecond line\n";
  Expect(Diagnose(evidence), "nonzero_exit", "channel 'train' has no images", "ath logs",
         "second line");
  evidence.stderr_tail = TRACE("ValueError: x\n");
  Expect(Diagnose(evidence), "python_exception", "channel 'train' has no images", "ath logs",
         "ValueError: x");
  evidence.stderr_tail = TRACE("ModuleNotFoundError: No module named 'timm'\n");
  Expect(Diagnose(evidence), "bad_import", "*timm", "echo timm", "");
  // As framework toolkits write it: a title, then a traceback.
  evidence.stderr_tail.clear();
  evidence.failure_file = "Framework Error: \n" TRACE("ValueError: no rows\n");
  Expect(Diagnose(evidence), "python_exception", "ValueError: no rows (at train.py:9)", "ath logs",
         "");
}

TEST(Diagnose, TextsCannotDriveATerminal) {
  EndEvidence evidence = Ended(1);
  evidence.stderr_tail = "\x1b]0;owned\x07 \x9b bad\n";
  const Cause cause = Diagnose(evidence);
  for (const char c : cause.text) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20) << cause.text;
}

TEST(Diagnose, PutsTheJobsNameIntoTheHint) {
  EXPECT_EQ(
      ForJob({std::string("x"), "y", "ath logs {job}\nath retry {job}", ""}, "brisk-heron").hint,
      "ath logs brisk-heron\nath retry brisk-heron");
}

}  // namespace
}  // namespace athanor
