// Ignore rules as git reads them: nested files, negation, `**`, a trailing slash for folders only,
// anchored patterns, character classes. Four layers, a higher one overriding all of a lower one:
// defaults, .gitignore, .athanorignore, and the job file's own patterns. Matching takes at most
// time proportional to pattern length times path length, for every pattern.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

inline constexpr size_t kIgnoreFileLimit = 1 << 20;  // bytes that are read of one file

// The rule that decided, for messages: "data/.gitignore", line 3, "*.bin".
struct IgnoreVerdict {
  bool ignored = false;
  std::string source;  // empty: no rule matched
  uint32_t line = 0;   // 0: not from a file
  std::string pattern;
};

class IgnorePattern {
 public:
  // One line of an ignore file. A line that can never match gives a pattern that never matches.
  explicit IgnorePattern(std::string_view line);

  bool is_blank() const { return blank_; }  // empty or a comment
  bool is_negated() const { return negated_; }
  // False: it matches nothing that is directly in `folder` (relative, with a '/' at its end, or
  // "").
  bool CanMatchIn(std::string_view folder) const;
  bool is_for_names() const { return name_only_; }  // looks only at the last component
  // `path` is relative to the folder of the ignore file; no slash at either end.
  bool Matches(std::string_view path, bool is_dir) const;

 private:
  enum class Kind : uint8_t { kChar, kAny, kClass, kStar, kEverything, kFolders, kInFolders };
  struct Token {
    Kind kind;
    unsigned char byte = 0;
    uint32_t set = 0;  // index into sets_
  };
  using ByteSet = std::array<bool, 256>;

  bool Compile(std::string_view pattern);
  void CompileStars(std::string_view pattern, size_t& at);
  bool CompileClass(std::string_view pattern, size_t& at);
  bool Accepts(const Token& token, unsigned char byte) const;
  bool Run(std::string_view text) const;

  bool blank_ = false;
  bool negated_ = false;
  bool folders_only_ = false;
  bool name_only_ = false;  // no slash: matches at any depth
  bool never_ = false;
  bool plain_ = false;  // no wildcard: text_ is compared
  std::string text_;
  // Every match begins and ends with these; most names are refused by these alone.
  std::string head_;
  std::string tail_;
  std::vector<Token> tokens_;
  std::vector<ByteSet> sets_;
};

class IgnoreRules {
 public:
  enum class Layer { kDefault, kGit, kAthanor, kExtra };

  // Paths asked about are beneath `prefix`, a folder relative to the outermost one that has rules
  // (the top of the git repository); "" if they are the same.
  explicit IgnoreRules(std::string prefix);
  IgnoreRules() : IgnoreRules("") {}

  // The rules of an ignore file in `folder` (relative to the outermost one).
  void Add(Layer layer, std::string_view folder, std::string_view text, std::string_view source);
  // .git, __pycache__, virtual environments and similar.
  void AddDefaults();

  struct Rule {
    IgnorePattern pattern;
    std::string text;
    std::string source;
    uint32_t line;
  };

  // The rules that can decide about entries of one folder, collected once for all its entries.
  // Valid until the next Add.
  class InFolder {
   public:
    // nullptr: no rule matches.
    const Rule* Decider(std::string_view name, bool is_dir) const;
    bool Ignores(std::string_view name, bool is_dir) const {
      const Rule* rule = Decider(name, is_dir);
      return rule != nullptr && !rule->pattern.is_negated();
    }

   private:
    friend class IgnoreRules;
    struct Candidate {
      const Rule* rule;
      std::string below;  // from the rule's folder to this one, ending with '/'
    };
    std::vector<Candidate> candidates_;  // in order of precedence
  };
  InFolder For(std::string_view folder) const;

  // The verdict for one entry whose parents are kept.
  IgnoreVerdict OnEntry(std::string_view path, bool is_dir) const;
  // The same if nothing is known about its parents: everything in an ignored folder is ignored.
  IgnoreVerdict OnPath(std::string_view path, bool is_dir) const;

  const std::string& prefix() const { return prefix_; }

 private:
  using Folders = std::map<std::string, std::vector<Rule>, std::less<>>;

  std::string prefix_;
  std::array<Folders, 4> layers_;
};

}  // namespace athanor
