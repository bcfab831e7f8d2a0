#include "watch/diagnose/signs.h"

#include <re2/re2.h>

#include <array>
#include <memory>
#include <vector>

#include "base/text/text.h"

namespace athanor {
namespace {

struct Sign {
  KnownCause kind;
  std::string_view types;  // "A|B", last parts of types; "": any exception, and log lines too
  const char* pattern;     // group 1 fills "{}"; "": any message of these types
  std::string_view what;
  std::string_view hint;
  int status = 0;  // of log lines: only when the script ended with it; 0: any
};

constexpr std::string_view kLogs = "ath logs {job} --tail 50";
constexpr std::string_view kWorkers =
    "lower the number of data-loader workers (num_workers=0 needs no shared memory)\n"
    "ath logs {job} --tail 50";
constexpr std::string_view kMoreMemory =
    "a worker that is killed has most often used too much memory: lower the number of workers or "
    "the "
    "batch size\nath logs {job} --tail 50";
constexpr std::string_view kShm =
    "df -h /dev/shm   # how much shared memory there is\n"
    "lower the number of data-loader workers (num_workers=0 needs no shared memory)";
constexpr std::string_view kOpenFiles =
    "ulimit -n   # the limit of the shell the server was started in\n"
    "close files in the script, or lower the number of workers";
constexpr std::string_view kNet =
    "check the host name, and that this machine can reach it\nath retry {job}";
constexpr std::string_view kCertificate =
    "ath retry {job} -e SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt -e "
    "REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt   # or the file with your own "
    "certificate "
    "authority";
constexpr std::string_view kToken =
    "ath secret set TOKEN_NAME   # such as HF_TOKEN, WANDB_API_KEY, AWS_SECRET_ACCESS_KEY\n"
    "ath retry {job} -s TOKEN_NAME";
constexpr std::string_view kHubToken =
    "ath secret set HF_TOKEN   # an account that may read the repository\nath retry {job} -s "
    "HF_TOKEN";
constexpr std::string_view kArguments =
    "ath show {job}   # the command and its parameters\n"
    "ath retry {job} -p NAME=VALUE   # with the corrected parameter, or run the corrected command";
constexpr std::string_view kCheckpoint =
    "the checkpoint was saved by a model of another shape: use the code it was saved with, or "
    "start "
    "without it\nath show {job}   # the source, the parameters and the data of this job";
constexpr std::string_view kData =
    "the file is damaged, cut short or of another format: look at it, or write it again\n"
    "ath logs {job} --tail 50";
constexpr std::string_view kNan =
    "ath retry {job} --debug   # anomaly detection names the operation\n"
    "lower the learning rate, clip the gradients, or check the input for NaN";
constexpr std::string_view kGpu = "nvidia-smi   # the GPUs and the driver\nath retry {job} --debug";
constexpr std::string_view kPeer =
    "another process of the job ended first, or does not answer: look for its error above\n"
    "ath logs {job} --tail 200";
constexpr std::string_view kBuild =
    "install a version that was built for this machine, or build it here\nath logs {job} --tail 50";
constexpr std::string_view kPort =
    "ss -ltnp   # which program has the port\n"
    "choose another port in the script, or 0 for any free one\nath retry {job}";

// In order: the first that matches wins, so special ones come before general ones.
constexpr Sign kSigns[] = {
    // Shared memory, before a full disk: the messages are the same.
    {"worker_died", "", R"(DataLoader worker.* is killed by signal: Bus error)",
     "a data-loader worker died: shared memory (/dev/shm) is full", kShm},
    {"system_limit", "", R"(No space left on device.*/dev/shm|/dev/shm.*No space left on device)",
     "shared memory (/dev/shm) is full", kShm},
    {"system_limit", "",
     R"(unable to (?:open|write to|allocate) (?:file|shared memory)|)"
     R"(out of shared memory|insufficient shared memory)",
     "shared memory (/dev/shm) is full", kShm},
    {"system_limit", "", R"(Too many open files|\[Errno 24\]|received 0 items of ancdata)",
     "too many files are open at once", kOpenFiles},
    {"system_limit", "",
     R"(can't start new thread|Resource temporarily unavailable.*fork|)"
     R"(fork:.*(?:Resource temporarily unavailable|retry)|pthread_create.*failed)",
     "no more processes or threads can be started",
     "ulimit -u   # the limit of processes\nlower the number of workers or threads"},
    {"system_limit", "", R"(File too large|File size limit exceeded|\[Errno 27\])",
     "a file grew beyond what is allowed", "ulimit -f   # the limit\nwrite several smaller files"},

    // Workers and ranks.
    {"worker_died", "",
     R"(DataLoader worker.* (?:is killed by signal: Killed|exited unexpectedly))",
     "a data-loader worker died", kMoreMemory},
    {"worker_died", "", R"(DataLoader worker.* is killed by signal)", "a data-loader worker died",
     kWorkers},
    {"worker_died",
     "BrokenProcessPool|TerminatedWorkerError|WorkerCrashedError|ActorDiedError|"
     "RayActorError|OutOfMemoryWorkerError",
     "", "a worker process died", kMoreMemory},
    {"worker_died", "ProcessExitedException", "", "a process of the job died", kPeer},
    {"worker_died", "ChildFailedError", "", "a process that torchrun started failed", kPeer},
    {"worker_died", "",
     R"(mpi(?:run|exec).*(?:noticed that process|detected that one or more processes)|)"
     R"(Primary job\s+terminated normally, but|MPI_ABORT was invoked|)"
     R"(BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES|)"
     R"(prterun noticed that process)",
     "a process that mpirun started failed", kPeer},
    {"worker_died", "",
     R"(Connection closed by peer|ncclRemoteError|Watchdog caught collective operation timeout|)"
     R"(Timed out after .* waiting for clients|Timeout waiting for key|DistStoreError|)"
     R"(Some NCCL operations have failed or timed out|remote process exited|)"
     R"(Socket Timeout|store->get\(|connectFullMesh failed)",
     "another process of the job ended or does not answer", kPeer},
    {"worker_died", "", R"(Signal 9 \(SIGKILL\) received by PID|failed \(exitcode: -\d+\))",
     "a process that torchrun started was killed", kMoreMemory},

    // GPUs and their libraries.
    {"gpu_error", "",
     R"(No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device|)"
     R"(No supported gpu backend found|Torch not compiled with CUDA|CUDA_ERROR_NO_DEVICE|)"
     R"(No (?:visible )?GPU|GPU.* not (?:found|available)|invalid device ordinal|)"
     R"(device\(s\) is not available|torch\.cuda\.is_available\(\) is False)",
     "the script found no GPU", "{gpu}"},
    {"gpu_error", "",
     R"(CUDA driver version is insufficient|driver on your system is too old|)"
     R"(forward compatibility was attempted|Driver/library version mismatch)",
     "the GPU driver does not fit the libraries", kGpu},
    {"gpu_error", "", R"(device-side assert)",
     "code on the GPU failed an assertion, most often a label or an index out of range",
     "ath retry {job} --debug   # names the line\nath retry {job} -e CUDA_LAUNCH_BLOCKING=1"},
    {"gpu_error", "",
     R"(CUDA error|CUDA_ERROR|cuDNN error|CUDNN_STATUS|CUBLAS_STATUS|NCCL (?:error|WARN|failure)|)"
     R"(nccl\w*Error|HIP error|hipError|uncorrectable ECC|GPU has fallen off the bus|cudaError)",
     "the GPU or its libraries failed", kGpu},

    // Programs and libraries that do not fit the machine.
    {"wrong_build", "", R"(version [`'"]?(?:GLIBC|GLIBCXX|CXXABI)\w*[_0-9.]+'? not found)",
     "a library was built for a newer system", kBuild},
    {"wrong_build", "",
     R"(undefined symbol: |invalid ELF header|wrong ELF class|Exec format error|)"
     R"(cannot execute binary file|numpy\.dtype size changed|compiled against (?:API|ABI) version|)"
     R"(compiled using NumPy 1|numpy\.core\.multiarray failed to import|Illegal instruction|)"
     R"(cannot allocate memory in static TLS block|no kernel image is available)",
     "a library or program does not fit this machine or another package", kBuild},

