"""Checks of the SageMaker door: what it refuses, and in which words."""

import copy
import json
import os
import re

from sagemaker_kit import TYPE, refused

LONG = "x" * 64
MANY = "Member must have length less than or equal to "
PATTERN = "Member must satisfy regular expression pattern: "
ENUM = "Member must satisfy enum value set: "

# What is put where in a right body, how the message names the member, and what it must say.
WRONG = [
    ("TrainingJobName", "a.b", "trainingJobName", PATTERN),
    ("TrainingJobName", "-a", "trainingJobName", PATTERN),
    ("TrainingJobName", LONG, "trainingJobName", MANY + "63"),
    ("TrainingJobName", None, "trainingJobName", "Member must not be null"),
    ("RoleArn", "arn:aws:s3:::" + LONG, "roleArn", PATTERN),
    ("RoleArn", None, "roleArn", "Member must not be null"),
    ("AlgorithmSpecification.TrainingInputMode", "Fast", "algorithmSpecification.trainingInputMode",
     ENUM),
    ("AlgorithmSpecification.MetricDefinitions", [{"Name": "n%d" % i, "Regex": "(x)"}
                                                  for i in range(41)],
     "algorithmSpecification.metricDefinitions", MANY + "40"),
    ("AlgorithmSpecification.MetricDefinitions", [{"Name": "n", "Regex": "x" * 501}],
     "algorithmSpecification.metricDefinitions.1.member.regex", MANY + "500"),
    ("HyperParameters", {"k%d" % i: "v" for i in range(101)}, "hyperParameters", MANY + "100"),
    ("HyperParameters", {"k": "v" * 2501}, "hyperParameters", MANY + "2500"),
    ("HyperParameters", {"k" * 257: "v"}, "hyperParameters", MANY + "256"),
    ("Environment", {"1x": "v"}, "environment", PATTERN),
    ("Environment", {"K": "v" * 513}, "environment", MANY + "512"),
    ("ResourceConfig.InstanceType", "m5 large", "resourceConfig.instanceType",
     "Member must satisfy"),
    ("ResourceConfig.InstanceCount", -1, "resourceConfig.instanceCount",
     "Member must have value greater than or equal to "),
    ("ResourceConfig.KeepAlivePeriodInSeconds", 21601, "resourceConfig.keepAlivePeriodInSeconds",
     "Member must have value less than or equal to "),
    ("StoppingCondition.MaxRuntimeInSeconds", 0, "stoppingCondition.maxRuntimeInSeconds",
     "Member must have value greater than or equal to 1"),
    ("OutputDataConfig.S3OutputPath", "ftp://host/x", "outputDataConfig.s3OutputPath", PATTERN),
    ("OutputDataConfig.S3OutputPath", None, "outputDataConfig.s3OutputPath",
     "Member must not be null"),
    ("Tags", [{"Key": "k%d" % i, "Value": "v"} for i in range(51)], "tags", MANY + "50"),
    ("RetryStrategy", {"MaximumRetryAttempts": 31}, "retryStrategy.maximumRetryAttempts",
     "Member must have value less than or equal to 30"),
    ("InputDataConfig", [{"ChannelName": "a b", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://b/k"}}}],
     "inputDataConfig.1.member.channelName", PATTERN),
    ("InputDataConfig", [{"ChannelName": "a", "DataSource": {"S3DataSource": {
        "S3DataType": "Prefix", "S3Uri": "s3://b/k"}}}],
     "inputDataConfig.1.member.dataSource.s3DataSource.s3DataType", ENUM),
]


def put(body, path, value):
    *above, last = path.split(".")
    for name in above:
        body = body[name]
    if value is None:
        body.pop(last)
    else:
        body[last] = value


def check_wrong_values_are_refused_in_the_services_words(world):
    right = world.request("wrong")
    for path, value, member, words in WRONG:
        body = copy.deepcopy(right)
        put(body, path, value)
        message = world.refused_raw("ValidationException", "CreateTrainingJob", body)
        assert re.match(r"\d validation errors? detected: Value .* at '%s.*' failed to "
                        r"satisfy constraint: " % re.escape(member), message, re.S), (path, message)
        assert words in message, (path, message)
        assert len(message) < 4000, path
    two = copy.deepcopy(right)
    put(two, "TrainingJobName", "a.b")
    put(two, "StoppingCondition.MaxRuntimeInSeconds", 0)
    message = world.refused_raw("ValidationException", "CreateTrainingJob", two)
    assert message.startswith("2 validation errors detected: ") and "; " in message, message
    # Nothing of it was kept.
    refused(("ResourceNotFound", "ValidationException"), world.sm.describe_training_job,
            TrainingJobName=right["TrainingJobName"])


def check_what_cannot_be_is_refused(world):
    def never(*says, **more):
        refused("ValidationException", world.sm.create_training_job, *says,
                **world.request("never", **more))

    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": world.put("x/y", "z")}}
    never("train", InputDataConfig=[{"ChannelName": "train", "DataSource": source}] * 2)
    never("(", AlgorithmSpecification={
        "TrainingImage": world.request("x")["AlgorithmSpecification"]["TrainingImage"],
        "TrainingInputMode": "File", "MetricDefinitions": [{"Name": "m", "Regex": "("}]})
    never("MaxWait", EnableManagedSpotTraining=True, StoppingCondition={
        "MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 99})
    never("MaxWait", StoppingCondition={"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 200})
    never("train2.py", hyper={"sagemaker_program": '"train2.py"'})
    never("gone.tar.gz", hyper={"sagemaker_submit_directory":
                                '"s3://%s/gone.tar.gz"' % world.bucket})
    never("InstanceCount", ResourceConfig={"InstanceType": TYPE, "InstanceCount": 0,
                                           "VolumeSizeInGB": 1})
    never("no-such-bucket-at-all", OutputDataConfig={"S3OutputPath": "s3://no-such-bucket-at-all/"})


def check_a_name_is_used_once(world):
    body = world.request("once")
    world.sm.create_training_job(**body)
    error = refused("ResourceInUse", world.sm.create_training_job, **body)
    assert isinstance(error, world.sm.exceptions.ResourceInUse)
    world.ended(body["TrainingJobName"])
    refused("ResourceInUse", world.sm.create_training_job, **body)


def check_what_is_not_there(world):
    for call, arguments in [
            (world.sm.describe_training_job, {}), (world.sm.stop_training_job, {}),
            (world.sm.update_training_job, {"ProfilerConfig": {"DisableProfiler": True}})]:
        error = refused(("ResourceNotFound", "ValidationException"), call,
                        TrainingJobName="never-made", **arguments)
        assert "not found" in str(error).lower() or "could not find" in str(error).lower(), error
    for call in (world.sm.describe_hyper_parameter_tuning_job,
                 world.sm.stop_hyper_parameter_tuning_job,
                 world.sm.list_training_jobs_for_hyper_parameter_tuning_job):
        error = refused("ResourceNotFound", call, HyperParameterTuningJobName="never-made")
        assert isinstance(error, world.sm.exceptions.ResourceNotFound), error


def check_unknown_operations(world):
    refused("UnknownOperationException", world.sm.list_endpoints)
    refused("UnknownOperationException", world.sm.create_model, ModelName="m",
            ExecutionRoleArn="arn:aws:iam::000000000000:role/r")
    assert world.raw("NoSuchThing", {})[1]["__type"].endswith("UnknownOperationException")
    refused("UnknownOperationException", world.logs.describe_queries)


def check_bodies_that_are_none(world):
    for body in (b"", b"[]", b"{", b'{"TrainingJobName": 5}', b"\xff\xfe", b'"x"',
                 b'{"a":' * 5000, b'{"TrainingJobName": {"a": 1}}', b"null"):
        status, answer = world.raw("DescribeTrainingJob", body)
        kind = answer["__type"].rpartition("#")[2]
        assert status == 400 and kind in ("SerializationException", "ValidationException"), \
            (body[:30], status, answer)
    body = world.request("types")
    for path, value in (("HyperParameters", {"k": 5}), ("InputDataConfig", {"a": 1}),
                        ("ResourceConfig", []), ("ResourceConfig.InstanceCount", "1"),
                        ("EnableManagedSpotTraining", "yes"), ("Tags", [3])):
        wrong = copy.deepcopy(body)
        put(wrong, path, value)
        status, answer = world.raw("CreateTrainingJob", wrong)
        kind = answer["__type"].rpartition("#")[2]
        assert status == 400 and kind in ("SerializationException", "ValidationException"), \
            (path, status, answer)


def check_a_key_may_what_its_scope_says(world):
    key = json.loads(world.ath("token", "create", "--aws", "--scope", "read", "--json"))
    reader = world.boto3.Session(aws_access_key_id=key["access_key_id"],
                                 aws_secret_access_key=key["secret_access_key"])
    client = reader.client("sagemaker", region_name=os.environ["AWS_REGION"])
    client.list_training_jobs()
    body = world.request("denied")
    refused("AccessDeniedException", client.create_training_job, **body)
    refused("AccessDeniedException", client.stop_training_job,
            TrainingJobName=body["TrainingJobName"])
    refused("AccessDeniedException", client.add_tags, Tags=[{"Key": "a", "Value": "b"}],
            ResourceArn="arn:aws:sagemaker:us-west-2:000000000000:training-job/x")


def check_a_mistyped_type_gets_the_nearest(world):
    message = world.refused_raw("ValidationException", "CreateTrainingJob", dict(
        world.request("type"), ResourceConfig={"InstanceType": "ml.g4dn.xlage",
                                               "InstanceCount": 1, "VolumeSizeInGB": 1}))
    assert "ml.g4dn.xlarge" in message, message
