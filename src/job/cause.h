// Why something is as it is: a kind that a program can switch on, and text for a person.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "job/cause_kind.h"

namespace athanor {

struct Cause {
  std::string
      kind;  // its name; one that this version does not know may come from a store or a peer
  std::string text;
  std::string hint;    // what to type next
  std::string detail;  // evidence: last frames, the requirement that failed; may be many lines

  Cause() = default;
  Cause(KnownCause known, std::string what, std::string next = {}, std::string evidence = {})
      : kind(known.name()),
        text(std::move(what)),
        hint(std::move(next)),
        detail(std::move(evidence)) {}
  // The kind is not known before the program runs: it is another cause's, or the id of an error.
  template <std::same_as<std::string> Name>
  Cause(Name name, std::string what, std::string next = {}, std::string evidence = {})
      : kind(std::move(name)),
        text(std::move(what)),
        hint(std::move(next)),
        detail(std::move(evidence)) {}

  // The only way by which behaviour may depend on the kind.
  bool Is(CauseKind known) const { return kind == NameOf(known); }
  bool operator==(const Cause&) const = default;
};

}  // namespace athanor