    // Numbers.
    {"not_finite", "FloatingPointError", "", "a value is NaN or infinite", kNan},
    {"not_finite", "",
     R"((?i)(?:loss|grad\w*|weights?|activations?|values?|input|output|tensor|predictions?|logits|metric|y_true|y_pred)\b.{0,80}\b(?:nan|inf(?:inity|inite)?|non-?finite|not finite)\b)"
     R"(|(?i)\b(?:nan|inf|non-?finite|not finite)\b.{0,60}\b(?:loss|grad\w*|values?|weights?|detected|encountered|found)\b)"
     R"(|(?i)training (?:has )?diverged)",
     "a value is NaN or infinite", kNan},

    // Checkpoints.
    {"checkpoint_mismatch", "",
     R"(Error\(s\) in loading state_dict|size mismatch for |Missing key\(s\) in state_dict|)"
     R"(Unexpected key\(s\) in state_dict|loaded state dict (?:has a different|contains a parameter)|)"
     R"(not found in checkpoint|checkpoint.{0,80}(?:mismatch|incompatible|not compatible|does not match)|)"
     R"((?:mismatch|incompatible).{0,60}checkpoint|Shapes? .{0,60}(?:incompatible|do not match).{0,60}(?:restore|checkpoint))",
     "the checkpoint does not fit the model", kCheckpoint},

