// The server's own certificate, for agents of other machines. They know it by its key (the pin), so
// nobody has to sign it, and it never runs out: the key is made once and kept. Whoever has the
// key file can pretend to be this server.
//
// Threads: any. Two that open the same folder at once may make two keys: the caller holds a lock.
#pragma once

#include <string>

#include "base/result.h"

struct x509_st;  // OpenSSL's X509

namespace athanor {

struct OwnCertificate {
  std::string cert_file;  // PEM
  std::string key_file;   // PEM, 0600, EC P-256
  std::string pin;        // sha256 of the public key, as PinOf
};

// The one in `folder` (agents.key and agents.crt). Made if there is no key; a certificate that is
// missing, damaged or of another key is made again from the key, so the pin stays. kCorrupt: the
// key is damaged.
Result<OwnCertificate> OpenOwnCertificate(const std::string& folder);

// The sha256, in hex, of the public key of a certificate (its SubjectPublicKeyInfo, as in RFC
// 7469).
std::string PinOf(const x509_st* certificate);
// The same of a PEM file. kInvalid: it has no certificate.
Result<std::string> PinOfFile(const std::string& cert_file);

}  // namespace athanor
