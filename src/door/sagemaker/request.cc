#include "door/sagemaker/request.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/sagemaker/hyper_parameters.h"
#include "door/sagemaker/shapes.h"
#include "job/object_uri.h"
#include "submit/spec_check.h"

namespace athanor::sagemaker {
namespace {

using std::chrono::seconds;

constexpr char kUriPattern[] = "(https|s3|file)://([^/]*)/?(.*)";
constexpr char kRolePattern[] = R"(arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+)";
constexpr char kInstancePattern[] = "(ml\\.[a-z0-9\\-]+\\.[a-z0-9\\-]+|local|local_gpu)";
constexpr int64_t kDay = 86'400;
constexpr int64_t kMostRuntime = 28 * kDay;

// A command's ${…} is ours; a request's is text.
std::string AsText(const std::string& word) { return ReplaceAll(word, "${", "$${"); }

class Reader {
 public:
  Reader(const Json& body, const Surroundings& here) : body_(body), here_(here) {}

  tl::expected<TrainingRequest, AwsError> Run() {
    Shapes();
    if (auto error = check_.Error()) return tl::unexpected(*error);
    for (auto step : {&Reader::Algorithm, &Reader::Resources, &Reader::Distribution,
                      &Reader::Channels, &Reader::Outputs, &Reader::Rest}) {
      (this->*step)();
      if (error_) return tl::unexpected(*error_);
    }
    return std::move(out_);
  }

 private:
  JobSpec& spec() { return out_.spec; }
  void Refuse(std::string message) {
    if (!error_) error_ = Invalid(std::move(message));
  }
  void Say(std::string note) { spec().notes.push_back(std::move(note)); }

  // Only the form: every limit of the service, all found at once.
  void Shapes() {
    name_ = check_.Text(body_, "TrainingJobName", "", {1, 63, kNamePattern}, Need::kRequired)
                .value_or("");
    check_.Text(body_, "RoleArn", "", {20, 2048, kRolePattern}, Need::kRequired);
    hyper_ = check_.Texts(body_, "HyperParameters", "", 100, {0, 256}, {0, 2500});
    environment_ =
        check_.Texts(body_, "Environment", "", 100, {0, 512, "[a-zA-Z_][a-zA-Z0-9_]*"}, {0, 512});
    AlgorithmShape();
    ResourceShape();
    if (const auto* channels = check_.List(body_, "InputDataConfig", "", 20)) {
      for (size_t i = 0; i < channels->size(); ++i) {
        ChannelShape((*channels)[i], Member("inputDataConfig", i));
      }
    }
    if (const auto* output = check_.Object(body_, "OutputDataConfig", "", Need::kRequired)) {
      check_.Text(*output, "S3OutputPath", "outputDataConfig", {0, 1024, kUriPattern},
                  Need::kRequired);
      check_.Text(*output, "CompressionType", "outputDataConfig", {.one_of = {"GZIP", "NONE"}});
    }
    if (const auto* stop = check_.Object(body_, "StoppingCondition", "", Need::kRequired)) {
      check_.Number(*stop, "MaxRuntimeInSeconds", "stoppingCondition", {1, kMostRuntime});
      check_.Number(*stop, "MaxWaitTimeInSeconds", "stoppingCondition", {1});
    }
    if (const auto* checkpoints = check_.Object(body_, "CheckpointConfig", "")) {
      check_.Text(*checkpoints, "S3Uri", "checkpointConfig", {0, 1024, kUriPattern},
                  Need::kRequired);
      check_.Text(*checkpoints, "LocalPath", "checkpointConfig", {0, 4096});
    }
    if (const auto* retry = check_.Object(body_, "RetryStrategy", "")) {
      check_.Number(*retry, "MaximumRetryAttempts", "retryStrategy", {1, 30}, Need::kRequired);
    }
    check_.Flag(body_, "EnableManagedSpotTraining", "");
    check_.Flag(body_, "EnableNetworkIsolation", "");
    for (const char* rules : {"DebugRuleConfigurations", "ProfilerRuleConfigurations"}) {
      const auto* list = check_.List(body_, rules, "", 20);
      for (size_t i = 0; list && i < list->size(); ++i) {
        check_.Text((*list)[i], "RuleConfigurationName", Member(Below("", rules), i), {1, 256},
                    Need::kRequired);
      }
    }
    if (const auto* tags = check_.List(body_, "Tags", "", 50)) {
      for (size_t i = 0; i < tags->size(); ++i) {
        check_.Text((*tags)[i], "Key", Member("tags", i), {1, 128}, Need::kRequired);
        check_.Text((*tags)[i], "Value", Member("tags", i), {0, 256}, Need::kRequired);
      }
    }
  }

