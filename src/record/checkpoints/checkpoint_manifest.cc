#include "record/checkpoints/checkpoint_manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/codec.h"

namespace athanor {
namespace {

constexpr std::string_view kHead = "athanor-checkpoint ";
constexpr std::string_view kVersion = "1";
constexpr size_t kDigestSize = 64;

tl::unexpected<Error> Damaged(std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, "the manifest of a checkpoint is damaged"}.Why(std::move(why)));
}

tl::unexpected<Error> Unusable(const std::string& name, std::string why) {
  return Fail(Error{ErrorCode::kInvalid,
                    "a checkpoint cannot hold '" + Printable(name.substr(0, 200)) + "'"}
                  .Why(std::move(why)));
}

bool IsDigest(std::string_view text) {
  return text.size() == kDigestSize && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// JSON holds only UTF-8, file names any bytes.
void PutBytes(Json& out, const char* plain, const char* coded, const std::string& bytes) {
  if (IsUtf8(bytes)) {
    out[plain] = bytes;
  } else {
    out[coded] = Base64(bytes);
  }
}

bool GetBytes(const Json& in, const char* plain, const char* coded, std::string& bytes) {
  if (const auto found = in.find(plain); found != in.end()) {
    if (!found->is_string()) return false;
    bytes = found->get<std::string>();
    return true;
  }
  const auto found = in.find(coded);
  if (found == in.end()) return true;
  if (!found->is_string()) return false;
  auto decoded = FromBase64(found->get_ref<const std::string&>());
  // Only what needs it is encoded, so that each name has one form.
  if (!decoded || IsUtf8(*decoded)) return false;
  bytes = std::move(*decoded);
  return true;
}

template <class T>
bool GetNumber(const Json& in, const char* key, T& value) {
  const auto found = in.find(key);
  if (found == in.end()) return true;
  if constexpr (std::is_unsigned_v<T>) {
    if (!found->is_number_unsigned()) return false;
    const auto number = found->template get<uint64_t>();
    if (number > std::numeric_limits<T>::max()) return false;
    value = static_cast<T>(number);
  } else {
    if (!found->is_number_integer()) return false;
    if (found->is_number_unsigned() &&
        found->template get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      return false;
    }
    value = found->template get<T>();
  }
  return true;
}

// The codec accepts any numbers between the dashes, even if no calendar has them.
bool LooksLikeTime(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == 24 && text[4] == '-' && text[7] == '-' && text[10] == 'T';
}

Json FileToJson(const CheckpointFile& file) {
  Json out = Json::object();
  PutBytes(out, "name", "name64", file.name);
  if (file.is_link()) {
    PutBytes(out, "link", "link64", file.link);
  } else {
    out["size"] = file.size;
    out["mode"] = file.mode;
    out["parts"] = file.parts;
  }
  out["mtime_ns"] = file.mtime_ns;
  return out;
}

bool FileFromJson(const Json& in, CheckpointFile& file) {
  if (!in.is_object() || !GetBytes(in, "name", "name64", file.name) ||
      !GetBytes(in, "link", "link64", file.link) || !GetNumber(in, "size", file.size) ||
      !GetNumber(in, "mode", file.mode) || !GetNumber(in, "mtime_ns", file.mtime_ns)) {
    return false;
  }
  const auto parts = in.find("parts");
  if (parts == in.end()) return true;
  if (!parts->is_array()) return false;
  for (const auto& part : *parts) {
    if (!part.is_string()) return false;
    file.parts.push_back(part.get<std::string>());
  }
  return true;
}

Status CheckFile(const CheckpointFile& file, uint64_t part_bytes) {
  ATHANOR_CHECK_OK(CheckRelativeName(file.name));
  if (file.mode > 0777) return Unusable(file.name, "its mode has more than permission bits");
  if (file.is_link()) {
    if (file.size != 0 || file.mode != 0 || !file.parts.empty()) {
      return Unusable(file.name, "it is a link and has content");
    }
    if (!LinkStaysBeneath(file.name, file.link)) {
      return Unusable(file.name, "it is a link that leads out of its folder");
    }
    return Ok();
  }
  if (file.parts.size() != PartCount(file.size, part_bytes)) {
    return Unusable(file.name,
                    fmt::format("{} parts do not make up {} bytes", file.parts.size(), file.size));
  }
  if (!std::all_of(file.parts.begin(), file.parts.end(), IsDigest)) {
    return Unusable(file.name, "the name of a part is not a sha256");
  }
  return Ok();
}

bool ParseNumber(std::string_view text, uint32_t& number) {
  if (text.empty() || text.front() == '0') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

uint64_t PartCount(uint64_t size, uint64_t part_bytes) {
  return size / part_bytes + (size % part_bytes != 0 ? 1 : 0);
}

uint64_t PartSize(uint64_t size, uint64_t part_bytes, size_t index) {
  return std::min(part_bytes, size - index * part_bytes);
}

Status CheckManifest(const CheckpointManifest& manifest) {
  if (manifest.part_bytes == 0) return Unusable("", "its parts have no size");
  std::set<std::string_view> names;
  const std::string* before = nullptr;
  for (const auto& file : manifest.files) {
    ATHANOR_CHECK_OK(CheckFile(file, manifest.part_bytes));
    if (before != nullptr && *before >= file.name) {
      return Unusable(file.name, "the names are not in order, or it is there twice");
    }
    before = &file.name;
    names.insert(file.name);
  }
  for (const auto& file : manifest.files) {
    for (size_t slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1)) {
      if (names.count(std::string_view(file.name).substr(0, slash)) > 0) {
        return Unusable(file.name, "one of its folders is a file");
      }
    }
  }
  return Ok();
}

std::string FormatManifest(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const auto& file : manifest.files) files.push_back(FileToJson(file));
  Json out = Json::object();
  out["checkpoint"] = ToJson(manifest.info);
  out["shared"] = manifest.shared;
  out["part_bytes"] = manifest.part_bytes;
  out["files"] = std::move(files);
  const std::string body = DumpJson(out) + "\n";
  return fmt::format("{}{} {}\n{}", kHead, kVersion, Sha256Hex(body), body);
}

