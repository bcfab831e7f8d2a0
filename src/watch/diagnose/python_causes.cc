#include "watch/diagnose/python_causes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/modules.h"
#include "watch/diagnose/signs.h"
#include "watch/diagnose/surroundings.h"

namespace athanor {
namespace {

constexpr size_t kFramesShown = 4;
constexpr size_t kMaxDetail = 4'096;
constexpr std::string_view kCorrected =
    "ath retry {job} --current   # runs it again with the files as they are now";

std::string ShownPath(const std::string& file, const std::string& code_dir) {
  for (const std::string& dir : {code_dir, std::string("/opt/ml/code")}) {
    if (!dir.empty() && StartsWith(file, dir + "/")) return file.substr(dir.size() + 1);
  }
  return file;
}

std::string FrameText(const Frame& frame, const std::string& code_dir) {
  std::string text = fmt::format("{}:{}", ShownPath(frame.file, code_dir), frame.line);
  if (!frame.function.empty() && frame.function != "<module>") text += " in " + frame.function;
  return Short(text);
}

// The last frames in the user's code, or in any code if there are none.
std::string FramesText(const std::vector<Frame>& frames, const std::string& code_dir) {
  std::vector<const Frame*> shown;
  for (const Frame& frame : frames) {
    if (frame.user) shown.push_back(&frame);
  }
  if (shown.empty()) {
    for (const Frame& frame : frames) shown.push_back(&frame);
  }
  if (shown.size() > kFramesShown) shown.erase(shown.begin(), shown.end() - kFramesShown);
  std::string text;
  for (const Frame* frame : shown) {
    text += "  " + FrameText(*frame, code_dir) + "\n";
    if (!frame->code.empty()) text += "    " + Short(frame->code, 160) + "\n";
  }
  return text;
}

std::string ErrorText(const PythonError& error) {
  if (error.message.empty()) return Short(error.type);
  return fmt::format("{}: {}", Short(error.type, 120), Short(error.message));
}

std::string DetailOf(const Traceback& traceback, const std::string& code_dir) {
  std::string detail;
  const auto add = [&](const PythonError& error) {
    if (detail.size() > kMaxDetail) return;
    detail += FramesText(error.frames, code_dir) + ErrorText(error) + "\n";
  };
  const size_t first = traceback.chain.size() > 3 ? traceback.chain.size() - 3 : 0;
  for (size_t i = first; i < traceback.chain.size(); ++i) add(traceback.chain[i]);
  for (const PythonError& member : traceback.members) add(member);
  return detail;
}

// The text in quotes: "No module named 'cv2'" gives cv2.
std::string Quoted(std::string_view text, char quote = '\'') {
  const size_t begin = text.find(quote);
  if (begin == std::string_view::npos) return "";
  const size_t end = text.find(quote, begin + 1);
  if (end == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, end - begin - 1));
}

// The text in quotes after `words`, whichever quotes repr chose.
std::string PathAfter(std::string_view message, std::string_view words) {
  const size_t colon = message.find(words);
  if (colon == std::string_view::npos) return "";
  std::string_view rest = message.substr(colon + words.size());
  if (StartsWith(rest, "b")) rest.remove_prefix(1);
  if (rest.empty() || (rest[0] != '\'' && rest[0] != '"')) return "";
  return Quoted(rest, rest[0]);
}

// The path of "[Errno 2] No such file or directory: 'data/train.csv'".
std::string PathOf(std::string_view message) { return PathAfter(message, "irectory: "); }

std::string At(const std::string& where) { return where.empty() ? "" : " (at " + where + ")"; }

Cause BadImport(const PythonError& error, const std::string& where, const EndEvidence& evidence) {
  const std::string& message = error.message;
  if (StartsWith(message, "No module named ")) {
    const std::string module = Quoted(message);
    if (!module.empty()) return MissingModule(module, At(where), evidence);
  }
  constexpr std::string_view kNoLibrary = ": cannot open shared object file";
  if (const size_t at = message.find(kNoLibrary); at != std::string::npos) {
    return MissingLibrary(message.substr(0, at), where);
  }
  const std::string words = ErrorText(error) + At(where);
  Cause cause;
  cause.kind = NameOf(CauseKind::kBadImport);
  cause.text = words;
  if (message.find("circular import") != std::string::npos) {
    cause.hint = "two of your modules import each other: move one import into a function\n";
  } else if (message.find("relative import") != std::string::npos) {
    cause.hint =
        "start it as a module: python -m PACKAGE.MODULE, from the folder above the package\n";
  } else if (const auto sign = SignOfError("ImportError", message + "\n" + error.rest)) {
    return FromSign(*sign, words, evidence);
  } else if (StartsWith(message, "cannot import name")) {
    cause.hint =
        "another version of the package has this name: put the one you have tested with into the "
        "requirements file\nor a file of yours has the name of the package and hides it\n";
  }
  cause.hint += "ath logs {job} --tail 50\n";
  cause.hint += kCorrected;
  return cause;
}

// os.environ["NAME"], whose KeyError says nothing but the name.
bool IsEnvironmentKey(const PythonError& error) {
  if (error.type != "KeyError" || error.frames.empty()) return false;
  const Frame& frame = error.frames.back();
  const bool os = frame.file == "<frozen os>" || EndsWith(frame.file, "/os.py");
  return (os && frame.function == "__getitem__") ||
         (frame.user && frame.code.find("environ[") != std::string::npos);
}

std::string_view LastPart(std::string_view type) { return type.substr(type.rfind('.') + 1); }

// The kind of one error if its type or message shows it; none: an ordinary exception.
std::optional<Cause> Specific(const PythonError& error, const std::string& where,
                              const EndEvidence& evidence) {
  const std::string_view type = LastPart(error.type);
  const std::string words = ErrorText(error) + At(where);
  const std::string all = error.message + "\n" + error.rest;
  const bool shm =
      all.find("/dev/shm") != std::string::npos || all.find("shared memory") != std::string::npos;
  if (SaysDiskFull(all) && !shm) return DiskFull("");
  if (type == "MemoryError" || EndsWith(type, "OutOfMemoryError") ||
      EndsWith(type, "ArrayMemoryError") || (SaysNoMemory(all) && !shm)) {
    return OutOfMemory(evidence, words);
  }
  if (type == "ModuleNotFoundError" || type == "ImportError")
    return BadImport(error, where, evidence);
  if (const size_t at = all.find(": cannot open shared object file");
      at != std::string::npos && type == "OSError") {
    return MissingLibrary(std::string_view(all).substr(0, at), where);
  }
  if (IsEnvironmentKey(error)) return MissingVariable(Short(Quoted(error.message), 100), where);
  if (const std::string name = MissingVariableIn(all); !name.empty()) {
    Cause cause = MissingVariable(name, where);
    cause.text = words;
    return cause;
  }
  if (type == "FileNotFoundError" || type == "NotADirectoryError") {
    const std::string path = PathOf(error.message);
    const bool program =
        !error.frames.empty() && EndsWith(error.frames.back().file, "/subprocess.py");
    if (program && !path.empty()) return MissingProgram(path, At(where));
    if (!path.empty()) return MissingFile(path, where, evidence);
    Cause cause = MissingFile("", where, evidence);
    cause.text = words;
    return cause;
  }
  if (type == "PermissionError" || all.find("Read-only file system") != std::string::npos) {
    return PermissionDenied(words, PathAfter(error.message, ": "));
  }
  if (const auto sign = SignOfError(type, all)) return FromSign(*sign, words, evidence);
  return std::nullopt;
}

// The error of the chain that shows the kind, if the last one does not: what was raised "from" it,
// or by a `raise` in its handler. A failure of the handler itself is something else.
const PythonError* Origin(const Traceback& traceback, size_t at) {
  const PythonError& error = traceback.chain[at];
  if (at == 0 || error.link == PythonError::Link::kNone) return nullptr;
  if (error.link == PythonError::Link::kDuringHandling &&
      (error.frames.empty() || !StartsWith(error.frames.back().code, "raise "))) {
    return nullptr;
  }
  return &traceback.chain[at - 1];
}

Cause PlainException(const PythonError& error, const std::string& where) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kPythonException);
  cause.text = ErrorText(error) + At(where);
  cause.hint = error.type == "KeyboardInterrupt"
                   ? "ath retry {job}"
                   : "ath logs {job} --tail 50\nath retry {job} --debug";
  return cause;
}

}  // namespace

