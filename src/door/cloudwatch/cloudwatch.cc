#include "door/cloudwatch/cloudwatch.h"

#include <nlohmann/json.hpp>

#include "door/cloudwatch/query_form.h"

namespace athanor {
namespace {

constexpr std::string_view kXmlns = "http://monitoring.amazonaws.com/doc/2010-08-01/";

// A body without any members may be left out.
Result<Json> BodyOf(const AwsCall& call) {
  if (!call.form.empty()) return ObjectFromForm(call.form);
  if (call.request.body.empty()) return Json::object();
  return ParseJson(call.request.body);
}

void RefuseMetrics(const AwsCall& call, AwsError error) {
  // The two protocols name an unknown operation differently.
  if (!call.form.empty() && error.code == "UnknownOperationException") error.code = "InvalidAction";
  if (!call.form.empty() && error.code == "SerializationException") error.code = "MalformedInput";
  call.Refuse(error);
}

void HandleLogs(const CloudWatchSources& sources, const AwsCall& call) {
  const auto body = BodyOf(call);
  if (!body) return call.RefuseJson({400, "SerializationException", body.error().what});
  const auto reply = AnswerLogs(sources, call.operation, *body);
  if (!reply) return call.RefuseJson(reply.error());
  call.Json(200, DumpJson(*reply));
}

void HandleMetrics(const CloudWatchSources& sources, const AwsCall& call) {
  const auto body = BodyOf(call);
  if (!body) return RefuseMetrics(call, {400, "SerializationException", body.error().what});
  const auto reply = AnswerMetrics(sources, call.operation, *body);
  if (!reply) return RefuseMetrics(call, reply.error());
  if (call.form.empty()) return call.Json(200, MetricsJson(*reply));
  call.Xml(kXmlns, MetricsXml(*reply));
}

// On the readers: logs and series are in files.
AwsFront::Handler OnReaders(DoorContext& context,
                            void (*handle)(const CloudWatchSources&, const AwsCall&)) {
  return [&context, handle](const AwsCall& call) {
    if (call.RefusedBelow(Scope::kRead)) return;
    const CloudWatchSources sources{context.clock, context.jobs, context.logs, context.series};
    const bool taken = context.readers.Submit([sources, call, handle] { handle(sources, call); });
    if (!taken) call.Refuse({503, "ServiceUnavailable", "the server is being stopped"});
  };
}

}  // namespace

AwsError StoreFault(const Error& error) {
  const bool damaged = error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kBug;
  return {damaged ? 500 : 503, damaged ? "InternalFailure" : "ServiceUnavailableException",
          error.why.empty() ? error.what : error.what + ": " + error.why};
}

void RegisterCloudWatch(AwsFront& front, DoorContext& context) {
  front.OnTarget("Logs_20140328", OnReaders(context, HandleLogs));
  front.OnTarget("GraniteServiceVersion20100801", OnReaders(context, HandleMetrics));
  front.OnAction("monitoring", OnReaders(context, HandleMetrics));
}

}  // namespace athanor
