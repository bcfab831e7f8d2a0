// What can stand next on a command line, for the completion of shells. Pure: what only a server knows
// (names of jobs, instance types) is named by its kind, and verb_completion.cc asks for it.
#pragma once

#include <string>
#include <vector>

namespace athanor {

struct CompletedOption {
  std::vector<std::string> names;  // "--state", "-f"
  std::string value;               // what it takes: "STATES", "DURATION"; empty: a flag
  std::vector<std::string> words;  // the values there are, where that is known
};

// The command line as data: `ath`, or a command of it.
struct CompletedVerb {
  std::string name;
  std::vector<CompletedOption> options;
  std::vector<CompletedOption> arguments;  // in order; the last may come again
  std::vector<CompletedVerb> verbs;
};

struct Completions {
  std::vector<std::string> words;  // that begin as the last word does
  std::string kind;   // what else fits: "JOB", "TYPE", "FILE"; empty: nothing
  std::string begin;  // of the last word, as far as `kind` is to be completed
  std::string ahead;  // stands before each word of that kind: "--type=", "failed,"
  std::vector<std::string> before;  // the arguments so far
};

// `words` follow `ath`; the last is being typed and may be empty.
Completions CompletionsOf(const CompletedVerb& ath, std::vector<std::string> words);

}  // namespace athanor
