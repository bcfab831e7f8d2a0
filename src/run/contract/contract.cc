#include "run/contract/contract.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/command.h"
#include "link/job_dir.h"
#include "run/agent/param_reads.h"

namespace athanor {
namespace {

// Sorted keys and compact, as the training toolkit writes them.
using Sorted = nlohmann::json;

constexpr char kDefaultRegion[] = "us-west-2";
constexpr char kGroup[] = "homogeneousCluster";
constexpr uint16_t kSageMakerPort = 7777;

uint16_t PortOf(const Meeting& meeting) {
  return meeting.port != 0 ? meeting.port : kSageMakerPort;
}

Sorted ParamValue(const Param& param) {
  switch (param.kind) {
    case Param::Kind::kString:
      return param.value;
    case Param::Kind::kNumber:
    case Param::Kind::kBool:
    case Param::Kind::kNull:
    case Param::Kind::kJson: {
      auto parsed = Sorted::parse(param.value, nullptr, false);
      return parsed.is_discarded() ? Sorted(param.value) : parsed;
    }
  }
  return param.value;
}

std::string Text(const Sorted& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  return value.dump();
}

Sorted Params(const JobSpec& spec) {
  Sorted all = Sorted::object();
  for (const auto& param : spec.params) all[param.name] = ParamValue(param);
  return all;
}

Sorted HyperParameters(const JobSpec& spec) {
  Sorted all = Sorted::object();
  for (const auto& param : spec.params) {
    if (!IsPlatformParam(param.name)) all[param.name] = ParamValue(param);
  }
  return all;
}

// The platform's parameters that the toolkit itself does not use.
Sorted FrameworkParams(const AttemptPlan& plan) {
  static constexpr std::string_view kToolkits[] = {
      "sagemaker_program",  "sagemaker_submit_directory",    "sagemaker_region",
      "sagemaker_job_name", "sagemaker_container_log_level", "sagemaker_s3_output"};
  Sorted all = Sorted::object();
  auto params = plan.platform_params;
  params.insert(params.end(), plan.spec.params.begin(), plan.spec.params.end());
  for (const auto& param : params) {
    if (StartsWith(param.name, "sagemaker_") &&
        std::find(std::begin(kToolkits), std::end(kToolkits), param.name) == std::end(kToolkits)) {
      all[param.name] = ParamValue(param);
    }
  }
  return all;
}

// What the script gets after its own name in argv.
Sorted UserArgs(const JobSpec& spec, const ContractPaths& paths) {
  Sorted args = Sorted::array();
  const auto script =
      std::find_if(spec.command.begin(), spec.command.end(), [&spec](const std::string& word) {
        return !spec.entry.empty() && (word == spec.entry || EndsWith(word, "/" + spec.entry));
      });
  if (spec.shell || script == spec.command.end()) return args;
  const auto command = SubstituteCommand(spec, [&paths](std::string_view name) {
    return std::optional(paths.inside + "/input/data/" + std::string(name));
  });
  if (!command) return args;  // reported when the script is started
  for (auto at = static_cast<size_t>(script - spec.command.begin()) + 1; at < command->size();
       ++at) {
    args.push_back((*command)[at]);
  }
  return args;
}

// The region and account that AWS clients of the script see.
std::string RegionOf(const std::map<std::string, std::string>& env) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (const auto found = env.find(name); found != env.end() && !found->second.empty()) {
      return found->second;
    }
  }
  return kDefaultRegion;
}

// In the order of their ranks.
Sorted Hosts(const AttemptPlan& plan) {
  Sorted hosts = Sorted::array();
  for (const auto& name : HostNames(plan)) hosts.push_back(name);
  return hosts;
}

Sorted ResourceConfig(const AttemptPlan& plan, const ContractPaths& paths) {
  Sorted config = Sorted::object();
  config["current_host"] = HostName(plan);
  config["current_instance_type"] = plan.instance_type;
  config["current_group_name"] = kGroup;
  config["hosts"] = Hosts(plan);
  config["instance_groups"] = Sorted::array({{{"instance_group_name", kGroup},
                                              {"instance_type", plan.instance_type},
                                              {"hosts", Hosts(plan)}}});
  config["network_interface_name"] = paths.meeting.interface;
  return config;
}

