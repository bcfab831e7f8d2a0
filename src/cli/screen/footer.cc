#include "cli/screen/footer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr Millis kRedraw{100};
constexpr size_t kSparkWidth = 12;

}  // namespace

Footer::Footer(const Terminal& terminal, bool on) : terminal_(terminal), on_(on) {
  start_ = clock_.Monotonic();
}

Footer::~Footer() { Clear(); }

void Footer::On(std::string_view event, const Json& data) {
  if (!on_) return;
  if (event == "state") {
    state_ = data.value("shown_state", "");
  } else if (event == "usage") {
    has_usage_ = data.contains("memory_bytes");
    memory_ = data.value("memory_bytes", uint64_t{0});
    cpu_percent_ = data.value("cpu_percent", uint64_t{0});
    done_ = data.value("done", done_);
    total_ = data.value("total", total_);
    int64_t tenth = total_ > 0 ? done_ * 10 / total_ : 0;
    if (!terminal_.err_tty && tenth > told_tenth_) {
      told_tenth_ = tenth;
      std::fprintf(stderr, "  %ld/%ld (%ld %%)\n", static_cast<long>(done_),
                   static_cast<long>(total_), static_cast<long>(100 * done_ / total_));
    }
  } else if (event == "metrics") {
    for (const auto& row : data["metrics"]) {
      auto& metric = metrics_[row.value("name", "")];
      if (!row["last"].is_number()) continue;
      metric.last = row["last"].get<double>();
      metric.recent.push_back(metric.last);
      if (metric.recent.size() > 200) metric.recent.pop_front();
    }
  }
  Draw(event == "state");
}

void Footer::Print(std::string_view bytes, std::FILE* to) {
  if (bytes.empty()) return;
  Clear();
  std::fwrite(bytes.data(), 1, bytes.size(), to);
  std::fflush(to);
  line_open_ = bytes.back() != '\n';
  Draw(false);
}

void Footer::Clear() {
  if (drawn_ == 0) return;
  std::string out = "\r\x1b[2K";
  for (int i = 1; i < drawn_; ++i) out += "\x1b[1A\x1b[2K";
  std::fputs(out.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = 0;
}

void Footer::Draw(bool now) {
  // Not below an unfinished line: it would be torn apart.
  if (!on_ || !terminal_.err_tty || !terminal_.out_tty || line_open_) return;
  auto time = clock_.Monotonic();
  if (!now && drawn_ > 0 && time - last_draw_ < kRedraw) return;
  last_draw_ = time;
  Clear();
  auto second = SecondLine();
  std::string out = FirstLine();
  if (!second.empty()) out += "\n" + second;
  std::fputs(out.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = second.empty() ? 1 : 2;
}

std::string Footer::FirstLine() const {
  auto elapsed = clock_.Monotonic() - start_;
  std::string out = "  " +
                    Paint(terminal_, InkOf(state_), (terminal_.ascii ? "* " : "● ") + state_) +
                    "  " + HumanDuration(std::max(elapsed, Millis(1000)));
  if (total_ > 0) {
    size_t width = 24;
    size_t full = static_cast<size_t>(std::clamp<int64_t>(done_, 0, total_)) * width /
                  static_cast<size_t>(total_);
    out += fmt::format("   {}/{}  ", done_, total_);
    for (size_t i = 0; i < width; ++i) out += i < full ? (terminal_.ascii ? "=" : "━") : " ";
    out += fmt::format("  {} %", 100 * done_ / total_);
    if (done_ > 0 && done_ < total_) {
      out += "   eta " + HumanDuration(std::max(elapsed * (total_ - done_) / done_, Millis(1000)));
    }
  }
  return out;
}

std::string Footer::SecondLine() const {
  std::string out;
  int shown = 0;
  // Losses and accuracies first: that is what people look for.
  std::vector<std::pair<std::string, const Metric*>> order;
  for (const auto& [name, metric] : metrics_) order.emplace_back(name, &metric);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    auto rank = [](const std::string& name) {
      auto lower = ToLower(name);
      if (lower.find("loss") != std::string::npos) return 0;
      if (lower.find("acc") != std::string::npos) return 1;
      return 2;
    };
    return rank(a.first) < rank(b.first);
  });
  for (const auto& [name, metric] : order) {
    if (shown++ == 2) break;
    std::vector<double> recent(metric->recent.begin(), metric->recent.end());
    out += fmt::format("{}{} {:.4g} {}", out.empty() ? "    " : "  ", Printable(name), metric->last,
                       Sparkline(recent, kSparkWidth, terminal_.ascii));
  }
  if (has_usage_) {
    out += fmt::format("{}cpu {} %  mem {}", out.empty() ? "    " : "   ", cpu_percent_,
                       HumanBytes(memory_));
  }
  return out;
}

}  // namespace athanor
