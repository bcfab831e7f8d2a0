#include "base/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/exec/mutex.h"
#include "base/id_floor.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr size_t kTimeBytes = 6;

void FillRandom(void* out, size_t size) {
  auto* at = static_cast<uint8_t*>(out);
  while (size > 0) {
    const ssize_t got = getrandom(at, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      // Without randomness, ids and tokens would repeat; it is not safe to continue.
      std::abort();
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
}

int CrockfordValue(char c) {
  if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (c == 'i' || c == 'l') return 1;
  if (c == 'o') return 0;
  const size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void SetTime(Ulid& id, uint64_t ms) {
  for (size_t i = 0; i < kTimeBytes; ++i) {
    id.bytes[i] = static_cast<uint8_t>(ms >> (8 * (kTimeBytes - 1 - i)));
  }
}

uint64_t TimeOf(const Ulid& id) {
  uint64_t ms = 0;
  for (size_t i = 0; i < kTimeBytes; ++i) ms = ms << 8 | id.bytes[i];
  return ms;
}

// Adds to the whole 128-bit number: a carry out of the random part moves the time by one.
void Add(Ulid& id, uint64_t amount) {
  for (size_t i = id.bytes.size(); i-- > 0 && amount > 0;) {
    amount += id.bytes[i];
    id.bytes[i] = static_cast<uint8_t>(amount);
    amount >>= 8;
  }
}

Mutex last_mutex;
Ulid last GUARDED_BY(last_mutex);  // that was made

}  // namespace

bool Ulid::is_zero() const { return *this == Ulid{}; }

std::string Ulid::ToString() const {
  std::string text(26, '0');
  // 130 bits for 128: the first digit carries only three.
  uint32_t pending = 0;
  int bits = 2;
  size_t at = 0;
  for (const uint8_t byte : bytes) {
    pending = pending << 8 | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text[at++] = kDigits[pending >> bits & 31];
    }
  }
  return text;
}

std::string Ulid::ToHex() const {
  return Hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<Ulid> Ulid::Parse(std::string_view text) {
  Ulid id;
  if (text.size() == 32) {
    for (size_t i = 0; i < 16; ++i) {
      const int high = HexValue(text[2 * i]);
      const int low = HexValue(text[2 * i + 1]);
      if (high < 0 || low < 0) return std::nullopt;
      id.bytes[i] = static_cast<uint8_t>(high << 4 | low);
    }
    return id;
  }
  if (text.size() != 26) return std::nullopt;
  uint32_t pending = 0;
  int bits = -2;
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int value = CrockfordValue(text[i]);
    if (value < 0 || (i == 0 && value > 7)) return std::nullopt;
    pending = pending << 5 | static_cast<uint32_t>(value);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      id.bytes[at++] = static_cast<uint8_t>(pending >> bits);
    }
  }
  return id;
}

Ulid NewUlid(int64_t unix_ms) {
  Ulid id;
  FillRandom(id.bytes.data() + kTimeBytes, id.bytes.size() - kTimeBytes);
  const auto ms = static_cast<uint64_t>(unix_ms < 0 ? 0 : unix_ms) & ((uint64_t{1} << 48) - 1);
  SetTime(id, ms);

  MutexLock lock(last_mutex);
  if (ms <= TimeOf(last)) {
    // A random step rather than one: a forked child that inherited `last` must
    // not make the ids that its parent makes.
    uint32_t step = 0;
    FillRandom(&step, sizeof(step));
    id = last;
    Add(id, uint64_t{step} + 1);
  }
  last = id;
  return id;
}

void KeepIdsAbove(const Ulid& id) {
  MutexLock lock(last_mutex);
  last = std::max(last, id);
}

Ulid NewUlid() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return NewUlid(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string RandomHex(size_t bytes) {
  std::string raw(bytes, '\0');
  FillRandom(raw.data(), raw.size());
  return Hex(raw);
}

}  // namespace athanor
