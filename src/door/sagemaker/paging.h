// Pages of a list that is made again for each call: a token names how far the reader got. For .cc
// files that include nlohmann/json.hpp before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "door/sagemaker/shapes.h"

namespace athanor::sagemaker {

struct Page {
  size_t from = 0;
  size_t most = 10;
};

// MaxResults (1 to 100) and NextToken of a request; what is wrong with them is noted.
inline Page PageOf(const Json& body, ShapeCheck& check) {
  Page page;
  page.most = static_cast<size_t>(check.Number(body, "MaxResults", "", {1, 100}).value_or(10));
  const auto token = check.Text(body, "NextToken", "", {0, 8192, "(from-[0-9]{1,9})?"});
  if (token && token->size() > 5) page.from = std::strtoull(token->c_str() + 5, nullptr, 10);
  return page;
}

// Cuts `rows` to the page and names the next one, if there is one.
inline Json Cut(const Json& rows, const Page& page, const char* key) {
  Json out = {{key, Json::array()}};
  const size_t end = std::min(rows.size(), page.from + page.most);
  for (size_t i = page.from; i < end; ++i) out[key].push_back(rows[i]);
  if (end < rows.size()) out["NextToken"] = "from-" + std::to_string(end);
  return out;
}

}  // namespace athanor::sagemaker
