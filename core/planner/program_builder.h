// ProgramBuilder: writes one class's programs operation by operation.
//
// It keeps the buffer table, infers dependencies between streams from what each operation reads and
// writes (read after write, write after read, write after write), and either emits operations or
// only counts them (for summaries: 200,000 a second). Strategies written by hand use it too:
//
//   PlanBuilder tables(mesh, graph);
//   ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
//   b.begin_section();
//   b.at(Phase::kForward, module, microbatch);
//   const BufferId y = b.alloc(Category::kActivation, DType::kBf16, elements);
//   b.compute(Work::kGelu, {m, f}, {b.whole(x)}, {b.whole(y)});
//
// In counting mode `repeat` runs its body for the first, one middle and the last index only and
// scales the middle; the body must behave alike for all middle indices. Per-index state of the
// caller goes through `slot`. Modules and micro-batches may move by a constant step per index: the
// peak is named as if every index had run. The step is read off the first operations of the runs
// that have a module or a micro-batch.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/check.h"
#include "core/plan.h"
#include "core/plan_summary.h"
#include "core/planner/segment_fragments.h"
#include "core/queues.h"
#include "core/stop_check.h"

namespace lockstep {

using BufferId = std::uint32_t;
using OperationId = std::uint32_t;
inline constexpr OperationId kNoOperation = 0xffffffffU;

/// The tables that all programs of a plan share.
class PlanBuilder {
 public:
  PlanBuilder(Mesh mesh, std::shared_ptr<const ModelGraph> graph, StopCheck stop_check = {});

  /// Index of the communicator, made on first use.
  std::uint8_t communicator(AxisMask axes,
                            std::uint64_t pipeline_coordinates = 0,
                            bool control = false);
  std::uint16_t layout(const Layout& layout);
  std::uint32_t shape(const Shape& shape);
  std::uint16_t scalar(const Scalar& scalar);
  /// The constant numerator / denominator.
  std::uint16_t factor(std::int64_t numerator, std::int64_t denominator);

  Plan& plan() { return plan_; }
  const Mesh& mesh() const { return plan_.mesh; }
  const ModelGraph& graph() const { return *plan_.graph; }
  /// Counts what was emitted.
  PacedStopCheck& emitted() { return emitted_; }

 private:
  Plan plan_;
  PacedStopCheck emitted_;
  std::size_t shape_place(const Shape& shape) const;
  std::vector<std::uint32_t> shape_table_;  ///< open addressing into the plan's shapes
};

/// What an operation may have beyond its operands.
struct Extras {
  Stream stream = Stream::kCompute;
  std::uint16_t flags = 0;
  std::uint16_t scalar = kNoScalar;
  std::uint16_t layout = kNoLayout;
  BufferId guard = kNoBuffer;
  Issue issue = Issue::kInOrder;
  std::int16_t root = -1;
  std::span<const OperationId> after = {};  ///< dependencies beyond the inferred ones
};

struct AllocOptions {
  Lifetime lifetime = Lifetime::kStep;
  Storage storage = Storage::kDevice;
  std::int32_t parameter = -1;
  std::uint16_t layout = kNoLayout;
  BufferId alias_of = kNoBuffer;
  std::int64_t alias_offset = 0;
};

using Views = std::span<const View>;

/// Where an operation stands: what runs of equal bodies may differ in.
struct Place {
  std::uint32_t module = kNoModule;
  std::int32_t microbatch = -1;
};

class ProgramBuilder {
 public:
  enum class Mode : std::uint8_t { kEmit, kCount };

  ProgramBuilder(PlanBuilder& tables, Mode mode);

  bool counting() const { return mode_ == Mode::kCount; }
  PlanBuilder& tables() { return tables_; }
  const ModelGraph& graph() const { return tables_.graph(); }

  /// Starts a section; persistent buffers of earlier sections live on.
  void begin_section();
  /// Ends it: the program (empty when counting).
  Program end_section();
  /// Counting: the summary of the section just ended.
  ProgramSummary summary() const;
  /// The class's buffer table, after the last section.
  std::vector<Buffer> take_buffers();

  /// Context of the operations that follow.
  void at(Phase phase, std::uint32_t module = kNoModule, std::int32_t microbatch = -1);
  void at_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  std::uint32_t module() const { return module_; }
  std::int32_t microbatch() const { return microbatch_; }

  BufferId alloc(Category category,
                 DType dtype,
                 std::int64_t elements,
                 const AllocOptions& options = {});
  void free(BufferId id);
  /// Shared ownership while building: a buffer starts with one owner; the last release frees it.
  void retain(BufferId buffer) { ++state_[buffer].owners; }
  void release(BufferId buffer) {
    if (--state_[buffer].owners == 0) {
      free(buffer);
    }
  }
  bool sole_owner(BufferId buffer) const { return state_[buffer].owners == 1; }
  const Buffer& buffer(BufferId id) const { return buffers_[id]; }
  bool live(BufferId id) const { return state_[id].live; }

