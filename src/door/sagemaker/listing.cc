// ListTrainingJobs and Search.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/paging.h"
#include "door/sagemaker/search.h"
#include "door/sagemaker/service.h"
#include "door/sagemaker/shapes.h"
#include "door/sagemaker/view.h"

namespace athanor::sagemaker {
namespace {

constexpr size_t kMostJobs = 1'000'000;

struct Listed {
  TextRule sort_by{.one_of = {"Name", "CreationTime", "Status"}};
  std::string contains;
  std::string status;
  double created_after = -INFINITY, created_before = INFINITY;
  double modified_after = -INFINITY, modified_before = INFINITY;
  std::string by = "CreationTime";
  bool ascending = false;
};

double TimeIn(const Json& body, const char* key, double otherwise) {
  return body.contains(key) && body[key].is_number() ? body[key].get<double>() : otherwise;
}

Listed ReadListed(const Json& body, ShapeCheck& check) {
  Listed listed;
  listed.contains = check.Text(body, "NameContains", "", {0, 63}).value_or("");
  listed.status =
      check
          .Text(body, "StatusEquals", "",
                {.one_of = {"InProgress", "Completed", "Failed", "Stopping", "Stopped"}})
          .value_or("");
  listed.by = check.Text(body, "SortBy", "", listed.sort_by).value_or("CreationTime");
  listed.ascending =
      check.Text(body, "SortOrder", "", {.one_of = {"Ascending", "Descending"}})
          .value_or(listed.by == "CreationTime" ? "Descending" : "Ascending") == "Ascending";
  listed.created_after = TimeIn(body, "CreationTimeAfter", -INFINITY);
  listed.created_before = TimeIn(body, "CreationTimeBefore", INFINITY);
  listed.modified_after = TimeIn(body, "LastModifiedTimeAfter", -INFINITY);
  listed.modified_before = TimeIn(body, "LastModifiedTimeBefore", INFINITY);
  return listed;
}

}  // namespace

void Service::ListTrainingJobs(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto page = PageOf(asked.body, check);
  const auto listed = ReadListed(asked.body, check);
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  std::set<JobId> stopping;
  for (const auto* live : context_.engine.Holding()) {
    if (live->stop) stopping.insert(live->id);
  }
  OnPool(
      [this, page, listed, stopping, region = asked.region]() -> Answer {
        JobQuery query;
        query.limit = kMostJobs;
        auto jobs = context_.jobs.List(query);
        if (!jobs) return tl::unexpected(Refusal(jobs.error()));
        struct Row {
          const JobSummary* job;
          std::string status;
        };
        std::vector<Row> rows;
        for (const auto& job : *jobs) {
          const double created = Seconds(job.created);
          const double modified = job.ended.ms ? Seconds(job.ended) : created;
          Row row{&job, stopping.contains(job.id) ? "Stopping" : StatusOf(job.state)};
          if (job.name.find(listed.contains) == std::string::npos ||
              (!listed.status.empty() && row.status != listed.status) ||
              created <= listed.created_after || created >= listed.created_before ||
              modified <= listed.modified_after || modified >= listed.modified_before) {
            continue;
          }
          rows.push_back(std::move(row));
        }
        // Newest first as they come; equal keys keep that order.
        std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
          const auto& left = listed.ascending ? a : b;
          const auto& right = listed.ascending ? b : a;
          if (listed.by == "Name") return left.job->name < right.job->name;
          if (listed.by == "Status") return left.status < right.status;
          return left.job->created < right.job->created;
        });
        Json all = Json::array();
        const size_t end = std::min(rows.size(), page.from + page.most + 1);
        for (size_t i = 0; i < end; ++i) {
          if (i < page.from) {
            all.push_back(nullptr);
            continue;
          }
          const auto& job = *rows[i].job;
          Json row = {{"TrainingJobName", job.name},
                      {"TrainingJobArn", TrainingJobArn(region, job.name)},
                      {"CreationTime", Seconds(job.created)},
                      {"LastModifiedTime", Seconds(job.ended.ms ? job.ended : job.created)},
                      {"TrainingJobStatus", rows[i].status}};
          if (job.ended.ms) row["TrainingEndTime"] = Seconds(job.ended);
          all.push_back(std::move(row));
        }
        return Cut(all, page, "TrainingJobSummaries");
      },
      answered);
}

void Service::Search(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto page = PageOf(asked.body, check);
  const auto resource = check.Text(asked.body, "Resource", "", {1, 100}, Need::kRequired);
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  if (*resource != "TrainingJob") {
    return answered(tl::unexpected(
        Invalid("Search finds Resource TrainingJob here, not " + Printable(*resource))));
  }
  auto wanted = ReadSearch(asked.body);
  if (!wanted) return answered(tl::unexpected(wanted.error()));
  OnPool(
      [this, page, wanted = *wanted, region = asked.region]() -> Answer {
        Json found = Json::array();
        auto walked = context_.jobs.ForEach([&](const JobRecord& record) -> Status {
          auto metrics = context_.series.Summaries(record.id, ResumesOf(record));
          auto events = context_.jobs.Events(record.id, 0, 10'000);
          Json view =
              DescribeView({record, events ? *events : std::vector<StoredEvent>{},
                            metrics ? *metrics : std::vector<SeriesSummary>{}, region, nullptr});
          auto tags = context_.documents.Find(kTagsKind, "training-job/" + record.spec.name);
          if (tags && *tags) {
            if (auto list = ParseJson((*tags)->text)) view["Tags"] = std::move(*list);
          } else {
            view["Tags"] = Json::array();
            for (const auto& [key, value] : record.spec.tags) {
              view["Tags"].push_back({{"Key", key}, {"Value", value}});
            }
          }
          if (wanted.Matches(view)) found.push_back(std::move(view));
          return Ok();
        });
        if (!walked) return tl::unexpected(Refusal(walked.error()));
        wanted.Sort(found);
        Json results = Json::array();
        for (auto& view : found) results.push_back({{"TrainingJob", std::move(view)}});
        return Cut(results, page, "Results");
      },
      answered);
}

}  // namespace athanor::sagemaker
