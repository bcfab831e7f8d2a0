"""What boto3 must see of CloudWatch and its logs. Run by test_cloudwatch.py with the interpreter
whose boto3 is meant and the variables of `ath env aws`; its arguments are the server's address
and the folder of the jobs' flags. Prints one line per check and ends with 0, or with a traceback.
"""

import datetime
import json
import math
import os
import sys
import time
import urllib.request

import boto3
import botocore
from botocore.exceptions import ClientError

GROUP = "/aws/sagemaker/TrainingJobs"
URL, FLAGS = sys.argv[1:3]
TERMINAL = ("Completed", "Failed", "Stopped")
VERSION = "x".join(boto3.__version__.split(".")[:2])


def refused(code, call, **arguments):
    """The call must be refused with that code."""
    try:
        call(**arguments)
    except ClientError as error:
        seen = error.response["Error"]["Code"]
        assert seen == code, "%s instead of %s" % (error, code)
        return error
    raise AssertionError("not refused: %s" % code)


def state(job):
    with urllib.request.urlopen("%s/api/v1/jobs/%s" % (URL, job)) as reply:
        return json.load(reply)["state"]


def the_stream(logs, job):
    """As the SageMaker SDK asks for it."""
    answer = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=job + "/",
                                       orderBy="LogStreamName", limit=1)
    assert "nextToken" not in answer, answer
    streams = answer["logStreams"]
    assert len(streams) <= 1, streams
    return streams[0] if streams else None


def forward(logs, stream, **more):
    """Every event, until the token that was given comes back."""
    events, token = [], None
    while True:
        arguments = dict(more, nextToken=token) if token else more
        answer = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True,
                                     **arguments)
        events += answer["events"]
        if answer["nextForwardToken"] == token:
            assert not answer["events"]
            return events
        token = answer["nextForwardToken"]


def check_streams(logs):
    groups = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/")["logGroups"]
    assert [g["logGroupName"] for g in groups] == [GROUP], groups
    stream = the_stream(logs, "talker")
    job, _, host = stream["logStreamName"].partition("/")
    assert job == "talker" and host.startswith("algo-1-"), stream
    assert abs(int(host[len("algo-1-"):]) / 1000 - time.time()) < 3600, stream
    assert stream["firstEventTimestamp"] <= stream["lastEventTimestamp"], stream
    assert the_stream(logs, "nobody") is None
    pages = logs.get_paginator("describe_log_streams").paginate(
        logGroupName=GROUP, PaginationConfig={"PageSize": 1})
    names = [s["logStreamName"] for page in pages for s in page["logStreams"]]
    assert stream["logStreamName"] in names and names == sorted(set(names)), names
    newest = logs.describe_log_streams(logGroupName=GROUP, orderBy="LastEventTime",
                                       descending=True)["logStreams"]
    assert sorted(s["logStreamName"] for s in newest) == names, newest


def check_events(logs):
    stream = the_stream(logs, "talker")["logStreamName"]
    events = forward(logs, stream, limit=7)
    times = [e["timestamp"] for e in events]
    assert times == sorted(times)
    lines = [e["message"] for e in events]
    assert lines.count("to stderr") == 1, lines
    lines.remove("to stderr")
    assert lines == (["line %d" % i for i in range(40)]
                     + ["100%", "caf\u00e9 \u20ac", "ERROR: disk is full", "no end of line"]), lines
    assert forward(logs, stream) == events
    last = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, limit=5)
    assert last["events"] == events[-5:], last
    before = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, limit=5,
                                 nextToken=last["nextBackwardToken"])
    assert before["events"] == events[-10:-5], before
    middle = times[len(times) // 2]
    later = [e for e in events if e["timestamp"] >= middle]
    assert forward(logs, stream, startTime=middle) == later
    assert forward(logs, stream, endTime=middle) == events[:-len(later)]
    assert forward(logs, stream, startTime=times[-1] + 1) == []


def check_filter(logs):
    found = []
    for page in logs.get_paginator("filter_log_events").paginate(
            logGroupName=GROUP, logStreamNamePrefix="talker/", filterPattern="line -7",
            PaginationConfig={"PageSize": 3}):
        found += page["events"]
    assert [e["message"] for e in found] == (
        ["line %d" % i for i in range(40) if "7" not in str(i)] + ["no end of line"]), found
    assert len({e["eventId"] for e in found}) == len(found)
    everywhere = logs.filter_log_events(logGroupName=GROUP,
                                        filterPattern='?"disk is full" ?nothing')
    assert "ERROR: disk is full" in [e["message"] for e in everywhere["events"]], everywhere


def check_log_refusals(logs):
    stream = the_stream(logs, "talker")["logStreamName"]
    for call in (lambda: logs.describe_log_streams(logGroupName="/aws/lambda/x"),
                 lambda: logs.get_log_events(logGroupName=GROUP, logStreamName="nobody/algo-1-1")):
        try:
            call()
        except logs.exceptions.ResourceNotFoundException:
            continue
        raise AssertionError("not refused")
    refused("InvalidParameterException", logs.get_log_events, logGroupName=GROUP,
            logStreamName=stream, nextToken="nonsense")
    refused("InvalidParameterException", logs.filter_log_events, logGroupName=GROUP,
            filterPattern="{ $.level = 1 }")
    refused("InvalidParameterException", logs.describe_log_streams, logGroupName=GROUP, limit=51)
    refused("UnknownOperationException", logs.create_log_group, logGroupName="mine")


def check_following(logs):
    """The SDK's way: from the last time seen, skipping what was seen then; once more after the
    end was seen. Nothing may come twice, be missing, or come after the end."""
    job = "slow-" + VERSION
    seen, since, skip = [], 0, 0
    while True:
        over = state(job) in TERMINAL
        stream = the_stream(logs, job)
        if stream:
            events = forward(logs, stream["logStreamName"], startTime=since)
            assert len(events) >= skip
            for event in events[skip:]:
                skip = skip + 1 if event["timestamp"] == since else 1
                since = event["timestamp"]
                seen.append(event["message"])
            if "first" in seen:
                open(os.path.join(FLAGS, "go-" + VERSION), "w").close()
        if over:
            break
        time.sleep(0.01)
    assert seen == ["first"] + ["tail %d" % i for i in range(3000)], (len(seen), seen[-3:])


def window():
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"StartTime": now - datetime.timedelta(hours=1),
            "EndTime": now + datetime.timedelta(hours=1)}


