// Runs the built `lockstep` as a person would from a shell, and keeps what it answered.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace lockstep::test {

struct ProgramResult {
  int code = 0;
  std::string out;
  std::string err;
};

/// `arguments` are shell words: "memory --model gpt2 --json"; `environment` is "NAME=value ...".
ProgramResult run_program(const std::string& arguments, const std::string& environment = "");

/// Starts the program, waits for its first output, interrupts it as Ctrl-C does, and gives its exit
/// code. `arguments` without shell syntax.
int interrupt_program(const std::vector<std::string>& arguments);

/// A file that exists until the object dies.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(folder_.write(name, text)) {}
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

}  // namespace lockstep::test
