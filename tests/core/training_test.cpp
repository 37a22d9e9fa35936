#include "core/training.h"

#include <limits>

#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::string problems_of(const TrainingSpec& training) {
  Problems problems;
  validate(training, problems);
  return problems.one_line();
}

}  // namespace

TEST_CASE("Training made of defaults is valid") {
  CHECK(problems_of(TrainingSpec{}) == "");
}

TEST_CASE("Storage follows the precision kind") {
  struct Row {
    Precision precision;
    DType parameter;
    DType activation;
    bool master;
  };
  const Row rows[] = {{Precision::kFp64, DType::kFp64, DType::kFp64, false},
                      {Precision::kFp32, DType::kFp32, DType::kFp32, false},
                      {Precision::kTf32, DType::kFp32, DType::kFp32, false},
                      {Precision::kBf16, DType::kBf16, DType::kBf16, true},
                      {Precision::kFp16, DType::kFp16, DType::kFp16, true},
                      {Precision::kAutocast, DType::kFp32, DType::kBf16, false}};
  for (const Row& row : rows) {
    TrainingSpec training;
    training.precision = row.precision;
    CHECK(training.parameter_dtype() == row.parameter);
    CHECK(training.activation_dtype() == row.activation);
    CHECK(training.has_master_weights() == row.master);
  }
}

TEST_CASE("Loss is scaled for fp16 unless said otherwise") {
  TrainingSpec training;
  CHECK_FALSE(training.scales_loss());
  training.precision = Precision::kFp16;
  CHECK(training.scales_loss());
  training.loss_scaling = false;
  CHECK_FALSE(training.scales_loss());
  training.precision = Precision::kFp32;
  training.loss_scaling = true;
  CHECK(problems_of(training).find("training.loss_scaling: is for 16-bit") == 0);
}

TEST_CASE("Numbers outside their range are refused, infinities and NaN too") {
  TrainingSpec training;
  training.micro_batch = 0;
  training.accumulate = -3;
  training.dropout = 1.0;
  training.learning_rate = std::numeric_limits<double>::infinity();
  training.clip_norm = std::numeric_limits<double>::quiet_NaN();
  training.unused = {{-1, {0}, {}}};
  Problems problems;
  validate(training, problems);
  REQUIRE(problems.list().size() == 6);
  CHECK(problems.list()[0].place == "training.micro_batch");
  CHECK(problems.list()[1].place == "training.accumulate");
  CHECK(problems.list()[2].place == "training.learning_rate");
  CHECK(problems.list()[3].place == "training.dropout");
  CHECK(problems.list()[4].place == "training.clip_norm");
  CHECK(problems.list()[5].place == "training.unused[0].layer");
}

TEST_CASE("Gradients are floating-point numbers") {
  TrainingSpec training;
  training.gradient_dtype = DType::kInt32;
  training.reduce_dtype = DType::kUint8;
  const std::string text = problems_of(training);
  CHECK(text.find("training.gradient_dtype: must be a floating-point type") == 0);
  CHECK(text.find("training.reduce_dtype") != std::string::npos);
}

TEST_CASE("Recomputing every k-th layer is a form of full recomputation") {
  TrainingSpec training;
  training.recompute_every = 2;
  CHECK(problems_of(training).find("training.recompute_every") == 0);
  training.recompute = Recompute::kFull;
  CHECK(problems_of(training) == "");
}
