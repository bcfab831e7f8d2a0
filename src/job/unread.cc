#include "job/unread.h"

#include <algorithm>

#include "base/text/text.h"

namespace athanor {
namespace {

std::vector<UnreadParam> ParamsNamed(const JobSpec& spec, const std::vector<std::string>& names,
                                     bool sure) {
  std::vector<UnreadParam> params;
  for (const auto& param : spec.params) {
    if (std::find(names.begin(), names.end(), param.name) != names.end()) {
      params.push_back({param.name, param.value, sure});
    }
  }
  return params;
}

}  // namespace

Cause UnreadNote(const JobSpec& spec, const std::vector<std::string>& names, bool sure) {
  const auto params = ParamsNamed(spec, names, sure);
  // The detail is read again below: how sure it is, and a name on each line.
  return {CauseKind::kParamsUnread, UnreadText(params), UnreadHint(params),
          UnreadMark(sure) + "\n" + Join(names, "\n")};
}

std::vector<UnreadParam> UnreadParams(const JobRecord& record,
                                      const std::vector<StoredEvent>& last) {
  uint32_t attempt = 0;
  for (const auto& each : record.attempts) {
    if (each.exit) attempt = each.number;
  }
  for (auto event = last.rbegin(); event != last.rend(); ++event) {
    if (event->attempt != attempt || !event->cause.Is(CauseKind::kParamsUnread)) continue;
    auto lines = Split(event->cause.detail, '\n');
    const bool sure = lines.front() == UnreadMark(true);
    lines.erase(lines.begin());
    return ParamsNamed(record.spec, lines, sure);
  }
  return {};
}

std::string UnreadText(const std::vector<UnreadParam>& params) {
  std::vector<std::string> words;
  for (const auto& param : params) words.push_back(param.name + "=" + param.value);
  const auto list = Join(words, ", ");
  if (params.front().sure) {
    return list + (params.size() == 1 ? " was" : " were") + " not read by the script";
  }
  return "there is no sign that the script read " + list;
}

std::string UnreadMark(bool sure) {
  return sure ? "not read by the script" : "no sign that the script read it";
}

std::string UnreadHint(const std::vector<UnreadParam>& params) {
  return params.size() == 1
             ? "ath run -P passes it as --" + params.front().name
             : "ath run -P passes them as flags: --" + params.front().name + " VALUE";
}

}  // namespace athanor
