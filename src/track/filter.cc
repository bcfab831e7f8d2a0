#include "track/filter.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "base/ids.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "track/own_filter.h"

namespace athanor {
namespace {

constexpr size_t kMostClauses = 100;
constexpr size_t kMostText = 64 * 1024;

struct Token {
  enum class Kind { kWord, kQuoted, kOperator, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;   // without quotes; of a word whose key was quoted: with the key unquoted
  std::string raw;    // as it is in the filter
  size_t prefix = 0;  // of a word with a quoted key: the length of "type."; else 0
};

tl::unexpected<Error> Invalid(std::string what) {
  return Fail(ErrorCode::kInvalid, std::move(what), "metrics.loss < 0.5 AND params.name = 'value'");
}

bool IsWordByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80 ||
         std::string_view("_.-+/:%").find(c) != std::string_view::npos;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : left_(text) {}

  Result<Token> NextToken() {
    left_ = Trim(left_);
    Token token;
    if (left_.empty()) return token;
    const std::string_view start = left_;
    const char c = left_.front();
    if (IsQuote(c)) {
      token.kind = Token::Kind::kQuoted;
      ATHANOR_TRY(token.text, Quoted());
    } else if (IsWordByte(c)) {
      token.kind = Token::Kind::kWord;
      size_t size = 0;
      while (size < left_.size() && IsWordByte(left_[size])) ++size;
      token.text = left_.substr(0, size);
      left_.remove_prefix(size);
      // metrics.`val/loss`
      if (token.text.back() == '.' && !left_.empty() && IsQuote(left_.front())) {
        token.prefix = token.text.size();
        ATHANOR_TRY(const std::string key, Quoted());
        token.text += key;
      }
    } else {
      token.kind = Token::Kind::kOperator;
      const bool two = left_.size() > 1 && left_[1] == '=' &&
                       std::string_view("<>!=").find(c) != std::string_view::npos;
      token.text = left_.substr(0, two ? 2 : 1);
      left_.remove_prefix(token.text.size());
    }
    token.raw = start.substr(0, start.size() - left_.size());
    return token;
  }

 private:
  static bool IsQuote(char c) { return c == '\'' || c == '"' || c == '`'; }

  Result<std::string> Quoted() {
    const char quote = left_.front();
    const size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) {
      return Invalid(
          fmt::format("Invalid clause(s) in filter string: {}", Printable(left_.substr(0, 200))));
    }
    std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }

