"""Checks of the SageMaker door: the life of a training job."""

import json
import os

from sagemaker_kit import ACCOUNT, IMAGE, REGION, ROLE, TYPE, WAIT, refused, subsequence, until

REPORT = """
import json, os, socket, sys
config = "/opt/ml/input/config/"
print("REPORT " + json.dumps({
    "argv": sys.argv[1:], "env": dict(os.environ), "host": socket.gethostname(),
    "files": {name: json.load(open(config + name)) for name in sorted(os.listdir(config))
              if name.endswith(".json")}}))
open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write("w")
open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], "notes"), "w").write("n")
"""


def report_of(world, name):
    for line in world.lines(name):
        if line.startswith("REPORT "):
            return json.loads(line[len("REPORT "):])
    raise AssertionError("no report in %r" % world.lines(name)[-5:])


def check_describe_tells_everything_the_sdk_reads(world):
    name = world.create("describe", REPORT)
    told = world.ended(name)
    arn = "arn:aws:sagemaker:%s:%s:training-job/%s" % (REGION, ACCOUNT, name)
    assert told["TrainingJobName"] == name and told["TrainingJobArn"] == arn, told
    assert told["OutputDataConfig"]["KmsKeyId"] == ""
    assert told["OutputDataConfig"]["S3OutputPath"] == "s3://%s/" % world.bucket
    assert told["ResourceConfig"]["VolumeSizeInGB"] == 30
    assert told["ResourceConfig"]["InstanceCount"] == 1
    assert told["ResourceConfig"]["InstanceType"] == TYPE
    assert told["StoppingCondition"]["MaxRuntimeInSeconds"] == 86400
    for member in ("EnableNetworkIsolation", "EnableManagedSpotTraining",
                   "EnableInterContainerTrafficEncryption"):
        assert told[member] is False, member
    assert told["RoleArn"] == ROLE
    assert told["AlgorithmSpecification"]["TrainingImage"] == IMAGE
    assert told["AlgorithmSpecification"]["TrainingInputMode"] == "File"
    assert json.loads(told["HyperParameters"]["sagemaker_job_name"]) == name
    assert told["SecondaryStatus"] == "Completed"
    assert told["TrainingTimeInSeconds"] >= 1, "Billable without Training divides by zero"
    assert told["BillableTimeInSeconds"] >= 1
    assert told["ModelArtifacts"]["S3ModelArtifacts"] == \
        "s3://%s/%s/output/model.tar.gz" % (world.bucket, name)
    assert "FailureReason" not in told or not told["FailureReason"]


def check_states_and_times_are_in_order(world):
    path = world.gate()
    name = world.create("states", WAIT + "print('ready', flush=True)\nwait(%r)" % path)
    world.until_line(name, "ready")
    # A line may be there a moment before the word that its script runs.
    until(lambda: world.describe(name)["SecondaryStatus"] == "Training", "it trains")
    told = world.describe(name)
    assert told["TrainingJobStatus"] == "InProgress", told
    assert "ModelArtifacts" not in told or not told["ModelArtifacts"].get("S3ModelArtifacts")
    assert "TrainingEndTime" not in told
    assert "BillableTimeInSeconds" not in told or told["TrainingTimeInSeconds"] > 0
    world.open(path)
    told = world.ended(name)
    steps = told["SecondaryStatusTransitions"]
    assert subsequence(["Starting", "Downloading", "Training", "Uploading", "Completed"],
                       [step["Status"] for step in steps]), steps
    for one, other in zip(steps, steps[1:]):
        assert one["StartTime"] <= one["EndTime"] <= other["StartTime"], steps
    assert all(step["StatusMessage"] for step in steps)
    assert told["CreationTime"] <= told["TrainingStartTime"] <= told["TrainingEndTime"]
    assert told["TrainingEndTime"] <= told["LastModifiedTime"], told


