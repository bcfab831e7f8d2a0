// The ceiling for durable submits: a bare SQLite in WAL mode with synchronous=FULL, one writer
// thread that commits whatever has gathered, and producers that each wait until their row is
// durable before they make the next. No HTTP, no parsing, one table. Prints one JSON object.
//
//   group_commit DATABASE PRODUCERS ROWS ROW_BYTES
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const char* what, sqlite3* db) {
  std::fprintf(stderr, "group_commit: %s: %s\n", what, db ? sqlite3_errmsg(db) : "");
  std::exit(1);
}

void Execute(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) Die(sql, db);
}

struct Row {
  std::string key;
  bool durable = false;
};

class GroupCommit {
 public:
  GroupCommit(const char* path, size_t bytes) : payload_(bytes, 'x') {
    if (sqlite3_open(path, &db_) != SQLITE_OK) Die("open", db_);
    Execute(db_, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                 "CREATE TABLE jobs (key TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;");
    const char* sql = "INSERT INTO jobs VALUES (?1, ?2)";
    if (sqlite3_prepare_v2(db_, sql, -1, &insert_, nullptr) != SQLITE_OK) Die(sql, db_);
    writer_ = std::thread([this] { Write(); });
  }
  ~GroupCommit() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    gathered_.notify_one();
    writer_.join();
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
  }

  void Put(Row& row) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(&row);
    gathered_.notify_one();
    committed_.wait(lock, [&] { return row.durable; });
  }

 private:
  void Write() {
    std::vector<Row*> batch;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        for (auto* row : batch) row->durable = true;
        if (!batch.empty()) committed_.notify_all();
        batch.clear();
        gathered_.wait(lock, [&] { return over_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        batch.swap(waiting_);
      }
      Execute(db_, "BEGIN IMMEDIATE");
      for (auto* row : batch) {
        sqlite3_bind_text(insert_, 1, row->key.data(), int(row->key.size()), SQLITE_STATIC);
        sqlite3_bind_text(insert_, 2, payload_.data(), int(payload_.size()), SQLITE_STATIC);
        if (sqlite3_step(insert_) != SQLITE_DONE) Die("insert", db_);
        sqlite3_reset(insert_);
      }
      Execute(db_, "COMMIT");
    }
  }

  const std::string payload_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  std::mutex mutex_;
  std::condition_variable gathered_;
  std::condition_variable committed_;
  std::vector<Row*> waiting_;
  bool over_ = false;
  std::thread writer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) Die("usage: group_commit DATABASE PRODUCERS ROWS ROW_BYTES", nullptr);
  const size_t producers = std::strtoull(argv[2], nullptr, 10);
  const size_t each = std::strtoull(argv[3], nullptr, 10) / producers;
  std::vector<std::vector<double>> took(producers);
  double seconds = 0;
  {
    GroupCommit store(argv[1], std::strtoull(argv[4], nullptr, 10));
    std::vector<std::thread> threads;
    const auto start = Clock::now();
    for (size_t p = 0; p < producers; ++p) {
      threads.emplace_back([&, p] {
        for (size_t i = 0; i < each; ++i) {
          Row row{"bench-" + std::to_string(p) + "-" + std::to_string(i)};
          const auto begun = Clock::now();
          store.Put(row);
          took[p].push_back(std::chrono::duration<double>(Clock::now() - begun).count());
        }
      });
    }
    for (auto& thread : threads) thread.join();
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::vector<double> all;
  for (auto& part : took) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  if (all.empty()) Die("fewer rows than producers", nullptr);
  std::printf("{\"rows\":%zu,\"seconds\":%.6f,\"rate\":%.1f,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
              all.size(), seconds, double(all.size()) / seconds, 1e3 * all[all.size() / 2],
              1e3 * all[size_t(double(all.size()) * 0.99)]);
}
