"""Which of MLflow's own tests are run here, and why the others are not.

A name stands for all cases of that test. A test that is named nowhere is in scope and must pass.
"""

VERSIONS = ("3.5.1", "3.15.1")
FILES = ("test_rest_tracking", "test_model_registry", "test_mlflow_artifacts")

# In scope, but they cannot be run against another server: skipped, and named as such.
CANNOT = {
    "test_mlflow_artifacts_example": "needs docker: it builds MLflow's own images",
    "test_create_model_version_with_validation_regex":
        "needs MLflow's own process: it starts `mlflow server` itself, for a variable of MLflow's",
    "test_get_metric_history_bulk_calls_optimized_impl_when_expected":
        "needs MLflow's own process: it calls a Python function of the server with a mock store",
}

# What MLflow's versions want contrary to each other. Athanor does as the newer one.
CHANGED = {
    ("3.5.1", "test_get_metric_history_bulk_interval_respects_max_results"):
        "MLflow 3.15 samples otherwise and its test of that name, which is run, wants the contrary",
}


def cannot(version, name):
    """Why a test in scope is not run; None: it is."""
    return CANNOT.get(name) or CHANGED.get((version, name))


# What Athanor does not serve (docs/tracking.md says so): not counted.
TRACES = "traces are not served"
GRAPHQL = "/graphql, which only MLflow's own page uses, is not served"
GATEWAY = "the gateway, its secrets and endpoints are not served"
EVALUATION = "evaluation data sets, scorers, assessments and issues are not served"

OUT_OF_SCOPE = {
    "test_legacy_start_and_end_trace_v2": TRACES,
    "test_start_trace": TRACES,
    "test_get_trace": TRACES,
    "test_search_traces": TRACES,
    "test_search_traces_parameter_validation": TRACES,
    "test_search_traces_match_text": TRACES,
    "test_delete_traces": TRACES,
    "test_calculate_trace_filter_correlation": TRACES,
    "test_set_and_delete_trace_tag": TRACES,
    "test_query_trace_metrics": TRACES,
    "test_get_trace_handler": TRACES,
    "test_get_trace_artifact_handler": TRACES,
    "test_link_traces_to_run_and_search_traces": TRACES,
    "test_rest_store_logs_spans_via_otel_endpoint": TRACES,
    "test_graphql_handler": GRAPHQL,
    "test_graphql_handler_batching_raise_error": GRAPHQL,
    "test_get_experiment_graphql": GRAPHQL,
    "test_get_run_and_experiment_graphql": GRAPHQL,
    "test_get_metric_history_bulk_interval_graphql": GRAPHQL,
    "test_search_runs_graphql": GRAPHQL,
    "test_list_artifacts_graphql": GRAPHQL,
    "test_search_datasets_graphql": GRAPHQL,
    "test_graphql_nan_metric_handling": GRAPHQL,
    "test_create_promptlab_run_handler_rejects_invalid_requests": GATEWAY,
    "test_create_promptlab_run_handler_returns_expected_results": GATEWAY,
    "test_gateway_proxy_handler_rejects_invalid_requests": GATEWAY,
    "test_create_and_get_secret": GATEWAY,
    "test_update_secret": GATEWAY,
    "test_list_secret_infos": GATEWAY,
    "test_delete_secret": GATEWAY,
    "test_create_secret_with_dict_value": GATEWAY,
    "test_update_secret_with_dict_value": GATEWAY,
    "test_create_and_update_compound_secret_via_rest": GATEWAY,
    "test_create_and_get_endpoint": GATEWAY,
    "test_create_endpoint_with_usage_tracking": GATEWAY,
    "test_update_endpoint": GATEWAY,
    "test_list_endpoints": GATEWAY,
    "test_delete_endpoint": GATEWAY,
    "test_model_definitions": GATEWAY,
    "test_attach_detach_model_to_endpoint": GATEWAY,
    "test_endpoint_bindings": GATEWAY,
    "test_secrets_and_endpoints_integration": GATEWAY,
    "test_list_providers": GATEWAY,
    "test_list_models": GATEWAY,
    "test_get_provider_config": GATEWAY,
    "test_get_secrets_config_with_custom_passphrase": GATEWAY,
    "test_get_secrets_config_with_default_passphrase": GATEWAY,
    "test_endpoint_with_orphaned_model_definition": GATEWAY,
    "test_update_model_definition_provider": GATEWAY,
    "test_assessments_end_to_end": EVALUATION,
    "test_create_and_get_evaluation_dataset": EVALUATION,
    "test_search_evaluation_datasets": EVALUATION,
    "test_evaluation_dataset_tag_operations": EVALUATION,
    "test_evaluation_dataset_delete": EVALUATION,
    "test_evaluation_dataset_upsert_records": EVALUATION,
    "test_add_dataset_to_experiments_rest_tracking": EVALUATION,
    "test_remove_dataset_from_experiments_rest_tracking": EVALUATION,
    "test_add_multiple_experiments_at_once_rest_tracking": EVALUATION,
    "test_dataset_experiment_association_error_cases_rest_tracking": EVALUATION,
    "test_idempotent_add_experiments_rest_tracking": EVALUATION,
    "test_idempotent_remove_experiments_rest_tracking": EVALUATION,
    "test_client_api_add_remove_experiments_rest_tracking": EVALUATION,
    "test_scorer_CRUD": EVALUATION,
    "test_online_scoring_config": EVALUATION,
    "test_create_issue_with_all_fields": EVALUATION,
    "test_create_issue_minimal_fields": EVALUATION,
    "test_create_issue_with_required_fields": EVALUATION,
    "test_create_issue_invalid_experiment": EVALUATION,
    "test_get_issue": EVALUATION,
    "test_get_issue_not_found": EVALUATION,
    "test_update_issue": EVALUATION,
    "test_search_issues_no_filters": EVALUATION,
    "test_search_issues_by_experiment": EVALUATION,
    "test_search_issues_by_status": EVALUATION,
    "test_search_issues_with_pagination": EVALUATION,
    "test_search_issues_sorted_by_timestamp": EVALUATION,
}
