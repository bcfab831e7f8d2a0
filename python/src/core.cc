// athanor._core: the SDK's hot path. `log` is a METH_FASTCALL function: pybind11's
// own call protocol costs several times what the record does. All of it runs under
// the GIL, allocates nothing per call, and raises nothing into user code except what
// is not an Exception (KeyboardInterrupt out of a value's __float__).
#include <pthread.h>
#include <pybind11/pybind11.h>
#include <time.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/io/crc32c.h"
#include "link/spool_writer.h"

namespace py = pybind11;
using athanor::spool::kHasStep;
using athanor::spool::kMaxNameBytes;
using athanor::spool::SpoolWriter;

namespace {

// A metric's name, by the address of its interned string, and its id in the current
// segment. Holds a reference, so an address is never reused under it.
struct Slot {
  PyObject* name = nullptr;
  uint32_t id = 0;
  uint64_t generation = 0;
};
constexpr size_t kSlots = 256;

struct Core {
  std::unique_ptr<SpoolWriter> writer;
  Slot slots[kSlots];
  PyObject* ids = nullptr;  // name -> id, for names that are not interned or share a slot
  uint64_t ids_generation = 0;
  uint64_t bad = 0;
  PyObject* step_name = nullptr;
};
Core core;  // the interpreter's lifetime; freed by the end of the process

enum class Outcome { kGood, kBad, kRaise };

// Swallows a Python error, unless it is one that no code should swallow.
Outcome Swallow() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return Outcome::kRaise;
  PyErr_Clear();
  return Outcome::kBad;
}

Outcome ToDouble(PyObject* value, double& out) {
  if (PyFloat_CheckExact(value)) {
    out = PyFloat_AS_DOUBLE(value);
    return Outcome::kGood;
  }
  if (PyLong_Check(value)) {
    out = PyLong_AsDouble(value);
    return out == -1.0 && PyErr_Occurred() != nullptr ? Swallow() : Outcome::kGood;
  }
  // float() would parse these, which hides mistakes.
  if (PyUnicode_Check(value) || PyBytes_Check(value) || PyByteArray_Check(value)) {
    return Outcome::kBad;
  }
  PyObject* number = PyNumber_Float(value);
  if (number == nullptr) return Swallow();
  out = PyFloat_AS_DOUBLE(number);
  Py_DECREF(number);
  return Outcome::kGood;
}

Outcome ToInt64(PyObject* value, int64_t& out) {
  PyObject* index = PyNumber_Index(value);
  if (index != nullptr) {
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    return overflow != 0 ? Outcome::kBad : Outcome::kGood;
  }
  if (Swallow() == Outcome::kRaise) return Outcome::kRaise;
  double number = 0;
  const Outcome outcome = ToDouble(value, number);
  if (outcome != Outcome::kGood) return outcome;
  if (!(number >= -0x1p63 && number < 0x1p63) || std::floor(number) != number) return Outcome::kBad;
  out = static_cast<int64_t>(number);
  return Outcome::kGood;
}

int64_t NowNs() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// When the point was written.
struct Moment {
  uint32_t flags = 0;
  int64_t step = 0;
  int64_t wall_ns = 0;
};

void Remember(PyObject* name, uint32_t id) {
  if (!PyUnicode_CHECK_INTERNED(name)) return;
  Slot& slot = core.slots[(reinterpret_cast<uintptr_t>(name) >> 4) % kSlots];
  Py_INCREF(name);
  Py_XDECREF(slot.name);
  slot = {name, id, core.writer->generation()};
}

// The ids of the current segment; null when out of memory.
PyObject* Ids() {
  if (core.ids == nullptr) core.ids = PyDict_New();
  if (core.ids != nullptr && core.ids_generation != core.writer->generation()) {
    PyDict_Clear(core.ids);
    core.ids_generation = core.writer->generation();
  }
  return core.ids;
}

// `name` is an exact str.
Outcome PutSlowly(PyObject* name, double value, const Moment& at) {
  SpoolWriter& writer = *core.writer;
  PyObject* ids = Ids();
  PyObject* known = ids == nullptr ? nullptr : PyDict_GetItemWithError(ids, name);
  if (known != nullptr) {
    const auto id = static_cast<uint32_t>(PyLong_AsUnsignedLong(known));
    if (writer.Append(id, at.flags, at.step, at.wall_ns, value)) {
      Remember(name, id);
      return Outcome::kGood;
    }
  }
  if (PyErr_Occurred() != nullptr) return Swallow();
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) return Swallow();  // lone surrogates
  if (size == 0 || size > Py_ssize_t{kMaxNameBytes}) return Outcome::kBad;
  const uint32_t id =
      writer.AppendNamed({text, static_cast<size_t>(size)}, at.flags, at.step, at.wall_ns, value);
  if (id == 0) return Outcome::kGood;  // dropped, and counted as such
  Remember(name, id);
  PyObject* number = PyLong_FromUnsignedLong(id);
  if (number == nullptr || (ids = Ids()) == nullptr || PyDict_SetItem(ids, name, number) != 0) {
    PyErr_Clear();  // then it is defined a second time under another id: harmless
  }
  Py_XDECREF(number);
  return Outcome::kGood;
}

