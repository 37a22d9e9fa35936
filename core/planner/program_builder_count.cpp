// Counting mode of ProgramBuilder: a table of equal operations, and the arithmetic that stands for
// runs of a body that did not take place: `repeat` runs one middle index for all of them,
// `once_per` one run per key. Both keep the memory peak as if every run had happened, to the byte
// and by name.
//
// While such a run is watched, a frame sets the surrounding peak aside and the run has a peak of
// its own, relative to where it started. At the end the run's peak, moved to the highest of the
// runs it stands for, competes with the surrounding one.
#include <algorithm>

#include "core/planner/mix.h"
#include "core/planner/program_builder.h"

namespace lockstep {

// ---- operations --------------------------------------------------------------------------------

namespace {

std::uint64_t key_of(const OperationCount& entry) {
  const std::uint64_t what = (static_cast<std::uint64_t>(entry.kind) << 56U) |
                             (static_cast<std::uint64_t>(entry.work) << 48U) |
                             (static_cast<std::uint64_t>(entry.collective) << 40U) |
                             (static_cast<std::uint64_t>(entry.phase) << 32U) |
                             (static_cast<std::uint64_t>(entry.communicator) << 24U) |
                             (static_cast<std::uint64_t>(entry.dtype) << 16U) |
                             (static_cast<std::uint64_t>(entry.stream) << 8U) |
                             (entry.control ? 1U : 0U);
  return mix(mix(what, entry.shape), static_cast<std::uint64_t>(entry.elements));
}

bool same_kind(const OperationCount& a, const OperationCount& b) {
  return a.kind == b.kind && a.work == b.work && a.collective == b.collective &&
         a.phase == b.phase && a.communicator == b.communicator && a.dtype == b.dtype &&
         a.stream == b.stream && a.shape == b.shape && a.elements == b.elements &&
         a.control == b.control;
}

}  // namespace

std::uint32_t ProgramBuilder::count_index(const OperationCount& entry) {
  if (count_table_.size() < 2 * (counts_.size() + 1)) {
    count_table_.assign(std::max<std::size_t>(256, count_table_.size() * 2), 0);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      std::size_t place = key_of(counts_[i]) & (count_table_.size() - 1);
      while (count_table_[place] != 0) {
        place = (place + 1) & (count_table_.size() - 1);
      }
      count_table_[place] = static_cast<std::uint32_t>(i + 1);
    }
  }
  std::size_t place = key_of(entry) & (count_table_.size() - 1);
  while (count_table_[place] != 0 && !same_kind(counts_[count_table_[place] - 1], entry)) {
    place = (place + 1) & (count_table_.size() - 1);
  }
  if (count_table_[place] == 0) {
    counts_.push_back(entry);
    count_table_[place] = static_cast<std::uint32_t>(counts_.size());
  }
  return count_table_[place] - 1;
}

void ProgramBuilder::count(const Operation& op) {
  const std::uint32_t index = count_index({op.kind,
                                           op.work,
                                           op.collective,
                                           op.phase,
                                           op.stream,
                                           op.communicator,
                                           op.dtype,
                                           op.has(kControl),
                                           op.shape,
                                           op.elements,
                                           0});
  if (recording_ > 0) {
    journal_.emplace_back(index, multiplicity_);
  } else {
    counts_[index].count += multiplicity_;
  }
}

// ---- names -------------------------------------------------------------------------------------

/// An operation (or the first one of a replayed fragment) is issued: it names what waits for a
/// name.
void ProgramBuilder::meet(const Name& name, const Place& place) {
  if (peak_open_) {
    peak_open_ = false;
    peak_.phase = name.phase;
    peak_.work = name.work;
    peak_.module = name.place.module;
    peak_.microbatch = name.place.microbatch;
  }
  // Every frame contains the ones above it, so a complete one has only complete ones below.
  for (std::size_t f = frames_.size(); f-- > 0 && !frames_[f].firsts.complete();) {
    Firsts& firsts = frames_[f].firsts;
    if (!firsts.any) {
      firsts.any = true;
      firsts.name = name;
    }
    if (firsts.place.module == kNoModule) {
      firsts.place.module = place.module;
    }
    if (firsts.place.microbatch < 0) {
      firsts.place.microbatch = place.microbatch;
    }
  }
  watching_ = !frames_.empty() && !frames_.back().firsts.complete();
}

ProgramBuilder::Step ProgramBuilder::step_between(const Place& from,
                                                  const Place& to,
                                                  std::int64_t steps) {
  const auto per_step = [&](std::int64_t a, std::int64_t b) {
    return (b - a) % steps == 0 ? (b - a) / steps : 0;
  };
  Step step;
  if (from.module != kNoModule && to.module != kNoModule) {
    step.module = per_step(from.module, to.module);
  }
  if (from.microbatch >= 0 && to.microbatch >= 0) {
    step.microbatch = per_step(from.microbatch, to.microbatch);
  }
  return step;
}