def check_hyperparameters_and_the_container_contract(world):
    hyper = {"epochs": "3", "name": '"x y"', "flag": "true", "lst": "[1, 2]", "b": "7",
             "plain": "no json", "learning-rate": "0.1"}
    name = world.create("contract", REPORT, hyper, Environment={"GREETING": "hello you"})
    world.ended(name)
    seen = report_of(world, name)
    assert seen["argv"] == ["-b", "7", "--epochs", "3", "--flag", "True", "--learning-rate", "0.1",
                            "--lst", "[1, 2]", "--name", "x y", "--plain", "no json"], seen["argv"]
    env = seen["env"]
    assert env["GREETING"] == "hello you" and env["TRAINING_JOB_NAME"] == name
    assert env["TRAINING_JOB_ARN"].endswith("training-job/" + name)
    assert json.loads(env["SM_HPS"])["epochs"] == 3 and env["SM_HP_EPOCHS"] == "3"
    assert json.loads(env["SM_USER_ARGS"]) == seen["argv"]
    assert env["SM_USER_ENTRY_POINT"] == "train.py" and env["SM_MODULE_NAME"] == "train"
    assert env["SM_CURRENT_HOST"] == "algo-1" and json.loads(env["SM_HOSTS"]) == ["algo-1"]
    assert env["SM_CURRENT_INSTANCE_TYPE"] == TYPE and env["AWS_REGION"] == REGION
    assert json.loads(env["SM_TRAINING_ENV"])["hyperparameters"]["lst"] == [1, 2]
    kept = seen["files"]["hyperparameters.json"]
    assert kept["name"] == '"x y"' and "sagemaker_program" in kept
    assert all(isinstance(value, str) for value in kept.values())
    assert seen["files"]["resourceconfig.json"]["current_instance_type"] == TYPE
    assert seen["host"] == "algo-1" or env["SM_MODEL_DIR"] != "/opt/ml/model"


def check_models_and_outputs_are_in_s3(world):
    name = world.create("outputs", REPORT,
                        OutputDataConfig={"S3OutputPath": "s3://%s/deep/er" % world.bucket})
    told = world.ended(name)
    place = "s3://%s/deep/er/%s/output/" % (world.bucket, name)
    assert told["ModelArtifacts"]["S3ModelArtifacts"] == place + "model.tar.gz"
    assert world.archive(place + "model.tar.gz") == {"weights": b"w"}
    assert world.archive(place + "output.tar.gz") == {"notes": b"n"}


LISTING = """
import json, os
found = {}
for channel in json.loads(os.environ["SM_CHANNELS"]):
    root = os.environ["SM_CHANNEL_" + channel.upper()]
    found[channel] = sorted(os.path.relpath(os.path.join(folder, name), root)
                            for folder, _, names in os.walk(root) for name in names)
    if "READ_ONLY" not in os.environ:  # File channels are copies
        open(os.path.join(root, "written"), "w").close()
print("REPORT " + json.dumps({"found": found, "kinds": json.load(
    open("/opt/ml/input/config/inputdataconfig.json"))}))
"""


def channel(name, uri, **more):
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    source.update(more.pop("source", {}))
    return dict({"ChannelName": name, "DataSource": {"S3DataSource": source}}, **more)


