// lockstep doctor: what this machine has and what this build can do.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/io/json_writer.h"
#include "core/report_text.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "What this machine has and what this build of Lockstep can do with it.\n\n"
    "  lockstep doctor\n"
    "  lockstep doctor --json\n"
    "  lockstep doctor && lockstep memory --model gpt2\n";

struct Fact {
  const char* key;
  std::string words;
};

/// A line of /proc files: "name<spaces>: value"; empty where there is none.
std::string proc_value(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.rfind(name, 0) == 0 && colon != std::string::npos) {
      const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

std::int64_t memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

std::string gpu_words() {
  // The driver's own file; no library is loaded for the question.
  std::ifstream driver("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(driver, line) ? "NVIDIA driver present: " + line
                                    : "no NVIDIA driver (none is needed: plans are computed)";
}

/// Beside this program.
std::filesystem::path window_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "lockstep-view";
}

std::vector<Fact> facts() {
  const std::filesystem::path window = window_program();
  utsname system{};
  uname(&system);
  const std::string processor = proc_value("/proc/cpuinfo", "model name");
  return {
      {"version", LOCKSTEP_VERSION},
      {"build", LOCKSTEP_BUILD_TYPE},
      {"compiler", LOCKSTEP_COMPILER},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"processor",
       fmt::format("{} x {}",
                   std::thread::hardware_concurrency(),
                   processor.empty() ? "processor without a name" : processor)},
      {"memory", bytes_text(memory_bytes())},
      {"gpu", gpu_words()},
      {"products in fp32", std::string(kernels::cpu::float_gemm_library())},
      {"window", std::filesystem::exists(window) ? window.string() : "lockstep-view was not built"},
      {"not in this build", "runs on GPUs (CUDA, NCCL) and over several machines (Gloo)"},
  };
}

int run(bool json) {
  const std::vector<Fact> all = facts();
  if (json) {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("cores", static_cast<std::int64_t>(std::thread::hardware_concurrency()));
    writer.field("memory_bytes", memory_bytes());
    writer.begin_object("facts");
    for (const Fact& fact : all) {
      writer.field(fact.key, fact.words);
    }
    writer.end_object();
    writer.end_object();
    print(writer.text());
    return 0;
  }
  std::string text;
  for (const Fact& fact : all) {
    text += fmt::format("{:<18} {}\n", fact.key, fact.words);
  }
  print(text);
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& program, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* app = program.add_subcommand("doctor");
  app->description(kDescription);
  app->add_flag("--json", *json, "one JSON object");
  app->callback([json, &action] { action = [json] { return run(*json); }; });
}

}  // namespace lockstep::cli
