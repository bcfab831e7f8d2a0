"""With built-in debugger rules, a hook configuration, TensorBoard output and profiling."""

import sagemaker
from sagemaker.debugger import (CollectionConfig, DebuggerHookConfig, DetailedProfilingConfig,
                                FrameworkProfile, ProfilerConfig, ProfilerRule, Rule,
                                TensorBoardOutputConfig, rule_configs)
from sagemaker.pytorch import PyTorch

session = sagemaker.Session()
job_name = "cifar10-debugger"
tb_debug_path = f"s3://{session.default_bucket()}/tensorboard/{job_name}"

actions = rule_configs.ActionList(rule_configs.StopTraining())
rules = [
    Rule.sagemaker(rule_configs.vanishing_gradient(), actions=actions),
    Rule.sagemaker(rule_configs.overfit(), actions=actions),
    Rule.sagemaker(rule_configs.loss_not_decreasing()),
    ProfilerRule.sagemaker(rule_configs.ProfilerReport()),
]
hook_config = DebuggerHookConfig(
    hook_parameters={"train.save_interval": "1", "eval.save_interval": "1"},
    collection_configs=[
        CollectionConfig(name="weights", parameters={"save_histogram": "True"}),
        CollectionConfig(name="losses"),
    ])
profiler_config = ProfilerConfig(
    system_monitor_interval_millis=500,
    framework_profile_params=FrameworkProfile(
        detailed_profiling_config=DetailedProfilingConfig(start_step=2, num_steps=1)))

estimator = PyTorch(entry_point="cifar10.py",
                    source_dir="source",
                    role="SageMakerRole",
                    sagemaker_session=session,
                    py_version="py38",
                    framework_version="1.12.0",
                    instance_count=1,
                    instance_type="ml.p2.xlarge",
                    rules=rules,
                    debugger_hook_config=hook_config,
                    profiler_config=profiler_config,
                    tensorboard_output_config=TensorBoardOutputConfig(
                        s3_output_path=tb_debug_path),
                    base_job_name=job_name)
estimator.fit()

for rule in estimator.latest_training_job.rule_job_summary():
    print("Rule:", rule["RuleConfigurationName"], "status:", rule["RuleEvaluationStatus"],
          "details:", rule.get("StatusDetails"))
