// lockstep generate: text from a run's newest checkpoint.
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/run_folder.h"
#include "cli/terminal.h"
#include "cli/token_text.h"
#include "core/error.h"
#include "core/io/scenario_io.h"
#include "executor/generator.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Writes text with the model of a training run.\n\n"
    "  lockstep generate --out lockstep-run\n"
    "  lockstep generate --out run --prompt 'In the beginning' --tokens 500 --temperature 0.5\n";

struct GenerateCommand {
  std::string out = "lockstep-run";
  std::string prompt;
  exec::GenerateOptions options;

  int run() const {
    if (!std::isfinite(options.temperature)) {
      throw UsageError("flags", "--temperature: not a number");
    }
    const RunFolder folder(out, true);
    const Scenario scenario = load_scenario(folder.scenario_file().string());
    if (scenario.model.family == ModelFamily::kMlp) {
      throw NotSupportedError("generate", "an MLP tells classes apart, it writes no text");
    }
    const std::filesystem::path newest = exec::latest_checkpoint(folder.checkpoints());
    const auto graph = build_model_graph(scenario.model, scenario.training);
    const exec::Checkpoint checkpoint(*graph, newest);
    exec::Generator generator(scenario, checkpoint);
    const Interrupt interrupt;
    print(prompt);
    generator.generate(tokens_of(prompt, scenario.model.vocab), options, [&](std::int64_t token) {
      return print(token_text(token)) && !interrupt.requested();
    });
    print("\n");
    return interrupt.requested() ? static_cast<int>(ErrorKind::kInterrupted) : 0;
  }

 private:
  static std::vector<std::int64_t> tokens_of(const std::string& text, std::int64_t vocabulary) {
    std::vector<std::int64_t> tokens;
    for (const char c : text) {
      tokens.push_back(static_cast<unsigned char>(c));
      if (tokens.back() >= vocabulary) {
        throw UsageError(
            "generate",
            fmt::format(
                "--prompt: byte {} is beyond the model's {} tokens", tokens.back(), vocabulary));
      }
    }
    return tokens;
  }
};

}  // namespace

void add_generate_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<GenerateCommand>();
  CLI::App* app = program.add_subcommand("generate");
  app->description(kDescription);
  app->add_option("--out", command->out, "folder of the run (default lockstep-run)");
  app->add_option("--prompt", command->prompt, "text to begin with");
  app->add_option("--tokens", command->options.tokens, "how many to write (default 200)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  app->add_option("--temperature", command->options.temperature, "0 = the likeliest (default 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  app->add_option("--seed", command->options.seed, "of the draws (default 1)");
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