Sorted InputDataConfig(const AttemptPlan& plan) {
  Sorted config = Sorted::object();
  if (const auto file = plan.config_files.find("inputdataconfig.json");
      file != plan.config_files.end()) {
    return Sorted::parse(file->second);
  }
  for (const auto& channel : plan.spec.data) {
    // A folder that is used in place is a file system to the script, which is mode File too.
    const char* mode = channel.mode == "fastfile" ? "FastFile"
                       : channel.mode == "pipe"   ? "Pipe"
                                                  : "File";
    config[channel.name] = {{"TrainingInputMode", mode},
                            {"S3DistributionType", "FullyReplicated"},
                            {"RecordWrapperType", "None"}};
  }
  return config;
}

Sorted GroupsDict(const AttemptPlan& plan) {
  return {{kGroup,
           {{"instance_group_name", kGroup},
            {"instance_type", plan.instance_type},
            {"hosts", Hosts(plan)}}}};
}

uint32_t WholeCpus(const AttemptPlan& plan) { return (plan.placement.cpu_millis + 999) / 1000; }

std::string ModuleName(const JobSpec& spec) {
  return EndsWith(spec.entry, ".py") ? spec.entry.substr(0, spec.entry.size() - 3) : spec.entry;
}

// Everything in one variable, under the names the toolkit has for it.
Sorted TrainingEnv(const AttemptPlan& plan, const ContractPaths& paths) {
  const auto& spec = plan.spec;
  const auto host = HostName(plan);
  auto in = [&paths](const char* below) { return paths.inside + below; };
  Sorted all = Sorted::object();
  all["additional_framework_parameters"] = FrameworkParams(plan);
  all["channel_input_dirs"] = Sorted::object();
  for (const auto& channel : spec.data) {
    all["channel_input_dirs"][channel.name] = paths.inside + "/input/data/" + channel.name;
  }
  all["current_host"] = host;
  all["current_instance_group"] = kGroup;
  all["current_instance_group_hosts"] = Hosts(plan);
  all["current_instance_type"] = plan.instance_type;
  all["distribution_hosts"] = Sorted::array();
  all["distribution_instance_groups"] = Sorted::array();
  all["framework_module"] = nullptr;
  all["hosts"] = Hosts(plan);
  all["hyperparameters"] = HyperParameters(spec);
  all["input_config_dir"] = in("/input/config");
  all["input_data_config"] = InputDataConfig(plan);
  all["input_dir"] = in("/input");
  all["instance_groups"] = {kGroup};
  all["instance_groups_dict"] = GroupsDict(plan);
  all["is_hetero"] = false;
  all["is_master"] = plan.host == 0;
  all["is_modelparallel_enabled"] = nullptr;
  all["job_name"] = spec.name;
  all["log_level"] = spec.debug ? 10 : 20;
  all["master_hostname"] = HostNames(plan).front();
  all["model_dir"] = in("/model");
  all["module_dir"] = in("/code");
  all["module_name"] = ModuleName(spec);
  all["network_interface_name"] = paths.meeting.interface;
  all["num_cpus"] = WholeCpus(plan);
  all["num_gpus"] = plan.placement.visible_gpus().size();
  all["num_neurons"] = 0;
  all["output_data_dir"] = in("/output/data");
  all["output_dir"] = in("/output");
  all["output_intermediate_dir"] = in("/output/intermediate");
  all["resource_config"] = ResourceConfig(plan, paths);
  all["user_entry_point"] = spec.entry;
  return all;
}

void AddPaths(const AttemptPlan& plan, const ContractPaths& paths,
              std::map<std::string, std::string>& env) {
  auto in = [&paths](const char* below) { return paths.inside + below; };
  env["SM_MODEL_DIR"] = in("/model");
  env["SM_INPUT_DIR"] = in("/input");
  env["SM_INPUT_CONFIG_DIR"] = in("/input/config");
  env["SM_INPUT_DATA_DIR"] = in("/input/data");
  env["SM_OUTPUT_DIR"] = in("/output");
  env["SM_OUTPUT_DATA_DIR"] = in("/output/data");
  env["SM_OUTPUT_INTERMEDIATE_DIR"] = in("/output/intermediate");
  env["SM_OUTPUT_FAILURE"] = in("/output/failure");
  env["SM_CHECKPOINT_DIR"] = PlaceOfCheckpoints(plan, paths).inside;
  env["SM_MODULE_DIR"] = in("/code");
  env["SM_SOURCE_DIR"] = in("/code");
  if (paths.inside != "/opt/ml") env["SAGEMAKER_BASE_DIR"] = paths.inside;
  Sorted channels = Sorted::array();
  for (const auto& channel : plan.spec.data) {
    channels.push_back(channel.name);
    auto path = paths.inside + "/input/data/" + channel.name;
    env["SM_CHANNEL_" + ToUpper(channel.name)] = path;
    env["ATHANOR_CHANNEL_" + ToUpper(channel.name)] = path;
  }
  std::sort(channels.begin(), channels.end());
  env["SM_CHANNELS"] = channels.dump();
}

