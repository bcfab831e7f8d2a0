#include "record/jobs/references.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/database.h"

namespace athanor {
namespace {

constexpr size_t kShortestPart = 4;
constexpr size_t kIdDigits = 26;
constexpr int kMostShown = 5;
constexpr int64_t kNamesCompared = 2'000;

struct Candidate {
  std::string id;
  std::string name;
};

Result<std::vector<Candidate>> Rows(Statement& statement) {
  std::vector<Candidate> rows;
  while (true) {
    ATHANOR_TRY(const bool row, statement.Step());
    if (!row) return rows;
    rows.push_back({std::string(statement.Text(0)), std::string(statement.Text(1))});
  }
}

Result<JobId> Parsed(const std::string& id) {
  const auto parsed = JobId::Parse(id);
  if (!parsed) return Fail(ErrorCode::kCorrupt, "the store holds a job id that is none: " + id);
  return *parsed;
}

tl::unexpected<Error> Missing(std::string_view reference, std::string hint, std::string why = {}) {
  return Fail(Error{ErrorCode::kNotFound,
                    fmt::format("no job '{}'", Printable(reference.substr(0, 80))), std::move(hint)}
                  .Why(std::move(why))
                  .Id("ATH-R0001"));
}

tl::unexpected<Error> Several(std::string_view reference, const std::vector<Candidate>& found) {
  std::string why;
  for (size_t i = 0; i < found.size() && i < kMostShown; ++i) {
    if (i > 0) why += ", ";
    why += fmt::format("{} ({})", found[i].id, Printable(found[i].name));
  }
  if (found.size() > kMostShown) why += ", and more";
  return Fail(Error{ErrorCode::kConflict,
                    fmt::format("'{}' could be several jobs", Printable(reference)),
                    "give more digits of the id, or its last ones\nath ps -a"}
                  .Why(std::move(why))
                  .Id("ATH-R0002"));
}

// @last, @last~2, @last-failed, @last-failed~1.
Result<JobId> ResolveAt(Connection& connection, std::string_view reference) {
  std::string_view word = reference;
  int64_t back = 0;
  bool valid = true;
  if (const size_t tilde = word.find('~'); tilde != std::string_view::npos) {
    const std::string_view digits = word.substr(tilde + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), back);
    valid = error == std::errc() && end == digits.data() + digits.size() && back >= 0;
    word = word.substr(0, tilde);
  }
  const bool failed = word == "@last-failed";
  if (!valid || (!failed && word != "@last")) {
    return Fail(Error{ErrorCode::kInvalid,
                      fmt::format("'{}' names no job", Printable(reference.substr(0, 80))),
                      "use @last, @last~1 (the one before), or @last-failed"}
                    .Id("ATH-R0003"));
  }
  ATHANOR_TRY(auto* statement,
              connection.Prepare(failed ? "SELECT id FROM jobs WHERE live = 0 AND state = 'Failed' "
                                          "ORDER BY id DESC LIMIT 1 OFFSET ?1"
                                        : "SELECT id FROM jobs "
                                          "ORDER BY id DESC LIMIT 1 OFFSET ?1"));
  statement->Bind(1, back);
  ATHANOR_TRY(const bool row, statement->Step());
  if (row) return Parsed(std::string(statement->Text(0)));
  if (failed) {
    return Missing(
        reference, "ath ps -a",
        back == 0 ? "no job has failed" : fmt::format("fewer than {} jobs have failed", back + 1));
  }
  return Missing(reference, back > 0 ? "ath ps -a" : "ath run -- python train.py");
}

// Lower case, with Crockford's look-alikes folded; nullopt when it cannot be part of an id.
std::optional<std::string> IdDigits(std::string_view text) {
  if (text.size() < kShortestPart || text.size() > kIdDigits) return std::nullopt;
  std::string digits = ToLower(text);
  for (char& c : digits) {
    if (c == 'i' || c == 'l') c = '1';
    if (c == 'o') c = '0';
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z' && c != 'u');
    if (!digit) return std::nullopt;
  }
  return digits;
}

Result<std::vector<Candidate>> WithPrefix(Connection& connection, const std::string& digits) {
  ATHANOR_TRY(auto* statement, connection.Prepare("SELECT id, name FROM jobs "
                                                  "WHERE id >= ?1 AND id < ?2 LIMIT ?3"));
  statement->Bind(1, digits);
  statement->Bind(2, digits + '~');  // after every digit
  statement->Bind(3, int64_t{kMostShown + 1});
  return Rows(*statement);
}

Result<std::vector<Candidate>> WithEnd(Connection& connection, const std::string& digits) {
  // Reads the whole index of ids, a millisecond for ten thousand: the last resort.
  ATHANOR_TRY(auto* statement, connection.Prepare("SELECT id, name FROM jobs "
                                                  "WHERE substr(id, ?1) = ?2 LIMIT ?3"));
  statement->Bind(1, -static_cast<int64_t>(digits.size()));
  statement->Bind(2, digits);
  statement->Bind(3, int64_t{kMostShown + 1});
  return Rows(*statement);
}

Result<std::optional<std::string>> First(Connection& connection, std::string_view sql,
                                         std::string_view argument) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  statement->Bind(1, argument);
  ATHANOR_TRY(const bool row, statement->Step());
  if (!row) return std::nullopt;
  return std::string(statement->Text(0));
}

