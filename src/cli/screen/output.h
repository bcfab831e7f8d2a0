// How the CLI prints: results on stdout, messages on stderr; colour only on a terminal that
// supports it; machine output separate from human output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

struct Terminal {
  bool out_tty = false;
  bool err_tty = false;
  bool color = false;  // NO_COLOR, dumb terminals
  bool ascii = false;  // ATH_ASCII=1, or a locale without UTF-8
  size_t columns = 80;
};
Terminal DetectTerminal();

enum class Ink { kPlain, kGreen, kYellow, kRed, kBlue, kGrey, kBold };
std::string Paint(const Terminal& terminal, Ink ink, std::string_view text);
Ink InkOf(std::string_view state);

// error[ATH-S0104]: what / --> where / why: / next:   on stderr; with `json` one
// object on stdout: {"error":{...,"origin":"athanor"}}.
void PrintError(const Error& error, bool json);
std::string FormatError(const Error& error, const Terminal& terminal);
// A hint for what to type next; on stderr, off with --quiet.
void PrintHint(const std::string& text, bool quiet);

// Cuts to `width` columns, between characters, with a mark where something is missing.
std::string Shortened(const std::string& text, size_t width, bool ascii);

// Columns padded to their widest cell. On a terminal the table fits its width: the widest columns
// are shortened, and if that is not enough the last ones left out. The first column, which a person
// may type next, is shortened last unless there is an ID to type. Without a terminal nothing is
// cut.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void Add(std::vector<std::string> row, std::vector<Ink> inks = {});
  std::string Format(const Terminal& terminal) const;
  bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<Ink> inks;
  };
  std::vector<size_t> Widths(const Terminal& terminal) const;

  std::vector<std::string> head_;
  std::vector<Row> rows_;
};

std::string Counted(uint64_t count, const char* thing);  // "1 job", "2 jobs"

std::string Sparkline(const std::vector<double>& values, size_t width, bool ascii);

}  // namespace athanor
