// ath tune --stdio: a search over JSON lines, for programs in any language.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/text/text.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "tune/journal_file.h"

namespace athanor {

int TuneStdioVerb(const Common& common, const std::string& journal) {
  std::unique_ptr<tune::JournalFile> file;
  if (!journal.empty()) {
    auto opened = tune::JournalFile::Open(journal);
    if (!opened) return Refuse(opened.error(), common.json);
    file = std::move(*opened);
  }
  auto protocol = tune::ProtocolOver(file.get());
  if (!protocol) return Refuse(protocol.error(), common.json);
  char* line = nullptr;
  size_t room = 0;
  int status = 0;
  for (;;) {
    const ssize_t length = ::getline(&line, &room, stdin);
    if (length < 0) break;
    const auto request = Trim({line, static_cast<size_t>(length)});
    if (request.empty()) continue;
    const auto answer = (*protocol)->Answer(request);
    if (answer.empty()) break;
    if (std::printf("%s\n", answer.c_str()) < 0 || std::fflush(stdout) != 0) {
      status = 1;
      break;
    }
  }
  std::free(line);
  return status;
}

}  // namespace athanor
