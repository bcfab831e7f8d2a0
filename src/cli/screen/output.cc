#include "cli/screen/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

const char* CodeOf(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kGreen:
      return "\x1b[32m";
    case Ink::kYellow:
      return "\x1b[33m";
    case Ink::kRed:
      return "\x1b[31m";
    case Ink::kBlue:
      return "\x1b[34m";
    case Ink::kGrey:
      return "\x1b[90m";
    case Ink::kBold:
      return "\x1b[1m";
  }
  return "";
}

// Narrower columns say too little to be worth their place.
constexpr size_t kNarrowest = 6;
constexpr size_t kGap = 2;

size_t Sum(const std::vector<size_t>& widths) {
  size_t sum = widths.empty() ? 0 : kGap * (widths.size() - 1);
  for (const size_t width : widths) sum += width;
  return sum;
}

void AppendLines(std::string& out, std::string_view label, std::string_view text) {
  bool first = true;
  for (const auto& line : Split(text, '\n')) {
    out += first ? "  " + std::string(label) : std::string(2 + label.size(), ' ');
    out += line + "\n";
    first = false;
  }
}

}  // namespace

Terminal DetectTerminal() {
  Terminal terminal;
  terminal.out_tty = ::isatty(STDOUT_FILENO);
  terminal.err_tty = ::isatty(STDERR_FILENO);
  auto term = Variable("TERM");
  terminal.color = terminal.out_tty && Variable("NO_COLOR").empty() && term != "dumb";
  auto locale = Variable("LC_ALL") + Variable("LC_CTYPE") + Variable("LANG");
  auto lower = ToLower(locale);
  bool utf8 = lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  terminal.ascii = Variable("ATH_ASCII") == "1" || term == "dumb" || (terminal.out_tty && !utf8);
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  } else if (auto columns = std::atoi(Variable("COLUMNS").c_str()); columns > 20) {
    terminal.columns = static_cast<size_t>(columns);
  }
  return terminal;
}

std::string Paint(const Terminal& terminal, Ink ink, std::string_view text) {
  if (!terminal.color || ink == Ink::kPlain) return std::string(text);
  return CodeOf(ink) + std::string(text) + "\x1b[0m";
}

Ink InkOf(std::string_view state) {
  if (state == "Completed" || state == "FINISHED") return Ink::kGreen;
  if (state == "Failed") return Ink::kRed;
  if (state == "Running" || state == "Uploading") return Ink::kBlue;
  if (state == "Stopped") return Ink::kGrey;
  return Ink::kYellow;
}

std::string FormatError(const Error& error, const Terminal& terminal) {
  std::string head = error.id.empty() ? "error" : "error[" + error.id + "]";
  std::string out = Paint(terminal, Ink::kRed, head) + ": " + error.what + "\n";
  if (!error.where.empty()) out += "  --> " + error.where + "\n";
  if (!error.why.empty()) AppendLines(out, "why:  ", error.why);
  if (!error.hint.empty()) AppendLines(out, "next: ", error.hint);
  return out;
}

void PrintError(const Error& error, bool json) {
  if (json) {
    Json body = {{"code", std::string(RowOf(error.code).name)}, {"what", error.what}};
    if (!error.why.empty()) body["why"] = error.why;
    if (!error.hint.empty()) body["hint"] = error.hint;
    if (!error.id.empty()) body["id"] = error.id;
    if (!error.where.empty()) body["where"] = error.where;
    body["origin"] = "athanor";
    body["exit"] = RowOf(error.code).exit_status;
    std::printf("%s\n", DumpJson(Json{{"error", body}}).c_str());
    return;
  }
  auto terminal = DetectTerminal();
  terminal.color = terminal.color && terminal.err_tty;
  std::fputs(FormatError(error, terminal).c_str(), stderr);
}

void PrintHint(const std::string& text, bool quiet) {
  if (quiet) return;
  // What joins commands must not look like a pipe where the dot cannot be shown.
  const auto shown = DetectTerminal().ascii ? ReplaceAll(text, " · ", "\n  ") : text;
  std::fprintf(stderr, "  %s\n", shown.c_str());
}

void Table::Add(std::vector<std::string> row, std::vector<Ink> inks) {
  rows_.push_back({std::move(row), std::move(inks)});
}

std::string Shortened(const std::string& text, size_t width, bool ascii) {
  if (DisplayWidth(text) <= width || width == 0) return text;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t next = i + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    std::string grown = out + text.substr(i, next - i);
    if (DisplayWidth(grown) > width - 1) break;
    out = std::move(grown);
    i = next;
  }
  return out + (ascii ? "~" : "…");
}

// As wide as the cells want, or as the terminal allows; fewer than the columns when some do not
// fit.
std::vector<size_t> Table::Widths(const Terminal& terminal) const {
  std::vector<size_t> widths;
  for (const auto& cell : head_) widths.push_back(DisplayWidth(cell));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.cells.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
    }
  }
  if (!terminal.out_tty) return widths;
  const bool has_id = std::ranges::find(head_, "ID") != head_.end();
  for (const bool kept_too : {false, true}) {
    for (size_t over = Sum(widths); over > terminal.columns; --over) {
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        if (widths[i] <= kNarrowest || (!kept_too && i == 0 && !has_id)) continue;
        if (widest == widths.size() || widths[i] >= widths[widest]) widest = i;
      }
      if (widest == widths.size()) break;
      --widths[widest];
    }
  }
  // A last narrow column says that there are more.
  if (Sum(widths) > terminal.columns) {
    while (widths.size() > 1 && Sum(widths) + kGap + 1 > terminal.columns) widths.pop_back();
  }
  return widths;
}

std::string Table::Format(const Terminal& terminal) const {
  const auto widths = Widths(terminal);
  const bool fewer = widths.size() < head_.size();
  std::string out;
  auto line = [&](const std::vector<std::string>& cells, const std::vector<Ink>& inks, bool head) {
    std::string text;
    for (size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const bool last = i + 1 == cells.size();
      const std::string cell =
          terminal.out_tty ? Shortened(cells[i], widths[i], terminal.ascii) : cells[i];
      const size_t width = DisplayWidth(cell);
      Ink ink = head ? Ink::kGrey : (i < inks.size() ? inks[i] : Ink::kPlain);
      text += Paint(terminal, ink, cell);
      if (!last) text += std::string(widths[i] - std::min(width, widths[i]) + kGap, ' ');
    }
    if (fewer && cells.size() > widths.size()) text += terminal.ascii ? "~" : "…";
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  line(head_, {}, true);
  for (const auto& row : rows_) line(row.cells, row.inks, false);
  return out;
}

std::string Counted(uint64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string Sparkline(const std::vector<double>& values, size_t width, bool ascii) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char kAscii[] = "_.-=+*#@";
  if (values.empty() || width == 0) return "";
  double low = INFINITY;
  double high = -INFINITY;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  std::string out;
  size_t count = std::min(width, values.size());
  for (size_t i = 0; i < count; ++i) {
    double v = values[values.size() * (i + 1) / count - 1];
    if (!std::isfinite(v)) {
      out += ascii ? "!" : "×";
      continue;
    }
    double share = high > low ? (v - low) / (high - low) : 0.5;
    size_t level = std::min<size_t>(7, static_cast<size_t>(share * 8));
    out += ascii ? std::string(1, kAscii[level]) : std::string(kBars[level]);
  }
  return out;
}

}  // namespace athanor
