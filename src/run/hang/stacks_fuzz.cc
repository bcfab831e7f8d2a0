#include <cstdint>
#include <cstdlib>
#include <string>

#include "run/hang/stacks.h"
#include "watch/diagnose/traceback.h"

// Stacks files are written by the script's own process, so they may hold anything.
// The input is cut at zero bytes into what ranks 0, 1, ... wrote.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  (void)SignalSet(rest, "SigCgt");
  std::vector<RankStacks> ranks;
  while (ranks.size() < 16) {
    const size_t end = rest.find('\0');
    const std::string text(rest.substr(0, end));
    if (ParseThreadStacks(text).size() > 1'000) std::abort();
    RankStacks rank{Rank{static_cast<uint32_t>(ranks.size())}, {{1, "python3", true, text}}};
    if (rank.Text(1'000).size() > 1'000) std::abort();
    ranks.push_back(std::move(rank));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (const auto odd = OddRank(ranks)) {
    if (odd->ranks.empty() || odd->ranks.size() + odd->others != ranks.size()) std::abort();
    for (const char c : odd->Text()) {
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
  }
  return 0;
}