  View whole(BufferId id) const { return {id, Axis::kNone, 0, buffers_[id].elements, 0}; }
  static View range(BufferId id, std::int64_t offset, std::int64_t elements) {
    return {id, Axis::kNone, offset, elements, 0};
  }
  /// This rank's slice of `elements` elements: offset + coordinate(axis) * elements.
  static View slice(BufferId id, Axis axis, std::int64_t elements, std::int64_t offset = 0) {
    return {id, axis, offset, elements, elements};
  }

  OperationId compute(
      Work work, const Shape& shape, Views inputs, Views outputs, const Extras& extras = {});
  OperationId compute(Work work,
                      const Shape& shape,
                      std::initializer_list<View> inputs,
                      std::initializer_list<View> outputs,
                      const Extras& extras = {}) {
    return compute(work,
                   shape,
                   Views(inputs.begin(), inputs.size()),
                   Views(outputs.begin(), outputs.size()),
                   extras);
  }
  /// A host operation (kHost, on Stream::kHost).
  OperationId host(Work work,
                   const Shape& shape,
                   std::initializer_list<View> outputs,
                   const Extras& extras = {}) {
    return host(work, shape, {}, Views(outputs.begin(), outputs.size()), extras);
  }
  OperationId host(
      Work work, const Shape& shape, Views inputs, Views outputs, const Extras& extras = {});

  /// `elements` as in core/operands.h; dtype is that of the input's (or output's) buffer. A view
  /// without buffer stands for none: what only the root of a scatter, gather or broadcast has.
  OperationId collective(Collective kind,
                         std::uint8_t communicator,
                         Reduction reduction,
                         std::int64_t elements,
                         const View& input,
                         const View& output,
                         const Extras& extras);
  OperationId send(std::uint8_t communicator, int peer, std::uint32_t tag, const View& input);
  OperationId recv(std::uint8_t communicator, int peer, std::uint32_t tag, const View& output);

  /// body(i) for i in [0, n), ascending or descending.
  template <typename Body>
  void repeat(std::int64_t n, Body&& body) {
    repeat_in(n, false, body);
  }
  template <typename Body>
  void repeat_reverse(std::int64_t n, Body&& body) {
    repeat_in(n, true, body);
  }
  /// Counting mode keeps per-index state only of the first, one middle and the last index.
  std::int64_t slot(std::int64_t i, std::int64_t n) const {
    return !counting() || i == 0 || i == n - 1 ? i : 1;
  }
  /// Runs `body` when emitting; when counting, runs it once per key and replays its effect. Runs
  /// with one key may differ in modules and micro-batches only, each by as much as in `place`.
  template <typename Body>
  void once_per(std::uint64_t key, const Place& place, Body&& body) {
    if (!counting()) {
      body();
    } else if (!replay(key, place)) {
      begin_fragment();
      body();
      end_fragment(key, place);
    }
  }
  template <typename Body>
  void once_per(std::uint64_t key, Body&& body) {
    once_per(key, Place{}, body);
  }

  /// Counting: `sink` gets every piece from now on that it wants. What the summary says of
  /// operations is then void; bytes at its start and end are not.
  void record_to(FragmentSink* sink) { sink_ = sink; }
  /// Runs `body`, a piece of a step that stands at `origin` (the first module of its segment, its
  /// micro-batch), and hands what it amounts to to the sink.
  template <typename Body>
  void piece(const PieceId& id, const Place& origin, Body&& body) {
    if (sink_ == nullptr) {
      body();
      return;
    }
    piece_ = {id, origin, sink_->wants(id)};
    begin_piece();
    body();
    end_piece();
  }
  /// Inside a piece: `body` is a piece of its own, and what comes before and after it are two parts
  /// of the surrounding one.
  template <typename Body>
  void interject(Body&& body) {
    if (sink_ == nullptr) {
      body();
      return;
    }
    end_piece();
    const OpenPiece surrounding = piece_;
    PieceId id = piece_.id;
    id.kind = PieceKind::kInterjection;
    piece(id, surrounding.origin, body);
    piece_ = surrounding;
    begin_piece();
  }
  /// Counting: from now on only memory is followed, not operations.
  /// The compute stream waits for `operation` before what is put on it next.
  void wait(OperationId operation) {
    if (!counting() && operation != kNoOperation) {
      compute_waits_.push_back(operation);
    }
  }
  void mute(bool muted) { muted_ = counting() && muted; }

  std::int64_t held(Category category) const { return held_[static_cast<std::size_t>(category)]; }
  const CategoryBytes& held() const { return held_; }
  std::uint32_t next_operation() const {
    return static_cast<std::uint32_t>(program_.operations.size());
  }

