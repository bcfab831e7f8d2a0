"""Checks of the SageMaker door: lists, tags, search, updates, tuning jobs."""

import datetime

from sagemaker_kit import IMAGE, ROLE, TERMINAL, TYPE, WAIT, refused, until


def check_lists_come_in_pages(world):
    base = world.name("page")
    names = [world.create(base) for _ in range(5)]
    for name in names:
        world.ended(name)
    listed = {"NameContains": base}
    pages = list(world.sm.get_paginator("list_training_jobs").paginate(
        PaginationConfig={"PageSize": 2}, SortBy="Name", SortOrder="Ascending", **listed))
    assert [len(page["TrainingJobSummaries"]) for page in pages] == [2, 2, 1]
    rows = [row for page in pages for row in page["TrainingJobSummaries"]]
    assert [row["TrainingJobName"] for row in rows] == sorted(names)
    assert "NextToken" not in pages[-1]
    for row in rows:
        told = world.describe(row["TrainingJobName"])
        for member in ("TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime",
                       "TrainingJobStatus"):
            assert row[member] == told[member], (member, row, told[member])

    def seen(**more):
        found = world.sm.list_training_jobs(**dict(listed, **more))
        return [row["TrainingJobName"] for row in found["TrainingJobSummaries"]]

    assert seen() == names[::-1], "newest first"
    assert seen(SortBy="CreationTime", SortOrder="Ascending") == names
    assert sorted(seen(SortBy="Status")) == sorted(names)
    assert seen(StatusEquals="Failed") == [] and len(seen(StatusEquals="Completed")) == 5
    # boto3 sends whole seconds.
    created = world.describe(names[2])["CreationTime"]
    day = datetime.timedelta(days=1)
    for member in ("CreationTime", "LastModifiedTime"):
        assert seen(**{member + "After": created + day}) == []
        assert len(seen(**{member + "Before": created + day})) == 5
        assert len(seen(**{member + "After": created - day})) == 5
        assert seen(**{member + "Before": created - day}) == []
    assert len(seen(MaxResults=100)) == 5
    refused("ValidationException", world.sm.list_training_jobs, NextToken="not one of ours")
    world.refused_raw("ValidationException", "ListTrainingJobs", {"MaxResults": 101}, "maxResults")
    world.refused_raw("ValidationException", "ListTrainingJobs", {"SortBy": "Age"}, "sortBy")


def tags_of(world, arn):
    return {tag["Key"]: tag["Value"] for page in world.sm.get_paginator("list_tags").paginate(
        ResourceArn=arn) for tag in page["Tags"]}


def check_tags(world):
    name = world.create("tags", Tags=[{"Key": "team", "Value": "vision"},
                                      {"Key": "a:b/c", "Value": ""}])
    arn = world.describe(name)["TrainingJobArn"]
    assert tags_of(world, arn) == {"team": "vision", "a:b/c": ""}
    told = world.sm.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "speech"},
                                                    {"Key": "new", "Value": "x y"}])
    assert {tag["Key"] for tag in told["Tags"]} >= {"team", "new"}
    assert tags_of(world, arn) == {"team": "speech", "a:b/c": "", "new": "x y"}
    world.sm.delete_tags(ResourceArn=arn, TagKeys=["a:b/c", "never"])
    assert tags_of(world, arn) == {"team": "speech", "new": "x y"}
    world.ended(name)
    assert tags_of(world, arn) == {"team": "speech", "new": "x y"}
    world.refused_raw("ValidationException", "AddTags", {
        "ResourceArn": arn, "Tags": [{"Key": "k%d" % i, "Value": ""} for i in range(51)]})
    missing = arn.replace(name, "never-made")
    refused(("ResourceNotFound", "ValidationException"), world.sm.add_tags, ResourceArn=missing,
            Tags=[{"Key": "a", "Value": "b"}])
    refused("ValidationException", world.sm.list_tags, ResourceArn="arn:aws:s3:::bucket")


def check_search(world):
    mark = world.name("mark")
    names = [world.run("search", Tags=[{"Key": "mark", "Value": mark}])["TrainingJobName"]
             for _ in range(3)]

    def found(*filters, **more):
        pages = world.sm.get_paginator("search").paginate(
            Resource="TrainingJob", SearchExpression={"Filters": list(filters)},
            PaginationConfig={"PageSize": 2}, **more)
        return [row["TrainingJob"] for page in pages for row in page["Results"]]

    tag = {"Name": "Tags.mark", "Operator": "Equals", "Value": mark}
    rows = found(tag, SortBy="CreationTime", SortOrder="Ascending")
    assert [row["TrainingJobName"] for row in rows] == names, rows
    assert rows[0]["OutputDataConfig"]["KmsKeyId"] == "" and rows[0]["Tags"]
    one = found(tag, {"Name": "TrainingJobName", "Operator": "Contains", "Value": names[1]})
    assert [row["TrainingJobName"] for row in one] == [names[1]]
    assert found(tag, {"Name": "TrainingJobStatus", "Operator": "Equals", "Value": "Failed"}) == []
    assert len(found(tag, {"Name": "TrainingJobStatus", "Operator": "NotEquals",
                           "Value": "Failed"})) == 3
    world.sm.add_tags(ResourceArn=rows[0]["TrainingJobArn"],
                      Tags=[{"Key": "later", "Value": mark}])
    later = found({"Name": "Tags.later", "Operator": "Equals", "Value": mark})
    assert [row["TrainingJobName"] for row in later] == names[:1], "tags that came later count"
    refused("ValidationException", world.sm.search, Resource="Endpoint")


