// How AWS clients are directed to our server: the environment they need, the overlay of botocore's
// endpoint rules, and the access key of a job's own script.
//
// Newer SDKs read AWS_ENDPOINT_URL. Older ones (boto3 before 1.28) do not, and the SageMaker SDK
// names Amazon's STS host itself; for both, botocore's rules are overlaid through AWS_DATA_PATH.
// The user's own AWS configuration is not touched.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

// A name that SDKs know: they look images and partitions up by it.
inline constexpr char kAwsRegion[] = "us-west-2";

struct AwsKey {
  std::string id;
  std::string secret;
};

// The key of an attempt's script. Made from the token of its host's agent by both sides, so that it
// is not stored. It is valid for as long as the attempt is the current one of its job.
AwsKey KeyOfAttempt(AttemptId attempt, std::string_view token, uint32_t host = 0);
// The attempt in a key's id; none: not a key of that kind.
std::optional<AttemptId> AttemptOfKey(std::string_view key_id);
// The host in such an id.
uint32_t HostOfKey(std::string_view key_id);

// Writes what AWS_DATA_PATH and SAGEMAKER_ADMIN_CONFIG_OVERRIDE name into `dir`. Each file is
// replaced as a whole, and not touched if it is right already.
Status WriteAwsOverlay(const std::string& dir, const std::string& url);

// All variables; `dir` is the folder of the overlay.
std::map<std::string, std::string> AwsVariables(const std::string& url, const std::string& dir,
                                                const AwsKey& key);
// Variables that would direct a client elsewhere: unset them, too.
inline constexpr const char* kAwsInTheWay[] = {"AWS_SESSION_TOKEN",
                                               "AWS_SECURITY_TOKEN",
                                               "AWS_PROFILE",
                                               "AWS_DEFAULT_PROFILE",
                                               "AWS_USE_FIPS_ENDPOINT",
                                               "AWS_USE_DUALSTACK_ENDPOINT",
                                               "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"};

}  // namespace athanor
