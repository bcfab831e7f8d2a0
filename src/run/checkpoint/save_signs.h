// What can be seen of a script's saves from outside: at which step one was made, and what they
// cost. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

namespace athanor {

// The step in the name of a checkpoint file or of its folders: step_120.pt, ckpt-120,
// checkpoint-500/model.bin, epoch=3-step=120.ckpt, iter_0000100/x, model_120.pt, 120.pt. Numbers
// that mean something else (epoch3, resnet50, model-00001-of-00003, mp_rank_00) are not steps: a
// wrong step would mark good points as abandoned, while no step falls back to the metrics.
std::optional<int64_t> StepInName(std::string_view path);

// A moving median of the last few, so that one save on a busy disk does not change the advice.
class SaveCost {
 public:
  void Add(int64_t save_ms);  // a value that is not positive is not a measurement
  int64_t ms() const;         // 0: nothing measured yet
  size_t measured() const { return total_; }

 private:
  std::deque<int64_t> last_;
  size_t total_ = 0;
};

}  // namespace athanor
