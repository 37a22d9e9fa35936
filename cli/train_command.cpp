// lockstep train: trains for real, on this machine, by the plan of the scenario.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report_print.h"
#include "cli/run_folder.h"
#include "cli/scenario_flags.h"
#include "cli/scenario_text.h"
#include "cli/small_run.h"
#include "cli/terminal.h"
#include "cli/token_text.h"
#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/io/trace_io.h"
#include "core/memory_report.h"
#include "core/names.h"
#include "core/report.h"
#include "core/report_text.h"
#include "executor/class_data.h"
#include "executor/generator.h"
#include "executor/trainer.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Trains a model for real on this machine's CPU, with the same plan that is simulated.\n\n"
    "  lockstep train\n"
    "  lockstep train --strategy fsdp --dp 2 --steps 500 --data book.txt --out run\n"
    "  lockstep train --model llama-tiny --tp 2 --pp 2 --accumulate 4 --out run\n"
    "  lockstep train --model mlp-tiny-syncbn --dp 4\n"
    "  lockstep train --resume --out run\n";

constexpr std::int64_t kSampleTokens = 200;

struct TrainCommand {
  ScenarioFlags flags;
  std::string data;
  std::string out = "lockstep-run";
  std::string backend = "local";
  std::string device = "cpu";
  int processes = 0;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> checkpoint_every;
  std::optional<std::int64_t> evaluate_every;
  double timeout_s = 600;
  int threads = 1;
  bool documents = false;
  bool resume = false;
  bool no_sample = false;
  bool json = false;

  int run() const {
    if (flags.lists_keys()) {
      print(ScenarioFlags::keys_text());
      return 0;
    }
    check_place();
    RunFolder folder(out, resume);
    const Scenario scenario = resume ? resumed(folder) : this->scenario();
    const RunSettings settings = this->settings(resume ? folder.settings() : RunSettings{});
    check_threads(scenario);
    const std::unique_ptr<exec::TrainingData> corpus = data_of(scenario, settings);
    check_memory(scenario);
    exec::TrainOptions options;
    options.steps = settings.steps;
    options.checkpoint_every = settings.checkpoint_every;
    options.evaluate_every = settings.evaluate_every;
    options.checkpoints = folder.checkpoints();
    options.job.kernel_threads = threads;
    options.job.local.timeout =
        std::chrono::nanoseconds(static_cast<std::int64_t>(timeout_s * 1e9));
    if (resume) {
      options.resume_from = exec::latest_checkpoint(folder.checkpoints());
    }
    return train({scenario, settings, *corpus, options, folder});
  }

 private:
  /// What a run is made of, once all flags are understood.
  struct Run {
    const Scenario& scenario;
    const RunSettings& settings;
    exec::TrainingData& corpus;
    const exec::TrainOptions& options;
    RunFolder& folder;
  };

  /// As they were saved, but for what flags say.
  RunSettings settings(RunSettings saved) const {
    saved.steps = steps.value_or(saved.steps);
    saved.checkpoint_every = checkpoint_every.value_or(saved.checkpoint_every);
    saved.evaluate_every = evaluate_every.value_or(saved.evaluate_every);
    if (!data.empty()) {
      saved.data = std::filesystem::absolute(data).string();
    }
    saved.documents = saved.documents || documents;
    return saved;
  }

  /// What the model reads: tokens of a text, or a task of numbers that is built in.
  static std::unique_ptr<exec::TrainingData> data_of(const Scenario& scenario,
                                                     const RunSettings& settings) {
    const ModelSpec& model = scenario.model;
    if (model.family == ModelFamily::kMlp) {
      if (!settings.data.empty() || settings.documents) {
        throw UsageError("train",
                         "an MLP reads numbers, not tokens: without --data and --documents it "
                         "trains on a built-in task");
      }
      return std::make_unique<exec::ClassData>(model.widths.front(), model.widths.back());
    }
    auto corpus = std::make_unique<exec::TokenData>(
        exec::read_tokens(settings.data.empty() ? LOCKSTEP_CORPUS : settings.data),
        scenario.training.seq_len,
        settings.documents ? exec::TokenCut::kDocuments : exec::TokenCut::kStream);
    if (corpus->vocabulary() > model.vocab) {
      throw BadInputError("train",
                          fmt::format("the data has token ids below {}, the model knows {}: --set "
                                      "model.vocab={}",
                                      corpus->vocabulary(),
                                      model.vocab,
                                      corpus->vocabulary()));
    }
    return corpus;
  }

  void check_threads(const Scenario& scenario) const {
    const bool shares =
        kernels::cpu::float_gemm_has_threads() && scenario.training.precision == Precision::kFp32;
    if (threads > 1 && !shares) {
      throw NotSupportedError("train",
                              fmt::format("--threads {}: oneDNN's products in fp32 are shared by "
                                          "threads; here Eigen multiplies in {}, with one",
                                          threads,
                                          name_of(scenario.training.precision)));
    }
  }

