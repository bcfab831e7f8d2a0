#include "door/sagemaker/search.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "door/sagemaker/shapes.h"

namespace athanor::sagemaker {
namespace {

constexpr size_t kMostFilters = 50;
constexpr int kDeepest = 10;

std::optional<double> AsNumber(const std::string& text) {
  double value = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

std::string ComparedText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The value that the name of a filter refers to.
std::optional<std::string> ValueOf(const Json& view, const std::string& name) {
  const auto dot = name.find('.');
  const auto head = name.substr(0, dot);
  const auto rest = dot == std::string::npos ? "" : name.substr(dot + 1);
  if (head == "Tags") {
    for (const auto& tag : view.value("Tags", Json::array())) {
      if (tag.value("Key", "") == rest) return tag.value("Value", "");
    }
    return std::nullopt;
  }
  if (head == "Metrics") {
    for (const auto& metric : view.value("FinalMetricDataList", Json::array())) {
      if (metric.value("MetricName", "") == rest) return ComparedText(metric["Value"]);
    }
    return std::nullopt;
  }
  const Json* at = &view;
  for (const auto& part : Split(name, '.')) {
    if (!at->is_object() || !at->contains(part)) return std::nullopt;
    at = &(*at)[part];
  }
  return at->is_structured() ? std::optional<std::string>() : ComparedText(*at);
}

bool Holds(const SearchFilter& filter, const Json& view) {
  const auto value = ValueOf(view, filter.name);
  if (filter.op == "Exists") return value.has_value();
  if (filter.op == "NotExists") return !value.has_value();
  if (!value) return filter.op == "NotEquals";
  if (filter.op == "Equals") return *value == filter.value;
  if (filter.op == "NotEquals") return *value != filter.value;
  if (filter.op == "Contains") return value->find(filter.value) != std::string::npos;
  if (filter.op == "In") {
    for (const auto& one : Split(filter.value, ',')) {
      if (Trim(one) == *value) return true;
    }
    return false;
  }
  const auto left = AsNumber(*value), right = AsNumber(filter.value);
  const int order = left && right ? (*left < *right   ? -1
                                     : *left > *right ? 1
                                                      : 0)
                                  : value->compare(filter.value);
  if (filter.op == "GreaterThan") return order > 0;
  if (filter.op == "GreaterThanOrEqualTo") return order >= 0;
  if (filter.op == "LessThan") return order < 0;
  return order <= 0;
}

std::optional<AwsError> ReadInto(const Json& expression, SearchWish& wish, int depth) {
  if (depth > kDeepest) return Invalid("the search expression is nested too deeply");
  ShapeCheck check;
  const char* path = "searchExpression";
  wish.any =
      check.Text(expression, "Operator", path, {.one_of = {"And", "Or"}}).value_or("And") == "Or";
  const auto* filters = check.List(expression, "Filters", path, kMostFilters);
  for (size_t i = 0; filters && i < filters->size(); ++i) {
    const auto at = Member("searchExpression.filters", i);
    SearchFilter filter;
    filter.name = check.Text((*filters)[i], "Name", at, {1, 255}, Need::kRequired).value_or("");
    filter.op = check
                    .Text((*filters)[i], "Operator", at,
                          {.one_of = {"Equals", "NotEquals", "GreaterThan", "GreaterThanOrEqualTo",
                                      "LessThan", "LessThanOrEqualTo", "Contains", "Exists",
                                      "NotExists", "In"}})
                    .value_or("Equals");
    filter.value = check.Text((*filters)[i], "Value", at, {1, 1024}).value_or("");
    wish.filters.push_back(std::move(filter));
  }
  const auto* subs = check.List(expression, "SubExpressions", path, 20);
  if (auto error = check.Error()) return error;
  if (expression.contains("NestedFilters") && !expression["NestedFilters"].empty()) {
    return Invalid("NestedFilters are not available; use Filters");
  }
  for (size_t i = 0; subs && i < subs->size(); ++i) {
    SearchWish sub;
    if (auto error = ReadInto((*subs)[i], sub, depth + 1)) return error;
    wish.subs.push_back(std::move(sub));
  }
  return std::nullopt;
}

}  // namespace

bool SearchWish::Matches(const Json& view) const {
  if (filters.empty() && subs.empty()) return true;
  auto holds = [&](const SearchFilter& filter) { return Holds(filter, view); };
  auto matches = [&](const SearchWish& sub) { return sub.Matches(view); };
  if (any) {
    return std::any_of(filters.begin(), filters.end(), holds) ||
           std::any_of(subs.begin(), subs.end(), matches);
  }
  return std::all_of(filters.begin(), filters.end(), holds) &&
         std::all_of(subs.begin(), subs.end(), matches);
}

void SearchWish::Sort(Json& views) const {
  std::stable_sort(views.begin(), views.end(), [this](const Json& a, const Json& b) {
    const auto left = ValueOf(ascending ? a : b, sort_by).value_or("");
    const auto right = ValueOf(ascending ? b : a, sort_by).value_or("");
    const auto x = AsNumber(left), y = AsNumber(right);
    return x && y ? *x < *y : left < right;
  });
}

tl::expected<SearchWish, AwsError> ReadSearch(const Json& body) {
  SearchWish wish;
  ShapeCheck check;
  const auto* expression = check.Object(body, "SearchExpression", "");
  wish.sort_by = check.Text(body, "SortBy", "", {1, 255}).value_or("CreationTime");
  wish.ascending = check.Text(body, "SortOrder", "", {.one_of = {"Ascending", "Descending"}})
                       .value_or("Descending") == "Ascending";
  if (auto error = check.Error()) return tl::unexpected(*error);
  if (expression) {
    if (auto error = ReadInto(*expression, wish, 0)) return tl::unexpected(*error);
  }
  return wish;
}

}  // namespace athanor::sagemaker
