// The search grammar of MLflow: `metrics.loss < 0.5 AND params.opt = 'adam'`, and the clauses of an
// order. Parsing and checking only; the caller evaluates. Pure. One pass over the tokens, without
// going back; what is accepted follows MLflow's own parser, mlflow/utils/search_utils.py.
//
// A clause is identifier, comparator, value; clauses are joined by AND, there is no OR. An
// identifier is [type.]key, with keys of other than word characters in backticks or double quotes.
// Errors are kInvalid with MLflow's messages, which its users and tests know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

enum class Searched { kRuns, kExperiments, kModels, kVersions, kLoggedModels };
enum class FieldType { kMetric, kParam, kTag, kAttribute, kDataset };
enum class Comparator {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLike,
  kILike,
  kIn,
  kNotIn,
  kIsNull,
  kIsNotNull,
};

struct Clause {
  FieldType type = FieldType::kAttribute;
  std::string key;  // of attributes the canonical name: "run_name" for `Run Name`
  Comparator comparator = Comparator::kEqual;
  std::string text;               // the value, unless it is a number
  double number = 0;              // of metrics and numeric attributes
  std::vector<std::string> list;  // of IN
};

struct OrderBy {
  FieldType type = FieldType::kAttribute;
  std::string key;
  bool ascending = true;
  bool operator==(const OrderBy&) const = default;
};

Result<std::vector<Clause>> ParseFilter(std::string_view text, Searched what);
Result<OrderBy> ParseOrderBy(std::string_view text, Searched what);
// The same for a list; kInvalid if one field is given twice.
Result<std::vector<OrderBy>> ParseOrder(const std::vector<std::string>& items, Searched what);

// SQL's LIKE: % is any text, _ one character. ILIKE folds ASCII case.
bool Like(std::string_view text, std::string_view pattern, bool fold_case);
// Whether a text or number passes a clause of the right kind; the caller handles IS NULL.
bool Passes(const Clause& clause, std::string_view text);
bool Passes(const Clause& clause, double number);

}  // namespace athanor