  void check_place() const {
    if (!std::isfinite(timeout_s)) {
      throw UsageError("flags", "--timeout: not a number of seconds");
    }
    if (backend != "local" || device != "cpu") {
      throw NotSupportedError("train",
                              fmt::format("--backend {} --device {}: this build runs ranks as "
                                          "threads of one process on the CPU (local, cpu)",
                                          backend,
                                          device));
    }
  }

  Scenario scenario() const {
    Scenario base = small_run();
    if (documents) {  // ranks have different numbers of tokens, which are to weigh alike
      base.training.loss_mean = LossMean::kGlobalTokens;
    }
    const bool any_degree = flags.sets("strategy.data.degree") ||
                            flags.sets("strategy.tensor.degree") ||
                            flags.sets("strategy.pipeline.degree");
    if (!any_degree) {
      base.strategy.data.degree = processes > 0 ? processes : 2;
    }
    Scenario scenario = on_this_machine(flags.scenario(&base));
    check_ranks(scenario);
    return scenario;
  }

  /// Ranks run here whatever machine the scenario was planned for; a report that named that one
  /// would be wrong.
  static Scenario on_this_machine(Scenario scenario) {
    if (scenario.cluster.intra_node.kind == LinkKind::kSharedMemory) {
      return scenario;
    }
    fmt::print(stderr,
               "lockstep: ranks run on this machine's CPU; {} is left aside\n",
               scenario.cluster.device.name);
    scenario.cluster = small_run().cluster;
    return resolved(std::move(scenario));
  }

  void check_ranks(const Scenario& scenario) const {
    const std::int64_t ranks = scenario.strategy.world_size();
    if (processes > 0 && ranks != processes) {
      throw UsageError(
          "flags",
          fmt::format("--nproc-per-node {}: dp x tp x pp = {}; leave it out, or change "
                      "--dp, --tp or --pp",
                      processes,
                      ranks));
    }
  }

  /// As the run was, but for what flags say anew: another strategy goes on with the same numbers.
  Scenario resumed(const RunFolder& folder) const {
    const Scenario base = load_scenario(folder.scenario_file().string());
    Scenario scenario = on_this_machine(flags.scenario(&base));
    check_ranks(scenario);
    Scenario same_model = base;
    same_model.model = scenario.model;
    if (scenario_text(same_model) != scenario_text(base)) {
      throw UsageError("train", "--resume: the model is the run's, flags cannot change it");
    }
    if (scenario.training.optimizer != base.training.optimizer) {
      throw UsageError("train",
                       fmt::format("--resume: the optimizer is the run's ({}), whose states {} "
                                   "could not go on with",
                                   name_of(base.training.optimizer),
                                   name_of(scenario.training.optimizer)));
    }
    return scenario;
  }

  /// Ranks share this machine; the kernel would end the program in the middle of a step.
  static void check_memory(const Scenario& scenario) {
    std::int64_t needed = 0;
    for (const RankMemory& rank : memory_report(scenario).ranks) {
      needed += rank.count * rank.tensor_bytes();
    }
    const std::int64_t present =
        static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    if (needed > present) {
      throw OutOfMemoryError("train",
                             fmt::format("all ranks together need {}, this machine has {}: a "
                                         "smaller model, micro-batch or sequence needs less",
                                         bytes_text(needed),
                                         bytes_text(present)));
    }
  }

  int train(const Run& run) const {
    const auto& [scenario, settings, corpus, options, folder] = run;
    const Interrupt interrupt;
    exec::Trainer trainer(scenario, corpus, options);
    if (trainer.first_step() >= settings.steps) {  // the folder stays as it is
      print(json ? "{\"steps\": 0}\n"
                 : fmt::format("nothing left to do: {} of {} steps are done; --steps N goes on\n",
                               trainer.first_step(),
                               settings.steps));
      return 0;
    }
    folder.open(scenario, settings, trainer.first_step());
    if (!json) {
      print(scenario_line(scenario) + "\n");
      print(fmt::format("{} samples to train on, {} to evaluate; {} ranks; {}\n\n",
                        grouped(corpus.samples(false)),
                        grouped(corpus.samples(true)),
                        trainer.job().ranks(),
                        folder.path().string()));
    }
    std::int64_t shown = trainer.first_step();
    const std::int64_t done = trainer.run([&](const exec::StepMetrics& metrics) {
      run.folder.add_metrics(metrics);
      shown = show(metrics, run, shown);
      return !interrupt.requested();
    });
    finish(trainer, folder, done);
    if (interrupt.requested()) {
      fmt::print(
          stderr,
          "lockstep: interrupted after step {}, saved; lockstep train --resume --out {} goes "
          "on\n",
          done,
          folder.path().string());
      return static_cast<int>(ErrorKind::kInterrupted);
    }
    if (!json && !no_sample && scenario.model.family == ModelFamily::kTransformer) {
      print_sample(scenario, trainer, folder);
    }
    return 0;
  }

