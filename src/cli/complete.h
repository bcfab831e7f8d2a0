// What can come next on a command line, for shell completion. Pure: what only a server knows (names
// of jobs, instance types) is returned as a kind, and verb_completion.cc asks for it.
#pragma once

#include <string>
#include <vector>

namespace athanor {

struct CompletedOption {
  std::vector<std::string> names;  // "--state", "-f"
  std::string value;               // what it takes: "STATES", "DURATION"; empty: a flag
  std::vector<std::string> words;  // the possible values, if they are known
};

// The command line as data: `ath`, or a command of it.
struct CompletedVerb {
  std::string name;
  std::vector<CompletedOption> options;
  std::vector<CompletedOption> arguments;  // in order; the last may be repeated
  std::vector<CompletedVerb> verbs;
};

struct Completions {
  std::vector<std::string> words;   // that begin like the last word
  std::string kind;                 // what else fits: "JOB", "TYPE", "FILE"; empty: nothing
  std::string begin;                // part of the last word that `kind` completes
  std::string ahead;                // put before each word of that kind: "--type=", "failed,"
  std::vector<std::string> before;  // the arguments so far
};

// `words` follow `ath`; the last is being typed and may be empty.
Completions CompletionsOf(const CompletedVerb& ath, std::vector<std::string> words);

}  // namespace athanor
