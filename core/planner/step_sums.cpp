#include "core/planner/step_sums.h"

namespace lockstep {
namespace {

void add_to(CategoryBytes& bytes, const CategoryBytes& more, std::int64_t times) {
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    bytes[c] += times * more[c];
  }
}

/// A place in a step: before a fragment of it.
struct Cursor {
  enum class Part : std::uint8_t { kStart, kBegin, kWalk, kEnd, kOver };
  Part part = Part::kStart;
  std::size_t stretch = 0;
  std::int64_t run = 0;    ///< of the stretch
  std::uint32_t step = 0;  ///< of the stretch
  std::uint32_t group = 0;
  std::int32_t group_run = 0;
  std::uint32_t fragment = 0;
};

class Step {
 public:
  Step(const StepSums& sums, const StageWalk& walk, const StagePlace& place)
      : sums_(sums), walk_(walk), place_(place) {}

  Cursor find_highest();
  void add_passes_before(const Cursor& at, CategoryBytes& bytes) const;
  void add_fragments_before(const Cursor& at, CategoryBytes& bytes) const;
  CategoryBytes bytes_at(const Cursor& at) const;
  void name(Cursor at, MemoryPeak& peak) const;

 private:
  const WalkStep& step_at(const Cursor& at) const {
    return walk_.steps[walk_.stretches[at.stretch].first + at.step];
  }
  const PassSum& pass_at(const Cursor& at) const { return sums_.passes[step_at(at).symbol]; }
  const PieceGroup& group_at(const Cursor& at) const {
    return sums_.groups[pass_at(at).first + at.group];
  }
  const Fragment* fragment_at(const Cursor& at) const;
  void advance(Cursor& at) const;
  void settle(Cursor& at) const;
  void write_name(const FragmentName& name, const Cursor& at, MemoryPeak& peak) const;

  const StepSums& sums_;
  const StageWalk& walk_;
  const StagePlace& place_;
};

Cursor Step::find_highest() {
  std::int64_t held = total(sums_.at_start);
  std::int64_t highest = held;
  Cursor best;
  const auto single = [&](const Fragment* fragment, Cursor::Part part) {
    if (fragment == nullptr) {
      return;
    }
    if (held + fragment->peak_total > highest) {
      highest = held + fragment->peak_total;
      best = {};
      best.part = part;
    }
    held += fragment->delta_total;
  };
  single(sums_.begin, Cursor::Part::kBegin);
  for (std::size_t s = 0; s < walk_.stretches.size(); ++s) {
    const WalkStretch& stretch = walk_.stretches[s];
    std::int64_t delta = 0;
    std::int64_t peak = 0;
    std::uint32_t peak_step = 0;
    for (std::uint32_t i = 0; i < stretch.count; ++i) {
      const PassHeight& pass = sums_.heights[walk_.steps[stretch.first + i].symbol];
      if (delta + pass.peak > peak) {
        peak = delta + pass.peak;
        peak_step = i;
      }
      delta += pass.delta;
    }
    // Each run starts `delta` higher than the one before.
    const std::int64_t run = delta > 0 ? stretch.times - 1 : 0;
    if (held + run * delta + peak > highest) {
      highest = held + run * delta + peak;
      best = {Cursor::Part::kWalk, s, run, peak_step, 0, 0, 0};
    }
    held += stretch.times * delta;
  }
  single(sums_.end, Cursor::Part::kEnd);
  if (best.part == Cursor::Part::kWalk) {
    best.group = pass_at(best).peak_group;
    best.group_run = group_at(best).peak_run;
    best.fragment = group_at(best).peak_fragment;
  }
  return best;
}

const Fragment* Step::fragment_at(const Cursor& at) const {
  switch (at.part) {
    case Cursor::Part::kBegin:
      return sums_.begin;
    case Cursor::Part::kWalk:
      return sums_.fragments[group_at(at).first + at.fragment];
    case Cursor::Part::kEnd:
      return sums_.end;
    case Cursor::Part::kStart:
    case Cursor::Part::kOver:
      break;
  }
  return nullptr;
}

/// Adds what all passes of the walk before the cursor changed (all of the walk, after it).
void Step::add_passes_before(const Cursor& at, CategoryBytes& bytes) const {
  const bool inside = at.part == Cursor::Part::kWalk;
  const std::size_t last = inside ? at.stretch : walk_.stretches.size();
  for (std::size_t s = 0; s < last + (inside ? 1 : 0); ++s) {
    const WalkStretch& stretch = walk_.stretches[s];
    for (std::uint32_t i = 0; i < stretch.count; ++i) {
      const std::int64_t times = s < last ? stretch.times : at.run + (i < at.step ? 1 : 0);
      const std::size_t symbol = walk_.steps[stretch.first + i].symbol;
      if (times > 0 && sums_.passes[symbol].count > 0) {
        add_to(bytes, sums_.passes[symbol].bytes, times);
      }
    }
  }
}

/// Adds what the fragments of the cursor's own pass changed before it.
void Step::add_fragments_before(const Cursor& at, CategoryBytes& bytes) const {
  const PassSum& pass = pass_at(at);
  for (std::uint32_t g = 0; g <= at.group; ++g) {
    const PieceGroup& group = sums_.groups[pass.first + g];
    for (std::uint32_t i = 0; i < group.count; ++i) {
      const std::int64_t times =
          g < at.group ? group.times : at.group_run + (i < at.fragment ? 1 : 0);
      if (times > 0) {
        add_to(bytes, sums_.fragments[group.first + i]->delta, times);
      }
    }
  }
}

CategoryBytes Step::bytes_at(const Cursor& at) const {
  CategoryBytes bytes = sums_.at_start;
  if (at.part > Cursor::Part::kBegin && sums_.begin != nullptr) {
    add_to(bytes, sums_.begin->delta, 1);
  }
  if (at.part >= Cursor::Part::kWalk) {
    add_passes_before(at, bytes);
  }
  if (at.part == Cursor::Part::kWalk) {
    add_fragments_before(at, bytes);
  }
  if (const Fragment* fragment = fragment_at(at); fragment != nullptr) {
    add_to(bytes, fragment->peak_delta, 1);
  }
  return bytes;
}

/// Moves on until a fragment stands at the cursor, or the step is over.
void Step::settle(Cursor& at) const {
  while (at.part == Cursor::Part::kWalk) {
    if (at.stretch == walk_.stretches.size()) {
      at.part = Cursor::Part::kEnd;
    } else if (at.run == walk_.stretches[at.stretch].times) {
      at.run = 0;
      ++at.stretch;
    } else if (at.step == walk_.stretches[at.stretch].count) {
      at.step = 0;
      ++at.run;
    } else if (at.group == pass_at(at).count) {
      at.group = 0;
      ++at.step;
    } else if (at.group_run == group_at(at).times) {
      at.group_run = 0;
      ++at.group;
    } else if (at.fragment == group_at(at).count) {
      at.fragment = 0;
      ++at.group_run;
    } else {
      return;
    }
  }
}

void Step::advance(Cursor& at) const {
  switch (at.part) {
    case Cursor::Part::kStart:
      at.part = Cursor::Part::kBegin;
      break;
    case Cursor::Part::kBegin:
      at.part = Cursor::Part::kWalk;
      break;
    case Cursor::Part::kWalk:
      ++at.fragment;
      break;
    case Cursor::Part::kEnd:
    case Cursor::Part::kOver:
      at.part = Cursor::Part::kOver;
      break;
  }
  settle(at);
}

/// The operation that was issued next: in the fragment of the peak, or the first one after it.
void Step::name(Cursor at, MemoryPeak& peak) const {
  const Fragment* fragment = fragment_at(at);
  if (fragment != nullptr && !fragment->peak_open) {
    return write_name(fragment->peak, at, peak);
  }
  while (at.part != Cursor::Part::kOver) {
    advance(at);
    fragment = fragment_at(at);
    if (fragment != nullptr && fragment->has_operations) {
      return write_name(fragment->first, at, peak);
    }
  }
}

void Step::write_name(const FragmentName& name, const Cursor& at, MemoryPeak& peak) const {
  peak.phase = name.phase;
  peak.work = name.work;
  peak.module = name.module;
  if (at.part != Cursor::Part::kWalk) {
    return;
  }
  const PieceGroup& group = group_at(at);
  if (name.module != kNoModule && group.base == PieceBase::kHead) {
    peak.module += static_cast<std::uint32_t>(place_.head_module);
  } else if (name.module != kNoModule && group.base == PieceBase::kBlock) {
    const std::int32_t block = group.block + group.step * at.group_run;
    const std::size_t chunk = step_at(at).symbol / kChunkSymbols;
    peak.module += static_cast<std::uint32_t>(place_.first_block_module[chunk] +
                                              block * place_.modules_per_block);
  }
  const WalkStep& step = step_at(at);
  peak.microbatch =
      name.in_microbatch ? step.microbatch + static_cast<std::int32_t>(at.run) * step.move : -1;
}

}  // namespace

