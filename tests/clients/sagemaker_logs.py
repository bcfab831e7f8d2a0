"""Checks of the SageMaker door: CloudWatch's logs and metrics of the jobs."""

import datetime
import re

from sagemaker_kit import GROUP, IMAGE, WAIT, refused


def check_a_log_is_whole_when_the_job_has_ended(world):
    name = world.create("whole", "for i in range(5000): print('line', i)\n"
                        "import sys; print('to stderr', file=sys.stderr)")
    world.ended(name)
    events = world.events(name)
    assert [event["message"] for event in events if event["message"].startswith("line ")] == \
        ["line %d" % i for i in range(5000)]
    assert any(event["message"] == "to stderr" for event in events)
    times = [event["timestamp"] for event in events]
    assert times == sorted(times) and all(isinstance(time, int) for time in times)
    assert world.events(name) == events, "the same order each time"


def check_streams_are_named_as_the_service_names_them(world):
    name = world.run("stream")["TrainingJobName"]
    assert re.fullmatch(re.escape(name) + r"/algo-1-\d{10,}", world.stream(name))
    groups = world.logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/")["logGroups"]
    assert GROUP in [group["logGroupName"] for group in groups]
    other = world.run("stream")["TrainingJobName"]
    prefix = {"logGroupName": GROUP, "logStreamNamePrefix": "stream-%d-" % world.version[1]}
    first = world.logs.describe_log_streams(limit=1, **prefix)
    assert len(first["logStreams"]) == 1 and first["nextToken"]
    second = world.logs.describe_log_streams(limit=1, nextToken=first["nextToken"], **prefix)
    seen = {page["logStreams"][0]["logStreamName"].partition("/")[0] for page in (first, second)}
    assert seen == {name, other}, seen
    # The SDK passes no token on: it would ask for ever.
    assert "nextToken" not in world.logs.describe_log_streams(limit=50, **prefix)


def check_no_stream_yet(world):
    found = world.logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix="never-made/")
    assert found["logStreams"] == []
    refused("ResourceNotFoundException", world.logs.get_log_events, logGroupName=GROUP,
            logStreamName="never-made/algo-1-1")
    refused("ResourceNotFoundException", world.logs.describe_log_streams, logGroupName="/aws/else")


def check_reading_on_while_the_job_prints(world):
    """Tokens and start times as the SDK uses them."""
    path = world.gate()
    name = world.create("follow", WAIT + "print('one', flush=True)\nwait(%r)\nprint('two')" % path)
    world.until_line(name, "one")
    stream = {"logGroupName": GROUP, "logStreamName": world.stream(name), "startFromHead": True}
    page = world.logs.get_log_events(**stream)
    token = page["nextForwardToken"]
    last = page["events"][-1]
    empty = world.logs.get_log_events(nextToken=token, **stream)
    assert empty["events"] == [] and empty["nextForwardToken"] == token
    world.open(path)
    world.ended(name)
    more = world.logs.get_log_events(nextToken=token, **stream)
    assert [event["message"] for event in more["events"]][0] == "two", more
    again = world.logs.get_log_events(startTime=last["timestamp"], **stream)["events"]
    assert again[0]["timestamp"] >= last["timestamp"]
    assert "two" in [event["message"] for event in again]
    one = world.logs.get_log_events(limit=1, **stream)
    assert len(one["events"]) == 1
    back = world.logs.get_log_events(**dict(stream, startFromHead=False, limit=1))
    assert back["events"][0]["message"] == world.lines(name)[-1]


def check_filtering(world):
    name = world.run("filter", "print('epoch 1 done')\nprint('other')\nprint('epoch 2 done')")[
        "TrainingJobName"]
    found = world.logs.filter_log_events(logGroupName=GROUP, logStreamNamePrefix=name + "/",
                                         filterPattern='"epoch"')
    assert [event["message"] for event in found["events"]] == ["epoch 1 done", "epoch 2 done"]
    assert found["events"][0]["logStreamName"] == world.stream(name)
    every = world.logs.filter_log_events(logGroupName=GROUP,
                                         logStreamNames=[world.stream(name)])
    assert [event["message"] for event in every["events"]] == world.lines(name)


SCORES = "for value in (4, 2, 1): print('loss = %s; accuracy = %s;' % (value, 1 / value))"
DEFINITIONS = [{"Name": "train:loss", "Regex": "loss = (.*?);"},
               {"Name": "accuracy", "Regex": "accuracy = (.*?);"}]


def check_metrics(world):
    told = world.run("metrics", SCORES, AlgorithmSpecification={
        "TrainingImage": IMAGE, "TrainingInputMode": "File", "MetricDefinitions": DEFINITIONS})
    name = told["TrainingJobName"]
    assert told["AlgorithmSpecification"]["MetricDefinitions"] == DEFINITIONS
    final = {row["MetricName"]: row["Value"] for row in told["FinalMetricDataList"]}
    assert final == {"train:loss": 1, "accuracy": 1}, final
    assert all(row["Timestamp"] for row in told["FinalMetricDataList"])
    asked = {"Namespace": GROUP, "Period": 60,
             "StartTime": told["TrainingStartTime"] - datetime.timedelta(minutes=1),
             "EndTime": told["TrainingEndTime"] + datetime.timedelta(minutes=2),
             "Dimensions": [{"Name": "TrainingJobName", "Value": name}]}
    points = world.cloudwatch.get_metric_statistics(
        MetricName="train:loss", Statistics=["Average", "Minimum", "Maximum", "Sum",
                                             "SampleCount"], **asked)["Datapoints"]
    assert sum(point["SampleCount"] for point in points) == 3, points
    assert sum(point["Sum"] for point in points) == 7, points
    assert min(point["Minimum"] for point in points) == 1
    assert max(point["Maximum"] for point in points) == 4
    for point in points:
        assert abs(point["Average"] - point["Sum"] / point["SampleCount"]) < 1e-9
        assert point["Timestamp"].second == 0, "aligned to the period"
    assert world.cloudwatch.get_metric_statistics(
        MetricName="never", Statistics=["Average"], **asked)["Datapoints"] == []
    listed = world.cloudwatch.list_metrics(Namespace=GROUP, Dimensions=asked["Dimensions"])
    assert {row["MetricName"] for row in listed["Metrics"]} >= {"train:loss", "accuracy"}
    data = world.cloudwatch.get_metric_data(
        StartTime=asked["StartTime"], EndTime=asked["EndTime"], MetricDataQueries=[
            {"Id": "m1", "MetricStat": {"Stat": "Maximum", "Period": 60, "Metric": {
                "Namespace": GROUP, "MetricName": "train:loss",
                "Dimensions": asked["Dimensions"]}}}])["MetricDataResults"]
    assert data[0]["Id"] == "m1" and max(data[0]["Values"]) == 4, data
    assert len(data[0]["Values"]) == len(data[0]["Timestamps"])


def check_metrics_that_are_no_numbers(world):
    told = world.run("nan", "print('loss = nan;')\nprint('loss = inf;')\nprint('loss = x;')",
                     AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File",
                                             "MetricDefinitions": DEFINITIONS[:1]})
    for row in told.get("FinalMetricDataList", []):
        assert isinstance(row["Value"], float), row
