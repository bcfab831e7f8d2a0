// JsonWriter appends JSON text to a string, for documents that are large and of a known shape:
// lists of runs, histories. No tree is built. The output is the same as that of DumpJson: NaN and
// infinities as the strings "NaN", "Infinity", "-Infinity", invalid UTF-8 replaced.
//
// Begin and End calls must match, and every value in an object must follow a Key. The caller is
// responsible for that; it is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace athanor {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view name);
  void Text(std::string_view text);
  void Int(int64_t value);
  void Double(double value);
  void Bool(bool value);
  void Raw(std::string_view json);  // a complete value, copied as it is

  void Text(std::string_view name, std::string_view text) {
    Key(name);
    Text(text);
  }
  void Int(std::string_view name, int64_t value) {
    Key(name);
    Int(value);
  }
  void Double(std::string_view name, double value) {
    Key(name);
    Double(value);
  }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Next();  // the comma before a value, if needed

  std::string& out_;
  bool due_ = false;
};

// `text` in quotes, as JsonWriter writes it.
void AppendJsonText(std::string& out, std::string_view text);

}  // namespace athanor
