// ClassData: a task for models that read numbers: points around the corners of a cube, one corner a
// class, drawn from counters, so that a sample is the same wherever and whenever it is read.
//
// Corners are +-1 in every coordinate, points lie around them as normal numbers do. Neighbouring
// clouds overlap in few coordinates and lie apart in many: a small network learns them within some
// hundred steps, and a loss near log(classes) after that says that something is wrong.
#pragma once

#include <cstdint>

#include "executor/training_data.h"

namespace lockstep::exec {

class ClassData final : public TrainingData {
 public:
  ClassData(std::int64_t features, std::int64_t classes);

  std::int64_t samples(bool evaluation) const override;
  std::int64_t counted_labels(bool, std::int64_t) const override { return 1; }
  void copy(bool evaluation, std::int64_t index, const BatchRows& to) const override;

 private:
  std::int64_t features_;
  std::int64_t classes_;
};

}  // namespace lockstep::exec