def check_channels_come_from_s3(world):
    for key in ("data/a/one", "data/a/deep/two", "data/b/three", "data/bc"):
        world.put(key, key)
    manifest = world.put("data/list.manifest", json.dumps(
        [{"prefix": "s3://%s/data/" % world.bucket}, "a/one", "b/three"]))
    base = "s3://%s/data/" % world.bucket
    name = world.create("channels", LISTING, InputDataConfig=[
        channel("train", base + "a/", ContentType="text/plain"),
        channel("val", base + "b", InputMode="File"),
        channel("one", base + "a/one"),
        channel("listed", manifest, source={"S3DataType": "ManifestFile"})])
    told = world.ended(name)
    seen = report_of(world, name)
    assert seen["found"]["train"] == ["deep/two", "one"], seen
    assert seen["found"]["one"] == ["one"], seen
    assert seen["found"]["listed"] == ["a/one", "b/three"], seen
    assert "three" in "".join(seen["found"]["val"]), seen
    kind = seen["kinds"]["train"]
    assert kind["TrainingInputMode"] == "File" and kind["ContentType"] == "text/plain", kind
    assert kind["S3DistributionType"] == "FullyReplicated", kind
    assert [one["ChannelName"] for one in told["InputDataConfig"]] == ["train", "val", "one",
                                                                       "listed"]
    assert told["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == base + "a/"


def check_a_channel_without_objects_is_named(world):
    """Before a machine is held, or as the reason of the failure."""
    from botocore.exceptions import ClientError
    uri = "s3://%s/nothing-here/" % world.bucket
    try:
        name = world.create("empty", InputDataConfig=[channel("train", uri)])
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ValidationException", error
        assert uri in str(error), error
        return
    assert uri in world.ended(name, "Failed")["FailureReason"]


def check_a_directory_is_a_channel(world):
    folder = os.path.join(world.root, world.name("folder"))
    os.mkdir(folder)
    world.open(os.path.join(folder, "there"))
    source = {"FileSystemId": "fs-01234567890", "FileSystemAccessMode": "ro",
              "FileSystemType": "EFS", "DirectoryPath": folder}
    name = world.create("directory", LISTING, Environment={"READ_ONLY": "1"}, InputDataConfig=[
        {"ChannelName": "train", "DataSource": {"FileSystemDataSource": source}}])
    world.ended(name)
    assert report_of(world, name)["found"] == {"train": ["there"]}


def check_fastfile_and_pipe_say_that_they_run_as_file(world):
    uri = world.put("fast/one", "1")[:-len("one")]
    for mode in ("FastFile", "Pipe"):
        name = world.create("mode", LISTING, AlgorithmSpecification={
            "TrainingImage": IMAGE, "TrainingInputMode": mode},
            InputDataConfig=[channel("train", uri)])
        told = world.ended(name)
        assert report_of(world, name)["found"]["train"] == ["one"]
        said = [step["StatusMessage"] for step in told["SecondaryStatusTransitions"]]
        assert any(mode in text and "File" in text for text in said), said
        assert told["AlgorithmSpecification"]["TrainingInputMode"] == mode


def check_several_processes_are_refused_by_name(world):
    mpi = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "4",
           "sagemaker_mpi_custom_mpi_options": '"--NCCL_DEBUG INFO"'}
    refused("ValidationException", world.sm.create_training_job, "mpi",
            **world.request("mpi", hyper=mpi))
    two = {"InstanceType": TYPE, "InstanceCount": 2, "VolumeSizeInGB": 30}
    groups = {"VolumeSizeInGB": 30, "InstanceGroups": [
        {"InstanceGroupName": "a", "InstanceType": TYPE, "InstanceCount": 1},
        {"InstanceGroupName": "b", "InstanceType": "ml.m5.24xlarge", "InstanceCount": 1}]}
    refused("ValidationException", world.sm.create_training_job, "nstanceGroups",
            **world.request("two", ResourceConfig=groups))
    refused("ValidationException", world.sm.create_training_job,
            **world.request("torchrun", ResourceConfig=two,
                            hyper={"sagemaker_torch_distributed_enabled": "true",
                                   "sagemaker_instance_type": '"%s"' % TYPE}))


def check_mpi_with_one_process_runs(world):
    world.run("mpi-one", hyper={"sagemaker_mpi_enabled": "true",
                                "sagemaker_mpi_num_of_processes_per_host": "1",
                                "sagemaker_mpi_custom_mpi_options": '""'})


STOPPABLE = WAIT + """
import signal
def stop(*_):
    open(os.path.join(os.environ["SM_MODEL_DIR"], "saved"), "w").write("in time")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
wait("/nowhere")
"""


