// athanor._tune: a search by JSON lines, as `ath tune --stdio` speaks them, in this process.
// athanor/tune.py is what people see.
#include <pybind11/pybind11.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tune/journal_file.h"

namespace py = pybind11;

namespace {

[[noreturn]] void Raise(const athanor::Error& error) {
  auto text = error.what;
  for (const auto* more : {&error.why, &error.hint}) {
    if (!more->empty()) text += "; " + *more;
  }
  if (!error.where.empty()) text = error.where + ": " + text;
  throw py::value_error(text);
}

class Core {
 public:
  explicit Core(const std::string& journal) {
    if (!journal.empty()) {
      auto opened = athanor::tune::JournalFile::Open(journal);
      if (!opened) Raise(opened.error());
      file_ = std::move(*opened);
    }
    auto protocol = athanor::tune::ProtocolOver(file_.get());
    if (!protocol) Raise(protocol.error());
    protocol_ = std::move(*protocol);
  }

  std::string Call(const std::string& line) {
    py::gil_scoped_release release;
    return protocol_->Answer(line);
  }

 private:
  std::unique_ptr<athanor::tune::JournalFile> file_;
  std::unique_ptr<athanor::tune::StdioProtocol> protocol_;
};

}  // namespace

PYBIND11_MODULE(_tune, module) {
  py::class_<Core>(module, "Core")
      .def(py::init<const std::string&>(), py::arg("journal") = "")
      .def("call", &Core::Call,
           "The answer to one request; both JSON. Not for two threads at once.");
}
