// Where the stores of a server are beneath its home. Names only; nothing is created.
#pragma once

#include <string>

namespace athanor {

struct StoreLayout {
  std::string root;
  std::string server() const { return root + "/server"; }  // not for jobs to see
  std::string database() const { return root + "/server/athanor.db"; }
  std::string reserve() const { return root + "/server/reserve"; }
  std::string secret_key() const { return root + "/server/secret.key"; }
  std::string ingest_key() const { return root + "/server/ingest.key"; }
  // By which agents of other machines know the server (net/certificate.h), if it has any.
  std::string agents_key() const { return root + "/server/agents.key"; }
  std::string logs() const { return root + "/server/logs"; }
  std::string series() const { return root + "/server/series"; }
  std::string kept_metrics() const { return root + "/server/metrics.kept"; }
  std::string blobs() const { return root + "/blobs"; }
  std::string objects() const { return root + "/objects"; }
  std::string object_index() const { return root + "/objects/index.db"; }
  std::string artifacts() const { return root + "/artifacts"; }  // of runs
  std::string attempts() const { return root + "/attempts"; }
  std::string jobs() const { return root + "/jobs"; }
  std::string job(const std::string& id) const { return jobs() + "/" + id; }
  std::string settings() const { return root + "/settings.yaml"; }
  std::string types() const { return root + "/types.csv"; }
  std::string lock() const { return root + "/server.lock"; }
  std::string lost_and_found() const { return root + "/lost+found"; }
};

}  // namespace athanor
