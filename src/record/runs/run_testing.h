// Everything in a RunStore, collected: for tests, which store little.
#pragma once

#include <utility>

#include "record/runs/run_store.h"

namespace athanor {

inline Result<RunBatch> LoadAll(const RunStore& store) {
  struct Gather : RunVisitor {
    RunBatch all;
    void On(ExperimentRow row) override { all.experiments.push_back(std::move(row)); }
    void On(RunRow row) override { all.runs.push_back(std::move(row)); }
    void On(const LabelView& label) override {
      all.labels.push_back(
          {label.kind, std::string(label.owner), std::string(label.key), std::string(label.value)});
    }
    void On(InputRow row) override { all.inputs.push_back(std::move(row)); }
    void On(ModelLinkRow row) override { all.links.push_back(std::move(row)); }
  } gather;
  ATHANOR_TRY(auto models, store.LoadModels());
  ATHANOR_CHECK_OK(store.Visit(gather));
  gather.all.models = std::move(models.models);
  gather.all.versions = std::move(models.versions);
  gather.all.logged = std::move(models.logged);
  for (auto& label : models.labels) gather.all.labels.push_back(std::move(label));
  return std::move(gather.all);
}

}  // namespace athanor
