// SageMaker's SearchExpression over views of jobs. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "door/aws/aws_front.h"

namespace athanor::sagemaker {

struct SearchFilter {
  std::string name;  // "TrainingJobStatus", "Tags.team", "HyperParameters.lr", "Metrics.loss"
  std::string op;    // Equals, NotEquals, GreaterThan…, Contains, Exists, NotExists, In
  std::string value;
};

struct SearchWish {
  std::vector<SearchFilter> filters;
  std::vector<SearchWish> subs;
  bool any = false;  // Or instead of And
  std::string sort_by = "CreationTime";
  bool ascending = false;

  bool Matches(const Json& view) const;
  void Sort(Json& views) const;
};

tl::expected<SearchWish, AwsError> ReadSearch(const Json& body);

}  // namespace athanor::sagemaker