  void AlgorithmShape() {
    const auto* algorithm = check_.Object(body_, "AlgorithmSpecification", "", Need::kRequired);
    if (!algorithm) return;
    const char* path = "algorithmSpecification";
    check_.Text(*algorithm, "TrainingImage", path, {0, 255, ".*"});
    check_.Text(*algorithm, "AlgorithmName", path, {1, 170});
    check_.Text(*algorithm, "TrainingInputMode", path, {.one_of = {"Pipe", "File", "FastFile"}},
                Need::kRequired);
    if (const auto* metrics = check_.List(*algorithm, "MetricDefinitions", path, 40)) {
      for (size_t i = 0; i < metrics->size(); ++i) {
        const auto at = Member("algorithmSpecification.metricDefinitions", i);
        check_.Text((*metrics)[i], "Name", at, {1, 255, ".+"}, Need::kRequired);
        check_.Text((*metrics)[i], "Regex", at, {1, 500, "(?s).+"}, Need::kRequired);
      }
    }
    for (const char* words : {"ContainerEntrypoint", "ContainerArguments"}) {
      const auto* list = check_.List(*algorithm, words, path, 100);
      for (size_t i = 0; list && i < list->size(); ++i) {
        if (!(*list)[i].is_string()) Refuse(Below(path, words) + " must hold strings");
      }
    }
  }