std::string Short(std::string_view text, size_t max) {
  if (text.size() > max) {
    size_t end = max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return Printable(text.substr(0, end)) + "…";
  }
  return Printable(text);
}

std::string InnermostUserFrame(const std::vector<Frame>& frames, const std::string& code_dir) {
  const auto innermost =
      std::find_if(frames.rbegin(), frames.rend(), [](const Frame& frame) { return frame.user; });
  return innermost == frames.rend() ? "" : FrameText(*innermost, code_dir);
}

bool SaysDiskFull(std::string_view text) {
  return text.find("No space left on device") != std::string_view::npos ||
         text.find("Disk quota exceeded") != std::string_view::npos;
}

bool SaysNoMemory(std::string_view text) {
  if (text.find("static TLS block") != std::string_view::npos) return false;
  for (const std::string_view words :
       {"Cannot allocate memory", "CUDA out of memory", "CUDA error: out of memory",
        "can't allocate memory", "std::bad_alloc", "Unable to allocate ", "HIP out of memory",
        "not enough memory", "OOM when allocating", "RESOURCE_EXHAUSTED: Out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED", "CUDA_ERROR_OUT_OF_MEMORY", "java.lang.OutOfMemoryError",
        "MPS backend out of memory", "memory allocation of ", "JavaScript heap out of memory",
        "virtual memory exhausted", "memory exhausted"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

Cause DiskFull(std::string detail) {
  return {"disk_full", "a write failed: no space is left on the disk",
          "df -h\nath ps -a   # old jobs; ath rm removes one with its outputs", std::move(detail)};
}

Cause OutOfMemory(const EndEvidence& evidence, std::string_view refused) {
  const uint64_t peak = evidence.exit ? evidence.exit->memory_peak : 0;
  const uint64_t limit = evidence.exit ? evidence.exit->memory_limit : 0;
  std::string amounts;
  if (peak > 0 && limit > 0) {
    amounts = fmt::format(" (peak {}, limit {})", HumanBytes(peak), HumanBytes(limit));
  } else if (peak > 0) {
    amounts = fmt::format(" (peak {}, no limit of its own)", HumanBytes(peak));
  } else if (limit > 0) {
    amounts = fmt::format(" (limit {})", HumanBytes(limit));
  }
  Cause cause;
  cause.kind = NameOf(CauseKind::kOutOfMemory);
  const bool gpu = refused.find("CUDA") != std::string_view::npos ||
                   refused.find("HIP") != std::string_view::npos ||
                   refused.find("CUBLAS") != std::string_view::npos ||
                   refused.find("MPS backend") != std::string_view::npos;
  if (gpu) {
    cause.text = "the GPU ran out of memory: " + Short(refused);
    cause.hint =
        "lower the batch size, or use gradient accumulation or mixed precision\nath types   # "
        "machines whose GPU has more memory";
    return cause;
  }
  cause.text = refused.empty() ? "killed: out of memory" + amounts
                               : "an allocation was refused: " + Short(refused) + amounts;
  if (limit > 0) {
    constexpr uint64_t kGib = 1ull << 30;
    const uint64_t gib = std::min<uint64_t>(limit, 1ull << 50) * 2 / kGib;
    cause.hint = fmt::format("ath retry {{job}} --memory {}GiB\n", std::max<uint64_t>(gib, 1));
  } else {
    cause.hint = "ath ps   # what else held memory\n";
  }
  cause.hint += "or lower the batch size or the number of data-loader workers";
  return cause;
}

Cause MissingFile(std::string_view path, const std::string& where, const EndEvidence& evidence) {
  const std::string name(path);
  const std::string shown = Short(path);
  Cause cause;
  cause.kind = NameOf(CauseKind::kMissingFile);
  cause.text = fmt::format("{} is not there{}", path.empty() ? "a file" : shown, At(where));
  // Where the code lies elsewhere, so does all the rest of it.
  if ((path == "/opt/ml" || StartsWith(path, "/opt/ml/")) && !evidence.code_dir.empty() &&
      !StartsWith(evidence.code_dir, "/opt/ml/")) {
    cause.hint =
        "jobs have no /opt/ml on this machine: take the path from an SM_* variable, such as "
        "SM_MODEL_DIR or SM_CHANNEL_TRAIN\nath check   # what this machine does not allow";
    return cause;
  }
  constexpr std::string_view kChannels = "/opt/ml/input/data/";
  if (StartsWith(path, kChannels)) {
    const std::string_view rest = path.substr(kChannels.size());
    const std::string channel = Short(rest.substr(0, rest.find('/')), 60);
    cause.hint = fmt::format(
        "ath show {{job}}   # the data channels of the job\n"
        "give it the folder as a channel: -i {}=FOLDER, or data: in the job file",
        channel);
    return cause;
  }
  if (StartsWith(path, "/")) {
    // The nearest existing folder above it.
    std::string above = name;
    do {
      above = above.substr(0, std::max<size_t>(above.rfind('/'), 1));
    } while (above.size() > 1 && evidence.around != nullptr && !evidence.around->OnMachine(above));
    cause.hint = fmt::format(
        "ls -l {}   # what is there\ncorrect the path, or give the folder to the "
        "job as a data channel: -i NAME=FOLDER\nath show {{job}}",
        ShellQuote(Printable(above)));
    return cause;
  }
  std::string inside = Printable(path);
  while (StartsWith(inside, "./")) inside = inside.substr(2);
  if (evidence.around != nullptr && !inside.empty() && evidence.around->InFolder(inside) &&
      !evidence.around->InSource(inside)) {
    cause.text = fmt::format("{} is in your folder, but not in the copy that the job runs in{}",
                             shown, At(where));
    cause.hint = fmt::format(
        "echo {} >> .athanorignore   # takes it along\n"
        "ath retry {{job}} --current\n"
        "or, for data, give the folder as a channel: -i NAME=FOLDER",
        ShellQuote("!/" + inside));
    return cause;
  }
  cause.hint =
      "is it in the source folder, and not in .gitignore or .athanorignore?\nath show {job}   # "
      "where "
      "the source came from";
  return cause;
}

Cause MissingProgram(std::string_view program, const std::string& where) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kMissingFile);
  cause.text = fmt::format("the program {} is not there{}", Short(program, 120), where);
  cause.hint = fmt::format(
      "command -v {}   # is it installed where the job runs, and spelled so?\n"
      "ath retry {{job}}   # when it is installed",
      ShellQuote(Short(program, 120)));
  return cause;
}

Cause MissingVariable(const std::string& name, const std::string& where) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kMissingVariable);
  cause.text = fmt::format("the environment variable {} is not set{}", name, At(where));
  const std::string word = ShellQuote(name);
  const bool secret = std::ranges::any_of(
      std::array<std::string_view, 6>{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"},
      [&](std::string_view part) { return name.find(part) != std::string::npos; });
  const std::string plain = fmt::format(
      "ath retry {{job}} -e {}=VALUE   # a job gets only some of your shell's variables", word);
  const std::string hidden = fmt::format(
      "ath secret set {}   # asks for the value\nath retry {{job}} -s {}   # masked in the log",
      word, word);
  cause.hint = secret ? hidden : plain + "\nfor a secret: -s " + word + " instead of -e";
  return cause;
}

