// Value machine: runs every rank of a plan over symbols, in program order.
//
// Ranks take turns. A send leaves a message, a receive and a collective are posted and complete
// when their partners have come; until then any operation that touches their result waits, others
// go on (PLAN rule R2 without streams: what program order alone promises). Inputs are read when an
// operation is issued, so a result never depends on the order in which ranks run.
//
// What numbers ought to be is not known here: ValueHooks is asked for initial parameters and told
// about optimizer steps, norms, flags and what the host reads. One set of hooks records a reference
// run, the other one compares with it.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check/value_memory.h"
#include "core/check/value_rules.h"
#include "core/plan.h"

namespace lockstep {

/// Which operation on which rank.
struct ValueSite {
  int rank = 0;
  int section = 0;  ///< index into Plan::sections
  std::uint32_t index = 0;
  const Operation* op = nullptr;
};

/// The loss scale that goes with a state of the scaler; any function of it that is never 0.
field::Number loss_scale_number(field::Number state);
/// First values of a buffer without a parameter.
field::Number first_statistics_number(std::uint32_t buffer);
/// Tokens with a label in a micro-batch, as kCountTokens counts them.
field::Number token_count_of_batch(int iteration, int data, int microbatch);
/// The iteration number under which the evaluate section loads its batches.
inline constexpr int kEvaluationIteration = -2;

/// A stretch of a parameter at its optimizer step. The hooks replace the numbers of parameter and
/// states by what they are after it.
struct ValueStep {
  std::int64_t elements = 0;
  ValueSymbol parameter;
  ValueSymbol gradient;
  int states = 0;
  field::Number state[2] = {0, 0};
};

class ValueHooks {
 public:
  virtual ~ValueHooks() = default;
  virtual void problem(const ValueSite& site, std::string text) = 0;
  /// True when so much is wrong that going on tells nothing new.
  virtual bool enough() const = 0;
  virtual field::Number initial(const ValueSite& site, std::int32_t parameter) = 0;
  /// First value of a buffer of category parameter that is none: running statistics.
  virtual field::Number initial_statistics(const ValueSite& site, std::uint32_t buffer) = 0;
  virtual void step(const ValueSite& site, ValueStep& step) = 0;
  /// Sum of squares of a stretch of gradient.
  virtual field::Number square(const ValueSite& site, const ValuePiece& gradient) = 0;
  /// The coefficient that follows from the squared norm.
  virtual field::Number clip(const ValueSite& site, field::Number sum) = 0;
  /// The overflow flag after these gradients, already unscaled, were looked at too.
  virtual field::Number look(const ValueSite& site,
                             const ValueSlab& gradient,
                             field::Number flag) = 0;
  virtual field::Number merge_flags(field::Number a, field::Number b) = 0;
  /// An operation is skipped if the flag is set, which it is not.
  virtual void guarded(const ValueSite& site, field::Number flag) = 0;
  virtual void host_reads(const ValueSite& site, field::Number number) = 0;
  /// A buffer of gradients is given back.
  virtual void released(const ValueSite& site, const ValueSlab& gradient) = 0;
  virtual void shard_written(const ValueSite& site, const ValueSlab& shard) = 0;
  /// Running statistics of batch norm, in `buffer`, before and after an update.
  virtual void statistics(const ValueSite& site,
                          std::uint32_t buffer,
                          field::Number before,
                          field::Number after) = 0;
  /// Whether `traced` is wanted: what a work gave, under a number for its samples.
  virtual bool traces() const { return false; }
  virtual void traced(const ValueSite&, field::Number /*samples*/, field::Number /*result*/) {}
};

struct ValueMachineOptions {
  /// 0: the ranks of the plan. N: N copies of a one-rank plan, copy d with the samples of
  /// data-parallel coordinate d, which meet only where synchronised batch norm sums over them.
  int copies = 0;
};

/// Whether an operation ever changed anything it wrote.
enum class ValueUse : std::uint8_t { kNotRun, kChangedNothing, kUseful };

class ValueMachine {
 public:
  ValueMachine(const Plan& plan, ValueHooks& hooks, const ValueMachineOptions& options = {});

  /// Runs a section on all ranks. `iteration` tells batches apart; `microbatch` >= 0 replaces that
  /// of the operations. False when the ranks could not reach its end.
  bool run(int section, int iteration, int microbatch = -1);

