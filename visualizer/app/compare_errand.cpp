#include "visualizer/app/compare_errand.h"

#include <algorithm>
#include <exception>
#include <tuple>

#include "core/error.h"

namespace lockstep::app {
namespace {

bool before(const Compared::Place& a, const Compared::Place& b) {
  return std::tie(a.rank, a.operation) < std::tie(b.rank, b.operation);
}

std::optional<std::size_t> find(const std::vector<Compared::Place>& places,
                                std::int32_t rank,
                                std::uint32_t operation) {
  const Compared::Place wanted{rank, operation, 0};
  const auto it = std::lower_bound(places.begin(), places.end(), wanted, before);
  const bool found = it != places.end() && it->rank == rank && it->operation == operation;
  return found ? std::optional(it->difference) : std::nullopt;
}

void compare(Compared& it) {
  it.comparison =
      std::make_unique<view::Comparison>(view::ComparedStep{it.a->plan, it.a->shown_step()},
                                         view::ComparedStep{it.b->plan, it.b->shown_step()});
  const std::vector<view::OperationDifference>& all = it.comparison->differences();
  for (std::size_t i = 0; i < all.size(); ++i) {
    it.by_a.push_back({all[i].rank, all[i].a_operation, i});
    it.by_b.push_back({all[i].rank, all[i].b_operation, i});
  }
  std::sort(it.by_a.begin(), it.by_a.end(), before);
  std::sort(it.by_b.begin(), it.by_b.end(), before);
}

}  // namespace

std::optional<std::size_t> Compared::with_a(std::int32_t rank, std::uint32_t operation) const {
  return find(by_a, rank, operation);
}

std::optional<std::size_t> Compared::with_b(std::int32_t rank, std::uint32_t operation) const {
  return find(by_b, rank, operation);
}

std::shared_ptr<const Compared> CompareErrand::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

bool CompareErrand::step(const StopCheck& stop_check) {
  const auto result = std::make_shared<Compared>();
  result->b = b_;
  try {
    result->a = a_ != nullptr ? a_ : simulate_document(b_->scenario, stop_check);
    check_stop(stop_check);
    compare(*result);
  } catch (const InterruptedError&) {
    throw;
  } catch (const std::exception& error) {
    result->comparison.reset();
    result->error = error.what();
  }
  const std::lock_guard lock(mutex_);
  result_ = result;
  return false;
}

}  // namespace lockstep::app