Place ProgramBuilder::moved(const Place& place, const Step& step, std::int64_t steps) {
  Place result = place;
  if (place.module != kNoModule) {
    result.module = static_cast<std::uint32_t>(place.module + steps * step.module);
  }
  if (place.microbatch >= 0) {
    result.microbatch = static_cast<std::int32_t>(place.microbatch + steps * step.microbatch);
  }
  return result;
}

void ProgramBuilder::move_peak(MemoryPeak& peak, const Step& step, std::int64_t steps) {
  const Place place = moved({peak.module, peak.microbatch}, step, steps);
  peak.module = place.module;
  peak.microbatch = place.microbatch;
}

// ---- frames ------------------------------------------------------------------------------------

void ProgramBuilder::push_frame() {
  frames_.push_back(
      {held_, peak_, peak_total_, peak_open_, {}, journal_.size(), operations_, multiplicity_});
  watching_ = true;
}

ProgramBuilder::Frame ProgramBuilder::pop_frame() {
  const Frame frame = frames_.back();
  frames_.pop_back();
  watching_ = !frames_.empty() && !frames_.back().firsts.complete();
  return frame;
}

/// The surrounding peak is the peak again. If it still waited for a name, the run had it.
void ProgramBuilder::restore_peak(const Frame& frame, const Firsts& firsts) {
  peak_ = frame.peak;
  peak_total_ = frame.peak_total;
  peak_open_ = frame.peak_open;
  if (peak_open_ && firsts.any) {
    meet(firsts.name, firsts.place);
  }
}

void ProgramBuilder::merge_peak(const MemoryPeak& peak, std::int64_t peak_total, bool open) {
  if (peak_total > peak_total_) {
    peak_total_ = peak_total;
    peak_ = peak;
    peak_open_ = open;
  }
}

// ---- repeat ------------------------------------------------------------------------------------

void ProgramBuilder::begin_scaled(std::int64_t times) {
  push_frame();
  peak_.bytes = held_;
  peak_total_ = held_total_;
  peak_open_ = false;
  multiplicity_ *= times;
}

/// The body ran for index 1. Each run starts `delta` higher than the one before it, so the highest
/// point of all is that of the first run (delta <= 0) or of the last one.
void ProgramBuilder::end_scaled(std::int64_t times, bool reverse, const Firsts& head) {
  const Frame frame = pop_frame();
  Firsts firsts = frame.firsts;
  // The head had index 0, or times + 1 when descending. Run r of the middle has index 1 + r, or
  // times - r; `ahead` is how far that is from index 1, whose names were recorded.
  const Step step = reverse ? step_between(firsts.place, head.place, times)
                            : step_between(head.place, firsts.place, 1);
  const auto ahead = [&](std::int64_t run) { return reverse ? times - 1 - run : run; };

  const std::int64_t delta_total = held_total_ - total(frame.start);
  const std::int64_t run = delta_total > 0 ? times - 1 : 0;
  MemoryPeak inner = peak_;
  const std::int64_t inner_total = peak_total_ + run * delta_total;
  bool open = peak_open_;
  for (std::size_t c = 0; c < held_.size(); ++c) {
    const std::int64_t delta = held_[c] - frame.start[c];
    inner.bytes[c] += run * delta;
    held_[c] = frame.start[c] + times * delta;
  }
  held_total_ = total(frame.start) + times * delta_total;
  if (open && run + 1 < times && firsts.any) {
    // The next run's first operation names a peak at the end of this one.
    inner.phase = firsts.name.phase;
    inner.work = firsts.name.work;
    inner.module = firsts.name.place.module;
    inner.microbatch = firsts.name.place.microbatch;
    move_peak(inner, step, ahead(run + 1));
    open = false;
  } else {
    move_peak(inner, step, ahead(run));
  }

  firsts.name.place = moved(firsts.name.place, step, ahead(0));
  firsts.place = moved(firsts.place, step, ahead(0));
  restore_peak(frame, firsts);
  merge_peak(inner, inner_total, open);
  multiplicity_ /= times;
}

// ---- once_per ----------------------------------------------------------------------------------

void ProgramBuilder::begin_fragment() {
  push_frame();
  peak_.bytes = held_;
  peak_total_ = held_total_;
  peak_open_ = false;
  ++recording_;
}