  int rank_count() const { return static_cast<int>(ranks_.size()); }
  int class_of(int rank) const { return ranks_[static_cast<std::size_t>(rank)].class_index; }
  ValueMemory& memory(int rank) { return ranks_[static_cast<std::size_t>(rank)].memory; }
  const ValueMemory& memory(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].memory;
  }
  std::int64_t operations_run() const { return operations_run_; }
  /// By section, class and operation.
  const std::vector<std::vector<std::vector<ValueUse>>>& use() const { return use_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  struct Rank {
    Rank(const ValuePlaces& places, const Mesh& mesh, int like) : memory(places, mesh, like) {}
    ValueMemory memory;
    int class_index = 0;
    int data = 0;
    int tensor_index = 0;
    int pipeline = 0;
    const Program* program = nullptr;
    std::uint32_t next = 0;
    int waiting = 0;                     ///< posted operations that have not completed
    std::vector<std::uint16_t> pending;  ///< of those, how many write each root buffer
    std::vector<std::uint32_t> posted;   ///< by communicator: collectives so far
    bool recomputes = false;             ///< the section has recomputation
    /// With recomputation: outputs of forward works by module, micro-batch, work and place.
    std::unordered_map<std::uint64_t, field::Number> forward;
  };
  /// One group of ranks on one communicator.
  struct Group {
    std::vector<int> members;
    std::uint32_t first = 0;  ///< number of rounds.front()
    struct Round {
      std::vector<ValueSlab> inputs;
      std::vector<ValueSite> sites;
      std::size_t arrived = 0;
    };
    std::deque<Round> rounds;
  };
  struct Channel {
    std::deque<ValueSlab> messages;
    std::deque<ValueSite> senders;    ///< of the messages
    std::deque<ValueSite> receivers;  ///< that wait for one
  };

  void make_ranks();
  void make_groups();
  void start(int section);
  bool advance(int rank);
  bool ready(const Rank& rank, const Operation& op) const;
  void execute(const ValueSite& at);
  void give_back(const ValueSite& at);
  ValueUse& use_of(const ValueSite& at) {
    return use_[static_cast<std::size_t>(section_)]
               [static_cast<std::size_t>(rank_of(at).class_index)][at.index];
  }
  bool finish();
  void report_stuck();

  // Communication: value_traffic.cpp.
  void post(const ValueSite& at);
  void join(std::size_t communicator, const ValueSite& at, const View& input);
  void complete(Group& group);
  bool agree(const Group::Round& round);
  void send(const ValueSite& at);
  void receive(const ValueSite& at);
  void expect(const ValueSite& at, int more);
  void deliver(const ValueSite& at, const ValueSlab& slab);
  Channel& channel(int source, int destination, std::uint32_t tag);
  void exchange_beliefs(const ValueSite& at, const ValueSlab& message, std::size_t members);
  void report_unread();
  void report_beliefs();

  // Works: value_works.cpp, value_pack.cpp, value_steps.cpp.
  void work(const ValueSite& at);
  void rule(const ValueSite& at);
  void read_operands(const ValueSite& at);
  void write_results(const ValueSite& at);
  void tell_statistics(const ValueSite& at);
  void bookkeeping(const ValueSite& at);
  void add(const ValueSite& at);
  void scale(const ValueSite& at);
  void pack(const ValueSite& at);
  void unpack(const ValueSite& at);
  void initialize(const ValueSite& at);
  /// First values of a parameter whose tensor has so many elements here.
  ValueSymbol first_symbol(const ValueSite& at, std::int32_t parameter, std::int64_t elements);
  void first_values_by_layout(const ValueSite& at, const View& view, const Layout& layout);
  void load_batch(const ValueSite& at);
  void count_tokens(const ValueSite& at);
  void unscale_and_check(const ValueSite& at);
  void sum_squares(const ValueSite& at);
  void clip_coefficient(const ValueSite& at);
  void optimizer(const ValueSite& at);
  /// One stretch of it: (parameter, gradient, states...) to (parameter, states...).
  void step_stretch(const ValueSite& at,
                    std::int64_t offset,
                    std::int64_t elements,
                    std::span<const ValueSymbol* const> symbols,
                    std::span<ValueSlab> after);
  void guard(const ValueSite& at);

  // Operands.
  Rank& rank_of(const ValueSite& at) { return ranks_[static_cast<std::size_t>(at.rank)]; }
  std::span<const View> inputs(const ValueSite& at) {
    return rank_of(at).program->inputs_of(*at.op);
  }
  std::span<const View> outputs(const ValueSite& at) {
    return rank_of(at).program->outputs_of(*at.op);
  }
  /// The operand as one tensor; a problem when it is uninitialised or a mixture.
  ValueTensor tensor(const ValueSite& at, const View& view);
  /// One number from an operand of one element.
  field::Number number(const ValueSite& at, const View& view);
  void write(const ValueSite& at, const View& view, const ValueSymbol& symbol);
  void write(const ValueSite& at, const View& view, const ValueSlab& slab);
  void accumulate(const ValueSite& at, const View& view, const ValueSymbol& symbol);
  field::Number constant_factor(const Operation& op) const;
  /// Its scalar, or the number that another operation made; for a loss, sets `loss_factor` too.
  void read_loss_factors(const ValueSite& at, ValueCall& call, field::Number& scale);
  /// Recomputation gives what forward gave, also where nobody reads it.
  void compare_with_forward(const ValueSite& at, std::size_t output, field::Number result);
  void trace(const ValueSite& at, std::size_t output);
  std::int32_t layout_coordinate(const ValueSite& at, const View& view, const Layout& layout);
  int microbatch(const ValueSite& at) const {
    return microbatch_ >= 0 ? microbatch_ : at.op->microbatch;
  }

  const Plan& plan_;
  ValueHooks& hooks_;
  ValueMachineOptions options_;
  std::vector<ValuePlaces> places_;  ///< by class
  std::vector<Rank> ranks_;
  std::vector<Group> groups_;
  std::vector<std::vector<int>> group_index_;  ///< by communicator and rank; -1 = not a member
  std::unordered_map<std::uint64_t, Channel> channels_;
  /// What one rank's host believes (sizes, used parameters), by number: ranks must exchange it.
  struct Belief {
    ValueSite site;
    bool exchanged = false;
    bool summed = false;
  };
  std::unordered_map<field::Number, Belief> beliefs_;
  std::int64_t tokens_ = 0;
  std::int64_t operations_run_ = 0;
  std::vector<std::vector<std::vector<ValueUse>>> use_;

  // Of the section in progress.
  int section_ = 0;
  int iteration_ = 0;
  int microbatch_ = -1;
  field::Number loss_factor_ = 1;  ///< of the last loss: its scalar times the loss scale

  // Scratch, so that nothing is allocated per operation.
  std::vector<ValueTensor> tensors_in_;
  std::vector<ValueTensor> tensors_out_;
  std::vector<ValueSlab> slabs_;
  ValueSlab slab_;
  ValueSlab part_;
};

}  // namespace lockstep