Result<CheckpointManifest> ParseManifest(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == std::string_view::npos || !StartsWith(text, kHead)) {
    return Damaged("its first line is not that of a manifest");
  }
  const auto words = Split(text.substr(kHead.size(), line - kHead.size()), ' ');
  if (words.size() != 2 || !IsDigest(words[1])) {
    return Damaged("its first line is not that of a manifest");
  }
  const std::string_view body = text.substr(line + 1);
  if (Sha256Hex(body) != words[1]) return Damaged("its checksum is wrong");
  if (words[0] != kVersion) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the manifest of a checkpoint has version {}, this program reads {}",
                            Printable(words[0]), kVersion),
                "use the program that made it, or a newer one");
  }
  ATHANOR_TRY(const Json json, ParseJson(body));
  if (!json.is_object() || !json.contains("checkpoint")) return Damaged("it is not an object");
  const Json& head = json["checkpoint"];
  if (head.is_object() && head.contains("at") && !LooksLikeTime(head["at"])) {
    return Damaged("its time is not one");
  }
  auto info = CheckpointFromJson(head);
  if (!info) return Damaged(info.error().what);
  CheckpointManifest manifest;
  manifest.info = std::move(*info);
  const auto shared = json.find("shared");
  if (shared == json.end() || !shared->is_boolean()) return Damaged("'shared' is missing");
  manifest.shared = shared->get<bool>();
  if (!GetNumber(json, "part_bytes", manifest.part_bytes)) return Damaged("'part_bytes' is wrong");
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return Damaged("'files' is missing");
  for (const auto& entry : *files) {
    CheckpointFile file;
    if (!FileFromJson(entry, file)) return Damaged("the entry of a file is not one");
    manifest.files.push_back(std::move(file));
  }
  if (auto good = CheckManifest(manifest); !good.ok()) {
    return Damaged(good.error().what + ": " + good.error().why);
  }
  return manifest;
}

std::string CheckpointId::ToString() const { return fmt::format("{}-{}", attempt, sequence); }

Result<CheckpointId> CheckpointId::Parse(std::string_view text) {
  CheckpointId id;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos && ParseNumber(text.substr(0, dash), id.attempt) &&
      ParseNumber(text.substr(dash + 1), id.sequence)) {
    return id;
  }
  return Fail(Error{ErrorCode::kInvalid,
                    "not the name of a checkpoint: '" + Printable(text.substr(0, 80)) + "'",
                    "ath checkpoints JOB"}
                  .Why("a checkpoint is named by attempt and number, as 2-5"));
}

}  // namespace athanor