    // Servers that answer, but not with what was asked for.
    {"access_refused", "GatedRepoError", "", "the repository is gated", kHubToken},
    {"access_refused", "", R"(gated repo|Access to model .* is restricted|awaiting a review from)",
     "the repository is gated", kHubToken},
    {"access_refused", "RepositoryNotFoundError|RevisionNotFoundError|EntryNotFoundError", "",
     "the model hub has no such repository, or does not show it without a token", kHubToken},
    {"access_refused", "", R"(is not a local folder and is not a valid model identifier)",
     "the model hub has no such repository, or does not show it without a token", kHubToken},
    {"access_refused", "", R"(api_key not configured|wandb.*(?:API key|wandb login))",
     "Weights & Biases has no API key",
     "ath secret set WANDB_API_KEY\nath retry {job} -s WANDB_API_KEY\nath retry {job} -e "
     "WANDB_MODE=offline   # or without it"},
    {"access_refused",
     "NoCredentialsError|PartialCredentialsError|TokenRetrievalError|"
     "DefaultCredentialsError|CredentialRetrievalError",
     "", "the script has no credentials",
     "ath secret set AWS_ACCESS_KEY_ID\nath secret set AWS_SECRET_ACCESS_KEY\nath retry {job} -s "
     "AWS_ACCESS_KEY_ID -s AWS_SECRET_ACCESS_KEY"},
    {"access_refused", "",
     R"(\((?:AccessDenied|403|401|Unauthorized|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|AuthFailure|InvalidClientTokenId)\w*\)|)"
     R"((?i)(?:invalid|incorrect|missing|no) api[ _-]?key|authentication (?:failed|required)|)"
     R"(Permission denied \(publickey|could not read Username|Invalid user token|must be authenticated)",
     "the server does not accept the credentials", kToken},
    {"access_refused", "",
     R"((?:HTTP(?:S|Error|StatusError)?|status(?:[ _]code)?|Client|error|Error|returned|response|code)\b.{0,30}?\b(?:401|403)\b|\b(?:401|403)\b.{0,4}(?:Client Error|Unauthorized|Forbidden)|Unauthorized for url|Forbidden for url)",
     "the server does not accept the credentials", kToken},
    {"access_refused", "",
     R"(\b429\b.{0,20}(?:Client Error|Too Many)|Too Many Requests|(?i)rate limit(?:ed)? |RateLimitError)",
     "the server limits how often it may be asked",
     "ath retry {job}   # after a while\nask it less often, or with a token"},
    {"access_refused", "",
     R"(\b(?:404|410)\b.{0,4}(?:Client Error|Not Found|Gone)|HTTP Error 404|HTTP(?:Status)?Error.{0,30}\b404\b|NoSuchKey|NoSuchBucket)",
     "the server has nothing at this address",
     "correct the address, or the name and version in it\nath logs {job} --tail 50"},
    {"access_refused", "",
     R"(\b5\d\d\b.{0,4}(?:Server Error|Internal Server|Bad Gateway|Service Unavailable|Gateway Time)|HTTP Error 5\d\d)",
     "the server had an error of its own", "ath retry {job}"},
    {"access_refused", "HTTPError|HTTPStatusError|HfHubHTTPError", R"(\b4\d\d\b)",
     "the server refused the request", "correct the request\nath logs {job} --tail 50"},

