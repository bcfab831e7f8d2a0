// The schema and the reference page, both from the key table.
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/job_file.h"
#include "submit/job_keys.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

Json GroupSchema(std::string_view parent);

Json Either(Json first, Json second) {
  return {{"anyOf", Json::array({std::move(first), std::move(second)})}};
}

// Plain numbers are texts too (python: 3.11), so editors must not complain.
Json TextSchema() { return {{"type", Json::array({"string", "number", "boolean"})}}; }

Json TypeSchema(const KeyRow& row) {
  switch (row.type) {
    case KeyType::kText: {
      if (row.choices.empty()) return TextSchema();
      return {{"enum", Split(row.choices, '|')}};
    }
    case KeyType::kCount: {
      const Json count = {{"type", "integer"}, {"minimum", 0}};
      return row.choices.empty() ? count : Either(count, {{"enum", Split(row.choices, '|')}});
    }
    case KeyType::kCountOrRange:
      return Either({{"type", "integer"}, {"minimum", 1}},
                    {{"type", "string"}, {"pattern", "^[0-9]+ *[.][.] *[0-9]+$"}});
    case KeyType::kInteger:
      return {{"type", "integer"}};
    case KeyType::kNumber:
      return {{"type", "number"}, {"minimum", 0}};
    case KeyType::kSigned:
      return {{"type", "number"}};
    case KeyType::kBool:
      return {{"type", "boolean"}};
    case KeyType::kDuration:
      return Either({{"type", "number"}, {"minimum", 0}},
                    {{"type", "string"}, {"pattern", "^([0-9.]+(ms|s|sec|m|min|h|d|w)?)+$"}});
    case KeyType::kBytes:
      return Either({{"type", "integer"}, {"minimum", 0}},
                    {{"type", "string"}, {"pattern", "^[0-9.]+ ?([kKmMgGtTpP]?i?[bB]?)$"}});
    case KeyType::kTextList:
      return {{"type", "array"}, {"items", TextSchema()}};
    case KeyType::kTextMap:
      return {{"type", "object"}, {"additionalProperties", TextSchema()}};
    case KeyType::kCommand:
      return Either({{"type", "string"}},
                    {{"type", "array"}, {"items", TextSchema()}, {"minItems", 1}});
    case KeyType::kParams:
      return {{"type", "object"}};
    case KeyType::kPatterns:
      return {{"anyOf", Json::array({{{"type", "array"}, {"items", TextSchema()}},
                                     {{"enum", Json::array({"all", "none"})}},
                                     GroupSchema(row.path)})}};
    case KeyType::kGroup:
      return GroupSchema(row.path);
    case KeyType::kGroupMap:
      return {{"type", "object"},
              {"additionalProperties",
               Either({{"type", "string"}}, GroupSchema(std::string(row.path) + ".*"))}};
    case KeyType::kGroupList:
      return {{"type", "array"},
              {"items", Either({{"type", "string"}}, GroupSchema(std::string(row.path) + "[]"))}};
  }
  return {};
}

Json GroupSchema(std::string_view parent) {
  Json properties = Json::object();
  for (const auto& key : KeysUnder(parent)) {
    const KeyRow* row = FindKey(parent.empty() ? key : fmt::format("{}.{}", parent, key));
    Json schema = TypeSchema(*row);
    schema["description"] = row->doc;
    properties[key] = std::move(schema);
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

std::string_view TypeName(const KeyRow& row) {
  switch (row.type) {
    case KeyType::kText:
      return "text";
    case KeyType::kCount:
      return "count";
    case KeyType::kCountOrRange:
      return "count, or range";
    case KeyType::kInteger:
      return "whole number";
    case KeyType::kNumber:
    case KeyType::kSigned:
      return "number";
    case KeyType::kBool:
      return "true or false";
    case KeyType::kDuration:
      return "duration";
    case KeyType::kBytes:
      return "size";
    case KeyType::kTextList:
      return "list of texts";
    case KeyType::kTextMap:
      return "map of texts";
    case KeyType::kCommand:
      return "text or list";
    case KeyType::kParams:
      return "map";
    case KeyType::kPatterns:
      return "list of texts or map";
    case KeyType::kGroup:
      return "map";
    case KeyType::kGroupMap:
      return "map of texts or maps";
    case KeyType::kGroupList:
      return "list of texts or maps";
  }
  return "";
}

std::string HoldsText(const KeyRow& row) {
  if (row.choices.empty()) return std::string(TypeName(row));
  const std::string words = ReplaceAll(std::string(row.choices), "|", ", ");
  return row.type == KeyType::kCount ? "count, or " + words : words;
}

}  // namespace

Json JobFileSchema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Athanor job file"}};
  schema.update(GroupSchema(""));
  return schema;
}

std::string JobFileReference() {
  std::string page =
      "# Job file\n\n"
      "Every key is optional; a file with only `run:` is a job. Unknown keys are errors. "
      "Durations\n"
      "look like `90s`, `10m`, `1h30m`; sizes like `512MB` or `1.5GiB`. This page is made from "
      "the\n"
      "table the parser uses.\n\n"
      "| key | holds | meaning | example |\n|---|---|---|---|\n";
  std::string later;
  for (const auto& row : KeyRows()) {
    if (row.set == nullptr) {
      later += fmt::format("{}`{}`", later.empty() ? "" : ", ", row.path);
      continue;
    }
    page += fmt::format("| `{}` | {} | {} | `{}` |\n", row.path, HoldsText(row), row.doc,
                        ReplaceAll(std::string(row.example), "|", "\\|"));
  }
  return page + "\nKnown but not available yet, and refused as such: " + later + ".\n";
}

}  // namespace athanor
