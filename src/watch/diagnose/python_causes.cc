#include "watch/diagnose/python_causes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr size_t kFramesShown = 4;
constexpr size_t kMaxDetail = 4'096;

// Modules whose package has another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kPackages = {{
    {"Crypto", "pycryptodome"},
    {"PIL", "Pillow"},
    {"attr", "attrs"},
    {"bs4", "beautifulsoup4"},
    {"cv2", "opencv-python-headless"},
    {"dateutil", "python-dateutil"},
    {"dotenv", "python-dotenv"},
    {"git", "GitPython"},
    {"jwt", "PyJWT"},
    {"psycopg2", "psycopg2-binary"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"umap", "umap-learn"},
    {"yaml", "PyYAML"},
}};

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

// The last frames of the user's, or of anybody when there is none.
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

// What stands in quotes: "No module named 'cv2'" gives cv2.
std::string Quoted(std::string_view text, char quote = '\'') {
  const size_t begin = text.find(quote);
  if (begin == std::string_view::npos) return "";
  const size_t end = text.find(quote, begin + 1);
  if (end == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, end - begin - 1));
}

// The path of "[Errno 2] No such file or directory: 'data/train.csv'", whichever quotes repr chose.
std::string PathOf(std::string_view message) {
  const size_t colon = message.find("directory: ");
  if (colon == std::string_view::npos) return "";
  std::string_view rest = message.substr(colon + 11);
  if (StartsWith(rest, "b")) rest.remove_prefix(1);
  if (rest.empty()) return "";
  return Quoted(rest, rest[0]);
}

std::string At(const std::string& where) {
  return where.empty() ? "" : " (at " + where + ")";
}

Cause MissingModule(const std::string& module, const std::string& where,
                    const EndEvidence& evidence) {
  const std::string top = module.substr(0, module.find('.'));
  std::string package = top;
  for (const auto& [name, known] : kPackages) {
    if (top == name) package = known;
  }
  const std::string file =
      evidence.requirements.empty() ? "requirements.txt" : evidence.requirements;
  Cause cause;
  cause.kind = "bad_import";
  cause.text =
      fmt::format("the Python module {} is not installed{}", Short(module, 120), At(where));
  cause.hint = fmt::format(
      "echo {} >> {}\nath run --requirements {} -- {}\n# or, if {} is a file of "
      "yours: put it into the source folder",
      ShellQuote(Short(package, 120)), ShellQuote(file), ShellQuote(file), CommandText(evidence),
      Short(top, 120));
  return cause;
}

Cause BadImport(const PythonError& error, const std::string& where, const EndEvidence& evidence) {
  const std::string& message = error.message;
  if (StartsWith(message, "No module named ")) {
    const std::string module = Quoted(message);
    if (!module.empty()) return MissingModule(module, where, evidence);
  }
  Cause cause;
  cause.kind = "bad_import";
  constexpr std::string_view kNoLibrary = ": cannot open shared object file";
  if (const size_t at = message.find(kNoLibrary); at != std::string::npos) {
    const std::string library = Short(message.substr(0, at), 120);
    cause.text = fmt::format("the system library {} is missing{}", library, At(where));
    cause.hint = fmt::format(
        "apt-file search {}   # on the machine that runs the job: which package "
        "has it",
        ShellQuote(library));
    return cause;
  }
  cause.text = fmt::format("{}{}", ErrorText(error), At(where));
  if (message.find("circular import") != std::string::npos) {
    cause.hint =
        "two of your modules import each other: move one import into a function\nath logs "
        "{job} --tail 50";
  } else if (message.find("relative import") != std::string::npos) {
    cause.hint = "start it as a module: ath run -- python -m PACKAGE.MODULE";
  } else {
    cause.hint =
        fmt::format("put the version you have tested with into {}\nath logs {{job}} --tail 50",
                    evidence.requirements.empty() ? "requirements.txt" : evidence.requirements);
  }
  return cause;
}