    // Addresses and hosts.
    {"address_in_use", "", R"(Address already in use|EADDRINUSE|\[Errno 98\])",
     "the port is taken by another program", kPort},
    {"network_error", "SSLError|SSLCertVerificationError|CertificateError", "",
     "the server's certificate is not trusted", kCertificate},
    {"network_error", "",
     R"(certificate verify failed|CERTIFICATE_VERIFY_FAILED|SSL certificate problem|unable to get local issuer|self[- ]signed certificate|certificate has expired|x509: certificate)",
     "the server's certificate is not trusted", kCertificate},
    {"network_error", "",
     R"(Name or service not known|Temporary failure in name resolution|Could not resolve (?:host|proxy)|)"
     R"(nodename nor servname|No address associated with hostname|getaddrinfo failed|Name does not resolve|unable to resolve host|no such host|NameResolutionError)",
     "the host name is not known", kNet},
    {"network_error", "",
     R"(Connection refused|Network is unreachable|No route to host|Connection timed out|Connection reset by peer|)"
     R"(Max retries exceeded|Failed to establish a new connection|Could not connect to|Couldn't connect to|Failed to connect to|Connection aborted|Remote end closed connection|We couldn't connect to|Read timed out|Could not reach)",
     "the host could not be reached", kNet},
    {"network_error",
     "gaierror|ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|"
     "ConnectTimeout|ReadTimeout|ConnectTimeoutError|ReadTimeoutError|NewConnectionError|"
     "MaxRetryError|"
     "URLError|EndpointConnectionError|ProxyError|ClientConnectorError|ServerDisconnectedError|"
     "ConnectError|RemoteDisconnected|ChunkedEncodingError|IncompleteRead|LocalEntryNotFoundError|"
     "OfflineModeIsEnabled",
     "", "the host could not be reached", kNet},

    // Arguments and settings of the script.
    {"bad_arguments", "",
     R"(unrecognized arguments|the following arguments are required|: error: argument |invalid choice: |)"
     R"(unrecognized option|invalid option -- |unknown option|No such option|Missing (?:argument|option|parameter)|Got unexpected extra argument|)"
     R"(Invalid value for ['"-]|Flags parsing error|Unknown command line flag|Could not consume arg|)"
     R"(not used by the HfArgumentParser|expected one argument|expected at least one argument)",
     "the script does not accept its arguments", kArguments},
    {"bad_arguments", "",
     R"(Could not override '|is not in struct|Missing mandatory value|Ambiguous value for argument|)"
     R"(Key '\S+' not in '|mismatched input|no viable alternative at input|LexerNoViableAltException)",
     "the configuration does not accept an override", kArguments},
    {"bad_arguments",
     "ConfigAttributeError|ConfigKeyError|MissingMandatoryValue|"
     "ConfigCompositionException|OverrideParseException|UsageError|BadParameter|NoSuchOption",
     "", "the configuration is not accepted", kArguments},
    {"bad_arguments", "", R"(^(?:[\w./-]+: )?(?:error|Error|usage|Usage): )",
     "the script does not accept its arguments", kArguments, 2},

    // Code.
    {"syntax_error", "SyntaxError|IndentationError|TabError", "", "", "{file}"},
    {"syntax_error", "",
     R"((?:^|: )[Ss]yntax error(?::|\b.*(?:unexpected|near))|unexpected EOF while looking for matching|Unterminated quoted string)",
     "the shell script has a syntax error", "{file}"},

    // Files that are not what they should be.
    {"unreadable_data",
     "JSONDecodeError|UnpicklingError|UnicodeDecodeError|BadZipFile|BadGzipFile|ReadError|"
     "UnidentifiedImageError|ArrowInvalid|ParserError|ScannerError|ComposerError|ReaderError|"
     "ConstructorError|EmptyDataError|TOMLDecodeError|LZMAError|ParseError|SafetensorError|"
     "MissingSectionHeaderError|DuplicateOptionError|YAMLError|MarkedYAMLError|DecodeError|"
     "ZstdError|"
     "HeaderTooLarge|DataLossError|ParsingError",
     "", "a file or text could not be read", kData},
    {"unreadable_data", "",
     R"(invalid load key|Ran out of input|pickle data was truncated|PytorchStreamReader failed|)"
     R"(Weights only load failed|file signature not found|truncated file|is truncated|corrupt(?:ed)?\b|)"
     R"(Error while deserializing header|not a (?:gzip|zip|tar) file|unexpected end of (?:file|data|archive)|)"
     R"(incorrect header check|file is not a database|database disk image is malformed|)"
     R"(Compressed file ended before|codec can't decode|Unable to (?:synchronously )?open file|image file is truncated|CRC check failed|checksum mismatch|unsupported pickle protocol|Error tokenizing data)",
     "a file or text could not be read", kData},
    {"unreadable_data", "error", R"(while decompressing data|zlib)",
     "a file or text could not be read", kData},
    {"python_exception", "OperationalError", R"(database is locked)",
     "another process holds the database",
     "give each job a database of its own, or raise the timeout: sqlite3.connect(path, "
     "timeout=60)\n"
     "ath retry {job}"},
    {"missing_file", "OperationalError", R"(unable to open database file)",
     "the database file is not there",
     "is its folder in the source, or a data channel?\nath show {job}"},
    {"missing_file", "", R"(not a git repository)",
     "the job runs in a copy of the source folder without .git",
     "ath show {job}   # has the commit the source was taken from"},
    {"missing_file", "MissingConfigException", "", "the configuration is not there",
     "is it in the source folder, and not in .gitignore or .athanorignore?\nath show {job}"},
    {"missing_file", "NoSectionError|NoOptionError", "", "the configuration lacks an entry",
     "is the file in the source folder, and not in .gitignore or .athanorignore?\nath show {job}"},
    {"python_exception", "",
     R"(mat1 and mat2 shapes|size of tensor a|shapes .* not aligned|could not be broadcast|)"
     R"(Sizes of tensors must match|shape .* is invalid for input|Expected input batch_size|must match the size of tensor)",
     "the shapes do not fit", "ath retry {job} --debug\nath logs {job} --tail 50"},
    {"python_exception", "RecursionError", "", "",
     "a function calls itself without end: look at the frames above\nath logs {job} --tail 50"},
    {"python_exception", "BrokenPipeError", "",
     "the program at the other end of a pipe ended first", kLogs},
    {"python_exception", "TimeoutExpired", "", "a program that the script started took too long",
     kLogs},
    {"python_exception", "CalledProcessError", "", "a program that the script started failed",
     kLogs},
};

