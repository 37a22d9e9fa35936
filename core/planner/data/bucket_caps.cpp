#include "core/planner/data/bucket_caps.h"

#include <algorithm>

namespace lockstep {
namespace {

std::int64_t bytes_of_mib(double mib) {
  return static_cast<std::int64_t>(mib * 1024 * 1024);
}

BucketCaps ddp_caps(const DataStrategy& data) {
  const DdpBucketOptions options = ddp_bucket_options(data);
  const std::int64_t rest = options.cap_bytes.value_or(kDdpBucketBytes);
  const std::int64_t first =
      options.ideal ? rest : options.cap_bytes.value_or(kDdpFirstBucketBytes);
  return {first, rest, !options.ideal};
}

}  // namespace

DdpBucketOptions ddp_bucket_options(const DataStrategy& data) {
  DdpBucketOptions options;
  if (data.bucket_mib) {
    options.cap_bytes = bytes_of_mib(*data.bucket_mib);
  }
  options.find_unused_parameters = data.find_unused_parameters;
  options.static_graph = data.static_graph;
  options.ideal = data.ideal;
  return options;
}

std::int64_t zero_bucket_elements(const DataStrategy& data, std::int64_t element_size) {
  if (data.flavour == ZeroFlavour::kDeepSpeed && !data.bucket_mib) {
    return kIpgBucketElements;
  }
  return std::max<std::int64_t>(1, bytes_of_mib(data.bucket_mib.value_or(25.0)) / element_size);
}

std::optional<BucketCaps> bucket_caps(const DataStrategy& data,
                                      std::int64_t element_size,
                                      std::int32_t shards) {
  const bool zero = data.kind == DataKind::kZero1 || data.kind == DataKind::kZero2;
  if (data.kind == DataKind::kDdp ||
      (zero && data.flavour == ZeroFlavour::kZeroRedundancyOptimizer)) {
    return ddp_caps(data);
  }
  if (!zero) {
    return {};
  }
  const bool megatron = data.flavour == ZeroFlavour::kMegatron;
  const std::int64_t bytes = element_size * (megatron ? megatron_bucket_elements(shards)
                                                      : zero_bucket_elements(data, element_size));
  return BucketCaps{bytes, bytes, megatron};
}

}  // namespace lockstep
