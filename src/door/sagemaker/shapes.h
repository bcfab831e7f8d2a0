// Checks of a request's members against SageMaker's limits, collected and reported with its
// messages: "1 validation error detected: Value 'x' at 'trainingJobName' failed to satisfy
// constraint: Member must …". Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "door/aws/aws_front.h"

namespace athanor::sagemaker {

struct TextRule {
  size_t min = 0;
  size_t max = std::numeric_limits<size_t>::max();
  std::string_view pattern = {};              // RE2, of the whole text
  std::vector<std::string_view> one_of = {};  // an enum
};

struct NumberRule {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

enum class Need { kOptional, kRequired };

// One walk over a request. Paths are as the service writes them: "resourceConfig.instanceType",
// "inputDataConfig.1.member.channelName".
class ShapeCheck {
 public:
  // Each checks member `key` of `in`, whose own path is `path`, and returns it if it exists and is
  // valid; faults are recorded.
  std::optional<std::string> Text(const Json& in, std::string_view key, std::string_view path,
                                  const TextRule& rule, Need need = Need::kOptional);
  std::optional<int64_t> Number(const Json& in, std::string_view key, std::string_view path,
                                const NumberRule& rule, Need need = Need::kOptional);
  std::optional<bool> Flag(const Json& in, std::string_view key, std::string_view path);
  const Json* Object(const Json& in, std::string_view key, std::string_view path,
                     Need need = Need::kOptional);
  const Json* List(const Json& in, std::string_view key, std::string_view path, size_t most,
                   Need need = Need::kOptional);
  // A map of texts.
  const Json* Texts(const Json& in, std::string_view key, std::string_view path, size_t most,
                    const TextRule& keys, const TextRule& values);

  void Note(std::string_view path, std::string_view value, std::string_view constraint);
  // What was recorded so far, if anything. A member of a wrong type comes first.
  std::optional<AwsError> Error() const;

 private:
  void CheckText(std::string_view path, const std::string& text, const TextRule& rule);
  void Missing(std::string_view path);
  void Mistyped(std::string_view path, std::string_view wanted);

  std::vector<std::string> notes_;
  std::string mistyped_;
};

// "ResourceConfig" -> "resourceConfig", after `path` and a dot unless that is empty.
std::string Below(std::string_view path, std::string_view key);
std::string Member(std::string_view path, size_t index);  // from 0: "path.1.member"

AwsError Invalid(std::string message);  // ValidationException

}  // namespace athanor::sagemaker