def check_stop(world):
    name = world.create("stop", STOPPABLE)
    world.until_line(name, "ready")
    world.sm.stop_training_job(TrainingJobName=name)
    assert world.describe(name)["TrainingJobStatus"] in ("Stopping", "Stopped")
    told = world.ended(name, "Stopped")
    assert told["SecondaryStatus"] == "Stopped", told["SecondaryStatus"]
    assert subsequence(["Training", "Stopping", "Stopped"],
                       [step["Status"] for step in told["SecondaryStatusTransitions"]]), told
    assert world.archive(told["ModelArtifacts"]["S3ModelArtifacts"]) == {"saved": b"in time"}
    refused("ValidationException", world.sm.stop_training_job, "status Stopped",
            TrainingJobName=name)


def check_the_longest_run_time(world):
    name = world.create("limit", STOPPABLE, StoppingCondition={"MaxRuntimeInSeconds": 1})
    told = world.ended(name, "Stopped")
    assert told["SecondaryStatus"] == "MaxRuntimeExceeded", told["SecondaryStatus"]
    assert told["SecondaryStatusTransitions"][-1]["Status"] == "MaxRuntimeExceeded"


COUNTING = WAIT + """
path = os.path.join("/opt/ml/checkpoints", "count")
count = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", count, flush=True)
open(path + ".new", "w").write(str(count + 1))
os.replace(path + ".new", path)
print("saved", flush=True)
if count < 1:
    wait("/nowhere")
"""


def check_spot_goes_on_from_its_checkpoint(world):
    uri = "s3://%s/%s" % (world.bucket, world.name("ckpt"))
    name = world.create("spot", COUNTING, EnableManagedSpotTraining=True,
                        CheckpointConfig={"S3Uri": uri},
                        StoppingCondition={"MaxRuntimeInSeconds": 3600,
                                           "MaxWaitTimeInSeconds": 7200})
    world.until_line(name, "saved")
    key = uri.partition("//")[2].partition("/")[2] + "/count"
    until(lambda: world.keys(key), "the checkpoint is in S3 while the job runs")
    world.ath("interrupt", name)
    told = world.ended(name)
    assert told["EnableManagedSpotTraining"] is True
    assert told["CheckpointConfig"]["S3Uri"] == uri
    assert [line for line in world.lines(name) if "begins" in line] == ["begins at 0",
                                                                        "begins at 1"]
    assert subsequence(["Training", "Interrupted", "Starting", "Training", "Completed"],
                       [step["Status"] for step in told["SecondaryStatusTransitions"]]), told
    assert 0 < told["BillableTimeInSeconds"] <= told["TrainingTimeInSeconds"]
    assert world.get(uri + "/count") == b"2"


def check_checkpoints_in_s3_are_there_at_the_start(world):
    prefix = world.name("old")
    world.put(prefix + "/count", "1")
    world.put(prefix + "/deep/more", "x")
    name = world.create("restore", COUNTING + "print(sorted(os.listdir('/opt/ml/checkpoints')))",
                        CheckpointConfig={"S3Uri": "s3://%s/%s/" % (world.bucket, prefix),
                                          "LocalPath": "/opt/ml/checkpoints"})
    world.ended(name)
    lines = world.lines(name)
    assert "begins at 1" in lines and any("'deep'" in line for line in lines), lines
    assert world.get("s3://%s/%s/count" % (world.bucket, prefix)) == b"2"


def check_retries_are_for_the_machines_faults(world):
    """RetryStrategy is about the service's errors; a script that fails has failed."""
    told = world.run("retry", "print('begins'); raise SystemExit(1)", status="Failed",
                     RetryStrategy={"MaximumRetryAttempts": 2})
    assert world.lines(told["TrainingJobName"]).count("begins") == 1


