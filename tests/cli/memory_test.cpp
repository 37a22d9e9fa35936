// `lockstep memory`: its JSON against closed forms of the literature and sums by hand.
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using lockstep::test::TemporaryFile;
using Json = nlohmann::json;

namespace {

Json memory(const std::string& arguments) {
  const ProgramResult result = run_program("memory --json " + arguments);
  INFO(arguments << "\n" << result.err);
  REQUIRE(result.code == 0);
  REQUIRE(result.err == "");
  return Json::parse(result.out);
}

std::int64_t category(const Json& report, const char* name) {
  return report["ranks"][0]["by_category"][name].get<std::int64_t>();
}

/// Works out the formulas of --explain: numbers, x, +, /, parentheses, ceil(a / b); words are for
/// the reader.
class Arithmetic {
 public:
  explicit Arithmetic(const std::string& text) : text_(text) {}
  double value() {
    const double result = sum();
    REQUIRE(at_ == text_.size());
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_times = c == 'x' && (at_ + 1 == text_.size() || text_[at_ + 1] == ' ');
      const bool is_ceil = text_.compare(at_, 5, "ceil(") == 0;
      if (c == ' ' || c == '-' ||
          (std::isalpha(static_cast<unsigned char>(c)) != 0 && !is_times && !is_ceil)) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool take(char wanted) {
    skip();
    if (at_ < text_.size() && text_[at_] == wanted) {
      ++at_;
      return true;
    }
    return false;
  }
  double sum() {
    double result = product();
    while (take('+')) {
      result += product();
    }
    return result;
  }
  double product() {
    double result = factor();
    for (;;) {
      if (take('x')) {
        result *= factor();
      } else if (take('/')) {
        result /= factor();
      } else {
        return result;
      }
    }
  }
  double factor() {
    skip();
    if (text_.compare(at_, 5, "ceil(") == 0) {
      at_ += 5;
      const double inner = sum();
      REQUIRE(take(')'));
      return std::ceil(inner);
    }
    if (take('(')) {
      const double inner = sum();
      REQUIRE(take(')'));
      return inner;
    }
    std::size_t length = 0;
    const double number = std::stod(text_.substr(at_), &length);
    at_ += length;
    return number;
  }

  std::string text_;
  std::size_t at_ = 0;
};

void check_terms(const Json& terms, std::int64_t expected) {
  std::int64_t sum = 0;
  for (const Json& term : terms) {
    INFO(term.dump());
    const std::int64_t bytes = term["bytes"].get<std::int64_t>();
    CHECK(Arithmetic(term["formula"].get<std::string>()).value() == static_cast<double>(bytes));
    CHECK(term["source"].get<std::string>() != "");
    sum += bytes;
  }
  CHECK(sum == expected);
}

void check_report(const Json& report, int world) {
  CHECK(report["schema_version"] == 1);
  std::int64_t previous = INT64_MAX;
  int ranks = 0;
  for (const Json& rank : report["ranks"]) {
    std::int64_t sum = 0;
    CHECK(rank["by_category"].size() == 10);
    for (const auto& [name, bytes] : rank["by_category"].items()) {
      sum += bytes.get<std::int64_t>();
    }
    const std::int64_t peak = rank["peak_bytes"].get<std::int64_t>();
    CHECK(sum == peak);
    CHECK(peak <= previous);
    CHECK(rank["upper_bound_bytes"].get<std::int64_t>() >= peak);
    CHECK(rank["ranks_like_this"].size() == rank["count"].get<std::size_t>());
    CHECK(rank["ranks_like_this"][0] == rank["rank"]);
    CHECK(rank["peak_operation"].get<std::string>() != "");
    previous = peak;
    ranks += rank["count"].get<int>();
  }
  CHECK(ranks == world);
  CHECK(report["worst_rank"] == report["ranks"][0]["rank"]);
  const bool fits = report["ranks"][0]["peak_bytes"].get<std::int64_t>() <=
                    report["device_bytes"].get<std::int64_t>();
  CHECK(report["fits"] == fits);
}

}  // namespace

TEST_CASE("memory: model states of 7.5B on 64 ranks are those of the ZeRO paper's figure 1") {
  // Short samples: the peak is the end of backward, when all gradients are there.
  const std::string common = "--model gpt-7.5b --dp 64 --seq-len 8 --strategy ";
  const double parameters = 7467786240;  // of the preset; the paper rounds to 7.5e9
  const auto states = [](const Json& it) {
    return static_cast<double>(category(it, "parameter") + category(it, "gradient") +
                               category(it, "optimizer"));
  };
  const Json ddp = memory(common + "ddp");
  CHECK(category(ddp, "parameter") == 2 * 7467786240);
  CHECK(category(ddp, "gradient") == 2 * 7467786240);
  CHECK(category(ddp, "optimizer") == 12 * 7467786240);
  CHECK(states(ddp) == Approx(120e9 * parameters / 7.5e9));

  const Json zero1 = memory(common + "zero1");
  CHECK(states(zero1) == Approx(31.4e9 * parameters / 7.5e9).epsilon(2e-3));

  // Gradients exist in part at the peak of stages 2 and 3: the other two states are exact.
  const Json zero2 = memory(common + "zero2");
  CHECK(category(zero2, "parameter") == 2 * 7467786240);
  CHECK(static_cast<double>(category(zero2, "optimizer")) ==
        Approx(12 * parameters / 64).epsilon(1e-3));
  const Json zero3 = memory(common + "zero3");
  CHECK(static_cast<double>(category(zero3, "parameter")) ==
        Approx(2 * parameters / 64).epsilon(1e-3));
  CHECK(static_cast<double>(category(zero3, "optimizer")) ==
        Approx(12 * parameters / 64).epsilon(1e-3));
}

TEST_CASE("memory: fp32 DDP holds 16 bytes per parameter and 4 more for its buckets") {
  const Json report =
      memory("--model llama-tiny --precision fp32 --strategy ddp --dp 3 --seq-len 2");
  const std::int64_t parameters = report["parameters"].get<std::int64_t>();
  CHECK(parameters == 443424);
  CHECK(category(report, "parameter") == 4 * parameters);
  CHECK(category(report, "gradient") == 4 * parameters);
  CHECK(category(report, "optimizer") == 8 * parameters);
  CHECK(category(report, "communication") == 4 * parameters);
  check_report(report, 3);
}

TEST_CASE("memory: FSDP holds 16 bytes per parameter divided by the ranks") {
  const Json report = memory("--model llama-3.1-8b --strategy fsdp --dp 8");
  // 8 divides every first dimension: no padding. fp32 parameters and two moments.
  CHECK(category(report, "parameter") == 4 * 8030261248 / 8);
  CHECK(category(report, "optimizer") == 8 * 8030261248 / 8);
  check_report(report, 8);
}

TEST_CASE("memory: shards of an odd number of ranks are padded per parameter") {
  const Json report = memory("--model qwen2.5-0.5b --strategy fsdp --dp 3 --seq-len 64");
  const auto shard = [](std::int64_t rows, std::int64_t columns) {
    return (rows + 2) / 3 * columns;
  };
  // config.json of Qwen2.5-0.5B: 24 layers, hidden 896, 14 heads and 2 kv heads of 64, MLP 4864,
  // vocabulary 151936, q, k and v with biases, head tied to the embedding.
  const std::int64_t block = shard(896, 896) + 2 * shard(128, 896) + shard(896, 1) +
                             2 * shard(128, 1) + shard(896, 896) + 2 * shard(4864, 896) +
                             shard(896, 4864) + 2 * shard(896, 1);
  const std::int64_t elements = 24 * block + shard(151936, 896) + shard(896, 1);
  CHECK(category(report, "parameter") == 4 * elements);
  CHECK(category(report, "optimizer") == 8 * elements);
  check_report(report, 3);
}

TEST_CASE("memory: experts are parameters, whatever tokens visit them") {
  const Json report = memory("--model mixtral-8x7b --strategy zero1 --dp 7 --seq-len 8");
  const double parameters = 46702792704;
  CHECK(report["parameters"] == 46702792704);
  CHECK(static_cast<double>(category(report, "parameter")) == Approx(2 * parameters).epsilon(1e-6));
  CHECK(static_cast<double>(category(report, "optimizer")) ==
        Approx(12 * parameters / 7).epsilon(1e-6));
}

TEST_CASE("memory: every figure is the sum of its terms, and every formula gives its term") {
  const struct {
    const char* arguments;
    int world;
  } cases[] = {
      {"--model gpt2", 1},
      {"--model gpt2-tiny --strategy ddp --dp 3 --accumulate 2 --precision fp16", 3},
      {"--model gpt2-tiny --strategy dp --dp 2 --precision fp32", 2},
      {"--model qwen3-0.6b --strategy fsdp --dp 5", 5},
      {"--model llama-3.1-8b --strategy zero1 --dp 4 --tp 2 --sequence-parallel --pp 2 "
       "--accumulate 4",
       16},
      {"--model llama-3.1-8b --tp 4 --recompute full --optimizer adamw8bit", 4},
      {"--model llama-tiny --strategy hsdp --dp 4 --set strategy.data.replicate=2", 4},
      {"--model gpt2-tiny --pp 4 --accumulate 8 --schedule zbv --chunks 2 "
       "--set model.layers=8",
       4},
      {"--model gpt2-mini --set training.attention=plain --set training.dropout=0.1 --recompute "
       "selective --tp 2",
       2},
      {"--model mixtral-tiny --strategy zero2 --dp 3", 3},
      {"--model llama-tiny --strategy zero3 --dp 3 --precision autocast", 3},
      {"--model llama-tiny --strategy zero1 --dp 3 --set "
       "strategy.data.flavour=zero_redundancy_optimizer",
       3},
      {"--model mlp-tiny-bn --strategy ddp --dp 2 --micro-batch 16 --cluster cpu-laptop", 2},
  };
  for (const auto& it : cases) {
    INFO(it.arguments);
    const Json report = memory(std::string("--explain ") + it.arguments);
    check_report(report, it.world);
    for (const Json& rank : report["ranks"]) {
      std::map<std::string, Json> terms;
      for (const Json& term : rank["explain"]) {
        terms[term["category"].get<std::string>()].push_back(term);
      }
      for (const auto& [name, bytes] : rank["by_category"].items()) {
        INFO(name);
        check_terms(name == "non_tensor" ? rank["non_tensor"] : terms[name],
                    bytes.get<std::int64_t>());
      }
      check_terms(
          rank["margins"],
          rank["upper_bound_bytes"].get<std::int64_t>() - rank["peak_bytes"].get<std::int64_t>());
    }
  }
}

TEST_CASE("memory: communicators are counted per group that has members") {
  // dp, tp and pp and the group of all ranks that sums the gradient norm; 0.4 GiB for each with
  // collectives, 0.2 GiB for the one that only sends and receives.
  const Json report = memory("--model llama-3.1-8b --dp 2 --tp 2 --pp 2 --accumulate 2");
  const std::int64_t gibibyte = std::int64_t{1} << 30;
  std::int64_t bytes = 0;
  for (const Json& term : report["ranks"][0]["non_tensor"]) {
    if (term["name"].get<std::string>().rfind("communicators", 0) == 0) {
      bytes = term["bytes"].get<std::int64_t>();
    }
  }
  // The norm is summed over pp and tp: gradients are the same on dp.
  CHECK(bytes == 3 * (4 * gibibyte / 10) + 2 * gibibyte / 10);
  const Json alone = memory("--model gpt2");
  CHECK(alone["ranks"][0]["non_tensor"].size() == 2);
}

TEST_CASE("memory: advice makes it fit when it is followed") {
  const std::string command = "--model llama-3.1-8b --strategy ddp --dp 8 ";
  const Json before = memory(command);
  CHECK(before["fits"] == false);
  REQUIRE(before["advice"]["single"].size() > 0);
  for (const Json& change : before["advice"]["single"]) {
    INFO(change.dump());
    REQUIRE(change["fits"] == true);
    const Json after = memory(command + change["flags"].get<std::string>());
    CHECK(after["fits"] == true);
    CHECK(after["ranks"][0]["peak_bytes"] == change["peak_bytes"]);
  }
}

TEST_CASE("memory: advice adds up changes where one is not enough") {
  const std::string command = "--model llama-3.1-70b --strategy ddp --dp 64 --seq-len 8192 ";
  const Json before = memory(command);
  const Json& together = before["advice"]["together"];
  REQUIRE(together.size() > 1);
  std::string flags = command;
  for (const Json& change : together) {
    flags += change["flags"].get<std::string>() + " ";
  }
  CHECK(together.back()["fits"] == true);
  // Later flags win, as people append them.
  INFO(flags);
  CHECK(memory(flags)["fits"] == true);
}

TEST_CASE("memory: --strict fails when it does not fit, and only then") {
  CHECK(run_program("memory --model gpt2 --strict").code == 0);
  CHECK(run_program("memory --model llama-3.1-70b --strict").code == 1);
  CHECK(run_program("memory --model llama-3.1-70b").code == 0);
}

TEST_CASE("memory: a scenario file is the start, flags and --set come after") {
  const TemporaryFile file("scenario.json",
                           R"({"schema_version": 1, "model": "gpt2",
      "cluster": "dgx-a100-40gb", "training": {"precision": "fp32", "seq_len": 128},
      "strategy": {"data": {"kind": "ddp", "degree": 2}}})");
  const std::string scenario = "--scenario " + file.path();
  const Json two = memory(scenario);
  CHECK(category(two, "parameter") == 4 * 124439808);
  CHECK(two["ranks"][0]["count"] == 2);
  CHECK(two["device_bytes"].get<double>() == Approx(39.49 * 1073741824));
  CHECK(memory(scenario + " --dp 3")["ranks"][0]["count"] == 3);
  CHECK(memory(scenario + " --dp 3 --set strategy.data.degree=4")["ranks"][0]["count"] == 4);
  CHECK(category(memory(scenario + " --precision bf16"), "parameter") == 2 * 124439808);
}

TEST_CASE("memory: a Hugging Face config gives what the preset gives") {
  const TemporaryFile config("config.json", R"({"model_type": "llama", "hidden_size": 4096,
      "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
      "tie_word_embeddings": false, "rms_norm_eps": 1e-5})");
  const Json mine = memory("--strategy fsdp --dp 8 --config " + config.path());
  const Json preset = memory("--strategy fsdp --dp 8 --model llama-3.1-8b");
  CHECK(mine["parameters"] == 8030261248);
  CHECK(mine["ranks"][0]["by_category"] == preset["ranks"][0]["by_category"]);
}

TEST_CASE("memory: the same question gives the same bytes, as text, JSON and CSV") {
  for (const char* form : {"", "--json ", "--csv ", "--explain "}) {
    const std::string command =
        std::string("memory --model llama-tiny --strategy zero2 --dp 3 --pp 1 ") + form;
    CHECK(run_program(command).out == run_program(command).out);
  }
  const ProgramResult csv = run_program("memory --model gpt2 --csv");
  CHECK(csv.out.rfind("rank,count,category,bytes\n0,1,parameter,248879616\n", 0) == 0);
}
