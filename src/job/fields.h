// The field table of each noun: every stored member is named once, and the JSON, store and wire
// forms are made from it. Include it only where a form is made: codec.cc and the store.
#pragma once

#include "job/event.h"
#include "job/inventory.h"
#include "job/record.h"
#include "job/spec_fields.h"

namespace athanor {

template <class V, Of<Cause> T>
void Fields(V& v, T& x) {
  v("kind", x.kind);
  v("text", x.text);
  v("hint", x.hint);
  v("detail", x.detail);
}

template <class V, Of<StopRequest> T>
void Fields(V& v, T& x) {
  v("cause", x.cause);
  v("who", x.who);
  v("at", x.at);
  v("grace_ms", x.grace);
}

template <class V, Of<ExitInfo> T>
void Fields(V& v, T& x) {
  v("code", x.code);
  v("signal", x.signal);
  v("oom_killed", x.oom_killed);
  v("oom_child", x.oom_child);
  v("disk_full", x.disk_full);
  v("done_called", x.done_called);
  v("memory_peak", x.memory_peak);
  v("memory_limit", x.memory_limit);
  v("cpu_ms", x.cpu_ms);
  v("first_rank", x.first_rank);
  v("log_dropped", x.log_dropped);
  v("notice_ms", x.notice_ms);
  v("saved_ms", x.saved_ms);
  v("matched", x.matched);
  v("spawn_error", x.spawn_error);
}

template <class V, Of<Placement> T>
void Fields(V& v, T& x) {
  v("backend", x.backend);
  v("cpu_millis", x.cpu_millis);
  v("memory_bytes", x.memory_bytes);
  v("gpus", x.gpus);
  v("auto_gpus", x.auto_gpus);
  v("simulated", x.simulated);
}

template <class V, Of<RankEnd> T>
void Fields(V& v, T& x) {
  v("rank", x.rank);
  v("code", x.code);
  v("signal", x.signal);
  v("ran_ms", x.ran_ms);
}

template <class V, Of<HostUsage> T>
void Fields(V& v, T& x) {
  v("cpu_percent", x.cpu_percent);
  v("memory_bytes", x.memory_bytes);
  v("memory_peak", x.memory_peak);
}

template <class V, Of<Host> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("address", x.address);
  v("handle", x.handle);
  v("placement", x.placement);
  v("up", x.up);
  v("started", x.started);
  v("exited", x.exited);
  v("over", x.over);
  v("last_seen", x.last_seen);
  v("held_ms", x.held_ms);
  v("exit", x.exit);
  v("cause", x.cause);
  v("ranks", x.ranks);
  v("usage", x.usage);
}

template <class V, Of<FirstFall> T>
void Fields(V& v, T& x) {
  v("host", x.host);
  v("rank", x.rank);
  v("at", x.at);
  v("cause", x.cause);
}

template <class V, Of<CheckpointInfo> T>
void Fields(V& v, T& x) {
  v("id", x.id);
  v("attempt", x.attempt);
  v("step", x.step);
  v("files", x.files);
  v("bytes", x.bytes);
  v("new_bytes", x.new_bytes);
  v("at", x.at);
  v("held_ms", x.held_ms);
  v("save_ms", x.save_ms);
  v("sync_ms", x.sync_ms);
}

template <class V, Of<IntervalAdvice> T>
void Fields(V& v, T& x) {
  v("every_ms", x.every_ms);
  v("save_ms", x.save_ms);
  v("mtbf_ms", x.mtbf_ms);
  v("source", x.source);
}

template <class V, Of<Firing> T>
void Fields(V& v, T& x) {
  v("rule", x.rule);
  v("kind", x.kind);
  v("metric", x.metric);
  v("step", x.step);
  v("value", x.value);
  v("threshold", x.threshold);
  v("action", x.action);
  v("advice", x.advice);
  v("at", x.at);
}

template <class V, Of<Attempt> T>
void Fields(V& v, T& x) {
  v("id", x.id);
  v("number", x.number);
  v("placement", x.placement);
  v("handle", x.handle);
  v("placed", x.placed);
  v("prepared", x.prepared);
  v("started", x.started);
  v("exited", x.exited);
  v("ended", x.ended);
  v("held_ms", x.held_ms);
  v("setup_ms", x.setup_ms);
  v("exit", x.exit);
  v("cause", x.cause);
  v("off", x.off);
  v("type", x.type);
  v("micros_per_hour", x.micros_per_hour);
  v("spot", x.spot);
  v("interrupt", x.interrupt);
  v("resumed_from", x.resumed_from);
  v("resumed_step", x.resumed_step);
  v("saved", x.saved);
  v("lost_ms", x.lost_ms);
  v("hosts", x.hosts);
  v("fell", x.fell);
}

template <class V, Of<LeftFile> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("bytes", x.bytes);
  v("why", x.why);
}

template <class V, Of<LeftOut> T>
void Fields(V& v, T& x) {
  v("files", x.files);
  v("bytes", x.bytes);
  v("largest", x.largest);
}

template <class V, Of<Output> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("blob", x.blob);
  v("bytes", x.bytes);
  v("files", x.files);
  v("largest", x.largest);
  v("left_out", x.left_out);
}

template <class V, Of<PriceTag> T>
void Fields(V& v, T& x) {
  v("micros_per_hour", x.micros_per_hour);
  v("currency", x.currency);
  v("source", x.source);
}

template <class V, Of<JobRecord> T>
void Fields(V& v, T& x) {
  v("id", x.id);
  v("key", x.key);
  v("spec_hash", x.spec_hash);
  v("user", x.user);
  v("spec", x.spec);
  v("state", x.state);
  v("created", x.created);
  v("updated", x.updated);
  v("ended", x.ended);
  v("last_seen", x.last_seen);
  v("event_seq", x.event_seq);
  v("cause", x.cause);
  v("stop", x.stop);
  v("attempts", x.attempts);
  v("outputs", x.outputs);
  v("price", x.price);
  v("simulated", x.simulated);
  v("packages", x.packages);
  v("same_as", x.same_as);
  v("parent", x.parent);
  v("resume_job", x.resume_job);
  v("resume_from", x.resume_from);
  v("retries", x.retries);
  v("advice", x.advice);
  v("firings", x.firings);
  v("spot_fell_back", x.spot_fell_back);
}

template <class V, Of<StoredEvent> T>
void Fields(V& v, T& x) {
  v("job", x.job);
  v("seq", x.seq);
  v("at", x.at);
  v("name", x.name);
  v("state", x.state);
  v("attempt", x.attempt);
  v("cause", x.cause);
}

template <class V, Of<Inventory> T>
void Fields(V& v, T& x) {
  v("host", x.host);
  v("cpu_millis", x.cpu_millis);
  v("memory_bytes", x.memory_bytes);
  v("gpus", x.gpus);
  v("gpu_model", x.gpu_model);
}

}  // namespace athanor