void AddSageMaker(const AttemptPlan& plan, const ContractPaths& paths,
                  std::map<std::string, std::string>& env) {
  const auto& spec = plan.spec;
  const auto host = HostName(plan);
  const auto region = RegionOf(env);
  AddPaths(plan, paths, env);
  const auto hyper = HyperParameters(spec);
  env["SM_HPS"] = hyper.dump();
  for (const auto& [name, value] : hyper.items()) env["SM_HP_" + ToUpper(name)] = Text(value);
  env["SM_USER_ARGS"] = UserArgs(spec, paths).dump();
  env["SM_USER_ENTRY_POINT"] = env["SM_ENTRY_SCRIPT"] = spec.entry;
  env["SM_MODULE_NAME"] = ModuleName(spec);
  env["SM_FRAMEWORK_MODULE"] = "";  // no toolkit of a framework is in between
  env["SM_FRAMEWORK_PARAMS"] = FrameworkParams(plan).dump();
  env["SM_DISTRIBUTED_CONFIG"] = "{}";
  env["SM_LOG_LEVEL"] = spec.debug ? "10" : "20";
  env["SM_CURRENT_HOST"] = env["CURRENT_HOST"] = host;
  env["SM_MASTER_ADDR"] = HostNames(plan).front();
  env["SM_HOSTS"] = Hosts(plan).dump();
  env["SM_HOST_COUNT"] = std::to_string(HostCount(plan));
  env["SM_CURRENT_HOST_RANK"] = std::to_string(plan.host);
  const bool alone = HostCount(plan) * RanksHere(plan) == 1;
  env["SM_MASTER_PORT"] = std::to_string(alone ? kSageMakerPort : PortOf(paths.meeting));
  env["SM_NETWORK_INTERFACE_NAME"] = paths.meeting.interface;
  env["SM_NUM_CPUS"] = std::to_string(WholeCpus(plan));
  env["SM_NUM_GPUS"] = std::to_string(plan.placement.visible_gpus().size());
  env["SM_NUM_NEURONS"] = "0";
  env["SM_CURRENT_INSTANCE_TYPE"] = plan.instance_type;
  env["SM_CURRENT_INSTANCE_GROUP"] = kGroup;
  env["SM_CURRENT_INSTANCE_GROUP_HOSTS"] = Hosts(plan).dump();
  env["SM_INSTANCE_GROUPS"] = Sorted::array({kGroup}).dump();
  env["SM_DISTRIBUTION_INSTANCE_GROUPS"] = "[]";
  env["SM_IS_HETERO"] = "false";
  env["SM_INSTANCE_GROUPS_DICT"] = GroupsDict(plan).dump();
  env["SM_RESOURCE_CONFIG"] = ResourceConfig(plan, paths).dump();
  env["SM_INPUT_DATA_CONFIG"] = InputDataConfig(plan).dump();
  env["SM_TRAINING_ENV"] = TrainingEnv(plan, paths).dump();
  env["TRAINING_JOB_NAME"] = env["SAGEMAKER_JOB_NAME"] = spec.name;
  env["SAGEMAKER_REGION"] = region;
  env["TRAINING_JOB_ARN"] =
      "arn:aws:sagemaker:" + region + ":000000000000:training-job/" + spec.name;
}

}  // namespace

CheckpointPlace PlaceOfCheckpoints(const AttemptPlan& plan, const ContractPaths& paths) {
  const auto& asked = plan.spec.checkpoint_dir;
  const bool mounts = paths.inside != paths.outside;
  const bool own = !asked.empty() && asked != "/opt/ml" && !StartsWith(asked, "/opt/ml/");
  CheckpointPlace place;
  place.shared = plan.spec.checkpoints.store == "shared";
  const std::string below = own || asked.size() <= 7 ? "/checkpoints" : asked.substr(7);
  place.inside = own ? asked : paths.inside + below;
  place.outside = paths.outside + below;
  if (place.shared) {
    place.outside = job_dir::SharedCheckpoints(plan.spec, paths.job_dir);
    if (!mounts) place.inside = place.outside;
  } else if (own && !mounts) {
    place.outside = asked;
  }
  place.bound = mounts && (place.shared || own) && place.inside != place.outside;
  return place;
}

