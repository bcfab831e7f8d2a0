#include <string>
#include <utility>

#include "cli/arg_values.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verb_ui.h"
#include "serve/serve.h"

namespace athanor::args {

void AddCommon(CLI::App* app, Values& v) {
  app->add_flag("--json", v.common.json, "Print JSON")->group("Output");
  app->add_flag("-q,--quiet", v.common.quiet, "Do not print hints")->group("Output");
}

CLI::App* Verb(CLI::App& app, Values& v, const char* name, const char* text,
               std::function<int()> call) {
  auto* verb = app.add_subcommand(name, text);
  AddCommon(verb, v);
  verb->callback([&v, call = std::move(call)] { v.verb = call; });
  return verb;
}

void AddKeeping(CLI::App& app, Values& v) {
  auto* types = Verb(app, v, "types", "List instance types with their sizes and prices",
                     [&v] { return TypesVerb(v.common, v.name, v.flag, v.other_flag); });
  types->add_option("filter", v.name, "Only types whose name contains this")->type_name("TEXT");
  types->add_flag("-a,--all", v.flag, "Include types larger than this machine");
  types->add_flag("--spot", v.other_flag,
                  "Show spot prices, savings and how often machines are lost");

  auto* secret = app.add_subcommand("secret", "Store secrets that jobs can use");
  secret->require_subcommand(1);
  auto* set = Verb(*secret, v, "set", "Store a secret; type its value or pipe it in",
                   [&v] { return SecretSetVerb(v.common, v.name); });
  set->add_option("name", v.name, "Name of the secret")->type_name("NAME")->required();
  Verb(*secret, v, "ls", "List the names of secrets", [&v] { return SecretListVerb(v.common); });
  auto* forget = Verb(*secret, v, "rm", "Delete a secret",
                      [&v] { return SecretRemoveVerb(v.common, v.name); });
  forget->add_option("name", v.name, "Name of the secret")->type_name("NAME")->required();

  auto* env =
      app.add_subcommand("env", "Print the variables that point other programs to this server");
  AddCommon(env, v);
  env->callback([&v, env] {
    if (env->get_subcommands().empty()) v.verb = [&v] { return EnvVerb(v.common, "", v.flag); };
  });
  const auto unset = [&v](CLI::App* verb) {
    verb->add_flag("--unset", v.flag, "Print the commands that undo it");
  };
  unset(env);
  env->footer(
      "Examples:\n  eval \"$(ath env)\"            Everything below\n"
      "  eval \"$(ath env mlflow)\"     MLflow alone");
  auto* mlflow = Verb(*env, v, "mlflow", "For MLflow's clients",
                      [&v] { return EnvVerb(v.common, "mlflow", v.flag); });
  unset(mlflow);
  mlflow->footer("Example:\n  eval \"$(ath env mlflow)\"");
  auto* aws = Verb(*env, v, "aws", "For boto3, the aws CLI and the SageMaker SDK",
                   [&v] { return EnvVerb(v.common, "aws", v.flag); });
  unset(aws);
  aws->footer("Example:\n  eval \"$(ath env aws)\"");

  auto* token = app.add_subcommand("token", "Manage access tokens for other machines and users");
  token->require_subcommand(1);
  auto* create = Verb(*token, v, "create", "Create a token; it is shown only once",
                      [&v] { return TokenCreateVerb(v.common, v.name, v.scope, v.job, v.flag); });
  create->add_option("--note", v.name, "What the token is for")->type_name("TEXT");
  create->add_option("--scope", v.scope, "read, submit or admin")
      ->type_name("SCOPE")
      ->capture_default_str();
  create->add_option("--expires", v.job, "How long the token is valid: 30d")->type_name("DURATION");
  create->add_flag("--aws", v.flag, "Create an access key and secret for S3 and other AWS clients");
  Verb(*token, v, "ls", "List tokens", [&v] { return TokenListVerb(v.common); });
  auto* revoke = Verb(*token, v, "revoke", "Revoke a token",
                      [&v] { return TokenRevokeVerb(v.common, v.job); });
  revoke->add_option("id", v.job, "Id of the token")->type_name("ID")->required();
}

void AddHelping(CLI::App& app, Values& v) {
  auto* init = Verb(app, v, "init", "Write a job file for the script in this folder", [&v] {
    return InitVerb(v.common, v.name.empty() ? "athanor.yaml" : v.name, v.flag);
  });
  init->add_option("file", v.name, "File to write (athanor.yaml)")->type_name("FILE");
  init->add_flag("--force", v.flag, "Overwrite the file if it exists");
  Verb(app, v, "check", "Check what this machine can run", [&v] { return CheckVerb(v.common); });
  auto* explain = Verb(app, v, "explain", "Explain an error code",
                       [&v] { return ExplainVerb(v.common, v.name); });
  explain->add_option("code", v.name, "Error code, such as ATH-J0137")
      ->type_name("CODE")
      ->required();
  Verb(app, v, "schema", "Print the JSON schema of job files",
       [&v] { return SchemaVerb(v.common); });
  auto* completion = Verb(app, v, "completion", "Print shell completion for bash, zsh or fish",
                          [&v] { return CompletionVerb(v.common, v.name); });
  completion->add_option("shell", v.name, "bash, zsh or fish")->type_name("SHELL")->required();
  completion->footer(
      "Examples:\n  source <(ath completion bash)\n"
      "  source <(ath completion zsh)      After compinit\n"
      "  ath completion fish | source");
  auto* docs =
      Verb(app, v, "docs", "Print a page made from tables", [&v] { return DocsVerb(v.name); });
  docs->add_option("page", v.name)->required();
  docs->group("");
}

void AddServer(CLI::App& app, Values& v) {
  auto* ui = Verb(app, v, "ui", "Open the web page in a browser, or print its address",
                  [&v] { return UiVerb(v.common, v.job, v.flag, v.other_flag); });
  ui->add_option("job", v.job, "Open the page of this job")->type_name("JOB");
  ui->add_flag("--link", v.flag,
               "Print a link that signs in once, for a browser on another machine");
  ui->add_flag("--print", v.other_flag, "Print the address; do not open a browser");

  auto* serve = Verb(app, v, "serve", "Run the server in the foreground", [&v] {
    v.serve.home = v.common.home;
    v.serve.json = v.common.json;
    const auto status = Serve(v.serve);
    return status ? *status : Refuse(status.error(), v.serve.json);
  });
  serve
      ->add_option("--port", v.serve.port,
                   "TCP port (the one used last, else 7070); 0 picks a free one")
      ->type_name("PORT");
  serve
      ->add_option("--address", v.serve.address,
                   "Address to listen on; other machines can only connect with TLS")
      ->type_name("ADDRESS");
  serve->add_option("--tls-cert", v.serve.tls_cert, "TLS certificate (PEM)")->type_name("FILE");
  serve->add_option("--tls-key", v.serve.tls_key, "TLS key (PEM)")->type_name("FILE");
  serve
      ->add_option(
          "--mlflow-artifact-root", v.serve.mlflow_artifact_root,
          "Where new MLflow experiments store artifacts: file:///DIR, s3://... (this server)")
      ->type_name("URI");
  serve->add_flag("--simulate", v.serve.simulate,
                  "Run instance types larger than this machine on what it has");
  // How servers are started without a user typing it.
  serve->add_flag_function("--auto", [&v](int64_t) { v.serve.by = StartedBy::kCommand; })
      ->group("");
  serve
      ->add_flag_function("--revive",
                          [&v](int64_t) {
                            v.serve.by = StartedBy::kCommand;
                            v.serve.revive = true;
                          })
      ->group("");
  serve
      ->add_option_function<std::string>("--service",
                                         [&v](const std::string& unit) {
                                           v.serve.by = StartedBy::kService;
                                           v.serve.unit = unit;
                                         })
      ->group("");

  auto* server = app.add_subcommand("server", "Start, check, stop, back up or restore your server");
  server->require_subcommand(1);
  Verb(*server, v, "start", "Start the server in the background; other commands do it when needed",
       [&v] { return ServerStartVerb(v.common); });
  Verb(*server, v, "status", "Show whether the server runs, where, and how it was started",
       [&v] { return ServerStatusVerb(v.common); });
  auto* stop = Verb(*server, v, "stop", "Stop the server; running jobs continue",
                    [&v] { return ServerStopVerb(v.common, v.text); });
  stop->add_option("--timeout", v.text, "Give up after this long (60s)")->type_name("DURATION");
  auto* backup = Verb(*server, v, "backup", "Back up everything, also while the server runs",
                      [&v] { return ServerBackupVerb(v.common, v.name); });
  backup->add_option("target", v.name, "New folder, or FILE.tar, .tar.gz or .tar.zst")
      ->type_name("PATH")
      ->required();
  auto* restore = Verb(*server, v, "restore", "Restore a backup into an empty ATHANOR_HOME",
                       [&v] { return ServerRestoreVerb(v.common, v.name); });
  restore->add_option("from", v.name, "Folder or file that ath server backup wrote")
      ->type_name("PATH")
      ->required();

  auto* du = Verb(app, v, "du", "Show what uses the disk: jobs, environments, caches",
                  [&v] { return DuVerb(v.common, v.du); });
  du->add_flag("-a,--all", v.du.all, "List all jobs, not only the largest");
  du->add_option("-n,--limit", v.du.limit, "List at most N jobs")->type_name("N");

  auto* gc = Verb(app, v, "gc", "Delete files that no job needs any more",
                  [&v] { return GcVerb(v.common, v.flag, v.name); });
  gc->add_flag("--dry-run", v.flag, "Only print what would be deleted");
  gc->add_option("--older", v.name,
                 "Delete caches unused and runs in the trash for this long (30d)")
      ->type_name("DURATION");

  auto* fsck = Verb(app, v, "fsck", "Check the stored data for damage, while the server is stopped",
                    [&v] { return FsckVerb(v.common, v.flag, v.deep); });
  fsck->add_flag("--repair", v.flag, "Repair what is safe: set damaged files aside, cut torn ends");
  fsck->add_flag("--deep", v.deep, "Read every file and verify its checksum");

  auto* service = app.add_subcommand("service", "Start the server with the machine (systemd)");
  service->require_subcommand(1);
  auto* install =
      Verb(*service, v, "install", "Install and start a systemd service for your server",
           [&v] { return ServiceInstallVerb(v.common, v.flag, v.other_flag); });
  install->add_flag("--system", v.flag, "Install it for the machine; needs root");
  install->add_flag("--print", v.other_flag, "Print the unit; change nothing");
  Verb(*service, v, "status", "Show whether the service is installed and runs",
       [&v] { return ServiceStatusVerb(v.common); });
  Verb(*service, v, "remove", "Stop and remove the service; running jobs continue",
       [&v] { return ServiceRemoveVerb(v.common); });

  auto* uninstall =
      Verb(app, v, "uninstall", "Remove your server, its jobs and all their data", [&v] {
        return UninstallVerb(v.common, {v.flag, v.other_flag, v.deep});
      });
  uninstall->add_flag("--dry-run", v.flag, "Only print what would be removed");
  uninstall->add_flag("--keep-data", v.other_flag, "Keep jobs, runs, models and checkpoints");
  uninstall->add_flag("-y,--yes", v.deep, "Do not ask for confirmation");

  auto* version =
      Verb(app, v, "version", "Print the version", [&v] { return VersionVerb(v.common, v.flag); });
  version->add_flag("--verify", v.flag, "Check that all files of the package are as packaged");
}

}  // namespace athanor::args
