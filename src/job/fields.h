// The field table of each noun: one place names every stored member, and the
// JSON, store and wire forms are made from it. Included where a form is made: codec.cc and the store.
#pragma once

#include <concepts>
#include <type_traits>

#include "job/event.h"
#include "job/inventory.h"
#include "job/record.h"
#include "job/spec.h"

namespace athanor {

template <class T, class Noun>
concept Of = std::same_as<std::remove_const_t<T>, Noun>;

template <class V, Of<Param> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("value", x.value);
  v("kind", x.kind);
}

template <class V, Of<SourceSpec> T>
void Fields(V& v, T& x) {
  v("dir", x.dir);
  v("ignore", x.ignore);
  v("max_size", x.max_size);
  v("bundle", x.bundle);
  v("files", x.files);
  v("bytes", x.bytes);
  v("git_commit", x.git_commit);
  v("git_branch", x.git_branch);
  v("git_diff", x.git_diff);
}

template <class V, Of<EnvironmentSpec> T>
void Fields(V& v, T& x) {
  v("base", x.base);
  v("python", x.python);
  v("requirements", x.requirements);
  v("conda", x.conda);
  v("apt", x.apt);
  v("image", x.image);
  v("index_url", x.index_url);
  v("index_secret", x.index_secret);
}

template <class V, Of<ResourceSpec> T>
void Fields(V& v, T& x) {
  v("type", x.type);
  v("cpu_millis", x.cpu_millis);
  v("memory_bytes", x.memory_bytes);
  v("gpus", x.gpus);
}

template <class V, Of<LimitSpec> T>
void Fields(V& v, T& x) {
  v("max_runtime_ms", x.max_runtime);
  v("stop_grace_ms", x.stop_grace);
  v("lost_after_ms", x.lost_after);
  v("log_bytes", x.log_bytes);
}

template <class V, Of<ChannelSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("from", x.from);
  v("mode", x.mode);
}

template <class V, Of<MetricSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("regex", x.regex);
  v("step_regex", x.step_regex);
}

template <class V, Of<SecretSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("source", x.source);
  v("locator", x.locator);
  v("as", x.as);
  v("optional", x.optional);
}

template <class V, Of<RetrySpec> T>
void Fields(V& v, T& x) {
  v("max", x.max);
  v("on", x.on);
  v("backoff_ms", x.backoff);
}

template <class V, Of<JobSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("experiment", x.experiment);
  v("run", x.run);
  v("command", x.command);
  v("shell", x.shell);
  v("entry", x.entry);
  v("params", x.params);
  v("env", x.env);
  v("inherited", x.inherited);
  v("source", x.source);
  v("environment", x.environment);
  v("resources", x.resources);
  v("limits", x.limits);
  v("data", x.data);
  v("checkpoint_dir", x.checkpoint_dir);
  v("metrics", x.metrics);
  v("secrets", x.secrets);
  v("tags", x.tags);
  v("retry", x.retry);
  v("priority", x.priority);
  v("debug", x.debug);
  v("origin", x.origin);
}

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
  v("disk_full", x.disk_full);
  v("done_called", x.done_called);
  v("memory_peak", x.memory_peak);
  v("memory_limit", x.memory_limit);
  v("cpu_ms", x.cpu_ms);
  v("first_rank", x.first_rank);
  v("log_dropped", x.log_dropped);
  v("spawn_error", x.spawn_error);
}

template <class V, Of<Placement> T>
void Fields(V& v, T& x) {
  v("backend", x.backend);
  v("cpu_millis", x.cpu_millis);
  v("memory_bytes", x.memory_bytes);
  v("gpus", x.gpus);
  v("simulated", x.simulated);
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
}

template <class V, Of<Output> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("blob", x.blob);
  v("bytes", x.bytes);
  v("files", x.files);
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