  void ResourceShape() {
    const auto* resources = check_.Object(body_, "ResourceConfig", "", Need::kRequired);
    if (!resources) return;
    const char* path = "resourceConfig";
    check_.Text(*resources, "InstanceType", path, {1, 64, kInstancePattern});
    check_.Number(*resources, "InstanceCount", path, {0});
    check_.Number(*resources, "VolumeSizeInGB", path, {0});
    check_.Number(*resources, "KeepAlivePeriodInSeconds", path, {0, 21'600});
    if (const auto* groups = check_.List(*resources, "InstanceGroups", path, 5)) {
      for (size_t i = 0; i < groups->size(); ++i) {
        const auto at = Member("resourceConfig.instanceGroups", i);
        check_.Text((*groups)[i], "InstanceType", at, {1, 64, kInstancePattern}, Need::kRequired);
        check_.Number((*groups)[i], "InstanceCount", at, {0}, Need::kRequired);
      }
    }
  }

  void ChannelShape(const Json& channel, const std::string& path) {
    if (!channel.is_object()) return Refuse(path + " must be a structure");
    check_.Text(channel, "ChannelName", path, {1, 64, "[A-Za-z0-9.\\-_]+"}, Need::kRequired);
    check_.Text(channel, "InputMode", path, {.one_of = {"Pipe", "File", "FastFile"}});
    check_.Text(channel, "CompressionType", path, {.one_of = {"None", "Gzip"}});
    check_.Text(channel, "RecordWrapperType", path, {.one_of = {"None", "RecordIO"}});
    const auto* source = check_.Object(channel, "DataSource", path, Need::kRequired);
    if (!source) return;
    const auto* s3 = check_.Object(*source, "S3DataSource", path + ".dataSource");
    if (!s3) return;
    const auto at = path + ".dataSource.s3DataSource";
    check_.Text(*s3, "S3DataType", at,
                {.one_of = {"ManifestFile", "S3Prefix", "AugmentedManifestFile", "Converse"}},
                Need::kRequired);
    check_.Text(*s3, "S3Uri", at, {0, 1024, kUriPattern}, Need::kRequired);
    check_.Text(*s3, "S3DataDistributionType", at,
                {.one_of = {"FullyReplicated", "ShardedByS3Key"}});
  }

  void Algorithm() {
    const auto& algorithm = body_["AlgorithmSpecification"];
    spec().name = name_;
    spec().origin = "sagemaker";
    spec().request = DumpJson(body_);
    const auto image = algorithm.value("TrainingImage", "");
    if (image.empty()) {
      return Refuse(
          "AlgorithmName names an algorithm of the AWS Marketplace, which is not "
          "available here: give a TrainingImage");
    }
    auto base = here_.images.BaseFor(image);
    if (!base) return Refuse(base.error().what + ": " + base.error().hint);
    spec().environment.base = *base;
    if (auto tag = ReadImageTag(image); tag && *base == "system") {
      const auto differs = Mismatch(*tag, here_.host, here_.has_gpu);
      if (!differs.empty()) {
        Say("image " + image.substr(image.rfind('/') + 1) +
            " runs as this machine's Python: " + differs);
      }
    }
    if (hyper_) {
      auto read = ReadHyperParameters(*hyper_);
      spec().params = std::move(read.params);
      platform_ = std::move(read.platform);
      for (const auto& arg : read.args) out_.args.push_back(AsText(arg));
    }
    out_.source = platform_["sagemaker_submit_directory"];
    out_.program = platform_["sagemaker_program"];
    for (const char* words : {"ContainerEntrypoint", "ContainerArguments"}) {
      if (!algorithm.contains(words)) continue;
      for (const auto& word : algorithm[words]) {
        spec().command.push_back(AsText(word.get<std::string>()));
      }
    }
    if (spec().command.empty() && out_.program.empty()) {
      return Refuse(
          "the request names nothing to run: neither sagemaker_program in "
          "HyperParameters (entry_point of the SDK) nor a ContainerEntrypoint. The "
          "image's own entry point is not run here");
    }
    if (spec().command.empty() && !IsObjectUri(out_.source)) {
      return Refuse("sagemaker_submit_directory must name a tar.gz in S3, got '" +
                    Printable(out_.source) + "'");
    }
    if (algorithm.contains("MetricDefinitions")) {
      for (const auto& metric : algorithm["MetricDefinitions"]) {
        spec().metrics.push_back(
            {metric["Name"].get<std::string>(), metric["Regex"].get<std::string>(), ""});
      }
    }
  }

  void Resources() {
    const auto& resources = body_["ResourceConfig"];
    int64_t hosts = resources.value("InstanceCount", int64_t{1});
    spec().resources.type = resources.value("InstanceType", "");
    if (resources.contains("InstanceGroups")) {
      hosts = 0;
      for (const auto& group : resources["InstanceGroups"]) {
        auto type = group["InstanceType"].get<std::string>();
        if (hosts > 0 && type != spec().resources.type) {
          return Refuse(
              "InstanceGroups of different instance types are not available yet; use "
              "one type");
        }
        hosts += group["InstanceCount"].get<int64_t>();
        spec().resources.type = std::move(type);
      }
    }
    if (hosts < 1) return Refuse("InstanceCount must be at least 1");
    if (hosts > kMostNodes) {
      return Refuse(fmt::format("InstanceCount {} is too many; use at most {}", hosts, kMostNodes));
    }
    spec().resources.nodes = static_cast<uint32_t>(hosts);
    // The SDK's word for this machine.
    if (StartsWith(spec().resources.type, "local")) spec().resources.type.clear();
    if (spec().resources.type.empty() && !resources.contains("InstanceType")) {
      return Refuse("ResourceConfig needs an InstanceType");
    }
    if (resources.value("KeepAlivePeriodInSeconds", int64_t{0}) > 0) {
      Say("KeepAlivePeriodInSeconds: nothing is kept warm, as a job starts within milliseconds "
          "here");
    }
  }

  // One process is what a plain start gives; more come with distributed training.
  void Distribution() {
    auto on = [this](const char* key) {
      auto found = platform_.find(key);
      return found != platform_.end() && ToLower(found->second) == "true";
    };
    int64_t processes = 1;
    std::string kind;
    if (on("sagemaker_mpi_enabled")) {
      kind = "mpi";
      const auto& asked = platform_["sagemaker_mpi_num_of_processes_per_host"];
      if (!asked.empty()) processes = std::strtoll(asked.c_str(), nullptr, 10);
    } else if (on("sagemaker_torch_distributed_enabled")) {
      kind = "torch_distributed";
    } else if (on("sagemaker_pytorch_ddp_enabled")) {
      kind = "pytorchddp";
    } else if (on("sagemaker_distributed_dataparallel_enabled")) {
      kind = "smdistributed.dataparallel";
    } else if (on("sagemaker_parameter_server_enabled")) {
      kind = "parameter_server";
    }
    if (kind.empty()) return;
    if (processes != 1 || (kind != "mpi" && kind != "torch_distributed")) {
      return Refuse(fmt::format(
          "distribution {} with {} is not available yet; leave "
          "`distribution` out, or use one process",
          kind, processes == 1 ? "its launcher" : std::to_string(processes) + " processes"));
    }
    if (spec().resources.nodes > 1) {
      return Refuse(
          fmt::format("distribution {} with InstanceCount {} is not available yet; leave "
                      "`distribution` out: each instance then runs the script once, with "
                      "RANK, WORLD_SIZE and MASTER_ADDR set",
                      kind, spec().resources.nodes));
    }
    Say("distribution " + kind + ": started as one process, without its launcher");
    spec().env = {{"RANK", "0"},
                  {"LOCAL_RANK", "0"},
                  {"WORLD_SIZE", "1"},
                  {"LOCAL_WORLD_SIZE", "1"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", "7777"}};
  }

  void Channels() {
    if (!body_.contains("InputDataConfig")) return;
    const auto mode = body_["AlgorithmSpecification"]["TrainingInputMode"].get<std::string>();
    for (const auto& channel : body_["InputDataConfig"]) {
      const auto name = channel["ChannelName"].get<std::string>();
      const auto& source = channel["DataSource"];
      if (source.contains("FileSystemDataSource")) {
        // Which file system that is only AWS knows; the folder must be one of this machine.
        const auto path = source["FileSystemDataSource"].value("DirectoryPath", "");
        if (!StartsWith(path, "/")) {
          return Refuse("channel '" + name + "': DirectoryPath must be a folder of this machine");
        }
        spec().data.push_back({name, path, "shared"});
        continue;
      }
      if (!source.contains("S3DataSource")) {
        return Refuse("channel '" + name +
                      "': DataSource must be an S3DataSource or a FileSystemDataSource");
      }
      const auto& s3 = source["S3DataSource"];
      const auto kind = s3["S3DataType"].get<std::string>();
      if (kind != "S3Prefix" && kind != "ManifestFile") {
        return Refuse("channel '" + name + "': S3DataType " + kind + " is not available yet");
      }
      if (spec().resources.nodes > 1 &&
          s3.value("S3DataDistributionType", "FullyReplicated") != "FullyReplicated") {
        return Refuse("channel '" + name +
                      "': S3DataDistributionType ShardedByS3Key is not "
                      "available yet; with FullyReplicated each instance gets all objects");
      }
      ChannelSpec wanted{name, s3["S3Uri"].get<std::string>()};
      wanted.manifest = kind == "ManifestFile";
      if (StartsWith(wanted.from, "file://")) {
        wanted.from = wanted.from.substr(7);
      } else if (auto uri = ObjectUri::Parse(wanted.from)) {
        out_.buckets.push_back(uri->bucket);
      } else {
        return Refuse("channel '" + name + "': " + uri.error().what);
      }
      const auto how = channel.value("InputMode", mode);
      if (how != "File") {
        Say("channel " + name + ": " + how +
            " is not available yet; its objects are copied before the start (File)");
      }
      if (channel.value("CompressionType", "None") == "Gzip") {
        Say("channel " + name +
            ": CompressionType Gzip belongs to Pipe mode; files are given as "
            "they are");
      }
      if (channel.value("RecordWrapperType", "None") != "None") {
        return Refuse("channel '" + name + "': RecordWrapperType RecordIO is not available yet");
      }
      spec().data.push_back(std::move(wanted));
    }
  }

  void Outputs() {
    const auto& output = body_["OutputDataConfig"];
    const auto path = output["S3OutputPath"].get<std::string>();
    auto uri = ObjectUri::Parse(path);
    if (!uri) return Refuse("OutputDataConfig.S3OutputPath: " + uri.error().what);
    out_.buckets.push_back(uri->bucket);
    spec().output_to = path;
    spec().output_plain = output.value("CompressionType", "GZIP") == "NONE";
    if (!body_.contains("CheckpointConfig")) return;
    const auto& checkpoints = body_["CheckpointConfig"];
    auto to = ObjectUri::Parse(checkpoints["S3Uri"].get<std::string>());
    if (!to) return Refuse("CheckpointConfig.S3Uri: " + to.error().what);
    out_.buckets.push_back(to->bucket);
    spec().checkpoints.uri = checkpoints["S3Uri"].get<std::string>();
    spec().checkpoint_dir = checkpoints.value("LocalPath", "");
  }

  void Rest() {
    const auto& stop = body_["StoppingCondition"];
    const auto runtime = stop.value("MaxRuntimeInSeconds", kDay);
    spec().limits.max_runtime = seconds(runtime);
    const bool spot = body_.value("EnableManagedSpotTraining", false);
    const auto wait = stop.value("MaxWaitTimeInSeconds", int64_t{0});
    if (spot && wait == 0) {
      return Refuse("MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true");
    }
    if (!spot && wait > 0) {
      return Refuse("MaxWaitTimeInSeconds is only for EnableManagedSpotTraining");
    }
    if (spot && wait < runtime) {
      return Refuse(
          fmt::format("Invalid MaxWaitTimeInSeconds. It must be present and be greater "
                      "than or equal to MaxRuntimeInSeconds: {} is below {}",
                      wait, runtime));
    }
    spec().resources.spot.use = spot;
    spec().resources.spot.max_wait = seconds(wait);
    if (spot && !body_.contains("CheckpointConfig")) {
      Say("managed spot without CheckpointConfig: an interrupted job starts from what it saved in "
          "/opt/ml/checkpoints, else from the beginning");
    }
    if (body_.contains("RetryStrategy")) {
      spec().retry.max = body_["RetryStrategy"]["MaximumRetryAttempts"].get<uint32_t>();
    }
    if (environment_) {
      for (const auto& [key, value] : environment_->items()) {
        spec().env[key] = value.get<std::string>();
      }
    }
    if (body_.contains("Tags")) {
      for (const auto& tag : body_["Tags"]) {
        spec().tags[tag["Key"].get<std::string>()] = tag["Value"].get<std::string>();
      }
    }
    if (body_.contains("ExperimentConfig") && body_["ExperimentConfig"].is_object()) {
      spec().experiment = body_["ExperimentConfig"].value("ExperimentName", "");
    }
    if (body_.value("EnableNetworkIsolation", false)) {
      Say("EnableNetworkIsolation: the script's network is not cut off yet");
    }
    for (const char* rules : {"DebugRuleConfigurations", "ProfilerRuleConfigurations"}) {
      if (body_.contains(rules) && !body_[rules].empty()) {
        Say(std::string(rules) + " are kept, but not evaluated yet");
      }
    }
  }

  const Json& body_;
  const Surroundings& here_;
  ShapeCheck check_;
  std::optional<AwsError> error_;
  TrainingRequest out_;
  std::string name_;
  const Json* hyper_ = nullptr;
  const Json* environment_ = nullptr;
  std::map<std::string, std::string> platform_;
};

}  // namespace

tl::expected<TrainingRequest, AwsError> ReadTrainingRequest(const Json& body,
                                                            const Surroundings& here) {
  if (!body.is_object()) {
    return tl::unexpected(AwsError{400, "SerializationException", "the body is no JSON object"});
  }
  // The rest may differ from its model and is still stored; what is read is checked first.
  try {
    return Reader(body, here).Run();
  } catch (const Json::exception& error) {
    return tl::unexpected(AwsError{400, "SerializationException", error.what()});
  }
}

std::vector<std::string> CommandFor(const std::string& program,
                                    const std::vector<std::string>& args) {
  std::vector<std::string> command;
  if (EndsWith(program, ".py")) {
    command = {"python3", program};
  } else {
    // As a program with its own first line, whether or not its mode survived the archive.
    command = {"/bin/sh", "-c", R"(chmod +x "./$0" && exec "./$0" "$@")", program};
  }
  command.insert(command.end(), args.begin(), args.end());
  return command;
}

}  // namespace athanor::sagemaker
