#include "watch/diagnose/modules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/python_causes.h"
#include "watch/diagnose/surroundings.h"

namespace athanor {
namespace {

constexpr std::string_view kRequirements = "requirements.txt";

// Modules whose package has another name. Sorted by module.
constexpr std::pair<std::string_view, std::string_view> kPackages[] = {
    {"Bio", "biopython"},
    {"Crypto", "pycryptodome"},
    {"IPython", "ipython"},
    {"MySQLdb", "mysqlclient"},
    {"OpenSSL", "pyOpenSSL"},
    {"PIL", "Pillow"},
    {"absl", "absl-py"},
    {"attr", "attrs"},
    {"bs4", "beautifulsoup4"},
    {"community", "python-louvain"},
    {"cv2", "opencv-python-headless"},
    {"dateutil", "python-dateutil"},
    {"decouple", "python-decouple"},
    {"docx", "python-docx"},
    {"dotenv", "python-dotenv"},
    {"environ", "django-environ"},
    {"faiss", "faiss-cpu"},
    {"ffmpeg", "ffmpeg-python"},
    {"fitz", "PyMuPDF"},
    {"flash_attn", "flash-attn"},
    {"git", "GitPython"},
    {"google.protobuf", "protobuf"},
    {"hydra", "hydra-core"},
    {"imblearn", "imbalanced-learn"},
    {"jose", "python-jose"},
    {"jwt", "PyJWT"},
    {"kafka", "kafka-python"},
    {"levenshtein", "python-Levenshtein"},
    {"lightning_fabric", "lightning"},
    {"magic", "python-magic"},
    {"mpl_toolkits", "matplotlib"},
    {"nvidia_smi", "nvidia-ml-py"},
    {"pkg_resources", "setuptools"},
    {"pl_bolts", "lightning-bolts"},
    {"psycopg2", "psycopg2-binary"},
    {"pylab", "matplotlib"},
    {"pynvml", "nvidia-ml-py"},
    {"pytorch_lightning", "pytorch-lightning"},
    {"ruamel", "ruamel.yaml"},
    {"sentence_transformers", "sentence-transformers"},
    {"serial", "pyserial"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"skopt", "scikit-optimize"},
    {"slugify", "python-slugify"},
    {"snappy", "python-snappy"},
    {"socks", "PySocks"},
    {"tensorflow_datasets", "tensorflow-datasets"},
    {"torch_geometric", "torch-geometric"},
    {"torch_scatter", "torch-scatter"},
    {"umap", "umap-learn"},
    {"usb", "pyusb"},
    {"websocket", "websocket-client"},
    {"win32api", "pywin32"},
    {"xdist", "pytest-xdist"},
    {"yaml", "PyYAML"},
    {"zmq", "pyzmq"},
};

// As pip compares names: case, '-', '_' and '.' do not count.
std::string NormalName(std::string_view name) {
  std::string normal = ToLower(name);
  std::replace_if(
      normal.begin(), normal.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return normal;
}

// What one of several packages with this module may be called.
bool SamePackage(std::string_view asked, std::string_view package) {
  const std::string a = NormalName(asked);
  const std::string b = NormalName(package);
  if (a == b) return true;
  const auto opencv = [](const std::string& name) { return StartsWith(name, "opencv-"); };
  const auto plain = [](const std::string& name) {
    return EndsWith(name, "-binary")                          ? name.substr(0, name.size() - 7)
           : EndsWith(name, "-cpu") || EndsWith(name, "-gpu") ? name.substr(0, name.size() - 4)
                                                              : name;
  };
  return (opencv(a) && opencv(b)) || plain(a) == plain(b);
}

// The file that lists the package, of the usual ones; empty: none does.
std::string FileThatRequires(const std::string& package, const EndEvidence& evidence) {
  if (evidence.around == nullptr) return "";
  std::vector<std::string> files = {std::string(kRequirements), "requirements/base.txt",
                                    "requirements/train.txt",   "requirements-dev.txt",
                                    "requirements_dev.txt",     "requirements/requirements.txt"};
  if (!evidence.environment.requirements.empty()) {
    files.insert(files.begin(), evidence.environment.requirements);
  }
  for (const std::string& file : files) {
    if (Requires(evidence.around->SourceText(file), package)) return file;
  }
  return "";
}

// The command names its own interpreter, so the job's environment is not used.
std::string OwnInterpreter(const EndEvidence& evidence) {
  if (evidence.command.empty()) return "";
  std::string_view line = evidence.command.front();
  const std::string program(line.substr(0, line.find(' ')));
  const bool python = program.find("/python") != std::string::npos;
  return python ? program : "";
}

std::string SystemHint(const std::string& system) {
  return fmt::format(
      "ath retry {{job}} --base system   # {} has it; in a job file: environment: "
      "{{base: system}}",
      system);
}

}  // namespace

std::string PackageOf(std::string_view module) {
  const std::string_view top = module.substr(0, module.find('.'));
  for (const auto& [name, package] : kPackages) {
    if (name == module || name == top) return std::string(package);
  }
  return std::string(top);
}

bool Requires(std::string_view requirements, std::string_view package) {
  for (const std::string& raw : Split(requirements, '\n')) {
    std::string_view line = Trim(std::string_view(raw).substr(0, raw.find('#')));
    if (line.empty() || line[0] == '-') continue;
    if (SamePackage(Trim(line.substr(0, line.find_first_of("<>=!~;[@ \t"))), package)) return true;
  }
  return false;
}

Cause MissingModule(const std::string& module, const std::string& where,
                    const EndEvidence& evidence) {
  const std::string top = module.substr(0, module.find('.'));
  const std::string package = Short(PackageOf(module), 120);
  const std::string& used = evidence.environment.requirements;
  const std::string listed = FileThatRequires(package, evidence);
  const std::string own = OwnInterpreter(evidence);
  const std::string system =
      evidence.around == nullptr ? "" : evidence.around->SystemPythonWith(module);
  Cause cause;
  cause.kind = NameOf(CauseKind::kBadImport);
  cause.text = fmt::format("the Python module {} is not installed{}", Short(module, 120), where);
  const auto in_folder = [&](const std::string& path) {
    return evidence.around != nullptr && evidence.around->InFolder(path);
  };
  const auto in_source = [&](const std::string& path) {
    return evidence.around != nullptr && evidence.around->InSource(path);
  };
  for (const std::string& file : {top + ".py", top + "/__init__.py"}) {
    if (!in_folder(file) || in_source(file)) continue;
    cause.text += fmt::format("; {} is in your folder, but not in the copy that the job runs in",
                              Short(file, 120));
    cause.hint =
        fmt::format("echo {} >> .athanorignore   # takes it along\nath retry {{job}} --current",
                    ShellQuote("!/" + Printable(file)));
    return cause;
  }
  for (const std::string_view dir : {"src", "lib", "python", "code"}) {
    const std::string base = std::string(dir) + "/" + top;
    if (!in_source(base + ".py") && !in_source(base + "/__init__.py")) continue;
    cause.text += fmt::format("; it is in {}/, where Python does not look", dir);
    cause.hint = fmt::format("ath retry {{job}} -e PYTHONPATH={}", dir);
    return cause;
  }
  if (!listed.empty() && listed == used) {
    cause.text += own.empty()
                      ? fmt::format("; {} lists {}, but that does not bring this module here",
                                    Short(listed, 120), package)
                      : fmt::format(
                            "; {} lists {}, but the command runs {} instead of the job's "
                            "environment",
                            Short(listed, 120), package, Short(own, 120));
    cause.hint = own.empty() ? "ath logs {job} --phase setup   # what was installed\n"
                             : "write python in place of " + Short(own, 120) + " in the command\n";
    cause.hint += system.empty() ? "ath show {job}" : SystemHint(system);
    return cause;
  }
  if (!listed.empty()) {
    cause.text += used.empty()
                      ? fmt::format("; {} lists {}, but the job does not install that file",
                                    Short(listed, 120), package)
                      : fmt::format("; {} lists {}, but the job installs {}", Short(listed, 120),
                                    package, Short(used, 120));
    if (!system.empty()) cause.hint = SystemHint(system) + "\n";
    cause.hint += fmt::format("ath retry {{job}} --requirements {}", ShellQuote(Printable(listed)));
    return cause;
  }
  if (!system.empty()) cause.hint = SystemHint(system) + "\n";
  const std::string file = used.empty() ? std::string(kRequirements) : Printable(used);
  cause.hint += fmt::format(
      "echo {} >> {}   # run in the source folder\n"
      "ath retry {{job}} --current --requirements {}\n"
      "or, if {} is a file of yours, put it into the source folder",
      ShellQuote(package), ShellQuote(file), ShellQuote(file), Short(top, 120));
  return cause;
}

}  // namespace athanor