def check_update(world):
    path = world.gate()
    name = world.create("update", WAIT + "print('ready', flush=True)\nwait(%r)" % path)
    world.until_line(name, "ready")
    world.sm.update_training_job(TrainingJobName=name, ProfilerConfig={"DisableProfiler": True})
    assert world.describe(name)["ProfilerConfig"]["DisableProfiler"] is True
    world.sm.update_training_job(TrainingJobName=name,
                                 ResourceConfig={"KeepAlivePeriodInSeconds": 60})
    assert world.describe(name)["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 60
    assert world.describe(name)["ResourceConfig"]["InstanceType"] == TYPE
    world.open(path)
    world.ended(name)


def check_delete(world):
    path = world.gate()
    name = world.create("delete", WAIT + "wait(%r)" % path)
    world.refused_raw("ResourceInUse", "DeleteTrainingJob", {"TrainingJobName": name})
    world.open(path)
    world.ended(name)
    status, _ = world.raw("DeleteTrainingJob", {"TrainingJobName": name})
    assert status == 200
    until(lambda: world.raw("DescribeTrainingJob", {"TrainingJobName": name})[0] == 400,
          "it is gone")
    assert world.raw("DeleteTrainingJob", {"TrainingJobName": "never-made"})[0] == 400
    found = world.sm.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    assert found == [] or found[0]["TrainingJobName"] != name


def check_a_waiter(world):
    name = world.create("waiter")
    world.sm.get_waiter("training_job_completed_or_stopped").wait(
        TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 90})


TRIAL = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--batch")
    given = parser.parse_args()
    assert 0.0001 <= given.lr <= 0.1 and 1 <= given.layers <= 3 and given.batch in ("50", "100")
    print("accuracy=%r;" % (1 - given.lr), flush=True)