Cause PlainException(const Traceback& traceback, const std::string& where,
                     const EndEvidence& evidence) {
  const PythonError& error = traceback.last();
  Cause cause;
  cause.kind = "python_exception";
  cause.text = ErrorText(error) + At(where);
  if (!traceback.members.empty()) {
    const PythonError& first = traceback.members.front();
    const std::string inner = InnermostUserFrame(first.frames, evidence.code_dir);
    cause.text = fmt::format("{}; the first: {}{}", ErrorText(error), ErrorText(first), At(inner));
  }
  const bool shared_memory = error.message.find("shared memory") != std::string::npos ||
                             error.message.find("Bus error") != std::string::npos;
  if (shared_memory) {
    cause.hint =
        "use fewer data-loader workers (num_workers=0 needs no shared memory)\ndf -h /dev/shm";
  } else if (error.type == "KeyboardInterrupt") {
    cause.hint = "ath retry {job}";
  } else {
    cause.hint = "ath logs {job} --tail 50\nath retry {job} --debug";
  }
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

std::string CommandText(const EndEvidence& evidence) {
  std::vector<std::string> words;
  for (const std::string& word : evidence.command) words.push_back(ShellQuote(Printable(word)));
  // A line for a shell is one word; typed again it needs the shell.
  if (words.size() == 1 && words[0] != evidence.command[0]) words.insert(words.begin(), {"sh", "-c"});
  std::string text = Join(words, " ");
  return text.empty() || text.size() > 300 ? "COMMAND" : text;
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
  for (const std::string_view words :
       {"Cannot allocate memory", "CUDA out of memory", "CUDA error: out of memory",
        "can't allocate memory", "std::bad_alloc", "Unable to allocate ", "HIP out of memory"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

Cause DiskFull(std::string detail) {
  return {"disk_full", "a write failed: no space is left on the disk",
          "df -h\nath rm JOB   # removes an old job with its outputs", std::move(detail)};
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
  cause.kind = "out_of_memory";
  const bool gpu = refused.find("CUDA") != std::string_view::npos ||
                   refused.find("HIP") != std::string_view::npos;
  if (gpu) {
    cause.text = "the GPU ran out of memory: " + Short(refused);
    cause.hint =
        "lower the batch size, or use gradient accumulation or mixed precision\nath types   # "
        "GPUs with more memory";
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
  Cause cause;
  cause.kind = "missing_file";
  cause.text = fmt::format("{} is not there{}", Short(path), At(where));
  if (StartsWith(path, "/")) {
    cause.hint = fmt::format("ath run -i data={} -- {}   # gives a folder to the job as a channel",
                             ShellQuote(Printable(path.substr(0, path.rfind('/') + 1))),
                             CommandText(evidence));
  } else {
    cause.hint =
        "is it in the source folder, and not in .gitignore or .athanorignore?\nath show {job}";
  }
  return cause;
}

Cause FromTraceback(const Traceback& traceback, const EndEvidence& evidence) {
  const PythonError& error = traceback.last();
  const std::string where = InnermostUserFrame(traceback.frames(), evidence.code_dir);
  const std::string_view type = std::string_view(error.type).substr(error.type.rfind('.') + 1);
  Cause cause;
  if (SaysDiskFull(error.message)) {
    cause = DiskFull("");
  } else if (type == "MemoryError" || EndsWith(type, "OutOfMemoryError") ||
             EndsWith(type, "ArrayMemoryError") || SaysNoMemory(error.message)) {
    cause = OutOfMemory(evidence, ErrorText(error) + At(where));
  } else if (type == "ModuleNotFoundError" || type == "ImportError") {
    cause = BadImport(error, where, evidence);
  } else if (type == "FileNotFoundError" && !PathOf(error.message).empty()) {
    cause = MissingFile(PathOf(error.message), where, evidence);
  } else {
    cause = PlainException(traceback, where, evidence);
  }
  cause.detail = DetailOf(traceback, evidence.code_dir);
  return cause;
}

Cause FromCrash(const std::optional<CrashStack>& stack, const EndEvidence& evidence) {
  Cause cause;
  cause.kind = "segfault";
  cause.text = "crashed: segmentation fault (signal 11)";
  if (stack && !stack->frames.empty()) {
    // faulthandler prints the innermost frame first.
    std::vector<Frame> frames(stack->frames.rbegin(), stack->frames.rend());
    cause.text += At(InnermostUserFrame(frames, evidence.code_dir));
    cause.detail = FramesText(frames, evidence.code_dir);
  }
  cause.hint = "ath logs {job} --tail 50\nath retry {job} --debug   # prints the Python stack at a crash";
  return cause;
}

}  // namespace athanor
