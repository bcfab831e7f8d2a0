#include "net/http/request_parser.h"

#include <charconv>
#include <limits>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/text/text.h"

namespace athanor {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastText = boost::beast::string_view;

std::string_view View(BeastText text) { return {text.data(), text.size()}; }

// Origin form, or absolute form as proxies send it; anything else is not a path.
bool SplitTarget(Request& request) {
  std::string_view rest = request.target;
  if (rest.size() > 7 && SameName(rest.substr(0, 7), "http://")) {
    rest.remove_prefix(7);
    const size_t start = rest.find_first_of("/?");
    rest = start == std::string_view::npos ? "/" : rest.substr(start);
  }
  const size_t mark = rest.find('?');
  request.raw_path = rest.substr(0, mark);
  if (mark != std::string_view::npos) request.raw_query = rest.substr(mark + 1);
  if (request.raw_path.empty()) request.raw_path = "/";
  if (request.raw_path[0] != '/' && request.target != "*") return false;
  request.path = UrlDecode(request.raw_path).value_or("");
  auto query = ParseQuery(request.raw_query);
  if (!query) return false;
  request.query = std::move(*query);
  return true;
}

}  // namespace

struct RequestParser::Impl final : http::basic_parser<true> {
  Request request_value;
  std::optional<Problem> problem;
  std::optional<uint64_t> length;
  const std::function<void(std::string_view)>* on_body = nullptr;
  size_t max_head_bytes = 0;
  size_t head_bytes = 0;
  bool head_done = false;
  bool started = false;

  void Refuse(int status, std::string what) {
    if (!problem) problem = Problem{status, std::move(what)};
  }

  // Beast applies its limit again for each piece that it gets.
  void CountHead(size_t taken, size_t pending) {
    head_bytes += taken;
    if (head_bytes + pending > max_head_bytes) Refuse(431, "the headers are too large");
  }

  void CheckHead() {
    const Headers& headers = request_value.headers;
    if (!SplitTarget(request_value)) return Refuse(400, "the request target is malformed");
    const size_t lengths = headers.Count("Content-Length");
    const size_t codings = headers.Count("Transfer-Encoding");
    if (codings > 0) {
      if (lengths > 0) return Refuse(400, "both a length and a transfer encoding are given");
      if (request_value.minor_version == 0)
        return Refuse(400, "HTTP/1.0 has no transfer encodings");
      if (codings > 1 || !SameName(headers.Get("Transfer-Encoding"), "chunked")) {
        return Refuse(501, "no transfer encoding but chunked is understood");
      }
    }
    if (lengths > 1) return Refuse(400, "several lengths are given");
    if (lengths == 1) {
      const std::string_view text = headers.Get("Content-Length");
      uint64_t value = 0;
      const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc() || stop != text.data() + text.size()) {
        return Refuse(400, "the length is not a number");
      }
      length = value;
    }
    const size_t hosts = headers.Count("Host");
    if (hosts > 1 || (hosts == 0 && request_value.minor_version == 1)) {
      return Refuse(400, "exactly one Host header is needed");
    }
  }

  void on_request_impl(http::verb, BeastText method, BeastText target, int version,
                       error_code&) override {
    request_value.method = View(method);
    request_value.target = View(target);
    request_value.minor_version = version % 10;
  }
  void on_response_impl(int, BeastText, int, error_code&) override {}
  void on_field_impl(http::field, BeastText name, BeastText value, error_code&) override {
    // Trailers arrive after the head has been judged; they are dropped.
    if (!head_done) request_value.headers.Add(std::string(View(name)), std::string(View(value)));
  }
  void on_header_impl(error_code&) override {
    head_done = true;
    CheckHead();
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastText body, error_code&) override {
    (*on_body)(View(body));
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText body, error_code&) override {
    (*on_body)(View(body));
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

RequestParser::RequestParser(size_t max_head_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->max_head_bytes = max_head_bytes;
  impl_->header_limit(static_cast<std::uint32_t>(max_head_bytes));
  // Not boost::none: in 1.74 every length exceeds that. The connection counts.
  impl_->body_limit(std::numeric_limits<std::uint64_t>::max());
}

RequestParser::~RequestParser() = default;

size_t RequestParser::Feed(std::string_view bytes,
                           const std::function<void(std::string_view)>& on_body) {
  Impl& impl = *impl_;
  impl.on_body = &on_body;
  const size_t given = bytes.size();
  // Clients may send an empty line after a body; RFC 9112 asks to skip it.
  while (!impl.started && bytes.substr(0, 2) == "\r\n") bytes.remove_prefix(2);
  if (!impl.started && bytes != "\r") impl.started = !bytes.empty();
  const bool had_head = impl.head_done;
  while (impl.started && !bytes.empty() && !impl.problem && !impl.is_done()) {
    error_code error;
    const size_t taken = impl.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(taken);
    if (!had_head) impl.CountHead(taken, impl.head_done ? 0 : bytes.size());
    if (error == http::error::need_more) break;
    if (error) {
      const bool too_large = error == http::error::header_limit;
      impl.Refuse(too_large ? 431 : 400, too_large ? "the headers are too large" : error.message());
      break;
    }
    if (impl.head_done && !had_head) break;
  }
  impl.on_body = nullptr;
  return given - bytes.size();
}

const std::optional<RequestParser::Problem>& RequestParser::problem() const {
  return impl_->problem;
}
bool RequestParser::head_done() const { return impl_->head_done; }
bool RequestParser::done() const { return impl_->head_done && impl_->is_done(); }
Request& RequestParser::request() { return impl_->request_value; }
std::optional<uint64_t> RequestParser::content_length() const { return impl_->length; }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::expects_continue() const {
  return impl_->request_value.minor_version == 1 &&
         SameName(impl_->request_value.headers.Get("Expect"), "100-continue");
}

}  // namespace athanor
