// The one exception family of Lockstep.
//
// Every failure is a lockstep::Error whose text is `[component] what failed: values` and whose kind
// says which exit code the program ends with. Only main() catches; libraries throw and never print
// or exit. Throw the subclass that says who has to act: the caller (UsageError), the author of a
// file (BadInputError), the reader of a verdict (CheckFailedError), us (InternalError).
//
//     throw BadInputError("scenario", "unknown key: training.seq_lenght, nearest: seq_length");
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

/// Why the program cannot go on. The values are the exit codes of the command contract.
enum class ErrorKind : int {
  kCheckFailed = 1,   ///< a check failed, or the model does not fit and --strict was given
  kUsage = 2,         ///< the command line is wrong
  kBadInput = 3,      ///< a file that was read is wrong
  kOutOfMemory = 4,   ///< a real run asked for more memory than it may have
  kRankFailed = 5,    ///< a rank of a real run failed
  kTimeout = 6,       ///< a wait took too long, or the plan deadlocks
  kNotSupported = 7,  ///< this machine or this build cannot do it
  kInternal =
      70,  ///< Lockstep itself is wrong (EX_SOFTWARE of sysexits.h; never part of a contract)
  kInterrupted = 130,  ///< Ctrl-C (128 + SIGINT)
};

class Error : public std::runtime_error {
 public:
  /// `component` is the part that failed ("scenario", "planner"), `message` says what and the
  /// values.
  Error(ErrorKind kind, std::string_view component, std::string_view message)
      : std::runtime_error("[" + std::string(component) + "] " + std::string(message)),
        kind_(kind) {}

  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

/// An Error whose kind is known from its type, so that a caller can catch exactly that.
template <ErrorKind Kind>
class ErrorOf : public Error {
 public:
  ErrorOf(std::string_view component, std::string_view message) : Error(Kind, component, message) {}
};

using CheckFailedError = ErrorOf<ErrorKind::kCheckFailed>;
using UsageError = ErrorOf<ErrorKind::kUsage>;
using BadInputError = ErrorOf<ErrorKind::kBadInput>;
using OutOfMemoryError = ErrorOf<ErrorKind::kOutOfMemory>;
using RankFailedError = ErrorOf<ErrorKind::kRankFailed>;
using TimeoutError = ErrorOf<ErrorKind::kTimeout>;
using NotSupportedError = ErrorOf<ErrorKind::kNotSupported>;
using InternalError = ErrorOf<ErrorKind::kInternal>;
using InterruptedError = ErrorOf<ErrorKind::kInterrupted>;

}  // namespace lockstep