Cause MissingLibrary(std::string_view library, const std::string& where) {
  const size_t space = library.rfind(' ');
  const std::string name =
      Short(space == std::string_view::npos ? library : library.substr(space + 1), 120);
  Cause cause;
  cause.kind = NameOf(CauseKind::kBadImport);
  cause.text = fmt::format("the system library {} is missing{}", name, At(where));
  cause.hint = fmt::format(
      "apt-file search {}   # on the machine that runs the job: which package has it\nath retry "
      "{{job}}   "
      "# when it is installed",
      ShellQuote(name));
  if (StartsWith(name, "libGL.") || StartsWith(name, "libgthread")) {
    cause.hint = "opencv-python-headless in place of opencv-python needs no display libraries\n" +
                 cause.hint;
  }
  return cause;
}

Cause PermissionDenied(const std::string& words, std::string_view path) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kPermissionDenied);
  cause.text = words;
  if (!path.empty())
    cause.hint = fmt::format("ls -ld {}   # who may do what\n", ShellQuote(Short(path)));
  cause.hint +=
      "write to the folders the job has for it: $SM_MODEL_DIR, $SM_OUTPUT_DATA_DIR, $TMPDIR\n"
      "ath logs {job} --tail 50";
  return cause;
}

Cause FromSign(const SignFound& sign, const std::string& words, const EndEvidence& evidence) {
  Cause cause;
  cause.kind = NameOf(sign.kind);
  cause.text = sign.what.empty() ? words : sign.what + ": " + words;
  cause.hint = sign.hint;
  if (cause.hint == "{file}") {
    cause.hint = "correct the file\n" + std::string(kCorrected);
  } else if (cause.hint == "{gpu}") {
    const bool here = evidence.around != nullptr && (evidence.around->OnMachine("/dev/nvidiactl") ||
                                                     evidence.around->OnMachine("/dev/kfd"));
    cause.hint = evidence.gpus > 0
                     ? "nvidia-smi   # the GPUs and the driver\nath logs {job} --tail 50"
                 : here ? "ath retry {job} --gpus 1   # a job sees only the GPUs it asks for"
                        : "this machine has no GPU: let the script use the CPU when "
                          "torch.cuda.is_available() is False\nath types   # machines with a GPU";
  }
  return cause;
}