void StepSums::clear(std::size_t symbols) {
  heights.resize(symbols);
  passes.resize(symbols);
  groups.clear();
  fragments.clear();
}

void StepSums::begin_pass(std::size_t symbol) {
  pass_ = symbol;
  heights[symbol] = {};
  passes[symbol] = {};
  passes[symbol].first = static_cast<std::uint32_t>(groups.size());
}

void StepSums::add(PieceGroup group, std::span<const Fragment* const> parts) {
  PassSum& pass = passes[pass_];
  PassHeight& height = heights[pass_];
  group.first = static_cast<std::uint32_t>(fragments.size());
  std::int64_t highest_inside = 0;
  for (const Fragment* fragment : parts) {
    if (fragment == nullptr) {
      continue;
    }
    if (group.delta + fragment->peak_total > highest_inside) {
      highest_inside = group.delta + fragment->peak_total;
      group.peak_fragment = group.count;
    }
    group.delta += fragment->delta_total;
    pass.operations += group.times * fragment->operations;
    add_to(pass.bytes, fragment->delta, group.times);
    fragments.push_back(fragment);
    ++group.count;
  }
  if (group.count == 0) {
    return;
  }
  group.peak_run = group.delta > 0 ? group.times - 1 : 0;
  const std::int64_t top = height.delta + group.peak_run * group.delta + highest_inside;
  if (top > height.peak) {
    height.peak = top;
    pass.peak_group = pass.count;
  }
  height.delta += group.times * group.delta;
  groups.push_back(group);
  ++pass.count;
}

MemoryPeak highest(const StepSums& sums, const StageWalk& walk, const StagePlace& place) {
  Step step(sums, walk, place);
  const Cursor at = step.find_highest();
  MemoryPeak peak;
  peak.bytes = step.bytes_at(at);
  step.name(at, peak);
  return peak;
}

}  // namespace lockstep
