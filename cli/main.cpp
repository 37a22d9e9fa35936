// The `lockstep` program. Parses the command line, runs one command, and is the only place that
// catches errors: one line on stderr, and the exit code of their kind.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/names.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "What happens on every rank when a model is trained on many devices, and what it costs.\n\n"
    "  lockstep memory --model llama-3.1-8b --strategy fsdp --dp 8\n"
    "  lockstep plan --model gpt2-tiny --strategy ddp --dp 2\n"
    "  lockstep train --strategy fsdp --dp 2\n\n"
    "Exit codes: 0 ok, 1 a check failed or it does not fit (--strict), 2 usage, 3 bad input file,\n"
    "4 out of memory, 5 a rank failed, 6 timeout or deadlock, 7 not supported here, 130\n"
    "interrupted.\n";

/// Lists commands with the first line of their description: the examples are theirs.
class ShortFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string description = command->get_description();
    return fmt::format(
        "  {:<10}{}\n", command->get_name(), description.substr(0, description.find('\n')));
  }
};

/// Help of the command that was being read, or of the program.
std::string help_hint(const CLI::App& program) {
  for (const CLI::App* command : program.get_subcommands()) {
    return fmt::format("lockstep {} --help", command->get_name());
  }
  return "lockstep --help";
}

/// Every long flag of a command.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
  }
  return flags;
}

[[noreturn]] void refuse(const CLI::App& program,
                         const std::string& word,
                         const char* kind,
                         const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  throw UsageError("flags",
                   fmt::format("unknown {} {}, nearest is {}; see {}",
                               kind,
                               printable(word, 60),
                               nearest(word, views),
                               help_hint(program)));
}

/// What CLI11 could not place: an unknown command, an unknown flag, or a word too many.
void refuse_leftovers(const CLI::App& program) {
  for (const CLI::App* command : program.get_subcommands()) {
    for (const std::string& word : command->remaining()) {
      if (word.starts_with('-')) {
        refuse(program, word.substr(0, word.find('=')), "flag", flags_of(*command));
      }
      throw UsageError(
          "flags",
          fmt::format("{} means nothing here; see {}", in_quotes(word), help_hint(program)));
    }
  }
  for (const std::string& word : program.remaining()) {
    if (word.starts_with('-')) {
      refuse(program, word, "flag", flags_of(program));
    }
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands(nullptr)) {
      names.push_back(command->get_name());
    }
    refuse(program, word, "command", names);
  }
}

int run(int argc, char** argv) {
  CLI::App program(kDescription, "lockstep");
  program.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION);
  program.formatter(std::make_shared<ShortFormatter>());
  program.allow_extras();
  Action action;
  add_memory_command(program, action);
  add_plan_command(program, action);
  add_simulate_command(program, action);
  add_compare_command(program, action);
  add_train_command(program, action);
  add_generate_command(program, action);
  add_calibrate_command(program, action);
  add_search_command(program, action);
  add_validate_command(program, action);
  add_models_command(program, action);
  add_clusters_command(program, action);
  add_collective_command(program, action);
  add_trace_command(program, action);
  add_show_command(program, action);
  add_doctor_command(program, action);
  for (CLI::App* command : program.get_subcommands(nullptr)) {
    command->allow_extras();
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = program.exit(error, text, text);
      print(text.str());
      return code;
    }
    throw UsageError("flags", fmt::format("{}; see {}", error.what(), help_hint(program)));
  }
  refuse_leftovers(program);
  if (!action) {
    throw UsageError("flags", "no command; see lockstep --help");
  }
  return action();
}

int report(const char* message, int code) {
  std::string line = message;
  for (char& c : line) {
    c = c == '\n' ? ' ' : c;  // one line, whatever a message holds
  }
  fmt::print(stderr, "lockstep: {}\n", line);
  return code;
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an ordinary end of output
  std::signal(SIGINT, [](int) { _exit(static_cast<int>(lockstep::ErrorKind::kInterrupted)); });
  try {
    return lockstep::cli::run(argc, argv);
  } catch (const lockstep::Error& error) {
    return lockstep::cli::report(error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    return lockstep::cli::report(error.what(),
                                 static_cast<int>(lockstep::ErrorKind::kNotSupported));
  } catch (const std::bad_alloc&) {
    return lockstep::cli::report(
        "[memory] this machine has not enough of it for the plan; fewer "
        "micro-batches or layers need less",
        static_cast<int>(lockstep::ErrorKind::kOutOfMemory));
  } catch (const std::exception& error) {
    return lockstep::cli::report(error.what(), static_cast<int>(lockstep::ErrorKind::kInternal));
  }
}