"""


def tuning(world, base, **more):
    name = world.name(base)
    body = {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian", "TrainingJobEarlyStoppingType": "Off",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "accuracy"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {
                "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.0001",
                                               "MaxValue": "0.1", "ScalingType": "Logarithmic"}],
                "IntegerParameterRanges": [{"Name": "layers", "MinValue": "1", "MaxValue": "3",
                                            "ScalingType": "Auto"}],
                "CategoricalParameterRanges": [{"Name": "batch", "Values": ['"50"', '"100"']}]}},
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE, "TrainingInputMode": "File", "MetricDefinitions": [
                    {"Name": "accuracy", "Regex": "accuracy=(.*?);"}]},
            "RoleArn": ROLE, "OutputDataConfig": {"S3OutputPath": "s3://%s/" % world.bucket},
            "HyperParameterTuningResourceConfig": {
                "InstanceType": TYPE, "InstanceCount": 1, "VolumeSizeInGB": 30},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "StaticHyperParameters": world.request(base, TRIAL)["HyperParameters"]}}
    if world.version >= (1, 28):
        body["HyperParameterTuningJobConfig"]["RandomSeed"] = 7
    body["HyperParameterTuningJobConfig"].update(more)
    return body


def ended(world, name):
    def over():
        told = world.sm.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
        return told if told["HyperParameterTuningJobStatus"] in TERMINAL else None
    return until(over, "the tuning job %s is over" % name)


def check_tuning_jobs_are_run(world):
    body = tuning(world, "tune")
    name = body["HyperParameterTuningJobName"]
    arn = world.sm.create_hyper_parameter_tuning_job(
        Tags=[{"Key": "a", "Value": "b"}], **body)["HyperParameterTuningJobArn"]
    assert arn.endswith("hyper-parameter-tuning-job/" + name), arn
    refused("ResourceInUse", world.sm.create_hyper_parameter_tuning_job, **body)
    assert tags_of(world, arn) == {"a": "b"}
    told = ended(world, name)
    assert told["HyperParameterTuningJobStatus"] == "Completed", told
    assert told["HyperParameterTuningJobArn"] == arn
    assert told["HyperParameterTuningJobConfig"] == body["HyperParameterTuningJobConfig"]
    assert told["CreationTime"] and told["LastModifiedTime"] and told["HyperParameterTuningEndTime"]
    assert told["TrainingJobStatusCounters"] == {
        "Completed": 4, "InProgress": 0, "RetryableError": 0, "NonRetryableError": 0, "Stopped": 0}
    assert told["ObjectiveStatusCounters"] == {"Succeeded": 4, "Pending": 0, "Failed": 0}
    definition = told["TrainingJobDefinition"]
    resources = body["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"]
    assert definition["HyperParameterTuningResourceConfig"] == resources
    assert definition["ResourceConfig"] == resources, "HyperparameterTuner.attach reads this one"
    assert definition["OutputDataConfig"]["KmsKeyId"] == ""
    assert definition["StaticHyperParameters"].items() >= \
        body["TrainingJobDefinition"]["StaticHyperParameters"].items()
    found = world.sm.list_hyper_parameter_tuning_jobs(NameContains=name, MaxResults=1)
    (row,) = found["HyperParameterTuningJobSummaries"]
    assert row["HyperParameterTuningJobArn"] == arn and row["Strategy"] == "Bayesian"
    assert row["ResourceLimits"]["MaxNumberOfTrainingJobs"] == 4
    listed = world.sm.list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=name, MaxResults=100, SortBy="FinalObjectiveMetricValue",
        SortOrder="Descending")["TrainingJobSummaries"]
    values = [one["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for one in listed]
    assert len(values) == 4 and values == sorted(values, reverse=True), values
    best = told["BestTrainingJob"]
    assert best["TrainingJobName"] == listed[0]["TrainingJobName"]
    assert abs(1 - float(best["TunedHyperParameters"]["lr"]) - values[0]) < 1e-9, best
    assert set(best["TunedHyperParameters"]) == {"lr", "layers", "batch"}
    child = world.sm.describe_training_job(TrainingJobName=best["TrainingJobName"])
    assert child["TuningJobArn"] == arn and child["TrainingJobStatus"] == "Completed", child
    assert child["HyperParameters"].items() >= best["TunedHyperParameters"].items()
    refused("ValidationException", world.sm.stop_hyper_parameter_tuning_job,
            HyperParameterTuningJobName=name)
    status, _ = world.raw("DeleteHyperParameterTuningJob", {"HyperParameterTuningJobName": name})
    assert status == 200
    refused("ResourceNotFound", world.sm.describe_hyper_parameter_tuning_job,
            HyperParameterTuningJobName=name)


def check_a_tuning_job_that_is_stopped(world):
    body = tuning(world, "halt")
    body["TrainingJobDefinition"]["StaticHyperParameters"] = world.request(
        "halt", "import time\nprint('accuracy=0.5;', flush=True)\ntime.sleep(600)")["HyperParameters"]
    name = body["HyperParameterTuningJobName"]
    world.sm.create_hyper_parameter_tuning_job(**body)
    def running():
        listed = world.sm.list_training_jobs_for_hyper_parameter_tuning_job(
            HyperParameterTuningJobName=name)["TrainingJobSummaries"]
        return len(listed) == 2
    until(running, "two jobs of it run")
    world.sm.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    told = ended(world, name)
    assert told["HyperParameterTuningJobStatus"] == "Stopped", told
    assert told["TrainingJobStatusCounters"]["Stopped"] == 2, told


def check_a_grid_tries_every_combination(world):
    body = tuning(world, "grid", Strategy="Grid", ParameterRanges={"CategoricalParameterRanges": [
        {"Name": "batch", "Values": ['"50"', '"100"']}]},
        ResourceLimits={"MaxParallelTrainingJobs": 2})
    static = body["TrainingJobDefinition"]["StaticHyperParameters"]
    static.update({"lr": "0.01", "layers": "2"})
    if world.version < (1, 28):
        return  # its model does not know the strategy
    world.sm.create_hyper_parameter_tuning_job(**body)
    told = ended(world, body["HyperParameterTuningJobName"])
    assert told["TrainingJobStatusCounters"]["Completed"] == 2, told
    hyper = tuning(world, "hyper", Strategy="Hyperband")
    refused("ValidationException", world.sm.create_hyper_parameter_tuning_job, "MaxResource", **hyper)
    refused("ValidationException", world.sm.create_hyper_parameter_tuning_job, "categorical",
            **tuning(world, "cells", Strategy="Grid"))


def check_tuning_jobs_that_cannot_be(world):
    ranges = {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0", "MaxValue": "1",
                                             "ScalingType": "Logarithmic"}]}
    refused("ValidationException", world.sm.create_hyper_parameter_tuning_job,
            "continuousParameterRanges", **tuning(world, "log", ParameterRanges=ranges))
    ranges = {"IntegerParameterRanges": [{"Name": "n", "MinValue": "5", "MaxValue": "2"}]}
    refused("ValidationException", world.sm.create_hyper_parameter_tuning_job,
            "integerParameterRanges", **tuning(world, "order", ParameterRanges=ranges))
    long = tuning(world, "long")
    long["HyperParameterTuningJobName"] = "x" * 33
    world.refused_raw("ValidationException", "CreateHyperParameterTuningJob", long,
                      "hyperParameterTuningJobName", "less than or equal to 32")