  /// A line ten times in a run, and where there is an evaluation; between them a bar on a terminal.
  std::int64_t show(const exec::StepMetrics& metrics, const Run& run, std::int64_t shown) const {
    const std::int64_t last = run.settings.steps;
    const bool tokens = run.scenario.model.family == ModelFamily::kTransformer;
    const std::int64_t interval = std::max<std::int64_t>(last / 10, 1);
    const bool due = metrics.evaluation_loss || metrics.step == 1 ||
                     metrics.step - shown >= interval || metrics.step == last;
    if (json) {
      return shown;
    }
    const std::string line = fmt::format(
        "step {:>{}}/{}  loss {:.4f}{}  lr {:.2e}  {} {}/s  {}",
        metrics.step,
        std::to_string(last).size(),
        last,
        metrics.loss,
        metrics.evaluation_loss ? fmt::format("  evaluation {:.4f}", *metrics.evaluation_loss) : "",
        metrics.learning_rate,
        grouped(std::llround(metrics.tokens_per_s)),
        tokens ? "tokens" : "samples",
        bytes_text(metrics.peak_bytes));
    const bool bar = isatty(STDERR_FILENO) != 0;
    if (bar) {
      fmt::print(stderr, "\r\033[K");
    }
    if (due) {
      print(line + "\n");
      return metrics.step;
    }
    if (bar) {
      const auto width = static_cast<std::size_t>(20 * metrics.step / last);
      fmt::print(stderr, "[{:<20}] {}", std::string(width, '#'), line);
      std::fflush(stderr);
    }
    return shown;
  }

  void finish(const exec::Trainer& trainer, const RunFolder& folder, std::int64_t done) const {
    Trace trace;
    trace.source = TraceSource::kMeasured;
    trace.steps.push_back(*trainer.last_step());
    save_trace(folder.trace_file(done).string(), trainer.scenario(), trainer.plan(), trace);
    const Report report = make_report(trainer.plan(), trace, report_facts(trainer.scenario()));
    JsonWriter writer;
    writer.begin_object();
    write_report(writer, {trainer.scenario(), trainer.plan(), report, nullptr, false});
    writer.end_object();
    folder.save_report(writer.text());
    if (json) {
      print(writer.text());
    }
  }

  void print_sample(const Scenario& scenario,
                    const exec::Trainer& trainer,
                    const RunFolder& folder) const {
    print("\n");
    const exec::Checkpoint checkpoint(*trainer.plan().graph,
                                      exec::latest_checkpoint(folder.checkpoints()));
    exec::Generator generator(scenario, checkpoint);
    generator.generate(
        {}, {.tokens = kSampleTokens}, [](std::int64_t token) { return print(token_text(token)); });
    print(
        fmt::format("\n\n{}: metrics.jsonl, report.json, trace/, checkpoints/; lockstep generate "
                    "--out {} writes more\n",
                    folder.path().string(),
                    folder.path().string()));
  }
};

}  // namespace

void add_train_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<TrainCommand>();
  CLI::App* app = program.add_subcommand("train");
  app->description(kDescription);
  app->add_option("--data", command->data, "text, or GPT-2 token shard (default: a built-in text)");
  app->add_flag("--documents",
                command->documents,
                "samples end where a document does (blank line, end-of-text token) and are padded");
  app->add_option("--out", command->out, "folder of the run (default lockstep-run)");
  app->add_option("--steps", command->steps, "optimizer steps in all (default 1000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  app->add_flag("--resume", command->resume, "go on from the newest checkpoint in --out");
  app->add_option("--checkpoint-every", command->checkpoint_every, "steps (default: at the end)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--evaluate-every", command->evaluate_every, "steps (default: at the end)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--backend", command->backend, "local: ranks are threads of this process");
  app->add_option("--device", command->device, "cpu");
  app->add_option("--nproc-per-node", command->processes, "ranks (default: 2, or dp x tp x pp)")
      ->check(CLI::Range(1, 64));
  app->add_option("--threads", command->threads, "that share a rank's fp32 matrix products (1)")
      ->check(CLI::Range(1, 256));
  app->add_option("--timeout", command->timeout_s, "seconds that a rank waits for others (600)")
      ->check(CLI::Range(0.001, 1e6));
  app->add_flag("--no-sample", command->no_sample, "write no text at the end");
  app->add_flag("--json", command->json, "the report of the last step as one JSON object");
  command->flags.add_to(*app);
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