def check_statistics(cloudwatch):
    job = [{"Name": "TrainingJobName", "Value": "talker"}]
    answer = cloudwatch.get_metric_statistics(
        Namespace=GROUP, MetricName="loss", Dimensions=job, Period=3600,
        Statistics=["Average", "Sum", "Minimum", "Maximum", "SampleCount"], **window())
    assert answer["Label"] == "loss"
    points = answer["Datapoints"]
    # Six numbers; the NaN does not count. An hour may have begun in between.
    assert sum(p["SampleCount"] for p in points) == 6, points
    assert math.isclose(sum(p["Sum"] for p in points), sum(1 / (i + 1) for i in range(6)))
    assert max(p["Maximum"] for p in points) == 1 and min(p["Minimum"] for p in points) == 1 / 6
    for point in points:
        assert math.isclose(point["Average"], point["Sum"] / point["SampleCount"])
        assert window()["StartTime"] - datetime.timedelta(minutes=1) <= point["Timestamp"]
    nothing = cloudwatch.get_metric_statistics(
        Namespace=GROUP, MetricName="other", Dimensions=job, Period=60, Statistics=["Average"],
        **window())
    assert nothing["Datapoints"] == [], nothing


def check_data(cloudwatch):
    def query(name):
        return {"Id": name, "MetricStat": {"Metric": {
            "Namespace": GROUP, "MetricName": name,
            "Dimensions": [{"Name": "TrainingJobName", "Value": "talker"}]},
            "Period": 60, "Stat": "SampleCount"}}

    counted = {"loss": 0, "accuracy": 0}
    for page in cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[query("loss"), query("accuracy")], ScanBy="TimestampAscending",
            PaginationConfig={"PageSize": 1}, **window()):
        for result in page["MetricDataResults"]:
            assert len(result["Values"]) == len(result["Timestamps"])
            counted[result["Id"]] += sum(result["Values"])
    assert counted == {"loss": 6, "accuracy": 1}, counted


def check_list(cloudwatch):
    listed = [(m["MetricName"], m["Dimensions"][0]["Value"])
              for page in cloudwatch.get_paginator("list_metrics").paginate(Namespace=GROUP)
              for m in page["Metrics"]]
    assert ("loss", "talker") in listed and ("accuracy", "talker") in listed, listed
    host = cloudwatch.list_metrics(Namespace=GROUP, Dimensions=[{"Name": "Host"}])
    assert host["Metrics"] == [], host


def check_metric_refusals(cloudwatch):
    arguments = dict(window(), Namespace=GROUP, MetricName="loss", Statistics=["Average"])
    refused("InvalidParameterValue", cloudwatch.get_metric_statistics, **arguments, Period=7)
    try:
        cloudwatch.get_metric_statistics(**arguments, Period=7)
    except cloudwatch.exceptions.InvalidParameterValueException:
        pass
    refused("InvalidParameterCombination", cloudwatch.get_metric_statistics, Period=60,
            **dict(arguments, StartTime=arguments["EndTime"], EndTime=arguments["StartTime"]))
    error = refused("ValidationError", cloudwatch.get_metric_data, **window(),
                    MetricDataQueries=[{"Id": "e1", "Expression": "1 + 1"}])
    assert "metric math" in str(error)
    # The two protocols have two words for it.
    try:
        cloudwatch.put_metric_data(Namespace="mine", MetricData=[{"MetricName": "m", "Value": 1}])
    except ClientError as error:
        assert error.response["Error"]["Code"] in ("InvalidAction", "UnknownOperationException")
        assert "athanor.log" in str(error), error
    else:
        raise AssertionError("not refused")


def main():
    logs = boto3.client("logs")
    cloudwatch = boto3.client("cloudwatch")
    print("boto3", boto3.__version__, "botocore", botocore.__version__)
    for client, check in ((logs, check_streams), (logs, check_events), (logs, check_filter),
                          (logs, check_log_refusals), (logs, check_following),
                          (cloudwatch, check_statistics), (cloudwatch, check_data),
                          (cloudwatch, check_list), (cloudwatch, check_metric_refusals)):
        check(client)
        print("ok", check.__name__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