 private:
  /// Who touched a live buffer last, per stream, for dependency inference.
  struct BufferState {
    bool live = false;
    std::uint8_t owners = 0;
    OperationId writer = kNoOperation;
    std::array<OperationId, kStreamCount> reader{};
  };
  /// What names a peak: the operation after it.
  struct Name {
    Phase phase = Phase::kInit;
    Work work = Work::kNone;
    Place place;
  };
  /// What was met first inside a frame.
  struct Firsts {
    bool any = false;
    Name name;    ///< of the first operation
    Place place;  ///< first module, first micro-batch, maybe of different operations
    bool complete() const { return any && place.module != kNoModule && place.microbatch >= 0; }
  };
  /// Tracking set aside while a fragment or a scaled run is watched.
  struct Frame {
    CategoryBytes start{};
    MemoryPeak peak;
    std::int64_t peak_total = 0;
    bool peak_open = false;
    Firsts firsts;
    std::size_t journal = 0;
    std::int64_t operations = 0;
    std::int64_t multiplicity = 1;
  };
  struct OpenPiece {
    PieceId id;
    Place origin;
    bool wanted = false;
  };
  struct Run {
    CategoryBytes delta{};
    CategoryBytes peak_delta{};
    MemoryPeak peak;
    bool peak_open = false;
    Firsts firsts;
    Place place;   ///< of the run that was recorded
    Name context;  ///< phase, module and micro-batch that it left behind
    std::vector<std::pair<std::uint32_t, std::int64_t>> counts;  ///< of one run
    std::int64_t operations = 0;                                 ///< of one run
    std::int64_t times = 0;                                      ///< runs
  };

  template <typename Body>
  void repeat_in(std::int64_t n, bool reverse, Body&& body) {
    if (!counting() || n <= 2) {
      for (std::int64_t i = 0; i < n; ++i) {
        body(reverse ? n - 1 - i : i);
      }
      return;
    }
    begin_watch();
    body(reverse ? n - 1 : 0);
    const Firsts head = end_watch();
    begin_scaled(n - 2);
    body(std::int64_t{1});
    end_scaled(n - 2, reverse, head);
    body(reverse ? 0 : n - 1);
  }

  OperationId emit(Operation op, Views inputs, Views outputs, const Extras& extras);
  void count(const Operation& op);
  std::uint32_t count_index(const OperationCount& entry);
  void hold(Category category, std::int64_t bytes);
  void merge_peak(const MemoryPeak& peak, std::int64_t peak_total, bool open);
  void meet(const Name& name, const Place& place);
  void depend(std::uint8_t queue, OperationId on);
  void infer_dependencies(std::uint8_t queue, Views inputs, Views outputs);
  void record_use(Stream stream, OperationId id, Views inputs, Views outputs);
  BufferId new_buffer(const Buffer& buffer);
  void push_frame();
  Frame pop_frame();
  void restore_peak(const Frame& frame, const Firsts& firsts);
  void begin_watch() { push_frame(); }
  Firsts end_watch() { return pop_frame().firsts; }
  void begin_scaled(std::int64_t times);
  void end_scaled(std::int64_t times, bool reverse, const Firsts& head);
  void begin_fragment();
  Run end_run(const Place& place);
  void end_fragment(std::uint64_t key, const Place& place);
  void begin_piece();
  void end_piece();
  bool replay(std::uint64_t key, const Place& place);
  /// How far `to` lies behind `from`, where both are known.
  struct Step {
    std::int64_t module = 0;
    std::int64_t microbatch = 0;
  };
  static Step step_between(const Place& from, const Place& to, std::int64_t steps);
  static Place moved(const Place& place, const Step& step, std::int64_t steps);
  static void move_peak(MemoryPeak& peak, const Step& step, std::int64_t steps);
  Operation operation(OperationKind kind, const Extras& extras) const;

  PlanBuilder& tables_;
  Mode mode_;
  Phase phase_ = Phase::kInit;
  std::uint32_t module_ = kNoModule;
  std::int32_t microbatch_ = -1;

  Program program_;
  std::vector<Buffer> buffers_;
  std::vector<BufferState> state_;
  std::unordered_map<std::uint64_t, std::vector<BufferId>> free_ids_;
  std::vector<OperationId> compute_waits_;  ///< for the next operation of the compute stream
  std::vector<BufferId> any_free_ids_;      ///< counting: all buffers are interchangeable
  QueueNumbering queues_;
  std::vector<std::uint8_t> queue_of_;  ///< by operation of the section
  /// synced_[a][b]: queue a is already ordered after operation synced_[a][b] of queue b.
  std::array<std::array<std::int64_t, kQueueCount>, kQueueCount> synced_{};
  std::vector<std::uint32_t> pending_;  ///< dependencies of the operation being built

  CategoryBytes held_{};
  std::int64_t held_total_ = 0;
  std::int64_t peak_total_ = 0;
  bool peak_open_ = false;  ///< the next operation names the peak
  MemoryPeak peak_;
  CategoryBytes at_start_{};

  std::int64_t multiplicity_ = 1;
  std::int64_t operations_ = 0;
  std::vector<OperationCount> counts_;
  std::vector<std::uint32_t> count_table_;  ///< open addressing into counts_
  std::vector<std::pair<std::uint32_t, std::int64_t>> journal_;
  int recording_ = 0;
  std::vector<Frame> frames_;
  bool watching_ = false;  ///< some frame has not met all its firsts
  std::unordered_map<std::uint64_t, Run> fragments_;
  FragmentSink* sink_ = nullptr;
  OpenPiece piece_;
  bool muted_ = false;
};

}  // namespace lockstep