Status CheckSharedPlace(const JobSpec& spec, bool is_server_here) {
  if (spec.checkpoints.store != "shared" || is_server_here) return Ok();
  if (!job_dir::IsCheckpointDirTheirs(spec)) {
    return Fail(Error{ErrorCode::kInvalid,
                      "checkpoints.store is `shared`, but no folder is named that outlives this "
                      "machine",
                      "name one that all machines of the job share: checkpoints.dir: /FOLDER\n"
                      "or let the server keep them: checkpoints.store: objects"}
                    .Why("the job runs on another machine than its server"));
  }
  if (Exists(spec.checkpoint_dir)) return Ok();
  return Fail(Error{ErrorCode::kInvalid,
                    "the shared folder for checkpoints, " + spec.checkpoint_dir +
                        ", is not there on this machine",
                    "mount it there, or name another one in checkpoints.dir"}
                  .Why("nothing is made in its place: what is saved there would be lost with the "
                       "machine"));
}

std::string StacksName(uint32_t local) { return "stacks-" + std::to_string(local); }

std::string SpoolName(uint32_t local) { return "spool/rank-" + std::to_string(local); }

std::string NoticeFile(const std::string& root) {
  return JoinPath(JoinPath(root, kOwnFolder), kNoticeName);
}

std::string StacksFile(const std::string& root, uint32_t local) {
  return JoinPath(JoinPath(root, kOwnFolder), StacksName(local));
}

std::string CaptureDir(const std::string& root) {
  return JoinPath(JoinPath(root, kOwnFolder), kCaptureName);
}

std::string ParamsFile(const std::string& root) {
  return JoinPath(JoinPath(root, kOwnFolder), "params.json");
}

std::string ParamsDir(const std::string& root) {
  return JoinPath(JoinPath(root, kOwnFolder), kParamsName);
}

uint32_t HostCount(const AttemptPlan& plan) {
  return std::max<uint32_t>(static_cast<uint32_t>(plan.peers.size()), plan.host + 1);
}

uint32_t RanksHere(const AttemptPlan& plan) { return std::max(plan.spec.resources.processes, 1u); }

std::vector<std::string> HostNames(const AttemptPlan& plan) {
  std::vector<std::string> names;
  for (uint32_t host = 0; host < HostCount(plan); ++host) {
    const bool named = host < plan.peers.size() && !plan.peers[host].name.empty();
    names.push_back(named ? plan.peers[host].name : HostNameOf(host));
  }
  return names;
}

std::string HostName(const AttemptPlan& plan) { return HostNames(plan)[plan.host]; }

std::string SpoolDir(const std::string& root, uint32_t local) {
  return JoinPath(JoinPath(root, kOwnFolder), SpoolName(local));
}

Status LayOutContract(const AttemptPlan& plan, const ContractPaths& paths) {
  const auto& root = paths.outside;
  for (const char* dir :
       {"/input/config", "/input/data", "/code", "/model", "/output/data", "/output/intermediate",
        "/output/metrics/sagemaker", "/output/profiler", "/output/tensorboard", "/output/tensors",
        "/checkpoints", "/errors", "/metadata", "/.athanor/bin", "/.athanor/params"}) {
    ATHANOR_CHECK_OK(MakeDirs(root + dir, 0755));
  }
  Sorted strings = Sorted::object();
  for (const auto& param : plan.spec.params) strings[param.name] = param.value;
  auto write = [&root](const char* name, const Sorted& json) {
    return ReplaceFile(root + "/input/config/" + name, json.dump(), 0644);
  };
  ATHANOR_CHECK_OK(write("hyperparameters.json", strings));
  ATHANOR_CHECK_OK(write("resourceconfig.json", ResourceConfig(plan, paths)));
  ATHANOR_CHECK_OK(write("inputdataconfig.json", InputDataConfig(plan)));
  ATHANOR_CHECK_OK(
      write("checkpointconfig.json", {{"LocalPath", PlaceOfCheckpoints(plan, paths).inside}}));
  ATHANOR_CHECK_OK(
      write("tensorboardoutputconfig.json", {{"LocalPath", paths.inside + "/output/tensorboard"}}));
  for (const auto& [name, text] : plan.config_files) {
    ATHANOR_CHECK_OK(ReplaceFile(root + "/input/config/" + name, text, 0644));
  }
  // The same with their types.
  const auto typed = Params(plan.spec).dump();
  ATHANOR_CHECK_OK(ReplaceFile(ParamsFile(root), typed, 0644));
  return ReplaceFile(ParamsDir(root) + "/values.json", typed, 0644);
}

