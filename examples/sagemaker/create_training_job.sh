#!/bin/sh
# The same job without an SDK: the aws command alone.
set -eu
cd "$(dirname "$0")"
job=cifar10-cli-$(date +%Y%m%d-%H%M%S)
bucket=cifar10-cli
image=763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.12.0-gpu-py38
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

aws s3 mb "s3://$bucket" 2>/dev/null || true
tar -czf "$work/sourcedir.tar.gz" -C source cifar10.py pictures.py
aws s3 cp --quiet "$work/sourcedir.tar.gz" "s3://$bucket/$job/source/sourcedir.tar.gz"

aws sagemaker create-training-job \
  --training-job-name "$job" \
  --role-arn arn:aws:iam::111122223333:role/SageMakerRole \
  --algorithm-specification "TrainingImage=$image,TrainingInputMode=File,MetricDefinitions=[{Name=val_accuracy,Regex='Val Accuracy = (.*?);'}]" \
  --hyper-parameters "sagemaker_program=cifar10.py,sagemaker_submit_directory=s3://$bucket/$job/source/sourcedir.tar.gz,num-epochs=2" \
  --output-data-config "S3OutputPath=s3://$bucket/" \
  --resource-config InstanceType=ml.g4dn.xlarge,InstanceCount=1,VolumeSizeInGB=30 \
  --stopping-condition MaxRuntimeInSeconds=3600

status() {
  aws sagemaker describe-training-job --training-job-name "$job" --query "$1" --output text
}
while [ "$(status TrainingJobStatus)" = InProgress ]; do sleep 1; done

stream=$(aws logs describe-log-streams --log-group-name /aws/sagemaker/TrainingJobs \
  --log-stream-name-prefix "$job/" --query 'logStreams[0].logStreamName' --output text)
aws logs get-log-events --log-group-name /aws/sagemaker/TrainingJobs \
  --log-stream-name "$stream" --start-from-head --query 'events[].[message]' --output text
echo "$job: $(status TrainingJobStatus)"
[ "$(status TrainingJobStatus)" = Completed ] || { status FailureReason; exit 1; }
status 'FinalMetricDataList[].[MetricName, Value]'
aws s3 cp --quiet "$(status ModelArtifacts.S3ModelArtifacts)" model.tar.gz
tar -tzf model.tar.gz
