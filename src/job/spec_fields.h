// The field tables of a JobSpec and its parts; see job/fields.h.
#pragma once

#include <concepts>
#include <type_traits>

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

template <class V, Of<SpotSpec> T>
void Fields(V& v, T& x) {
  v("use", x.use);
  v("max_wait_ms", x.max_wait);
  v("fallback", x.fallback);
  v("preempt_after_ms", x.preempt_after);
  v("preempt_every_ms", x.preempt_every);
  v("preempt_jitter_ms", x.preempt_jitter);
  v("preempt_seed", x.preempt_seed);
}

template <class V, Of<ResourceSpec> T>
void Fields(V& v, T& x) {
  v("type", x.type);
  v("cpu_millis", x.cpu_millis);
  v("memory_bytes", x.memory_bytes);
  v("gpus", x.gpus);
  v("no_gpus", x.no_gpus);
  v("nodes", x.nodes);
  v("nodes_most", x.nodes_most);
  v("processes", x.processes);
  v("spot", x.spot);
}

template <class V, Of<LimitSpec> T>
void Fields(V& v, T& x) {
  v("max_runtime_ms", x.max_runtime);
  v("stop_grace_ms", x.stop_grace);
  v("lost_after_ms", x.lost_after);
  v("log_bytes", x.log_bytes);
  v("hang_after_ms", x.hang_after);
  v("hang_steps", x.hang_steps);
  v("hang_action", x.hang_action);
}

template <class V, Of<ChannelSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("from", x.from);
  v("mode", x.mode);
  v("manifest", x.manifest);
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

template <class V, Of<CheckpointSpec> T>
void Fields(V& v, T& x) {
  v("store", x.store);
  v("every_ms", x.every);
  v("keep_last", x.keep_last);
  v("keep_best", x.keep_best);
  v("best_metric", x.best_metric);
  v("best_goal", x.best_goal);
  v("uri", x.uri);
}

template <class V, Of<OutputSpec> T>
void Fields(V& v, T& x) {
  v("keep", x.keep);
  v("files", x.files);
  v("limit", x.limit);
}

template <class V, Of<RuleSpec> T>
void Fields(V& v, T& x) {
  v("name", x.name);
  v("rule", x.rule);
  v("metric", x.metric);
  v("value", x.value);
  v("window", x.window);
  v("min_delta", x.min_delta);
  v("goal", x.goal);
  v("after_ms", x.after);
  v("action", x.action);
  v("url", x.url);
}

template <class V, Of<RetrySpec> T>
void Fields(V& v, T& x) {
  v("max", x.max);
  v("on", x.on);
  v("backoff_ms", x.backoff);
  v("escalate", x.escalate);
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
  v("checkpoints", x.checkpoints);
  v("outputs", x.outputs);
  v("metrics", x.metrics);
  v("rules", x.rules);
  v("secrets", x.secrets);
  v("tags", x.tags);
  v("retry", x.retry);
  v("priority", x.priority);
  v("debug", x.debug);
  v("output_to", x.output_to);
  v("output_plain", x.output_plain);
  v("origin", x.origin);
  v("request", x.request);
  v("notes", x.notes);
}

}  // namespace athanor