Result<std::string> NearNames(Connection& connection, std::string_view reference) {
  ATHANOR_TRY(auto* statement, connection.Prepare("SELECT name FROM jobs "
                                                  "ORDER BY id DESC LIMIT ?1"));
  statement->Bind(1, kNamesCompared);
  std::vector<std::string> names;
  while (true) {
    ATHANOR_TRY(const bool row, statement->Step());
    if (!row) break;
    names.emplace_back(statement->Text(0));
  }
  const auto nearest = Nearest(reference, names);
  if (!nearest) return std::string("ath ps -a");
  return fmt::format("did you mean '{}'?\nath ps -a", Printable(*nearest));
}

}  // namespace

Result<const Statement*> NewestRow(Connection& connection, std::string_view text, int64_t created,
                                   std::string_view at, std::string_view anywhere) {
  ATHANOR_TRY(auto* near, connection.Prepare(at));
  near->Bind(1, text);
  near->Bind(2, created);
  ATHANOR_TRY(bool row, near->Step());
  if (row) return near;
  ATHANOR_TRY(auto* all, connection.Prepare(anywhere));
  all->Bind(1, text);
  ATHANOR_TRY(row, all->Step());
  return row ? all : nullptr;
}

Result<JobId> ResolveReference(Connection& connection, std::string_view reference,
                               std::optional<int64_t> named) {
  if (reference.empty()) {
    return Fail(
        Error{ErrorCode::kInvalid, "a job's name or id is missing", "ath ps -a"}.Id("ATH-R0003"));
  }
  if (reference.front() == '@') return ResolveAt(connection, reference);

  if (const auto whole = JobId::Parse(reference)) {
    ATHANOR_TRY(const auto found,
                First(connection, "SELECT id FROM jobs WHERE id = ?1", whole->ToString()));
    if (found) return *whole;
  }
  const auto digits = IdDigits(reference);
  std::vector<Candidate> with_prefix;
  if (digits) {
    ATHANOR_TRY(with_prefix, WithPrefix(connection, *digits));
    if (with_prefix.size() == 1) return Parsed(with_prefix[0].id);
  }
  // Before the ends of ids: a name must not match an unrelated job whose id happens to end like
  // that.
  if (named) {
    ATHANOR_TRY(const auto* row, NewestRow(connection, reference, *named,
                                           "SELECT id FROM jobs WHERE created = ?2 AND name = ?1 "
                                           "ORDER BY id DESC LIMIT 1",
                                           "SELECT id FROM jobs WHERE name = ?1 "
                                           "ORDER BY id DESC LIMIT 1"));
    if (row != nullptr) return Parsed(std::string(row->Text(0)));
  }
  if (!with_prefix.empty()) return Several(reference, with_prefix);
  if (digits) {
    ATHANOR_TRY(const auto with_end, WithEnd(connection, *digits));
    if (with_end.size() == 1) return Parsed(with_end[0].id);
    if (!with_end.empty()) return Several(reference, with_end);
  }
  ATHANOR_TRY(std::string hint, NearNames(connection, reference));
  return Missing(reference, std::move(hint));
}

}  // namespace athanor
