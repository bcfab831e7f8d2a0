// RunSender sends points to runs of the server, several runs at a time: reading files continues
// while the server stores, and no run waits for the commit of another. The points of one run are
// sent one request after the other, in order; each is stored once, however often it is sent.
//
// Threads: one calls it. It has a few of its own, each with a connection, started as runs arrive:
// they have the signal mask of the first Take. After an error nothing more is sent, and every call
// returns that error.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/exec/mutex.h"
#include "base/result.h"
#include "cli/client.h"
#include "cli/event_source.h"

namespace athanor {

class RunSender {
 public:
  // Runs are named after `origin`, by which the server recognises them.
  RunSender(Home home, std::string origin, std::string experiment);
  ~RunSender();  // what is not sent by now is dropped

  struct Brought {
    std::string id;
    bool made = false;
    uint64_t read = 0;
    uint64_t stored = 0;
    int64_t last_ms = 0;
    size_t lane = 0;
  };

  // Returns once it is in the queue, which is short.
  Status Take(EventSource::Run points);
  Status Wait();    // until the server has all that was taken
  Status Finish();  // the same, and all runs are ended
  // By name; after Wait or Finish.
  const std::map<std::string, Brought>& runs() const { return runs_; }

 private:
  struct Work {
    Brought* run = nullptr;
    EventSource::Run points;
    bool finish = false;  // instead of points
  };
  struct Lane {
    std::deque<Work> queue;
    std::thread thread;
  };

  void Add(Work work) REQUIRES(mutex_);
  void Serve(Lane& lane);
  Status Do(Client& client, Work& work);
  Status MakeRun(Client& client, const EventSource::Run& points, Brought& run);

  const Home home_;
  const std::string origin_;
  const std::string experiment_;
  std::map<std::string, Brought> runs_;  // an entry is its lane's while work is under way

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<Lane>> lanes_ GUARDED_BY(mutex_);
  size_t under_way_ GUARDED_BY(mutex_) = 0;  // queued or being sent
  bool stopping_ GUARDED_BY(mutex_) = false;
  Status failed_ GUARDED_BY(mutex_);
};

}  // namespace athanor