// Compiled once; a failed job needs them, most agents never do.
struct Compiled {
  std::vector<std::unique_ptr<RE2>> patterns;
  Compiled() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    for (const Sign& sign : kSigns) {
      patterns.push_back(*sign.pattern == '\0' ? nullptr
                                               : std::make_unique<RE2>(sign.pattern, options));
    }
  }
};

bool Names(std::string_view types, std::string_view type) {
  while (!types.empty()) {
    const size_t bar = types.find('|');
    if (types.substr(0, bar) == type) return true;
    types = bar == std::string_view::npos ? std::string_view() : types.substr(bar + 1);
  }
  return false;
}

bool FoundIn(const RE2* pattern, std::string_view text) {
  return pattern == nullptr ||
         RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

const Compiled& Patterns() {
  static const Compiled compiled;
  return compiled;
}

}  // namespace

std::optional<SignFound> SignOfError(std::string_view type, std::string_view message) {
  const auto& patterns = Patterns().patterns;
  for (size_t i = 0; i < std::size(kSigns); ++i) {
    const Sign& sign = kSigns[i];
    if (sign.status != 0 || (!sign.types.empty() && !Names(sign.types, type))) continue;
    if (!FoundIn(patterns[i].get(), message)) continue;
    return SignFound{sign.kind.kind(), std::string(sign.what), std::string(sign.hint)};
  }
  return std::nullopt;
}

std::optional<SignFound> SignOfLine(std::string_view line, int status) {
  const auto& patterns = Patterns().patterns;
  for (size_t i = 0; i < std::size(kSigns); ++i) {
    const Sign& sign = kSigns[i];
    if (!sign.types.empty() || (sign.status != 0 && sign.status != status)) continue;
    if (!FoundIn(patterns[i].get(), line)) continue;
    return SignFound{sign.kind.kind(), std::string(sign.what), std::string(sign.hint)};
  }
  return std::nullopt;
}

std::string MissingVariableIn(std::string_view words) {
  static const std::array<std::unique_ptr<RE2>, 3> kPatterns = {
      // dash: "x.sh: 3: FOO: parameter not set"; bash: "x.sh: line 3: FOO: unbound variable"
      std::make_unique<RE2>(
          R"(\b([A-Za-z_]\w*): (?:unbound variable|parameter (?:null or )?not set))"),
      std::make_unique<RE2>(
          R"((?i:environment variables?|env(?:ironment)? vars?|envvars?):? [`'"$]{0,2}([A-Z][A-Z0-9_]{2,})\b.{0,80}(?i:not (?:set|found|defined)|missing|required|unset|undefined|must|empty|expected|need))"),
      std::make_unique<RE2>(
          R"([`'"$]{0,2}\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b[`'"]?.{0,40}(?i:environment variable|env(?:ironment)? var|envvar|is not set|must be set|is unset))"),
  };
  for (const auto& pattern : kPatterns) {
    std::string name;
    if (RE2::PartialMatch(re2::StringPiece(words.data(), words.size()), *pattern, &name)) {
      return name.substr(0, 100);
    }
  }
  return "";
}

}  // namespace athanor