/// The run just watched; the surrounding peak is the peak again. Of a run that is not inside
/// another one, operations and counts are taken out: the caller says how often they happen.
ProgramBuilder::Run ProgramBuilder::end_run(const Place& place) {
  const Frame frame = pop_frame();
  Run fragment;
  for (std::size_t c = 0; c < held_.size(); ++c) {
    fragment.delta[c] = held_[c] - frame.start[c];
    fragment.peak_delta[c] = peak_.bytes[c] - frame.start[c];
  }
  fragment.peak = peak_;
  fragment.peak_open = peak_open_;
  fragment.firsts = frame.firsts;
  fragment.place = place;
  fragment.context = {phase_, Work::kNone, {module_, microbatch_}};
  fragment.counts.reserve(journal_.size() - frame.journal);
  for (std::size_t i = frame.journal; i < journal_.size(); ++i) {
    fragment.counts.emplace_back(journal_[i].first, journal_[i].second / frame.multiplicity);
  }
  fragment.operations = (operations_ - frame.operations) / frame.multiplicity;
  --recording_;
  if (recording_ == 0) {  // counted at the end of the section; inside a fragment, with that one
    fragment.times = frame.multiplicity;
    journal_.resize(frame.journal);
    operations_ = frame.operations;
  }
  const MemoryPeak inner = peak_;
  const std::int64_t inner_total = peak_total_;
  const bool open = peak_open_;
  restore_peak(frame, frame.firsts);
  merge_peak(inner, inner_total, open);
  return fragment;
}

void ProgramBuilder::end_fragment(std::uint64_t key, const Place& place) {
  fragments_.emplace(key, end_run(place));
}

void ProgramBuilder::begin_piece() {
  muted_ = !piece_.wanted;
  if (piece_.wanted) {
    begin_fragment();
  }
}

void ProgramBuilder::end_piece() {
  muted_ = false;
  if (!piece_.wanted) {
    return;
  }
  if (frames_.back().operations == operations_) {  // nothing was done, held or freed
    const Frame frame = pop_frame();
    restore_peak(frame, {});
    --recording_;
    sink_->take(piece_.id, {});
    return;
  }
  const Place& origin = piece_.origin;
  const Run run = end_run(origin);
  const auto relative = [&](const Name& name) {
    const bool anywhere = name.place.module == kNoModule || origin.module == kNoModule;
    return FragmentName{name.phase,
                        name.work,
                        anywhere ? name.place.module : name.place.module - origin.module,
                        name.place.microbatch >= 0};
  };
  Fragment fragment;
  fragment.delta = run.delta;
  fragment.peak_delta = run.peak_delta;
  fragment.delta_total = total(run.delta);
  fragment.peak_total = total(run.peak_delta);
  fragment.has_operations = run.firsts.any;
  fragment.peak_open = run.peak_open;
  if (run.firsts.any) {
    fragment.first = relative(run.firsts.name);
  }
  if (fragment.peak_total > 0 && !run.peak_open) {
    fragment.peak =
        relative({run.peak.phase, run.peak.work, {run.peak.module, run.peak.microbatch}});
  }
  fragment.operations = run.operations;
  fragment.counts.reserve(run.counts.size());
  for (const auto& [entry, times] : run.counts) {
    OperationCount& count = fragment.counts.emplace_back(counts_[entry]);
    count.count = times;
    if (run.times > 0) {
      counts_[entry].count += times * run.times;
    }
  }
  operations_ += run.operations * run.times;
  sink_->take(piece_.id, std::move(fragment));
}

bool ProgramBuilder::replay(std::uint64_t key, const Place& place) {
  const auto found = fragments_.find(key);
  if (found == fragments_.end()) {
    return false;
  }
  Run& fragment = found->second;
  const Step step = step_between(fragment.place, place, 1);
  if (recording_ == 0) {
    fragment.times += multiplicity_;
  } else {
    operations_ += fragment.operations * multiplicity_;
    for (const auto& [entry, times] : fragment.counts) {
      journal_.emplace_back(entry, times * multiplicity_);
    }
  }
  if ((peak_open_ || watching_) && fragment.firsts.any) {
    Name name = fragment.firsts.name;
    name.place = moved(name.place, step, 1);
    meet(name, moved(fragment.firsts.place, step, 1));
  }
  const std::int64_t peak_total = held_total_ + total(fragment.peak_delta);
  if (peak_total > peak_total_) {
    MemoryPeak peak = fragment.peak;
    for (std::size_t c = 0; c < held_.size(); ++c) {
      peak.bytes[c] = held_[c] + fragment.peak_delta[c];
    }
    move_peak(peak, step, 1);
    merge_peak(peak, peak_total, fragment.peak_open);
  }
  for (std::size_t c = 0; c < held_.size(); ++c) {
    held_[c] += fragment.delta[c];
  }
  held_total_ += total(fragment.delta);
  const Place left = moved(fragment.context.place, step, 1);
  at(fragment.context.phase, left.module, left.microbatch);
  return true;
}

}  // namespace lockstep