std::map<std::string, std::string> ContractEnvironment(const AttemptPlan& plan,
                                                       const ContractPaths& paths, uint32_t local) {
  const auto& spec = plan.spec;
  std::map<std::string, std::string> env = spec.inherited;
  if (!env.contains("PATH")) env["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  env["PYTHONUNBUFFERED"] = "1";
  env["PYTHONFAULTHANDLER"] = "1";
  if (spec.debug) {
    env["PYTHONDEVMODE"] = "1";
    env["PYTHONTRACEMALLOC"] = "5";
    env["TORCH_SHOW_CPP_STACKTRACES"] = "1";
    env["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL";
    env["CUDA_LAUNCH_BLOCKING"] = "1";
    env["ATHANOR_DEBUG"] = "1";
  }
  for (const auto& [name, value] : spec.env) env[name] = value;
  AddSageMaker(plan, paths, env);
  env["ATHANOR_JOB_ID"] = plan.job.ToString();
  env["ATHANOR_JOB_NAME"] = spec.name;
  env["ATHANOR_ATTEMPT"] = std::to_string(plan.number);
  env["ATHANOR_PARAMS_FILE"] = ParamsFile(paths.inside);
  if (!ParamsToWatch(spec).empty()) env["ATHANOR_PARAMS_DIR"] = ParamsDir(paths.inside);
  env["ATHANOR_CHECKPOINT_DIR"] = env["SM_CHECKPOINT_DIR"];
  env["ATHANOR_TENSORBOARD_DIR"] = paths.inside + "/output/tensorboard";
  env["ATHANOR_NOTICE_FILE"] = NoticeFile(paths.inside);
  env["ATHANOR_CAPTURE_DIR"] = CaptureDir(paths.inside);
  if (spec.checkpoints.every.count() > 0) {
    env["ATHANOR_CHECKPOINT_EVERY_MS"] = std::to_string(spec.checkpoints.every.count());
  }
  // So that athanor.checkpoint leaves no more files than are kept. If files stay in place, it
  // cannot know which of them are the best.
  if (spec.checkpoints.store != "shared" || spec.checkpoints.keep_best == 0) {
    env["ATHANOR_CHECKPOINT_KEEP"] = std::to_string(std::max(spec.checkpoints.keep_last, 1u));
  }
  if (!paths.python_path.empty()) {
    auto& path = env["PYTHONPATH"];
    // `site` first: its sitecustomize runs the one that it hides.
    const std::string ours = paths.python_path + "/site:" + paths.python_path;
    path = path.empty() ? ours : ours + ":" + path;
  }
  // The numbers are nvidia-smi's; by itself CUDA would count the fastest one as 0.
  if (!plan.placement.visible_gpus().empty()) env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  for (auto& [name, value] : RankVariables(plan, paths, local)) env[name] = std::move(value);
  return env;
}

std::map<std::string, std::string> RankVariables(const AttemptPlan& plan,
                                                 const ContractPaths& paths, uint32_t local) {
  const uint32_t here = RanksHere(plan);
  const auto rank = std::to_string(FirstRank(plan) + local);
  const auto world = std::to_string(HostCount(plan) * here);
  // As torchrun names them: a group is a host.
  std::map<std::string, std::string> env = {
      {"RANK", rank},
      {"WORLD_SIZE", world},
      {"LOCAL_RANK", std::to_string(local)},
      {"LOCAL_WORLD_SIZE", std::to_string(here)},
      {"GROUP_RANK", std::to_string(plan.host)},
      {"GROUP_WORLD_SIZE", std::to_string(HostCount(plan))},
      {"NNODES", std::to_string(HostCount(plan))},
      {"MASTER_ADDR", paths.meeting.address},
      {"MASTER_PORT", std::to_string(PortOf(paths.meeting))},
  };
  for (const auto& [name, value] : plan.spec.env) env.erase(name);
  env["ATHANOR_RANK"] = rank;
  env["ATHANOR_WORLD_SIZE"] = world;
  env["ATHANOR_LOCAL_RANK"] = std::to_string(local);
  env["ATHANOR_SPOOL"] = SpoolDir(paths.inside, local);
  env["ATHANOR_STACKS"] = StacksFile(paths.inside, local);
  // Several ranks share the host's GPUs out among them, if there is at least one for each.
  const auto& gpus = plan.placement.visible_gpus();
  const bool shares = here > 1 && gpus.size() >= here;
  std::vector<std::string> devices;
  for (size_t i = shares ? gpus.size() * local / here : 0;
       i < (shares ? gpus.size() * (local + 1) / here : gpus.size()); ++i) {
    devices.push_back(std::to_string(gpus[i]));
  }
  env["CUDA_VISIBLE_DEVICES"] = Join(devices, ",");
  return env;
}

}  // namespace athanor