def check_failures_have_reasons(world):
    told = world.run("raises", "def f():\n    raise ValueError('boom')\nf()", status="Failed")
    assert told["SecondaryStatus"] == "Failed"
    assert told["FailureReason"].startswith("AlgorithmError: "), told["FailureReason"]
    assert "ValueError" in told["FailureReason"] and "boom" in told["FailureReason"]
    assert told["TrainingTimeInSeconds"] >= 1
    own = "open('/opt/ml/output/failure', 'w').write('my own words ' * 200)\nraise SystemExit(3)"
    told = world.run("words", own, status="Failed")
    assert told["FailureReason"].startswith("AlgorithmError: my own words"), told["FailureReason"]
    assert len(told["FailureReason"]) <= 1024
    told = world.run("code", "raise SystemExit(41)", status="Failed")
    assert "41" in told["FailureReason"], told["FailureReason"]


def check_an_unknown_image_is_refused_with_the_line_to_add(world):
    image = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mine:7"
    error = refused("ValidationException", world.sm.create_training_job, image, **world.request(
        "image", AlgorithmSpecification={"TrainingImage": image, "TrainingInputMode": "File"}))
    message = error.response["Error"]["Message"]
    assert "mine" in message.replace(image, "", 1), "no line to add: " + message


def check_another_version_than_the_images_is_said(world):
    name = world.create("version", AlgorithmSpecification={
        "TrainingInputMode": "File", "TrainingImage":
        "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310"})
    told = world.ended(name)
    said = " ".join(step["StatusMessage"] for step in told["SecondaryStatusTransitions"])
    assert "2.0.1" in said, said
    assert "2.0.1" in world.ath("show", name)


PSEUDO = '{"StartStep": 5, "NumSteps": 1, "MetricsRegex": ".*", }'


def check_what_is_given_is_told_to_the_byte(world):
    more = {
        "OutputDataConfig": {"S3OutputPath": "s3://%s//odd/ /path//" % world.bucket,
                             "KmsKeyId": "alias/mine"},
        "ProfilerConfig": {"S3OutputPath": "s3://%s/p//" % world.bucket,
                           "ProfilingIntervalInMilliseconds": 500,
                           "ProfilingParameters": {"DetailedProfilingConfig": PSEUDO,
                                                   "LocalPath": "/opt/ml/output/profiler/"}},
        "DebugHookConfig": {"S3OutputPath": "s3://%s/d" % world.bucket,
                            "HookParameters": {"train.save_interval": "1"},
                            "CollectionConfigurations": [
                                {"CollectionName": "losses",
                                 "CollectionParameters": {"save_interval": "500"}},
                                {"CollectionName": "losses",
                                 "CollectionParameters": {"save_interval": "10"}}]},
        "TensorBoardOutputConfig": {"S3OutputPath": "s3://%s/t/" % world.bucket,
                                    "LocalPath": "/opt/ml/output/tensorboard"},
        "RetryStrategy": {"MaximumRetryAttempts": 2},
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "ExperimentConfig": {"ExperimentName": "e", "TrialName": "t"},
        "EnableNetworkIsolation": False,
        "Environment": {"A": " \u00e9=\"'$x\n"},
        "ResourceConfig": {"InstanceType": TYPE, "InstanceCount": 1, "VolumeSizeInGB": 31,
                           "VolumeKmsKeyId": "k", "KeepAlivePeriodInSeconds": 600},
    }
    told = world.run("verbatim", **more)
    for member, value in more.items():
        assert told[member] == value, "%s: %r is not %r" % (member, told[member], value)


def check_members_of_tomorrow_are_kept(world):
    body = world.request("future", RemoteDebugConfig={"EnableRemoteDebug": True},
                         NotInventedYet={"Deep": [1, {"er": None}]})
    status, answer = world.raw("CreateTrainingJob", body)
    assert status == 200 and answer["TrainingJobArn"].endswith(body["TrainingJobName"]), answer
    world.ended(body["TrainingJobName"])
    _, told = world.raw("DescribeTrainingJob", {"TrainingJobName": body["TrainingJobName"]})
    assert told["RemoteDebugConfig"] == {"EnableRemoteDebug": True}
    assert told["NotInventedYet"] == {"Deep": [1, {"er": None}]}, told
    assert isinstance(told["CreationTime"], (int, float))