Cause FromTraceback(const Traceback& traceback, const EndEvidence& evidence) {
  const PythonError& last = traceback.last();
  const std::string where = InnermostUserFrame(traceback.frames(), evidence.code_dir);
  std::optional<Cause> cause;
  if (!traceback.members.empty()) {
    const PythonError& first = traceback.members.front();
    const std::string inner = InnermostUserFrame(first.frames, evidence.code_dir);
    cause = Specific(first, inner, evidence);
    if (!cause) cause = PlainException(first, inner);
    cause->text = fmt::format("{}; the first: {}", ErrorText(last), cause->text);
  } else {
    cause = Specific(last, where, evidence);
    for (size_t i = traceback.chain.size() - 1; !cause; --i) {
      const PythonError* origin = Origin(traceback, i);
      if (origin == nullptr) break;
      const std::string inner = InnermostUserFrame(origin->frames, evidence.code_dir);
      cause = Specific(*origin, inner, evidence);
      if (cause)
        cause->text = fmt::format("{}{}; caused by: {}", ErrorText(last), At(where), cause->text);
    }
    if (!cause) cause = PlainException(last, where);
  }
  cause->detail = DetailOf(traceback, evidence.code_dir);
  return std::move(*cause);
}

Cause FromCrash(const std::optional<CrashStack>& stack, const EndEvidence& evidence) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kSegfault);
  cause.text = "crashed: segmentation fault (signal 11)";
  if (stack && !stack->frames.empty()) {
    // faulthandler prints the innermost frame first.
    std::vector<Frame> frames(stack->frames.rbegin(), stack->frames.rend());
    cause.text += At(InnermostUserFrame(frames, evidence.code_dir));
    cause.detail = FramesText(frames, evidence.code_dir);
  }
  cause.hint =
      "ath logs {job} --tail 50\nath retry {job} --debug   # prints the Python stack at a crash";
  return cause;
}

}  // namespace athanor
