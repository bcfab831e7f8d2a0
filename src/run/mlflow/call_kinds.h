// What becomes of a call of MLflow's API in the proxy (mlflow_proxy.h), and what a client is told
// that does not wait for the server. Pure.
#pragma once

#include <string>
#include <string_view>

namespace athanor {

enum class CallKind {
  kRefused,  // not one of MLflow's
  kPage,     // a browser that follows the link which a client printed: sent to the server's page
  kProbe,    // passed on, for anybody
  kAsk,      // its answer matters: passed on
  kLog,      // kept, answered at once
  kTell,     // kept; the server's answer is waited for a moment, since it may be a refusal
};

// By method, raw path ("/api/2.0/mlflow/runs/log-metric") and body. What is not plainly a call to
// keep is asked, so that the server finds the words for what is wrong with it.
CallKind KindOf(std::string_view method, std::string_view raw_path, std::string_view body);

// Whether an earlier answer will do while the server is away: clients ask who a run is when they end
// it, and would not end for minutes.
bool MayBeOld(std::string_view method, std::string_view raw_path);

// Whether the answer is a file, of any size.
bool AnswersFile(std::string_view method, std::string_view raw_path);
// Whether the body is a file, of any size.
bool SendsFile(std::string_view method, std::string_view raw_path);

// How many of the path's first bytes are words of the API; what follows are names and ids.
size_t WordsOf(std::string_view raw_path);

// The answer to a call that is kept: "{}", or what it says itself.
std::string AnswerForKept(std::string_view raw_path, std::string_view body);

// {"error_code","message"}, as MLflow's clients read it.
std::string MlflowErrorBody(std::string_view error_code, std::string_view message);

}  // namespace athanor
