// Ignore rules as git reads them: nested files, negation, `**`, a trailing slash
// for folders only, anchored patterns, character classes. Four layers, a higher
// one overriding all of a lower one: defaults, .gitignore, .athanorignore, and the
// job file's own patterns. Matching takes time linear in pattern times path,
// whatever the pattern.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

inline constexpr size_t kIgnoreFileLimit = 1 << 20;  // bytes of one that are read

// What decided, for messages: "data/.gitignore", line 3, "*.bin".
struct IgnoreVerdict {
  bool ignored = false;
  std::string source;  // empty: no rule matched
  uint32_t line = 0;   // 0: not from a file
  std::string pattern;
};

class IgnorePattern {
 public:
  // One line of an ignore file. A line that can never match gives a pattern that never does.
  explicit IgnorePattern(std::string_view line);

  bool is_blank() const { return blank_; }  // empty or a comment
  bool is_negated() const { return negated_; }
  // False: it matches nothing that lies in `folder` itself (relative, a '/' at its end, or "").
  bool CanMatchIn(std::string_view folder) const;
  bool is_for_names() const { return name_only_; }  // looks at the last component alone
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
  // What every match begins and ends with; most names are refused by these alone.
  std::string head_;
  std::string tail_;
  std::vector<Token> tokens_;
  std::vector<ByteSet> sets_;
};

class IgnoreRules {
 public:
  enum class Layer { kDefault, kGit, kAthanor, kExtra };

  // Paths asked about are beneath `prefix`, a folder relative to the outermost one
  // that has rules (the top of the git repository); "" when they are the same.
  explicit IgnoreRules(std::string prefix);
  IgnoreRules() : IgnoreRules("") {}

  // The rules of an ignore file in `folder` (relative to the outermost one).
  void Add(Layer layer, std::string_view folder, std::string_view text, std::string_view source);
  // .git, __pycache__, virtual environments and the like.
  void AddDefaults();

  struct Rule {
    IgnorePattern pattern;
    std::string text;
    std::string source;
    uint32_t line;
  };

  // Those of the rules that can decide on an entry of one folder, gathered once for all
  // its entries. Good until the next Add.
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
      std::string below;  // from the rule's folder to this one, with a '/' at its end
    };
    std::vector<Candidate> candidates_;  // what decides first, first
  };
  InFolder For(std::string_view folder) const;

  // The verdict on one entry whose parents are kept.
  IgnoreVerdict OnEntry(std::string_view path, bool is_dir) const;
  // The same when nothing is known of its parents: in an ignored folder all is ignored.
  IgnoreVerdict OnPath(std::string_view path, bool is_dir) const;

  const std::string& prefix() const { return prefix_; }

 private:
  using Folders = std::map<std::string, std::vector<Rule>, std::less<>>;

  std::string prefix_;
  std::array<Folders, 4> layers_;
};

}  // namespace athanor
