#include "net/http/content_coding.h"

#include <charconv>

#include "base/io/compress.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kTagDigits = 32;

// "0", "0.5", "1.000" in thousandths; anything else does not count against the client.
int QualityOf(std::string_view parameter) {
  constexpr int kWhole = 1000;
  if (parameter.size() < 3 || (parameter[0] != 'q' && parameter[0] != 'Q') || parameter[1] != '=') {
    return kWhole;
  }
  double value = 1;
  const auto text = parameter.substr(2);
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (read.ec != std::errc() || !(value >= 0) || value > 1) return kWhole;
  return static_cast<int>(value * kWhole);
}

bool IsText(std::string_view type) {
  type = Trim(type.substr(0, type.find(';')));
  if (type == "text/event-stream") return false;
  return type == "application/json" || type == "application/x-ndjson" ||
         type == "application/xml" || type == "application/yaml" || StartsWith(type, "text/");
}

bool Has(std::string_view list, std::string_view tag) {
  for (const auto& part : Split(list, ',')) {
    auto one = Trim(part);
    if (one == "*") return true;
    if (StartsWith(one, "W/")) one.remove_prefix(2);
    if (one == tag) return true;
  }
  return false;
}

bool Taggable(const Wishes& wishes, const Response& response) {
  return wishes.get && response.status == 200 && !response.headers.Has("ETag") &&
         response.headers.Get("Cache-Control") != "no-store";
}

}  // namespace

Coding ChooseCoding(std::string_view accept_encoding) {
  int gzip = -1;
  int zstd = -1;
  int rest = -1;
  for (const auto& part : Split(accept_encoding, ',')) {
    const std::string_view item = part;
    const size_t semicolon = item.find(';');
    const auto name = Trim(item.substr(0, semicolon));
    const int quality =
        semicolon == std::string_view::npos ? 1000 : QualityOf(Trim(item.substr(semicolon + 1)));
    if (SameName(name, "gzip") || SameName(name, "x-gzip")) gzip = quality;
    if (SameName(name, "zstd")) zstd = quality;
    if (name == "*") rest = quality;
  }
  // A client that accepts anything knows gzip; zstd is only for clients that name it.
  if (gzip < 0) gzip = rest;
  if (zstd > 0 && zstd >= gzip) return Coding::kZstd;
  return gzip > 0 ? Coding::kGzip : Coding::kNone;
}

Wishes WishesOf(const Request& request) {
  Wishes wishes;
  wishes.coding = ChooseCoding(request.headers.Get("Accept-Encoding"));
  const auto have = request.headers.Get("If-None-Match");
  // Only for clients that can use it: a program that asks for no coding also keeps no answers.
  wishes.get = request.method == "GET" && (wishes.coding != Coding::kNone || !have.empty());
  if (wishes.get) wishes.have = std::string(have);
  return wishes;
}

bool Fits(const Wishes& wishes, const Response& response) {
  if (!wishes.any() || response.body.size() <= kLeastEncoded ||
      response.body.size() > kMostEncoded || response.status == 206) {
    return false;
  }
  return IsText(response.headers.Get("Content-Type")) &&
         !response.headers.Has("Content-Encoding") && !response.headers.Has("Content-Disposition");
}

void Fit(const Wishes& wishes, Response& response) {
  if (!Fits(wishes, response)) return;
  if (Taggable(wishes, response)) {
    // Weak: the same for every coding.
    const std::string tag = "\"" + Sha256Hex(response.body).substr(0, kTagDigits) + "\"";
    response.headers.Add("ETag", "W/" + tag);
    if (!response.headers.Has("Cache-Control")) {
      response.headers.Add("Cache-Control", "private, no-cache");
    }
    if (Has(wishes.have, tag)) {
      response.status = 304;
      response.body.clear();
    }
  }
  if (!response.headers.HasToken("Vary", "Accept-Encoding")) {
    response.headers.Add("Vary", "Accept-Encoding");
  }
  if (response.body.empty() || wishes.coding == Coding::kNone) return;
  const bool zstd = wishes.coding == Coding::kZstd;
  response.body = zstd ? Zstd(response.body) : Gzip(response.body);
  response.headers.Add("Content-Encoding", zstd ? "zstd" : "gzip");
}

}  // namespace athanor