  std::string_view left_;
};

// What can be asked of one kind of thing.
struct Dialect {
  std::vector<std::pair<std::string_view, FieldType>> types;
  std::vector<std::string_view> texts;    // attributes
  std::vector<std::string_view> numbers;  // attributes
  std::vector<std::string_view> order_only;
};

const Dialect& DialectOf(Searched what) {
  using enum FieldType;
  static const Dialect runs{{{"metric", kMetric},
                             {"metrics", kMetric},
                             {"parameter", kParam},
                             {"parameters", kParam},
                             {"param", kParam},
                             {"params", kParam},
                             {"tag", kTag},
                             {"tags", kTag},
                             {"attribute", kAttribute},
                             {"attributes", kAttribute},
                             {"attr", kAttribute},
                             {"run", kAttribute},
                             {"dataset", kDataset},
                             {"datasets", kDataset}},
                            {"run_id", "run_name", "user_id", "status", "artifact_uri"},
                            {"start_time", "end_time"},
                            {}};
  static const Dialect experiments{{{"attribute", kAttribute},
                                    {"attributes", kAttribute},
                                    {"attr", kAttribute},
                                    {"tag", kTag},
                                    {"tags", kTag}},
                                   {"name"},
                                   {"creation_time", "last_update_time"},
                                   {"experiment_id"}};
  static const Dialect models{{{"attribute", kAttribute},
                               {"attributes", kAttribute},
                               {"attr", kAttribute},
                               {"tag", kTag},
                               {"tags", kTag}},
                              {"name"},
                              {},
                              {"creation_timestamp", "last_updated_timestamp", "timestamp"}};
  static const Dialect versions{{{"attribute", kAttribute},
                                 {"attributes", kAttribute},
                                 {"attr", kAttribute},
                                 {"tag", kTag},
                                 {"tags", kTag}},
                                {"name", "run_id", "source_path"},
                                {"version_number"},
                                {"creation_timestamp", "last_updated_timestamp"}};
  static const Dialect logged{
      {{"metric", kMetric},
       {"metrics", kMetric},
       {"parameter", kParam},
       {"parameters", kParam},
       {"param", kParam},
       {"params", kParam},
       {"tag", kTag},
       {"tags", kTag},
       {"attribute", kAttribute},
       {"attributes", kAttribute},
       {"attr", kAttribute}},
      {"name", "model_id", "model_type", "status", "source_run_id", "experiment_id"},
      {"creation_timestamp", "creation_time", "last_updated_timestamp", "last_updated_time"},
      {}};
  switch (what) {
    case Searched::kRuns:
      return runs;
    case Searched::kExperiments:
      return experiments;
    case Searched::kModels:
      return models;
    case Searched::kVersions:
      return versions;
    case Searched::kLoggedModels:
      return logged;
  }
  return runs;
}

bool Has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string Names(const std::vector<std::string_view>& names) {
  std::string text;
  for (const auto name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text;
}

std::string Canonical(std::string_view attribute, Searched what) {
  if (what == Searched::kRuns) {
    if (attribute == "run name" || attribute == "Run name" || attribute == "Run Name") {
      return "run_name";
    }
    if (attribute == "created" || attribute == "Created") return "start_time";
    if (attribute == "run_uuid") return "run_id";
  }
  if (what == Searched::kModels && attribute == "timestamp") return "last_updated_timestamp";
  if (what == Searched::kLoggedModels && attribute == "creation_time") return "creation_timestamp";
  if (what == Searched::kLoggedModels && attribute == "last_updated_time") {
    return "last_updated_timestamp";
  }
  return std::string(attribute);
}

struct Field {
  FieldType type = FieldType::kAttribute;
  std::string key;
  bool numeric = false;
};

Result<Field> FieldOf(const Token& token, Searched what, bool for_order) {
  const Dialect& dialect = DialectOf(what);
  Field field;
  const size_t dot = token.kind == Token::Kind::kWord ? token.text.find('.') : std::string::npos;
  if (dot == std::string::npos) {
    field.key = token.text;
  } else {
    const std::string_view type = std::string_view(token.text).substr(0, dot);
    const auto known = std::find_if(dialect.types.begin(), dialect.types.end(),
                                    [&](const auto& row) { return row.first == type; });
    if (known == dialect.types.end()) {
      std::vector<std::string_view> names;
      for (const auto& row : dialect.types) names.push_back(row.first);
      return Invalid(fmt::format("Invalid entity type '{}'. Valid values are [{}]",
                                 Printable(type.substr(0, 200)), Names(names)));
    }
    field.type = known->second;
    field.key = token.text.substr(dot + 1);
  }
  if (field.key.empty()) {
    return Invalid(
        fmt::format("Invalid identifier '{}'. Columns should be specified as "
                    "'attribute.<key>', 'metric.<key>', 'tag.<key>', or "
                    "'parameter.<key>'.",
                    Printable(token.text.substr(0, 200))));
  }
  if (field.type == FieldType::kMetric) field.numeric = true;
  if (field.type == FieldType::kDataset && !Has({"name", "digest", "context"}, field.key)) {
    return Invalid(
        fmt::format("Invalid dataset key '{}' specified. Valid keys are 'context', "
                    "'digest', 'name'",
                    Printable(field.key.substr(0, 200))));
  }
  if (field.type != FieldType::kAttribute) return field;
  field.key = Canonical(field.key, what);
  field.numeric = Has(dialect.numbers, field.key);
  const bool known = field.numeric || Has(dialect.texts, field.key) ||
                     (for_order && Has(dialect.order_only, field.key));
  if (known) return field;
  auto names = dialect.texts;
  names.insert(names.end(), dialect.numbers.begin(), dialect.numbers.end());
  if (for_order) names.insert(names.end(), dialect.order_only.begin(), dialect.order_only.end());
  return Invalid(fmt::format("Invalid attribute key '{}' specified. Valid keys are {}",
                             Printable(field.key.substr(0, 200)), Names(names)));
}

// The whole of a text as a number.
std::optional<double> NumberOf(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return std::nullopt;
  return value;
}

class FilterParser {
 public:
  FilterParser(std::string_view text, Searched what, bool own = false)
      : lexer_(text), what_(what), own_(own) {}

  Result<std::vector<Clause>> Parse() {
    std::vector<Clause> clauses;
    ATHANOR_CHECK_OK(Advance());
    while (token_.kind != Token::Kind::kEnd) {
      if (!clauses.empty()) {
        if (!IsWord("AND")) return BadClause();
        ATHANOR_CHECK_OK(Advance());
      }
      if (clauses.size() == kMostClauses) {
        return Invalid(fmt::format("A filter has at most {} clauses", kMostClauses));
      }
      ATHANOR_TRY(auto clause, OneClause());
      // `params.lr = 1e-3` is to find 0.001, too. As texts they differ; `>=` and `<=` compare
      // numbers.
      if (bare_number_) {
        clause.comparator = Comparator::kGreaterEqual;
        clauses.push_back(clause);
        clause.comparator = Comparator::kLessEqual;
      }
      clauses.push_back(std::move(clause));
    }
    return clauses;
  }

 private:
  Status Advance() {
    ATHANOR_TRY(token_, lexer_.NextToken());
    return Ok();
  }

  bool IsWord(std::string_view upper) const {
    return token_.kind == Token::Kind::kWord && ToUpper(token_.text) == upper;
  }

  tl::unexpected<Error> BadClause() const {
    return Invalid(fmt::format("Invalid clause(s) in filter string: '{}'",
                               Printable(std::string_view(token_.raw).substr(0, 200))));
  }

  Result<Clause> OneClause() {
    if (token_.kind != Token::Kind::kWord && token_.kind != Token::Kind::kQuoted) {
      return BadClause();
    }
    const bool is_state = own_ && IsWord("STATE");
    if (own_) UseOwnName();
    bare_number_ = false;
    ATHANOR_TRY(const Field field, FieldOf(token_, what_, false));
    Clause clause{field.type, field.key, Comparator::kEqual, {}, 0, {}};
    ATHANOR_CHECK_OK(Advance());
    ATHANOR_TRY(clause.comparator, OneComparator(field));
    if (clause.comparator == Comparator::kIsNull || clause.comparator == Comparator::kIsNotNull) {
      return clause;
    }
    if (clause.comparator == Comparator::kIn || clause.comparator == Comparator::kNotIn) {
      ATHANOR_TRY(clause.list, OneList());
      if (is_state) {
        for (auto& state : clause.list) ATHANOR_CHECK_OK(UseStatus(state));
      }
      return clause;
    }
    if (field.numeric || IsInequality(clause.comparator)) {
      ATHANOR_TRY(clause.number, OneNumber(field));
    } else {
      ATHANOR_TRY(clause.text, OneText(field));
      if (is_state) ATHANOR_CHECK_OK(UseStatus(clause.text));
      const auto number =
          own_ && token_.kind == Token::Kind::kWord ? NumberOf(clause.text) : std::nullopt;
      bare_number_ = number && clause.comparator == Comparator::kEqual && IsLabel(field);
      clause.number = number.value_or(0);
    }
    ATHANOR_CHECK_OK(Advance());
    return clause;
  }

  static bool IsLabel(const Field& field) {
    return field.type == FieldType::kParam || field.type == FieldType::kTag;
  }

  static bool IsInequality(Comparator comparator) {
    return comparator == Comparator::kLess || comparator == Comparator::kLessEqual ||
           comparator == Comparator::kGreater || comparator == Comparator::kGreaterEqual;
  }

  // The names in `ath` and on the page of what MLflow calls by other names.
  void UseOwnName() {
    static constexpr std::pair<std::string_view, const char*> kNames[] = {
        {"STATE", "status"}, {"NAME", "run_name"}, {"USER", "user_id"}, {"ID", "run_id"}};
    for (const auto& [own, name] : kNames) {
      if (IsWord(own)) token_.text = name;
    }
  }

  static Status UseStatus(std::string& state) {
    static constexpr std::pair<std::string_view, const char*> kStates[] = {
        {"queued", "SCHEDULED"},
        {"running", "RUNNING"},
        {"completed", "FINISHED"},
        {"failed", "FAILED"},
        {"stopped", "KILLED"}};
    for (const auto& [own, status] : kStates) {
      if (ToLower(state) != own && ToUpper(state) != status) continue;
      state = status;
      return Ok();
    }
    return Invalid("No such state: '" + Printable(state.substr(0, 50)) +
                   "'. States are queued, running, completed, failed and stopped");
  }

  Result<Comparator> OneComparator(const Field& field) {
    using enum Comparator;
    std::string name = ToUpper(token_.text);
    if (token_.kind == Token::Kind::kEnd) {
      return Invalid(fmt::format("Invalid clause(s) in filter string: '{}'",
                                 Printable(field.key.substr(0, 200))));
    }
    ATHANOR_CHECK_OK(Advance());
    if (name == "NOT" && IsWord("IN")) {
      name = "NOT IN";
      ATHANOR_CHECK_OK(Advance());
    }
    if (name == "IS") {
      if (IsWord("NOT")) {
        name = "IS NOT";
        ATHANOR_CHECK_OK(Advance());
      }
      if (!IsWord("NULL")) return BadClause();
      name += " NULL";
      ATHANOR_CHECK_OK(Advance());
    }
    if (own_ && name == "==") name = "=";
    static constexpr std::pair<std::string_view, Comparator> kNames[] = {
        {"=", kEqual},   {"!=", kNotEqual},     {"<", kLess},         {"<=", kLessEqual},
        {">", kGreater}, {">=", kGreaterEqual}, {"LIKE", kLike},      {"ILIKE", kILike},
        {"IN", kIn},     {"NOT IN", kNotIn},    {"IS NULL", kIsNull}, {"IS NOT NULL", kIsNotNull}};
    for (const auto& [text, comparator] : kNames) {
      if (text == name && Allowed(field, comparator)) return comparator;
    }
    return Invalid(
        fmt::format("Invalid comparator '{}' not one of {}", Printable(name.substr(0, 50)),
                    field.numeric || (own_ && IsLabel(field)) ? "'>', '>=', '!=', '=', '<', '<='"
                                                              : "'!=', '=', 'LIKE', 'ILIKE'"));
  }

  bool Allowed(const Field& field, Comparator comparator) const {
    using enum Comparator;
    switch (comparator) {
      case kEqual:
      case kNotEqual:
        return true;
      case kLess:
      case kLessEqual:
      case kGreater:
      case kGreaterEqual:
        return field.numeric || (own_ && IsLabel(field));
      case kLike:
      case kILike:
        return !field.numeric;
      case kIn:
      case kNotIn:
        return field.type == FieldType::kDataset ||
               (field.type == FieldType::kAttribute && !field.numeric);
      case kIsNull:
      case kIsNotNull:
        return field.type == FieldType::kParam || field.type == FieldType::kTag;
    }
    return false;
  }

  // The token in an error.
  std::string Seen() const {
    return token_.kind == Token::Kind::kEnd
               ? "the end of the filter"
               : Printable(std::string_view(token_.raw).substr(0, 200));
  }

  Result<double> OneNumber(const Field& field) {
    const char* begin = token_.text.c_str();
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    if (token_.kind != Token::Kind::kWord || end == begin || *end != '\0') {
      return Invalid(fmt::format("Expected numeric value type for {}. Found {}",
                                 field.type == FieldType::kMetric  ? "metric"
                                 : field.type == FieldType::kParam ? "parameter"
                                 : field.type == FieldType::kTag
                                     ? "tag"
                                     : "numeric attribute: " + field.key,
                                 Seen()));
    }
    return value;
  }

  Result<std::string> OneText(const Field& field) const {
    if (token_.kind == Token::Kind::kQuoted && token_.raw.front() != '`') return token_.text;
    if (own_ && token_.kind == Token::Kind::kWord) return token_.text;
    const char* name = field.type == FieldType::kParam     ? "parameter"
                       : field.type == FieldType::kTag     ? "tag"
                       : field.type == FieldType::kDataset ? "dataset"
                                                           : "attribute";
    return Invalid(
        fmt::format("Expected a quoted string value for {} (e.g. 'my-value'). Got value "
                    "{}",
                    name, Seen()));
  }

  Result<std::vector<std::string>> OneList() {
    const auto bad = [] {
      return Invalid(
          "While parsing a list in the query, expected a non-empty list of string "
          "values, e.g. ('a', 'b')");
    };
    std::vector<std::string> list;
    if (token_.text != "(" || token_.kind != Token::Kind::kOperator) return bad();
    do {
      ATHANOR_CHECK_OK(Advance());
      if (token_.kind != Token::Kind::kQuoted) return bad();
      list.push_back(token_.text);
      ATHANOR_CHECK_OK(Advance());
    } while (token_.kind == Token::Kind::kOperator && token_.text == ",");
    if (token_.kind != Token::Kind::kOperator || token_.text != ")") return bad();
    ATHANOR_CHECK_OK(Advance());
    return list;
  }

  Lexer lexer_;
  Token token_;
  Searched what_;
  bool own_;
  bool bare_number_ = false;  // the clause just read compares a label with an unquoted number
};

// The length of the character at the front.
size_t CharacterSize(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  return size;
}

// Runs are identified by their 32 digits here; `ath` and the page write the same ids in 26 letters.
void UseHexIds(Clause& clause) {
  const auto in_digits = [](std::string& text) {
    if (const auto id = Ulid::Parse(text)) text = id->ToHex();
  };
  in_digits(clause.text);
  for (auto& text : clause.list) in_digits(text);
}

}  // namespace

Result<std::vector<Clause>> ParseFilter(std::string_view text, Searched what) {
  if (text.size() > kMostText) return Invalid("A filter has at most 65536 characters");
  ATHANOR_TRY(auto clauses, FilterParser(text, what).Parse());
  for (auto& clause : clauses) {
    if (clause.type == FieldType::kAttribute && EndsWith(clause.key, "run_id")) UseHexIds(clause);
  }
  return clauses;
}

Result<std::vector<Clause>> ParseOwnFilter(std::string_view text) {
  auto clauses = text.size() > kMostText
                     ? Result<std::vector<Clause>>(Invalid("A filter has at most 65536 characters"))
                     : FilterParser(text, Searched::kRuns, true).Parse();
  if (!clauses) {
    Error error = clauses.error();
    error.id = "ATH-R0031";
    error.hint =
        "conditions joined by AND, such as: params.lr > 0.1 AND state = failed\n"
        "fields: metrics.NAME, params.NAME, tags.NAME, state, name, user, id, start_time, "
        "end_time\n"
        "comparisons: = != < <= > >= LIKE ILIKE, IN ('a', 'b'), IS NULL, IS NOT NULL";
    return Fail(std::move(error));
  }
  for (auto& clause : *clauses) {
    if (clause.type == FieldType::kAttribute && EndsWith(clause.key, "run_id")) UseHexIds(clause);
  }
  return clauses;
}

Result<OrderBy> ParseOrderBy(std::string_view text, Searched what) {
  if (text.size() > kMostText) return Invalid("An order_by clause has at most 65536 characters");
  Lexer lexer(text);
  ATHANOR_TRY(const Token name, lexer.NextToken());
  const auto bad = [&] {
    return Invalid(fmt::format("Invalid order_by clause '{}'", Printable(text.substr(0, 200))));
  };
  if (name.kind != Token::Kind::kWord && name.kind != Token::Kind::kQuoted) return bad();
  ATHANOR_TRY(const Field field, FieldOf(name, what, true));
  OrderBy order{field.type, field.key, true};
  ATHANOR_TRY(const Token way, lexer.NextToken());
  if (way.kind == Token::Kind::kEnd) return order;
  const std::string upper = ToUpper(way.text);
  if (way.kind != Token::Kind::kWord || (upper != "ASC" && upper != "DESC")) return bad();
  order.ascending = upper == "ASC";
  ATHANOR_TRY(const Token end, lexer.NextToken());
  if (end.kind != Token::Kind::kEnd) return bad();
  return order;
}

Result<std::vector<OrderBy>> ParseOrder(const std::vector<std::string>& items, Searched what) {
  std::vector<OrderBy> order;
  for (const auto& item : items) {
    ATHANOR_TRY(auto one, ParseOrderBy(item, what));
    for (const auto& before : order) {
      if (before.type == one.type && before.key == one.key) {
        return Invalid("`order_by` contains duplicate fields");
      }
    }
    order.push_back(std::move(one));
  }
  return order;
}

bool Like(std::string_view text, std::string_view pattern, bool fold_case) {
  std::string folded_text;
  std::string folded_pattern;
  if (fold_case) {
    folded_text = ToLower(text);
    folded_pattern = ToLower(pattern);
    text = folded_text;
    pattern = folded_pattern;
  }
  // After a %, what follows is tried at each later place. Only the last % is gone back to: what an
  // earlier one would take more of, the last one can take as well.
  std::optional<std::pair<std::string_view, std::string_view>> retry;
  while (true) {
    if (!pattern.empty() && pattern.front() == '%') {
      pattern.remove_prefix(1);
      retry = {text, pattern};
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    if (!text.empty() && !pattern.empty()) {
      const size_t size = CharacterSize(text);
      if (pattern.front() == '_') {
        text.remove_prefix(size);
        pattern.remove_prefix(1);
        continue;
      }
      if (pattern.front() == text.front()) {
        text.remove_prefix(1);
        pattern.remove_prefix(1);
        continue;
      }
    }
    if (!retry || retry->first.empty()) return false;
    retry->first.remove_prefix(1);
    std::tie(text, pattern) = *retry;
  }
}

bool Passes(const Clause& clause, std::string_view text) {
  switch (clause.comparator) {
    case Comparator::kEqual:
      return text == clause.text;
    case Comparator::kNotEqual:
      return text != clause.text;
    case Comparator::kLike:
      return Like(text, clause.text, false);
    case Comparator::kILike:
      return Like(text, clause.text, true);
    case Comparator::kIn:
    case Comparator::kNotIn: {
      const bool in = std::find(clause.list.begin(), clause.list.end(), text) != clause.list.end();
      return in == (clause.comparator == Comparator::kIn);
    }
    case Comparator::kIsNotNull:
      return true;
    case Comparator::kIsNull:
      return false;
    // Of a label that is a number (own_filter.h).
    case Comparator::kLess:
    case Comparator::kLessEqual:
    case Comparator::kGreater:
    case Comparator::kGreaterEqual: {
      const auto number = NumberOf(text);
      return number && Passes(clause, *number);
    }
  }
  return false;
}

bool Passes(const Clause& clause, double number) {
  switch (clause.comparator) {
    case Comparator::kEqual:
      return number == clause.number;
    case Comparator::kNotEqual:
      return number != clause.number;
    case Comparator::kLess:
      return number < clause.number;
    case Comparator::kLessEqual:
      return number <= clause.number;
    case Comparator::kGreater:
      return number > clause.number;
    case Comparator::kGreaterEqual:
      return number >= clause.number;
    case Comparator::kLike:
    case Comparator::kILike:
    case Comparator::kIn:
    case Comparator::kNotIn:
    case Comparator::kIsNull:
    case Comparator::kIsNotNull:
      return false;
  }
  return false;
}

}  // namespace athanor
