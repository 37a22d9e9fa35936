// Value verifier: the hooks of the value machine that compare a plan with its reference.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check/value_check.h"
#include "core/check/value_coverage.h"
#include "core/check/value_machine.h"

namespace lockstep {

/// Explains a gradient that is not the expected one, by trying the likely mistakes.
std::string explain_gradient(const ValueIteration& expected,
                             const ValueSetting& setting,
                             std::int32_t parameter,
                             int tensor_degree,
                             field::Number found);

class ValueVerifier : public ValueHooks {
 public:
  ValueVerifier(const Plan& plan,
                ValueReference& reference,
                const ValueFacts& facts,
                const ValueCheckOptions& options,
                ValueReport& report);

  void begin_section(int section, int iteration);
  /// After init: remembers where which parameters lie, and that all are owned.
  void note_parameters(const ValueMachine& machine);
  /// After a step: they are all one version further.
  void check_parameters(const ValueMachine& machine);
  void end_section();

  void problem(const ValueSite& site, std::string text) override;
  bool enough() const override;
  field::Number initial(const ValueSite& site, std::int32_t parameter) override;
  field::Number initial_statistics(const ValueSite& site, std::uint32_t buffer) override;
  void step(const ValueSite& site, ValueStep& step) override;
  field::Number square(const ValueSite& site, const ValuePiece& gradient) override;
  field::Number clip(const ValueSite& site, field::Number sum) override;
  field::Number look(const ValueSite& site, const ValueSlab& gradient, field::Number flag) override;
  field::Number merge_flags(field::Number a, field::Number b) override;
  void guarded(const ValueSite& site, field::Number flag) override;
  void host_reads(const ValueSite& site, field::Number number) override;
  void released(const ValueSite& site, const ValueSlab& gradient) override;
  void shard_written(const ValueSite& site, const ValueSlab& shard) override;
  void statistics(const ValueSite& site,
                  std::uint32_t buffer,
                  field::Number before,
                  field::Number after) override;
  bool traces() const override { return reference_.traces(); }
  void traced(const ValueSite& site, field::Number samples, field::Number result) override;
  /// Where results begin to differ from those of the one-rank plan; empty if unknown.
  const std::string& first_difference() const { return first_difference_; }

 private:
  /// A persistent buffer that holds parameters.
  struct Home {
    int rank = 0;
    std::uint32_t root = 0;
    ValueSlab contents;  ///< after init
  };

  const ModelGraph& graph() const { return *plan_.graph; }
  const ValueIteration& expected() { return reference_.iteration(std::max(iteration_, 0)); }
  field::Number final_gradient(std::int32_t parameter);
  std::string version_text(field::Number number);
  void general_problem(int rank, std::string text);
  void wrong_gradient(const ValueSite& site, field::Number number, const char* where);
  /// The rank whose statistics a rank takes over where data-parallel ranks share them.
  int statistics_root(int rank) const;
  void check_saved_statistics();
  void check_first_statistics(const ValueMachine& machine, int rank, std::uint32_t root);
  void note_home(Home home, const Buffer& buffer, ValueCoverage& owned);
  void check_home(const ValueMachine& machine, const Home& home);
  /// The parameter that an operand belongs to by its buffer or layout; -1 if that is open.
  std::int32_t parameter_hint(const ValueSite& site) const;

  const Plan& plan_;
  ValueReference& reference_;
  const ValueFacts& facts_;
  const ValueCheckOptions& options_;
  ValueReport& report_;

  SectionKind section_ = SectionKind::kInit;
  int section_index_ = 0;
  int iteration_ = -1;
  int evaluated_ = 0;  ///< micro-batches that the evaluate section runs

  std::vector<Home> homes_;
  std::unordered_map<field::Number, ValueCoverage> flags_;
  ValueCoverage written_;
  bool loss_was_read_ = false;
  std::string first_difference_;
  /// By (rank, buffer): statistics after each update so far.
  std::map<std::pair<int, std::uint32_t>, std::vector<field::Number>> statistics_;
  /// By rank: what the save section has written that is no parameter.
  std::set<std::pair<int, field::Number>> other_numbers_written_;
};

}  // namespace lockstep
