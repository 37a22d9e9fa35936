// Range checks of a section by the table of keys (core/fields.h): every number inside its range and
// finite, every list no longer than it may be. Rules between fields are not here: a section's own
// validate() and core/legality.h have those.
#pragma once

#include "core/cluster.h"
#include "core/model.h"
#include "core/problems.h"
#include "core/strategy.h"
#include "core/training.h"

namespace lockstep {

/// `path` is the key path of the section: "model", "strategy".
void validate_fields(const char* path, const ModelSpec& model, Problems& problems);
void validate_fields(const char* path, const ClusterSpec& cluster, Problems& problems);
void validate_fields(const char* path, const TrainingSpec& training, Problems& problems);
void validate_fields(const char* path, const StrategySpec& strategy, Problems& problems);

}  // namespace lockstep
