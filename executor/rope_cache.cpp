#include "executor/rope_cache.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace lockstep::exec {

template <typename T>
kernels::cpu::RopeTable<T> rope_table(const kernels::cpu::RopeAngles& angles) {
  struct Table {
    std::vector<T> cosine;
    std::vector<T> sine;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, double, double>;
  static std::mutex mutex;
  static std::map<Key, Table> tables;
  const std::lock_guard lock(mutex);
  Table& table = tables[{angles.seq, angles.dim, angles.theta, angles.scaling}];
  if (table.cosine.empty()) {
    const auto size = static_cast<std::size_t>(angles.seq * (angles.dim / 2));
    table.cosine.resize(size);
    table.sine.resize(size);
    kernels::cpu::rope_table(angles, table.cosine.data(), table.sine.data());
  }
  return {table.cosine.data(), table.sine.data()};
}

template kernels::cpu::RopeTable<float> rope_table<float>(const kernels::cpu::RopeAngles& angles);
template kernels::cpu::RopeTable<double> rope_table<double>(const kernels::cpu::RopeAngles& angles);

}  // namespace lockstep::exec
