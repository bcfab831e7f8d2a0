#include "record/objects/member_list.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"

namespace athanor {
namespace {

constexpr size_t kMostBytes = 1u << 30;

std::string PathIn(const std::string& dir, const std::string& blob) {
  return JoinPath(dir, MembersName(blob));
}

// nullopt: there is none, or it is not what was written.
std::optional<std::vector<PackedMember>> Kept(const std::string& dir, const std::string& blob) {
  const auto text = ReadFile(PathIn(dir, blob), kMostBytes);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_array()) return std::nullopt;
  std::vector<PackedMember> members;
  members.reserve(json->size());
  for (const auto& row : *json) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number_unsigned()) {
      return std::nullopt;
    }
    members.push_back({row[0].get<std::string>(), row[1].get<uint64_t>()});
  }
  return members;
}

}  // namespace

std::string MembersName(const std::string& blob) { return blob + ".json"; }

std::string MembersText(const std::vector<TarMember>& members) {
  Json rows = Json::array();
  for (const auto& member : members) rows.push_back(Json::array({member.name, member.size}));
  return DumpJson(rows);
}

Result<std::vector<PackedMember>> MembersOf(const std::string& dir, const BlobStore& blobs,
                                            const std::string& blob) {
  if (auto kept = Kept(dir, blob)) return std::move(*kept);
  ATHANOR_TRY(const auto file, blobs.Read(blob));
  ATHANOR_TRY(const auto found, ListTar(file.get()));
  // Without room it is only slower; after a power cut it is made again.
  if (MakeDirs(dir)) (void)ReplaceFile(PathIn(dir, blob), MembersText(found)).ok();
  std::vector<PackedMember> members;
  members.reserve(found.size());
  for (const auto& member : found) members.push_back({member.name, member.size});
  return members;
}

}  // namespace athanor