Outcome Put(PyObject* name, PyObject* object, const Moment& at) {
  double value = 0;
  const Outcome outcome = ToDouble(object, value);
  if (outcome != Outcome::kGood) return outcome;
  const Slot& slot = core.slots[(reinterpret_cast<uintptr_t>(name) >> 4) % kSlots];
  if (slot.name == name && slot.generation == core.writer->generation() &&
      core.writer->Append(slot.id, at.flags, at.step, at.wall_ns, value)) {
    return Outcome::kGood;
  }
  if (PyUnicode_CheckExact(name)) return PutSlowly(name, value, at);
  if (!PyUnicode_Check(name)) return Outcome::kBad;
  PyObject* exact = PyUnicode_FromObject(name);  // a subclass may override == and hash
  if (exact == nullptr) return Swallow();
  const Outcome put = PutSlowly(exact, value, at);
  Py_DECREF(exact);
  return put;
}

bool IsStep(PyObject* name) {
  return name == core.step_name ||
         (!PyUnicode_CHECK_INTERNED(name) && PyUnicode_Compare(name, core.step_name) == 0);
}

// True: goes on. False: an error to pass on is set.
bool Count(Outcome outcome) {
  if (outcome == Outcome::kBad) ++core.bad;
  return outcome != Outcome::kRaise;
}

bool PutMapping(PyObject* mapping, const Moment& at) {
  PyObject* items = PyMapping_Check(mapping) ? PyMapping_Items(mapping) : nullptr;
  if (items == nullptr) return Count(PyErr_Occurred() != nullptr ? Swallow() : Outcome::kBad);
  bool go_on = true;
  for (Py_ssize_t i = 0; go_on && i < PyList_GET_SIZE(items); ++i) {
    PyObject* item = PyList_GET_ITEM(items, i);
    const bool pair = PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 2;
    go_on = Count(!pair ? Outcome::kBad
                        : Put(PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1), at));
  }
  Py_DECREF(items);
  return go_on;
}

PyObject* Log(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  if (core.writer == nullptr) Py_RETURN_NONE;
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  Moment at{0, 0, NowNs()};
  Py_ssize_t step_at = named;
  for (Py_ssize_t i = named - 1; i >= 0; --i) {
    if (!IsStep(PyTuple_GET_ITEM(names, i))) continue;
    step_at = i;
    if (args[nargs + i] == Py_None) break;
    const Outcome outcome = ToInt64(args[nargs + i], at.step);
    if (outcome == Outcome::kRaise) return nullptr;
    if (outcome == Outcome::kBad) {  // points at a wrong step would be worse than none
      ++core.bad;
      Py_RETURN_NONE;
    }
    at.flags = kHasStep;
    break;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (!PutMapping(args[i], at)) return nullptr;
  }
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (i == step_at) continue;
    if (!Count(Put(PyTuple_GET_ITEM(names, i), args[nargs + i], at))) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* Progress(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (core.writer == nullptr) Py_RETURN_NONE;
  int64_t done = 0;
  int64_t total = 0;
  Outcome outcome = nargs == 2 ? ToInt64(args[0], done) : Outcome::kBad;
  if (outcome == Outcome::kGood) outcome = ToInt64(args[1], total);
  if (!Count(outcome)) return nullptr;
  if (outcome == Outcome::kGood) core.writer->AppendProgress(done, total, NowNs());
  Py_RETURN_NONE;
}

// Called once a save, by athanor.checkpoint, with ints it has checked.
PyObject* Checkpoint(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (core.writer == nullptr) Py_RETURN_NONE;
  int64_t step = 0;
  int64_t save_ns = 0;
  Outcome outcome = nargs == 2 ? ToInt64(args[0], step) : Outcome::kBad;
  if (outcome == Outcome::kGood) outcome = ToInt64(args[1], save_ns);
  if (!Count(outcome)) return nullptr;
  if (outcome == Outcome::kGood) core.writer->AppendCheckpoint(step, save_ns, NowNs());
  Py_RETURN_NONE;
}

template <class Function>
PyMethodDef Method(const char* name, Function* function, int flags, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), flags, doc};
}

PyMethodDef fast_functions[] = {
    Method("log", Log, METH_FASTCALL | METH_KEYWORDS,
           "log(values=None, /, *, step=None, **metrics)\n--\n\n"
           "Record numbers, all at one step. Never raises, never waits."),
    Method("progress", Progress, METH_FASTCALL,
           "progress(done, total, /)\n--\n\nSay how far the run is."),
    Method("checkpoint", Checkpoint, METH_FASTCALL,
           "checkpoint(step, save_ns, /)\n--\n\nSay that a checkpoint is whole on disk."),
    {nullptr, nullptr, 0, nullptr}};

void AfterForkInChild() {
  if (core.writer != nullptr) core.writer->ForgetAfterFork();
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  core.step_name = PyUnicode_InternFromString("step");
  if (core.step_name == nullptr || PyModule_AddFunctions(module.ptr(), fast_functions) != 0) {
    throw py::error_already_set();
  }
  ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
  module.def(
      "open", [](std::string dir) { core.writer = std::make_unique<SpoolWriter>(std::move(dir)); },
      "Write to the spool in this directory from now on.");
  module.def("mark", [](uint32_t code) {
    if (core.writer != nullptr) core.writer->AppendMark(code, NowNs());
  });
  module.def("crc32c", [](const py::bytes& bytes) {
    return athanor::Crc32c(static_cast<std::string_view>(bytes));
  });
  module.def(
      "stats",
      [] {
        const SpoolWriter* writer = core.writer.get();
        return py::make_tuple(writer != nullptr ? writer->written() : 0,
                              writer != nullptr ? writer->dropped() : 0, core.bad);
      },
      "(records written, records dropped, bad values)");
}
