// What the proxy (mlflow_proxy.h) does with a call of the MLflow API, and how it answers a client
// that does not wait for the server. Pure.
#pragma once

#include <string>
#include <string_view>

namespace athanor {

enum class CallKind {
  kRefused,  // not one of MLflow's
  kPage,     // a browser that follows a link printed by a client: redirected to the server's page
  kProbe,    // passed on, for anybody
  kAsk,      // its answer matters: passed on
  kLog,      // kept, answered at once
  kTell,     // kept; waits a moment for the server's answer, which may be a refusal
};

// By method, raw path ("/api/2.0/mlflow/runs/log-metric") and body. A call that is not clearly one
// to keep is forwarded, so that the server reports what is wrong with it.
CallKind KindOf(std::string_view method, std::string_view raw_path, std::string_view body);

// Whether an earlier answer is good enough while the server is away: clients ask about a run when
// they end it, and would otherwise wait for minutes.
bool MayBeOld(std::string_view method, std::string_view raw_path);

// Whether the answer is a file, of any size.
bool AnswersFile(std::string_view method, std::string_view raw_path);
// Whether the body is a file, of any size.
bool SendsFile(std::string_view method, std::string_view raw_path);

// How many of the first bytes of the path are words of the API; the rest are names and ids.
size_t WordsOf(std::string_view raw_path);

// The answer to a call that is kept: "{}", or the content of the call.
std::string AnswerForKept(std::string_view raw_path, std::string_view body);

// {"error_code","message"}, as MLflow clients read it.
std::string MlflowErrorBody(std::string_view error_code, std::string_view message);

}  // namespace athanor