RULES_IMAGE = "895741380848.dkr.ecr.us-west-2.amazonaws.com/sagemaker-debugger-rules:latest"


def check_rules_are_not_evaluated_and_say_so(world):
    rule = {"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": RULES_IMAGE,
            "RuleParameters": {"rule_to_invoke": "LossNotDecreasing"}}
    profile = {"RuleConfigurationName": "ProfilerReport", "RuleEvaluatorImage": RULES_IMAGE,
               "RuleParameters": {"rule_to_invoke": "ProfilerReport"}}
    told = world.run("rules", DebugRuleConfigurations=[rule],
                     ProfilerRuleConfigurations=[profile])
    assert told["DebugRuleConfigurations"][0]["RuleParameters"] == rule["RuleParameters"]
    for member, name in (("DebugRuleEvaluationStatuses", "LossNotDecreasing"),
                         ("ProfilerRuleEvaluationStatuses", "ProfilerReport")):
        (status,) = told[member]
        assert status["RuleConfigurationName"] == name
        assert status["RuleEvaluationStatus"] in ("InProgress", "Error", "Stopped", "Stopping"), \
            status
        assert "not evaluated" in status["StatusDetails"], status
        assert status["LastModifiedTime"]
        arn = status["RuleEvaluationJobArn"]
        seen = world.sm.describe_processing_job(ProcessingJobName=arn.rpartition("/")[2])
        assert seen["ProcessingJobArn"] == arn
        assert seen["TrainingJobArn"] == told["TrainingJobArn"]
        assert "not evaluated" in json.dumps(seen, default=str), seen
    refused(("ResourceNotFound", "ValidationException"), world.sm.describe_processing_job,
            ProcessingJobName="none-such")


def check_the_sdks_first_describe_waits_for_a_young_job(world):
    """Only for the SDK's user agent; a plain client is answered at once."""
    name = world.create("young", "import time; time.sleep(2)")
    assert world.describe(name)["TrainingJobStatus"] == "InProgress"
    told = world.as_sdk.describe_training_job(TrainingJobName=name)
    assert told["TrainingJobStatus"] == "Completed", told["TrainingJobStatus"]


def check_requirements_and_shell_entry_points(world):
    world.run("shell", {"go.sh": "echo \"got $*\" > $SM_MODEL_DIR/out; exit 0"},
              {"sagemaker_program": '"go.sh"', "epochs": "2"})


def check_generic_estimators_strings(world):
    """Estimator() does not JSON-encode: True and words with blanks come as they are."""
    name = world.create("generic", REPORT, {"flag": "True", "words": "x y", "path": "s3://b/k"})
    world.ended(name)
    assert report_of(world, name)["argv"] == ["--flag", "True", "--path", "s3://b/k",
                                              "--words", "x y"]


def check_boto3_in_a_job_reaches_the_same_server(world):
    name = world.create("inside", """
        import os, sys
        try:
            import boto3
        except ImportError:
            sys.exit(print("no boto3 in the job"))
        boto3.client("s3").put_object(Bucket=%r, Key="from/" + os.environ["TRAINING_JOB_NAME"],
                                      Body=b"inside")
        """ % world.bucket)
    world.ended(name)
    if "no boto3 in the job" not in world.lines(name):
        assert world.get("s3://%s/from/%s" % (world.bucket, name)) == b"inside"


def check_the_command_line_knows_the_job(world):
    told = world.run("cli", hyper={"epochs": "4"})
    name = told["TrainingJobName"]
    shown = json.loads(world.ath("show", name, "--sagemaker"))
    assert shown["TrainingJobArn"] == told["TrainingJobArn"]
    assert shown["HyperParameters"] == told["HyperParameters"]
    body = world.request("by-file", REPORT)
    path = os.path.join(world.root, body["TrainingJobName"] + ".json")
    with open(path, "w") as file:
        json.dump(body, file)
    world.ath("run", "-d", "--sagemaker", path)
    world.ended(body["TrainingJobName"])
