#include "job/friendly_name.h"

#include <iterator>

namespace athanor {
namespace {

constexpr const char* kFirst[] = {
    "amber",  "brisk",  "calm",  "clever", "coral", "crisp", "dapper", "eager",  "early",  "fair",
    "fleet",  "fond",   "frank", "gentle", "glad",  "grand", "hardy",  "hazel",  "keen",   "kind",
    "lively", "loyal",  "lucid", "mellow", "merry", "neat",  "noble",  "olive",  "placid", "plain",
    "proud",  "quick",  "quiet", "rapid",  "rosy",  "sage",  "sharp",  "silver", "snug",   "solid",
    "spry",   "steady", "still", "sunny",  "swift", "tidy",  "warm",   "wise",   "witty",  "young"};
constexpr const char* kSecond[] = {
    "alder", "badger", "beech",  "bison", "brook", "cedar", "cliff", "crane",  "daisy",
    "delta", "ember",  "falcon", "fern",  "finch", "fjord", "fox",   "glade",  "grove",
    "hare",  "hawk",   "heron",  "iris",  "jay",   "kelp",  "lark",  "linden", "lotus",
    "lynx",  "maple",  "marten", "mesa",  "moth",  "newt",  "oak",   "otter",  "owl",
    "pine",  "plover", "quartz", "raven", "reed",  "ridge", "robin", "seal",   "sparrow",
    "stork", "thrush", "tulip",  "wren",  "yarrow"};

}  // namespace

std::string FriendlyName(const Ulid& id) {
  // The last bytes are the random ones.
  size_t a = id.bytes[15] | (id.bytes[14] << 8);
  size_t b = id.bytes[13] | (id.bytes[12] << 8);
  return std::string(kFirst[a % std::size(kFirst)]) + "-" + kSecond[b % std::size(kSecond)];
}

}  // namespace athanor
