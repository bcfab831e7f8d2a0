// The XML that AWS's REST and Query protocols need: escaping for answers, and a strict reader for
// the small documents in requests. No DOCTYPE, nothing external, limited depth and size. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

// For text and attribute values; characters that XML 1.0 cannot hold become &#xN;, as S3
// writes them.
std::string XmlEscape(std::string_view text);
// "<Name>escaped</Name>"
std::string XmlElement(std::string_view name, std::string_view text);

struct XmlNode {
  std::string name;  // without its namespace prefix
  std::string text;  // of this element alone, decoded
  std::vector<XmlNode> children;

  const XmlNode* Child(std::string_view wanted) const;     // the first of that name
  std::string_view TextOf(std::string_view wanted) const;  // its text; empty: none
};

// The root element. kInvalid: not well-formed, or more than is supported here.
Result<XmlNode> ParseXml(std::string_view text);

}  // namespace athanor
